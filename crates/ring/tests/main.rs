//! All tests of this crate that need only its public interface, as one program, so that they run in parallel.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod attach;
mod losses;
mod oracle;
mod processes;
mod scene;
mod segments;
mod slow_readers;
mod spsc;
mod threads;
