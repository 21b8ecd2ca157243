//! Messages that arrive in fragments.

use super::fault::Fault;

/// Maximum memory reserved for a message when its first fragment arrives: a peer can state any length at no
/// cost to itself.
const FIRST_BYTES: usize = 8 << 10;

/// Maximum memory retained for the next message while a connection is idle.
const KEPT: usize = 64 << 10;

/// Incomplete messages, one per id. Their bytes together never exceed the limit. Their memory is at most
/// twice that, plus what their first fragments reserve.
pub(super) struct Assemblies {
    open: Vec<Assembly>,
    /// Bytes of all incomplete messages.
    held: usize,
    limit: usize,
    most: usize,
    /// The last completed message.
    done: Vec<u8>,
}

struct Assembly {
    id: u16,
    total: usize,
    bytes: Vec<u8>,
}

impl Assemblies {
    /// Accepts messages of at most `limit` bytes, each and all incomplete ones together, and at most `most`
    /// incomplete messages.
    pub(super) fn new(limit: usize, most: usize) -> Self {
        Self { open: Vec::new(), held: 0, limit, most, done: Vec::new() }
    }

    /// Adds the first fragment of a message of `total` bytes. Returns `true` if it completes the message.
    pub(super) fn first(&mut self, id: u16, total: u32, fragment: &[u8]) -> Result<bool, Fault> {
        let total = total as usize;
        if total > self.limit {
            return Err(Fault::over_limit(format!("message of {total} bytes in fragments"), self.limit));
        }
        if self.open.iter().any(|assembly| assembly.id == id) {
            return Err(Fault::new(
                format!("first fragment of message {id}"),
                "a next one: the message has begun",
            ));
        }
        if self.open.len() >= self.most {
            let what = format!("{} messages begun in fragments and not completed", self.most + 1);
            return Err(Fault::over_limit(what, self.most));
        }
        // Reuses the last message's memory, unless that message was unusually long.
        let mut bytes = std::mem::take(&mut self.done);
        bytes.clear();
        bytes.shrink_to(FIRST_BYTES);
        bytes.reserve(total.min(FIRST_BYTES));
        self.open.push(Assembly { id, total, bytes });
        self.add(self.open.len() - 1, fragment)
    }

    /// Adds a further fragment. Returns `true` if it completes its message.
    pub(super) fn next(&mut self, id: u16, fragment: &[u8]) -> Result<bool, Fault> {
        let index = self.open.iter().position(|assembly| assembly.id == id).ok_or_else(|| {
            Fault::new(format!("further fragment of message {id}"), "a first one: no such message has begun")
        })?;
        self.add(index, fragment)
    }

    /// Returns the last completed message, valid until the next fragment.
    pub(super) fn done(&self) -> &[u8] {
        &self.done
    }

    /// Frees the memory of the last message, unless the message was short. Call it when the message was
    /// handled.
    pub(super) fn let_go(&mut self) {
        if self.done.capacity() > KEPT {
            self.done = Vec::new();
        }
    }

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
            let what = format!("{} bytes of messages that are not complete", self.held + fragment.len());
            return Err(Fault::over_limit(what, self.limit));
        }
        self.held += fragment.len();
        let (length, capacity) = (assembly.bytes.len(), assembly.bytes.capacity());
        if length + fragment.len() > capacity {
            // Doubles the capacity, but never beyond the length of the message.
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
