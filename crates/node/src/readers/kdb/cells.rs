//! A field's value as the cell of a kdb+ column.

use jiff::civil;
use tapeline_kdb::Type;
use tapeline_omm::rwf::{DataType, Hint};
use tapeline_omm::{Date, Field};

const NS_PER_MS: u64 = 1_000_000;
const NS_PER_S: u64 = 1_000_000_000;
const NS_PER_DAY: i64 = 86_400_000_000_000;
/// The escape that ends ASCII in RMTES.
const ESCAPE: u8 = 0x1B;

/// The column types for a field of this type; none if no column can store it.
pub const fn kinds_for(field: DataType) -> &'static [Type] {
    match field {
        DataType::REAL
        | DataType::FLOAT
        | DataType::DOUBLE
        | DataType::INT
        | DataType::UINT
        | DataType::ENUM => &[Type::FLOAT, Type::REAL, Type::LONG, Type::INT, Type::SHORT],
        DataType::TIME => &[Type::TIMESPAN, Type::TIME, Type::SECOND, Type::MINUTE],
        DataType::DATE => &[Type::DATE],
        DataType::DATETIME => &[Type::TIMESTAMP],
        DataType::ASCII_STRING | DataType::UTF8_STRING | DataType::RMTES_STRING => {
            &[Type::SYMBOL, Type::LIST]
        }
        _ => &[],
    }
}

/// Appends q's null of this type, or an empty string for a list.
pub fn null(kind: Type, out: &mut Vec<u8>) {
    match kind {
        Type::SHORT => out.extend_from_slice(&i16::MIN.to_le_bytes()),
        Type::REAL => out.extend_from_slice(&f32::NAN.to_le_bytes()),
        Type::FLOAT | Type::DATETIME => out.extend_from_slice(&f64::NAN.to_le_bytes()),
        Type::LONG | Type::TIMESTAMP | Type::TIMESPAN => out.extend_from_slice(&i64::MIN.to_le_bytes()),
        Type::CHAR => out.push(b' '),
        Type::SYMBOL => out.push(0),
        Type::LIST => string(&[], out),
        // These types have no null.
        Type::BOOLEAN | Type::BYTE | Type::GUID => out.resize(out.len() + kind.width(), 0),
        _ => out.extend_from_slice(&i32::MIN.to_le_bytes()),
    }
}

/// Appends a field's value as a cell of one of its [types](kinds_for); null if the field is blank, cannot be
/// decoded, or exceeds the type's range. Allocates for text in old character sets only.
pub fn value(field: &Field<'_>, is: DataType, kind: Type, out: &mut Vec<u8>) {
    let before = out.len();
    let is_written = match is {
        DataType::TIME => field
            .time()
            .ok()
            .flatten()
            .and_then(tapeline_omm::Time::ns_of_day)
            .map(|ns| time_of_day(ns, kind, out)),
        DataType::DATE => {
            let days = field.date().ok().flatten().and_then(days_since_2000);
            days.map(|days| out.extend_from_slice(&days.to_le_bytes()))
        }
        DataType::DATETIME => {
            let found = field.date_time().ok().flatten();
            let ns = found.and_then(|at| {
                let day = i64::from(days_since_2000(at.date)?).checked_mul(NS_PER_DAY)?;
                day.checked_add(at.time.ns_of_day()? as i64)
            });
            ns.map(|ns| out.extend_from_slice(&ns.to_le_bytes()))
        }
        DataType::ASCII_STRING | DataType::UTF8_STRING | DataType::RMTES_STRING => {
            (!field.is_blank()).then(|| text(field, kind, out))
        }
        _ => Number::of(field, is).and_then(|number| number.write(kind, out)),
    };
    if is_written.is_none() {
        out.truncate(before);
        null(kind, out);
    }
}

/// Appends a time of day for a column of times.
pub fn time_of_day(ns: u64, kind: Type, out: &mut Vec<u8>) {
    // A day has fewer than 2^31 of each smaller unit.
    let whole = |unit: u64| ((ns / unit) as i32).to_le_bytes();
    match kind {
        Type::TIME => out.extend_from_slice(&whole(NS_PER_MS)),
        Type::SECOND => out.extend_from_slice(&whole(NS_PER_S)),
        Type::MINUTE => out.extend_from_slice(&whole(60 * NS_PER_S)),
        _ => out.extend_from_slice(&ns.to_le_bytes()),
    }
}

fn days_since_2000(date: Date) -> Option<i32> {
    let (year, month, day) = (i16::try_from(date.year).ok()?, date.month as i8, date.day as i8);
    let date = civil::Date::new(year, month, day).ok()?;
    date.since(civil::date(2000, 1, 1)).ok().map(|span| span.get_days())
}

fn text(field: &Field<'_>, kind: Type, out: &mut Vec<u8>) {
    let bytes = field.rmtes().0;
    let converted;
    let bytes = if bytes.contains(&ESCAPE) || !bytes.is_ascii() {
        converted = field.rmtes().to_text();
        converted.as_bytes()
    } else {
        bytes
    };
    match kind {
        Type::LIST => string(bytes, out),
        _ => {
            // A zero byte ends a symbol.
            out.extend(bytes.iter().copied().take_while(|byte| *byte != 0));
            out.push(0);
        }
    }
}

/// Appends a string as a value in a list.
fn string(bytes: &[u8], out: &mut Vec<u8>) {
    // Fields have at most 64 KiB.
    let count = (bytes.len() as u32).to_le_bytes();
    out.extend_from_slice(&[Type::CHAR.0.cast_unsigned(), 0]);
    out.extend_from_slice(&count);
    out.extend_from_slice(bytes);
}

/// The content of a numeric field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i64),
    Broken(f64),
}

impl Number {
    fn of(field: &Field<'_>, is: DataType) -> Option<Self> {
        match is {
            DataType::INT => field.int().ok()?.map(Self::Whole),
            DataType::UINT => field.uint().ok()?.map(|number| match i64::try_from(number) {
                Ok(number) => Self::Whole(number),
                Err(_) => Self::Broken(number as f64),
            }),
            DataType::ENUM => field.enumeration().ok()?.map(|number| Self::Whole(number.into())),
            DataType::FLOAT => field.float().ok()?.map(|number| Self::Broken(number.into())),
            DataType::DOUBLE => field.double().ok()?.map(Self::Broken),
            _ => field.real().ok()?.map(|real| match real.hint {
                Hint::ONE => Self::Whole(real.mantissa),
                _ => Self::Broken(real.to_f64()),
            }),
        }
    }

    /// `None` if the number exceeds the type's range.
    fn write(self, kind: Type, out: &mut Vec<u8>) -> Option<()> {
        match kind {
            Type::FLOAT => out.extend_from_slice(&self.broken().to_le_bytes()),
            Type::REAL => out.extend_from_slice(&(self.broken() as f32).to_le_bytes()),
            Type::LONG => out.extend_from_slice(&self.whole()?.to_le_bytes()),
            Type::INT => out.extend_from_slice(&i32::try_from(self.whole()?).ok()?.to_le_bytes()),
            _ => out.extend_from_slice(&i16::try_from(self.whole()?).ok()?.to_le_bytes()),
        }
        Some(())
    }

    const fn broken(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Broken(number) => number,
        }
    }

    /// Rounded to the nearest integer.
    fn whole(self) -> Option<i64> {
        match self {
            Self::Whole(number) => Some(number),
            // Beyond this range, and for NaN, there is no whole number.
            Self::Broken(number) if number.abs() < 9.2e18 => Some(number.round() as i64),
            Self::Broken(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::{DateTime, Fid, FieldList, FieldListEncoder, Full, Real, Time};

    use super::*;

    /// The cell of a field with this content.
    fn cell(
        is: DataType,
        kind: Type,
        write: impl FnOnce(&mut FieldListEncoder<'_>) -> Result<(), Full>,
    ) -> Vec<u8> {
        let mut room = [0; 64];
        let mut fields = FieldListEncoder::new(&mut room).unwrap();
        write(&mut fields).unwrap();
        let len = fields.finish();
        let field = FieldList::parse(&room[..len]).unwrap().find(Fid(1)).unwrap().unwrap();
        let mut out = Vec::new();
        value(&field, is, kind, &mut out);
        out
    }

    #[test]
    fn numbers_are_those_of_the_field_or_null() {
        let price = |kind| cell(DataType::REAL, kind, |fields| fields.real(Fid(1), Real::decimal(8_428, 2)));
        assert_eq!(price(Type::FLOAT), 84.28_f64.to_le_bytes());
        assert_eq!(price(Type::REAL), 84.28_f32.to_le_bytes());
        assert_eq!(price(Type::LONG), 84_i64.to_le_bytes());
        let large = |kind| cell(DataType::REAL, kind, |fields| fields.real(Fid(1), Real::integer(1 << 40)));
        assert_eq!(large(Type::LONG), (1_i64 << 40).to_le_bytes());
        assert_eq!(large(Type::INT), i32::MIN.to_le_bytes(), "more than an int holds");
        assert_eq!(large(Type::SHORT), i16::MIN.to_le_bytes());
        for (kind, expected) in [(Type::LONG, i64::MIN.to_le_bytes()), (Type::FLOAT, f64::NAN.to_le_bytes())]
        {
            assert_eq!(cell(DataType::REAL, kind, |fields| fields.blank(Fid(1))), expected);
            assert_eq!(cell(DataType::REAL, kind, |fields| fields.real(Fid(1), Real::NAN)), expected);
        }
        let status = cell(DataType::ENUM, Type::INT, |fields| fields.enumeration(Fid(1), 7));
        assert_eq!(status, 7_i32.to_le_bytes());
    }

    #[test]
    fn times_dates_and_text_are_q_s() {
        let noon = Time::from_ns_of_day(43_200_000_000_001);
        let time = |kind| cell(DataType::TIME, kind, |fields| fields.time(Fid(1), noon));
        assert_eq!(time(Type::TIMESPAN), 43_200_000_000_001_i64.to_le_bytes());
        assert_eq!(time(Type::TIME), 43_200_000_i32.to_le_bytes());
        assert_eq!(time(Type::MINUTE), 720_i32.to_le_bytes());
        let date = Date { day: 22, month: 11, year: 2026 };
        let date = cell(DataType::DATE, Type::DATE, |fields| fields.date(Fid(1), date));
        assert_eq!(date, 9_822_i32.to_le_bytes());
        for year in [1, 1_700, 2_300, 9_999] {
            // Beyond the range of a timestamp.
            let at = DateTime { date: Date { day: 1, month: 1, year }, time: noon };
            let at = cell(DataType::DATETIME, Type::TIMESTAMP, |fields| fields.date_time(Fid(1), at));
            assert_eq!(at, i64::MIN.to_le_bytes(), "{year}");
        }
        let text = |kind| cell(DataType::RMTES_STRING, kind, |fields| fields.rmtes(Fid(1), b"T1"));
        assert_eq!(text(Type::SYMBOL), b"T1\0");
        assert_eq!(text(Type::LIST), b"\x0A\0\x02\0\0\0T1");
        let blank = cell(DataType::RMTES_STRING, Type::SYMBOL, |fields| fields.blank(Fid(1)));
        assert_eq!(blank, b"\0");
    }
}
