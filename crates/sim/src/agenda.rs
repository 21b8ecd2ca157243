//! The agenda: events in the order of their times.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Events in the order of their times; events with the same time in the order of insertion.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    entries: BinaryHeap<Entry<E>>,
    put: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: u64,
    put: u64,
    event: E,
}

impl<E> Agenda<E> {
    pub(crate) const fn new() -> Self {
        Self { entries: BinaryHeap::new(), put: 0 }
    }

    pub(crate) fn put(&mut self, at: u64, event: E) {
        self.put += 1;
        self.entries.push(Entry { at, put: self.put, event });
    }

    pub(crate) fn next(&mut self) -> Option<(u64, E)> {
        self.entries.pop().map(|entry| (entry.at, entry.event))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap returns the greatest entry first.
        (other.at, other.put).cmp(&(self.at, self.put))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}
