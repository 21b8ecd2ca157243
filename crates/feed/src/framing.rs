//! The contents of one datagram in any transport.
//!
//! A feed's transport numbers its messages and packs them into datagrams. Arbitration needs only the session, the sequences and the
//! messages. [`Framing`] names the transport and reads a datagram as a [`Packet`].
//!
//! To add a transport, write a module like [`moldudp64`], and add a variant of [`Framing`] and of [`Session`], and its
//! reasons to [`MalformedDatagram`].

use std::fmt;

use crate::iex::tp;
use crate::moldudp64;
use crate::reasons::reasons;

pub use crate::blocks::Messages;

/// The transport of a feed's datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Framing {
    /// NASDAQ's [`moldudp64`].
    #[default]
    MoldUdp64,
    /// IEX's transport, [`tp`].
    IexTp,
}

impl Framing {
    /// Parses a datagram and checks that every announced message is present.
    ///
    /// # Errors
    /// [`MalformedDatagram`], with nothing delivered.
    #[inline]
    pub fn parse(self, datagram: &[u8]) -> Result<Packet<'_>, MalformedDatagram> {
        match self {
            Self::MoldUdp64 => moldudp64::parse(datagram).map(Packet::from),
            Self::IexTp => tp::parse(datagram).map(Packet::from),
        }
    }
}

/// The session within which sequences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Session {
    /// The name of a MoldUDP64 session.
    MoldUdp64(moldudp64::MoldSession),
    /// A session of IEX-TP: message protocol, channel and number.
    IexTp(tp::IexSession),
}

impl From<moldudp64::MoldSession> for Session {
    fn from(session: moldudp64::MoldSession) -> Self {
        Self::MoldUdp64(session)
    }
}

impl From<tp::IexSession> for Session {
    fn from(session: tp::IexSession) -> Self {
        Self::IexTp(session)
    }
}

/// Writes MoldUDP64's session name; IEX-TP's protocol, channel and session.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MoldUdp64(session) => fmt::Display::fmt(session, f),
            Self::IexTp(session) => fmt::Display::fmt(session, f),
        }
    }
}

/// A well-formed datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The session of the datagram.
    pub session: Session,
    /// The contents of the datagram.
    pub kind: DatagramKind<'a>,
    /// Bytes after the announced contents: ignored, but counted.
    pub trailing: usize,
}

/// The contents of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramKind<'a> {
    /// Messages, at least one.
    Data {
        /// Sequence of the first.
        first: u64,
        /// The messages.
        messages: Messages<'a>,
    },
    /// The sender is alive, and has sent everything before `next`.
    Heartbeat {
        /// Sequence of the next message.
        next: u64,
    },
    /// The session has no more messages.
    EndOfSession {
        /// One more than the sequence of the session's last message.
        next: u64,
    },
}

impl<'a> DatagramKind<'a> {
    /// Returns this value without the messages' bytes, and those bytes: for separate storage.
    pub(crate) const fn apart(&self) -> (DatagramKind<'static>, &'a [u8]) {
        match *self {
            Self::Data { first, messages } => {
                (DatagramKind::Data { first, messages: messages.over(&[]) }, messages.blocks())
            }
            Self::Heartbeat { next } => (DatagramKind::Heartbeat { next }, &[]),
            Self::EndOfSession { next } => (DatagramKind::EndOfSession { next }, &[]),
        }
    }

    /// Joins a value from [`apart`](Self::apart) with its bytes or a copy of them.
    pub(crate) const fn over<'b>(&self, blocks: &'b [u8]) -> DatagramKind<'b> {
        match *self {
            Self::Data { first, messages } => DatagramKind::Data { first, messages: messages.over(blocks) },
            Self::Heartbeat { next } => DatagramKind::Heartbeat { next },
            Self::EndOfSession { next } => DatagramKind::EndOfSession { next },
        }
    }

    /// Returns the sequences of the messages: the first, and one more than the last. Both are the next sequence for a heartbeat or an end.
    #[inline]
    #[must_use]
    pub const fn sequences(&self) -> (u64, u64) {
        match self {
            Self::Data { first, messages } => (*first, messages.end()),
            Self::Heartbeat { next } | Self::EndOfSession { next } => (*next, *next),
        }
    }
}

impl<'a> From<moldudp64::MoldPacket<'a>> for Packet<'a> {
    #[inline]
    fn from(packet: moldudp64::MoldPacket<'a>) -> Self {
        let kind = match packet {
            moldudp64::MoldPacket::Data(data) => {
                DatagramKind::Data { first: data.sequence(), messages: data.messages() }
            }
            moldudp64::MoldPacket::Heartbeat { next, .. } => DatagramKind::Heartbeat { next },
            moldudp64::MoldPacket::EndOfSession { next, .. } => DatagramKind::EndOfSession { next },
        };
        Self { session: packet.session().into(), kind, trailing: packet.trailing() }
    }
}

/// A segment without messages is a heartbeat; IEX-TP does not announce the end of a session.
impl<'a> From<tp::Segment<'a>> for Packet<'a> {
    #[inline]
    fn from(segment: tp::Segment<'a>) -> Self {
        let kind = if segment.is_heartbeat() {
            DatagramKind::Heartbeat { next: segment.first }
        } else {
            DatagramKind::Data { first: segment.first, messages: segment.messages }
        };
        Self { session: segment.session.into(), kind, trailing: segment.trailing }
    }
}

reasons! {
    /// Returns a stable label for reports and counters.
    reason

    /// The reason why a datagram is not a packet of its transport (each has some of them). The fault is at the sender or on the way.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
    pub enum MalformedDatagram: 7 {
        /// The datagram is shorter than a header.
        #[error("shorter than the header (20 bytes in MoldUDP64, 40 in IEX-TP)")]
        ShortHeader = "short-header",
        /// The datagram ends before or within a message's length.
        #[error("the length of an announced message is missing")]
        MissingLength = "missing-length",
        /// A message announces more bytes than the datagram contains.
        #[error("a message runs past the end of the datagram")]
        BlockPastEnd = "block-past-end",
        /// The sequences of the messages do not fit in 64 bits; in IEX-TP in 63 bits, nor may the stream offset exceed those.
        #[error("sequence and count, or the stream offset, exceed 64 bits (63 in IEX-TP)")]
        SequenceOverflow = "sequence-overflow",
        /// The version of the transport is not supported.
        #[error("another version of the transport")]
        Version = "wrong-version",
        /// The datagram ends before the payload that its header announces.
        #[error("shorter than the payload that it announces")]
        ShortPayload = "short-payload",
        /// The payload continues after the announced messages.
        #[error("bytes of the payload belong to no message")]
        Uncounted = "uncounted-bytes",
    }
}
