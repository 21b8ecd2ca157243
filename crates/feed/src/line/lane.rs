//! The state of one line.

use tapeline_nanos::Nanos;

use super::doubt::Doubt;
use super::quarantine::Quarantine;
use super::seen::Seen;
use super::{LARGEST_GAP, LineStatistics};

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) statistics: LineStatistics,
    pub(super) seen: Seen,
    /// The line has sent a packet of the present session.
    pub(super) heard: bool,
    /// The line has shown that it has the present numbering.
    pub(super) proven: bool,
    /// The line has announced the end of the present session.
    pub(super) ended: bool,
    /// The line's unconfirmed packet.
    pub(super) doubt: Doubt,
    /// Packets of the line that do not fit the earlier messages.
    pub(super) quarantine: Quarantine,
    /// The sequence at which the line continues if the packet of its last jump was not part of its flow, or only overtook another.
    pub(super) resumes: u64,
    /// The end of the line's last packet far ahead with nothing to compare, and the number of such packets in a row.
    pub(super) told: (u64, u32),
    /// The line's next sequence in the previous numbering, if the channel was reset and this line was not.
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

    /// Returns `true` if the line's next packet needs the full examination.
    #[inline]
    pub(super) const fn is_wary(&self) -> bool {
        !self.proven || !self.doubt.is_empty() || !self.quarantine.is_empty() || self.old_end.is_some()
    }

    /// Drops the unconfirmed packet as a stray.
    pub(super) fn drop_doubt(&mut self) {
        self.statistics.strays += u64::from(self.doubt.drop());
    }

    /// Starts a session or a numbering at `start`.
    pub(super) fn restart(&mut self, start: u64) {
        self.seen.restart(start);
        (self.heard, self.proven, self.ended, self.old_end) = (false, false, false, None);
        (self.resumes, self.told) = (start, (0, 0));
    }

    /// Counts a packet of the present session with the messages `from` to before `to` (none for a heartbeat).
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
