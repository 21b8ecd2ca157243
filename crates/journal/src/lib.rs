//! A journal of published records on disk, in sequence order. Every gap in it is reported.
//!
//! A [`Writer`] appends records (a sequence, a time, bytes) to segments, many records in one write. Its [`Progress`]
//! says up to which sequence records are written and synced. A [`Reader`] returns records from any sequence or time on,
//! also while the journal is being written. Opening a journal truncates what a crash tore off and reports it; damage in
//! the middle is an error with its location.
//!
//! ```
//! use tapeline_journal::{Directory, From, Next, Reader, Settings, Writer};
//! use tapeline_nanos::Nanos;
//!
//! # let folder = std::env::temp_dir().join(format!("doc-journal-{}", std::process::id()));
//! let (mut writer, _) = Writer::open(Directory::create(&folder)?, Settings::default())?;
//! for seq in 1..=3 {
//!     assert!(writer.append(seq, Nanos(seq * 1_000), b"a tick").is_kept());
//! }
//! assert!(writer.flush().is_kept());
//! assert_eq!(writer.progress().written_up_to(), 3);
//!
//! let mut reader = Reader::open(Directory::open(&folder)?)?;
//! reader.seek(From::Seq(2))?;
//! let Next::Record(record) = reader.next()? else { panic!("it is there") };
//! assert_eq!((record.seq, record.body), (2, &b"a tick"[..]));
//! # std::fs::remove_dir_all(&folder).ok();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The journal does not interpret a record's bytes. The format and the alternatives considered are in
//! `docs/adr/0023-journal.md`.

#![deny(unsafe_code)]

mod bounds;
mod checksum;
mod error;
mod folder;
mod format;
mod index;
mod opening;
mod progress;
mod reader;
mod segments;
mod settings;
mod tail;
mod writer;

pub use error::{Error, Fault};
pub use folder::{Directory, File, Folder};
pub use format::MOST_BODY;
pub use opening::Opened;
pub use progress::{Progress, State};
pub use reader::{Ends, From, Lost, Next, Reader, Record, SegmentView};
pub use settings::{Durability, OnFailure, Retention, Settings};
pub use tail::Tail;
pub use writer::{Outcome, Writer};
