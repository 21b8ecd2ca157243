//! Received bytes that are not yet consumed.

/// Received bytes that are not yet consumed, in a block of fixed size.
pub(crate) struct Input {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Input {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes].into(), start: 0, end: 0 }
    }

    /// Makes the block at least this large.
    pub(crate) fn enlarge(&mut self, bytes: usize) {
        if bytes > self.bytes.len() {
            let mut larger = Self::new(bytes);
            let unconsumed = self.bytes();
            larger.bytes[..unconsumed.len()].copy_from_slice(unconsumed);
            larger.end = unconsumed.len();
            *self = larger;
        }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[cfg(feature = "rssl")]
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Consumes `count` bytes from the front, at most all.
    #[inline]
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
    }

    /// Returns the free space to receive into. Unconsumed bytes, usually the beginning of a packet, move to the front.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// Adds the first `count` bytes of the free space.
    pub(crate) fn add(&mut self, count: usize) {
        self.end = self.bytes.len().min(self.end + count);
    }
}
