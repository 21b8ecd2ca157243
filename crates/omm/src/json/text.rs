//! JSON text, appended to a buffer.

use std::io::Write as _;
use std::net::Ipv4Addr;

use data_encoding::BASE64;

use super::names::{self, Names};
use super::scan::plain_end;
use super::short;
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

    /// Appends what `write` writes to the start of a buffer and returns the length of.
    #[inline]
    pub(super) fn in_place<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        let at = self.out.len();
        self.out.resize(at + N, 0);
        let len = self.out.last_chunk_mut().map_or(0, write);
        self.out.truncate(at + len);
    }

    /// Appends a short text; returns `false` if `write` returns `None`.
    #[inline]
    fn short<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> Option<usize>) -> bool {
        let at = self.out.len();
        self.out.extend_from_slice(&[0; N]);
        let len = self.out.last_chunk_mut().and_then(write);
        self.out.truncate(at + len.unwrap_or(0));
        len.is_some()
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

    /// Ends an object that began at `start` with the separator of its first member, which the bracket replaces.
    pub(super) fn end_members(&mut self, start: usize) {
        match self.out.get_mut(start) {
            Some(separator) => *separator = b'{',
            None => self.out.push(b'{'),
        }
        self.out.push(b'}');
    }

    /// Appends the name of a member, any text, after a separator.
    pub(super) fn any_member(&mut self, name: &[u8]) {
        self.out.push(b',');
        self.utf8(name);
        self.out.push(b':');
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

    /// Appends a value by `append`; blank is `null`.
    #[inline]
    pub(super) fn or_null<T>(&mut self, value: Option<T>, append: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => append(self, value),
            None => self.null(),
        }
    }

    pub(super) fn boolean(&mut self, value: bool) {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
    }

    pub(super) fn unsigned(&mut self, value: u64) {
        if !self.short(|room| short::unsigned(value, room)) {
            self.many_digits(value, 0);
        }
    }

    pub(super) fn signed(&mut self, value: i64) {
        if value < 0 {
            self.out.push(b'-');
        }
        self.unsigned(value.unsigned_abs());
    }

    #[cold]
    fn many_digits(&mut self, value: u64, places: usize) {
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
        if self.short(|room| short::real(value, room)) {
            return;
        }
        if hint <= Hint::ONE {
            if value.mantissa < 0 {
                self.out.push(b'-');
            }
            self.many_digits(value.mantissa.unsigned_abs(), usize::from(Hint::ONE.0 - hint.0));
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
        if self.short(|room| short::bare_time(value, 0, room)) {
            return;
        }
        for (part, before) in [(value.hour, ""), (value.minute, ":"), (value.second, ":")] {
            if part != 0xFF {
                self.raw(before.as_bytes());
                self.padded(part.into(), 2);
            }
        }
        let known = |part| if part > 999 { 0 } else { u32::from(part) };
        let fraction =
            known(value.millisecond) * 1_000_000 + known(value.microsecond) * 1_000 + known(value.nanosecond);
        if fraction != 0 && value.second != 0xFF {
            // Cannot fail: a vector accepts everything.
            let _ = write!(self.out, ".{fraction:09}");
            while self.out.pop_if(|digit| *digit == b'0').is_some() {}
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
        if self.plain(bytes) {
            return;
        }
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
        if self.plain(bytes) {
            return;
        }
        self.out.push(b'"');
        if bytes.is_ascii() && !bytes.contains(&0x1B) {
            self.escaped(bytes);
        } else {
            characters.for_each(|character| self.character(character));
        }
        self.out.push(b'"');
    }

    /// Appends at most eight bytes as a string, if they are ASCII that needs no escape; otherwise returns `false`.
    #[inline]
    fn plain(&mut self, bytes: &[u8]) -> bool {
        let Some(word) = short::word(bytes) else { return false };
        self.short(|room| short::plain(word, bytes.len(), room))
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
        // Around the numbers of eight digits, and with zeros at either end.
        for mantissa in
            [0, 1, -1, 5, 12_345, 1_000_000, 99_999_999, 100_000_000, -10_203_040, i64::MAX, i64::MIN]
        {
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
        assert_eq!(time(Time { hour: 200, minute: 59, second: 60, ..Time::default() }), "\"200:59:60\"");
        for (ns, fraction) in [(120_000_000, ".12"), (999_999_999, ".999999999"), (10, ".00000001"), (0, "")]
        {
            assert_eq!(time(Time::from_ns_of_day(ns)), format!("\"00:00:00{fraction}\""));
        }
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
        // A text of every length up to a word and beyond, plain and with each kind of byte that needs more at every place.
        for len in 0..=9 {
            let plain = &b"abcdefghi"[..len];
            assert_eq!(text(|t| t.utf8(plain)), format!("\"{}\"", str::from_utf8(plain).unwrap()));
            for at in 0..len {
                for (byte, escaped) in
                    [(b'"', "\\\""), (b'\\', "\\\\"), (0, "\\u0000"), (0x1F, "\\u001f"), (0xE9, "é")]
                {
                    let mut bytes = plain.to_vec();
                    bytes[at] = byte;
                    let expected: String = bytes
                        .iter()
                        .map(|of| if *of == byte { escaped.into() } else { char::from(*of).to_string() })
                        .collect();
                    assert_eq!(text(|t| t.latin1(&bytes)), format!("\"{expected}\""), "{bytes:?}");
                }
            }
        }
        assert_eq!(text(|t| t.latin1(b"a\xE9\x1B")), r#""aé\u001b""#);
        assert_eq!(text(|t| t.base64(&[0, 1, 255])), "\"AAH/\"");
    }
}
