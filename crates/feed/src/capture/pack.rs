//! Length-prefixed messages packed into MoldUDP64 datagrams, as an exchange would have sent them.

use tapeline_nanos::Nanos;

use super::{Error, ItchFile};
use crate::moldudp64::{DEFAULT_PACKET_BYTES, HEADER_BYTES, MAX_MESSAGES, MoldSession, PacketBuilder};

/// The limits of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Maximum number of messages; 0 counts as 1.
    pub messages: u16,
    /// Maximum number of bytes, headers included (a longer message gets its own datagram).
    pub bytes: usize,
    /// Maximum time of a message after the first one, in ns: an exchange does not delay a message for long.
    pub within_ns: u64,
}

impl Packing {
    /// One message per datagram.
    pub const ONE: Self = Self { messages: 1, bytes: DEFAULT_PACKET_BYTES, within_ns: u64::MAX };
    /// As many messages as fit in [`DEFAULT_PACKET_BYTES`], at any distance in time.
    pub const FULL: Self = Self { messages: MAX_MESSAGES, bytes: DEFAULT_PACKET_BYTES, within_ns: u64::MAX };
}

/// A datagram made from messages.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// Time of its first message, ns since midnight of the trading day (ITCH contains no date).
    pub time: Nanos,
    /// Sequence number of its first message.
    pub sequence: u64,
    /// Number of messages.
    pub messages: u16,
    /// The MoldUDP64 packet.
    pub payload: &'a [u8],
}

/// A packer of a file's messages into numbered datagrams.
#[derive(Debug)]
pub struct Packer<'r> {
    file: ItchFile<'r>,
    session: MoldSession,
    packing: Packing,
    next_sequence: u64,
    packet: Vec<u8>,
    /// A message that was read and did not fit in the previous datagram.
    held: Option<Vec<u8>>,
}

impl<'r> Packer<'r> {
    /// Creates a packer for the remaining messages of `file`; the first gets sequence 1.
    #[must_use]
    pub fn new(file: ItchFile<'r>, session: MoldSession, packing: Packing) -> Self {
        Self::starting_at(1, file, session, packing)
    }

    /// Does the same as [`new`](Self::new), with `first` as the first sequence after another file.
    #[must_use]
    pub fn starting_at(first: u64, file: ItchFile<'r>, session: MoldSession, packing: Packing) -> Self {
        let packet = vec![0; packing.bytes.max(HEADER_BYTES)];
        Self { file, session, packing, next_sequence: first, packet, held: None }
    }

    /// Returns the next datagram, or `None` when all messages are packed.
    ///
    /// # Errors
    ///
    /// Those of [`ItchFile::next`], and [`Error::Unpackable`].
    #[allow(clippy::should_implement_trait, reason = "what it gives borrows from the packer")]
    pub fn next(&mut self) -> Result<Option<Packed<'_>>, Error> {
        let held = self.held.take();
        let first = match &held {
            Some(message) => message.as_slice(),
            None => match self.file.next()? {
                Some(message) => message,
                None => return Ok(None),
            },
        };
        let first_ns = event_ns(first);
        let sequence = self.next_sequence;
        let limit = self.packing.bytes.max(HEADER_BYTES + 2 + first.len());
        if self.packet.len() < limit {
            self.packet.resize(limit, 0);
        }
        let unpackable = |source| Error::Unpackable { sequence, source };
        let mut packet =
            PacketBuilder::with_limit(&mut self.packet, self.session, sequence, limit).map_err(unpackable)?;
        packet.push(first).map_err(unpackable)?;
        while packet.count() < self.packing.messages {
            let Some(message) = self.file.next()? else { break };
            let late = event_ns(message).saturating_sub(first_ns) > self.packing.within_ns;
            if late || packet.push(message).is_err() {
                // A message that does not fit here begins the next datagram.
                self.held = Some(message.to_vec());
                break;
            }
        }
        let messages = packet.count();
        self.next_sequence = packet.next_sequence();
        let length = packet.finish();
        Ok(Some(Packed { time: Nanos(first_ns), sequence, messages, payload: &self.packet[..length] }))
    }

    /// Returns the sequence after the last packed message, for heartbeats and the end of the session.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the file.
    #[must_use]
    pub fn file(&self) -> &ItchFile<'r> {
        &self.file
    }
}

/// Returns a message's own time, ns since midnight; 0 if it is too short to contain one.
fn event_ns(message: &[u8]) -> u64 {
    match message.get(5..).and_then(<[u8]>::first_chunk::<6>) {
        Some(&[a, b, c, d, e, f]) => u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
        None => 0,
    }
}
