//! Arbitration: several lines with the same feed become one feed.
//!
//! An exchange sends each channel on two lines or more (A, B, …). [`Arbiter`] passes every message to a [`Sink`] once, in sequence: the first
//! arrival wins, on any line and with any packet boundaries. A bounded window holds messages that are ahead of sequence. If the window is exceeded,
//! in messages, bytes or age, the messages that are still missing are declared a gap, once.
//!
//! | situation | action |
//! |---|---|
//! | first packet of the first session | delivery starts with it, or with 1 ([`Start`]) |
//! | next in sequence | delivered at once without a copy |
//! | ahead of sequence | copied and held; delivered when the hole before it is filled or declared |
//! | behind, seen before | counted as a duplicate; gives the skew between the lines |
//! | behind, declared missing before | counted as late, not delivered: later messages are already out |
//! | heartbeat ahead of sequence | the messages before it are missing; declared when they get too old |
//! | end of session | like a heartbeat; when everything is delivered or declared, the end, once |
//! | beyond the announced end | held until a second packet confirms it, on any line: then the end is revoked, and delivery continues without loss |
//! | another session, the present one ended or silent | held messages are delivered or declared, then a reset; numbering starts at 1 |
//! | another session, present one alive | held until its second packet, next on the same or another line, then as above; void if the line returns |
//! | previous session, while the present one is alive | counted as stale and ignored |
//! | behind, with other contents ([`Restart::Changed`]) | held until a second packet in a row or another line confirms it: reset, then delivery |
//! | sequence 1 again, on a line that had got further | a duplicate, or ([`Restart::Reset`]) held until the line continues from there: then a reset |
//! | late, of the numbering before a reset | counted as stale and ignored, as far as it can be compared |
//! | from [`Line::RECOVERY`] | fills holes, and nothing else |
//! | from it after a reset, perhaps with the old numbering | counted as stale and ignored, until the server has shown its numbering |
//! | sequence 0 | counted as absurd and ignored |
//! | a jump beyond [`ArbiterSettings::max_jump`] | ignored until a second packet agrees ([`Jump`]) |

mod arbiter;
mod arrivals;
mod doubt;
mod held;
mod lane;
mod quarantine;
mod seen;
mod settings;
mod statistics;

pub use arbiter::Arbiter;
pub use settings::{ArbiterSettings, Jump, Restart, Start};
pub use statistics::{ChannelStatistics, LARGEST_GAP, LineStatistics, Skew};

pub use crate::framing::{DatagramKind, MalformedDatagram, Messages, Packet, Session};

use tapeline_nanos::Nanos;

/// The maximum number of lines of a channel.
pub const MAX_LINES: usize = 8;

/// Number of lines, recovery included.
const LANES: usize = MAX_LINES + 1;

/// A line of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(u8);

impl Line {
    /// The first line.
    pub const A: Self = Self(0);
    /// The second line.
    pub const B: Self = Self(1);
    /// The line of retransmitted packets. It does not affect which messages exist or which lines are alive.
    pub const RECOVERY: Self = Self(MAX_LINES as u8);

    /// Returns the line of a number below [`MAX_LINES`].
    #[must_use]
    pub const fn new(number: usize) -> Option<Self> {
        // Lossless: below MAX_LINES.
        if number < MAX_LINES { Some(Self(number as u8)) } else { None }
    }

    /// Returns the line's number, from 0; [`MAX_LINES`] for recovery.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// Returns the line's letter, `A` to `H`; `R` for recovery.
    #[must_use]
    pub const fn letter(self) -> char {
        if self.0 as usize == MAX_LINES { 'R' } else { (b'A' + self.0) as char }
    }
}

/// The destination of the messages of a channel.
pub trait Sink {
    /// Takes the next messages, which arrived together. A sink that does better with several at once can do so here.
    #[inline]
    fn run(&mut self, messages: Messages<'_>, received: Nanos) {
        for (sequence, bytes) in messages {
            self.message(sequence, bytes, received);
        }
    }

    /// Takes the next message, with the receive time of its first arrival.
    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos);

    /// Reports that the messages `first` to `last` are missing, and will not be delivered.
    fn gap(&mut self, first: u64, last: u64);

    /// Reports the end of the session; `next` is one more than the sequence of its last message.
    fn end_of_session(&mut self, next: u64);

    /// Reports that the session continues after its announced end; `next` is the next sequence. Nothing was lost.
    fn end_taken_back(&mut self, next: u64) {
        let _ = next;
    }

    /// Reports the start of a session, the first one included: the state built from earlier messages is void.
    fn reset(&mut self, session: Session);

    /// Reports that the new session starts with this message, as with [`Start::First`]: earlier messages came before the receiver listened, and
    /// are not a gap.
    fn begins_late(&mut self, first: u64) {
        let _ = first;
    }
}
