//! Several copies of one feed become one.
//!
//! An exchange sends each channel on two lines or more (A, B, …). [`Arbiter`] hands every message to a [`Sink`] once,
//! in the order of its sequence: the first copy wins, whichever line brought it and whatever the packets' boundaries are.
//! Messages that come too early are held in a bounded window; what is still missing when the window is exceeded, in
//! messages, bytes or age, is declared a gap, once.
//!
//! | situation | what happens |
//! |---|---|
//! | first packet of the first session | delivery starts with it, or with 1 ([`Start`]) |
//! | next in sequence | delivered at once, nothing is copied |
//! | ahead of sequence | copied and held; delivered when the hole before it is filled or declared |
//! | behind, seen before | counted as a duplicate; gives the skew between the lines |
//! | behind, declared missing before | counted as late, not delivered: what followed it is gone already |
//! | heartbeat ahead of sequence | the messages before it are missing; declared when they get too old |
//! | end of session | as a heartbeat; when everything is delivered or declared, the end, once |
//! | beyond the announced end | kept until a second packet agrees, on any line: then the end was none, it is taken back, and delivery goes on with nothing lost |
//! | another session, the present one ended or silent | what is held is delivered or declared, then a reset; numbering starts at 1 |
//! | another session, the present one alive | kept until a second packet of it comes, next on the same line or on another one: then as above; a line that goes back to the present session takes its word back |
//! | previous session, while the present one is alive | counted as stale and ignored |
//! | behind, and not what had come ([`Restart::Changed`]) | set aside until a second packet in a row, or another line, says so: then a reset, and what was set aside is delivered |
//! | sequence 1 again, on a line that had got further | a duplicate, or ([`Restart::Reset`]) kept until the line goes on from there: then a reset |
//! | late, of the numbering before a reset | counted as stale and ignored, as far as it can be compared |
//! | from [`Line::RECOVERY`] | fills holes, and nothing else |
//! | from it after a reset, and perhaps of the numbering before | counted as stale and ignored, until the server has shown which one it has |
//! | sequence 0 | counted as absurd and ignored |
//! | a jump beyond [`Settings::max_jump`] | ignored until a second packet agrees ([`Jump`]) |

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
pub use settings::{Jump, Restart, Settings, Start};
pub use statistics::{LARGEST_GAP, LineStatistics, Skew, Statistics};

pub use crate::framing::{Kind, Malformed, Messages, Packet, Session};

use tapeline_nanos::Nanos;

/// The most lines that a channel can have.
pub const MAX_LINES: usize = 8;

/// Lines, and recovery.
const LANES: usize = MAX_LINES + 1;

/// One of a channel's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(u8);

impl Line {
    /// The first line.
    pub const A: Self = Self(0);
    /// The second line.
    pub const B: Self = Self(1);
    /// Where packets come from that were asked for again. It says nothing about what exists or who is alive.
    pub const RECOVERY: Self = Self(MAX_LINES as u8);

    /// The line of a number below [`MAX_LINES`].
    #[must_use]
    pub const fn new(number: usize) -> Option<Self> {
        // Cannot cut: below MAX_LINES.
        if number < MAX_LINES { Some(Self(number as u8)) } else { None }
    }

    /// The line's number, from 0; [`MAX_LINES`] for recovery.
    #[must_use]
    pub const fn number(self) -> usize {
        self.0 as usize
    }

    /// The line's letter, `A` to `H`; `R` for recovery.
    #[must_use]
    pub const fn letter(self) -> char {
        if self.0 as usize == MAX_LINES { 'R' } else { (b'A' + self.0) as char }
    }
}

/// Where the messages of a channel go.
pub trait Sink {
    /// Messages that will be delivered now, one after another, as they lie in a datagram. Nothing has to be done.
    #[inline]
    fn coming(&mut self, messages: Messages<'_>) {
        let _ = messages;
    }

    /// The next message, at the time at which its first copy was received.
    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos);

    /// The messages `first` to `last` are missing, and will not be delivered any more.
    fn gap(&mut self, first: u64, last: u64);

    /// The session is over; `next` is one more than the sequence of its last message.
    fn end_of_session(&mut self, next: u64);

    /// The session goes on, whose end was told; `next` is the sequence that comes next. Nothing was lost by it.
    fn end_taken_back(&mut self, next: u64) {
        let _ = next;
    }

    /// A session begins, the first one included: what the messages have built up so far no longer holds.
    fn reset(&mut self, session: Session);

    /// The session that has just begun is taken from this message on, as [`Start::First`] has it: those before it came before anybody
    /// listened, and are no gap.
    fn begins_late(&mut self, first: u64) {
        let _ = first;
    }
}
