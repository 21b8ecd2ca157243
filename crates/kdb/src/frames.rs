//! Splits a byte stream into messages.

use crate::compression::unpack;
use crate::error::Malformed;
use crate::handshake::Hello;
use crate::message::{HEADER, Header, Message};

/// The smallest buffer offered to a read, in bytes.
const LEAST_ROOM: usize = 16 * 1024;

/// The capacity of each of the two buffers that stays allocated while no bytes wait.
const KEPT: usize = 1 << 20;

/// Collects the bytes of one connection and returns the messages in them, decompressed.
///
/// Memory: the bytes received and not yet returned, up to twice that while the buffer grows, and with compression one
/// plain message in addition. Each is bounded by `most` plus the buffer of one read. A peer that announces a long
/// message and sends nothing costs no memory. Once the buffers have the size of the messages, nothing is allocated. The
/// buffer of a message over 1 MiB is freed once the message was returned and no bytes follow it.
///
/// ```
/// use tapeline_kdb::Frames;
///
/// let mut frames = Frames::new(1 << 20);
/// for piece in [&[1, 0, 0, 0, 10][..], &[0, 0, 0, 0xFF, 1]] {
///     let room = frames.room();
///     room[..piece.len()].copy_from_slice(piece);
///     frames.received(piece.len());
/// }
/// let message = frames.next()?.expect("it is whole");
/// assert_eq!(message.body, [0xFF, 1]);
/// assert!(frames.next()?.is_none());
/// # Ok::<(), tapeline_kdb::Malformed>(())
/// ```
#[derive(Debug)]
pub struct Frames {
    most: usize,
    /// Bytes that were received and not yet returned are in `given..came`.
    bytes: Vec<u8>,
    given: usize,
    came: usize,
    plain: Vec<u8>,
}

impl Frames {
    /// Creates the buffer of a connection on which a message has at most `most` bytes, compressed or plain.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { most, bytes: Vec::new(), given: 0, came: 0, plain: Vec::new() }
    }

    /// Returns the buffer for the connection's next bytes, never empty; report them with [`received`](Self::received).
    pub fn room(&mut self) -> &mut [u8] {
        if self.given == self.came {
            (self.given, self.came) = (0, 0);
        }
        if self.bytes.len() - self.came < LEAST_ROOM {
            // Reuses the space of returned messages before it grows the buffer.
            self.bytes.copy_within(self.given..self.came, 0);
            (self.given, self.came) = (0, self.came - self.given);
            if self.bytes.len() - self.came < LEAST_ROOM {
                // Doubled, so that a long message is not copied for each read, but limited to the longest message.
                let larger = (self.came * 2)
                    .clamp(self.came + LEAST_ROOM, (self.most + LEAST_ROOM).max(self.came + LEAST_ROOM));
                self.bytes.resize(larger, 0);
            }
        }
        &mut self.bytes[self.came..]
    }

    /// Reports that `count` bytes were written to the buffer of [`room`](Self::room).
    pub fn received(&mut self, count: usize) {
        self.came = (self.came + count).min(self.bytes.len());
    }

    /// Returns the number of bytes not yet returned.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.came - self.given
    }

    /// Returns the memory used, in bytes.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.bytes.len() + self.plain.len()
    }

    /// Returns the client's handshake; `None` while it is not complete. Call it until it is.
    ///
    /// # Errors
    /// Those of [`Hello::parse`].
    pub fn hello(&mut self) -> Result<Option<Hello<'_>>, Malformed> {
        let waiting = &self.bytes[self.given..self.came];
        Ok(Hello::parse(waiting)?.map(|(hello, len)| {
            self.given += len;
            hello
        }))
    }

    /// Returns the next message; `None` if it is not complete yet.
    ///
    /// # Errors
    /// The received bytes are no message, or one that is too long. No later message of the connection can be found
    /// then.
    #[expect(clippy::should_implement_trait, reason = "it lends what the next call overwrites")]
    pub fn next(&mut self) -> Result<Option<Message<'_>>, Malformed> {
        if self.given == self.came {
            self.shrink();
        }
        let waiting = &self.bytes[self.given..self.came];
        let Some(header) = waiting.first_chunk::<HEADER>() else { return Ok(None) };
        let header = Header::parse(header, self.most)?;
        let Some(message) = waiting.get(..header.len) else { return Ok(None) };
        self.given += header.len;
        if header.is_packed {
            unpack(message, self.most, &mut self.plain)?;
            return Message::parse(&self.plain).map(Some);
        }
        Ok(Some(Message { kind: header.kind, order: header.order, body: &message[HEADER..] }))
    }

    /// Frees the memory of a long message; called when no bytes wait.
    fn shrink(&mut self) {
        (self.given, self.came) = (0, 0);
        for bytes in [&mut self.bytes, &mut self.plain] {
            if bytes.len() > KEPT {
                *bytes = Vec::new();
            }
        }
    }
}
