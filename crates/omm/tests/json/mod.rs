//! Simplified JSON: against what LSEG's converter makes of golden vectors, and against itself.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[path = "../shared_data/mod.rs"]
mod shared_data;
#[path = "../texts/mod.rs"]
mod texts;

mod again;
mod conversations;
mod equal;
mod faults;
mod messages;
mod properties;
mod taken;
mod vectors;
mod written;
