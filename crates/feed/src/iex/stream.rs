//! Statistics of the segments of one line.

use tapeline_nanos::Nanos;

use super::tp::{IexSession, Segment};

/// Maximum number of listed restarts and gaps; further ones are only counted.
const MAX_LISTED: usize = 1_000;

/// Maximum number of listed sessions.
const MAX_SESSIONS: usize = 64;

/// The segments between two starts of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// Number of its first segment, counted from 0 over the whole line.
    pub first_segment: u64,
    /// Number of segments.
    pub segments: u64,
    /// Number of messages.
    pub messages: u64,
    /// Sequence of the last message; 0 without messages.
    pub last_sequence: u64,
}

/// Follows sequences and stream offsets of one line, in the order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Number of segments.
    pub segments: u64,
    /// Segments without messages.
    pub heartbeats: u64,
    /// Number of messages.
    pub messages: u64,
    /// Maximum size of a payload, bytes.
    pub max_payload: usize,
    /// Maximum number of messages of one segment.
    pub max_messages: u16,
    /// The first sequence.
    pub first: Option<u64>,
    /// The next sequence of the latest epoch.
    pub next: u64,
    /// The next stream offset.
    pub next_offset: u64,
    /// Send times of the first and the last segment.
    pub sent: Option<(Nanos, Nanos)>,
    /// Missing ranges, each with first and last sequence; the first 1,000 of them.
    pub gaps: Vec<(u64, u64)>,
    /// Number of missing ranges.
    pub gap_count: u64,
    /// Segments whose offset was not the next one, restarts included.
    pub offset_breaks: u64,
    /// Restarts of the sender: sequence and stream offset went back to the start.
    pub restarts: u64,
    /// The epochs between restarts, the first included; the first 1,000 of them.
    pub epochs: Vec<Epoch>,
    /// Sessions with their numbers of segments; the first 64 of them.
    pub sessions: Vec<(IexSession, u64)>,
}

impl Stream {
    /// Adds a segment. Returns `true` if the sender restarted with it.
    pub fn segment(&mut self, segment: &Segment<'_>) -> bool {
        let restarted = self.first.is_some() && segment.is_start() && self.next > 1;
        self.restarts += u64::from(restarted);
        if self.first.is_some() {
            self.offset_breaks += u64::from(segment.offset != self.next_offset);
            if !restarted && segment.first > self.next {
                self.gap_count += 1;
                if self.gaps.len() < MAX_LISTED {
                    self.gaps.push((self.next, segment.first - 1));
                }
            }
        }
        if (restarted || self.first.is_none()) && self.epochs.len() < MAX_LISTED {
            let first_segment = self.segments;
            self.epochs.push(Epoch { first_segment, segments: 0, messages: 0, last_sequence: 0 });
        }
        self.first.get_or_insert(segment.first);
        (self.next, self.next_offset) = (segment.next(), segment.next_offset());
        self.segments += 1;
        self.heartbeats += u64::from(segment.is_heartbeat());
        self.messages += u64::from(segment.count());
        self.max_payload = self.max_payload.max(segment.blocks.len());
        self.max_messages = self.max_messages.max(segment.count());
        self.sent = Some((self.sent.map_or(segment.sent, |(first, _)| first), segment.sent));
        if let Some(epoch) = self.epochs.last_mut() {
            epoch.segments += 1;
            epoch.messages += u64::from(segment.count());
            if !segment.is_heartbeat() {
                epoch.last_sequence = segment.next() - 1;
            }
        }
        if let Some((_, segments)) = self.sessions.iter_mut().find(|(session, _)| *session == segment.session)
        {
            *segments += 1;
        } else if self.sessions.len() < MAX_SESSIONS {
            self.sessions.push((segment.session, 1));
        }
        restarted
    }
}
