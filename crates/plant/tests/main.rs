//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod bench;
mod bridge;
mod bursts;
mod cache;
mod channel;
mod gap_requests;
#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod orders;
#[path = "../../omm/tests/shared_data/mod.rs"]
mod shared_data;
mod sources;
mod states;
