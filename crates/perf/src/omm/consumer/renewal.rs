//! New images after a failover: until all have arrived, the stream stands still.

use tapeline_measure::Nanos;

/// Images awaited after a switch to another server.
#[derive(Debug)]
pub(super) struct Renewal {
    /// When the last message of the previous active server was received.
    since: Nanos,
    /// Items whose new image has not arrived.
    awaited: Vec<bool>,
    missing: usize,
    /// Number of failovers during this standstill.
    pub(super) switches: u64,
}

impl Renewal {
    /// Awaits this many items. If an earlier renewal is incomplete, the standstill began with that one.
    pub(super) fn new(since: Nanos, items: usize, earlier: Option<&Self>) -> Self {
        Self {
            since: earlier.map_or(since, |earlier| earlier.since),
            awaited: vec![true; items],
            missing: items,
            switches: 1 + earlier.map_or(0, |earlier| earlier.switches),
        }
    }

    /// An item has its new image, or will never have one.
    pub(super) fn renew(&mut self, closure: u64) {
        let item = usize::try_from(closure).ok().and_then(|item| self.awaited.get_mut(item));
        if item.is_some_and(std::mem::take) {
            self.missing -= 1;
        }
    }

    /// Length of the standstill in nanoseconds, if it is over now.
    pub(super) fn over(&self, now: Nanos) -> Option<u64> {
        (self.missing == 0).then(|| now.0.saturating_sub(self.since.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_with_the_last_image() {
        let mut renewal = Renewal::new(Nanos(100), 2, None);
        renewal.renew(0);
        renewal.renew(0);
        // There is no such item.
        renewal.renew(7);
        assert_eq!(renewal.over(Nanos(150)), None);
        // The next server is lost too before that.
        let mut renewal = Renewal::new(Nanos(160), 2, Some(&renewal));
        renewal.renew(0);
        assert_eq!(renewal.over(Nanos(170)), None);
        renewal.renew(1);
        assert_eq!((renewal.over(Nanos(180)), renewal.switches), (Some(80), 2));
        assert_eq!(Renewal::new(Nanos(5), 0, None).over(Nanos(5)), Some(0));
    }
}
