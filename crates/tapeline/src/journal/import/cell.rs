//! A q value as a time, a name or a field.

use jiff::civil::Date;
use tapeline_kdb::{Atom, UNIX_2000_NS, View};
use tapeline_measure::Nanos;
use tapeline_omm::rwf::{DataType, Time, Value};
use tapeline_omm::{Fid, FieldListEncoder, Full, Real};

use crate::plant::kdb::decimal;

const DAY_NS: i64 = 86_400_000_000_000;

/// A cell of a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    /// One value.
    Atom(Atom<&'a [u8]>),
    /// A string.
    Text(&'a [u8]),
    /// A list or the like.
    Other,
}

impl<'a> Cell<'a> {
    pub(super) fn of(value: &View<'a>) -> Self {
        match value {
            View::Atom(atom) => Self::Atom(*atom),
            View::Vector(vector) => vector.text().map_or(Self::Other, Self::Text),
            _ => Self::Other,
        }
    }

    /// The item's name.
    pub(super) fn name(self) -> Option<&'a str> {
        let (Self::Atom(Atom::Symbol(bytes)) | Self::Text(bytes)) = self else { return None };
        std::str::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }

    /// When it was; of a time without a day, that of `day`.
    pub(super) fn time(self, day: Option<Date>) -> Option<Nanos> {
        let Self::Atom(atom) = self else { return None };
        if atom.is_null() || atom.is_infinite() {
            return None;
        }
        let since_1970 = match atom {
            Atom::Timestamp(ns) => ns.checked_add(UNIX_2000_NS)?,
            _ => {
                let midnight = day?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_nanosecond();
                i64::try_from(midnight).ok()?.checked_add(of_day(&atom)?)?
            }
        };
        u64::try_from(since_1970).ok().map(Nanos)
    }

    /// Writes it as a field of this type; why not, if it cannot be one.
    pub(super) fn write(
        self,
        fid: Fid,
        data_type: DataType,
        fields: &mut FieldListEncoder<'_>,
    ) -> Result<Result<(), &'static str>, Full> {
        let Some(value) = self.value(data_type) else {
            return Ok(Err("its type does not fit the field, or its value does not"));
        };
        fields.value(fid, &value).map(Ok)
    }

    fn value(self, data_type: DataType) -> Option<Value<'a>> {
        let atom = match self {
            Self::Atom(atom) if atom.is_null() => return Some(Value::Blank),
            Self::Atom(Atom::Symbol(text)) | Self::Text(text) => return text_value(text, data_type),
            Self::Atom(atom) => atom,
            Self::Other => return None,
        };
        match data_type {
            DataType::REAL => real(&atom).map(Value::Real),
            DataType::INT => whole(&atom).map(Value::Int),
            DataType::UINT => whole(&atom).and_then(|value| u64::try_from(value).ok()).map(Value::UInt),
            DataType::ENUM => whole(&atom).and_then(|value| u16::try_from(value).ok()).map(Value::Enum),
            DataType::TIME => {
                let ns = match atom {
                    Atom::Timestamp(ns) => ns.rem_euclid(DAY_NS),
                    _ => of_day(&atom)?,
                };
                Some(Value::Time(Time::from_ns_of_day(u64::try_from(ns).ok()?)))
            }
            _ => None,
        }
    }
}

fn text_value(text: &[u8], data_type: DataType) -> Option<Value<'_>> {
    if text.is_empty() {
        return Some(Value::Blank);
    }
    Some(match data_type {
        DataType::RMTES_STRING => Value::Rmtes(tapeline_omm::rwf::Rmtes(text)),
        DataType::ASCII_STRING => Value::Ascii(text),
        DataType::UTF8_STRING => Value::Utf8(text),
        DataType::BUFFER => Value::Buffer(text),
        _ => return None,
    })
}

/// The ns of a time of day.
fn of_day<S>(atom: &Atom<S>) -> Option<i64> {
    let ns = match atom {
        Atom::Timespan(ns) => *ns,
        Atom::Time(ms) => i64::from(*ms) * 1_000_000,
        Atom::Second(seconds) => i64::from(*seconds) * 1_000_000_000,
        Atom::Minute(minutes) => i64::from(*minutes) * 60_000_000_000,
        _ => return None,
    };
    (0..DAY_NS).contains(&ns).then_some(ns)
}

fn whole<S>(atom: &Atom<S>) -> Option<i64> {
    Some(match atom {
        Atom::Boolean(value) => i64::from(*value),
        Atom::Byte(value) => i64::from(*value),
        Atom::Short(value) if !is_extreme(i64::from(*value), i64::from(i16::MAX)) => i64::from(*value),
        Atom::Int(value) if !is_extreme(i64::from(*value), i64::from(i32::MAX)) => i64::from(*value),
        Atom::Long(value) if !is_extreme(*value, i64::MAX) => *value,
        _ => return None,
    })
}

/// An infinity, as q has them for whole numbers.
fn is_extreme(value: i64, most: i64) -> bool {
    value == most || value == -most
}

fn real<S>(atom: &Atom<S>) -> Option<Real> {
    match atom {
        Atom::Float(value) => not_lost(*value, decimal(*value, false)),
        Atom::Real(value) => not_lost(f64::from(*value), decimal(f64::from(*value), true)),
        _ => whole(atom).map(Real::integer),
    }
}

/// The decimal of a float, unless that is so small that none of it is left.
fn not_lost(value: f64, decimal: Option<Real>) -> Option<Real> {
    decimal.filter(|decimal| decimal.mantissa != 0 || value == 0.0 || value.is_infinite())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use super::*;

    fn shown(atom: Atom<&[u8]>, data_type: DataType) -> Option<String> {
        Cell::Atom(atom).value(data_type).map(|value| value.to_string())
    }

    #[test]
    fn values_are_what_they_were_or_not_taken() {
        let text = |text: &str| Some(text.to_owned());
        for (atom, data_type, expected) in [
            (Atom::Float(84.28), DataType::REAL, text("84.28")),
            (Atom::Real(84.28), DataType::REAL, text("84.28")),
            (Atom::Float(-0.5), DataType::REAL, text("-0.5")),
            (Atom::Float(1e15), DataType::REAL, text("1000000000000000")),
            (Atom::Float(1e17), DataType::REAL, text("100000000000000000")),
            (Atom::Float(71.850_000_000_000_01), DataType::REAL, text("71.85000000000001")),
            (Atom::Float(1_234_567_890_123_456.0), DataType::REAL, text("1234567890123456")),
            (Atom::Float(26.189_999_999_999_998), DataType::REAL, text("26.19000000000000")),
            (Atom::Float(1.0 / 3.0), DataType::REAL, text("0.33333333333333")),
            (Atom::Float(0.0), DataType::REAL, text("0")),
            (Atom::Float(f64::NAN), DataType::REAL, text("")),
            (Atom::Float(f64::INFINITY), DataType::REAL, text("Inf")),
            (Atom::Float(1e-20), DataType::REAL, None),
            (Atom::Float(1e300), DataType::REAL, None),
            (Atom::Int(42), DataType::REAL, text("42")),
            (Atom::Int(i32::MAX), DataType::REAL, None),
            (Atom::Int(i32::MIN), DataType::REAL, text("")),
            (Atom::Long(-1), DataType::UINT, None),
            (Atom::Long(-1), DataType::INT, text("-1")),
            (Atom::Boolean(true), DataType::ENUM, text("1")),
            (Atom::Symbol(&b"N"[..]), DataType::RMTES_STRING, text("N")),
            (Atom::Symbol(&b"N"[..]), DataType::REAL, None),
            (Atom::Time(43_200_001), DataType::TIME, text("12:00:00.001")),
            (Atom::Timespan(-1), DataType::TIME, None),
            (Atom::Float(1.0), DataType::TIME, None),
        ] {
            assert_eq!(shown(atom, data_type), expected, "{atom:?} as {data_type}");
        }
    }

    #[test]
    fn times_have_a_day_or_are_given_one() {
        let day: Option<Date> = Some("2022-06-16".parse().unwrap());
        let at = Atom::Timestamp(708_697_697_727_152_000);
        assert_eq!(Cell::Atom(at).time(None), Some(Nanos(1_655_382_497_727_152_000)));
        let at = Atom::Time(1);
        assert_eq!(Cell::Atom(at).time(day), Some(Nanos(1_655_337_600_001_000_000)));
        assert_eq!(Cell::Atom(at).time(None), None);
        assert_eq!(Cell::Atom(Atom::Timestamp(i64::MIN)).time(day), None);
        assert_eq!(Cell::Atom(Atom::Timestamp(i64::MAX - 1)).time(day), None);
        assert_eq!(Cell::Text(b"x").time(day), None);
    }
}
