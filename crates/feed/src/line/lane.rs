//! What is kept of one line.

use tapeline_measure::Nanos;

use super::LineStatistics;
use super::doubt::Doubt;
use super::seen::Seen;

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) statistics: LineStatistics,
    pub(super) seen: Seen,
    /// Heard of in the present session.
    pub(super) heard: bool,
    /// Has announced the end of the present session.
    pub(super) ended: bool,
    /// What it said that is not believed yet.
    pub(super) doubt: Doubt,
    /// The channel has started again, and this line has not: where the line had got to.
    pub(super) old_end: Option<u64>,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            statistics: LineStatistics::default(),
            seen: Seen::new(),
            heard: false,
            ended: false,
            doubt: Doubt::default(),
            old_end: None,
        }
    }

    /// Whether its next packet is to be looked at twice.
    #[inline]
    pub(super) const fn is_wary(&self) -> bool {
        !self.doubt.is_empty() || self.old_end.is_some()
    }

    /// Nothing has confirmed what it said.
    pub(super) fn drop_doubt(&mut self) {
        self.statistics.strays += u64::from(self.doubt.drop());
    }

    /// A session begins, and with it numbering, at `start`.
    pub(super) fn restart(&mut self, start: u64) {
        self.seen.restart(start);
        (self.heard, self.ended, self.old_end) = (false, false, None);
    }

    /// Counts a packet of the messages `from` to before `to` (or a heartbeat, with none) of the present session.
    #[inline]
    pub(super) fn count(&mut self, from: u64, to: u64, received: Nanos) {
        self.heard = true;
        self.statistics.last = Some(received);
        self.statistics.messages += to - from;
        self.statistics.jumps += u64::from(from > self.seen.end());
        let named = self.seen.advance(to);
        let came = self.seen.mark(from, to);
        self.statistics.lost = self.statistics.lost.saturating_add(named).saturating_sub(came);
    }
}
