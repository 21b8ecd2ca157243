//! A bounded window over a stream of bytes that tracks its position.

use std::io::{ErrorKind, Read};

use super::{Error, Place};

/// Capacity of the window in bytes: twice the largest record with its header, so that bytes are rarely moved.
const CAPACITY: usize = 2 * (super::LARGEST_PACKET + 64 * 1024);

/// The next bytes of a stream.
pub(crate) struct Window<'r> {
    stream: Box<dyn Read + Send + 'r>,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes of the stream before `start`.
    offset: u64,
    /// `true` if offsets count decompressed bytes.
    unpacked: bool,
    ended: bool,
}

impl<'r> Window<'r> {
    pub(crate) fn new(stream: impl Read + Send + 'r, unpacked: bool) -> Self {
        let bytes = vec![0; CAPACITY].into_boxed_slice();
        Self { stream: Box::new(stream), bytes, start: 0, end: 0, offset: 0, unpacked, ended: false }
    }

    /// Returns the position of the window.
    pub(crate) fn place(&self) -> Place {
        Place { offset: self.offset, unpacked: self.unpacked }
    }

    /// Returns the bytes in the window, without reading more.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Reads until the window contains `wanted` bytes (at most its capacity) or the stream ends, and returns its bytes.
    pub(crate) fn fill(&mut self, wanted: usize) -> Result<&[u8], Error> {
        let wanted = wanted.min(self.bytes.len());
        while self.end - self.start < wanted && !self.ended {
            if self.start + wanted > self.bytes.len() {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            match self.stream.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    let offset = self.offset + (self.end - self.start) as u64;
                    return Err(Error::Read { place: Place { offset, unpacked: self.unpacked }, source });
                }
            }
        }
        Ok(self.bytes())
    }

    /// Skips `count` bytes of the window, at most all of them.
    pub(crate) fn step(&mut self, count: usize) {
        let count = count.min(self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }

    /// Skips `count` bytes, reading as needed, and returns the number of skipped bytes.
    pub(crate) fn skip(&mut self, count: u64) -> Result<u64, Error> {
        let mut left = count;
        while left > 0 {
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(64 * 1024);
            let held = self.fill(piece)?.len().min(piece);
            if held == 0 {
                break;
            }
            self.step(held);
            left -= held as u64;
        }
        Ok(count - left)
    }
}

impl std::fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("place", &self.place()).field("held", &self.bytes().len()).finish()
    }
}
