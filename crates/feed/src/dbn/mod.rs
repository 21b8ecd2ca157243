//! Databento Binary Encoding, versions 1 to 3: market data of many venues in one form.
//!
//! [`capture::open`](crate::capture::open) recognises such files, plain or compressed, with metadata or without (fragments),
//! and gives a [`File`]; [`decode`] reads one [`Record`] of it, all fields at the places that the `dbn` crate's structures
//! have; [`Event`] says what a record means, and [`Books`] keep what it changes: names, order books, tops of book, trades,
//! trading states. Source of the format: the [`dbn`](https://docs.rs/dbn) crate and Databento's pages on it.
//!
//! **Events.** A venue's event may take several records; only after the one with [`Flags::LAST`] does a book show what the
//! venue showed, so only then may its top of book change. Snapshots are one long event. Trades are told at once.
//!
//! **Names.** An instrument is a number of a publisher; its name is the symbol that the file's metadata give for the day, else
//! that of a symbol mapping or a definition, else the number. In datasets of several venues the venue stands behind it.
//!
//! **Bytes are hostile**: lengths are checked before they are believed, memory is bounded by [`Settings`], by the most bytes of
//! metadata that are read, and by a window of 128 MiB where a file is compressed.
//!
//! ```
//! use tapeline_feed::capture::{self, Recording};
//! use tapeline_feed::dbn::{Event, Record, decode};
//!
//! // A fragment of one trade: 5 at 5529.25.
//! let mut trade = [0; 48];
//! trade[..2].copy_from_slice(&[12, 0]); // twelve words, kind 0
//! trade[16..24].copy_from_slice(&5_529_250_000_000_i64.to_le_bytes());
//! trade[24..28].copy_from_slice(&5_u32.to_le_bytes());
//!
//! let Recording::Records(mut file) = capture::open(&trade[..])? else { panic!("it holds records") };
//! let record = decode(file.next()?.expect("there is one"))?;
//! let Event::Trade(trade) = Event::of(&record) else { panic!("it is a trade") };
//! assert_eq!((trade.price.to_string().as_str(), trade.size), ("5529.25", 5));
//! assert_eq!(file.next()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod books;
mod damage;
mod definition;
mod event;
mod field;
pub(crate) mod file;
mod filter;
mod ladder;
mod metadata;
mod order_book;
mod record;
mod summary;
mod symbols;

pub use books::{Best, Book, Books, Change, Counters, Place, Settings, Top, Volume};
pub use damage::Damage;
pub use event::{Action, Definition, Event, Order, Quote, Statistic, Symbol, Trade, TradingStatus};
pub use field::{Flags, Letter, Price, Text, Value};
pub use file::File;
pub use filter::Filter;
pub use metadata::{MOST_METADATA_BYTES, Metadata};
pub use record::{HEADER_BYTES, Header, Kind, Level, Malformed, Record, decode, recorded_ns};
pub use summary::{Range, Summary};
pub use symbols::Symbols;

/// The views of all kinds of records.
pub mod view {
    pub use super::definition::{DefinitionV1, DefinitionV2, DefinitionV3};
    pub use super::record::{
        Bbo, Cbbo, Cmbp1, Error, ErrorV1, Imbalance, Mapping, MappingV1, Mbo, Mbp1, Mbp10, Ohlcv, Statistic,
        StatisticV1, Status, System, SystemV1, Trade, Unknown,
    };
}
