//! Segments as files: complete before they have a name, checked when opened.

use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FileType, Gid, Mode, OFlags};
use rustix::io::Errno;

use crate::layout::{HEADER_BYTES, Shape};
use crate::lines::{Slot, SubscriberLines};
use crate::name::DIRECTORY;
use crate::{Error, Name, lock};

/// An open segment whose header has been checked.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) file: OwnedFd,
    pub(crate) path: PathBuf,
    pub(crate) shape: Shape,
}

/// The purpose of an opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Publish or subscribe: both write some lines, and lock.
    TakePart,
    /// Read only.
    Observe,
}

impl Segment {
    /// Creates a segment that has no name yet: sized, allocated, with its header, the rest zero.
    ///
    /// All memory is allocated here, so that a file system that is too small is an error now and not a fatal signal at
    /// the first touch of a page.
    pub(crate) fn create(
        name: &Name,
        mut shape: Shape,
        mode: u32,
        group: Option<u32>,
    ) -> Result<Self, Error> {
        let path = name.path();
        let system = |what, errno| Error::system(&path, what, errno);
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode & 0o666);
        let file =
            rustix::fs::open(DIRECTORY, flags, mode).map_err(|errno| system("make a file for", errno))?;
        // Again, because the process's umask has reduced the mode.
        rustix::fs::fchmod(&file, mode).map_err(|errno| system("set the mode of", errno))?;
        if let Some(group) = group {
            rustix::fs::fchown(&file, None, Some(Gid::from_raw(group)))
                .map_err(|errno| system("set the group of", errno))?;
        }
        match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, shape.file_bytes()) {
            Ok(()) => {}
            Err(Errno::NOSPC | Errno::NOMEM | Errno::FBIG) => {
                let (free, total) = rustix::fs::fstatvfs(&file).map_or((0, 0), |system| {
                    (
                        system.f_bavail.saturating_mul(system.f_frsize),
                        system.f_blocks.saturating_mul(system.f_frsize),
                    )
                });
                return Err(Error::NoRoom { path, wanted: shape.file_bytes(), free, total });
            }
            Err(errno) => return Err(system("allocate", errno)),
        }
        let made = rustix::fs::fstat(&file).map_err(|errno| system("look at", errno))?;
        shape.created_ns =
            (made.st_mtime as u64).saturating_mul(1_000_000_000).saturating_add(made.st_mtime_nsec as u64);
        let header = shape.encode();
        match rustix::io::pwrite(&file, &header, 0) {
            Ok(HEADER_BYTES) => {}
            Ok(_) => return Err(system("write the header of", Errno::IO)),
            Err(errno) => return Err(system("write the header of", errno)),
        }
        Ok(Self { file, path, shape })
    }

    /// Gives the segment its name. `Ok(false)`: the name is taken.
    pub(crate) fn publish_name(&self) -> Result<bool, Error> {
        use std::os::fd::AsRawFd;
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        match rustix::fs::linkat(CWD, own, CWD, &self.path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(errno) => Err(Error::system(&self.path, "name", errno)),
        }
    }

    /// Opens the file of this name and checks that it is a ring that this build can read.
    pub(crate) fn open(name: &Name, purpose: Purpose) -> Result<Self, Error> {
        let path = name.path();
        // A FIFO or a link that another user put there must neither block this process nor redirect it.
        let flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = flags | if purpose == Purpose::TakePart { OFlags::RDWR } else { OFlags::RDONLY };
        let file = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Err(Error::NotFound { path }),
            Err(Errno::LOOP | Errno::ISDIR | Errno::NXIO) => {
                return Err(Error::Foreign { path, why: "it is not a plain file".to_owned() });
            }
            Err(errno) => return Err(Error::system(&path, "open", errno)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|errno| Error::system(&path, "look at", errno))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::Foreign { path, why: "it is not a plain file".to_owned() });
        }
        let mut header = [0; HEADER_BYTES];
        let read = rustix::io::pread(&file, &mut header, 0)
            .map_err(|errno| Error::system(&path, "read the header of", errno))?;
        if read < HEADER_BYTES {
            let why = format!("it has {} bytes, less than a ring's header", stat.st_size);
            return Err(Error::Foreign { path, why });
        }
        let file_bytes = u64::try_from(stat.st_size).unwrap_or(0);
        let shape = Shape::decode(&header, file_bytes, &path)?;
        // A block is 512 bytes. A file with holes is no ring, and touching a hole is fatal where nothing can fill
        // it.
        let allocated = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        if allocated < file_bytes {
            let why = format!("of its {file_bytes} bytes only {allocated} are allocated");
            return Err(Error::Foreign { path, why });
        }
        Ok(Self { file, path, shape })
    }

    /// Whether the segment still has its name: nobody has removed the name, or put another file in its place.
    pub(crate) fn is_named(&self) -> Result<bool, Error> {
        let ours = rustix::fs::fstat(&self.file).map_err(self.failed("look at"))?;
        match rustix::fs::lstat(&self.path) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed("look at")(errno)),
        }
    }

    /// Removes the name if it is still this segment's. Processes that have the segment open keep it.
    pub(crate) fn unlink(&self) -> Result<(), Error> {
        if self.is_named()? { unlink(&self.path) } else { Ok(()) }
    }

    /// Refuses a file of another user: in a directory where everybody may write, anybody may create a file of that
    /// name, and could read the frames. Root's files are trusted.
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        let owner = rustix::fs::fstat(&self.file).map_err(self.failed("look at"))?.st_uid;
        let us = rustix::process::geteuid().as_raw();
        if owner == us || owner == 0 {
            return Ok(());
        }
        let why = format!("it belongs to user {owner}, and this program runs as user {us}");
        Err(Error::Foreign { path: self.path.clone(), why })
    }

    /// Permission bits of the file.
    pub(crate) fn mode(&self) -> Result<u32, Error> {
        rustix::fs::fstat(&self.file).map(|stat| stat.st_mode & 0o777).map_err(self.failed("look at"))
    }

    /// Locks the publisher's byte. `Ok(false)`: there is a live publisher.
    pub(crate) fn lock_publisher(&self) -> Result<bool, Error> {
        lock::acquire(self.file.as_fd(), self.shape.publisher_at() as u64).map_err(self.failed("lock"))
    }

    /// Releases the publisher's lock. Closing the file does that too, but not while another thread of this process
    /// is about to start a program: until then the child has the open file as well.
    pub(crate) fn unlock_publisher(&self) -> Result<(), Error> {
        lock::release(self.file.as_fd(), self.shape.publisher_at() as u64).map_err(self.failed("unlock"))
    }

    /// Whether another open file has the publisher's lock.
    pub(crate) fn publisher_is_alive(&self) -> Result<bool, Error> {
        lock::held_by_another(self.file.as_fd(), self.shape.publisher_at() as u64)
            .map_err(self.failed("test the lock of"))
    }

    /// Locks a slot's byte. `Ok(false)`: a live subscriber has it.
    pub(crate) fn lock_slot(&self, slot: usize) -> Result<bool, Error> {
        lock::acquire(self.file.as_fd(), self.slot_byte(slot)).map_err(self.failed("lock a slot of"))
    }

    /// Releases a slot's lock; as for [`unlock_publisher`](Self::unlock_publisher), sooner than closing does.
    pub(crate) fn unlock_slot(&self, slot: usize) -> Result<(), Error> {
        lock::release(self.file.as_fd(), self.slot_byte(slot)).map_err(self.failed("unlock a slot of"))
    }

    /// Whether another open file has a slot's lock.
    pub(crate) fn slot_is_alive(&self, slot: usize) -> Result<bool, Error> {
        lock::held_by_another(self.file.as_fd(), self.slot_byte(slot)).map_err(self.failed("test a lock of"))
    }

    fn failed(&self, what: &'static str) -> impl Fn(Errno) -> Error {
        move |errno| Error::system(&self.path, what, errno)
    }

    fn slot_byte(&self, slot: usize) -> u64 {
        (self.shape.subscribers_at() + offset_of!(SubscriberLines, slots) + slot * size_of::<Slot>()) as u64
    }
}

/// Removes a name, whatever its file is; one that is gone already is no error.
pub(crate) fn unlink(path: &Path) -> Result<(), Error> {
    match rustix::fs::unlink(path) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Error::system(path, "remove", errno)),
    }
}
