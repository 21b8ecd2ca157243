//! The figures of a running bridge, for the plant's counters.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::readers::reader::Pulse;
use crate::stat::snapshot::{AeronSendingSnapshot, BridgeSnapshot};

/// Figures that a thread of the bridge and its catch-up server write, and another thread reads.
#[derive(Debug, Default)]
pub(crate) struct BridgeCounters {
    pub(super) next: AtomicU64,
    pub(super) unsent: AtomicU64,
    pub(super) back_pressured: AtomicU64,
    pub(super) drivers_lost: AtomicU64,
    /// What media drivers count; behind a lock, which is taken once a second.
    pub(super) aeron: Mutex<Option<AeronSendingSnapshot>>,
    pub(super) requests: AtomicU64,
    pub(super) sent_again: AtomicU64,
    pub(super) unanswered: AtomicU64,
    pub(super) catching_up: AtomicU64,
    pub(super) caught_up: AtomicU64,
    pub(super) followers: AtomicU64,
    pub(super) cut_off: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) demanding: AtomicU64,
    pub(super) demanded: AtomicU64,
    pub(super) far_posts: AtomicU64,
    pub(super) demands_refused: AtomicU64,
    pub(super) demands_cut_off: AtomicU64,
}

/// A bridge as the counters see it.
#[derive(Debug)]
pub(crate) struct BridgeView {
    pub(super) session: String,
    /// One for each sending thread.
    pub(super) pulses: Vec<Pulse>,
    pub(super) counters: Vec<Arc<BridgeCounters>>,
}

impl BridgeView {
    /// Returns the present figures.
    pub(crate) fn look(&self) -> BridgeSnapshot {
        // Relaxed: statistics.
        let each = |of: fn(&BridgeCounters) -> &AtomicU64| {
            self.counters.iter().map(move |counters| of(counters).load(Ordering::Relaxed))
        };
        let sum = |of| each(of).sum();
        let pulses: Option<Vec<_>> = self.pulses.iter().map(Pulse::look).collect();
        let ended = pulses.is_none();
        let pulses = pulses.unwrap_or_default();
        BridgeSnapshot {
            session: self.session.clone(),
            ended,
            heard_ns: pulses.iter().map(|(turned, _)| turned.0).min().unwrap_or_default(),
            missing: pulses.iter().map(|(_, missing)| *missing).max().unwrap_or_default(),
            sequence: each(|it| &it.next).min().unwrap_or_default().saturating_sub(1),
            unsent: sum(|it| &it.unsent),
            back_pressured: sum(|it| &it.back_pressured),
            drivers_lost: sum(|it| &it.drivers_lost),
            aeron: self
                .counters
                .iter()
                .find_map(|it| *it.aeron.lock().unwrap_or_else(PoisonError::into_inner)),
            requests: sum(|it| &it.requests),
            sent_again: sum(|it| &it.sent_again),
            unanswered: sum(|it| &it.unanswered),
            catching_up: sum(|it| &it.catching_up),
            caught_up: sum(|it| &it.caught_up),
            followers: sum(|it| &it.followers),
            cut_off: sum(|it| &it.cut_off),
            refused: sum(|it| &it.refused),
            demanding: sum(|it| &it.demanding),
            demanded: sum(|it| &it.demanded),
            far_posts: sum(|it| &it.far_posts),
            demands_refused: sum(|it| &it.demands_refused),
            demands_cut_off: sum(|it| &it.demands_cut_off),
        }
    }
}
