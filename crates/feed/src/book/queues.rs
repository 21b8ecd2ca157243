//! Orders in the order of their coming, at each level.

use crate::memory::{Piece, Pieces, ask_for_huge_pages};
use crate::processor::prefetch;

/// No node.
const NOBODY: u32 = u32::MAX;

/// The orders of a level in the order of their coming, by their nodes' numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub(super) const EMPTY: Self = Self { first: NOBODY, last: NOBODY };
}

/// The queues of a side's rungs.
pub(super) type Row = [Queue; super::ladder::RUNGS];

/// The queues of all sides with rungs, apart from their shares: a message that takes an order out of the middle of its line
/// touches none of them.
#[derive(Debug)]
pub(super) struct Rows {
    pieces: Pieces<Row>,
    rows: Vec<Piece<Row>>,
}

impl Rows {
    pub(super) const fn new() -> Self {
        Self { pieces: Pieces::new(), rows: Vec::new() }
    }

    /// Makes queues for a side; gives their number. Sides are 131,072 at most.
    pub(super) fn add(&mut self) -> u32 {
        self.rows.push(self.pieces.take([Queue::EMPTY; super::ladder::RUNGS]));
        self.rows.len() as u32 - 1
    }

    #[inline(always)]
    pub(super) fn row(&self, number: u32) -> Option<&Row> {
        self.rows.get(number as usize).map(|row| &**row)
    }

    #[inline(always)]
    pub(super) fn row_mut(&mut self, number: u32) -> Option<&mut Row> {
        self.rows.get_mut(number as usize).map(|row| &mut **row)
    }

    pub(super) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Piece<Row>>()
            + self.rows.len() * size_of::<Row>()
            + self.pieces.spare_bytes()
    }
}

/// An order in line: 16 bytes, four to a cache line. What else there is to know stands where its reference leads.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Node {
    reference: u64,
    previous: u32,
    next: u32,
}

/// All orders as nodes of the lists of their levels. A node's number stays while its order lives; nodes that came free
/// are used again first, being near.
#[derive(Debug)]
pub(super) struct Queues {
    nodes: Vec<Node>,
    /// The first of the free ones, which are a list by `next`.
    free: u32,
}

impl Queues {
    pub(super) fn new(reserve: usize) -> Self {
        let mut queues = Self { nodes: Vec::new(), free: NOBODY };
        queues.make_room(reserve);
        queues
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.free = NOBODY;
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    #[cold]
    fn make_room(&mut self, capacity: usize) {
        let mut nodes = Vec::with_capacity(capacity);
        ask_for_huge_pages(nodes.spare_capacity_mut());
        nodes.extend_from_slice(&self.nodes);
        self.nodes = nodes;
    }

    /// Puts an order last in line, and gives its node. There are as many nodes as there were ever orders at once.
    #[inline]
    pub(super) fn push(&mut self, queue: &mut Queue, reference: u64) -> u32 {
        let node = Node { reference, previous: queue.last, next: NOBODY };
        let at = match self.nodes.get_mut(self.free as usize) {
            Some(free) => {
                let at = self.free;
                self.free = free.next;
                *free = node;
                at
            }
            None => {
                if self.nodes.len() == self.nodes.capacity() {
                    self.make_room((2 * self.nodes.len()).max(64));
                }
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        match self.nodes.get_mut(queue.last as usize) {
            Some(last) => last.next = at,
            None => queue.first = at,
        }
        queue.last = at;
        at
    }

    /// Takes an order out of its line. Without a queue it was the last of its level, which is gone.
    #[inline]
    pub(super) fn unlink(&mut self, queue: Option<&mut Queue>, at: u32) {
        let Some(node) = self.nodes.get_mut(at as usize) else { return };
        let Node { previous, next, .. } = *node;
        node.next = self.free;
        self.free = at;
        let Some(queue) = queue else { return };
        match self.nodes.get_mut(previous as usize) {
            Some(before) => before.next = next,
            None => queue.first = next,
        }
        match self.nodes.get_mut(next as usize) {
            Some(behind) => behind.previous = previous,
            None => queue.last = previous,
        }
    }

    /// Asks for the line of an order's node.
    #[inline(always)]
    pub(super) fn prefetch(&self, node: u32) {
        if let Some(node) = self.nodes.get(node as usize) {
            prefetch(node);
        }
    }

    /// Asks for the lines of those before and behind an order.
    #[inline(always)]
    pub(super) fn prefetch_beside(&self, node: u32) {
        if let Some(node) = self.nodes.get(node as usize) {
            self.prefetch(node.previous);
            self.prefetch(node.next);
        }
    }

    /// Asks for the line of the one that is last in line.
    #[inline(always)]
    pub(super) fn prefetch_last(&self, queue: &Queue) {
        self.prefetch(queue.last);
    }

    /// The references of a line, first in line first.
    pub(super) fn iter(&self, queue: Option<Queue>) -> impl Iterator<Item = u64> + '_ {
        let first = queue.map_or(NOBODY, |queue| queue.first);
        std::iter::successors(self.at(first), |node| self.at(node.next)).map(|node| node.reference)
    }

    /// The references before a node, nearest first.
    pub(super) fn before(&self, node: u32) -> impl Iterator<Item = u64> + '_ {
        let previous = self.at(node).map_or(NOBODY, |node| node.previous);
        std::iter::successors(self.at(previous), |node| self.at(node.previous)).map(|node| node.reference)
    }

    fn at(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node as usize)
    }
}
