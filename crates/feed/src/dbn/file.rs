//! Files of records.

use super::damage::Damage;
use super::metadata::{self, Metadata};
use super::record::{HEADER_BYTES, RecordKind, TS_OUT_BYTES};
use crate::capture::Error;
use crate::capture::window::Window;

/// Stands for "the length of any version" if the version is unknown.
const ANY_VERSION: u8 = u8::MAX;
/// Maximum length in words; the greater value has a special meaning.
const LONGEST: u8 = ANY_VERSION - 1;

/// Returns `true` if a file with this start contains records: with metadata, or as a fragment, whose first record must be of a known kind with a
/// length of that kind.
pub(crate) fn recognise(start: &[u8]) -> bool {
    if start.starts_with(metadata::MAGIC) {
        return true;
    }
    match start {
        [words, kind, ..] => {
            start.len() >= HEADER_BYTES && RecordKind(*kind).may_have(usize::from(*words) * 4)
        }
        _ => false,
    }
}

/// The records of a file, in order, and its metadata.
#[derive(Debug)]
pub struct File<'r> {
    window: Window<'r>,
    metadata: Option<Box<Metadata>>,
    /// Length of a record of each kind, in words of four bytes; 0 for unknown kinds.
    words: Box<[u8; 256]>,
    /// Bytes of the record returned last, which the next call skips.
    behind: usize,
    /// Bytes of an incomplete record at the end of the file.
    unfinished: usize,
    records: u64,
    done: bool,
}

impl<'r> File<'r> {
    /// Reads the metadata, if there are any.
    pub(crate) fn open(mut window: Window<'r>) -> Result<Self, Error> {
        let metadata = if window.bytes().starts_with(metadata::MAGIC) {
            Some(Box::new(metadata::read(&mut window)?))
        } else {
            None
        };
        let words = Box::new(words(metadata.as_deref()));
        Ok(Self { window, metadata, words, behind: 0, unfinished: 0, records: 0, done: false })
    }

    /// Returns the bytes of the next record, or `None` at the end and after an error. Their number is that of the header and of the record's kind,
    /// so that [`decode`](super::decode) can read them.
    ///
    /// # Errors
    /// The stream fails, or a record is cut or has an impossible length; nothing can be read after that.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from the file")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        self.window.step(std::mem::take(&mut self.behind));
        let length = match self.window.bytes() {
            [words @ 1..=LONGEST, kind, ..] if self.words[usize::from(*kind)] == *words => {
                usize::from(*words) * 4
            }
            _ => match self.length()? {
                Some(length) => length,
                None => return Ok(None),
            },
        };
        if self.window.bytes().len() < length {
            self.whole(length)?;
        }
        self.behind = length;
        self.records += 1;
        Ok(self.window.bytes().get(..length))
    }

    /// Returns the bytes behind the record returned last, as far as they are in memory: what comes next, for those who can prepare for it.
    #[inline]
    #[must_use]
    pub fn ahead(&self) -> &[u8] {
        self.window.bytes().get(self.behind..).unwrap_or_default()
    }

    /// Returns the length of a record that has not exactly the expected one, or is not in the window yet; `None` at the end.
    #[cold]
    fn length(&mut self) -> Result<Option<usize>, Error> {
        if self.done {
            return Ok(None);
        }
        let place = self.window.place();
        let held = match self.window.fill(HEADER_BYTES) {
            Ok(held) => held,
            Err(error) => {
                self.done = true;
                return Err(error);
            }
        };
        let &[words, kind, ..] = held else {
            self.done = true;
            if held.is_empty() {
                return Ok(None);
            }
            return Err(Error::Records { place, source: Damage::Cut { held: 1, wanted: HEADER_BYTES } });
        };
        let (kind, length) = (RecordKind(kind), usize::from(words) * 4);
        let damage = if length < HEADER_BYTES {
            Damage::Impossible { length }
        } else {
            match self.words[usize::from(kind.0)] {
                0 => return Ok(Some(length)),
                ANY_VERSION if kind.may_have(length) => return Ok(Some(length)),
                ANY_VERSION => Damage::Length { kind, length, wanted: None },
                right if right == words => return Ok(Some(length)),
                right => Damage::Length { kind, length, wanted: Some(usize::from(right) * 4) },
            }
        };
        self.done = true;
        Err(Error::Records { place, source: damage })
    }

    /// Fills the window until it contains the whole record.
    #[cold]
    fn whole(&mut self, length: usize) -> Result<(), Error> {
        let place = self.window.place();
        let error = match self.window.fill(length) {
            Ok(held) if held.len() >= length => return Ok(()),
            Ok(held) => Error::Records { place, source: Damage::Cut { held: held.len(), wanted: length } },
            Err(error) => error,
        };
        self.done = true;
        // The window is consumed, so that a further call finds nothing.
        self.unfinished = self.window.bytes().len();
        self.window.step(self.unfinished);
        Err(error)
    }

    /// Returns the metadata of the file; `None` for a fragment.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_deref()
    }

    /// Returns the number of records so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the bytes up to the end of the last whole record, after decompression.
    #[must_use]
    pub fn bytes_consumed(&self) -> u64 {
        self.window.place().offset + self.behind as u64 - self.unfinished as u64
    }
}

/// Returns the lengths of all kinds in the version of a file, in words.
fn words(metadata: Option<&Metadata>) -> [u8; 256] {
    std::array::from_fn(|kind| {
        let Some(lengths) = RecordKind(kind as u8).lengths() else { return 0 };
        let Some(Metadata { about, .. }) = metadata else { return ANY_VERSION };
        let length = lengths[usize::from(about.version).clamp(1, 3) - 1];
        // The longest record, a definition with its gateway's time, has 132 words.
        ((length + if about.ts_out { TS_OUT_BYTES } else { 0 }) / 4) as u8
    })
}
