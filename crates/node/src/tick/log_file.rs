//! Reads a log's messages from a file of any size.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tapeline_kdb::{Fault, LOG_HEADER, Malformed, Order, View, check_header};

use crate::Error;
use crate::error::Context;

/// Bytes read at a time.
const PIECE: usize = 1 << 20;
/// The longest message accepted: it bounds the memory and the time for a damaged length.
const MOST_MESSAGE: usize = 256 << 20;

/// A log being read, with the piece of it that contains the next message.
pub struct LogFile {
    stream: Box<dyn Read>,
    order: Order,
    bytes: Vec<u8>,
    /// Offset of the next message in `bytes`.
    next: usize,
    /// Position of the next message, in bytes of the log.
    pub offset: u64,
    is_at_end: bool,
    /// The error that ended reading early, if any. The tail is then the rest of the bytes that were read.
    pub failure: Option<io::Error>,
}

impl fmt::Debug for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogFile").finish_non_exhaustive()
    }
}

/// The bytes after the last complete message.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    /// Start of the tail, in bytes of the log.
    pub offset: u64,
    /// Length of the tail in bytes.
    pub bytes: u64,
    /// Position of the fault, in bytes of the log.
    pub fault_offset: u64,
    /// The fault.
    pub fault: Fault,
    /// The other byte order, if the tail is a message in that order.
    pub order: Option<Order>,
}

impl LogFile {
    /// Opens a log, plain or gzip; errors name it as `shown`.
    ///
    /// # Errors
    /// The file cannot be read, or is not a log.
    pub fn open(path: &Path, shown: &dyn fmt::Display, order: Order) -> crate::Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        if path.is_dir() {
            let hint = "a tickerplant's logs are files in this folder: name one or more of them";
            return Err(Error::hinted(format!("{shown} is a folder, not a log"), hint));
        }
        let mut log = Self {
            stream: Box::new(file),
            order,
            bytes: Vec::new(),
            next: 0,
            offset: 0,
            is_at_end: false,
            failure: None,
        };
        let read = |log: &mut Self| {
            log.fill(LOG_HEADER.len());
            log.failure.take().map_or(Ok(()), Err).with_context(|| format!("cannot read {shown}"))
        };
        read(&mut log)?;
        // The magic and the method of gzip (RFC 1952).
        if log.bytes.starts_with(&[0x1F, 0x8B, 8]) {
            let begin = io::Cursor::new(std::mem::take(&mut log.bytes));
            let file = std::mem::replace(&mut log.stream, Box::new(io::empty()));
            log.stream = Box::new(MultiGzDecoder::new(begin.chain(file)));
            log.is_at_end = false;
            read(&mut log)?;
        }
        check_header(&log.bytes).with_context(|| shown.to_string())?;
        (log.next, log.offset) = (LOG_HEADER.len(), LOG_HEADER.len() as u64);
        Ok(log)
    }

    /// Passes each message and its position to `take` until that returns `false`. Returns the bytes after the
    /// last complete message.
    pub fn each(&mut self, mut take: impl FnMut(u64, &View<'_>) -> bool) -> Option<Tail> {
        loop {
            let rest = &self.bytes[self.next..];
            if rest.is_empty() && self.is_at_end {
                return None;
            }
            match View::first(rest, self.order) {
                Ok((message, len)) => {
                    let go_on = take(self.offset, &message);
                    self.next += len;
                    self.offset += len as u64;
                    if !go_on {
                        return None;
                    }
                }
                Err(fault) if fault.is_cut() && !self.is_at_end && rest.len() < MOST_MESSAGE => {
                    // Twice as much of a long message, so that it is not parsed again for each piece.
                    self.fill(PIECE.max(rest.len() * 2));
                }
                Err(fault) => return Some(self.tail(fault)),
            }
        }
    }

    /// Reads until `wanted` bytes from the next message on are available, or the file ends.
    fn fill(&mut self, wanted: usize) {
        self.bytes.drain(..self.next);
        self.next = 0;
        let missing = wanted.saturating_sub(self.bytes.len()) as u64;
        match self.stream.by_ref().take(missing).read_to_end(&mut self.bytes) {
            Ok(came) => self.is_at_end = (came as u64) < missing,
            // The bytes before the error are in the buffer.
            Err(failure) => (self.is_at_end, self.failure) = (true, Some(failure)),
        }
    }

    /// Reads to the end to measure the bytes after the last complete message.
    fn tail(&mut self, Malformed { offset, fault, .. }: Malformed) -> Tail {
        let rest = &self.bytes[self.next..];
        let other = if self.order == Order::Little { Order::Big } else { Order::Little };
        let order = View::first(rest, other).is_ok().then_some(other);
        let mut bytes = rest.len() as u64;
        if self.failure.is_none() {
            match io::copy(&mut self.stream, &mut io::sink()) {
                Ok(behind) => bytes += behind,
                Err(failure) => self.failure = Some(failure),
            }
        }
        let fault_offset = self.offset + offset as u64;
        Tail { offset: self.offset, bytes, fault_offset, fault, order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tapeline_kdb::{LogWriter, Type};

    /// A file with messages of `counts` longs each.
    fn log_of(counts: &[usize]) -> (tempfile::NamedTempFile, Vec<u64>) {
        let mut bytes = vec![0; 64 + counts.iter().map(|count| 8 * count + 16).sum::<usize>()];
        let (mut writer, mut len) = LogWriter::begin(&mut bytes).unwrap();
        let mut begins = Vec::new();
        for &count in counts {
            begins.push(len as u64);
            let items = 0..count as i64;
            len += writer
                .append(&mut bytes[len..], |message| message.column(Type::LONG, items.collect::<Vec<_>>()))
                .unwrap();
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes[..len]).unwrap();
        (file, begins)
    }

    #[test]
    fn messages_longer_than_a_piece_are_read_whole() {
        let counts = [3, PIECE / 8 + 5, 0, PIECE, 7];
        let (file, expected) = log_of(&counts);
        let mut log = LogFile::open(file.path(), &"a log", Order::Little).unwrap();
        let (mut begins, mut came) = (Vec::new(), Vec::new());
        let tail = log.each(|offset, message| {
            begins.push(offset);
            came.push(message.count());
            true
        });
        assert_eq!((tail, begins, came), (None, expected, counts.to_vec()));
        assert_eq!(log.offset, file.as_file().metadata().unwrap().len());
    }

    #[test]
    fn a_torn_tail_is_as_long_as_what_is_left_of_the_file() {
        let (file, begins) = log_of(&[2, 3 * PIECE / 8, 5]);
        let len = file.as_file().metadata().unwrap().len();
        for cut in [len - 1, begins[2] + 3, begins[2] - 1, begins[1] + 7] {
            file.as_file().set_len(cut).unwrap();
            let mut log = LogFile::open(file.path(), &"a log", Order::Little).unwrap();
            let tail = log.each(|_, _| true).unwrap();
            let offset = begins.iter().copied().filter(|begin| *begin < cut).max().unwrap();
            assert_eq!((tail.offset, tail.bytes), (offset, cut - offset));
            assert!(tail.fault_offset <= cut, "{tail:?}");
        }
    }
}
