//! The kdb+ log, which a tickerplant writes and `-11!` replays.
//!
//! A file begins with eight bytes: the head of an empty list as kdb+ saves it. Messages follow without headers or
//! lengths, in the byte order of the machine that wrote them; the list's count stays 0
//! ([replaying logs](https://code.kx.com/q/kb/replay-log/)). A message that was being written when a tickerplant died
//! is incomplete: the torn tail.

use crate::encoder::Encoder;
use crate::error::{Fault, Malformed, Refused};
use crate::order::Order;
use crate::view::View;

/// The first bytes of a log.
pub const LOG_HEADER: [u8; 8] = [0xFF, 1, 0, 0, 0, 0, 0, 0];

/// Checks that a file with these first bytes is a log.
///
/// # Errors
/// The file has another format, which the error names if it is known, or is too short.
pub fn check_header(bytes: &[u8]) -> Result<(), Malformed> {
    let Some(&found) = bytes.first_chunk::<8>() else {
        let cut = Fault::Cut { what: "a log's header", wanted: LOG_HEADER.len(), left: bytes.len() };
        return Err(Malformed::new(0, cut));
    };
    // kdb+ does not update the attribute and the count, so they say nothing about the messages.
    if found[..3] == LOG_HEADER[..3] { Ok(()) } else { Err(Malformed::new(0, Fault::NotALog { found })) }
}

/// A message in a log.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Offset of the message in bytes from the beginning of the log.
    pub offset: usize,
    /// The message's bytes.
    pub bytes: &'a [u8],
    /// The message's value.
    pub value: View<'a>,
}

/// The torn tail: bytes after the last whole message, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Offset of the end of the last whole message: truncating the file there makes it whole. The second item of the
    /// result of `-11!(-2;file)`.
    pub offset: usize,
    /// Number of bytes after that offset.
    pub bytes: usize,
    /// The fault at which the torn bytes are no message: [`Malformed::is_cut`] if they begin one.
    pub fault: Malformed,
}

/// The messages of a log, from the first to the last whole one.
///
/// ```
/// use tapeline_kdb::{Encoder, Log, LogWriter, Order};
///
/// let mut file = vec![0; 64];
/// let (mut writer, mut len) = LogWriter::begin(&mut file)?;
/// len += writer.append(&mut file[len..], |message: &mut Encoder<'_>| message.symbol(b"tick"))?;
///
/// let mut log = Log::parse(&file[..len - 2], Order::Little)?;
/// assert!(log.next().is_none());
/// assert_eq!(log.torn().map(|torn| (torn.offset, torn.bytes)), Some((8, 4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Log<'a> {
    bytes: &'a [u8],
    order: Order,
    at: usize,
    count: u64,
    torn: Option<Torn>,
}

impl<'a> Log<'a> {
    /// Reads a log from its first byte on. The log does not record its byte order: little, unless the machine was a
    /// SPARC.
    ///
    /// # Errors
    /// Those of [`check_header`].
    pub fn parse(bytes: &'a [u8], order: Order) -> Result<Self, Malformed> {
        check_header(bytes)?;
        Ok(Self { bytes, order, at: LOG_HEADER.len(), count: 0, torn: None })
    }

    /// Returns the number of messages read.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.count
    }

    /// Returns the offset of the next message, or of the torn tail.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Returns the torn tail, once the last message was read; `None` if there is none.
    #[must_use]
    pub const fn torn(&self) -> Option<Torn> {
        self.torn
    }
}

impl<'a> Iterator for Log<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty() && self.torn.is_none())?;
        match View::first(rest, self.order) {
            Ok((value, len)) => {
                let entry = Entry { offset: self.at, bytes: &rest[..len], value };
                self.at += len;
                self.count += 1;
                Some(entry)
            }
            Err(fault) => {
                self.torn = Some(Torn { offset: self.at, bytes: rest.len(), fault: fault.within(self.at) });
                None
            }
        }
    }
}

/// Encodes the bytes to append to a log and counts its messages; the caller writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogWriter {
    count: u64,
    bytes: u64,
}

impl LogWriter {
    /// Begins a log: writes its header to the front of `out` and returns the number of bytes.
    ///
    /// # Errors
    /// The buffer has no capacity for the header.
    pub fn begin(out: &mut [u8]) -> Result<(Self, usize), Refused> {
        out.get_mut(..LOG_HEADER.len()).ok_or(Refused::Full)?.copy_from_slice(&LOG_HEADER);
        Ok((Self::resume(0, LOG_HEADER.len() as u64), LOG_HEADER.len()))
    }

    /// Continues a log after `count` messages and `bytes` bytes, as reading it returned.
    #[must_use]
    pub const fn resume(count: u64, bytes: u64) -> Self {
        Self { count, bytes }
    }

    /// Encodes one message at the front of `out` and returns its length in bytes. A refused message is not counted.
    ///
    /// # Errors
    /// Errors of the message's encoder; values that are missing in the message.
    pub fn append(
        &mut self,
        out: &mut [u8],
        write: impl FnOnce(&mut Encoder<'_>) -> Result<(), Refused>,
    ) -> Result<usize, Refused> {
        let mut message = Encoder::value_alone(out);
        write(&mut message)?;
        let len = message.finish()?;
        self.count += 1;
        self.bytes += len as u64;
        Ok(len)
    }

    /// Returns the number of messages in the log: a tickerplant's `.u.i`.
    #[must_use]
    pub const fn messages(&self) -> u64 {
        self.count
    }

    /// Returns the size of the log in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}
