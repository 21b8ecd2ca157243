//! All tests of this crate that use only its public interface, as one program, so that they run in parallel.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod hostile;
mod invariants;
#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod rows;
