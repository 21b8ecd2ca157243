//! Values of fixed width: items of arrays and values of sets without a length of their own.

use super::number::{int_len, uint_len};
use super::{DataType, Date, DateTime, Time, Value, Writer};
use crate::Refused;

/// A blank TIME of seven bytes; its first bytes are the blanks of the shorter forms.
const TIME_7_BLANK: [u8; 7] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0xFF];

/// Writes `value`, or the blank of `data_type`, in exactly `width` bytes. Shorter values are padded with zero bytes,
/// which change neither a time nor, by convention, a text. A value that requires more bytes is too long; a blank that
/// the type does not have, or a value without a form of this width, is misplaced.
pub(super) fn write(
    writer: &mut Writer<'_>,
    value: &Value<'_>,
    data_type: DataType,
    width: usize,
    what: &'static str,
) -> Result<(), Refused> {
    let number = |writer: &mut Writer<'_>, wide: [u8; 8], needed: usize| match wide
        .len()
        .checked_sub(width)
        .and_then(|from| wide.get(from..))
    {
        Some(bytes) if needed <= width => Ok(writer.bytes(bytes)?),
        _ => Err(Refused::TooLong { what, limit: width }),
    };
    match *value {
        Value::Int(value) => number(writer, value.to_be_bytes(), int_len(value)),
        Value::UInt(value) => number(writer, value.to_be_bytes(), uint_len(value)),
        Value::Enum(value) => number(writer, u64::from(value).to_be_bytes(), uint_len(u64::from(value))),
        Value::Blank => blank(writer, data_type, width, what),
        _ => match (value.text(), value.short()) {
            (Some(text), _) => padded(writer, text, width, what),
            (None, Some((bytes, len))) => padded(writer, bytes.get(..len).unwrap_or_default(), width, what),
            (None, None) => Err(Refused::Misplaced(what)),
        },
    }
}

fn blank(
    writer: &mut Writer<'_>,
    data_type: DataType,
    width: usize,
    what: &'static str,
) -> Result<(), Refused> {
    match (data_type, width) {
        (DataType::DATE, 4) => writer.bytes(&Date::BLANK.encode())?,
        (DataType::TIME, 2 | 3 | 5 | 7) => writer.bytes(TIME_7_BLANK.get(..width).unwrap_or_default())?,
        (DataType::TIME, 8) => writer.bytes(&Time::BLANK.encode().0)?,
        (DataType::DATETIME, 12) => writer.bytes(&DateTime::BLANK.encode().0)?,
        (DataType::DATETIME, 6 | 7 | 9 | 11) => {
            let mut blank = [0; 11];
            blank[4..].copy_from_slice(&TIME_7_BLANK);
            writer.bytes(blank.get(..width).unwrap_or_default())?;
        }
        (data_type, _) if data_type >= DataType::BUFFER => padded(writer, &[], width, what)?,
        _ => return Err(Refused::Misplaced(what)),
    }
    Ok(())
}

/// Writes bytes, padded with zeros up to `width`.
pub(super) fn padded(
    writer: &mut Writer<'_>,
    bytes: &[u8],
    width: usize,
    what: &'static str,
) -> Result<(), Refused> {
    if bytes.len() > width {
        return Err(Refused::TooLong { what, limit: width });
    }
    writer.whole(|w| {
        w.bytes(bytes)?;
        (bytes.len()..width).try_for_each(|_| Ok(w.u8(0)?))
    })
}
