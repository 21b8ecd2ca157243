//! The statistics of an arbiter.

use std::ops::{AddAssign, Sub};

use tapeline_nanos::Nanos;

use crate::framing::MalformedDatagram;

/// The maximum number of messages in a plausible gap: several times what any exchange sends in a day. Larger gaps come from wrong or forged
/// sequences, and have a separate counter, because they would hide every real loss.
pub const LARGEST_GAP: u64 = 1 << 40;

/// The statistics of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineStatistics {
    /// Datagrams received, malformed ones included.
    pub datagrams: u64,
    /// Bytes of those datagrams.
    pub bytes: u64,
    /// Well-formed packets with messages.
    pub data_packets: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// End-of-session packets.
    pub ends_of_session: u64,
    /// Messages in well-formed packets of the present session, duplicates included.
    pub messages: u64,
    /// Messages that arrived first on this line.
    pub first: u64,
    /// Messages that had arrived before, on this line or another.
    pub duplicates: u64,
    /// Messages that had been declared missing before they arrived.
    pub late: u64,
    /// Messages from before the point where delivery started.
    pub before_start: u64,
    /// Messages after the session's announced end, unless the end was revoked; not included in [`messages`](Self::messages).
    pub after_end: u64,
    /// Number of packets, heartbeats and ends later in sequence than the line's next message. Includes packets that
    /// were only reordered; real loss is [`missing`](Self::missing).
    pub jumps: u64,
    /// Packets of a session or a numbering that is over, or of a session that recovery did not ask for. For recovery also packets that may have
    /// the previous numbering, because nothing shows that the server has the present one.
    pub stale_session: u64,
    /// Packets of another session, of the present one's beginning, or from after its end, that no second packet confirmed; and packets
    /// dropped with them.
    pub strays: u64,
    /// Packets with sequence 0, or with a jump that was not accepted.
    pub absurd: u64,
    /// Bytes after the last announced message.
    pub trailing_bytes: u64,
    /// Malformed datagrams, by [`MalformedDatagram::index`].
    pub malformed: [u64; MalformedDatagram::ALL.len()],
    /// Receive time of the line's latest packet of the present session.
    pub last: Option<Nanos>,
    /// The delay of duplicates on this line after the first arrival on another line.
    pub skew: Skew,
    pub(super) lost: u64,
}

impl LineStatistics {
    /// Returns the number of messages that never arrived on this line, up to its latest sequence: the line's own loss, even if another line filled
    /// it. Excludes gaps of more than [`LARGEST_GAP`]. Exact while packets are reordered by fewer than
    /// 65,536 messages.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.lost
    }

    /// Returns the counts of passed messages.
    pub(super) const fn behind(&self) -> Behind {
        Behind { duplicates: self.duplicates, late: self.late, before_start: self.before_start }
    }

    /// Subtracts messages that turned out to belong to another numbering, in which they are counted again.
    pub(super) const fn take_back(&mut self, behind: Behind) {
        self.messages -= behind.duplicates + behind.late + behind.before_start;
        self.duplicates -= behind.duplicates;
        self.late -= behind.late;
        self.before_start -= behind.before_start;
    }

    /// Returns the counts of malformed datagrams with the reasons' labels.
    pub fn malformed_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        MalformedDatagram::ALL.iter().map(|reason| (reason.reason(), self.malformed[reason.index()]))
    }
}

/// Messages that were handled and not delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Behind {
    duplicates: u64,
    pub(super) late: u64,
    before_start: u64,
}

impl Sub for Behind {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            duplicates: self.duplicates.saturating_sub(before.duplicates),
            late: self.late.saturating_sub(before.late),
            before_start: self.before_start.saturating_sub(before.before_start),
        }
    }
}

impl AddAssign for Behind {
    fn add_assign(&mut self, more: Self) {
        self.duplicates += more.duplicates;
        self.late += more.late;
        self.before_start += more.before_start;
    }
}

/// The delay of duplicates in ns. One sample for each packet whose first message also began, or was the
/// first new one of, the packet with the first arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// Number of samples.
    pub samples: u64,
    /// Smallest, ns; negative if the receive times of the lines are not in the order of delivery.
    pub min_ns: i64,
    /// Largest, ns.
    pub max_ns: i64,
    /// Sum of all, ns.
    pub sum_ns: i64,
}

impl Skew {
    /// Returns the mean, ns; `None` without samples.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.sum_ns as f64 / self.samples as f64)
    }

    pub(super) fn record(&mut self, ns: i64) {
        if self.samples == 0 {
            (self.min_ns, self.max_ns) = (ns, ns);
        }
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.samples += 1;
    }
}

/// The statistics of a channel, all lines together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelStatistics {
    /// Messages delivered.
    pub delivered: u64,
    /// Messages copied and held because they were ahead of sequence.
    pub held: u64,
    /// Maximum number of messages held at once.
    pub max_held: u64,
    /// Gaps declared.
    pub gaps: u64,
    /// Messages in those gaps, except for those of [`absurd_gaps`](Self::absurd_gaps).
    pub missing: u64,
    /// Gaps of more than [`LARGEST_GAP`] messages.
    pub absurd_gaps: u64,
    /// Messages that arrived after they had been declared missing.
    pub late: u64,
    /// Gaps declared because the window was full, in messages or in bytes.
    pub window_full: u64,
    /// Gaps declared because they had been open for too long.
    pub expired: u64,
    /// Messages recovered in time.
    pub recovered: u64,
    /// Sessions that began, sequence resets included.
    pub sessions: u64,
    /// Sequence resets within a session.
    pub restarts: u64,
    /// Sessions that ended as announced.
    pub ends: u64,
    /// Announced ends that were revoked because the session continued.
    pub false_ends: u64,
}
