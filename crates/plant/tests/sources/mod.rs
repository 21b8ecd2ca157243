//! Sources that speak OMM: what becomes of what they say, with the other ends' roles at the other ends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod failing;
mod hostile;
mod posting;
mod published;
mod requested;
mod world;
