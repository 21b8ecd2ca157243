//! Orders in the order of their coming, at each level.

use super::ladder::Queue;

const NOBODY: u32 = Queue::NOBODY;

/// An order in line: 24 bytes.
#[derive(Clone, Copy, Debug)]
struct Node {
    reference: u64,
    shares: u32,
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
        Self { nodes: Vec::with_capacity(reserve), free: NOBODY }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.free = NOBODY;
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    /// Puts an order last in line, and gives its node. There are as many nodes as there were ever orders at once.
    #[inline]
    pub(super) fn push(&mut self, queue: &mut Queue, reference: u64, shares: u32) -> u32 {
        let node = Node { reference, shares, previous: queue.last, next: NOBODY };
        let at = match self.nodes.get_mut(self.free as usize) {
            Some(free) => {
                let at = self.free;
                self.free = free.next;
                *free = node;
                at
            }
            None => {
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

    /// Says how many shares an order has left; it keeps its place.
    #[inline]
    pub(super) fn reduce(&mut self, node: u32, left: u32) {
        if let Some(node) = self.nodes.get_mut(node as usize) {
            node.shares = left;
        }
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

    /// Asks for the lines of an order's node.
    #[inline(always)]
    pub(super) fn prefetch(&self, node: u32) {
        if let Some(node) = self.nodes.get(node as usize) {
            crate::processor::prefetch(node);
        }
    }

    /// The orders of a line from a node on.
    pub(super) fn iter(&self, first: Option<u32>) -> impl Iterator<Item = (u64, u32)> + '_ {
        std::iter::successors(self.at(first.unwrap_or(NOBODY)), |node| self.at(node.next))
            .map(|node| (node.reference, node.shares))
    }

    /// The orders before a node, nearest first.
    pub(super) fn before(&self, node: u32) -> impl Iterator<Item = (u64, u32)> + '_ {
        let previous = self.at(node).map_or(NOBODY, |node| node.previous);
        std::iter::successors(self.at(previous), |node| self.at(node.previous))
            .map(|node| (node.reference, node.shares))
    }

    fn at(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node as usize)
    }
}
