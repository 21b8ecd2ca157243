//! A plant's counters file: next to the ring in shared memory, rewritten by the plant each second.
//!
//! The plant writes each snapshot under another name and then renames it, so that a reader always opens one
//! complete snapshot: no waiting, no partial numbers, and no memory mapped by two processes. The plant holds
//! a lock on each snapshot until the next one has replaced it, and the kernel releases the lock when the
//! process ends, in any way. So the snapshot alone shows that a plant is alive, even if the name of its ring
//! was removed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tapeline_ring::Name;

use super::snapshot::{LAYOUT, Snapshot};

/// Before the ring's name. It differs from the rings' own prefix, so that no ring can have such a name.
const PREFIX: &str = "tapeline.";
const SUFFIX: &str = ".stat";
/// The longest file that is read: thousands of sessions take a hundredth of it.
const LONGEST: u64 = 64 << 20;
/// How often a snapshot is opened until it is still current: a plant writes one a second.
const TRIES: usize = 100;

/// Returns the path of the counters file of a ring's plant.
pub fn path(ring: &Name) -> PathBuf {
    ring.path().with_file_name(format!("{PREFIX}{ring}{SUFFIX}"))
}

/// A plant's counters file; removed when dropped.
#[derive(Debug)]
pub struct CountersFile {
    path: PathBuf,
    next: PathBuf,
    /// The current snapshot, locked.
    current: Option<File>,
}

impl CountersFile {
    /// The file of the plant that publishes this ring. A file left by an earlier plant is overwritten.
    pub fn of(ring: &Name) -> Self {
        let path = path(ring);
        let next = path.with_extension("stat-next");
        Self { path, next, current: None }
    }

    /// Replaces the snapshot.
    ///
    /// # Errors
    /// An error of the system: shared memory is full, or another user's file has the name.
    pub fn write(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let text = serde_json::to_vec(snapshot)?;
        // A new file each time, readable by this user only: it contains user names and addresses. An existing
        // file or link of this name is removed, not written to.
        match fs::remove_file(&self.next) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.next)?;
        file.write_all(&text)?;
        file.try_lock()?;
        fs::rename(&self.next, &self.path)?;
        self.current = Some(file);
        Ok(())
    }
}

impl Drop for CountersFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.next);
        let _ = fs::remove_file(&self.path);
    }
}

/// The result of reading a counters file.
#[derive(Debug)]
pub enum Found {
    /// The counters of a plant that is alive.
    Live(Box<Snapshot>),
    /// The file of a plant that died, with its process id.
    Stale(u32),
    /// No file.
    Nothing,
}

/// Reads the counters of a ring's plant.
///
/// # Errors
/// An error of the system, for example if the file belongs to another user, or a file without counters of
/// this layout.
pub fn read(ring: &Name) -> io::Result<Found> {
    let mut tries = 0;
    let (file, lives) = loop {
        let file = match open(&path(ring)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            file => file?,
        };
        let lives = match file.try_lock_shared() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(error)) => return Err(error),
        };
        tries += 1;
        // An unlocked file may be one that a newer snapshot has replaced since it was opened.
        if lives || tries == TRIES || is_at(&file, &path(ring))? {
            break (file, lives);
        }
    };
    let mut text = Vec::new();
    (&file).take(LONGEST).read_to_end(&mut text)?;
    let snapshot: Snapshot = serde_json::from_slice(&text)?;
    if snapshot.layout != LAYOUT {
        let what = format!("its layout is \"{}\", expected \"{LAYOUT}\"", snapshot.layout.escape_debug());
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    Ok(if lives { Found::Live(Box::new(snapshot)) } else { Found::Stale(snapshot.pid) })
}

/// Removes the file of a dead plant.
///
/// # Errors
/// An error of the system.
pub fn remove(ring: &Name) -> io::Result<()> {
    fs::remove_file(path(ring))
}

/// Lists the rings whose plants have a counters file, by name.
///
/// # Errors
/// Shared memory cannot be listed.
pub fn list() -> io::Result<Vec<Name>> {
    // The name does not matter: all are in one folder.
    let folder = Name::new("x").map(|name| name.path()).map_err(io::Error::other)?;
    let mut names = Vec::new();
    for file in fs::read_dir(folder.parent().unwrap_or(Path::new("/")))? {
        let file = file?.file_name();
        let name = file.to_str().and_then(|file| file.strip_prefix(PREFIX)?.strip_suffix(SUFFIX));
        names.extend(name.and_then(|name| Name::new(name).ok()));
    }
    names.sort();
    Ok(names)
}

/// Whether this file still has this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a regular file; fails for anything else.
fn open(path: &Path) -> io::Result<File> {
    // The cast cannot truncate: flags are a few low bits. The flags reject a link, and avoid blocking on a
    // pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a regular file"));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plant_lives_as_long_as_its_counters_are_locked() {
        let ring = Name::new(&format!("test-counters-{}", std::process::id())).unwrap();
        assert!(matches!(read(&ring).unwrap(), Found::Nothing));
        let mut file = CountersFile::of(&ring);
        let snapshot = Snapshot { layout: LAYOUT.to_owned(), pid: 7, ..Snapshot::default() };
        file.write(&snapshot).unwrap();
        assert!(list().unwrap().contains(&ring));
        // There is no ring of this name.
        for _ in 0..2 {
            assert!(matches!(read(&ring).unwrap(), Found::Live(_)));
            file.write(&snapshot).unwrap();
        }
        // The lock goes with the process, and the file stays.
        file.current = None;
        assert!(matches!(read(&ring).unwrap(), Found::Stale(7)));
        fs::write(path(&ring), "{\"layout\":\"tapeline-stat-9\"}").unwrap();
        assert!(read(&ring).unwrap_err().to_string().contains("tapeline-stat-9"));
        drop(file);
        assert!(matches!(read(&ring).unwrap(), Found::Nothing));
    }
}
