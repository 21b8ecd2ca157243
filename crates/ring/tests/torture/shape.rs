//! The kinds of ring that are tortured.

use tapeline_ring::Options;

use crate::scene::page;
use crate::script::Script;

/// One kind of ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// Bytes of the data area, where pages are not larger.
    capacity: usize,
}

/// Every kind. A process is told which by its place here.
pub(crate) const SHAPES: &[Shape] =
    &[Shape { name: "packed, 4 KiB", capacity: 4 << 10 }, Shape { name: "packed, 1 MiB", capacity: 1 << 20 }];

impl Shape {
    pub(crate) fn options(&self) -> Options {
        Options { capacity: self.capacity.max(page()), ..Options::default() }
    }

    /// The stream of a ring of this shape.
    pub(crate) fn script(&self, seed: u64) -> Script {
        let capacity = self.options().capacity;
        Script::new(seed, capacity, capacity / 4)
    }
}
