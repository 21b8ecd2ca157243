//! Ticks as rows of tables, and files that other programs read: Parquet, and kdb+ logs.
//!
//! [`Rows`] splits ticks into rows of the tables of [`Table`], each row into a [`Batch`] that a [`Sink`] provides. A
//! batch becomes a row group of a [`ParquetFile`] or a message of a [`KdbLog`]; the sink decides which file, and when.
//! No part of a tick is dropped silently: a field without a column is a row of [`Table::Fields`], and a value that a
//! column cannot represent is an [`Error`].
//!
//! Memory is bounded by [`MOST_ROWS`] and [`MOST_TEXT`] for each batch, and by [`MOST_ITEMS`] items whose quotes are
//! carried on.
//!
//! ```
//! use tapeline_export::{Batch, Error, Numbers, ParquetFile, Rows, Sink, Table};
//! use tapeline_plant::tick::Tick;
//!
//! /// Keeps trades alone, as many as one batch has room for.
//! struct Trades(Batch);
//! impl Sink for Trades {
//!     fn wants(&self, table: Table) -> bool {
//!         table == Table::Trades
//!     }
//!
//!     fn batch(&mut self, _: Table) -> Result<&mut Batch, Error> {
//!         Ok(&mut self.0)
//!     }
//! }
//!
//! /// The trades among some ticks, as a Parquet file.
//! fn trades(ticks: &[Tick<'_>]) -> Result<Vec<u8>, Error> {
//!     let mut trades = Trades(Batch::new(Table::Trades, Numbers::Exact));
//!     let mut rows = Rows::default();
//!     for tick in ticks {
//!         rows.add(tick, &mut trades)?;
//!     }
//!     let mut file = ParquetFile::begin(Vec::new(), Table::Trades, Numbers::Exact)?;
//!     file.write(&mut trades.0)?;
//!     file.finish()
//! }
//!
//! assert!(trades(&[])?.starts_with(b"PAR1"));
//! # Ok::<(), Error>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
mod best;
mod details;
mod error;
mod kdb_log;
mod message;
mod parquet_file;
mod rows;
mod sorted;
mod table;

pub use batch::{Batch, MOST_ROWS, MOST_TEXT, Numbers};
pub use best::MOST_ITEMS;
pub use details::{AGGRESSORS, IMBALANCES, VARIATIONS};
pub use error::Error;
pub use kdb_log::{KdbLog, schema, types};
pub use parquet_file::ParquetFile;
pub use rows::{Rows, Sink};
pub use sorted::SortBy;
pub use table::{Column, Kind, Table};
