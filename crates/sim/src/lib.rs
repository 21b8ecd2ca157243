//! Whole plants from one seed: exchanges, plant, hub and clients on a simulated network, disk and clock. For tests only.
//!
//! Everything in a world follows from its seed: there is no socket, no thread and no clock except the world's.
//! The plant's [`Channel`](tapeline_plant::Channel) and [`Sequencer`](tapeline_plant::Sequencer), the
//! [`Hub`](tapeline_hub::Hub), the [`Consumer`](tapeline_omm::role::consumer::Consumer) and RSSL's
//! [`Session`](tapeline_wire::rssl::Session) are those of the product, and so is the [journal](tapeline_journal),
//! on a disk in memory. Around them are exchanges with bad lines, connections that stall and break, processes
//! that crash, and clients that are slow, do not read, or are hostile. Each message that a client receives is
//! checked against the plant's ticks.
//!
//! The page docs/simulation.md describes what is simulated, the invariants, and how to inspect one seed.
//!
//! ```
//! let outcome = tapeline_sim::run(7);
//! assert_eq!(outcome.broken, None);
//! assert_eq!(outcome.hash, tapeline_sim::run(7).hash);
//! ```

#![forbid(unsafe_code)]

mod agenda;
mod books;
mod chance;
mod client;
mod doors;
mod end;
#[path = "../../journal/tests/failing/mod.rs"]
mod failing;
mod hostile;
mod hosts;
mod image;
mod invariants;
mod journal;
mod json;
mod lease;
mod network;
mod plan;
mod plant;
mod record;
mod rights;
mod source;
mod talk;
mod tape;
mod trace;
mod venue;
mod watch;
mod world;

pub use hosts::{HostsOutcome, HostsTotals};
pub use invariants::{Broken, Invariant};
pub use lease::{BrokenRule, LeaseWorldOutcome, lease};
pub use world::{Outcome, Totals};

use hosts::HostsPlan;
use plan::Plan;

/// Runs the world of a seed.
#[must_use]
pub fn run(seed: u64) -> Outcome {
    world::run(Plan::of(seed), false)
}

/// Runs the world of a seed and records the trace lines.
#[must_use]
pub fn replay(seed: u64) -> Outcome {
    world::run(Plan::of(seed), true)
}

/// Runs a world without faults.
#[must_use]
pub fn calm(seed: u64) -> Outcome {
    world::run(Plan::calm(seed), false)
}

/// Runs the world of hosts of a seed: a plant that numbers, and those that follow it over a bridge.
#[must_use]
pub fn run_hosts(seed: u64) -> HostsOutcome {
    hosts::run(HostsPlan::of(seed))
}
