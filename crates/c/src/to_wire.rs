//! Values from C as values of their fields' types.

#![allow(unsafe_code)]

use std::fmt;
use std::slice;

use tapeline_omm::dictionary::{EnumerationTable, FieldDefinition};
use tapeline_omm::rwf::{DataType, Hint, Value};
use tapeline_omm::{Dictionary, Real};

use crate::failure::{Failure, no_value, null};
use crate::tapeline_code::*;
use crate::tapeline_value;
use crate::tapeline_value_kind as kind;

/// Converts a value to the type of its field.
///
/// # Safety
/// A text or bytes in the value are there for `'a`.
pub(crate) unsafe fn convert<'a>(
    field: &FieldDefinition,
    value: &tapeline_value,
) -> Result<Value<'a>, Failure> {
    // SAFETY: the caller's promise.
    let given = unsafe { read(value) }?;
    let converted = match (field.data_type, given) {
        (_, Value::Blank) => Some(Value::Blank),
        (DataType::REAL, Value::Int(number)) => Some(Real::integer(number).into()),
        (DataType::REAL, Value::UInt(number)) => {
            i64::try_from(number).ok().map(|it| Real::integer(it).into())
        }
        (DataType::REAL, Value::Double(number)) => Real::nearest(number).map(Value::Real),
        (DataType::FLOAT, Value::Double(number)) => Some(Value::Float(number as f32)),
        (DataType::DOUBLE, Value::Int(number)) => Some(Value::Double(number as f64)),
        (DataType::UINT, Value::Int(number)) => u64::try_from(number).ok().map(Value::UInt),
        (DataType::INT, Value::UInt(number)) => i64::try_from(number).ok().map(Value::Int),
        (DataType::ENUM, Value::UInt(number)) => u16::try_from(number).ok().map(Value::Enum),
        (DataType::ENUM, Value::Int(number)) => u16::try_from(number).ok().map(Value::Enum),
        (DataType::ENUM, Value::Ascii(text)) => {
            let values =
                Dictionary::builtin().enumeration(field.fid).into_iter().flat_map(EnumerationTable::values);
            let mut named = values.filter(|value| value.display.trim_end().as_bytes() == text);
            named.next().map(|value| Value::Enum(value.number))
        }
        (DataType::RMTES_STRING, Value::Ascii(text)) => Some(Value::Ascii(text)),
        (DataType::UTF8_STRING, Value::Ascii(text)) => Some(Value::Utf8(text)),
        (_, Value::Buffer(bytes)) => Some(Value::Buffer(bytes)),
        (wanted, given) if given.data_type() == Some(wanted) => Some(given),
        _ => None,
    };
    converted.ok_or_else(|| cannot_have(field, &given))
}

#[cold]
fn cannot_have(field: &FieldDefinition, given: &dyn fmt::Display) -> Failure {
    let (name, data_type) = (&field.name, field.data_type);
    let hint = match data_type {
        DataType::ENUM => "give a number, or a display text of its enumeration",
        DataType::REAL | DataType::DOUBLE | DataType::FLOAT | DataType::INT | DataType::UINT => {
            "give a number in its range"
        }
        DataType::DATE | DataType::TIME | DataType::DATETIME => {
            "give TAPELINE_VALUE_DATE, _TIME or _DATETIME, as its type is"
        }
        _ => "give a text",
    };
    let text =
        format!("the field {name} is of type {data_type}, and cannot have the value {given}; hint: {hint}");
    Failure::new(TAPELINE_ERROR_FIELD, text)
}

/// # Safety
/// A text or bytes in the value are there for `'a`.
unsafe fn read<'a>(value: &tapeline_value) -> Result<Value<'a>, Failure> {
    let data = &value.data;
    let known = |of: kind| value.kind == of as u32;
    // SAFETY: the kind names the member that was written, and numbers have no invalid bytes; texts and bytes are there by
    // the caller's promise.
    unsafe {
        Ok(if known(kind::TAPELINE_VALUE_BLANK) {
            Value::Blank
        } else if known(kind::TAPELINE_VALUE_INT) {
            Value::Int(data.integer)
        } else if known(kind::TAPELINE_VALUE_UINT) || known(kind::TAPELINE_VALUE_ENUM) {
            Value::UInt(data.whole)
        } else if known(kind::TAPELINE_VALUE_DOUBLE) {
            Value::Double(data.number)
        } else if known(kind::TAPELINE_VALUE_REAL) {
            let hint = u8::try_from(data.real.hint).ok().map(Hint).filter(|hint| hint.is_known());
            let hint =
                hint.ok_or_else(|| no_value("hint of a REAL", data.real.hint, "0 to 30, or 33 to 35"))?;
            Value::Real(Real { mantissa: data.real.mantissa, hint })
        } else if known(kind::TAPELINE_VALUE_DATE) {
            Value::Date(data.time.date())
        } else if known(kind::TAPELINE_VALUE_TIME) {
            Value::Time(data.time.time())
        } else if known(kind::TAPELINE_VALUE_DATETIME) {
            Value::DateTime(data.time.both())
        } else if known(kind::TAPELINE_VALUE_TEXT) {
            Value::Ascii(bytes(data.text.data.cast(), data.text.len)?)
        } else if known(kind::TAPELINE_VALUE_BYTES) {
            Value::Buffer(bytes(data.bytes.data.cast(), data.bytes.len)?)
        } else {
            return Err(no_value("kind of a value", value.kind, "a TAPELINE_VALUE_ value"));
        })
    }
}

/// # Safety
/// `data` is NULL, or has `len` bytes for `'a`.
unsafe fn bytes<'a>(data: *const u8, len: usize) -> Result<&'a [u8], Failure> {
    match (data.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null("a text of a value")),
        _ if len > isize::MAX as usize => Err(null("a text of a value")),
        // SAFETY: not NULL, so the caller's promise.
        _ => Ok(unsafe { slice::from_raw_parts(data, len) }),
    }
}
