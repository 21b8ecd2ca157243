//! What a tick costs the hub: folded into its image, and sent to all who have its item open.
//!
//! ```text
//! cargo bench -p tapeline-hub --bench fan_out -- [--core N] [--seconds S] [--repeats N] [--json] [--case WHAT/CLIENTS/INPUT]
//! ```
//!
//! `tick/N/all` is an update of 13 fields of an item that N clients have open, all its fields; of `view`, three of them; of `full`,
//! none of them has room (a conflated client). `tick/1/items` goes through 1,000 items in turn, and `tick/1/ahead` prepares for them, as
//! the hub's thread does. `open` is a request for one of them, its image, and its close. A message costs each client what `publish` of `consumer` in `omm` says, and the connection's own part: see
//! `frames` in `wire`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]
#![allow(dead_code, reason = "the other bench uses more of the floor")]

#[path = "../tests/floor/mod.rs"]
mod floor;
#[path = "../../omm/benches/harness/mod.rs"]
mod harness;

use floor::Floor;
use harness::{Bench, VARIED};

/// An update with its header, bytes.
const BYTES: f64 = 85.0;

fn main() {
    let mut bench = Bench::new("fan_out");
    for clients in [1, 100] {
        let mut floor = Floor::new(clients, 1, None, VARIED);
        bench.add(("tick", clients, "all"), BYTES, |n| {
            floor.update(n);
            floor.connections.sent
        });
        let mut floor = Floor::new(clients, 1, Some(&[1, 6, 11]), VARIED);
        bench.add(("tick", clients, "view"), BYTES, |n| {
            floor.update(n);
            floor.connections.sent
        });
    }
    let mut floor = Floor::new(100, 1, None, VARIED);
    floor.connections.is_full = true;
    bench.add(("tick", 100, "full"), BYTES, |n| {
        floor.update(n);
        floor.connections.sent
    });
    let mut floor = Floor::new(1, 1_000, None, VARIED);
    bench.add(("tick", 1, "items"), BYTES, |n| {
        floor.update(n);
        floor.connections.sent
    });
    let mut floor = Floor::new(1, 1_000, None, VARIED);
    let mut prepared = 0;
    bench.add(("tick", 1, "ahead"), BYTES, |n| {
        if prepared == 0 {
            prepared = floor.expect(n);
        }
        prepared -= 1;
        floor.update(n);
        floor.connections.sent
    });
    let mut floor = Floor::new(1, 1_000, None, VARIED);
    let messages: Vec<_> = (0..VARIED).map(|n| floor.open_and_close(n)).collect();
    bench.add(("open", 1, "items"), BYTES, |n| {
        floor.send(&messages[n % VARIED]);
        floor.connections.sent
    });
    bench.print();
}
