//! The orders of each level in order of arrival.

use std::hint::select_unpredictable as select;

use super::ladder::{Ladder, RUNGS, Rank};
use crate::memory::{Piece, Pieces, ask_for_huge_pages};
use crate::processor::prefetch;

/// No node.
const NOBODY: u32 = u32::MAX;

/// Two orders by node number: the first and the last of a queue, or the neighbours of another order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    before: u32,
    behind: u32,
}

/// The first and the last order of a level, in order of arrival.
pub(super) type Queue = Pair;

impl Pair {
    pub(super) const EMPTY: Self = Self { before: NOBODY, behind: NOBODY };
}

/// The queues of a side's rungs.
pub(super) type Row = [Queue; RUNGS];

/// The queues of all sides with rungs, stored apart from the shares: a message that removes an order from the middle of its queue touches none of
/// them.
#[derive(Debug)]
pub(super) struct Rows {
    pieces: Pieces<Row>,
    rows: Vec<Piece<Row>>,
}

impl Rows {
    pub(super) const fn new() -> Self {
        Self { pieces: Pieces::new(), rows: Vec::new() }
    }

    /// Creates queues for a side; returns their number. There are at most 131,072 sides.
    pub(super) fn add(&mut self) -> u32 {
        self.rows.push(self.pieces.take([Queue::EMPTY; RUNGS]));
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

/// A queued order: 16 bytes, four to a cache line. Its other data are stored by its reference.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Node {
    reference: u64,
    beside: Pair,
}

/// All orders as nodes of the lists of their levels. A node's number is constant during the life of its order. The node freed last is reused first,
/// because it is likely to be cached.
#[derive(Debug)]
pub(super) struct Queues {
    nodes: Vec<Node>,
    /// The first free node; free nodes form a list through `behind`.
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

    /// Changes the queue of a side's level: see [`change`](Self::change).
    #[inline(always)]
    pub(super) fn level_changed(
        &mut self,
        ladder: &mut Ladder,
        rank: Rank,
        rows: &mut Rows,
        (adds, at): (bool, u32),
        reference: u64,
    ) -> u32 {
        match ladder.queue_near_mut(rank, rows) {
            Some(queue) => self.change(queue, adds, at, reference),
            // If the level is gone, the order was the last in its queue.
            None => match ladder.queue_apart(rank) {
                Some(queue) => self.change(queue, adds, at, reference),
                None => self.change(&mut { Queue::EMPTY }, adds, at, reference),
            },
        }
    }

    /// Appends an order to a queue, or removes the order of node `at`; returns the node of the appended order. The number of nodes is the maximum
    /// number of orders so far.
    ///
    /// Both operations set two links, to the order or past it. Whether an order is added, and whether it is at an end, is random, so this code has
    /// no branches.
    #[inline(always)]
    fn change(&mut self, queue: &mut Queue, adds: bool, at: u32, reference: u64) -> u32 {
        if adds & (self.free == NOBODY) {
            self.blank();
        }
        let at = select(adds, self.free, at);
        let Some(node) = self.nodes.get_mut(at as usize) else { return at };
        let old = node.beside;
        let before = select(adds, queue.behind, old.before);
        let behind = select(adds, NOBODY, old.behind);
        *node = Node { reference, beside: Pair { before, behind: select(adds, NOBODY, self.free) } };
        self.free = select(adds, old.behind, at);
        let link = match self.nodes.get_mut(before as usize) {
            Some(node) => &mut node.beside.behind,
            None => &mut queue.before,
        };
        *link = select(adds, at, behind);
        let link = match self.nodes.get_mut(behind as usize) {
            Some(node) => &mut node.beside.before,
            None => &mut queue.behind,
        };
        *link = select(adds, at, before);
        at
    }

    /// Creates a free node.
    #[inline(never)]
    fn blank(&mut self) {
        if self.nodes.len() == self.nodes.capacity() {
            self.make_room((2 * self.nodes.len()).max(64));
        }
        self.free = self.nodes.len() as u32;
        self.nodes.push(Node { reference: 0, beside: Pair::EMPTY });
    }

    /// Returns the neighbours of an order: an address to prefetch first, and to read later.
    #[inline(always)]
    pub(super) fn beside(&self, node: u32) -> &Pair {
        self.nodes.get(node as usize).map_or(&Pair::EMPTY, |node| &node.beside)
    }

    /// Prefetches two nodes.
    #[inline(always)]
    pub(super) fn prefetch(&self, nodes: &Pair) {
        prefetch(self.beside(nodes.before));
        prefetch(self.beside(nodes.behind));
    }

    /// Returns the references of a queue, first in line first.
    pub(super) fn iter(&self, queue: Option<Queue>) -> impl Iterator<Item = u64> + '_ {
        let first = queue.map_or(NOBODY, |queue| queue.before);
        std::iter::successors(self.at(first), |node| self.at(node.beside.behind)).map(|node| node.reference)
    }

    /// Returns the references before a node, nearest first.
    pub(super) fn before(&self, node: u32) -> impl Iterator<Item = u64> + '_ {
        let before = self.at(node).map_or(NOBODY, |node| node.beside.before);
        std::iter::successors(self.at(before), |node| self.at(node.beside.before)).map(|node| node.reference)
    }

    fn at(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node as usize)
    }
}
