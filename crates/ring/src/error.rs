//! Errors of rings and their segments, and who caused them.

use std::io;
use std::path::{Path, PathBuf};

use crate::Policy;

/// Why a ring could not be created, joined, inspected or removed. Every error names the segment. Expected events (a
/// full ring, an empty one, the end) are not errors but outcomes: see [`Refused`] and [`Poll`](crate::Poll).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Caller: an invalid ring name.
    #[error("`{name}` cannot be a ring's name: {why}")]
    BadName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Caller: invalid options.
    #[error("a ring cannot have {what} {found}: expected {expected}")]
    BadOptions {
        /// The option.
        what: &'static str,
        /// The value given.
        found: u64,
        /// The valid values.
        expected: String,
    },
    /// There is no such ring.
    #[error("there is no ring at {}", path.display())]
    NotFound {
        /// The path where the ring was expected.
        path: PathBuf,
    },
    /// Another publisher owns the ring.
    #[error("{} has a live publisher, process {pid}", path.display())]
    PublisherAlive {
        /// The segment.
        path: PathBuf,
        /// The publisher's process id.
        pid: u32,
    },
    /// The ring exists with another shape than the caller asks for.
    #[error("{} has {what} {found}, and {wanted} was asked for", path.display())]
    OtherShape {
        /// The segment.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// The segment's value.
        found: u64,
        /// The value that the caller asks for.
        wanted: u64,
    },
    /// The ring exists with the other policy. The types for a gated ring are [`Publisher`](crate::Publisher) and
    /// [`Subscriber`](crate::Subscriber), those for a broadcast ring are in [`broadcast`](crate::broadcast).
    #[error("{} is a {found} ring, and a {wanted} one was asked for", path.display())]
    OtherPolicy {
        /// The segment.
        path: PathBuf,
        /// The segment's policy.
        found: Policy,
        /// The policy that the caller asks for.
        wanted: Policy,
    },
    /// The machine provides no huge pages.
    #[error("{} cannot use huge pages", path.display())]
    NoHugePages {
        /// The segment.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not a ring: another program made it, or it was truncated.
    #[error("{} is not a ring: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The evidence.
        why: String,
    },
    /// The segment is a ring of another layout version. It is refused, never misread.
    #[error("{} is a ring of layout {found}; this build reads layout {expected}", path.display())]
    Layout {
        /// The segment.
        path: PathBuf,
        /// The segment's layout version.
        found: u32,
        /// The layout version of this build.
        expected: u32,
    },
    /// The segment is a ring, but something has overwritten it.
    #[error("{} is damaged: {why}", path.display())]
    Damaged {
        /// The segment.
        path: PathBuf,
        /// What was found, and what was expected.
        why: String,
    },
    /// All subscriber slots are taken by live subscribers.
    #[error("{} already has {slots} subscribers, the most that a ring can have", path.display())]
    NoSlot {
        /// The segment.
        path: PathBuf,
        /// The number of slots.
        slots: usize,
    },
    /// The shared-memory file system has too little free space.
    #[error(
        "no room for {}: it needs {wanted} bytes and the file system has {free} of {total} bytes free",
        path.display()
    )]
    NoRoom {
        /// The segment to be created.
        path: PathBuf,
        /// Its size in bytes.
        wanted: u64,
        /// Free bytes in the file system.
        free: u64,
        /// Total bytes of the file system.
        total: u64,
    },
    /// Machine: a system call failed.
    #[error("cannot {what} {}", path.display())]
    System {
        /// The segment.
        path: PathBuf,
        /// The operation that failed.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// A failed system call, with its segment.
    pub(crate) fn system(path: &Path, what: &'static str, errno: rustix::io::Errno) -> Self {
        Self::System { path: path.to_owned(), what, source: errno.into() }
    }

    /// Returns advice for the user, where there is any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::PublisherAlive { pid, .. } => {
                return Some(format!(
                    "end process {pid}, or publish under another name: a ring has one publisher"
                ));
            }
            Self::Foreign { path, .. } => {
                return Some(format!(
                    "choose another name, or remove the file yourself: rm {}",
                    path.display()
                ));
            }
            Self::BadName { .. } => "use 1 to 64 of the characters A-Z a-z 0-9 . _ -",
            Self::NotFound { .. } => "start its publisher first; `tapeline ring ls` lists the existing rings",
            Self::OtherPolicy { .. } => {
                "a ring's policy is fixed when it is made: use it as it is, or remove it first"
            }
            Self::NoHugePages { .. } => {
                "leave huge pages out, or let the kernel give them to shared memory: \
                 echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled"
            }
            Self::OtherShape { .. } => {
                "ask for the same shape, or remove the ring first: `tapeline ring rm NAME`"
            }
            Self::Layout { .. } => {
                "run publisher and subscribers of the same release, or remove the ring: `tapeline ring rm NAME`"
            }
            Self::Damaged { .. } => "remove the ring and start its publisher again",
            Self::NoSlot { .. } => "`tapeline ring stat NAME` lists them",
            Self::NoRoom { .. } => {
                "ask for a smaller ring, remove dead ones (`tapeline ring rm --dead`), or enlarge /dev/shm \
                 (in a container: --shm-size)"
            }
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "rings are made with mode 0600: use the publisher's user, or make the ring with a wider mode"
            }
            Self::BadOptions { .. } | Self::System { .. } => return None,
        };
        Some(hint.to_owned())
    }
}

/// Why a frame could not be claimed. An outcome, not an error: the publisher decides how to handle back pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[must_use]
pub enum Refused {
    /// A registered subscriber has not released the space yet. Try again: nothing is lost.
    #[error("the ring is full")]
    Full,
    /// The frame is longer than the ring's longest frame.
    #[error("the frame is too long for the ring")]
    TooLong,
}
