//! Limits and policies.

use crate::framing::Framing;

/// The start of delivery in the first session of a channel. Later sessions start at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// Start with the first message that arrives: for receivers that join a running feed.
    #[default]
    First,
    /// Start with message 1; messages before the first arrival are a gap.
    FromOne,
}

/// The handling of a packet more than [`ArbiterSettings::max_jump`] ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jump {
    /// Ignore it unless the next packet so far ahead agrees with it: one stray packet does no harm, and after a
    /// long outage the second packet is accepted. Ignored messages are part of the gap.
    #[default]
    Confirm,
    /// Accept it at once.
    Believe,
    /// Always ignore it.
    Ignore,
}

/// The handling of a line whose sequences go back within a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Ignore it: repeated sequences are duplicates, whatever they contain.
    Ignore,
    /// A sequence reset if the messages differ from the earlier ones with the same sequences, once a second packet in a row confirms it. If the
    /// earlier messages are unknown: once the line has continued for eight packets, or for as long as a session counts as alive without any line
    /// in the old numbering. Equal messages are duplicates.
    #[default]
    Changed,
    /// As [`Self::Changed`]; also if a line starts at sequence 1 again and continues from there, as IEX's senders have done.
    Reset,
}

/// The limits and policies of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArbiterSettings {
    /// The transport of the datagrams.
    pub framing: Framing,
    /// Maximum distance of a held message from the next one, in messages (at most 2²⁴). 40 bytes are allocated for
    /// each at the start. With 0 nothing is held: a missing message is declared at once.
    pub window_messages: usize,
    /// Maximum bytes of held messages; four times as many are allocated at the start.
    pub window_bytes: usize,
    /// Time before a missing message is declared missing, in ns.
    pub window_age_ns: u64,
    /// Additional time for recovery of messages that are still missing after [`window_age_ns`](Self::window_age_ns), in ns; 0 without
    /// recovery. All messages after the hole wait meanwhile, so the window must hold the messages of that time.
    pub recovery_age_ns: u64,
    /// The handling of sequences that go back.
    pub restart: Restart,
    /// The start of the first session.
    pub start: Start,
    /// Maximum number of messages by which a packet may be ahead without confirmation.
    pub max_jump: u64,
    /// The handling of a packet beyond that.
    pub on_jump: Jump,
    /// Time in ns after its last packet for which the present session counts as alive. During that time another session must be confirmed, and
    /// the previous one counts as over. Heartbeats come every second, so three seconds of silence mean that the session is gone.
    pub session_hold_ns: u64,
    /// `true` to expire old gaps by each packet's receive time, for readers of all lines in the order of time, such as of captures. A plant reads
    /// one socket after the other, many datagrams each: a message that is missing on one line may still be unread on the next, so the plant calls
    /// `expire` itself when all sockets are empty.
    pub expire_on_packet: bool,
}

impl Default for ArbiterSettings {
    /// MoldUDP64; 16,384 messages, 512 KiB, 20 ms: more than the difference between an exchange's lines, less than an outage to a reader of quotes.
    /// A jump of more than 4,096 messages needs confirmation: otherwise one wrong byte of a sequence would declare all messages before it missing.
    fn default() -> Self {
        Self {
            framing: Framing::MoldUdp64,
            window_messages: 16_384,
            window_bytes: 512 << 10,
            window_age_ns: 20_000_000,
            recovery_age_ns: 0,
            restart: Restart::Changed,
            start: Start::First,
            max_jump: 4_096,
            on_jump: Jump::Confirm,
            session_hold_ns: 3_000_000_000,
            expire_on_packet: true,
        }
    }
}
