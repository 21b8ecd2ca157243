//! The figures of a running bridge, for the plant's counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::readers::reader::Pulse;
use crate::stat::snapshot::BridgeSnapshot;

/// Figures that the bridge's two threads write, and another thread reads.
#[derive(Debug, Default)]
pub(crate) struct BridgeCounters {
    pub(super) next: AtomicU64,
    pub(super) unsent: AtomicU64,
    pub(super) back_pressured: AtomicU64,
    pub(super) drivers_lost: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) sent_again: AtomicU64,
    pub(super) unanswered: AtomicU64,
    pub(super) catching_up: AtomicU64,
    pub(super) caught_up: AtomicU64,
}

/// A bridge as the counters see it.
#[derive(Debug)]
pub(crate) struct BridgeView {
    pub(super) session: String,
    pub(super) pulse: Pulse,
    pub(super) counters: Arc<BridgeCounters>,
}

impl BridgeView {
    /// Returns the present figures.
    pub(crate) fn look(&self) -> BridgeSnapshot {
        // Relaxed: statistics.
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let pulse = self.pulse.look();
        let counters = &self.counters;
        BridgeSnapshot {
            session: self.session.clone(),
            ended: pulse.is_none(),
            heard_ns: pulse.map_or(0, |(turned, _)| turned.0),
            missing: pulse.map_or(0, |(_, missing)| missing),
            sequence: of(&counters.next).saturating_sub(1),
            unsent: of(&counters.unsent),
            back_pressured: of(&counters.back_pressured),
            drivers_lost: of(&counters.drivers_lost),
            requests: of(&counters.requests),
            sent_again: of(&counters.sent_again),
            unanswered: of(&counters.unanswered),
            catching_up: of(&counters.catching_up),
            caught_up: of(&counters.caught_up),
        }
    }
}
