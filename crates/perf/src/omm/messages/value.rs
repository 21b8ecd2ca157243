//! Field values, as message files write them and as payloads store them.

use tapeline_client::xml::Element;
use tapeline_omm::rwf::{DataState, DataType, Hint, Rate, Rmtes, StateCode, StreamState, Timeliness};
use tapeline_omm::{Date, DateTime, Fid, FieldListEncoder, Full, Qos, Real, State, Time, Value};

use crate::omm::values;

/// A field of a payload.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) fid: Fid,
    pub(super) value: Kept,
}

/// A value that the payload owns.
#[derive(Debug)]
pub(super) enum Kept {
    /// Anything but a state, text or bytes.
    Plain(Value<'static>),
    /// A state, and its text.
    State(Box<(State<'static>, Box<[u8]>)>),
    /// Text or bytes, by their type.
    Text(DataType, Box<[u8]>),
}

impl Field {
    /// Appends the field to a list.
    #[inline]
    pub(super) fn write(&self, list: &mut FieldListEncoder<'_>) -> Result<(), Full> {
        // The common types of price records have their own inlined calls.
        match &self.value {
            Kept::Plain(Value::Real(value)) => list.real(self.fid, *value),
            Kept::Plain(Value::UInt(value)) => list.uint(self.fid, *value),
            Kept::Plain(Value::Enum(value)) => list.enumeration(self.fid, *value),
            Kept::Text(_, text) => list.raw(self.fid, text),
            Kept::Plain(Value::Time(value)) => list.time(self.fid, *value),
            Kept::Plain(Value::Date(value)) => list.date(self.fid, *value),
            Kept::Plain(Value::Blank) => list.blank(self.fid),
            other => list.value(self.fid, &other.value()),
        }
    }
}

impl Kept {
    /// The value in the codec's form.
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Plain(value) => *value,
            Self::State(state) => Value::State(State { text: &state.1, ..state.0 }),
            Self::Text(DataType::ASCII_STRING, text) => Value::Ascii(text),
            Self::Text(DataType::UTF8_STRING, text) => Value::Utf8(text),
            Self::Text(DataType::RMTES_STRING, text) => Value::Rmtes(Rmtes(text)),
            Self::Text(_, text) => Value::Buffer(text),
        }
    }

    /// The value of an element: its attribute `data`, empty for blank, or for a QoS or state its own attributes.
    ///
    /// # Errors
    /// The value found and the expected form.
    pub(super) fn read(data_type: DataType, element: &Element) -> Result<Self, String> {
        let data = element.attribute("data");
        match data_type {
            DataType::QOS | DataType::STATE => match data {
                Some("") => Ok(Self::Plain(Value::Blank)),
                Some(_) => Err("its attribute data can only be empty, for blank".to_owned()),
                None if data_type == DataType::QOS => qos(element),
                None => state(element),
            },
            _ => {
                let data = data.ok_or("it has no attribute data")?;
                let expected = expected(data_type)
                    .ok_or_else(|| format!("a {data_type} cannot be written in a file of messages"))?;
                Self::parse(data_type, data)
                    .ok_or_else(|| format!("'{data}' is no {data_type}; expected {expected}"))
            }
        }
    }

    fn parse(data_type: DataType, data: &str) -> Option<Self> {
        if data.is_empty() {
            return Some(Self::Plain(Value::Blank));
        }
        let text = |text: Vec<u8>| Some(Self::Text(data_type, text.into()));
        let trimmed = data.trim();
        let plain = match data_type {
            DataType::INT => trimmed.parse().ok().map(Value::Int),
            DataType::UINT => trimmed.parse().ok().map(Value::UInt),
            DataType::FLOAT => trimmed.parse().ok().map(Value::Float),
            DataType::DOUBLE => trimmed.parse().ok().map(Value::Double),
            DataType::REAL => real(trimmed).map(Value::Real),
            DataType::DATE => date(trimmed).map(Value::Date),
            DataType::TIME => time(trimmed).map(Value::Time),
            DataType::DATETIME => date_time(trimmed).map(Value::DateTime),
            DataType::ENUM => trimmed.parse().ok().map(Value::Enum),
            DataType::ASCII_STRING if !data.is_ascii() => None,
            DataType::RMTES_STRING => return text(rmtes(data)),
            DataType::BUFFER | DataType::ASCII_STRING | DataType::UTF8_STRING => return text(data.into()),
            _ => None,
        };
        plain.map(Self::Plain)
    }
}

/// The text form of a value of this type; `None` if there is none.
fn expected(data_type: DataType) -> Option<&'static str> {
    Some(match data_type {
        DataType::INT => "a whole number of 64 bits",
        DataType::UINT => "a whole number of 64 bits, not negative",
        DataType::FLOAT | DataType::DOUBLE => "a number",
        DataType::REAL => "a number with 14 decimals at most, a fraction such as 3 5/8, Inf, -Inf or NaN",
        DataType::DATE => "a date such as 11/22/2026 (month first), 22 NOV 2026 or 2026-11-22",
        DataType::TIME => "a time such as 14:40:32:000:000:000 (later parts may be missing) or 14:40:32.000",
        DataType::DATETIME => "a date and a time such as 11/22/2026 14:40:32:000 or 2026-11-22T14:40:32.000",
        DataType::ENUM => "a number from 0 to 65535",
        DataType::ASCII_STRING => "ASCII",
        DataType::BUFFER | DataType::UTF8_STRING | DataType::RMTES_STRING => "text",
        _ => return None,
    })
}

/// ASCII unchanged, all other text as UTF-8 after the RMTES escape for it.
fn rmtes(text: &str) -> Vec<u8> {
    let escape: &[u8] = if text.is_ascii() { b"" } else { b"\x1b%0" };
    [escape, text.as_bytes()].concat()
}

fn real(text: &str) -> Option<Real> {
    match text {
        "Inf" | "+Inf" => return Some(Real::INFINITY),
        "-Inf" => return Some(Real::MINUS_INFINITY),
        "NaN" => return Some(Real::NAN),
        _ => {}
    }
    let Some((above, below)) = text.split_once('/') else { return values::real(text) };
    // A fraction with a power of two up to 256 as denominator, optionally after a whole number and a blank.
    let below: i64 = below.parse().ok().filter(|below| *below > 0)?;
    if below.count_ones() != 1 || below > 256 {
        return None;
    }
    let (is_negative, above) = above.strip_prefix('-').map_or((false, above), |above| (true, above));
    let (whole, above) = above.split_once(' ').unwrap_or(("0", above));
    let (whole, above): (u32, u32) = (whole.parse().ok()?, above.trim_start().parse().ok()?);
    let mantissa = i64::from(whole) * below + i64::from(above);
    let hint = Hint(Hint::FRACTION_MIN.0 + below.trailing_zeros() as u8);
    Some(Real { mantissa: if is_negative { -mantissa } else { mantissa }, hint })
}

fn date(text: &str) -> Option<Date> {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let parts = |separator| {
        let mut parts = str::splitn(text, 3, separator);
        Some((parts.next()?, parts.next()?, parts.next()?))
    };
    if let Some((month, day, year)) = parts('/') {
        return values::date(&format!("{year}-{month}-{day}"));
    }
    if let Some((day, name, year)) = parts(' ') {
        let month = 1 + MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))?;
        return values::date(&format!("{year}-{month}-{day}"));
    }
    values::date(text)
}

/// Up to six parts: at least hours and minutes, then seconds, milli-, micro- and nanoseconds.
fn time(text: &str) -> Option<Time> {
    if text.contains('.') {
        return values::time(text);
    }
    const LIMITS: [u16; 6] = [24, 60, 61, 1_000, 1_000, 1_000];
    let (mut found, mut count) = ([0_u16; 6], 0);
    for part in text.split(':') {
        let limit = *LIMITS.get(count)?;
        found[count] = part.trim().parse().ok().filter(|part| *part < limit)?;
        count += 1;
    }
    let [hour, minute, second, millisecond, microsecond, nanosecond] = found;
    let (hour, minute, second) = (hour as u8, minute as u8, second as u8);
    (count >= 2).then_some(Time { hour, minute, second, millisecond, microsecond, nanosecond })
}

fn date_time(text: &str) -> Option<DateTime> {
    let (day, clock) = text.split_once('T').or_else(|| text.rsplit_once(' '))?;
    Some(DateTime { date: date(day.trim_end())?, time: time(clock)? })
}

fn qos(element: &Element) -> Result<Kept, String> {
    let dynamic = number(element, "qosDynamic", 1)? == 1;
    let timeliness = code(element, "qosTimeliness", "RSSL_QOS_TIME_", 7, |n| Timeliness(n).name())?;
    let rate = code(element, "qosRate", "RSSL_QOS_RATE_", 15, |n| Rate(n).name())?;
    Ok(Kept::Plain(Value::Qos(Qos {
        timeliness: Timeliness(timeliness),
        rate: Rate(rate),
        dynamic,
        time_info: number(element, "qosTimeInfo", u16::MAX)?,
        rate_info: number(element, "qosRateInfo", u16::MAX)?,
    })))
}

fn state(element: &Element) -> Result<Kept, String> {
    let text = element.attribute("text").unwrap_or_default().as_bytes();
    if text.len() > 0x7FFF {
        return Err("its text has more than 32767 bytes".to_owned());
    }
    let state = State {
        stream: StreamState(code(element, "streamState", "RSSL_STREAM_", 31, |n| StreamState(n).name())?),
        data: DataState(code(element, "dataState", "RSSL_DATA_", 7, |n| DataState(n).name())?),
        code: StateCode(code(element, "code", "RSSL_SC_", u8::MAX, |n| StateCode(n).name())?),
        text: b"",
    };
    Ok(Kept::State(Box::new((state, text.into()))))
}

/// An attribute with a code's name, prefixed as in the C headers, or its number; 0 if the attribute is missing.
fn code(
    element: &Element,
    attribute: &str,
    prefix: &str,
    most: u8,
    name: impl Fn(u8) -> Option<&'static str>,
) -> Result<u8, String> {
    let Some(text) = element.attribute(attribute) else { return Ok(0) };
    let bare = text.strip_prefix(prefix).unwrap_or(text);
    let found = (0..=most).find(|number| name(*number) == Some(bare));
    found.or_else(|| text.parse().ok().filter(|number| *number <= most)).ok_or_else(|| {
        let known: Vec<_> = (0..=most).filter_map(&name).map(|name| format!("{prefix}{name}")).collect();
        format!("its {attribute} is '{text}'; expected a number up to {most}, or {}", known.join(", "))
    })
}

/// An attribute with a number; 0 if the attribute is missing.
fn number(element: &Element, attribute: &str, most: u16) -> Result<u16, String> {
    let Some(text) = element.attribute(attribute) else { return Ok(0) };
    let number = text.trim().parse().ok().filter(|number| *number <= most);
    number.ok_or_else(|| format!("its {attribute} is '{text}'; expected a number from 0 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_the_public_tools_read_them() {
        for (text, real_value) in [
            ("398.15", Real::decimal(39_815, 2)),
            ("2848.560000", Real::decimal(2_848_560_000, 6)),
            ("360287970189639.67", Real::decimal(36_028_797_018_963_967, 2)),
            ("-0.5", Real::decimal(-5, 1)),
            ("+7", Real::integer(7)),
            ("3 5/8", Real { mantissa: 29, hint: Hint(25) }),
            ("-1/256", Real { mantissa: -1, hint: Hint(30) }),
            ("Inf", Real::INFINITY),
        ] {
            assert_eq!(real(text), Some(real_value), "{text}");
        }
        for text in
            ["", ".", "1e5", "1/3", "1/512", "1/0", "--1", "1 2", "99999999999999999999", "1.123456789012345"]
        {
            assert_eq!(real(text), None, "{text}");
        }
        let day = Date { day: 22, month: 11, year: 2026 };
        for text in ["11/22/2026", "22 NOV 2026", "22 nov 2026", "2026-11-22"] {
            assert_eq!(date(text), Some(day), "{text}");
        }
        for text in ["", "22/11/2026", "11/22", "22 NOW 2026", "1/2/3/4"] {
            assert_eq!(date(text), None, "{text}");
        }
        let clock = Time { hour: 14, minute: 40, second: 32, millisecond: 1, microsecond: 2, nanosecond: 3 };
        assert_eq!(time("14:40:32:001:002:003"), Some(clock));
        assert_eq!(time("14:40:32.001002003"), Some(clock));
        assert_eq!(time("14:40"), Some(Time { hour: 14, minute: 40, ..Time::default() }));
        for text in ["", "14", "24:00", "14:60", "14:40:32:1000", "14:40:32:1:1:1:1", "a:b"] {
            assert_eq!(time(text), None, "{text}");
        }
        for text in
            ["11/22/2026 14:40:32:001:002:003", "22 NOV 2026 14:40:32.001002003", "2026-11-22T14:40:32:1:2:3"]
        {
            assert_eq!(date_time(text), Some(DateTime { date: day, time: clock }), "{text}");
        }
        assert_eq!(date_time("11/22/2026"), None);
        assert_eq!(rmtes("é"), b"\x1b%0\xC3\xA9");
    }
}
