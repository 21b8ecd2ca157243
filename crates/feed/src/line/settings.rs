//! Bounds and policies.

use crate::framing::Framing;

/// Where delivery starts in the first session that a channel meets. Later sessions start at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the first message that arrives: for one who joins while the feed runs.
    #[default]
    First,
    /// With message 1; what came before the first arrival is a gap.
    FromOne,
}

/// What becomes of a packet that is more than [`Settings::max_jump`] ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jump {
    /// It is ignored unless the next packet so far ahead agrees with it: one stray packet does no harm, and after a
    /// long outage the second packet is believed. What was ignored is part of the gap.
    #[default]
    Confirm,
    /// It is believed at once.
    Believe,
    /// It is always ignored.
    Ignore,
}

/// What it means when a line goes back within a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Restart {
    /// Nothing: what comes again is a duplicate, whatever is in it.
    Ignore,
    /// Numbers have begun again where what comes is not what had come under them: a reset, once a second packet in a row
    /// agrees; or where nothing is known of what had come, and the line goes on from there for eight packets, or for as long as
    /// a session is held for alive while nobody goes on in the old numbering. Copies are duplicates.
    #[default]
    Changed,
    /// As above; also where a line begins with sequence 1 again and goes on from there, as IEX's senders have been seen to do.
    Reset,
}

/// The bounds and policies of an arbiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The transport of the datagrams.
    pub framing: Framing,
    /// How far ahead of the next message one can be and be held, in messages (at most 2²⁴). 40 bytes are taken for
    /// each at the start. With 0 nothing is held: whatever is missing is declared at once.
    pub window_messages: usize,
    /// Bytes of messages that can be held; four times as many are taken at the start.
    pub window_bytes: usize,
    /// How long to wait for a missing message before it is declared missing, ns.
    pub window_age_ns: u64,
    /// How long recovery may take to bring what is still missing after [`window_age_ns`](Self::window_age_ns), ns. 0 where
    /// nobody asks for it again. Everything behind the hole waits meanwhile, so the window must hold what comes in that time.
    pub recovery_age_ns: u64,
    /// What it means when sequences go back.
    pub restart: Restart,
    /// Where the first session starts.
    pub start: Start,
    /// Messages ahead of what is known beyond which a packet is not simply believed.
    pub max_jump: u64,
    /// What becomes of such a packet.
    pub on_jump: Jump,
    /// For how long after its last packet the present session is thought to be alive, ns: so long, another one has to be
    /// confirmed and the one before it is over. Heartbeats come every second, so three seconds of silence mean that it is gone.
    pub session_hold_ns: u64,
    /// Whether each packet's time of receipt makes old gaps expire. For one who reads all lines in the order of their
    /// times, such as from captures. A plant reads one socket after the other, many datagrams each: what is missing on one
    /// line may lie unread on the next, so it calls `expire` itself when all of them are empty.
    pub expire_on_packet: bool,
}

impl Default for Settings {
    /// MoldUDP64; 16,384 messages, 512 KiB, 20 ms: more than the difference between an exchange's lines, less than what a reader of
    /// quotes would take for an outage. A jump of more than 4,096 messages wants a second word: a single wrong byte of a
    /// sequence would else declare everything missing that comes before it.
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
