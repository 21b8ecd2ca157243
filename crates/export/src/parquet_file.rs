//! A Parquet file of one table: a row group for each batch.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::metadata::SortingColumn;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use crate::Error;
use crate::batch::{Batch, Numbers, PRICE_PLACES, Values};
use crate::sorted::SortBy;
use crate::table::{Column, Kind, Table};

/// Digits of a price: the most that fit in 64 bits.
const PRICE_DIGITS: i32 = 18;

/// A Parquet file of one table, being written.
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    rows: u64,
}

impl<W: Write + Send> std::fmt::Debug for ParquetFile<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParquetFile").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file with the table's columns, each with its logical type, all optional.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin(out: W, table: Table, numbers: Numbers) -> Result<Self, Error> {
        Self::begin_sorted(out, table, numbers, None)
    }

    /// Begins a file of rows sorted in this order, which its row groups record.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_sorted(
        out: W,
        table: Table,
        numbers: Numbers,
        sorted: Option<SortBy>,
    ) -> Result<Self, Error> {
        let column =
            |at: usize| SortingColumn { column_idx: at as i32, descending: false, nulls_first: true };
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("tapeline ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_sorting_columns(sorted.map(|by| by.columns(table).map(column).into()))
            .set_compression(Compression::SNAPPY);
        let mut fields = Vec::new();
        for column in table.columns() {
            fields.push(Arc::new(field(column, numbers)?));
            // Times and sequences grow in small steps: differences need few bits; a dictionary would only add a copy.
            if column.kind == Kind::Time || column.name == "sequence" {
                let path = ColumnPath::from(column.name);
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let schema = Type::group_type_builder(table.name()).with_fields(fields).build()?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Self { writer, rows: 0 })
    }

    /// Writes a batch's rows as a row group, and removes them from the batch.
    ///
    /// # Errors
    /// The rows cannot be written; the file is then unusable.
    pub fn write(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let mut group = self.writer.next_row_group()?;
        for cells in batch.columns() {
            let Some(mut column) = group.next_column()? else { break };
            let levels = Some(&cells.levels[..]);
            match &cells.values {
                Values::Whole(values) => column.typed::<Int64Type>().write_batch(values, levels, None)?,
                Values::Double(values) => column.typed::<DoubleType>().write_batch(values, levels, None)?,
                Values::Flag(values) => column.typed::<BoolType>().write_batch(values, levels, None)?,
                Values::Text { bytes, ends } => {
                    let bytes = Bytes::copy_from_slice(bytes);
                    let begins = std::iter::once(0).chain(ends.iter().copied());
                    let texts = begins.zip(ends).map(|(from, to)| ByteArray::from(bytes.slice(from..*to)));
                    column.typed::<ByteArrayType>().write_batch(&texts.collect::<Vec<_>>(), levels, None)?
                }
            };
            column.close()?;
        }
        group.close()?;
        self.rows += batch.rows() as u64;
        batch.clear();
        Ok(())
    }

    /// Returns the number of rows written.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the footer, without which the file cannot be read.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(self) -> Result<W, Error> {
        Ok(self.writer.into_inner()?)
    }
}

/// Returns the schema type of a column.
fn field(column: &Column, numbers: Numbers) -> Result<Type, Error> {
    let (physical, logical) = match (column.kind, Values::of(column.kind, numbers)) {
        (Kind::Price, Values::Whole(_)) => {
            // Nine places: the cast cannot wrap.
            let decimal = LogicalType::decimal(PRICE_PLACES as i32, PRICE_DIGITS);
            (Physical::INT64, Some(decimal))
        }
        (Kind::Time, _) => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::NANOS))),
        (_, Values::Whole(_)) => (Physical::INT64, None),
        (_, Values::Double(_)) => (Physical::DOUBLE, None),
        (_, Values::Flag(_)) => (Physical::BOOLEAN, None),
        (Kind::Bytes, _) => (Physical::BYTE_ARRAY, None),
        (_, Values::Text { .. }) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let mut builder = Type::primitive_type_builder(column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical.clone());
    if let Some(LogicalType::Decimal(decimal)) = logical {
        builder = builder.with_precision(decimal.precision).with_scale(decimal.scale);
    }
    Ok(builder.build()?)
}
