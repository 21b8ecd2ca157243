//! A plant's counters for the outside: a snapshot once a second, and the file that it is written to.

pub mod file;
pub mod snapshot;
