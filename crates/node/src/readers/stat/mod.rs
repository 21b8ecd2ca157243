//! A plant's counters for other processes: a snapshot once a second, and the file that contains it.

pub mod file;
pub mod snapshot;
