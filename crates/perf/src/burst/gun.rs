//! Sends datagrams that are contiguous in memory.

use std::time::Duration;

use tapeline_wire::udp::{MAX_SEGMENTS, UdpSender};

/// Byte limit of one send.
const MOST_BYTES: usize = 65_507;
/// How long to wait for a full socket before the next try.
const PATIENCE: Duration = Duration::from_millis(10);

/// A socket and its fastest way to send.
#[derive(Debug)]
pub(super) struct Gun {
    sender: UdpSender,
    /// Whether the kernel splits one send into datagrams (`UDP_SEGMENT`).
    pub(super) segmented: bool,
    /// Number of times that the socket was full.
    pub(super) blocked: u64,
}

impl Gun {
    /// `segmented`: use `UDP_SEGMENT`, if the kernel can.
    pub(super) fn new(sender: UdpSender, segmented: bool) -> Self {
        Self { sender, segmented, blocked: 0 }
    }

    /// Sends datagrams of `length` bytes each, as fast as the kernel accepts them.
    pub(super) fn send(&mut self, datagrams: &[u8], length: usize) -> Result<(), tapeline_wire::Error> {
        let together = (MOST_BYTES / length).min(MAX_SEGMENTS);
        let mut rest = datagrams;
        while !rest.is_empty() {
            let piece = &rest[..rest.len().min(together * length)];
            let taken = if self.segmented && piece.len() > length {
                match self.sender.send_segmented(piece, length as u16) {
                    Ok(sent) => sent.count,
                    // The kernel or the device does not support it: send each datagram with its own call.
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
