//! How long the hub is at work on one request while a client opens 100,000 items: the longest, which others wait for.
//!
//! ```text
//! cargo bench -p tapeline-hub --bench openings
//! ```
//!
//! `known` are items with an image of 70 fields; `awaited` are items that nobody has published: each is new to the hub's tables.
//! Microseconds: median, 99.9 %, and the longest with the number of items that were open before.
#![allow(clippy::unwrap_used, clippy::print_stdout)]
#![allow(dead_code, reason = "the other benches and a test use more of the floor")]

#[path = "../tests/floor/mod.rs"]
mod floor;

use floor::Floor;
use tapeline_measure::{Clock, Ticks, cores, pin, ticks};

const ITEMS: usize = 100_000;
const TURNS: usize = 5;
const LONGEST: usize = 6;

fn main() {
    if let Some(core) = cores().last() {
        pin(*core).unwrap();
    }
    let clock = Clock::calibrate();
    for _ in 0..TURNS {
        for (what, prefix) in [("known", "ITEM"), ("awaited", "OTHER")] {
            let mut floor = Floor::new(0, ITEMS, None, 0);
            let mut at = Vec::with_capacity(2 * ITEMS);
            floor.open_all((0..ITEMS).map(|item| format!("{prefix}{item}")), || at.push(ticks()));
            let took = |pair: &[Ticks; 2]| clock.ns_between(pair[0], pair[1]) as f64 / 1e3;
            let mut took: Vec<(f64, usize)> = at.as_chunks::<2>().0.iter().map(took).zip(0..).collect();
            took.sort_by(|a, b| a.0.total_cmp(&b.0));
            let [median, most] = [ITEMS / 2, ITEMS - ITEMS / 1_000].map(|place| took[place].0);
            print!("{what:>7}: {median:.2} {most:.2}");
            took.iter().rev().take(LONGEST).for_each(|(us, item)| print!("  {us:.0} ({item})"));
            println!();
        }
    }
}
