//! What is due when.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tapeline_measure::Nanos;

/// Times at which something is to be done, soonest first. Nothing is taken out before its time: who sets a timer keeps
/// what it was set for, and one that has been overtaken finds that it is not meant. So that those do not pile up, they
/// are swept when there are many more timers than things to time.
#[derive(Debug)]
pub(crate) struct Timers<T> {
    heap: BinaryHeap<Reverse<(Nanos, T)>>,
    /// How long the heap may get before it is swept.
    sweep_at: usize,
}

/// Timers that are left alone.
const FEW: usize = 256;

impl<T: Ord> Default for Timers<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), sweep_at: FEW }
    }
}

impl<T: Ord + Copy> Timers<T> {
    /// Something is due at `due`. `is_meant` says which timers still mean something.
    pub(crate) fn set(&mut self, due: Nanos, timer: T, is_meant: impl Fn(Nanos, T) -> bool) {
        self.heap.push(Reverse((due, timer)));
        if self.heap.len() > self.sweep_at {
            self.heap.retain(|Reverse((due, timer))| is_meant(*due, *timer));
            self.sweep_at = FEW.max(2 * self.heap.len());
        }
    }

    /// One that is due by `now`.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.due()? > now { None } else { self.heap.pop().map(|Reverse(timer)| timer) }
    }

    /// When the next is due; it may turn out not to be meant any more.
    pub(crate) fn due(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse((due, _))| *due)
    }

    pub(crate) fn clear(&mut self) {
        self.heap.clear();
        self.sweep_at = FEW;
    }
}
