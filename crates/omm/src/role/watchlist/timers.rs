//! Timers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tapeline_nanos::Nanos;

/// Timers, soonest first. Most are set in the order in which they are due, because all requests have the same time
/// limit: those are in a queue, and leave it at the front as soon as they are obsolete. The others are in a heap.
/// Nothing else is removed before its time: the owner of a timer stores its subject, and detects an obsolete timer when
/// it is due. Timers are swept when they far outnumber their subjects, so that obsolete timers do not accumulate.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    line: VecDeque<(Nanos, T)>,
    heap: BinaryHeap<Reverse<(Nanos, T)>>,
    /// Number of timers that causes a sweep.
    sweep_at: usize,
}

/// Number of timers that never causes a sweep.
const FEW: usize = 256;

impl<T: Ord> Default for Timers<T> {
    fn default() -> Self {
        Self { line: VecDeque::new(), heap: BinaryHeap::new(), sweep_at: FEW }
    }
}

impl<T: Ord + Copy> Timers<T> {
    /// Sets a timer at `due`. `is_meant` identifies the timers that are still valid.
    pub(crate) fn set(&mut self, due: Nanos, timer: T, is_meant: impl Fn(Nanos, T) -> bool) {
        match self.line.back() {
            Some((last, _)) if *last > due => self.heap.push(Reverse((due, timer))),
            _ => self.line.push_back((due, timer)),
        }
        if self.line.len() + self.heap.len() > self.sweep_at {
            self.line.retain(|(due, timer)| is_meant(*due, *timer));
            self.heap.retain(|Reverse((due, timer))| is_meant(*due, *timer));
            self.sweep_at = FEW.max(2 * (self.line.len() + self.heap.len()));
        }
    }

    /// Removes the obsolete timers at the front of the queue.
    pub(crate) fn settle(&mut self, is_meant: impl Fn(Nanos, T) -> bool) {
        while self.line.front().is_some_and(|(due, timer)| !is_meant(*due, *timer)) {
            self.line.pop_front();
        }
    }

    /// Returns a timer that is due by `now`.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.due()? > now {
            return None;
        }
        match (self.line.front(), self.heap.peek()) {
            (Some(first), Some(Reverse(top))) if top < first => self.heap.pop().map(|Reverse(timer)| timer),
            (Some(_), _) => self.line.pop_front(),
            (None, _) => self.heap.pop().map(|Reverse(timer)| timer),
        }
    }

    /// Returns the time of the next timer, which may be obsolete.
    pub(crate) fn due(&self) -> Option<Nanos> {
        let first = self.line.front().map(|(due, _)| *due);
        first.into_iter().chain(self.heap.peek().map(|Reverse((due, _))| *due)).min()
    }

    pub(crate) fn clear(&mut self) {
        self.line.clear();
        self.heap.clear();
        self.sweep_at = FEW;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_answered_in_its_order_leaves_nothing_behind() {
        let mut timers = Timers::default();
        for (answered, timer) in (0_u64..10_000).enumerate() {
            timers.set(Nanos(timer), timer, |_, timer| timer + 3 > answered as u64);
            timers.settle(|_, timer| timer + 3 > answered as u64);
            assert!(timers.line.len() <= 4, "{}", timers.line.len());
        }
        timers.settle(|_, _| false);
        assert_eq!((timers.due(), timers.next(Nanos(u64::MAX))), (None, None));
    }

    proptest! {
        #[test]
        fn they_come_in_their_order(steps in prop::collection::vec((0_u8..4, 0_u64..100), 1..400)) {
            let mut timers = Timers::default();
            let mut model: Vec<(Nanos, usize)> = Vec::new();
            for (number, (step, at)) in steps.into_iter().enumerate() {
                let at = Nanos(at);
                match step {
                    0 => {
                        let is_meant = |due, timer| model.contains(&(due, timer));
                        timers.set(at, number, is_meant);
                        model.push((at, number));
                    }
                    // A timer becomes obsolete.
                    1 => {
                        model.retain(|(due, _)| *due != at);
                        timers.settle(|due, timer| model.contains(&(due, timer)));
                    }
                    _ => {
                        let mut came = Vec::new();
                        while let Some(timer) = timers.next(at) {
                            came.extend(Some(timer).filter(|timer| model.contains(timer)));
                        }
                        prop_assert!(came.is_sorted(), "{:?}", came);
                        let mut expected: Vec<_> = model.extract_if(.., |(due, _)| *due <= at).collect();
                        expected.sort();
                        prop_assert_eq!(came, expected);
                    }
                }
            }
        }
    }
}
