//! The bytes to decode, from every source.

use std::fmt;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use tapeline_console::{Hinted, paths};

const MOST: u64 = 1 << 30;
/// Maximum length of the hexadecimal text of a message.
const MOST_TEXT: usize = 64 << 20;

/// One message, or a text with several.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) place: Origin,
    pub(super) content: Content,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    Text(String),
}

/// Whether text is JSON with messages. No encoded message begins with `{` or `[`, as the header length would exceed
/// twenty thousand bytes, and no hexadecimal text does.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '['])
}

#[derive(Debug)]
pub(super) enum Found {
    Pieces(Vec<Piece>),
    /// A capture, with its name.
    Capture(String, Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) struct Origin {
    source: String,
    /// For text: number of the first line, from 1.
    line: Option<usize>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

/// Parses hexadecimal digits from the command line.
pub(super) fn word(text: &str) -> anyhow::Result<Piece> {
    let place = Origin { source: "the bytes on the command line".to_owned(), line: None };
    if is_json(text) {
        return Ok(Piece { place, content: Content::Text(text.to_owned()) });
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match hex(digits) {
        Ok(bytes) => Ok(Piece { place, content: Content::Bytes(bytes) }),
        Err(fault) => {
            let shown: String = text.chars().take(40).collect();
            let hint = "write pairs of hexadecimal digits, or the name of an existing file";
            Err(Hinted::new(format!("'{shown}' is neither a file nor hexadecimal text: {fault}"), hint)
                .into())
        }
    }
}

pub(super) fn file(path: &Path, lines: bool) -> anyhow::Result<Found> {
    let source = paths::shown(&path).to_string();
    let size = std::fs::metadata(path).with_context(|| format!("cannot read {source}"))?.len();
    if size > MOST {
        anyhow::bail!("{source} has {size} bytes; {MOST} can be decoded at a time");
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {source}"))?;
    found(source, bytes, lines)
}

pub(super) fn standard_input(lines: bool) -> anyhow::Result<Found> {
    let mut bytes = Vec::new();
    std::io::stdin().take(MOST).read_to_end(&mut bytes).context("cannot read standard input")?;
    found("standard input".to_owned(), bytes, lines)
}

/// Magic numbers of captures (pcap of either byte order and unit, pcapng) and of Zstandard around them. No message
/// begins with them: its header would have more than two thousand bytes.
const CAPTURES: [[u8; 4]; 6] = [
    [0xD4, 0xC3, 0xB2, 0xA1],
    [0xA1, 0xB2, 0xC3, 0xD4],
    [0x4D, 0x3C, 0xB2, 0xA1],
    [0xA1, 0xB2, 0x3C, 0x4D],
    [0x0A, 0x0D, 0x0D, 0x0A],
    [0x28, 0xB5, 0x2F, 0xFD],
];

fn found(source: String, bytes: Vec<u8>, lines: bool) -> anyhow::Result<Found> {
    let is_gzip = bytes.starts_with(&[0x1F, 0x8B, 0x08]);
    if is_gzip || bytes.first_chunk().is_some_and(|start: &[u8; 4]| CAPTURES.contains(start)) {
        return Ok(Found::Capture(source, bytes));
    }
    Ok(Found::Pieces(pieces(source, bytes, lines)?))
}

/// Text of hexadecimal digits is decoded as such: a message begins with the length of its header, and two ASCII digits
/// there would be a header of more than twelve thousand bytes.
fn pieces(source: String, bytes: Vec<u8>, lines: bool) -> anyhow::Result<Vec<Piece>> {
    if bytes.is_empty() {
        return Err(Hinted::new(format!("{source} is empty"), "").into());
    }
    if let Some(text) = str::from_utf8(&bytes).ok().filter(|text| is_json(text)) {
        let place = |line| Origin { source: source.clone(), line };
        let piece = |line, text: &str| Piece { place: place(line), content: Content::Text(text.to_owned()) };
        return Ok(match lines {
            false => vec![piece(None, text)],
            true => {
                let each = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
                each.map(|(line, number)| piece(Some(number), line)).collect()
            }
        });
    }
    let is_text = bytes.iter().all(|byte| byte.is_ascii_hexdigit() || byte.is_ascii_whitespace());
    let Some(text) = str::from_utf8(&bytes).ok().filter(|_| is_text) else {
        let place = Origin { source, line: None };
        return Ok(vec![Piece { place, content: Content::Bytes(bytes) }]);
    };
    let mut pieces = Vec::new();
    let mut gathered = String::new();
    let mut first = 1;
    let ends = text.lines().map(Some).chain([None]);
    for (index, line) in ends.enumerate() {
        let is_end = lines || line.is_none_or(|line| line.trim().is_empty());
        let line = line.unwrap_or_default();
        if gathered.is_empty() {
            first = index + 1;
        }
        gathered.push_str(line);
        if gathered.len() > MOST_TEXT {
            anyhow::bail!("{source}:{first}: more than {MOST_TEXT} digits for one message");
        }
        if is_end && !gathered.trim().is_empty() {
            let place = Origin { source: source.clone(), line: Some(first) };
            let bytes = hex(&gathered).map_err(|fault| anyhow::anyhow!("{place}: {fault}"))?;
            pieces.push(Piece { place, content: Content::Bytes(bytes) });
        }
        if is_end {
            gathered.clear();
        }
    }
    Ok(pieces)
}

/// Parses pairs of hexadecimal digits, with blanks anywhere.
fn hex(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut high = None;
    for (at, digit) in text.char_indices().filter(|(_, digit)| !digit.is_whitespace()) {
        let value = digit.to_digit(16).ok_or_else(|| {
            format!("'{}' at character {} is not a hexadecimal digit", digit.escape_debug(), at + 1)
        })? as u8;
        match high.take() {
            None => high = Some(value),
            Some(high) => bytes.push(high << 4 | value),
        }
    }
    match high {
        Some(_) => Err("the number of hexadecimal digits is odd".to_owned()),
        None if bytes.is_empty() => Err("there is nothing".to_owned()),
        None => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &str, lines: bool) -> Vec<(String, Vec<u8>)> {
        let pieces = pieces("here".to_owned(), text.as_bytes().to_vec(), lines).unwrap();
        let bytes = |content| match content {
            Content::Bytes(bytes) => bytes,
            Content::Text(text) => text.into_bytes(),
        };
        pieces.into_iter().map(|piece| (piece.place.to_string(), bytes(piece.content))).collect()
    }

    #[test]
    fn text_is_one_message_or_several() {
        let text = "0102\n03 04\n\n05\n";
        assert_eq!(taken(text, false), [("here:1".into(), vec![1, 2, 3, 4]), ("here:4".into(), vec![5])]);
        let each = [("here:1".into(), vec![1, 2]), ("here:2".into(), vec![3, 4]), ("here:4".into(), vec![5])];
        assert_eq!(taken(text, true), each);
        assert_eq!(taken("\u{1}\u{2}", false), [("here".into(), vec![1, 2])]);
        let json = "\n{\n\n}\n";
        assert_eq!(taken(json, false), [("here".into(), json.as_bytes().to_vec())]);
        assert_eq!(
            taken("{}\n\n[]\n", true),
            [("here:1".into(), b"{}".to_vec()), ("here:3".into(), b"[]".to_vec())]
        );
    }

    #[test]
    fn what_is_no_text_of_digits_says_where() {
        assert_eq!(hex("01 0g"), Err("'g' at character 5 is not a hexadecimal digit".to_owned()));
        assert_eq!(hex("012"), Err("the number of hexadecimal digits is odd".to_owned()));
        assert!(word("nosuchfile").unwrap_err().to_string().contains("is neither a file"));
        assert!(
            pieces("here".to_owned(), b"01\n0".to_vec(), true).unwrap_err().to_string().contains("here:2")
        );
    }
}
