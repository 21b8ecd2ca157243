//! Errors of reading and configuring the machine.

use std::path::PathBuf;

/// A failure of the machine or of the caller's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller named a core that this process may not use, or that does not exist.
    #[error("core {core} is not available to this process; it may use {}", crate::figures::list(.available))]
    NoSuchCore {
        /// The requested core.
        core: usize,
        /// The cores that this process may use, as [`cores`](crate::cores) lists them.
        available: Vec<usize>,
    },
    /// The kernel refused to bind the thread to a core.
    #[error("cannot bind this thread to core {core}")]
    Pin {
        /// The requested core.
        core: usize,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The kernel refused to let the thread run on every core of the process.
    #[error("cannot let this thread run on every core")]
    Unpin {
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A file under `/proc` or `/sys` could not be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A file under `/proc` did not have the expected form.
    #[error("{}: expected {expected}", .path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
        /// The expected form.
        expected: &'static str,
    },
    /// Bytes that do not contain an encoded [`Recorder`](crate::Recorder).
    #[error("not an encoded latency recorder: {reason}")]
    NotARecorder {
        /// The reason.
        reason: String,
    },
    /// A histogram could not be written.
    #[error("cannot write the latency distribution")]
    Write(#[from] std::io::Error),
}
