//! A channel's recent messages, by sequence, for retransmission.

use std::collections::VecDeque;
use std::ops::Range;

use tapeline_nanos::Nanos;

use crate::line::{Session, Sink};

/// The limits of a history. At either limit the oldest messages are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages, holes included; 8 bytes are allocated for each.
    pub messages: usize,
    /// Bytes of messages and of their lengths (two bytes each), reserved at the start.
    pub bytes: usize,
}

impl Default for Limits {
    /// A million messages in 64 MiB: some seconds of a busy feed.
    fn default() -> Self {
        Self { messages: 1 << 20, bytes: 64 << 20 }
    }
}

/// The latest messages of one session, each whole and contiguous after its length.
///
/// The messages are in a ring buffer; a message that does not fit at its end goes to its front. Nothing is allocated after creation. As a [`Sink`]
/// a history takes an arbiter's output; missing messages leave holes.
///
/// ```
/// use tapeline_feed::history::{History, Limits};
///
/// let mut history = History::new(Limits { messages: 100, bytes: 32 });
/// assert!(history.push(7, b"seven") && history.push(9, b"nine"));
/// assert_eq!((history.message(7), history.message(8)), (Some(&b"seven"[..]), None));
/// // 20 bytes more do not fit behind these: at the front they take the place of both.
/// assert!(history.push(10, &[b'x'; 18]));
/// assert_eq!((history.message(7), history.message(9)), (None, None));
/// assert_eq!((history.first(), history.next()), (10, 11));
/// ```
#[derive(Debug)]
pub struct History {
    session: Option<Session>,
    bytes: Box<[u8]>,
    /// Position of the next message.
    head: usize,
    /// Sequence of the first place; 0 before the first message.
    first: u64,
    /// Position of each message with its length, or [`HOLE`].
    places: VecDeque<usize>,
    limit: usize,
    ended: bool,
    forgotten: u64,
    over: Option<(Session, u64)>,
}

/// The position of a missing message.
const HOLE: usize = usize::MAX;

impl History {
    /// Creates an empty history.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let limit = limits.messages.max(1);
        Self {
            session: None,
            bytes: vec![0; limits.bytes].into(),
            head: 0,
            first: 0,
            places: VecDeque::with_capacity(limit),
            limit,
            ended: false,
            forgotten: 0,
            over: None,
        }
    }

    /// Drops all messages and begins `session`. Its first message may have any sequence.
    pub fn begin(&mut self, session: impl Into<Session>) {
        self.over = self.session.map(|over| (over, self.next()));
        self.session = Some(session.into());
        self.places.clear();
        (self.head, self.first, self.ended, self.forgotten) = (0, 0, false, 0);
    }

    /// Adds a message. Returns `false` if its sequence is 0 or not ahead of all earlier ones, or if the message alone exceeds
    /// the limit (then it leaves a hole).
    pub fn push(&mut self, sequence: u64, message: &[u8]) -> bool {
        if sequence == 0 || sequence == u64::MAX || (self.first > 0 && sequence < self.next()) {
            return false;
        }
        // The announced end was wrong.
        self.ended = false;
        self.skip_to(sequence);
        let length = u16::try_from(message.len()).ok().filter(|_| 2 + message.len() <= self.bytes.len());
        let Some(length) = length else {
            self.append(HOLE);
            return false;
        };
        let room = self.room_for(2 + message.len());
        // All earlier messages may have been dropped for this one.
        if self.places.is_empty() {
            self.first = sequence;
        }
        self.append(room.start);
        self.head = room.end;
        let (prefix, data) = self.bytes[room].split_at_mut(2);
        prefix.copy_from_slice(&length.to_be_bytes());
        data.copy_from_slice(message);
        true
    }

    /// Returns the message of a sequence, while it is in the history.
    #[inline]
    #[must_use]
    pub fn message(&self, sequence: u64) -> Option<&[u8]> {
        let number = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        let at = *self.places.get(number)?;
        let (length, rest) = self.bytes.get(at..)?.split_first_chunk()?;
        rest.get(..usize::from(u16::from_be_bytes(*length)))
    }

    /// Returns the messages from `sequence` on, up to the first one that is missing.
    pub fn run(&self, sequence: u64) -> impl Iterator<Item = (u64, &[u8])> {
        (sequence..u64::MAX).map_while(|sequence| Some((sequence, self.message(sequence)?)))
    }

    /// Returns the session; `None` before the first.
    #[must_use]
    pub const fn session(&self) -> Option<Session> {
        self.session
    }

    /// Returns the oldest sequence in the history; 1 before the first message.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first.max(1)
    }

    /// Returns one more than the newest sequence; 1 before the first message.
    #[must_use]
    pub fn next(&self) -> u64 {
        (self.first + self.places.len() as u64).max(1)
    }

    /// Returns `true` if the session is over: no message will be added.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.ended
    }

    /// Returns the previous session, and one more than its newest sequence; `None` if there was none.
    #[must_use]
    pub const fn over(&self) -> Option<(Session, u64)> {
        self.over
    }

    /// Returns the number of messages of this session that were dropped for newer ones.
    #[must_use]
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Adds holes up to before `sequence`; if they would displace all messages, they are not written one by one.
    fn skip_to(&mut self, sequence: u64) {
        if self.first == 0 {
            self.first = sequence;
        }
        let holes = sequence - self.next();
        if holes >= self.limit as u64 {
            while !self.places.is_empty() {
                self.forget();
            }
            self.first = sequence;
            return;
        }
        for _ in 0..holes {
            self.append(HOLE);
        }
    }

    fn append(&mut self, place: usize) {
        if self.places.len() == self.limit {
            self.forget();
        }
        self.places.push_back(place);
    }

    fn forget(&mut self) {
        if let Some(place) = self.places.pop_front() {
            self.first += 1;
            self.forgotten += u64::from(place != HOLE);
        }
    }

    /// Frees contiguous bytes, at most the whole ring, and returns their range. The oldest message is always the next one after the head, around
    /// the ring, so messages are dropped oldest first.
    fn room_for(&mut self, length: usize) -> Range<usize> {
        if self.head + length > self.bytes.len() {
            // Messages between the head and the end are older than those at the front.
            while self.oldest().is_some_and(|at| at >= self.head) {
                self.forget();
            }
            self.head = 0;
        }
        let room = self.head..self.head + length;
        while self.oldest().is_some_and(|at| room.contains(&at)) {
            self.forget();
        }
        room
    }

    /// Returns the position of the oldest message; drops holes before it.
    fn oldest(&mut self) -> Option<usize> {
        while self.places.front() == Some(&HOLE) {
            self.forget();
        }
        self.places.front().copied()
    }
}

impl Sink for History {
    fn message(&mut self, sequence: u64, bytes: &[u8], _: Nanos) {
        self.push(sequence, bytes);
    }

    fn gap(&mut self, _: u64, last: u64) {
        // Before the first message no hole is needed.
        if self.first > 0 && last < u64::MAX && last >= self.next() {
            self.skip_to(last + 1);
        }
    }

    fn end_of_session(&mut self, _: u64) {
        self.ended = true;
    }

    fn reset(&mut self, session: Session) {
        self.begin(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moldudp64;

    /// Compares with a map that drops by the same rule: the stored messages are right, and the newest ones.
    #[test]
    fn what_is_kept_is_what_was_pushed_and_the_bounds_hold() {
        let mut random = 7_u64;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for limits in [Limits { messages: 50, bytes: 400 }, Limits { messages: 1_000, bytes: 300 }] {
            let mut history = History::new(limits);
            history.begin(moldudp64::MoldSession::new("X"));
            let mut pushed = std::collections::BTreeMap::new();
            let mut sequence = 1 + draw(100);
            for _ in 0..20_000 {
                let message = vec![sequence as u8; draw(60) as usize];
                assert!(history.push(sequence, &message), "{sequence}");
                assert!(!history.push(sequence, b"again"));
                pushed.insert(sequence, message);
                assert_eq!(history.next(), sequence + 1);
                let kept: Vec<_> = (history.first()..history.next())
                    .filter_map(|sequence| Some((sequence, history.message(sequence)?.to_vec())))
                    .collect();
                let newest: Vec<_> = pushed.iter().rev().take(kept.len()).rev().collect();
                assert!(kept.iter().map(|(sequence, message)| (sequence, message)).eq(newest));
                assert!(kept.iter().map(|(_, message)| 2 + message.len()).sum::<usize>() <= limits.bytes);
                assert!(history.places.len() <= limits.messages);
                // The longest message and its length take 62 bytes, so up to 62 bytes can be unused at the ring's end, and as many may have been
                // dropped for the newest message.
                let used: usize = kept.iter().map(|(_, message)| 2 + message.len()).sum();
                assert!(
                    kept.len() == pushed.len()
                        || history.places.len() + 8 > limits.messages
                        || used + 2 * 62 > limits.bytes,
                    "{used} of {} bytes, {} places",
                    limits.bytes,
                    history.places.len()
                );
                sequence += if draw(10) == 0 { 1 + draw(8) } else { 1 };
                if draw(2_000) == 0 {
                    // A jump beyond the capacity.
                    sequence += 2_000;
                    pushed.clear();
                }
            }
            assert!(history.forgotten() > 10_000);
        }
    }

    #[test]
    fn a_message_that_cannot_be_kept_leaves_a_hole() {
        let mut history = History::new(Limits { messages: 10, bytes: 20 });
        history.begin(moldudp64::MoldSession::new("X"));
        assert_eq!(history.over(), None);
        assert!(history.push(5, &[1; 4]) && !history.push(6, &[0; 19]) && history.push(7, &[2; 4]));
        assert_eq!((history.message(6), history.message(7)), (None, Some(&[2; 4][..])));
        assert_eq!(history.run(7).count(), 1);
        assert!(!history.push(0, b"") && !history.push(u64::MAX, b"") && !history.push(7, b""));
        assert!(history.push(8, &[3; 18]));
        assert_eq!((history.first(), history.next(), history.forgotten()), (8, 9, 2));
        history.begin(moldudp64::MoldSession::new("NEXT"));
        assert_eq!((history.first(), history.next(), history.message(8)), (1, 1, None));
        assert_eq!(history.over(), Some((moldudp64::MoldSession::new("X").into(), 9)));
    }
}
