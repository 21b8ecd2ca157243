//! Exchange feeds: datagrams and files in, drafts of market-data updates out.
//!
//! This crate does no I/O of its own and reads no clock. Two small files contain `unsafe` code (byte permutations and prefetching, and pieces of
//! huge pages, see `scripts/unsafe-files`). Input is borrowed slices with their receive time; output is values and small traits.
//!
//! * [`moldudp64`]: the datagrams of NASDAQ's feeds, parsed and built, with both ends of retransmission ([`moldudp64::recover`],
//!   [`moldudp64::retransmit`], [`history`]);
//! * [`framing`]: the contents of one datagram in any transport;
//! * [`soupbintcp`]: the same messages over TCP, with a login that sets the first sequence;
//! * [`mod@line`]: one feed from several lines: the first arrival wins, gaps are declared once;
//! * [`itch`]: NASDAQ TotalView-ITCH 5.0 messages as views over the received bytes, and their encoders;
//! * [`iex`]: IEX's TOPS 1.6 and DEEP 1.0 in IEX-TP, in the same way, with books of price levels;
//! * [`dbn`]: Databento's files of market data, with their own books;
//! * [`venues`]: public streams of crypto venues, with books joined from snapshots and differences;
//! * [`book`]: order by order books of all symbols, with price levels, top of book and volume;
//! * [`depth`]: the single orders, for feeds that publish them, and the changes by each message;
//! * [`normalise`]: an exchange's message becomes a [`draft::Draft`] of an update in the Open Message Model's terms;
//! * [`symbols`]: the selection of symbols, applied before a message is decoded;
//! * [`nbbo`]: the best bid and offer over several venues;
//! * [`summary`]: a readable summary of a feed;
//! * [`capture`]: packet captures and feed files; [`simulate`]: a plausible exchange from a seed; [`faults`]: faults on its lines.
//!
//! ```
//! use tapeline_feed::{itch, moldudp64};
//!
//! // A packet of one message, as an exchange would send it.
//! let mut message = [0; itch::encode::LONGEST];
//! let prefix = itch::encode::PrefixFields { locate: 13, tracking: 0, ts_ns: 34_200_000_000_000 };
//! let length = itch::encode::OrderDelete { reference: 7 }.encode(prefix, &mut message).expect("it fits");
//! let mut buffer = [0; 1400];
//! let mut packet = moldudp64::PacketBuilder::new(&mut buffer, moldudp64::MoldSession::new("DEMO"), 1)?;
//! packet.push(&message[..length])?;
//! let length = packet.finish();
//!
//! // And read again, without a copy.
//! let moldudp64::MoldPacket::Data(data) = moldudp64::parse(&buffer[..length])? else { panic!("it holds a message") };
//! for (sequence, bytes) in data.messages() {
//!     assert_eq!(sequence, 1);
//!     let itch::Message::OrderDelete(delete) = itch::decode(bytes)? else { panic!("it is a delete") };
//!     assert_eq!((delete.locate(), delete.reference()), (itch::Locate(13), itch::OrderRef(7)));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(unsafe_code)]

mod blocks;
pub mod book;
pub mod capture;
pub mod dbn;
pub mod depth;
mod digits;
pub mod draft;
pub mod faults;
pub mod framing;
pub mod history;
pub mod iex;
pub mod itch;
pub mod levels;
pub mod line;
mod memory;
pub mod moldudp64;
pub mod nbbo;
pub mod normalise;
mod processor;
mod protocol;
mod reasons;
pub mod simulate;
pub mod soupbintcp;
pub mod summary;
pub mod symbols;
pub mod token_bucket;
pub mod venues;
mod wire;

pub use framing::Framing;
pub use processor::prefetch_lines;
pub use protocol::{Protocol, UnknownProtocol};

/// The example in the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
