//! Messages one after another, as in files.
//!
//! Day files and samples put a 16-bit big-endian length before each message, the block form of MoldUDP64; a length of 0 marks the end of the
//! session (NASDAQ's BinaryFILE). Some files have `00 00` before *every* message: there only the type determines the end of a message.

use super::MessageType;

/// The framing of messages in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFraming {
    /// A length before each message; 0 marks the end of the session.
    Length,
    /// The length of each message's type; the two bytes before each message are zero.
    Type,
}

impl FileFraming {
    /// Returns the framing of a file from its first bytes. A zero length, then a whole message of a known type and, if more bytes follow, another
    /// zero length can only be [`FileFraming::Type`].
    #[must_use]
    pub fn detect(bytes: &[u8]) -> Self {
        match step(bytes, Self::Type) {
            Step::Message { consumed, .. } if matches!(bytes[consumed..], [] | [0] | [0, 0, ..]) => {
                Self::Type
            }
            _ => Self::Length,
        }
    }
}

/// The front of a run of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step<'a> {
    /// A message.
    Message {
        /// The message, without its length.
        message: &'a [u8],
        /// The number of consumed bytes, the length included.
        consumed: usize,
    },
    /// The mark of the session's end, two bytes.
    EndOfSession,
    /// An incomplete message: read more, or the file is cut. Zero bytes are an end, not a cut.
    Incomplete,
    /// Framing by type, and the type is unknown or the two bytes before it are not zero: the start of the next message cannot be determined.
    Lost,
}

/// Takes one message from the front of `bytes`.
#[inline]
pub fn step(bytes: &[u8], framing: FileFraming) -> Step<'_> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Step::Incomplete };
    let announced = usize::from(u16::from_be_bytes(*length));
    let length = match framing {
        FileFraming::Length if announced == 0 => return Step::EndOfSession,
        FileFraming::Length => announced,
        FileFraming::Type if announced != 0 => return Step::Lost,
        FileFraming::Type => match rest.first().map(|letter| MessageType::of(*letter)) {
            None => return Step::Incomplete,
            Some(None) => return Step::Lost,
            Some(Some(kind)) => kind.length(),
        },
    };
    match rest.get(..length) {
        Some(message) => Step::Message { message, consumed: 2 + length },
        None => Step::Incomplete,
    }
}

/// The end of a run of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// More messages follow.
    NotYet,
    /// After the last message.
    Complete,
    /// With the mark of the session's end.
    Session {
        /// The number of bytes after the mark.
        after: usize,
    },
    /// Within a message.
    Incomplete {
        /// The number of bytes of the incomplete message, its length included.
        bytes: usize,
    },
    /// Before a message of unknown type, whose length only the type could determine.
    Lost {
        /// The number of unreadable bytes.
        bytes: usize,
    },
}

/// The messages of a byte slice, in order.
///
/// ```
/// use tapeline_feed::itch::framing::{Frames, RunEnd};
///
/// let mut frames = Frames::new(&[0, 2, b'x', b'y', 0, 1, b'z', 0, 9, b'!']);
/// assert_eq!(frames.next(), Some(&b"xy"[..]));
/// assert_eq!(frames.next(), Some(&b"z"[..]));
/// assert_eq!(frames.next(), None);
/// assert_eq!(frames.end(), RunEnd::Incomplete { bytes: 3 });
/// assert_eq!(frames.consumed(), 7);
/// ```
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    /// The initial number of bytes.
    whole: usize,
    framing: FileFraming,
    end: RunEnd,
}

impl<'a> Frames<'a> {
    /// Creates an iterator over messages in the framing that `bytes` begin with.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self::with(bytes, FileFraming::detect(bytes))
    }

    /// Creates an iterator over messages in a known framing.
    #[must_use]
    pub const fn with(bytes: &'a [u8], framing: FileFraming) -> Self {
        Self { rest: bytes, whole: bytes.len(), framing, end: RunEnd::NotYet }
    }

    /// Returns the framing.
    #[must_use]
    pub const fn framing(&self) -> FileFraming {
        self.framing
    }

    /// Returns the bytes of the messages so far, their lengths and the mark of the session's end included.
    #[must_use]
    pub const fn consumed(&self) -> usize {
        self.whole - self.rest.len()
    }

    /// Returns the remaining bytes.
    #[must_use]
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the end of the messages.
    #[must_use]
    pub const fn end(&self) -> RunEnd {
        self.end
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    /// The lengths form a chain in which each step depends on the one before, so the caller's loop has to keep it in registers: this function is
    /// inlined, and rare cases are a function of values.
    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.framing == FileFraming::Length
            && self.end == RunEnd::NotYet
            && let Some((length, rest)) = self.rest.split_first_chunk()
            && let Some((message, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))
            && !message.is_empty()
        {
            self.rest = rest;
            return Some(message);
        }
        let (message, rest, end) = rare(self.rest, self.framing, self.end);
        (self.rest, self.end) = (rest, end);
        message
    }
}

/// Returns the next message in any framing, the bytes after it, and the end of the messages if it was reached.
#[cold]
#[inline(never)]
fn rare(rest: &[u8], framing: FileFraming, end: RunEnd) -> (Option<&[u8]>, &[u8], RunEnd) {
    if end != RunEnd::NotYet {
        return (None, rest, end);
    }
    let bytes = rest.len();
    match step(rest, framing) {
        Step::Message { message, consumed } => (Some(message), &rest[consumed..], RunEnd::NotYet),
        Step::EndOfSession => (None, &rest[2..], RunEnd::Session { after: bytes - 2 }),
        Step::Incomplete if bytes == 0 => (None, rest, RunEnd::Complete),
        Step::Incomplete => (None, rest, RunEnd::Incomplete { bytes }),
        Step::Lost => (None, rest, RunEnd::Lost { bytes }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_length_ends_the_session() {
        let mut frames = Frames::new(&[0, 1, b'x', 0, 0, 7, 7, 7]);
        assert_eq!(frames.by_ref().count(), 1);
        assert_eq!(
            (frames.end(), frames.consumed(), frames.rest()),
            (RunEnd::Session { after: 3 }, 5, &[7, 7, 7][..])
        );
        assert_eq!(frames.next(), None);
        let mut empty = Frames::new(&[0, 0]);
        assert_eq!((empty.next(), empty.end()), (None, RunEnd::Session { after: 0 }));
    }

    #[test]
    fn zero_lengths_before_every_message_are_recognised() {
        let mut bytes = Vec::new();
        for kind in MessageType::ALL {
            bytes.extend([0, 0, kind.letter()]);
            bytes.extend(vec![0xEE; kind.length() - 1]);
        }
        let mut frames = Frames::new(&bytes);
        assert_eq!(frames.framing(), FileFraming::Type);
        let kinds: Vec<_> = frames.by_ref().map(|message| (message[0], message.len())).collect();
        assert_eq!(kinds, MessageType::ALL.map(|kind| (kind.letter(), kind.length())));
        assert_eq!(frames.end(), RunEnd::Complete);

        bytes.extend([0, 0, b'?', 1, 2]);
        let mut frames = Frames::new(&bytes);
        assert_eq!(frames.by_ref().count(), MessageType::ALL.len());
        assert_eq!(frames.end(), RunEnd::Lost { bytes: 5 });
    }

    #[test]
    fn a_cut_tail_is_reported() {
        for (bytes, left) in [(&[0][..], 1), (&[0, 3], 2), (&[0, 3, 1, 2], 4)] {
            let mut frames = Frames::new(bytes);
            assert_eq!((frames.next(), frames.end()), (None, RunEnd::Incomplete { bytes: left }));
        }
        let mut frames = Frames::new(&[]);
        assert_eq!((frames.next(), frames.end()), (None, RunEnd::Complete));
    }
}
