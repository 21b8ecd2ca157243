//! Asking for messages again.

use super::{HEADER_BYTES, MAX_MESSAGES, Malformed, Session, fields, header};

/// What a receiver sends to a re-request server, which answers with one packet to the sender's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The session.
    pub session: Session,
    /// The first sequence wanted.
    pub sequence: u64,
    /// How many messages are wanted.
    pub count: u16,
}

impl Request {
    /// The request for the messages `first` to `last`, or for as many of them from the front as one request can name.
    #[must_use]
    pub fn for_gap(session: Session, first: u64, last: u64) -> Self {
        let wanted = last.saturating_sub(first).saturating_add(1).min(u64::from(MAX_MESSAGES));
        // Cannot cut: at most MAX_MESSAGES.
        Self { session, sequence: first, count: wanted as u16 }
    }

    /// The request as a datagram.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        header(self.session, self.sequence, self.count)
    }

    /// Reads a datagram as a request. Whatever follows the 20 bytes is ignored.
    ///
    /// # Errors
    /// [`Malformed::ShortHeader`].
    pub fn decode(datagram: &[u8]) -> Result<Self, Malformed> {
        let head = datagram.first_chunk::<HEADER_BYTES>().ok_or(Malformed::ShortHeader)?;
        let (session, sequence, count) = fields(head);
        Ok(Self { session, sequence, count })
    }

    /// Whether a server should answer: there is a sequence (they begin at 1) and at least one message is wanted.
    #[must_use]
    pub const fn is_answerable(&self) -> bool {
        self.sequence >= 1 && self.count >= 1 && self.count <= MAX_MESSAGES
    }
}
