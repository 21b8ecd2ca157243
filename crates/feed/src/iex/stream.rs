//! What the segments of one line amounted to.

use tapeline_nanos::Nanos;

use super::tp::{Segment, Session};

/// How many restarts and gaps are listed; more are only counted.
const MAX_LISTED: usize = 1_000;

/// How many sessions are listed.
const MAX_SESSIONS: usize = 64;

/// Segments between two starts of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Its first segment, counted from 0 over the whole line.
    pub first_segment: u64,
    /// Segments.
    pub segments: u64,
    /// Messages.
    pub messages: u64,
    /// Sequence of the last message; 0 where there was none.
    pub last_sequence: u64,
}

/// Follows sequences and stream offsets of one line, as they come.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Segments.
    pub segments: u64,
    /// Those without a message.
    pub heartbeats: u64,
    /// Messages.
    pub messages: u64,
    /// The largest payload, bytes.
    pub max_payload: usize,
    /// The most messages of one segment.
    pub max_messages: u16,
    /// The first sequence.
    pub first: Option<u64>,
    /// The sequence that comes next in the latest epoch.
    pub next: u64,
    /// The stream offset that comes next.
    pub next_offset: u64,
    /// When the first and the last segment were sent.
    pub sent: Option<(Nanos, Nanos)>,
    /// Sequences that are missing, first and last; the first 1,000 of them.
    pub gaps: Vec<(u64, u64)>,
    /// How often sequences were missing.
    pub gap_count: u64,
    /// How often a segment's offset was not the one that came next, restarts included.
    pub offset_breaks: u64,
    /// How often the sender began anew: sequence and stream offset went back to the start.
    pub restarts: u64,
    /// What lies between the starts, the first one included; the first 1,000 of them.
    pub epochs: Vec<Epoch>,
    /// Sessions with their segments; the first 64 of them.
    pub sessions: Vec<(Session, u64)>,
}

impl Stream {
    /// Takes a segment. Whether the sender began anew with it.
    pub fn segment(&mut self, segment: &Segment<'_>) -> bool {
        let restarted = self.first.is_some() && segment.is_start() && self.next > 1;
        self.restarts += u64::from(restarted);
        if self.first.is_some() {
            self.offset_breaks += u64::from(segment.offset() != self.next_offset);
            if !restarted && segment.first() > self.next {
                self.gap_count += 1;
                if self.gaps.len() < MAX_LISTED {
                    self.gaps.push((self.next, segment.first() - 1));
                }
            }
        }
        if (restarted || self.first.is_none()) && self.epochs.len() < MAX_LISTED {
            let first_segment = self.segments;
            self.epochs.push(Epoch { first_segment, segments: 0, messages: 0, last_sequence: 0 });
        }
        self.first.get_or_insert(segment.first());
        (self.next, self.next_offset) = (segment.next(), segment.next_offset());
        self.segments += 1;
        self.heartbeats += u64::from(segment.is_heartbeat());
        self.messages += u64::from(segment.count());
        self.max_payload = self.max_payload.max(segment.payload_bytes());
        self.max_messages = self.max_messages.max(segment.count());
        self.sent = Some((self.sent.map_or(segment.sent(), |(first, _)| first), segment.sent()));
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.segments += 1;
            epoch.messages += u64::from(segment.count());
            if !segment.is_heartbeat() {
                epoch.last_sequence = segment.next() - 1;
            }
        }
        if let Some((_, segments)) =
            self.sessions.iter_mut().find(|(session, _)| *session == segment.session())
        {
            *segments += 1;
        } else if self.sessions.len() < MAX_SESSIONS {
            self.sessions.push((segment.session(), 1));
        }
        restarted
    }
}
