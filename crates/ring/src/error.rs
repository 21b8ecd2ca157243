//! What can go wrong with a segment, and whose fault it is.

use std::io;
use std::path::{Path, PathBuf};

use crate::Policy;

/// Why a ring could not be made, joined, looked at or removed. Every error names the segment; what is expected in
/// normal work (a full ring, an empty one, the end) is not an error but an outcome: see [`Refused`] and
/// [`Poll`](crate::Poll).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller's: a name that cannot be a segment's.
    #[error("`{name}` cannot be a ring's name: {why}")]
    BadName {
        /// The name as given.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The caller's: options that no ring can have.
    #[error("a ring cannot have {what} {found}: expected {expected}")]
    BadOptions {
        /// The option.
        what: &'static str,
        /// Its value.
        found: u64,
        /// Values that are possible.
        expected: String,
    },
    /// There is no such ring.
    #[error("there is no ring at {}", path.display())]
    NotFound {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// Another publisher holds the ring.
    #[error("{} has a live publisher, process {pid}", path.display())]
    PublisherAlive {
        /// The segment.
        path: PathBuf,
        /// The process that publishes.
        pid: u32,
    },
    /// The ring is there with another shape than the caller asks for.
    #[error("{} has {what} {found}, and {wanted} was asked for", path.display())]
    OtherShape {
        /// The segment.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// As the segment has it.
        found: u64,
        /// As the caller wants it.
        wanted: u64,
    },
    /// The ring is there with the other policy: a gated ring's ends are [`Publisher`](crate::Publisher) and
    /// [`Subscriber`](crate::Subscriber), a broadcast ring's are in [`broadcast`](crate::broadcast).
    #[error("{} is a {found} ring, and a {wanted} one was asked for", path.display())]
    OtherPolicy {
        /// The segment.
        path: PathBuf,
        /// As the segment has it.
        found: Policy,
        /// As the caller wants it.
        wanted: Policy,
    },
    /// The machine does not give huge pages.
    #[error("{} cannot be laid on huge pages", path.display())]
    NoHugePages {
        /// The segment.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is not a ring: something else made it, or cut it.
    #[error("{} is not a ring: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What shows it.
        why: String,
    },
    /// The segment is a ring of another layout. It is refused, never misread.
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
    /// All places for subscribers are taken by live ones.
    #[error("{} has {slots} subscribers already, which is all that a ring takes", path.display())]
    NoSlot {
        /// The segment.
        path: PathBuf,
        /// How many places there are.
        slots: usize,
    },
    /// The file system for shared memory is too small.
    #[error(
        "no room for {}: it needs {wanted} bytes and the file system has {free} of {total} bytes free",
        path.display()
    )]
    NoRoom {
        /// The segment that was to be made.
        path: PathBuf,
        /// Its size in bytes.
        wanted: u64,
        /// Free bytes of the file system.
        free: u64,
        /// All bytes of the file system.
        total: u64,
    },
    /// The machine's: a system call failed.
    #[error("cannot {what} {}", path.display())]
    System {
        /// The segment.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl Error {
    /// A system call's error, told with the segment it was about.
    pub(crate) fn system(path: &Path, what: &'static str, errno: rustix::io::Errno) -> Self {
        Self::System { path: path.to_owned(), what, source: errno.into() }
    }

    /// What the user can do about it, where something can be said.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::BadName { .. } => "use 1 to 64 of the characters A-Z a-z 0-9 . _ -".to_owned(),
            Self::NotFound { .. } => {
                "start its publisher first; `tapeline ring ls` shows the rings there are".to_owned()
            }
            Self::PublisherAlive { pid, .. } => {
                format!("end process {pid}, or publish under another name: a ring has one publisher")
            }
            Self::OtherPolicy { .. } => {
                "a ring's policy is fixed when it is made: use it as it is, or remove it first".to_owned()
            }
            Self::NoHugePages { .. } => {
                "leave huge pages out, or let the kernel give them to shared memory: \
                 echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled"
                    .to_owned()
            }
            Self::OtherShape { .. } => {
                "ask for the same shape, or remove the ring first: `tapeline ring rm NAME`".to_owned()
            }
            Self::Foreign { path, .. } => {
                format!("choose another name, or remove the file yourself: rm {}", path.display())
            }
            Self::Layout { .. } => {
                "run publisher and subscribers of the same release, or remove the ring: `tapeline ring rm NAME`"
                    .to_owned()
            }
            Self::Damaged { .. } => "remove the ring and start its publisher again".to_owned(),
            Self::NoSlot { .. } => "`tapeline ring stat NAME` shows who they are".to_owned(),
            Self::NoRoom { .. } => {
                "ask for a smaller ring, remove dead ones (`tapeline ring rm --dead`), or give /dev/shm more room \
                 (in a container: --shm-size)"
                    .to_owned()
            }
            Self::System { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "rings are made with mode 0600: use the publisher's user, or make the ring with a wider mode"
                    .to_owned()
            }
            Self::BadOptions { .. } | Self::System { .. } => return None,
        };
        Some(hint)
    }
}

/// Why a frame could not be claimed. An outcome, not an error: a publisher decides what to do about back pressure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[must_use]
pub enum Refused {
    /// A registered subscriber has not yet released the room. Nothing is lost by trying again.
    #[error("the ring is full")]
    Full,
    /// The frame is longer than the ring's longest.
    #[error("the frame is longer than the ring takes")]
    TooLong,
}
