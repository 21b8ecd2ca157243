//! JSON text, appended to a buffer.

use std::io::Write as _;
use std::net::Ipv4Addr;

use data_encoding::BASE64;

use super::names::{self, Names};
use super::scan::plain_end;
use crate::rwf::{Date, DateTime, Hint, Real, Time};

/// The two digits of each number below a hundred.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[0; 2]; 100];
    let mut number = 0;
    while number < 100 {
        pairs[number] = [b'0' + (number / 10) as u8, b'0' + (number % 10) as u8];
        number += 1;
    }
    pairs
};

/// Writer that appends JSON to the caller's buffer. Commas are inserted automatically, except after an opening bracket.
///
/// The writer allocates only to grow the buffer.
#[derive(Debug)]
pub(super) struct JsonText<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> JsonText<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// Appends text that is JSON already.
    pub(super) fn raw(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    /// Appends quotes around what `write` appends.
    #[inline]
    fn quoted(&mut self, write: impl FnOnce(&mut Self)) {
        self.out.push(b'"');
        write(self);
        self.out.push(b'"');
    }

    pub(super) fn begin(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    pub(super) fn end(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    /// Appends the separator before the next member or item, if there is one before it.
    pub(super) fn separate(&mut self) {
        if !matches!(self.out.last(), Some(b'{' | b'[') | None) {
            self.out.push(b',');
        }
    }

    /// Appends the name of a member, a word of the protocol.
    pub(super) fn key(&mut self, name: &str) {
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    /// Appends the name of a member, any text.
    pub(super) fn any_key(&mut self, name: &[u8]) {
        self.separate();
        self.utf8(name);
        self.out.push(b':');
    }

    pub(super) fn null(&mut self) {
        self.out.extend_from_slice(b"null");
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn unsigned(&mut self, value: u64) {
        self.digits(value, 0);
    }

    pub(super) fn signed(&mut self, value: i64) {
        if value < 0 {
            self.out.push(b'-');
        }
        self.digits(value.unsigned_abs(), 0);
    }

    /// Appends a number with `places` decimals.
    fn digits(&mut self, value: u64, places: usize) {
        // 20 digits of 2^64 − 1, or 14 decimals with a leading zero.
        let mut text = [b'0'; 24];
        let (mut at, mut rest) = (text.len(), value);
        // Two digits for each division.
        while rest >= 100 {
            let pair = PAIRS[(rest % 100) as usize];
            rest /= 100;
            at -= 2;
            text[at..at + 2].copy_from_slice(&pair);
        }
        if rest >= 10 {
            at -= 2;
            text[at..at + 2].copy_from_slice(&PAIRS[rest as usize]);
        } else {
            at -= 1;
            text[at] = b'0' + rest as u8;
        }
        // A digit before the point, and zeros behind it, if the value has fewer.
        let point = text.len() - places;
        let (whole, decimals) = text.split_at(point);
        self.out.extend_from_slice(whole.get(at.min(point - 1)..).unwrap_or_default());
        if places > 0 {
            self.out.push(b'.');
            self.out.extend_from_slice(decimals);
        }
    }

    /// Appends the exact value with as many decimals as the form has; a number that JSON lacks is quoted.
    pub(super) fn real(&mut self, value: Real) {
        let hint = value.hint;
        if hint <= Hint::ONE {
            if value.mantissa < 0 {
                self.out.push(b'-');
            }
            self.digits(value.mantissa.unsigned_abs(), usize::from(Hint::ONE.0 - hint.0));
        } else if hint <= Hint::FRACTION_MAX {
            self.display(value);
        } else {
            self.quoted(|text| text.display(value));
        }
    }

    /// Appends the shortest text that reads back as the same number; a number that JSON lacks is quoted.
    pub(super) fn float(&mut self, value: f64, text: impl std::fmt::Debug) {
        match value {
            _ if value.is_nan() => self.raw(b"\"NaN\""),
            f64::INFINITY => self.raw(b"\"Inf\""),
            f64::NEG_INFINITY => self.raw(b"\"-Inf\""),
            // Cannot fail: a vector accepts everything.
            _ => _ = write!(self.out, "{text:?}"),
        }
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        // Cannot fail: a vector accepts everything.
        let _ = write!(self.out, "{value}");
    }

    fn padded(&mut self, value: u16, width: usize) {
        let mut text = *b"00000";
        let mut value = value;
        let mut at = text.len();
        while value > 0 {
            at -= 1;
            text[at] = b'0' + (value % 10) as u8;
            value /= 10;
        }
        self.raw(text.get(at.min(text.len() - width)..).unwrap_or_default());
    }

    /// Appends an IPv4 address.
    pub(super) fn address(&mut self, address: u32) {
        self.quoted(|text| text.display(Ipv4Addr::from_bits(address)));
    }

    pub(super) fn date(&mut self, value: Date) {
        self.quoted(|text| text.bare_date(value));
    }

    /// Unknown members at the end are omitted.
    fn bare_date(&mut self, value: Date) {
        self.padded(value.year, 4);
        if value.month != 0 || value.day != 0 {
            self.out.push(b'-');
            self.padded(value.month.into(), 2);
        }
        if value.day != 0 {
            self.out.push(b'-');
            self.padded(value.day.into(), 2);
        }
    }

    pub(super) fn time(&mut self, value: Time) {
        if value.hour == 0xFF || value.minute == 0xFF {
            return self.null();
        }
        self.quoted(|text| text.bare_time(value));
    }

    /// Appends `hh:mm:ss` and a fraction without trailing zeros; an unknown second is omitted.
    fn bare_time(&mut self, value: Time) {
        self.padded(value.hour.into(), 2);
        self.out.push(b':');
        self.padded(value.minute.into(), 2);
        if value.second == 0xFF {
            return;
        }
        self.out.push(b':');
        self.padded(value.second.into(), 2);
        let parts = [value.millisecond, value.microsecond, value.nanosecond];
        let known = parts.map(|part| if part > 999 { 0 } else { part });
        if known == [0; 3] {
            return;
        }
        self.out.push(b'.');
        known.into_iter().for_each(|part| self.padded(part, 3));
        while self.out.last() == Some(&b'0') {
            self.out.pop();
        }
    }

    /// An unknown part is omitted; the `T` before a time stays.
    pub(super) fn date_time(&mut self, value: DateTime) {
        let has_time = value.time.hour != 0xFF && value.time.minute != 0xFF;
        if value.date == Date::BLANK && !has_time {
            return self.null();
        }
        self.quoted(|text| {
            if value.date != Date::BLANK {
                text.bare_date(value.date);
            }
            if has_time {
                text.out.push(b'T');
                text.bare_time(value.time);
            }
        });
    }

    /// Appends a word of the protocol, or the number if there is no word.
    pub(super) fn code(&mut self, names: Names, number: u8) {
        match names::word(names, number) {
            Some(word) => self.quoted(|text| text.raw(word.as_bytes())),
            None => self.unsigned(number.into()),
        }
    }

    pub(super) fn base64(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        let start = self.out.len();
        self.out.resize(start + BASE64.encode_len(bytes.len()), 0);
        BASE64.encode_mut(bytes, self.out.get_mut(start..).unwrap_or_default());
        self.out.push(b'"');
    }

    /// Appends bytes that should be UTF-8; invalid bytes become the replacement character.
    pub(super) fn utf8(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        if bytes.is_ascii() {
            self.escaped(bytes);
        } else {
            for chunk in bytes.utf8_chunks() {
                self.escaped(chunk.valid().as_bytes());
                if !chunk.invalid().is_empty() {
                    self.character(char::REPLACEMENT_CHARACTER);
                }
            }
        }
        self.out.push(b'"');
    }

    /// Appends bytes as one character each: ASCII, and Latin-1 above it.
    pub(super) fn latin1(&mut self, bytes: &[u8]) {
        self.characters(bytes.iter().map(|byte| char::from(*byte)), bytes);
    }

    /// Appends `characters`, the decoded form of `bytes`. If all are ASCII, it copies `bytes`.
    pub(super) fn characters(&mut self, characters: impl Iterator<Item = char>, bytes: &[u8]) {
        self.out.push(b'"');
        if bytes.is_ascii() && !bytes.contains(&0x1B) {
            self.escaped(bytes);
        } else {
            characters.for_each(|character| self.character(character));
        }
        self.out.push(b'"');
    }

    fn character(&mut self, character: char) {
        self.escaped(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Appends UTF-8 with the necessary escapes.
    fn escaped(&mut self, mut bytes: &[u8]) {
        while let Some(at) = plain_end(bytes, 0) {
            let (plain, rest) = bytes.split_at(at);
            self.raw(plain);
            let Some((byte, behind)) = rest.split_first() else { return };
            match byte {
                b'"' => self.raw(b"\\\""),
                b'\\' => self.raw(b"\\\\"),
                b'\n' => self.raw(b"\\n"),
                b'\r' => self.raw(b"\\r"),
                b'\t' => self.raw(b"\\t"),
                byte => {
                    const HEX: &[u8; 16] = b"0123456789abcdef";
                    let digit = |n: u8| HEX[usize::from(n & 0x0F)];
                    self.raw(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(*byte)]);
                }
            }
            bytes = behind;
        }
        self.raw(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut JsonText<'_>)) -> String {
        let mut out = Vec::new();
        write(&mut JsonText::new(&mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers() {
        assert_eq!(text(|t| t.unsigned(u64::MAX)), "18446744073709551615");
        assert_eq!(text(|t| t.signed(i64::MIN)), "-9223372036854775808");
        assert_eq!(text(|t| t.signed(0)), "0");
        assert_eq!(text(|t| t.padded(65_535, 4)), "65535");
        assert_eq!(text(|t| t.padded(7, 2)), "07");
        for mantissa in [0, 1, -1, 5, 12_345, i64::MAX, i64::MIN] {
            for hint in 0..=30 {
                let real = Real { mantissa, hint: Hint(hint) };
                assert_eq!(text(|t| t.real(real)), real.to_string());
            }
        }
        assert_eq!(text(|t| t.real(Real::MINUS_INFINITY)), "\"-Inf\"");
        assert_eq!(text(|t| t.float(f64::NAN, f32::NAN)), "\"NaN\"");
        assert_eq!(text(|t| t.float(1e300, 1e300)), "1e300");
    }

    #[test]
    fn dates_and_times() {
        let date = |year, month, day| text(|t| t.date(Date { day, month, year }));
        assert_eq!(date(2024, 2, 29), "\"2024-02-29\"");
        assert_eq!(date(65_535, 12, 0), "\"65535-12\"");
        assert_eq!(date(7, 0, 0), "\"0007\"");
        let time = |time| text(|t| t.time(time));
        assert_eq!(time(Time { hour: 1, millisecond: 400, ..Time::default() }), "\"01:00:00.4\"");
        assert_eq!(time(Time { nanosecond: 1, ..Time::default() }), "\"00:00:00.000000001\"");
        assert_eq!(time(Time { hour: 23, second: 0xFF, ..Time::default() }), "\"23:00\"");
        assert_eq!(time(Time::BLANK), "null");
        let date = Date { day: 1, month: 2, year: 2003 };
        assert_eq!(text(|t| t.date_time(DateTime { date, time: Time::BLANK })), "\"2003-02-01\"");
        let noon = Time { hour: 12, ..Time::default() };
        assert_eq!(text(|t| t.date_time(DateTime { date: Date::BLANK, time: noon })), "\"T12:00:00\"");
    }

    #[test]
    fn strings() {
        assert_eq!(text(|t| t.utf8("a\"\\\n\u{1}é".as_bytes())), r#""a\"\\\n\u0001é""#);
        assert_eq!(text(|t| t.utf8(b"a\xFFb")), "\"a\u{FFFD}b\"");
        assert_eq!(text(|t| t.latin1(b"a\xE9\x1B")), r#""aé\u001b""#);
        assert_eq!(text(|t| t.base64(&[0, 1, 255])), "\"AAH/\"");
    }
}
