//! Messages that arrive in fragments.

use std::fmt;

use super::fault::Fault;

/// What is reserved for a message when its first fragment arrives, at most: the length that it states costs the peer nothing.
const FIRST_BYTES: usize = 8 << 10;

/// Memory that is kept for the next message when a connection has nothing to do.
const KEPT: usize = 64 << 10;

/// Messages begun and not completed, one for each id. Their bytes together never exceed the limit, and their memory is at
/// most twice that and what their first fragments reserve.
pub(super) struct Assemblies {
    open: Vec<Assembly>,
    /// Bytes of all that are open.
    held: usize,
    limit: usize,
    most: usize,
    /// The last that was completed.
    done: Vec<u8>,
}

struct Assembly {
    id: u16,
    total: usize,
    bytes: Vec<u8>,
}

impl Assemblies {
    /// Messages of at most `limit` bytes, all that are open together as well; not more than `most` of them.
    pub(super) fn new(limit: usize, most: usize) -> Self {
        Self { open: Vec::new(), held: 0, limit, most, done: Vec::new() }
    }

    /// The first fragment of a message of `total` bytes; whether it completes it.
    pub(super) fn first(&mut self, id: u16, total: u32, fragment: &[u8]) -> Result<bool, Fault> {
        let total = total as usize;
        if total > self.limit {
            return Err(Fault::new(
                format!("message of {total} bytes in fragments"),
                format!("at most {}, the limit that is set", self.limit),
            ));
        }
        if self.open.iter().any(|assembly| assembly.id == id) {
            return Err(Fault::new(
                format!("first fragment of message {id}"),
                "a next one: the message has begun",
            ));
        }
        if self.open.len() >= self.most {
            return Err(Fault::new(
                format!("{} messages begun in fragments and not completed", self.most + 1),
                format!("at most {}, the limit that is set", self.most),
            ));
        }
        // The last message's memory serves again, unless it was an unusually long one.
        let mut bytes = std::mem::take(&mut self.done);
        bytes.clear();
        bytes.shrink_to(FIRST_BYTES);
        bytes.reserve(total.min(FIRST_BYTES));
        self.open.push(Assembly { id, total, bytes });
        self.add(self.open.len() - 1, fragment)
    }

    /// A further fragment; whether it completes its message.
    pub(super) fn next(&mut self, id: u16, fragment: &[u8]) -> Result<bool, Fault> {
        let index = self.open.iter().position(|assembly| assembly.id == id).ok_or_else(|| {
            Fault::new(format!("further fragment of message {id}"), "a first one: no such message has begun")
        })?;
        self.add(index, fragment)
    }

    /// The message that was completed last, until the next fragment.
    pub(super) fn done(&self) -> &[u8] {
        &self.done
    }

    /// The last one has been looked at: unless it was short, its memory is given back.
    pub(super) fn let_go(&mut self) {
        if self.done.capacity() > KEPT {
            self.done = Vec::new();
        }
    }

    /// Bytes of memory that are held.
    pub(super) fn memory(&self) -> usize {
        self.open.iter().map(|assembly| assembly.bytes.capacity()).sum::<usize>() + self.done.capacity()
    }

    fn add(&mut self, index: usize, fragment: &[u8]) -> Result<bool, Fault> {
        let assembly = &mut self.open[index];
        let missing = assembly.total - assembly.bytes.len();
        if fragment.len() > missing || fragment.is_empty() {
            return Err(Fault::new(
                format!("fragment of {} bytes for message {}", fragment.len(), assembly.id),
                format!("1 to {missing} bytes: it has {} of {}", assembly.bytes.len(), assembly.total),
            ));
        }
        if self.held + fragment.len() > self.limit {
            return Err(Fault::new(
                format!("{} bytes of messages that are not complete", self.held + fragment.len()),
                format!("at most {}, the limit that is set", self.limit),
            ));
        }
        self.held += fragment.len();
        let (length, capacity) = (assembly.bytes.len(), assembly.bytes.capacity());
        if length + fragment.len() > capacity {
            // Twice as much as there is, but never more than the message needs.
            assembly
                .bytes
                .reserve_exact((2 * capacity).clamp(length + fragment.len(), assembly.total) - length);
        }
        assembly.bytes.extend_from_slice(fragment);
        if assembly.bytes.len() < assembly.total {
            return Ok(false);
        }
        self.held -= assembly.total;
        self.done = self.open.swap_remove(index).bytes;
        Ok(true)
    }
}

impl fmt::Debug for Assemblies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the bytes: there may be a password among them.
        f.debug_struct("Assemblies")
            .field("open", &self.open.len())
            .field("held", &self.held)
            .finish_non_exhaustive()
    }
}
