//! The Open Message Model (OMM): codec, dictionaries, domains and roles.
//!
//! This crate converts market-data values into Rssl Wire Format (RWF 14.x) bytes and back. It does no I/O, reads no
//! clock and contains no `unsafe` code. Input is a borrowed slice, views borrow from it, and encoders write directly
//! into a slice that the caller owns.
//!
//! * [`rwf`]: messages, containers and primitive values as bytes; [`rwf::Container`] for a message of any shape, and
//!   [`rwf::Outline`] for its human-readable form;
//! * [`fid`]: the ids of the fields that Tapeline publishes;
//! * [`dictionary`]: name, type and enumerated values of each field id;
//! * [`domain`]: login, directory, dictionary and other domains as values;
//! * [`json`]: messages as the JSON of WebSocket clients, and back;
//! * [`role`]: the behaviour of the two ends of a connection, without the connection itself.
//!
//! ```
//! use tapeline_omm::{Dictionary, FieldList, FieldListEncoder, Real, fid, rwf};
//!
//! // Encode: an update header, then the fields, in one pass over the caller's buffer.
//! let mut buffer = [0; 128];
//! let header = rwf::update_header(
//!     &mut buffer,
//!     rwf::Domain::MARKET_PRICE,
//!     0,
//!     rwf::UpdateType::QUOTE,
//!     rwf::DataType::FIELD_LIST,
//! )?;
//! let mut list = FieldListEncoder::new(&mut buffer[header..])?;
//! list.real(fid::BID, Real::decimal(3991, 2))?;
//! list.real(fid::BIDSIZE, Real::integer(10))?;
//! let len = header + list.finish();
//!
//! // Decode: views over the same bytes, nothing is copied.
//! let message = rwf::MessageView::parse(&buffer[..len])?;
//! let list = FieldList::parse(message.payload())?;
//! let bid = list.find(fid::BID)?.expect("encoded above").real()?;
//! assert_eq!(bid, Some(Real::decimal(3991, 2)));
//! let text = list.render(Dictionary::builtin()).to_string();
//! assert_eq!(text, "BID=39.91 BIDSIZE=10");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod dictionary;
pub mod domain;
mod error;
pub mod fid;
pub mod json;
pub mod role;
pub mod rwf;

pub use dictionary::Dictionary;
pub use error::{Full, Malformed, Refused};
pub use fid::Fid;
pub use rwf::{Date, DateTime, Field, FieldList, FieldListEncoder, Qos, Real, State, Time, Value};
