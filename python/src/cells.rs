//! Values of Python and of Arrow tables as values of fields.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use tapeline_omm::rwf::{self, Value};
use tapeline_omm::{Dictionary, Fid, Real};

use crate::columns::unknown;
use crate::error::Error;

/// A value before its field's type is known.
#[derive(Clone, Copy, Debug)]
enum Cell<'a> {
    /// No value: the field becomes blank.
    Blank,
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(&'a str),
}

/// As a person would write it.
impl fmt::Display for Cell<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blank => f.write_str("None"),
            Self::Int(number) => number.fmt(f),
            Self::UInt(number) => number.fmt(f),
            Self::Double(number) => number.fmt(f),
            Self::Text(text) => write!(f, "{text:?}"),
        }
    }
}

/// A field, by its name in the dictionary.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    fid: Fid,
    data_type: rwf::DataType,
}

impl Column {
    /// # Errors
    /// There is no field of this name.
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        let dictionary = Dictionary::builtin();
        let field = dictionary.field_named(name).ok_or_else(|| unknown(name, dictionary))?;
        Ok(Self { name: name.to_owned(), fid: field.fid, data_type: field.data_type })
    }

    /// Converts a value to the field's type.
    fn value<'a>(&self, cell: Cell<'a>) -> Result<(Fid, Value<'a>), Error> {
        let value = match (self.data_type, cell) {
            (_, Cell::Blank) => Some(Value::Blank),
            (rwf::DataType::REAL, Cell::Int(number)) => Some(Value::Real(Real::integer(number))),
            (rwf::DataType::REAL, Cell::UInt(number)) => {
                i64::try_from(number).ok().map(|it| Value::Real(Real::integer(it)))
            }
            (rwf::DataType::REAL, Cell::Double(number)) => Real::nearest(number).map(Value::Real),
            (rwf::DataType::DOUBLE, Cell::Double(number)) => Some(Value::Double(number)),
            (rwf::DataType::DOUBLE, Cell::Int(number)) => Some(Value::Double(number as f64)),
            (rwf::DataType::INT, Cell::Int(number)) => Some(Value::Int(number)),
            (rwf::DataType::UINT, Cell::Int(number)) => u64::try_from(number).ok().map(Value::UInt),
            (rwf::DataType::UINT, Cell::UInt(number)) => Some(Value::UInt(number)),
            (rwf::DataType::ENUM, Cell::Int(number)) => u16::try_from(number).ok().map(Value::Enum),
            (rwf::DataType::ENUM, Cell::Text(text)) => {
                let table = Dictionary::builtin().enumeration(self.fid);
                let values = table.into_iter().flat_map(|table| table.values());
                let mut named = values.filter(|value| value.display.trim_end() == text);
                named.next().map(|value| Value::Enum(value.number))
            }
            (rwf::DataType::ASCII_STRING | rwf::DataType::RMTES_STRING, Cell::Text(text)) => {
                Some(Value::Ascii(text.as_bytes()))
            }
            (rwf::DataType::UTF8_STRING, Cell::Text(text)) => Some(Value::Utf8(text.as_bytes())),
            _ => None,
        };
        value.map(|value| (self.fid, value)).ok_or_else(|| {
            let text = format!(
                "the field {} is of type {}, and cannot have the value {cell}",
                self.name, self.data_type
            );
            Error::argument(
                text,
                "numbers for REAL, INT and UINT, text for strings, a display text or a number for ENUM",
            )
        })
    }
}

/// The fields of a dict such as `{"BID": 39.91, "BIDSIZE": 9}`; `None` is blank. Calls `then` with them.
///
/// # Errors
/// A name that is no field, a value that does not fit it, or the error of `then`.
pub(crate) fn of_dict<T>(
    fields: &Bound<'_, PyDict>,
    then: impl FnOnce(&[(Fid, Value<'_>)]) -> Result<T, Error>,
) -> PyResult<T> {
    let mut texts = Vec::with_capacity(fields.len());
    for (name, value) in fields.iter() {
        let text = match value.cast::<PyString>() {
            Ok(text) => Some(text.to_str()?.to_owned()),
            Err(_) => None,
        };
        texts.push((Column::named(name.cast::<PyString>()?.to_str()?)?, text, value));
    }
    let mut values = Vec::with_capacity(texts.len());
    for (column, text, value) in &texts {
        let cell = match text {
            Some(text) => Cell::Text(text),
            None if value.is_none() => Cell::Blank,
            None if value.is_instance_of::<PyBool>() => Cell::Int(i64::from(value.extract::<bool>()?)),
            None if value.is_instance_of::<PyInt>() => match value.extract::<i64>() {
                Ok(number) => Cell::Int(number),
                Err(_) => Cell::UInt(value.extract()?),
            },
            None if value.is_instance_of::<PyFloat>() => Cell::Double(value.extract()?),
            // numpy's and decimal's numbers: whole ones first.
            None => match value.extract::<i64>() {
                Ok(number) => Cell::Int(number),
                Err(_) => Cell::Double(value.extract().map_err(|_| {
                    let what = value.repr().map_or_else(|_| "a value".to_owned(), |repr| repr.to_string());
                    let hint = "a number, a text, or None for blank";
                    Error::argument(format!("the field {} cannot have the value {what}", column.name), hint)
                })?),
            },
        };
        values.push(column.value(cell)?);
    }
    then(&values).map_err(Into::into)
}

/// The columns of a table to publish: the item's names, and fields.
pub(crate) struct Rows {
    item: usize,
    columns: Vec<(usize, Column)>,
}

impl Rows {
    /// # Errors
    /// There is no column `item`, or a column is no field.
    pub(crate) fn new(stream: &RecordBatchStreamReader) -> Result<Self, Error> {
        use arrow_array::RecordBatchReader;
        let schema = stream.schema();
        let Ok(item) = schema.index_of("item") else {
            let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let text = format!("the table has no column \"item\", only {names:?}");
            return Err(Error::argument(
                text,
                "item has the names; the other columns are named as fields, such as BID",
            ));
        };
        let fields = schema.fields().iter().enumerate().filter(|(at, _)| *at != item);
        let columns =
            fields.map(|(at, field)| Ok((at, Column::named(field.name())?))).collect::<Result<_, Error>>()?;
        Ok(Self { item, columns })
    }

    /// The first column that has no type, because all its values are null.
    pub(crate) fn untyped(stream: &RecordBatchStreamReader) -> Option<String> {
        use arrow_array::RecordBatchReader;
        let schema = stream.schema();
        let untyped = schema.fields().iter().find(|field| *field.data_type() == DataType::Null);
        untyped.map(|field| field.name().clone())
    }

    /// Calls `publish` with each row. A null is not published: the field keeps its value.
    ///
    /// # Errors
    /// A value that does not fit its field, or the error of `publish`.
    pub(crate) fn each(
        &self,
        batch: &RecordBatch,
        mut publish: impl FnMut(&str, &[(Fid, Value<'_>)]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for row in 0..batch.num_rows() {
            let Some(Cell::Text(item)) = cell(batch.column(self.item), row)? else {
                let hint = "each row names its item";
                return Err(Error::argument(format!("row {row} has no text in the column \"item\""), hint));
            };
            let mut values = Vec::with_capacity(self.columns.len());
            for (at, column) in &self.columns {
                if let Some(cell) = cell(batch.column(*at), row)? {
                    values.push(column.value(cell).map_err(|error| error.of_row(row, item))?);
                }
            }
            publish(item, &values)?;
        }
        Ok(())
    }
}

/// The value of a cell; `None` for null and for a double that is not a number.
fn cell(array: &dyn Array, row: usize) -> Result<Option<Cell<'_>>, Error> {
    if array.is_null(row) {
        return Ok(None);
    }
    macro_rules! whole {
        ($type:ty) => {
            Cell::Int(i64::from(array.as_primitive::<$type>().value(row)))
        };
    }
    Ok(Some(match array.data_type() {
        // All values are null, and no list says so.
        DataType::Null => return Ok(None),
        DataType::Float64 => Cell::Double(array.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => Cell::Double(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::UInt8 => whole!(UInt8Type),
        DataType::UInt16 => whole!(UInt16Type),
        DataType::UInt32 => whole!(UInt32Type),
        DataType::UInt64 => Cell::UInt(array.as_primitive::<UInt64Type>().value(row)),
        DataType::Boolean => Cell::Int(i64::from(array.as_boolean().value(row))),
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            // The key as a number: one row of the keys alone.
            let key = match cell(dictionary.keys(), row)? {
                Some(Cell::Int(key)) => usize::try_from(key).ok(),
                Some(Cell::UInt(key)) => usize::try_from(key).ok(),
                _ => None,
            };
            let values = dictionary.values();
            return match key.filter(|key| *key < values.len()) {
                Some(key) => cell(values.as_ref(), key),
                None => Ok(None),
            };
        }
        other => {
            let hint = "cast it to Float64, Int64 or text";
            return Err(Error::argument(format!("a column of type {other} cannot be published"), hint));
        }
    })
    .filter(|cell| !matches!(cell, Cell::Double(number) if number.is_nan())))
}
