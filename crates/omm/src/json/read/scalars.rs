//! Members that are a single number, word or text.

use std::borrow::Cow;

use data_encoding::BASE64;

use super::super::fault::JsonProblem;
use super::super::names::{self, Names};
use super::super::scan::{Raw, Token};
use super::Reading;
use crate::Fid;
use crate::Refused;
use crate::dictionary::FieldDefinition;

impl Reading<'_> {
    /// Returns a whole number in the range of its type.
    pub(super) fn integer<T: TryFrom<i128>>(&mut self, key: &str, raw: Raw<'_>) -> Result<T, Refused> {
        if raw.token() != Token::Primitive || matches!(raw.text(), "true" | "false") {
            return Err(self.stop(JsonProblem::kind(key, "PRIMITIVE", raw), raw));
        }
        let value = raw.text().parse::<i128>().ok().and_then(|value| T::try_from(value).ok());
        value.ok_or_else(|| self.stop(JsonProblem::value(key, raw), raw))
    }

    pub(super) fn optional_integer<T: TryFrom<i128>>(
        &mut self,
        key: &str,
        raw: Option<Raw<'_>>,
    ) -> Result<Option<T>, Refused> {
        raw.map(|raw| self.integer(key, raw)).transpose()
    }

    /// Returns a number of at most 15 bits.
    pub(super) fn part(&mut self, raw: Option<Raw<'_>>) -> Result<Option<u16>, Refused> {
        let Some(raw) = raw else { return Ok(None) };
        let part = self.integer("PartNumber", raw)?;
        self.at_most(0x7FFF, "PartNumber", part, raw).map(Some)
    }

    /// Returns a number, if it is no more than `most`. `raw` is at fault for a larger one.
    pub(super) fn at_most<T: PartialOrd>(
        &mut self,
        most: T,
        key: &str,
        number: T,
        raw: Raw<'_>,
    ) -> Result<T, Refused> {
        if number > most { Err(self.stop(JsonProblem::value(key, raw), raw)) } else { Ok(number) }
    }

    /// Returns a boolean: `true`, `"true"` and 1 are true, any other scalar is false. Clients send all of these.
    pub(super) fn boolean(
        &mut self,
        key: &str,
        raw: Option<Raw<'_>>,
        assumed: bool,
    ) -> Result<bool, Refused> {
        match raw {
            None => Ok(assumed),
            Some(raw) if matches!(raw.token(), Token::Object | Token::Array) => {
                Err(self.stop(JsonProblem::kind(key, "PRIMITIVE", raw), raw))
            }
            Some(raw) => Ok(matches!(raw.text(), "true" | "\"true\"" | "1")),
        }
    }

    pub(super) fn text<'t>(&mut self, key: &str, raw: Raw<'t>) -> Result<Cow<'t, str>, Refused> {
        raw.string().ok_or_else(|| self.stop(JsonProblem::kind(key, "STRING", raw), raw))
    }

    /// Returns the number of a protocol word, or the number itself.
    pub(super) fn code(&mut self, key: &str, raw: Raw<'_>, names: Names) -> Result<u8, Refused> {
        let Some(word) = raw.string() else { return self.integer(key, raw) };
        names::number(names, &word).ok_or_else(|| self.stop(JsonProblem::value(key, raw), raw))
    }

    pub(super) fn code_or(
        &mut self,
        key: &str,
        raw: Option<Raw<'_>>,
        names: Names,
        assumed: u8,
    ) -> Result<u8, Refused> {
        raw.map_or(Ok(assumed), |raw| self.code(key, raw, names))
    }

    pub(super) fn bytes(&mut self, key: &str, raw: Raw<'_>) -> Result<Vec<u8>, Refused> {
        let text = self.text(key, raw)?;
        BASE64.decode(text.as_bytes()).map_err(|_| self.stop(JsonProblem::value(key, raw), raw))
    }

    pub(super) fn optional_bytes(
        &mut self,
        key: &str,
        raw: Option<Raw<'_>>,
    ) -> Result<Option<Vec<u8>>, Refused> {
        raw.map(|raw| self.bytes(key, raw)).transpose()
    }

    /// Returns two numbers of an object; both are required.
    pub(super) fn pair<A: TryFrom<i128>, B: TryFrom<i128>>(
        &mut self,
        key: &str,
        raw: Raw<'_>,
        first: &'static str,
        second: &'static str,
    ) -> Result<(A, B), Refused> {
        if raw.token() != Token::Object {
            return Err(self.stop(JsonProblem::kind(key, "OBJECT", raw), raw));
        }
        let a = raw.member(first).ok_or_else(|| self.missing(first, raw))?;
        let b = raw.member(second).ok_or_else(|| self.missing(second, raw))?;
        Ok((self.integer(first, a)?, self.integer(second, b)?))
    }

    /// Returns the field with this name, or with this number as text.
    pub(super) fn field(&self, name: &str) -> Option<&FieldDefinition> {
        let dictionary = self.converter.dictionary;
        dictionary.field_named(name).or_else(|| dictionary.field(Fid(name.parse().ok()?)))
    }
}
