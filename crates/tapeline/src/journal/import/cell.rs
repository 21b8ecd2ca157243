//! Converts a q value to a time, a name or a field.

use jiff::civil::Date;
use tapeline_kdb::{Atom, Type, UNIX_2000_NS, View};
use tapeline_measure::Nanos;
use tapeline_node::kdb::fields::{self, Said};
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Fid, FieldListEncoder, Full};

#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Atom(Atom<&'a [u8]>),
    Text(&'a [u8]),
    /// A list or another value.
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

    pub(super) fn name(self) -> Option<&'a str> {
        let (Self::Atom(Atom::Symbol(bytes)) | Self::Text(bytes)) = self else { return None };
        std::str::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }

    /// The value as a time; `day` is the date of a time without one.
    pub(super) fn time(self, day: Option<Date>) -> Option<Nanos> {
        let Self::Atom(atom) = self else { return None };
        if atom.is_null() || atom.is_infinite() {
            return None;
        }
        let since_1970 = match atom {
            Atom::Timestamp(ns) => ns.checked_add(UNIX_2000_NS)?,
            _ => {
                let midnight = day?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_nanosecond();
                let Said::Whole(count) = said(&atom)? else { return None };
                i64::try_from(midnight)
                    .ok()?
                    .checked_add_unsigned(fields::of_day(count, atom.kind().vector())?)?
            }
        };
        u64::try_from(since_1970).ok().map(Nanos)
    }

    /// Takes a whole number as ns since midnight.
    pub(super) fn as_time_of_day(self) -> Self {
        match self {
            Self::Atom(Atom::Long(ns)) => Self::Atom(Atom::Timespan(ns)),
            other => other,
        }
    }

    /// Writes a word as its number in an enumeration; returns the reason if the word has none.
    pub(super) fn write_word(
        self,
        fid: Fid,
        words: &[&str],
        fields: &mut FieldListEncoder<'_>,
    ) -> Result<Result<(), &'static str>, Full> {
        let Some(word) = self.name() else { return fields.blank(fid).map(Ok) };
        match words.iter().zip(0..).find(|(known, _)| **known == word) {
            Some((_, number)) => fields.enumeration(fid, number).map(Ok),
            None => Ok(Err("its word is not a known value")),
        }
    }

    /// Writes the value as a field of this type, as a plant's `[kdb]` does with a cell; returns the reason if the
    /// field would have another value.
    pub(super) fn write(
        self,
        fid: Fid,
        is: DataType,
        fields: &mut FieldListEncoder<'_>,
    ) -> Result<Result<(), &'static str>, Full> {
        let (said, kind) = match self {
            Self::Atom(atom) if atom.is_null() => return fields.blank(fid).map(Ok),
            Self::Text(b"") => return fields.blank(fid).map(Ok),
            Self::Text(text) => (Some(Said::Text(text)), Type::LIST),
            Self::Atom(atom) => (said(&atom), atom.kind().vector()),
            Self::Other => (None, Type::LIST),
        };
        let said = said.filter(|said| !is_lost(*said, kind, is));
        match said.and_then(|said| fields::put(said, kind, fid, is, fields)) {
            Some(written) => written.map(Ok),
            None => Ok(Err("its type or its value does not fit the field")),
        }
    }
}

/// The value of an atom; `None` for infinities of whole numbers, and for types that no field has.
fn said<'a>(atom: &Atom<&'a [u8]>) -> Option<Said<'a>> {
    Some(match *atom {
        Atom::Symbol(text) => Said::Text(text),
        Atom::Float(value) => Said::Float(value),
        Atom::Real(value) => Said::Float(value.into()),
        Atom::Boolean(value) => Said::Whole(value.into()),
        Atom::Byte(value) => Said::Whole(value.into()),
        _ if atom.is_infinite() => return None,
        Atom::Short(value) => Said::Whole(value.into()),
        Atom::Int(value) | Atom::Date(value) => Said::Whole(value.into()),
        Atom::Minute(value) | Atom::Second(value) | Atom::Time(value) => Said::Whole(value.into()),
        Atom::Long(value) | Atom::Timestamp(value) | Atom::Timespan(value) => Said::Whole(value),
        _ => return None,
    })
}

/// Whether a float would be lost in the field, or would lose its fraction in a whole-number field.
fn is_lost(said: Said<'_>, kind: Type, is: DataType) -> bool {
    let Said::Float(value) = said else { return false };
    match is {
        DataType::INT | DataType::UINT | DataType::ENUM => value.fract() != 0.0,
        DataType::REAL if value.is_finite() && value != 0.0 => {
            fields::decimal(value, kind == Type::REAL).is_some_and(|decimal| decimal.mantissa == 0)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use tapeline_omm::FieldList;

    use super::*;

    /// The field that a cell becomes, decoded again.
    fn shown(atom: Atom<&[u8]>, is: DataType) -> Option<String> {
        let mut room = [0; 64];
        let mut fields = FieldListEncoder::new(&mut room).unwrap();
        Cell::Atom(atom).write(Fid(1), is, &mut fields).unwrap().ok()?;
        let length = fields.finish();
        let field = FieldList::parse(&room[..length]).unwrap().find(Fid(1)).unwrap().unwrap();
        Some(field.value(is).unwrap().to_string())
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
            (Atom::Second(43_200), DataType::TIME, text("12:00:00")),
            (Atom::Timestamp(708_697_697_727_152_000), DataType::TIME, text("12:28:17.727152")),
            (Atom::Date(8_202), DataType::DATE, text("2022-06-16")),
            (Atom::Date(i32::MAX), DataType::DATE, None),
            (Atom::Int(8_202), DataType::DATE, None),
            (
                Atom::Timestamp(708_697_697_727_152_000),
                DataType::DATETIME,
                text("2022-06-16T12:28:17.727152"),
            ),
            (Atom::Float(84.28), DataType::DOUBLE, text("84.28")),
            (Atom::Float(0.5), DataType::FLOAT, text("0.5")),
            (Atom::Int(7), DataType::DOUBLE, text("7")),
            (Atom::Timespan(7), DataType::INT, None),
            (Atom::Float(7.0), DataType::INT, text("7")),
            (Atom::Float(7.5), DataType::INT, None),
            (Atom::Symbol("é€".as_bytes()), DataType::RMTES_STRING, text("é€")),
            (Atom::Symbol("é€".as_bytes()), DataType::UTF8_STRING, text("é€")),
            (Atom::Char(b'x'), DataType::RMTES_STRING, None),
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
        // A long is ns of a day if the mapping says so.
        let at = Cell::Atom(Atom::Long(1)).as_time_of_day();
        assert_eq!(at.time(day), Some(Nanos(1_655_337_600_000_000_001)));
        assert_eq!(Cell::Atom(Atom::Long(i64::MIN)).as_time_of_day().time(day), None);
    }
}
