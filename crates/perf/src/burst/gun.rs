//! Sends datagrams that lie one behind the other.

use std::time::Duration;

use tapeline_wire::udp::{MAX_SEGMENTS, Sender};

/// The most bytes that the kernel takes in one piece.
const MOST_BYTES: usize = 65_507;
/// How long a full socket is waited for before it is tried again.
const PATIENCE: Duration = Duration::from_millis(10);

/// A socket, and how it is used best.
#[derive(Debug)]
pub(super) struct Gun {
    sender: Sender,
    segmented: bool,
    /// How often the socket was full.
    pub(super) blocked: u64,
}

impl Gun {
    /// `segmented`: hand the kernel pieces that it cuts into datagrams itself, if it can.
    pub(super) fn new(sender: Sender, segmented: bool) -> Self {
        Self { sender, segmented, blocked: 0 }
    }

    /// Whether the kernel still cuts pieces into datagrams.
    pub(super) fn is_segmented(&self) -> bool {
        self.segmented
    }

    /// Sends datagrams of `length` bytes each, as fast as the kernel takes them.
    pub(super) fn send(&mut self, datagrams: &[u8], length: usize) -> Result<(), tapeline_wire::Error> {
        let together = (MOST_BYTES / length).min(MAX_SEGMENTS);
        let mut rest = datagrams;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(together * length)];
            let taken = if self.segmented && piece.len() > length {
                match self.sender.send_segmented(piece, length as u16) {
                    Ok(sent) => sent.count,
                    // An old kernel, or a device that cannot: one by one is always possible.
                    Err(_) => {
                        self.segmented = false;
                        continue;
                    }
                }
            } else {
                self.sender.send_many(Chunks(rest, length))?.count
            };
            rest = &rest[taken * length..];
            if taken == 0 {
                self.blocked += 1;
                self.sender.wait(PATIENCE);
            }
        }
        Ok(())
    }
}

/// Datagrams of one length.
#[derive(Clone, Copy)]
struct Chunks<'a>(&'a [u8], usize);

impl<'a> IntoIterator for Chunks<'a> {
    type Item = &'a [u8];
    type IntoIter = std::slice::ChunksExact<'a, u8>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.chunks_exact(self.1)
    }
}
