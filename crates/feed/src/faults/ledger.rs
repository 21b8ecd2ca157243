//! What was done to a datagram.

use crate::framing::{Framing, Packet, Session};
use crate::iex::tp;
use crate::line::Line;

/// What a packet says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Its session.
    pub session: Session,
    /// Sequence of its first message; of the next one for a packet without any.
    pub sequence: u64,
    /// How many messages it has: 0 for heartbeats and ends of session.
    pub messages: u16,
}

impl Numbers {
    /// The numbers of a datagram; `None` where it is no packet.
    pub(super) fn of(datagram: &[u8]) -> Option<Self> {
        let packet = packet(datagram)?;
        let (sequence, end) = packet.kind.sequences();
        // Cannot cut: a packet's count has 16 bits.
        Some(Self { session: packet.session, sequence, messages: (end - sequence) as u16 })
    }

    /// The message by which it is placed: its first; the last one before it for a packet without any.
    pub(super) fn message(&self) -> u64 {
        if self.messages == 0 { self.sequence.saturating_sub(1) } else { self.sequence }
    }
}

/// A datagram of either transport; `None` where it is none.
pub(super) fn packet(datagram: &[u8]) -> Option<Packet<'_>> {
    let framing = if tp::is_likely(datagram) { Framing::IexTp } else { Framing::MoldUdp64 };
    framing.parse(datagram).ok()
}

/// One fault that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// On which line.
    pub line: Line,
    /// To which of the line's datagrams, from 1.
    pub datagram: u64,
    /// What the packet said of itself before, in the numbers that the exchange gave it; `None` where it was none, or of no
    /// protocol that is known here.
    pub numbers: Option<Numbers>,
    /// What happened.
    pub did: Did,
}

/// What happened to a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Did {
    /// It was lost.
    Lost,
    /// It was lost because the line was silent.
    Silenced,
    /// It comes again, after so many others.
    Duplicated {
        /// Datagrams between.
        after: u32,
    },
    /// So many others overtake it.
    Reordered {
        /// Datagrams that leave before it.
        by: u32,
    },
    /// It was cut.
    Truncated {
        /// Bytes that are left.
        to: usize,
    },
    /// Bytes were changed.
    Corrupted {
        /// Where, and with what they were combined by exclusive or.
        bytes: Vec<(usize, u8)>,
    },
    /// With this datagram, the numbers begin again.
    Reset {
        /// What the message with the sequence 1 would have been.
        from: u64,
    },
    /// With this datagram, a session begins.
    Rolled {
        /// What the message with the sequence 1 would have been.
        from: u64,
    },
    /// It left before its delay was over, as too much was waiting.
    Hurried,
}

impl Did {
    /// A stable label for ledgers and counts.
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
