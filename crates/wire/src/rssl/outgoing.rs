//! Bytes waiting to be sent: one block of memory, filled from the front and then reused from the front.

/// Bytes in sending order. Each reservation is contiguous; at most two pieces are to be written.
pub(super) struct Outgoing {
    bytes: Box<[u8]>,
    /// The first byte to send.
    head: usize,
    /// After the last byte that was added.
    tail: usize,
    /// The end of the first piece, while a second one starts at 0.
    wrapped: Option<usize>,
}

impl Outgoing {
    pub(super) fn new(bytes: usize) -> Self {
        Self { bytes: vec![0; bytes].into(), head: 0, tail: 0, wrapped: None }
    }

    /// Enlarges the block. Waiting bytes stay, and are in one piece afterwards.
    pub(super) fn grow(&mut self, bytes: usize) {
        if bytes <= self.bytes.len() {
            return;
        }
        let mut larger: Box<[u8]> = vec![0; bytes].into();
        let mut tail = 0;
        for piece in self.pieces() {
            larger[tail..tail + piece.len()].copy_from_slice(piece);
            tail += piece.len();
        }
        *self = Self { bytes: larger, head: 0, tail, wrapped: None };
    }

    /// Returns contiguous space for `count` bytes, if there is any.
    #[inline]
    pub(super) fn reserve(&mut self, count: usize) -> Option<&mut [u8]> {
        let end = if self.wrapped.is_some() { self.head } else { self.bytes.len() };
        if end - self.tail >= count {
            return self.bytes.get_mut(self.tail..self.tail + count);
        }
        if self.wrapped.is_none() && count <= self.head {
            self.wrapped = Some(self.tail);
            self.tail = 0;
            return self.bytes.get_mut(..count);
        }
        None
    }

    /// Returns `true` if there is contiguous space for `count` bytes.
    pub(super) fn fits(&self, count: usize) -> bool {
        let end = if self.wrapped.is_some() { self.head } else { self.bytes.len() };
        end - self.tail >= count || self.wrapped.is_none() && count <= self.head
    }

    /// Adds the first `count` bytes of the last reservation.
    #[inline]
    pub(super) fn commit(&mut self, count: usize) {
        self.tail += count;
    }

    /// Returns the bytes to write, in this order.
    pub(super) fn pieces(&self) -> [&[u8]; 2] {
        match self.wrapped {
            Some(end) => [&self.bytes[self.head..end], &self.bytes[..self.tail]],
            None => [&self.bytes[self.head..self.tail], &[]],
        }
    }

    /// Removes the first `count` bytes, which were sent.
    pub(super) fn consume(&mut self, mut count: usize) {
        if let Some(end) = self.wrapped {
            let first = count.min(end - self.head);
            self.head += first;
            count -= first;
            if self.head == end {
                (self.head, self.wrapped) = (0, None);
            }
        }
        self.head += count;
        debug_assert!(self.wrapped.is_some() || self.head <= self.tail, "no more than there was");
        if self.wrapped.is_none() && self.head == self.tail {
            (self.head, self.tail) = (0, 0);
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        match self.wrapped {
            Some(end) => end - self.head + self.tail,
            None => self.tail - self.head,
        }
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_block_has_what_waited_in_its_order() {
        let mut outgoing = Outgoing::new(8);
        outgoing.reserve(6).unwrap().copy_from_slice(b"abcdef");
        outgoing.commit(6);
        outgoing.consume(5);
        // Only the front has enough space.
        outgoing.reserve(4).unwrap().copy_from_slice(b"ghij");
        outgoing.commit(4);
        outgoing.grow(4);
        assert_eq!((outgoing.capacity(), outgoing.pieces()), (8, [&b"f"[..], b"ghij"]));
        outgoing.grow(16);
        assert_eq!((outgoing.capacity(), outgoing.pieces()), (16, [&b"fghij"[..], b""]));
        assert_eq!(outgoing.len(), 5);
        assert!(outgoing.fits(11) && !outgoing.fits(12));
    }
}
