//! What it costs the hub that the state of a group of items changes: it looks at every item there is.
//!
//! ```text
//! cargo bench -p tapeline-hub --bench states
//! ```
//!
//! The state of a group that has a tenth of so many items of a provider, each with an image of 70 fields: the directory's update, the
//! look at each item, the state into the images of those it is for. Milliseconds, min / median / max of 21 changes.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(dead_code, reason = "the other bench and a test use more of the floor")]

#[path = "../tests/floor/mod.rs"]
mod floor;

use floor::Floor;
use tapeline_measure::{Clock, cores, pin, ticks};

const CHANGES: usize = 21;

fn main() {
    if let Some(core) = cores().last() {
        pin(*core).unwrap();
    }
    let clock = Clock::calibrate();
    for items in [1_000, 10_000, 100_000] {
        let mut floor = Floor::provided(items);
        let change = |number| {
            let before = ticks();
            floor.update(number);
            clock.ns_between(before, ticks()) as f64 / 1e6
        };
        let mut took: Vec<f64> = (0..CHANGES).map(change).collect();
        took.sort_by(f64::total_cmp);
        let [min, median, max] = [0, CHANGES / 2, CHANGES - 1].map(|place| took[place]);
        println!("{items:>7} items: {min:.3} / {median:.3} / {max:.3} ms");
    }
}
