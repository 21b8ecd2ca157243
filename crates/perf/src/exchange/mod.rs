//! `tapeline feed simulate` and `replay`: the sending side of a feed, as load for a plant.
//!
//! | file | owns |
//! |---|---|
//! | `simulate.rs`, `generator.rs`, `sending.rs` | the simulated exchange onto the network or into a file: options, schedule, sending |
//! | `replay.rs`, `player.rs` | captures onto the network: options, sending of each datagram when it is due |
//! | `lines.rs` | one or two lines: destinations, back pressure, batches |
//! | `faults.rs` | scripted faults between both |

mod faults;
mod generator;
mod lines;
mod player;
mod replay;
mod sending;
mod simulate;

pub use lines::{Lines, Route};
pub use player::{Outcome, PlayPace, Player};
pub use replay::{Replay, no_datagrams};
pub use simulate::Simulate;
