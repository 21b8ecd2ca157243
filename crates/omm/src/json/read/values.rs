//! Values of every type.

use std::borrow::Cow;

use super::super::fault::JsonProblem;
use super::super::scan::{self, Raw, Token};
use super::members::TypedMembers;
use super::{Reading, decimal, times};
use crate::dictionary::EnumerationTable;
use crate::rwf::{ArrayEncoder, DataType, Real, Value, encode_rmtes};
use crate::{Fid, Refused};

/// Buffer for a value that the text does not contain in its final form.
#[derive(Default)]
pub(super) struct Room {
    bytes: Vec<u8>,
    text: String,
}

/// Returns a text that stays, in `room` if the text had to be created.
fn room_text<'v>(text: Cow<'v, str>, room: &'v mut String) -> &'v str {
    match text {
        Cow::Borrowed(text) => text,
        Cow::Owned(text) => {
            *room = text;
            room
        }
    }
}

impl Reading<'_> {
    /// Returns a value of a primitive type other than ARRAY; `null` is blank. `fid` is the field whose display texts
    /// are accepted.
    pub(super) fn value<'v>(
        &mut self,
        key: &str,
        data_type: DataType,
        fid: Option<Fid>,
        raw: Raw<'v>,
        room: &'v mut Room,
    ) -> Result<Value<'v>, Refused> {
        if raw.is_null() {
            return Ok(Value::Blank);
        }
        Ok(match data_type {
            DataType::INT => Value::Int(self.integer(key, raw)?),
            DataType::UINT => Value::UInt(self.integer(key, raw)?),
            DataType::FLOAT => {
                let value = self.float(key, raw)?;
                let narrow = value as f32;
                if narrow.is_infinite() && value.is_finite() {
                    return Err(self.stop(JsonProblem::value(key, raw), raw));
                }
                Value::Float(narrow)
            }
            DataType::DOUBLE => Value::Double(self.float(key, raw)?),
            DataType::REAL => Value::Real(self.real(key, raw)?),
            DataType::DATE => match self.parsed(key, raw, times::date)? {
                crate::Date::BLANK => Value::Blank,
                date => Value::Date(date),
            },
            DataType::TIME => Value::Time(self.parsed(key, raw, times::time)?),
            DataType::DATETIME => match self.parsed(key, raw, times::date_time)? {
                crate::DateTime::BLANK => Value::Blank,
                date_time => Value::DateTime(date_time),
            },
            DataType::ENUM => Value::Enum(self.enumerated(key, fid, raw)?),
            DataType::QOS => Value::Qos(self.qos(key, raw)?),
            DataType::STATE => {
                let state = self.state(key, raw)?;
                room.text.push_str(str::from_utf8(state.view().text).unwrap_or_default());
                Value::State(crate::State { text: room.text.as_bytes(), ..state.without_text() })
            }
            DataType::BUFFER => {
                room.bytes = self.bytes(key, raw)?;
                Value::Buffer(&room.bytes)
            }
            DataType::ASCII_STRING => match self.text(key, raw)? {
                Cow::Borrowed(text) if text.is_ascii() => Value::Ascii(text.as_bytes()),
                text => {
                    room.bytes = self.latin1(key, &text, raw)?;
                    Value::Ascii(&room.bytes)
                }
            },
            DataType::UTF8_STRING => Value::Utf8(room_text(self.text(key, raw)?, &mut room.text).as_bytes()),
            DataType::RMTES_STRING => {
                let text = room_text(self.text(key, raw)?, &mut room.text);
                Value::Rmtes(encode_rmtes(text, &mut room.bytes))
            }
            _ => return Err(self.stop(JsonProblem::value("Type", raw), raw)),
        })
    }

    /// Returns each character as one byte: ASCII, and Latin-1 above it.
    pub(super) fn latin1(&mut self, key: &str, text: &str, raw: Raw<'_>) -> Result<Vec<u8>, Refused> {
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        bytes.map_err(|_| self.stop(JsonProblem::value(key, raw), raw))
    }

    /// Writes an array; `null` is blank, which has no bytes.
    pub(super) fn array(
        &mut self,
        key: &str,
        fid: Option<Fid>,
        raw: Raw<'_>,
        room: &mut [u8],
    ) -> Result<usize, Refused> {
        if raw.is_null() {
            return Ok(0);
        }
        let members = TypedMembers::of(self, key, raw)?;
        let item_type = members.r#type.ok_or_else(|| self.missing("Type", raw))?;
        let data_type = DataType(self.code("Type", item_type, DataType::WORDS)?);
        if data_type == DataType::ARRAY || data_type.is_container() {
            return Err(self.stop(JsonProblem::value("Type", item_type), item_type));
        }
        let item_len = self.optional_integer("Length", members.length)?.unwrap_or(0);
        let Some(data) = members.data else { return Ok(0) };
        if data.token() != Token::Array {
            return Err(self.stop(JsonProblem::kind("Data", "ARRAY", data), data));
        }
        let mut first: Option<Raw<'_>> = None;
        let mut array = ArrayEncoder::new(room, data_type, item_len)?;
        for item in data.items() {
            if !item.is_null() {
                let first = *first.get_or_insert(item);
                // Numbers that JSON lacks may be quoted among other numbers.
                let is_word =
                    [item, first].iter().any(|raw| matches!(raw.text(), "\"Inf\"" | "\"-Inf\"" | "\"NaN\""));
                if item.token() != first.token() && !is_word && data_type != DataType::ENUM {
                    let (first, other) = (first.kind_name(), item.kind_name());
                    return Err(self.stop(JsonProblem::Mixed { first, other }, item));
                }
            }
            let mut room = Room::default();
            let value = self.value("Data", data_type, fid, item, &mut room)?;
            array.value(&value)?;
        }
        Ok(array.finish())
    }

    fn float(&mut self, key: &str, raw: Raw<'_>) -> Result<f64, Refused> {
        let value = match raw.text().trim_matches('"') {
            "Inf" => Some(f64::INFINITY),
            "-Inf" => Some(f64::NEG_INFINITY),
            "NaN" => Some(f64::NAN),
            _ if raw.token() != Token::Primitive => {
                return Err(self.stop(JsonProblem::kind(key, "PRIMITIVE", raw), raw));
            }
            text if scan::is_number(text.as_bytes()) => {
                text.parse().ok().filter(|value: &f64| value.is_finite())
            }
            _ => None,
        };
        value.ok_or_else(|| self.stop(JsonProblem::value(key, raw), raw))
    }

    fn real(&mut self, key: &str, raw: Raw<'_>) -> Result<Real, Refused> {
        if let Token::Primitive = raw.token()
            && let Some(value) = decimal::real(raw.text())
        {
            return Ok(value);
        }
        let value = match raw.text().trim_matches('"') {
            "Inf" => Some(Real::INFINITY),
            "-Inf" => Some(Real::MINUS_INFINITY),
            "NaN" => Some(Real::NAN),
            _ if raw.token() != Token::Primitive => {
                return Err(self.stop(JsonProblem::kind(key, "PRIMITIVE", raw), raw));
            }
            _ => None,
        };
        value.ok_or_else(|| self.stop(JsonProblem::value(key, raw), raw))
    }

    fn parsed<T>(
        &mut self,
        key: &str,
        raw: Raw<'_>,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, Refused> {
        let text = self.text(key, raw)?;
        parse(&text).ok_or_else(|| self.stop(JsonProblem::value(key, raw), raw))
    }

    /// Returns the value for a number, or for a display text of the field; trailing blanks are ignored.
    fn enumerated(&mut self, key: &str, fid: Option<Fid>, raw: Raw<'_>) -> Result<u16, Refused> {
        let Some(text) = raw.string() else { return self.integer(key, raw) };
        let table = fid.and_then(|fid| self.converter.dictionary.enumeration(fid));
        let values = table.map(EnumerationTable::values).unwrap_or_default();
        let exact = values.iter().find(|value| *value.display == *text);
        let found = exact.or_else(|| values.iter().find(|value| value.display.trim_end() == text.trim_end()));
        found.map(|value| value.number).ok_or_else(|| self.stop(JsonProblem::value(key, raw), raw))
    }
}
