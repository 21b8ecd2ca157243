//! Ticks as rows of tables, and the files that others read: Parquet, and the logs of kdb+.
//!
//! [`Rows`] takes ticks apart into the tables of [`Table`], each row into a [`Batch`] that a [`Sink`] gives. A batch becomes a row
//! group of a [`ParquetFile`] or a message of a [`KdbLog`]; which file, and when, is the sink's. Nothing of a tick
//! is left out in silence: what no column has is a row of [`Table::Fields`], and what a column cannot hold is an [`Error`].
//!
//! Memory is bounded by [`MOST_ROWS`] and [`MOST_TEXT`] for each batch, and [`MOST_ITEMS`] items whose quotes are carried on.
#![forbid(unsafe_code)]

mod batch;
mod best;
mod details;
mod error;
mod kdb_log;
mod message;
mod parquet_file;
mod row_kind;
mod rows;
mod sorted;
mod table;

pub use batch::{Batch, MOST_ROWS, MOST_TEXT, Numbers};
pub use best::MOST_ITEMS;
pub use details::{AGGRESSORS, IMBALANCES, VARIATIONS};
pub use error::Error;
pub use kdb_log::{KdbLog, schema, types};
pub use parquet_file::ParquetFile;
pub use row_kind::RowKind;
pub use rows::{Rows, Sink};
pub use sorted::SortBy;
pub use table::{Column, Kind, Table};
