//! JSON text, scanned in place: one pass checks that all of it is well-formed, then objects and arrays return their
//! parts as slices. There is no tree, so members may have any order, and only texts with escapes are allocated.
//! (Available parsers support neither the bare `Inf` and `NaN` of LSEG's library nor the position of a fault within a
//! value.)

use std::borrow::Cow;

use super::fault::{Fault, JsonProblem};
use super::short;

/// Maximum nesting depth of a text: containers of [`DEPTH_LIMIT`](crate::rwf::DEPTH_LIMIT) levels, each of which takes
/// up to four, and JSON in one of them.
const DEPTH: u32 = 100;
/// Maximum nesting depth of JSON inside a message.
const EMBEDDED_DEPTH: u32 = 32;
/// Maximum bytes to which the messages with several ids in one text may expand; each is read individually.
const MOST_REPEATED: usize = 16 << 20;

/// Messages of one text, in order. A Request or Update with several ids yields one message for each id; with several
/// names, each message has its own name. (A Close with several ids is one message, as in RWF.)
#[derive(Debug, Clone)]
pub struct Packed<'t> {
    items: JsonItems<'t>,
    single: Option<Raw<'t>>,
    /// Message with several ids, the remaining ids, and the number of ids before them.
    repeated: Option<(Raw<'t>, JsonItems<'t>, usize)>,
    /// Bytes to which messages with several ids may still expand.
    left: usize,
}

impl<'t> Packed<'t> {
    /// Parses a text with one message, or with an array of messages that may be empty.
    ///
    /// # Errors
    ///
    /// Fails if the text is not JSON, nests deeper than 100 levels, or has neither an object nor an array at its top.
    pub fn parse(text: &'t str) -> Result<Self, Fault> {
        let fault = |offset, what| Fault { problem: JsonProblem::Syntax(what), offset, id: 0 };
        check(text.as_bytes(), DEPTH, true).map_err(|(offset, what)| fault(offset, what))?;
        // The text contains one value and nothing else.
        let raw = Raw { text: text.trim_ascii(), offset: skip_blanks(text.as_bytes(), 0) };
        let single = match raw.token() {
            Token::Object => Some(raw),
            Token::Array => None,
            _ => return Err(fault(raw.offset, "expected a message or an array of messages")),
        };
        Ok(Self { items: raw.items(), single, repeated: None, left: MOST_REPEATED })
    }
}

/// Start and end of a part of a text.
type Span = (usize, usize);

/// Position in a text between two of its messages; see [`Packed::place`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedPlace {
    items: Span,
    single: Option<Span>,
    repeated: Option<(Span, Span, usize)>,
    left: usize,
}

impl<'t> Packed<'t> {
    /// Returns the place in the text from which [`resume`](Self::resume) continues; `None` at the end of the text.
    #[must_use]
    pub fn place(&self) -> Option<PackedPlace> {
        let repeated = self.repeated.as_ref().is_some_and(|(_, ids, _)| ids.clone().next().is_some());
        if !repeated && self.single.is_none() && self.items.clone().next().is_none() {
            return None;
        }
        let span = |text: &str, offset: usize| (offset, offset + text.len());
        let of_items = |items: &JsonItems<'t>| span(items.text, items.offset);
        let of_raw = |raw: &Raw<'t>| span(raw.text, raw.offset);
        Some(PackedPlace {
            items: of_items(&self.items),
            single: self.single.as_ref().map(of_raw),
            repeated: self.repeated.as_ref().map(|(raw, ids, passed)| (of_raw(raw), of_items(ids), *passed)),
            left: self.left,
        })
    }

    /// Continues at a place of the same text; the text is not checked again.
    #[must_use]
    pub fn resume(text: &'t str, place: &PackedPlace) -> Self {
        let raw = |(from, to): Span| Raw { text: text.get(from..to).unwrap_or_default(), offset: from };
        let items = |span| {
            let Raw { text, offset } = raw(span);
            JsonItems { text, offset }
        };
        Self {
            items: items(place.items),
            single: place.single.map(raw),
            repeated: place.repeated.map(|(whole, ids, passed)| (raw(whole), items(ids), passed)),
            left: place.left,
        }
    }
}

impl<'t> Iterator for Packed<'t> {
    type Item = Incoming<'t>;

    fn next(&mut self) -> Option<Incoming<'t>> {
        if let Some((raw, ids, passed)) = &mut self.repeated
            && let Some(id) = ids.next()
        {
            let incoming = Incoming { raw: *raw, part: Some(IdPart { id, place: *passed }) };
            *passed += 1;
            return Some(incoming);
        }
        self.repeated = None;
        let raw = self.single.take().or_else(|| self.items.next())?;
        match raw.repeated(self.left) {
            Some((ids, bytes)) => {
                self.left -= bytes;
                self.repeated = Some((raw, ids, 0));
                self.next()
            }
            None => Some(Incoming { raw, part: None }),
        }
    }
}

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A ping; answer it with a pong.
    Ping,
    /// The answer to a ping.
    Pong,
    /// The peer could not read one of our messages: [`Incoming::error_text`].
    Error,
    /// Any other message; [read](super::Converter::read) it.
    Message,
}

/// One unread message of a text.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'t> {
    raw: Raw<'t>,
    part: Option<IdPart<'t>>,
}

/// Position of this message among those that a message with several ids stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdPart<'t> {
    pub(super) id: Raw<'t>,
    /// Index, from 0.
    pub(super) place: usize,
}

impl<'t> Incoming<'t> {
    /// Returns the kind of the message.
    #[must_use]
    pub fn kind(&self) -> MessageKind {
        match self.raw.member("Type").and_then(Raw::string).as_deref() {
            Some("Ping") => MessageKind::Ping,
            Some("Pong") => MessageKind::Pong,
            Some("Error") => MessageKind::Error,
            _ => MessageKind::Message,
        }
    }

    /// Returns `true` if the key has the service as a number; `None` if it has no service.
    #[must_use]
    pub fn numbers_service(&self) -> Option<bool> {
        match self.raw.member("Key")?.member("Service")?.token() {
            Token::Primitive => Some(true),
            Token::String => Some(false),
            _ => None,
        }
    }

    /// Returns the text of the message, one object.
    #[must_use]
    pub const fn text(&self) -> &'t str {
        self.raw.text
    }

    /// Returns the stream id, or the first of several; 0 if unknown.
    #[must_use]
    pub fn id(&self) -> i32 {
        let id = self.part.map(|part| part.id).or_else(|| self.raw.member("ID"));
        let first = id.and_then(|id| if id.token() == Token::Array { id.items().next() } else { Some(id) });
        first.and_then(|id| id.text.parse().ok()).unwrap_or(0)
    }

    /// Returns `Text` of an [error](MessageKind::Error).
    #[must_use]
    pub fn error_text(&self) -> Option<Cow<'t, str>> {
        self.raw.member("Text").and_then(Raw::string)
    }

    pub(super) const fn raw(&self) -> Raw<'t> {
        self.raw
    }

    pub(super) const fn part(&self) -> Option<IdPart<'t>> {
        self.part
    }
}

/// Kind of a value, from its first character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Object,
    Array,
    String,
    Null,
    /// A number, `true`, `false`, or a number that JSON does not have.
    Primitive,
}

/// Value of a well-formed text, as a slice of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'t> {
    text: &'t str,
    /// Offset in the whole text.
    offset: usize,
}

impl<'t> Raw<'t> {
    pub(super) const fn text(self) -> &'t str {
        self.text
    }

    pub(super) const fn offset(self) -> usize {
        self.offset
    }

    pub(super) fn token(self) -> Token {
        match self.text.as_bytes() {
            [b'{', ..] => Token::Object,
            [b'[', ..] => Token::Array,
            [b'"', ..] => Token::String,
            b"null" => Token::Null,
            _ => Token::Primitive,
        }
    }

    /// Returns the name of the kind for faults.
    pub(super) fn kind_name(self) -> &'static str {
        match self.token() {
            Token::Object => "OBJECT",
            Token::Array => "ARRAY",
            Token::String => "STRING",
            Token::Null => "NULL",
            Token::Primitive => "PRIMITIVE",
        }
    }

    pub(super) fn is_null(self) -> bool {
        self.token() == Token::Null
    }

    /// Returns the members of an object; none for any other value.
    pub(super) fn members(self) -> Members<'t> {
        Members { rest: self.parts(Token::Object) }
    }

    /// Returns the first member with this name.
    pub(super) fn member(self, name: &str) -> Option<Self> {
        self.members().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Returns the items of an array; none for any other value.
    pub(super) fn items(self) -> JsonItems<'t> {
        self.parts(Token::Array)
    }

    /// Returns the ids of a message that stands for one message with each of them, and the bytes to which it expands.
    /// RWF has no such form for the message's class. A message that expands to more than `most` bytes returns `None`;
    /// its array is then a fault.
    fn repeated(self, most: usize) -> Option<(JsonItems<'t>, usize)> {
        let ids = self.member("ID").filter(|ids| ids.token() == Token::Array)?;
        let is_such = match self.member("Type") {
            None => true,
            Some(name) => matches!(name.text, r#""Request""# | r#""Update""# | "1" | "4"),
        };
        let count = ids.items().take(most / self.text.len().max(1) + 1).count();
        let bytes = count * self.text.len();
        (is_such && bytes <= most && count > 0).then(|| (ids.items(), bytes))
    }

    fn parts(self, token: Token) -> JsonItems<'t> {
        let inner = if self.token() == token { self.text.get(1..) } else { None };
        JsonItems { text: inner.unwrap_or_default(), offset: self.offset + 1 }
    }

    /// Returns a string without quotes and escapes.
    pub(super) fn string(self) -> Option<Cow<'t, str>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        // Without an escape before the closing quote, nothing needs replacement.
        let is_plain = plain_end(self.text.as_bytes(), 1) == Some(inner.len() + 1);
        Some(if is_plain { Cow::Borrowed(inner) } else { unescape(inner) })
    }
}

/// Members of an object in order.
#[derive(Debug, Clone)]
pub(super) struct Members<'t> {
    rest: JsonItems<'t>,
}

impl<'t> Iterator for Members<'t> {
    type Item = (Cow<'t, str>, Raw<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.rest.plain_string() {
            Some(key) => Cow::Borrowed(key),
            None => self.rest.next()?.string()?,
        };
        Some((key, self.rest.next()?))
    }
}

/// Items of an array in order, or names and values of an object in turn: the unread rest.
#[derive(Debug, Clone)]
pub(super) struct JsonItems<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> JsonItems<'t> {
    const NONE: Self = Self { text: "", offset: 0 };

    /// Returns the next value without quotes, if it is a string without escapes: the name of nearly every member. Otherwise
    /// it stays the next value.
    #[inline]
    fn plain_string(&mut self) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let start = 1 + next_value(bytes).filter(|start| bytes.get(*start) == Some(&b'"'))?;
        let end = plain_end(bytes, start).filter(|end| bytes.get(*end) == Some(&b'"'))?;
        let string = self.text.get(start..end)?;
        self.text = self.text.get(end + 1..)?;
        self.offset += end + 1;
        Some(string)
    }
}

/// Returns the start of the next value, or of the closing bracket: what is behind blanks and separators.
#[inline]
fn next_value(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| CLASSES[usize::from(*byte)] & SEPARATES == 0)
}

impl<'t> Iterator for JsonItems<'t> {
    type Item = Raw<'t>;

    /// Returns the next value, after blanks and the separator; `None` at the closing bracket.
    fn next(&mut self) -> Option<Raw<'t>> {
        let bytes = self.text.as_bytes();
        let start = next_value(bytes)?;
        if matches!(bytes.get(start), Some(b'}' | b']')) {
            *self = Self::NONE;
            return None;
        }
        let end = value_end(bytes, start);
        let raw = Raw { text: self.text.get(start..end)?, offset: self.offset + start };
        self.text = self.text.get(end..)?;
        self.offset += end;
        Some(raw)
    }
}

/// Stands between values.
const SEPARATES: u8 = 1;
/// A bracket, or the quote of a string, which may contain brackets.
const NESTS: u8 = 2;

/// The meaning of each byte outside strings; 0 for those of numbers and words.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let (separate, nest) = (b" \t\n\r,:", b"{}[]\"");
    let mut at = 0;
    while at < separate.len() {
        classes[separate[at] as usize] = SEPARATES;
        at += 1;
    }
    at = 0;
    while at < nest.len() {
        classes[nest[at] as usize] = NESTS;
        at += 1;
    }
    classes
};

/// Returns `true` if the bytes are JSON that may be embedded in another text.
pub(super) fn is_json(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_ok() && check(bytes, EMBEDDED_DEPTH, false).is_ok()
}

/// Returns the end of the value that begins at `at` of a well-formed text.
fn value_end(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at).unwrap_or(bytes.len()),
        Some(b'{' | b'[') => bracket_end(bytes, at),
        _ => word_end(bytes, at),
    }
}

/// Returns the position after the bracket that closes the one at `at`. It examines only brackets and strings, which may
/// contain brackets.
fn bracket_end(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0_u32;
    let mut at = at;
    while let Some(next) = position(bytes, at, nesting) {
        at = next + 1;
        match bytes.get(next) {
            Some(b'"') => at = string_end(bytes, next).unwrap_or(bytes.len()),
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') if depth <= 1 => return at,
            Some(b'}' | b']') => depth -= 1,
            // One of the other bytes that `nesting` finds.
            _ => {}
        }
    }
    bytes.len()
}

/// Returns the end of a number or a word of a well-formed text.
fn word_end(bytes: &[u8], at: usize) -> usize {
    position(bytes, at, ends_word).unwrap_or(bytes.len())
}

/// Returns the position after the closing quote of the string that begins at `at`; `None` without one.
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        at = plain_end(bytes, at)?;
        match bytes.get(at) {
            Some(b'"') => return Some(at + 1),
            Some(b'\\') => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the first position from `at` on of a byte that is not plain string content: a quote, a backslash, a control
/// character.
#[inline]
pub(super) fn plain_end(bytes: &[u8], at: usize) -> Option<usize> {
    position(bytes, at, special)
}

/// Returns the first position from `at` on of a byte that `find` finds among eight; see [`special`].
#[inline]
fn position(bytes: &[u8], at: usize, find: impl Fn(u64) -> u64) -> Option<usize> {
    let mut at = at;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = find(u64::from_le_bytes(*chunk));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    // Fewer than eight bytes, and behind them zero digits, which none of the functions finds.
    let rest = bytes.get(at..)?;
    let found = find(short::word(rest)? | all(b'0') << (8 * rest.len()));
    (found != 0).then(|| at + (found.trailing_zeros() / 8) as usize)
}

/// Returns a word of eight bytes of this value.
pub(super) const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// Finds bytes that are zero among eight, the first in the lowest byte: the lowest set bit is the top bit of the first such
/// byte, if its byte is below 0x80 ("Bit Twiddling Hacks", S. E. Anderson).
const fn zero(chunk: u64) -> u64 {
    chunk.wrapping_sub(all(1)) & !chunk
}

/// Finds bytes that are not plain string content among eight, the first in the lowest byte: the lowest set bit is the top
/// bit of the first such byte, and 0 means that there is none.
#[inline]
pub(super) const fn special(chunk: u64) -> u64 {
    let control = chunk.wrapping_sub(all(0x20)) & !chunk;
    (control | zero(chunk ^ all(b'"')) | zero(chunk ^ all(b'\\'))) & all(0x80)
}

/// Finds quotes and the four brackets among eight bytes, as [`special`] does, and few other bytes: `Y`, `y`, `_` and DEL differ
/// from a bracket in the bits that the brackets differ in.
#[inline]
const fn nesting(chunk: u64) -> u64 {
    (zero(chunk ^ all(b'"')) | zero(chunk & all(0xD9) ^ all(0x59))) & all(0x80)
}

/// Finds bytes among eight that stand behind a number or a word: blanks and control characters, a comma, a closing bracket.
#[inline]
const fn ends_word(chunk: u64) -> u64 {
    let blank = chunk.wrapping_sub(all(0x21)) & !chunk;
    let bracket = zero(chunk & all(0xDF) ^ all(b']'));
    (blank | bracket | zero(chunk ^ all(b','))) & all(0x80)
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).unwrap_or(rest.len())
}

/// Checks that all of `bytes` is one JSON value of at most `most_depth` levels; the error has the position and the
/// reason. With `words`, the numbers that JSON lacks are accepted too.
fn check(bytes: &[u8], most_depth: u32, words: bool) -> Result<(), (usize, &'static str)> {
    const CUT: &str = "the text ends before its end";
    // Bit `n` is set if level `n` is an object.
    let mut objects = 0_u128;
    let mut depth = 0;
    let mut at = skip_blanks(bytes, 0);
    loop {
        // At a value.
        match bytes.get(at).copied() {
            None => return Err((at, CUT)),
            Some(open @ (b'{' | b'[')) => {
                if depth == most_depth {
                    return Err((at, "too deeply nested"));
                }
                let is_object = open == b'{';
                objects = objects << 1 | u128::from(is_object);
                depth += 1;
                at = skip_blanks(bytes, at + 1);
                if bytes.get(at) == Some(&(open + 2)) {
                    // Empty: continues below, as after any value.
                    objects >>= 1;
                    depth -= 1;
                    at += 1;
                } else {
                    if is_object {
                        at = check_key(bytes, at)?;
                    }
                    continue;
                }
            }
            Some(b'"') => at = check_string(bytes, at)?,
            Some(_) => at = check_primitive(bytes, at, words)?,
        }
        // After a value.
        loop {
            at = skip_blanks(bytes, at);
            if depth == 0 {
                return if at == bytes.len() { Ok(()) } else { Err((at, "text behind the end")) };
            }
            let is_object = objects & 1 == 1;
            match bytes.get(at).copied() {
                None => return Err((at, CUT)),
                Some(b',') => {
                    at = skip_blanks(bytes, at + 1);
                    if is_object {
                        at = check_key(bytes, at)?;
                    }
                    break;
                }
                Some(close) if close == (if is_object { b'}' } else { b']' }) => {
                    objects >>= 1;
                    depth -= 1;
                    at += 1;
                }
                Some(_) => return Err((at, "expected a comma or a closing bracket")),
            }
        }
    }
}

/// Checks a member up to its colon; returns the position of its value.
fn check_key(bytes: &[u8], at: usize) -> Result<usize, (usize, &'static str)> {
    if bytes.get(at) != Some(&b'"') {
        return Err((at, "expected the name of a member"));
    }
    let at = skip_blanks(bytes, check_string(bytes, at)?);
    if bytes.get(at) != Some(&b':') {
        return Err((at, "expected a colon"));
    }
    Ok(skip_blanks(bytes, at + 1))
}

fn check_string(bytes: &[u8], start: usize) -> Result<usize, (usize, &'static str)> {
    let mut at = start + 1;
    loop {
        at = plain_end(bytes, at).ok_or((start, "a string without an end"))?;
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'"'), _) => return Ok(at + 1),
            (Some(b'\\'), Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => at += 2,
            (Some(b'\\'), Some(b'u')) if hex4(bytes, at + 2).is_some() => at += 6,
            (Some(b'\\'), _) => return Err((at, "an escape that there is not")),
            _ => return Err((at, "a control character in a string")),
        }
    }
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..)?.first_chunk::<4>()?;
    digits.iter().try_fold(0, |value, byte| Some(value << 4 | char::from(*byte).to_digit(16)?))
}

fn check_primitive(bytes: &[u8], at: usize, words: bool) -> Result<usize, (usize, &'static str)> {
    let is_end = |end: &usize| bytes.get(*end).is_none_or(|byte| CLASSES[usize::from(*byte)] != 0);
    if let Some(end) = number_end(bytes, at).filter(is_end) {
        return Ok(end);
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let known: &[&[u8]] = if words {
        &[b"null", b"true", b"false", b"Inf", b"-Inf", b"NaN"]
    } else {
        &[b"null", b"true", b"false"]
    };
    let word = known.iter().find(|word| rest.starts_with(word)).map(|word| at + word.len());
    word.filter(is_end).ok_or((at, "expected a value"))
}

/// Returns `true` if the text is a number as JSON writes it.
pub(super) fn is_number(text: &[u8]) -> bool {
    number_end(text, 0) == Some(text.len())
}

/// Returns the end of the number that begins at `at`.
fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    // At least one digit.
    let some_digits = |at: usize| Some(digits(at)).filter(|end| *end > at);
    let start = at + usize::from(is(at, b'-'));
    let mut end = some_digits(start)?;
    if is(start, b'0') && end > start + 1 {
        return None;
    }
    if is(end, b'.') {
        end = some_digits(end + 1)?;
    }
    if is(end, b'e') || is(end, b'E') {
        end = some_digits(end + 1 + usize::from(is(end + 1, b'+') || is(end + 1, b'-')))?;
    }
    Some(end)
}

/// Returns the characters of a string; half a surrogate pair becomes the replacement character.
fn unescape(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, behind)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut characters = behind.chars();
        match characters.next() {
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{C}'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let unit = hex4(behind.as_bytes(), 1).unwrap_or(0xFFFD);
                let low = if behind.get(5..7) == Some("\\u") { hex4(behind.as_bytes(), 7) } else { None };
                let (code, used) = match (unit, low) {
                    (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
                        (0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00), 11)
                    }
                    _ => (unit, 5),
                };
                out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                characters = behind.get(used..).unwrap_or_default().chars();
            }
            Some(other) => out.push(other),
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_well_formed(text: &str) -> bool {
        check(text.as_bytes(), DEPTH, false).is_ok()
    }

    /// Another parser gives the same result for each text.
    #[test]
    fn what_is_json() {
        let short = [
            "{}", "[]", " { } ", "[1]", "[1,2]", "-0", "0.5", "1e5", "1E+05", "-1.5e-3", "\"é\"", "5",
            "true", "", "{", "[", "[1", "[1,]", "[,1]", "{\"a\"}", "{\"a\":}", "{a:1}", "{1:1}", "01", "1.",
            ".5", "-", "1e", "+1", "tru", "nulll", "\"", "\"\\x\"", "\"\n\"", "[1}", "{]", "1 2", "[] []",
            "[1 2]", "Inf", "[NaN]", "]", "}", ":", ",", "[:1]",
        ];
        let long = [
            "{\"a\":1}",
            "{\"a\":{\"b\":[true,false,null]}}",
            "\"\\u00e9\\n\\/\"",
            "[[],{},[{}]]",
            "\n[\t1\r]",
            "{\"a\":1,}",
            "\"\\u12\"",
            "{\"a\":1 \"b\":2}",
            "{\"a\":-Inf}",
            "{\"a\"::1}",
            "{\"a\":1,,\"b\":2}",
            "[\"a\":1]",
            "{\"a\",1}",
        ];
        let mut counts = [0; 2];
        for text in short.into_iter().chain(long) {
            let is_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(is_well_formed(text), is_json, "{text}");
            counts[usize::from(is_json)] += 1;
        }
        assert_eq!(counts, [41, 18]);
        assert!(check(b"[Inf,-Inf,NaN]", DEPTH, true).is_ok());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(is_well_formed(&nested(100)));
        assert_eq!(check(nested(101).as_bytes(), DEPTH, true), Err((100, "too deeply nested")));
        assert!(is_json(nested(32).as_bytes()) && !is_json(nested(33).as_bytes()));
        assert!(check("[".repeat(1_000_000).as_bytes(), DEPTH, true).is_err());
    }

    #[test]
    fn parts_are_where_they_lie() {
        let text =
            r#" [ {"ID" : 7, "a":[1,"]\"",{}], "Type":"Ping"} , {"ID":[8,9],"Type":5,"b\u00e9":null},5]"#;
        let messages: Vec<_> = Packed::parse(text).unwrap().collect();
        assert_eq!(messages.len(), 3);
        assert_eq!((messages[0].id(), messages[0].kind()), (7, MessageKind::Ping));
        assert_eq!((messages[1].id(), messages[1].kind()), (8, MessageKind::Message));
        assert_eq!((messages[2].id(), messages[2].kind()), (0, MessageKind::Message));
        let items: Vec<_> = messages[0].raw().member("a").unwrap().items().map(|item| item.text).collect();
        assert_eq!(items, ["1", r#""]\"""#, "{}"]);
        let null = messages[1].raw().member("bé").unwrap();
        assert!(null.is_null() && text[null.offset..].starts_with("null"));
        assert!(Packed::parse("[]").unwrap().next().is_none());
    }

    #[test]
    fn several_ids_are_several_messages_if_they_are_not_too_many() {
        let ids = |text: &str| Packed::parse(text).unwrap().map(|message| message.id()).collect::<Vec<_>>();
        assert_eq!(
            ids(r#"[{"ID":[5,6]},{"ID":7},{"Type":"Update","ID":[8]},{"Type":4,"ID":[9,1]}]"#),
            [5, 6, 7, 8, 9, 1]
        );
        assert_eq!(
            ids(r#"[{"ID":[5,6],"Type":"Close"},{"ID":[]},{"ID":[7,8],"Type":"Generic"}]"#),
            [5, 0, 7]
        );
        let many = |count: usize| format!(r#"{{"ID":[{}1]}}"#, "1,".repeat(count - 1));
        assert_eq!(ids(&many(2_000)).len(), 2_000);
        assert_eq!(ids(&many(10_000)).len(), 1);
        let [one, all] = [many(2_000), [(); 5].map(|()| many(2_000)).join(",")];
        assert_eq!(ids(&format!("[{one},{one},{all}]")).len(), 2 * 2_000 + 5);
    }

    /// Scanning eight bytes at once finds the same position as one by one.
    #[test]
    fn strings_end_where_they_end() {
        for len in 0..20 {
            for at in 0..len {
                for byte in (0..=u8::MAX).filter(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
                    for stop in [b'"', b'\\', 0, 0x1F] {
                        let mut bytes = vec![byte; len];
                        assert_eq!(plain_end(&bytes, 0), None);
                        bytes[at] = stop;
                        assert_eq!(plain_end(&bytes, 0), Some(at), "{bytes:?}");
                    }
                }
            }
        }
    }

    /// The same for brackets and for the ends of numbers and words, in bytes that stand where they are looked for.
    #[test]
    fn brackets_and_ends_of_words_are_where_they_are() {
        let finds = |byte: u8, find: fn(u64) -> u64| {
            let is_found = |at: &usize| {
                let mut bytes = [b'0'; 20];
                bytes[*at] = byte;
                position(&bytes, 0, find) == Some(*at)
            };
            let count = (0..20).filter(is_found).count();
            assert!(count == 0 || count == 20, "{byte} is found at {count} places of 20");
            count > 0
        };
        for byte in 0..=u8::MAX {
            assert_eq!(finds(byte, nesting), b"{}[]\"Yy_\x7F".contains(&byte), "{byte}");
            assert_eq!(finds(byte, ends_word), byte <= b' ' || b",]}".contains(&byte), "{byte}");
        }
    }

    #[test]
    fn escapes() {
        let string = |text: &str| Raw { text, offset: 0 }.string().unwrap().into_owned();
        assert_eq!(string(r#""\ud83d\ude00\u20ac\b\f\n\r\t\/\\\"""#), "😀€\u{8}\u{c}\n\r\t/\\\"");
        assert_eq!(string(r#""\ud83d\u0041 \ude00 \ud83d""#), "\u{FFFD}A \u{FFFD} \u{FFFD}");
    }
}
