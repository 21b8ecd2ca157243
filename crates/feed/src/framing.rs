//! What one datagram is, whatever protocol carries it.
//!
//! A feed's transport numbers its messages and packs them into datagrams. Arbitration needs no more than that: the session,
//! the sequences, the messages. [`Framing`] names the transport and reads a datagram as a [`Packet`].
//!
//! Another transport is a module of its own beside [`moldudp64`], a variant of [`Framing`] and of [`Session`], and its
//! reasons in [`Malformed`].

use std::fmt;

use crate::iex::tp;
use crate::moldudp64;

pub use crate::blocks::Messages;

/// The transport that a feed's datagrams belong to.
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
    /// Reads a datagram and checks that every message that it announces is there.
    ///
    /// # Errors
    /// [`Malformed`], with nothing delivered.
    #[inline]
    pub fn parse(self, datagram: &[u8]) -> Result<Packet<'_>, Malformed> {
        match self {
            Self::MoldUdp64 => Ok(moldudp64::parse(datagram)?.into()),
            Self::IexTp => Ok(tp::parse(datagram)?.into()),
        }
    }
}

/// Within what sequences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Session {
    /// The name of a MoldUDP64 session.
    MoldUdp64(moldudp64::Session),
    /// A session of IEX-TP: message protocol, channel and number.
    IexTp(tp::Session),
}

impl From<moldudp64::Session> for Session {
    fn from(session: moldudp64::Session) -> Self {
        Self::MoldUdp64(session)
    }
}

impl From<tp::Session> for Session {
    fn from(session: tp::Session) -> Self {
        Self::IexTp(session)
    }
}

/// MoldUDP64's name; IEX-TP's protocol, channel and session.
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
    /// The session that it belongs to.
    pub session: Session,
    /// What it carries.
    pub kind: Kind<'a>,
    /// Bytes behind what it announces: ignored, but to be counted.
    pub trailing: usize,
}

/// What a datagram carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// Messages, at least one.
    Data {
        /// Sequence of the first.
        first: u64,
        /// The messages.
        messages: Messages<'a>,
    },
    /// The sender is alive, and has sent everything before `next`.
    Heartbeat {
        /// Sequence of the message that will come next.
        next: u64,
    },
    /// Nothing more comes in this session.
    EndOfSession {
        /// One more than the sequence of the session's last message.
        next: u64,
    },
}

impl<'a> Kind<'a> {
    /// The same without the messages' bytes, and these: to be kept apart.
    pub(crate) const fn apart(&self) -> (Kind<'static>, &'a [u8]) {
        match *self {
            Self::Data { first, messages } => {
                (Kind::Data { first, messages: messages.over(&[]) }, messages.blocks())
            }
            Self::Heartbeat { next } => (Kind::Heartbeat { next }, &[]),
            Self::EndOfSession { next } => (Kind::EndOfSession { next }, &[]),
        }
    }

    /// What was taken [`apart`](Self::apart), with its bytes or a copy of them.
    pub(crate) const fn over<'b>(&self, blocks: &'b [u8]) -> Kind<'b> {
        match *self {
            Self::Data { first, messages } => Kind::Data { first, messages: messages.over(blocks) },
            Self::Heartbeat { next } => Kind::Heartbeat { next },
            Self::EndOfSession { next } => Kind::EndOfSession { next },
        }
    }

    /// The sequences of the messages, from the first to before the second; a heartbeat and an end carry none before the next.
    #[inline]
    #[must_use]
    pub const fn sequences(&self) -> (u64, u64) {
        match self {
            Self::Data { first, messages } => (*first, messages.end()),
            Self::Heartbeat { next } | Self::EndOfSession { next } => (*next, *next),
        }
    }
}

impl<'a> From<moldudp64::Packet<'a>> for Packet<'a> {
    #[inline]
    fn from(packet: moldudp64::Packet<'a>) -> Self {
        let kind = match packet {
            moldudp64::Packet::Data(data) => Kind::Data { first: data.sequence(), messages: data.messages() },
            moldudp64::Packet::Heartbeat { next, .. } => Kind::Heartbeat { next },
            moldudp64::Packet::EndOfSession { next, .. } => Kind::EndOfSession { next },
        };
        Self { session: packet.session().into(), kind, trailing: packet.trailing() }
    }
}

/// A segment without messages is a heartbeat; IEX-TP does not announce the end of a session.
impl<'a> From<tp::Segment<'a>> for Packet<'a> {
    #[inline]
    fn from(segment: tp::Segment<'a>) -> Self {
        let kind = if segment.is_heartbeat() {
            Kind::Heartbeat { next: segment.first() }
        } else {
            Kind::Data { first: segment.first(), messages: segment.messages() }
        };
        Self { session: segment.session().into(), kind, trailing: segment.trailing() }
    }
}

/// Why a datagram is no packet of its transport. Whoever sent it is at fault, or the way it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Fewer bytes than a header has.
    #[error("shorter than the header")]
    ShortHeader,
    /// The datagram ends before or within a message's length.
    #[error("the length of an announced message is missing")]
    MissingLength,
    /// A message announces more bytes than the datagram has.
    #[error("a message runs past the end of the datagram")]
    BlockPastEnd,
    /// The sequences of the messages do not fit in 64 bits.
    #[error("sequence and count exceed 64 bits")]
    SequenceOverflow,
    /// A version of the transport that is not read.
    #[error("another version of the transport")]
    Version,
    /// The datagram ends before the payload that its header announces.
    #[error("shorter than the payload that it announces")]
    ShortPayload,
    /// The payload goes on behind the announced messages.
    #[error("bytes of the payload belong to no message")]
    Uncounted,
}

impl Malformed {
    /// Every reason, in the order of [`index`](Self::index).
    pub const ALL: [Self; 7] = [
        Self::ShortHeader,
        Self::MissingLength,
        Self::BlockPastEnd,
        Self::SequenceOverflow,
        Self::Version,
        Self::ShortPayload,
        Self::Uncounted,
    ];

    /// A dense number for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A stable label for reports and counters.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ShortHeader => "short-header",
            Self::MissingLength => "missing-length",
            Self::BlockPastEnd => "block-past-end",
            Self::SequenceOverflow => "sequence-overflow",
            Self::Version => "wrong-version",
            Self::ShortPayload => "short-payload",
            Self::Uncounted => "uncounted-bytes",
        }
    }
}

impl From<tp::Malformed> for Malformed {
    fn from(malformed: tp::Malformed) -> Self {
        match malformed {
            tp::Malformed::ShortHeader => Self::ShortHeader,
            tp::Malformed::Version => Self::Version,
            tp::Malformed::ShortPayload => Self::ShortPayload,
            tp::Malformed::MissingLength => Self::MissingLength,
            tp::Malformed::BlockPastEnd => Self::BlockPastEnd,
            tp::Malformed::Uncounted => Self::Uncounted,
            tp::Malformed::SequenceOverflow => Self::SequenceOverflow,
        }
    }
}

impl From<moldudp64::Malformed> for Malformed {
    fn from(malformed: moldudp64::Malformed) -> Self {
        match malformed {
            moldudp64::Malformed::ShortHeader => Self::ShortHeader,
            moldudp64::Malformed::MissingLength => Self::MissingLength,
            moldudp64::Malformed::BlockPastEnd => Self::BlockPastEnd,
            moldudp64::Malformed::SequenceOverflow => Self::SequenceOverflow,
        }
    }
}
