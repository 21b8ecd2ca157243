//! Databento Binary Encoding, versions 1 to 3: market data of many venues in one form.
//!
//! [`capture::open`](crate::capture::open) recognises such files, plain or compressed, with metadata or without (fragments), and returns a
//! [`File`]. [`decode`] reads one [`DbnRecord`] of it, with all fields at the offsets of the `dbn` crate's structures. [`DbnEvent`] is the meaning of a
//! record, and [`DbnBooks`] store names, order books, tops of book, trades and trading states. Source of the format: the [`dbn`](https://docs.rs/dbn)
//! crate and Databento's pages on it.
//!
//! **Events.** A venue's event may consist of several records. Only after the record with [`Flags::LAST`] does a book equal the venue's, so only
//! then may its top of book change. A snapshot is one long event. Trades are reported at once.
//!
//! **Names.** An instrument is a number of a publisher. Its name is the symbol for the day in the file's metadata, otherwise that of a symbol
//! mapping or a definition, otherwise the number. In datasets of several venues the name has the venue as suffix.
//!
//! **Input is hostile**: lengths are checked before use. Memory is bounded by [`DbnSettings`], by the maximum size of metadata, and by a window of 128
//! MiB for a compressed file.
//!
//! ```
//! use tapeline_feed::capture::{self, Recording};
//! use tapeline_feed::dbn::{DbnEvent, DbnRecord, decode};
//!
//! // A fragment of one trade: 5 at 5529.25.
//! let mut trade = [0; 48];
//! trade[..2].copy_from_slice(&[12, 0]); // twelve words, kind 0
//! trade[16..24].copy_from_slice(&5_529_250_000_000_i64.to_le_bytes());
//! trade[24..28].copy_from_slice(&5_u32.to_le_bytes());
//!
//! let Recording::Records(mut file) = capture::open(&trade[..])? else { panic!("it holds records") };
//! let record = decode(file.next()?.expect("there is one"))?;
//! let DbnEvent::Trade(trade) = DbnEvent::of(&record) else { panic!("it is a trade") };
//! assert_eq!((trade.price.to_string().as_str(), trade.size), ("5529.25", 5));
//! assert_eq!(file.next()?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ahead;
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

pub use books::{Best, BookIndex, DbnBook, DbnBooks, DbnChange, DbnCounters, DbnSettings, DbnTop, DbnVolume};
pub use damage::Damage;
pub use event::{
    DbnAction, DbnEvent, DbnOrder, DbnQuote, DbnTrade, DbnTradingStatus, Definition, Statistic, Symbol,
};
pub use field::{DbnPrice, DbnText, Flags, Letter, Value};
pub use file::File;
pub use filter::DbnFilter;
pub use metadata::{MOST_METADATA_BYTES, Metadata};
pub use record::{
    DbnLevel, DbnRecord, HEADER_BYTES, Header, MalformedRecord, RecordKind, decode, recorded_ns,
};
pub use summary::{DbnSummary, Range};
pub use symbols::DbnSymbols;

/// The views of all kinds of records.
pub mod view {
    pub use super::definition::{DefinitionV1, DefinitionV2, DefinitionV3};
    pub use super::record::{
        Bbo, Cbbo, Cmbp1, Error, ErrorV1, Imbalance, Mapping, MappingV1, Mbo, Mbp1, Mbp10, Ohlcv, Statistic,
        StatisticV1, Status, System, SystemV1, Trade, UnknownRecord,
    };
}
