//! A kdb+ column's cell, or another q value, as a field's value.

use tapeline_kdb::{Order, Type, UNIX_2000_NS, View};
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Date, DateTime, Fid, FieldListEncoder, Full, Real, Time};

const NS_PER_MS: i64 = 1_000_000;
const NS_PER_S: i64 = 1_000_000_000;
const NS_PER_DAY: i64 = 86_400 * NS_PER_S;
/// Below this limit every whole number is exactly one float.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// The RMTES escape that switches to UTF-8.
const UTF8: &[u8] = b"\x1B%0";

/// The content of a q value, independent of its container.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// A whole number, or a time in the units of its type.
    Whole(i64),
    /// A float.
    Float(f64),
    /// A symbol's text, or a string's.
    Text(&'a [u8]),
}

/// Adds a field with the content of a cell whose type is one of the [types](super::cells::kinds_for) for the
/// field: blank for a null, and for a value that the field cannot express. A float becomes the number with
/// the fewest decimals that is equal to that float, with at most 14 decimals. Allocates for text beyond ASCII
/// only.
///
/// # Errors
/// The buffer is full.
pub fn write(
    cell: &[u8],
    kind: Type,
    fid: Fid,
    is: DataType,
    fields: &mut FieldListEncoder<'_>,
) -> Result<(), Full> {
    let put = said(cell, kind).and_then(|said| put(said, kind, fid, is, fields));
    put.unwrap_or_else(|| fields.blank(fid))
}

/// Adds a field with the content of a q value of this type (a vector's number); `None` if the field cannot
/// express it, and for empty text.
pub fn put(
    said: Said<'_>,
    kind: Type,
    fid: Fid,
    is: DataType,
    fields: &mut FieldListEncoder<'_>,
) -> Option<Result<(), Full>> {
    Some(match (is, said) {
        (DataType::TIME, Said::Whole(count)) => fields.time(fid, Time::from_ns_of_day(of_day(count, kind)?)),
        (DataType::DATE, Said::Whole(days)) if kind == Type::DATE => {
            fields.date(fid, Date::from_unix_days(days + UNIX_2000_NS / NS_PER_DAY)?)
        }
        (DataType::DATETIME, Said::Whole(ns)) if kind == Type::TIMESTAMP => {
            let ns = u64::try_from(ns.checked_add(UNIX_2000_NS)?).ok()?;
            fields.date_time(fid, DateTime::from_unix_ns(ns))
        }
        (_, Said::Text(b"")) => return None,
        (DataType::RMTES_STRING, Said::Text(text)) if text.is_ascii() => fields.rmtes(fid, text),
        (DataType::RMTES_STRING, Said::Text(text)) => fields.rmtes(fid, &[UTF8, text].concat()),
        (DataType::ASCII_STRING | DataType::UTF8_STRING | DataType::BUFFER, Said::Text(text)) => {
            fields.raw(fid, text)
        }
        _ => return number(said, kind, fid, is, fields),
    })
}

/// The content of a cell; `None` for a null.
fn said(cell: &[u8], kind: Type) -> Option<Said<'_>> {
    Some(match kind {
        Type::SYMBOL | Type::LIST => Said::Text(text(cell, kind)),
        Type::FLOAT => Said::Float(f64::from_le_bytes(cell.try_into().ok()?)),
        Type::REAL => Said::Float(f64::from(f32::from_le_bytes(cell.try_into().ok()?))),
        _ => Said::Whole(whole(cell)?),
    })
}

/// Adds a numeric field; `None` if the field cannot express the number.
fn number(
    said: Said<'_>,
    kind: Type,
    fid: Fid,
    is: DataType,
    fields: &mut FieldListEncoder<'_>,
) -> Option<Result<(), Full>> {
    let is_whole = matches!(kind, Type::BOOLEAN | Type::BYTE | Type::SHORT | Type::INT | Type::LONG);
    let float = match said {
        Said::Float(float) if !float.is_nan() => float,
        Said::Whole(number) if is_whole => number as f64,
        _ => return None,
    };
    let number = || match said {
        Said::Whole(number) => Some(number),
        // Rounded to the nearest integer, if the float is in the exact range.
        _ => (float.abs() < EXACT).then(|| float.round() as i64),
    };
    Some(match (is, said) {
        (DataType::FLOAT, _) => fields.float(fid, float as f32),
        (DataType::DOUBLE, _) => fields.double(fid, float),
        (DataType::REAL, Said::Whole(number)) => fields.real(fid, Real::integer(number)),
        (DataType::REAL, _) => fields.real(fid, decimal(float, kind == Type::REAL)?),
        (DataType::UINT, _) => fields.uint(fid, u64::try_from(number()?).ok()?),
        (DataType::ENUM, _) => fields.enumeration(fid, u16::try_from(number()?).ok()?),
        (DataType::INT, _) => fields.int(fid, number()?),
        _ => return None,
    })
}

/// Returns the number with the fewest decimals that is equal to this float, or with the maximum number of decimals; `None`
/// beyond 2^63. With `is_real` the float was a 32-bit one, and the result must convert back to the same one.
pub fn decimal(number: f64, is_real: bool) -> Option<Real> {
    if number.is_infinite() {
        return Some(if number > 0.0 { Real::INFINITY } else { Real::MINUS_INFINITY });
    }
    if is_real { Real::nearest_f32(number as f32) } else { Real::nearest(number) }
}

/// A whole number of any width; `None` for a null.
fn whole(cell: &[u8]) -> Option<i64> {
    Some(match *cell {
        [a, b] => i64::from(Some(i16::from_le_bytes([a, b])).filter(|number| *number != i16::MIN)?),
        [a, b, c, d] => {
            i64::from(Some(i32::from_le_bytes([a, b, c, d])).filter(|number| *number != i32::MIN)?)
        }
        _ => Some(i64::from_le_bytes(cell.try_into().ok()?)).filter(|number| *number != i64::MIN)?,
    })
}

/// ns since midnight; for a timestamp, since the midnight of its day. `None` if the value is not a time of
/// day.
pub fn of_day(count: i64, kind: Type) -> Option<u64> {
    let ns = match kind {
        Type::TIMESTAMP => count.rem_euclid(NS_PER_DAY),
        Type::TIMESPAN => count,
        Type::TIME => count.checked_mul(NS_PER_MS)?,
        Type::SECOND => count.checked_mul(NS_PER_S)?,
        Type::MINUTE => count.checked_mul(60 * NS_PER_S)?,
        _ => return None,
    };
    u64::try_from(ns).ok().filter(|_| ns < NS_PER_DAY)
}

/// A symbol's text, or a string's; empty for other cells of a list.
fn text(cell: &[u8], kind: Type) -> &[u8] {
    if kind == Type::SYMBOL {
        return cell.strip_suffix(&[0]).unwrap_or(cell);
    }
    match View::parse(cell, Order::Little) {
        Ok(View::Vector(vector)) => vector.text().unwrap_or_default(),
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::FieldList;

    use super::*;
    use crate::kdb::cells;

    /// The cell after a round trip through a field.
    fn back(cell: &[u8], kind: Type, is: DataType) -> Vec<u8> {
        let mut room = [0; 64];
        let mut fields = FieldListEncoder::new(&mut room).unwrap();
        write(cell, kind, Fid(1), is, &mut fields).unwrap();
        let len = fields.finish();
        let field = FieldList::parse(&room[..len]).unwrap().find(Fid(1)).unwrap().unwrap();
        let mut out = Vec::new();
        cells::value(&field, is, kind, &mut out);
        out
    }

    #[test]
    fn what_a_field_can_say_comes_back() {
        let long = |number: i64| number.to_le_bytes().to_vec();
        let int = |number: i32| number.to_le_bytes().to_vec();
        let float = |number: f64| number.to_le_bytes().to_vec();
        for (cell, kind, is) in [
            (float(84.28), Type::FLOAT, DataType::REAL),
            (float(-0.1), Type::FLOAT, DataType::REAL),
            (float(1e15), Type::FLOAT, DataType::REAL),
            (float(1.0 / 3.0), Type::FLOAT, DataType::DOUBLE),
            (float(f64::INFINITY), Type::FLOAT, DataType::REAL),
            (84.28_f32.to_le_bytes().to_vec(), Type::REAL, DataType::REAL),
            (long(i64::MAX), Type::LONG, DataType::REAL),
            (long(-7), Type::LONG, DataType::INT),
            (int(7), Type::INT, DataType::ENUM),
            (7_i16.to_le_bytes().to_vec(), Type::SHORT, DataType::UINT),
            (long(43_200_000_000_001), Type::TIMESPAN, DataType::TIME),
            (int(720), Type::MINUTE, DataType::TIME),
            (int(9_822), Type::DATE, DataType::DATE),
            (long(848_664_000_123_456_789), Type::TIMESTAMP, DataType::DATETIME),
            (b"abc\0".to_vec(), Type::SYMBOL, DataType::RMTES_STRING),
            ("é\0".as_bytes().to_vec(), Type::SYMBOL, DataType::RMTES_STRING),
            (b"\x0A\0\x02\0\0\0ab".to_vec(), Type::LIST, DataType::ASCII_STRING),
        ] {
            assert_eq!(back(&cell, kind, is), cell, "{} as {is}", kind.name());
        }
        // Nulls become blank fields, and nulls again.
        for (kind, is) in [
            (Type::FLOAT, DataType::REAL),
            (Type::LONG, DataType::REAL),
            (Type::INT, DataType::UINT),
            (Type::SHORT, DataType::INT),
            (Type::TIMESPAN, DataType::TIME),
            (Type::DATE, DataType::DATE),
            (Type::TIMESTAMP, DataType::DATETIME),
            (Type::SYMBOL, DataType::RMTES_STRING),
        ] {
            let mut null = Vec::new();
            cells::null(kind, &mut null);
            assert_eq!(back(&null, kind, is), null, "{} as {is}", kind.name());
        }
    }

    /// Pseudo-random numbers, the same ones each time (Knuth's MMIX).
    fn numbers() -> impl Iterator<Item = u64> {
        let next = |last: &u64| {
            Some(last.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        };
        std::iter::successors(Some(1), next).take(10_000)
    }

    /// Prices are decimal numbers: they survive the round trip through floats.
    #[test]
    fn prices_come_back() {
        for number in numbers() {
            let places = (number % 9) as u8;
            let price = Real::decimal((number >> 24) as i64 - (1 << 39), places).to_f64();
            assert_eq!(decimal(price, false).unwrap().to_f64(), price);
        }
    }

    /// A list's cell may contain anything, and a float any bits: the result is a field, and no panic.
    #[test]
    fn any_cell_is_a_field() {
        for number in numbers() {
            let bytes = number.to_le_bytes();
            for is in [DataType::RMTES_STRING, DataType::UTF8_STRING] {
                back(&bytes[..number as usize % 8], Type::LIST, is);
            }
            for is in [DataType::REAL, DataType::INT, DataType::UINT, DataType::ENUM, DataType::DOUBLE] {
                back(&bytes, Type::FLOAT, is);
            }
        }
    }
}
