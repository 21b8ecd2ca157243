//! What an arbiter counts.

use std::ops::{AddAssign, Sub};

use tapeline_nanos::Nanos;

use crate::framing::Malformed;

/// The most messages that a gap is believed to have: several times what any exchange sends in a day. What is beyond comes of wrong
/// or forged sequences, and is counted apart: it would bury every real loss in the same count.
pub const LARGEST_GAP: u64 = 1 << 40;

/// What one line did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineStatistics {
    /// Datagrams received, malformed ones included.
    pub datagrams: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Well-formed packets with messages.
    pub data_packets: u64,
    /// Heartbeats.
    pub heartbeats: u64,
    /// End-of-session packets.
    pub ends_of_session: u64,
    /// Messages in well-formed packets of the present session, all copies.
    pub messages: u64,
    /// Messages whose first copy came on this line.
    pub first: u64,
    /// Messages that had come before, on this line or another.
    pub duplicates: u64,
    /// Messages that had been declared missing before they came.
    pub late: u64,
    /// Messages from before the point where delivery started.
    pub before_start: u64,
    /// Messages from behind the session's announced end, unless that was taken back; not among [`messages`](Self::messages).
    pub after_end: u64,
    /// How often a packet, a heartbeat or an end came later in sequence than the line's next message. A packet that was
    /// only overtaken counts too; what is really lost is [`missing`](Self::missing).
    pub jumps: u64,
    /// Packets of a session or a numbering that is over, or of a session that recovery did not ask for. Of recovery's own,
    /// those too that may be of the numbering before, as nothing shows that the server has the present one.
    pub stale_session: u64,
    /// Packets of another session, of the present one's beginning, or from behind its end, that no second packet confirmed; and
    /// those that were thrown away with them.
    pub strays: u64,
    /// Packets with sequence 0, or with a jump that was not believed.
    pub absurd: u64,
    /// Bytes behind the last announced message.
    pub trailing_bytes: u64,
    /// Malformed datagrams, by [`Malformed::index`].
    pub malformed: [u64; Malformed::ALL.len()],
    /// When the line's latest packet of the present session came.
    pub last: Option<Nanos>,
    /// How much later than another line's first copy this line's second copies come.
    pub skew: Skew,
    pub(super) lost: u64,
}

impl LineStatistics {
    /// Messages that never came on this line, up to the latest sequence that it has named: its own loss, whether
    /// another line made up for it or not; gaps of more than [`LARGEST_GAP`] left out. Exact while packets are overtaken by less than
    /// 65,536 messages.
    #[must_use]
    pub const fn missing(&self) -> u64 {
        self.lost
    }

    /// How messages were counted that had been passed.
    pub(super) const fn behind(&self) -> Behind {
        Behind { duplicates: self.duplicates, late: self.late, before_start: self.before_start }
    }

    /// So many messages turn out to be of another numbering, in which they are counted again.
    pub(super) const fn take_back(&mut self, behind: Behind) {
        self.messages -= behind.duplicates + behind.late + behind.before_start;
        self.duplicates -= behind.duplicates;
        self.late -= behind.late;
        self.before_start -= behind.before_start;
    }

    /// Malformed datagrams with the reason's label.
    pub fn malformed_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Malformed::ALL.iter().map(|reason| (reason.reason(), self.malformed[reason.index()]))
    }
}

/// Messages that were taken and not delivered.
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

/// How much later second copies come, in ns. One sample for each packet whose first message also began, or was the
/// first new one of, the packet that brought the first copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skew {
    /// Samples.
    pub samples: u64,
    /// Smallest, ns; negative where the receive times of the lines are not in the order of delivery.
    pub min_ns: i64,
    /// Largest, ns.
    pub max_ns: i64,
    /// Sum of all, ns.
    pub sum_ns: i64,
}

impl Skew {
    /// Mean, ns; `None` without samples.
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

/// What a channel did, all lines together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages delivered.
    pub delivered: u64,
    /// Messages that were copied and held because they came ahead of sequence.
    pub held: u64,
    /// The most messages that were held at once.
    pub max_held: u64,
    /// Gaps declared.
    pub gaps: u64,
    /// Messages in them, but for those of [`absurd_gaps`](Self::absurd_gaps).
    pub missing: u64,
    /// Gaps of more than [`LARGEST_GAP`] messages.
    pub absurd_gaps: u64,
    /// Messages that came after they had been declared missing.
    pub late: u64,
    /// Gaps declared because the window was full, in messages or in bytes.
    pub window_full: u64,
    /// Gaps declared because they had been open for too long.
    pub expired: u64,
    /// Messages that recovery brought in time.
    pub recovered: u64,
    /// Sessions that began, restarts among them.
    pub sessions: u64,
    /// Times that sequences went back to 1 within a session.
    pub restarts: u64,
    /// Sessions that ended as announced.
    pub ends: u64,
    /// Announced ends that were taken back, as the session went on.
    pub false_ends: u64,
}
