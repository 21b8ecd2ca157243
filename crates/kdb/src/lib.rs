//! The q IPC protocol and the kdb+ log: what kdb+ processes say to each other, and what their tickerplants keep.
//!
//! This crate turns values into bytes and back. It does no I/O, reads no clock and holds no `unsafe` code: bytes come in as a
//! borrowed slice, views borrow from it, and encoders write straight into a slice that the caller owns. Nothing is evaluated:
//! functions are read past and written again.
//!
//! * [`View`]: a value of any type, read in place; [`Value`]: one that owns what is in it; [`Encoder`] writes either;
//! * [`Update`]: rows for a table (`upd`), column by column;
//! * [`Hello`], [`Frames`], [`Message`]: a connection's beginning, its bytes, its messages; [`pack`] and [`unpack`] for
//!   compressed ones;
//! * [`Log`] and [`LogWriter`]: the file that `-11!` replays.
//!
//! Read are both byte orders, every type that travels, and capability 6's long vectors; written is the least significant byte first.
//! Bytes are taken to be hostile: values are at most [`MOST_DEPTH`] deep, no length is believed before it is checked, and
//! memory is bounded by what the caller says.
//!
//! ```
//! use tapeline_kdb::{Column, Encoder, Message, MessageKind, Type, Update};
//!
//! // A feed handler's message: two rows, written column by column.
//! let mut room = [0; 256];
//! let mut message = Encoder::message(&mut room, MessageKind::Async)?;
//! message.list(3)?;
//! message.symbol(b".u.upd")?;
//! message.symbol(b"trade")?;
//! message.list(2)?;
//! message.symbols([b"AAPL".as_slice(), b"IBM"])?;
//! message.column(Type::FLOAT, [84.28, 120.5])?;
//! let len = message.finish()?;
//!
//! // A tickerplant's view of it: the columns are read where they are.
//! let view = Message::parse(&room[..len])?.view()?;
//! let update = Update::of(&view)?;
//! assert_eq!((update.table, update.rows.len()), (b"trade".as_slice(), 2));
//! let Some(Column::Vector(prices)) = update.rows.columns().nth(1) else { unreachable!() };
//! assert_eq!(prices.items::<f64>().expect("they are floats").sum::<f64>(), 204.78);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod atom;
mod check;
mod compression;
mod cursor;
mod encoder;
mod error;
mod frames;
mod handshake;
mod kind;
mod log;
mod message;
mod order;
mod time;
mod update;
mod value;
mod vector;
mod view;

pub use atom::Atom;
pub use compression::{LEAST_PACKED, pack, unpack};
pub use encoder::Encoder;
pub use error::{Fault, Malformed, Refused};
pub use frames::Frames;
pub use handshake::{Capability, Hello, MOST_HELLO};
pub use kind::{Attribute, Type};
pub use log::{Entry, LOG_HEADER, Log, LogWriter, Torn, check_header};
pub use message::{HEADER, Header, Message, MessageKind};
pub use order::{Item, Order};
pub use time::UNIX_2000_NS;
pub use update::{Column, Columns, NoUpdate, Rows, Update};
pub use value::Value;
pub use vector::{Atoms, Symbols, Vector};
pub use view::{Dict, Function, List, MOST_DEPTH, Table, Values, View};
