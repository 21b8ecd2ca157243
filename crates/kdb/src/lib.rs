//! The q IPC protocol and the kdb+ log: the messages that kdb+ processes exchange, and the logs that their tickerplants
//! write.
//!
//! This crate converts values to bytes and back. It does no I/O, reads no clock and contains no `unsafe` code: input is
//! a borrowed slice, views borrow from it, and encoders write into a slice that the caller owns. Nothing is evaluated:
//! functions are skipped when reading and can be written again.
//!
//! * [`View`]: a value of any type, read in place; [`Value`]: an owned value; [`Encoder`] writes either;
//! * [`Update`]: rows for a table (`upd`), column by column;
//! * [`Hello`], [`Frames`], [`Message`]: a connection's handshake, byte stream and messages; [`pack`] and [`unpack`]
//!   for compressed messages;
//! * [`Log`] and [`LogWriter`]: the file that `-11!` replays.
//!
//! The crate reads both byte orders, every type that can be sent, and the long vectors of capability 6; it writes the
//! least significant byte first. Input is treated as hostile: values are nested at most [`MOST_DEPTH`] deep, every
//! length is checked before use, and the caller sets the memory bound.
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
