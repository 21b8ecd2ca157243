//! Requests for retransmission.

use super::{HEADER_BYTES, MAX_MESSAGES, MoldSession, fields, header};
use crate::framing::MalformedDatagram;

/// A request to a retransmission server, which answers with one packet to the sender's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The session.
    pub session: MoldSession,
    /// The first requested sequence.
    pub sequence: u64,
    /// The number of requested messages.
    pub count: u16,
}

impl Request {
    /// Creates the request for the messages `first` to `last`, or for as many of the first ones as one request can name.
    #[must_use]
    pub fn for_gap(session: MoldSession, first: u64, last: u64) -> Self {
        let wanted = last.saturating_sub(first).saturating_add(1).min(u64::from(MAX_MESSAGES));
        // Lossless: at most MAX_MESSAGES.
        Self { session, sequence: first, count: wanted as u16 }
    }

    /// Returns the request as a datagram.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        header(self.session, self.sequence, self.count)
    }

    /// Parses a datagram as a request. Ignores all bytes after the first 20.
    ///
    /// # Errors
    /// [`MalformedDatagram::ShortHeader`].
    pub fn decode(datagram: &[u8]) -> Result<Self, MalformedDatagram> {
        let head = datagram.first_chunk::<HEADER_BYTES>().ok_or(MalformedDatagram::ShortHeader)?;
        let (session, sequence, count) = fields(head);
        Ok(Self { session, sequence, count })
    }

    /// Returns `true` if a server should answer: the sequence is at least 1 and at least one message is requested.
    #[must_use]
    pub const fn is_answerable(&self) -> bool {
        self.sequence >= 1 && self.count >= 1 && self.count <= MAX_MESSAGES
    }
}
