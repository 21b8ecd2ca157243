//! A record of the faults of each datagram.

use crate::framing::{Framing, Packet, Session};
use crate::iex::tp;
use crate::line::Line;

/// The session and sequences of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The session.
    pub session: Session,
    /// Sequence of the first message; of the next one for a packet without messages.
    pub sequence: u64,
    /// Number of messages: 0 for heartbeats and ends of session.
    pub messages: u16,
}

impl Numbers {
    /// Returns the numbers of a datagram; `None` if it is not a packet.
    pub(super) fn of(datagram: &[u8]) -> Option<Self> {
        let packet = packet(datagram)?;
        let (sequence, end) = packet.kind.sequences();
        // Lossless: a packet's count has 16 bits.
        Some(Self { session: packet.session, sequence, messages: (end - sequence) as u16 })
    }

    /// Returns the message that determines the packet's position: its first; for a packet without messages the last one before it.
    pub(super) fn message(&self) -> u64 {
        if self.messages == 0 { self.sequence.saturating_sub(1) } else { self.sequence }
    }
}

/// Parses a datagram of either transport; `None` if it is of neither.
pub(super) fn packet(datagram: &[u8]) -> Option<Packet<'_>> {
    let framing = if tp::is_likely(datagram) { Framing::IexTp } else { Framing::MoldUdp64 };
    framing.parse(datagram).ok()
}

/// One fault that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The line.
    pub line: Line,
    /// The number of the datagram on the line, from 1.
    pub datagram: u64,
    /// The original session and sequences of the packet, as the exchange numbered it; `None` if it was not a packet, or of an unknown
    /// protocol.
    pub numbers: Option<Numbers>,
    /// The action.
    pub did: Did,
}

/// The action on a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Did {
    /// The datagram was lost.
    Lost,
    /// The datagram was lost because the line was silent.
    Silenced,
    /// The datagram is sent again, after a number of others.
    Duplicated {
        /// Datagrams between.
        after: u32,
    },
    /// A number of other datagrams overtake this one.
    Reordered {
        /// The number of datagrams that are sent before it.
        by: u32,
    },
    /// The datagram was cut.
    Truncated {
        /// Remaining bytes.
        to: usize,
    },
    /// Bytes were changed.
    Corrupted {
        /// Offset of each byte, and its exclusive-or mask.
        bytes: Vec<(usize, u8)>,
    },
    /// The datagram begins a sequence reset.
    Reset {
        /// The sequence that the message with sequence 1 would have had.
        from: u64,
    },
    /// The datagram begins a session.
    Rolled {
        /// The sequence that the message with sequence 1 would have had.
        from: u64,
    },
    /// The datagram was sent before its delay was over, because too many were waiting.
    Hurried,
}

impl Did {
    /// Returns a stable label for ledgers and counts.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Silenced => "silenced",
            Self::Duplicated { .. } => "duplicated",
            Self::Reordered { .. } => "reordered",
            Self::Truncated { .. } => "truncated",
            Self::Corrupted { .. } => "corrupted",
            Self::Reset { .. } => "reset",
            Self::Rolled { .. } => "rolled",
            Self::Hurried => "hurried",
        }
    }
}
