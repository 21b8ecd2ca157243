//! The folder of the segments, behind a trait so that a test can pass one that fails.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FallocateFlags;

use crate::Error;

/// A folder of files, for a test's own implementation or [`Directory`]. All errors are the system's.
pub trait Folder {
    /// A file in it.
    type File: File;

    /// Returns the names of all files.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Creates a file that must not exist yet, for reading and writing.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading, and for writing if `writable`.
    fn open(&self, name: &str, writable: bool) -> io::Result<Self::File>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Syncs the names of the files to disk.
    fn sync(&self) -> io::Result<()>;
}

/// A file of a [`Folder`]. All errors are the system's.
pub trait File {
    /// Reads at an offset and returns the number of bytes read: fewer than `into` has near the end, 0 at the end.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes at an offset and returns the number of bytes written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Returns the first offset, from `offset` on, that can hold a nonzero byte; `None` if only zeros follow up to the end.
    /// An implementation that cannot tell returns `offset` itself.
    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        Ok(Some(offset))
    }

    /// Returns the file's length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Truncates the file to `bytes`, or extends it with zeros to `bytes`.
    fn set_length(&self, bytes: u64) -> io::Result<()>;

    /// Extends the file to `bytes` and allocates disk space for all of it; does nothing if the file system cannot. An error
    /// mostly means that there is no space.
    fn allocate(&self, bytes: u64) -> io::Result<()>;

    /// Syncs the written bytes to disk. After an error, bytes written since the last sync may be lost, even if a later call
    /// succeeds.
    fn sync(&self) -> io::Result<()>;
}

/// The name of the writer's lock file.
const LOCK: &str = "lock";
/// Lock attempts: together they outlast a process that checks the lock and loses its core meanwhile.
const LOCK_TRIES: usize = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(2);

/// A folder on disk.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// The kernel releases the lock when the process ends, in any way.
    lock: Option<fs::File>,
}

impl Directory {
    /// Opens a folder for reading; other processes may write meanwhile.
    ///
    /// # Errors
    /// It does not exist, or is not a folder.
    pub fn open(path: &Path) -> Result<Self, Error> {
        fs::read_dir(path).map_err(Error::io("read the folder", &path.display().to_string()))?;
        Ok(Self { path: path.to_owned(), lock: None })
    }

    /// Opens a folder for writing and locks it for this process. Creates it with mode 0700 if missing; its parent must
    /// exist.
    ///
    /// # Errors
    /// The folder cannot be created, or another process writes it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        use std::os::unix::fs::DirBuilderExt;

        let shown = path.display().to_string();
        match fs::DirBuilder::new().mode(0o700).create(path) {
            // The folder's name must survive a failure of the machine too.
            Ok(()) => {
                let parent =
                    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
                let synced = fs::File::open(parent).and_then(|parent| parent.sync_all());
                synced.map_err(Error::io("sync the parent folder of", &shown))?;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::io("make the folder", &shown)(error)),
        }
        let mut options = fs::File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        let lock = options.open(path.join(LOCK)).map_err(Error::io("open the lock of", &shown))?;
        match Self::lock(&lock) {
            Ok(()) => Ok(Self { path: path.to_owned(), lock: Some(lock) }),
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
            Err(fs::TryLockError::Error(error)) => Err(Error::io("lock", &shown)(error)),
        }
    }

    /// Returns `true` if a process is writing the journal in this folder; `false` if there is no lock file.
    ///
    /// # Errors
    /// The lock file cannot be opened or locked.
    pub fn is_being_written(&self) -> Result<bool, Error> {
        let lock = match fs::File::open(self.path.join(LOCK)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(Error::io("open", LOCK)(error)),
        };
        match lock.try_lock_shared() {
            Ok(()) => {
                lock.unlock().map_err(Error::io("unlock", LOCK))?;
                Ok(false)
            }
            Err(fs::TryLockError::WouldBlock) => Ok(true),
            Err(fs::TryLockError::Error(error)) => Err(Error::io("lock", LOCK)(error)),
        }
    }

    /// Takes the lock. A process that only [checks](Self::is_being_written) has the lock for some microseconds; a
    /// writer retries instead of failing.
    fn lock(lock: &fs::File) -> Result<(), fs::TryLockError> {
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_TRIES),
                other => return other,
            }
        }
        lock.try_lock()
    }
}

impl Drop for Directory {
    /// Unlocks the folder now. Closing the lock file is not enough: a process that another thread has just forked keeps
    /// it open until its exec.
    fn drop(&mut self) {
        if let Some(lock) = &self.lock {
            // If this fails, the lock is released when the process ends.
            let _ = lock.unlock();
        }
    }
}

impl Folder for Directory {
    type File = fs::File;

    fn names(&self) -> io::Result<Vec<String>> {
        fs::read_dir(&self.path)?
            // A name that is not UTF-8 does not belong to the journal.
            .filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose())
            .collect()
    }

    fn create(&self, name: &str) -> io::Result<fs::File> {
        fs::File::options().read(true).write(true).create_new(true).mode(0o600).open(self.path.join(name))
    }

    fn open(&self, name: &str, writable: bool) -> io::Result<fs::File> {
        fs::File::options().read(true).write(writable).open(self.path.join(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.path)?.sync_all()
    }
}

impl File for fs::File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn next_data(&self, offset: u64) -> io::Result<Option<u64>> {
        // The unwritten part of a segment is only allocated; the file system knows where data is.
        match rustix::fs::seek(self, rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => Ok(Some(data)),
            Err(rustix::io::Errno::NXIO) => Ok(None),
            // Not every file system supports this, and the errors differ; then everything is read.
            Err(_) => Ok(Some(offset)),
        }
    }

    fn length(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        use rustix::io::Errno;

        loop {
            match rustix::fs::fallocate(self, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                other => return other.map_err(io::Error::from),
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Reads until `into` is full or the file ends. Returns the number of bytes read.
pub(crate) fn read_full(file: &impl File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Writes all bytes.
pub(crate) fn write_full(file: &impl File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_given_back_is_free_whoever_was_forked_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let held = Directory::create(folder.path()).unwrap();
        // A child between fork and exec has the same open file.
        let forked = held.lock.as_ref().unwrap().try_clone().unwrap();
        assert!(matches!(Directory::create(folder.path()), Err(Error::InUse { .. })));
        drop(held);
        Directory::create(folder.path()).unwrap();
        drop(forked);
    }
}
