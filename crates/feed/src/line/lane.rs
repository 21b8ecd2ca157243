//! What is kept of one line.

use tapeline_nanos::Nanos;

use super::doubt::Doubt;
use super::quarantine::Quarantine;
use super::seen::Seen;
use super::{LARGEST_GAP, LineStatistics};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) statistics: LineStatistics,
    pub(super) seen: Seen,
    /// Heard of in the present session.
    pub(super) heard: bool,
    /// Has shown that it is in the present numbering.
    pub(super) proven: bool,
    /// Has announced the end of the present session.
    pub(super) ended: bool,
    /// What it said that is not believed yet.
    pub(super) doubt: Doubt,
    /// What it said that does not fit what has come.
    pub(super) quarantine: Quarantine,
    /// Where it would go on if the packet with which it jumped ahead was none of its flow, or only overtook another.
    pub(super) resumes: u64,
    /// How far ahead it has said that a new numbering is, when there was nothing to compare that with, and how often.
    pub(super) told: (u64, u32),
    /// The channel has started again, and this line has not: where the line had got to.
    pub(super) old_end: Option<u64>,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            statistics: LineStatistics::default(),
            seen: Seen::new(),
            heard: false,
            proven: false,
            ended: false,
            doubt: Doubt::default(),
            quarantine: Quarantine::default(),
            resumes: 0,
            told: (0, 0),
            old_end: None,
        }
    }

    /// Whether its next packet is to be looked at twice.
    #[inline]
    pub(super) const fn is_wary(&self) -> bool {
        !self.proven || !self.doubt.is_empty() || !self.quarantine.is_empty() || self.old_end.is_some()
    }

    /// Nothing has confirmed what it said.
    pub(super) fn drop_doubt(&mut self) {
        self.statistics.strays += u64::from(self.doubt.drop());
    }

    /// A session begins, and with it numbering, at `start`.
    pub(super) fn restart(&mut self, start: u64) {
        self.seen.restart(start);
        (self.heard, self.proven, self.ended, self.old_end) = (false, false, false, None);
        (self.resumes, self.told) = (start, (0, 0));
    }

    /// Counts a packet of the messages `from` to before `to` (or a heartbeat, with none) of the present session.
    #[inline]
    pub(super) fn count(&mut self, from: u64, to: u64, received: Nanos) {
        let jumps = from > self.seen.end();
        if from == self.seen.end() {
            self.told = (0, 0);
        }
        if jumps {
            self.resumes = self.seen.end();
        } else if (from >= self.resumes || !self.heard) && !self.quarantine.contradicts() {
            self.resumes = to;
        }
        self.heard = true;
        self.statistics.last = Some(received);
        self.statistics.messages += to - from;
        self.statistics.jumps += u64::from(jumps);
        let named = self.seen.advance(to);
        let came = self.seen.mark(from, to);
        let named = if named > LARGEST_GAP { to - from } else { named };
        self.statistics.lost = self.statistics.lost.saturating_add(named).saturating_sub(came);
    }
}
