//! The kinds of ring that the tests torture.

use std::fmt;
use std::time::Duration;

use tapeline_ring::{Framing, Options, Policy};

use crate::scene::page;
use crate::script::Script;

/// One kind of ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) policy: Policy,
    framing: Framing,
    /// Bytes of the data area, where pages are not larger.
    capacity: usize,
    pub(crate) stall_limit: Duration,
}

/// Longer than a subscriber usually waits for a processor, so that most evicted subscribers were stopped.
const STALL_LIMIT: Duration = Duration::from_millis(30);

/// Every kind of ring. A process gets the index of its kind.
pub(crate) fn shapes() -> Vec<Shape> {
    let policies =
        [(Policy::Gated, Duration::ZERO), (Policy::Gated, STALL_LIMIT), (Policy::Broadcast, Duration::ZERO)];
    let mut shapes = Vec::new();
    for (policy, stall_limit) in policies {
        for framing in [Framing::Packed, Framing::Lines] {
            for capacity in [4 << 10, 1 << 20] {
                shapes.push(Shape { policy, framing, capacity, stall_limit });
            }
        }
    }
    shapes
}

impl Shape {
    pub(crate) fn options(&self) -> Options {
        let Self { framing, stall_limit, capacity, .. } = *self;
        Options { framing, stall_limit, capacity: capacity.max(page()), ..Options::default() }
    }

    /// The stream of a ring of this shape.
    pub(crate) fn script(&self, seed: u64) -> Script {
        let capacity = self.options().capacity;
        Script::new(seed, capacity, capacity / 4)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = if self.stall_limit.is_zero() { "" } else { ", stall limit" };
        let text = format!("{}{limit}, {}, {} KiB", self.policy, self.framing, self.capacity >> 10);
        f.pad(&text)
    }
}
