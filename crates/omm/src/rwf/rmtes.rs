//! RMTES strings and other text (RWF chapter 3, "RMTES").
//!
//! Current feeds use ASCII, Reuters Basic 2 (nearly Latin-1) in the right half, and UTF-8 after the escape `1B 25 30`.
//! This module decodes those into characters; for older character sets the raw bytes are available.

use std::fmt;

/// Escape: from here to the end of the field the text is UTF-8.
const UTF8: &[u8] = &[0x1B, 0x25, 0x30];

/// ASCII or UTF-8 bytes for display: control characters, which a terminal would execute, and bytes that are not UTF-8
/// show as `�`; trailing zero bytes, the padding of arrays, are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text<'a>(pub &'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let text = self.0.get(..end).unwrap_or_default();
        utf8_characters(text).try_for_each(|character| write_char(f, character))
    }
}

/// Bytes of an RMTES string as received.
///
/// Formatting is human-readable, under the rules of [`Text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rmtes<'a>(pub &'a [u8]);

/// Escape that only a partial update has.
enum Escape {
    /// `ESC [ n \``: write from byte `n` on.
    Position(usize),
    /// `ESC [ n b`: repeat the byte before `n` more times.
    Repeat(usize),
}

impl<'a> Rmtes<'a> {
    /// Returns `true` if this value overwrites parts of the previous string instead of replacing it.
    #[must_use]
    pub fn is_partial(self) -> bool {
        let mut rest = self.0;
        while !rest.is_empty() && !rest.starts_with(UTF8) {
            if escape(rest, true).is_some() {
                return true;
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        false
    }

    /// Applies this value to `cached`, the raw bytes of the string so far.
    ///
    /// A whole value replaces the string. A partial value overwrites from the positions that it names; the cached
    /// string may grow (a gap is filled with spaces) and never shrinks. Bytes beyond the capacity of the cache, which
    /// is the length that the dictionary gives the field, are dropped: the result is then `false`.
    pub fn apply(self, cached: &mut RmtesCache<'_>) -> bool {
        if !self.is_partial() {
            cached.len = 0;
            return self.0.iter().enumerate().all(|(at, byte)| cached.put(at, *byte));
        }
        // In a UTF-8 string 0x9B is part of a character, not the short form of ESC [.
        let short_form = !cached.bytes().starts_with(UTF8);
        let (mut rest, mut at, mut is_whole) = (self.0, 0, true);
        let mut is_utf8 = false;
        let mut previous = None;
        while let Some((&byte, behind)) = rest.split_first() {
            is_utf8 |= rest.starts_with(UTF8);
            match escape(rest, short_form).filter(|_| !is_utf8) {
                Some((Escape::Position(place), behind)) => {
                    at = place;
                    rest = behind;
                }
                Some((Escape::Repeat(times), behind)) => {
                    if let Some(byte) = previous {
                        // At the capacity nothing more is stored, so the loop ends there for any `times`.
                        for _ in 0..times {
                            if !cached.put(at, byte) {
                                is_whole = false;
                                break;
                            }
                            at += 1;
                        }
                    }
                    rest = behind;
                }
                None => {
                    is_whole &= cached.put(at, byte);
                    at = at.saturating_add(1);
                    previous = Some(byte);
                    rest = behind;
                }
            }
        }
        is_whole
    }

    /// Returns the text: ASCII, the right half of Reuters Basic 2 and UTF-8 as their characters, control characters and
    /// other escapes unchanged. Escapes that select one of those character sets are omitted.
    #[must_use]
    pub fn to_text(self) -> String {
        let mut text = String::with_capacity(self.0.len());
        text.extend(self.characters());
        text
    }

    /// Returns the characters of [`Rmtes::to_text`], one by one.
    pub(crate) fn characters(self) -> impl Iterator<Item = char> + use<'a> {
        let (plain, utf8) = self.halves();
        Characters(plain).chain(utf8_characters(utf8))
    }

    /// Returns the bytes before the switch to UTF-8, and the bytes after it.
    fn halves(self) -> (&'a [u8], &'a [u8]) {
        let switch = self.0.windows(UTF8.len()).position(|window| window == UTF8);
        match switch.and_then(|at| self.0.split_at_checked(at)) {
            Some((plain, utf8)) => (plain, utf8.get(UTF8.len()..).unwrap_or_default()),
            None => (self.0, &[]),
        }
    }
}

impl fmt::Display for Rmtes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.characters().try_for_each(|character| write_char(f, character))
    }
}

/// Bytes of a string to which updates are applied, in the owner's buffer.
///
/// ```
/// use tapeline_omm::rwf::{Rmtes, RmtesCache};
///
/// let mut room = [0; 16];
/// let mut cache = RmtesCache::new(&mut room);
/// assert!(Rmtes(b"ABCDEFGH").apply(&mut cache));
/// assert!(Rmtes(b"\x1b[5`XY").apply(&mut cache));
/// assert_eq!(cache.bytes(), b"ABCDEXYH");
/// ```
#[derive(Debug)]
pub struct RmtesCache<'a> {
    room: &'a mut [u8],
    len: usize,
}

impl<'a> RmtesCache<'a> {
    /// Creates an empty string with the capacity of `room`.
    #[must_use]
    pub const fn new(room: &'a mut [u8]) -> Self {
        Self { room, len: 0 }
    }

    /// Creates a string whose first `len` bytes exist already; `len` is limited to the capacity.
    #[must_use]
    pub fn with_len(room: &'a mut [u8], len: usize) -> Self {
        let len = len.min(room.len());
        Self { room, len }
    }

    /// Returns the string.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.room.get(..self.len).unwrap_or_default()
    }

    /// Returns the length of the string, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the string is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stores a byte at a position, after spaces up to there if necessary; `false` beyond the capacity.
    fn put(&mut self, at: usize, byte: u8) -> bool {
        let Some(end) = at.checked_add(1) else { return false };
        let Some(room) = self.room.get_mut(..end) else { return false };
        if let Some(hole) = room.get_mut(self.len..) {
            hole.fill(b' ');
        }
        if let Some(place) = room.last_mut() {
            *place = byte;
        }
        self.len = self.len.max(end);
        true
    }
}

/// Iterator over the characters of bytes that are not UTF-8.
struct Characters<'a>(&'a [u8]);

impl Iterator for Characters<'_> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        // These sets are in place in the initial state, and the reference skips these escapes too.
        while let [0x1B, b'(' | b')', b'1' | b'B' | b'I' | b'J', rest @ ..]
        | [0x1B, b'*', b'2', rest @ ..]
        | [0x1B, b'+', b'3', rest @ ..] = self.0
        {
            self.0 = rest;
        }
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(basic_2(*byte))
    }
}

/// Returns the character of a byte: ASCII on the left, Reuters Basic 2 on the right, as the reference shows each of the
/// 256 bytes. That is Latin-1 with a few exceptions; bytes without a character show as `_`. (Control characters of the
/// right half, which the reference shows as `ý`, are unchanged.)
const fn basic_2(byte: u8) -> char {
    match byte {
        0xA4 | 0xA6 | 0xB4 | 0xD0 | 0xF0 => '_',
        0xA8 => '\u{A4}',
        0xAC => '\u{215B}',
        0xAD => '\u{215C}',
        0xAE => '\u{215D}',
        0xAF => '\u{215E}',
        0xB8 => '\u{2407}',
        0xD7 => '\u{152}',
        0xDD => '\u{178}',
        0xDE => '\u{21E7}',
        0xF7 => '\u{153}',
        0xFD => '\u{FF}',
        0xFE => '\u{21E9}',
        _ => byte as char,
    }
}

/// Returns `text` as the bytes of an RMTES string: ASCII and Reuters Basic 2 if these have every character, else UTF-8
/// after its escape. Escapes in the text stay escapes.
pub(crate) fn encode<'a>(text: &'a str, room: &'a mut Vec<u8>) -> Rmtes<'a> {
    if text.is_ascii() {
        return Rmtes(text.as_bytes());
    }
    room.clear();
    // After the escape everything is UTF-8 already.
    let is_switched = text.as_bytes().windows(UTF8.len()).any(|window| window == UTF8);
    if is_switched
        || !text.chars().all(|character| basic_2_byte(character).map(|byte| room.push(byte)).is_some())
    {
        room.clear();
        if !is_switched {
            room.extend_from_slice(UTF8);
        }
        room.extend_from_slice(text.as_bytes());
    }
    Rmtes(room)
}

/// Returns the byte of a character.
fn basic_2_byte(character: char) -> Option<u8> {
    match u8::try_from(character) {
        Ok(byte) if basic_2(byte) == character => Some(byte),
        _ => (0x80..=0xFF).find(|byte| basic_2(*byte) == character),
    }
}

/// Returns a position or repetition escape at the start of `bytes`, and the bytes after it.
fn escape(bytes: &[u8], short_form: bool) -> Option<(Escape, &[u8])> {
    let mut rest = match bytes {
        [0x1B, b'[', rest @ ..] => rest,
        [0x9B, rest @ ..] if short_form => rest,
        _ => return None,
    };
    let mut number = None;
    while let [digit @ b'0'..=b'9', behind @ ..] = rest {
        let value: usize = number.unwrap_or(0);
        number = Some(value.saturating_mul(10).saturating_add(usize::from(digit - b'0')));
        rest = behind;
    }
    match (number, rest) {
        (Some(number), [b'`', behind @ ..]) => Some((Escape::Position(number), behind)),
        (Some(number), [b'b', behind @ ..]) => Some((Escape::Repeat(number), behind)),
        _ => None,
    }
}

/// Returns the characters of UTF-8; invalid bytes become the replacement character.
fn utf8_characters(bytes: &[u8]) -> impl Iterator<Item = char> {
    bytes.utf8_chunks().flat_map(|chunk| {
        let is_cut = !chunk.invalid().is_empty();
        chunk.valid().chars().chain(is_cut.then_some(char::REPLACEMENT_CHARACTER))
    })
}

fn write_char(f: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    use fmt::Write;
    f.write_char(if character.is_control() { char::REPLACEMENT_CHARACTER } else { character })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(cached: &str, value: &[u8]) -> String {
        let mut room = [0; 255];
        room[..cached.len()].copy_from_slice(cached.as_bytes());
        let mut cached = RmtesCache::with_len(&mut room, cached.len());
        assert!(Rmtes(value).apply(&mut cached));
        String::from_utf8(cached.bytes().to_vec()).unwrap()
    }

    #[test]
    fn partial_updates() {
        assert_eq!(applied("ABCDEFGH", b"\x1b[5`XY"), "ABCDEXYH");
        assert_eq!(applied("ABCDEFGHI", b"\x9b3`QQ\x1b[8`Z"), "ABCQQFGHZ");
        assert_eq!(applied("", b"xA\x1b[4b"), "xAAAAA");
        assert_eq!(applied("ABCDEFGH", b"xA\x1b[1b"), "xAADEFGH");
        assert_eq!(applied("AB", b"\x1b[4`Z"), "AB  Z");
        assert_eq!(applied("ABCDEFGH", b"new"), "new");
        assert_eq!(applied("AB", b"\x1b[1b"), "AB");
    }

    #[test]
    fn a_partial_update_is_bounded() {
        let mut room = *b"AB---";
        let mut cached = RmtesCache::with_len(&mut room, 2);
        assert!(!Rmtes(b"x\x1b[99999999999999999999999b").apply(&mut cached));
        assert_eq!(cached.bytes(), b"xxxxx");
        assert!(!Rmtes(b"\x1b[18446744073709551615`x").apply(&mut cached));
        assert_eq!(cached.bytes(), b"xxxxx");
        assert!(!Rmtes(b"longer").apply(&mut RmtesCache::new(&mut room[..3])));
        assert_eq!(&room, b"lonxx");
    }

    #[test]
    fn utf8_text_is_not_searched_for_escapes() {
        // U+4E5B ends in 0x9B.
        let value = b"\x1b%0\xE4\xB9\x9B3`";
        assert!(!Rmtes(value).is_partial());
        let mut room = [0; 16];
        let mut cached = RmtesCache::new(&mut room);
        assert!(Rmtes(b"\x1b%0\xE4\xB9\x9A").apply(&mut cached));
        assert!(Rmtes(b"\x1b[3`\xE4\xB9\x9B5`").apply(&mut cached));
        assert_eq!(Rmtes(cached.bytes()).to_string(), "\u{4E5B}5`");
    }

    #[test]
    fn what_people_see() {
        assert_eq!(Rmtes(b"a\xE9\xA3").to_string(), "a\u{E9}\u{A3}");
        assert_eq!(Rmtes(b"\x1b%0\xE4\xB8\xAD\xE6\x96\x87 \xE2\x82\xAC").to_string(), "中文 €");
        assert_eq!(Rmtes(b"a\x1b[2Jb").to_string(), "a�[2Jb");
        assert_eq!(Rmtes(b"a\x1b[2Jb").to_text(), "a\u{1b}[2Jb");
        assert_eq!(Rmtes(b"\xDE1\xAC \x82\xA4\xFD").to_text(), "\u{21E7}1\u{215B} \u{82}_\u{FF}");
        assert_eq!(
            Rmtes(b"\xA4\xA6\xA8\xAC\xAD\xAE\xAF\xB4\xB8\xD0\xD7\xDD\xDE\xF0\xF7\xFD\xFE\xA3\xDF").to_text(),
            "__\u{A4}\u{215B}\u{215C}\u{215D}\u{215E}_\u{2407}_\u{152}\u{178}\u{21E7}_\u{153}\u{FF}\u{21E9}\u{A3}\u{DF}"
        );
        assert_eq!(Rmtes(b"\x1b)1a\x1b(B\xE9").to_text(), "a\u{E9}");
        assert_eq!(Text(b"a\0\0").to_string(), "a");
        assert_eq!(Text(b"a\xFFb\x07").to_string(), "a�b�");
    }
}
