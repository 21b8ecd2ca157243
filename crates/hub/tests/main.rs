//! All tests of this crate that need nothing but its public face, as one program: they run beside each other.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod access;
mod anew;
mod books;
mod exchange;
mod hostile;
mod memory;
mod providers;
mod restating;
mod slow;
mod sources;
mod streams;
mod unfolded;
