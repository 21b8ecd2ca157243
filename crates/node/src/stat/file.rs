//! Where a plant's counters are: a file beside its ring, in shared memory, which the plant writes anew each second.
//!
//! It is written under another name and then given its own, so that whoever opens it has one whole snapshot: no waiting, no
//! half-written numbers, and no memory that two processes map. The plant keeps each snapshot locked until the next one is in its place, and
//! the kernel drops the lock when the process ends, however it ends: so a plant is known to live by its snapshot alone, also when the
//! name of its ring was removed.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use tapeline_ring::Name;

use super::snapshot::{LAYOUT, Snapshot};

/// In front of the ring's name. Not the rings' own prefix: none of them can be called so.
const PREFIX: &str = "tapeline.";
const SUFFIX: &str = ".stat";
/// The longest file that is read: thousands of sessions take a hundredth of it.
const LONGEST: u64 = 64 << 20;
/// Snapshots that are opened until one is still in its place: a plant writes one a second.
const TRIES: usize = 100;

/// Where the counters of a ring's plant are.
pub fn path(ring: &Name) -> PathBuf {
    ring.path().with_file_name(format!("{PREFIX}{ring}{SUFFIX}"))
}

/// A plant's counters file; gone with this.
#[derive(Debug)]
pub struct CountersFile {
    path: PathBuf,
    next: PathBuf,
    /// The snapshot that is there, locked.
    current: Option<File>,
}

impl CountersFile {
    /// Of the plant that publishes this ring. What an earlier one left behind is overwritten.
    pub fn of(ring: &Name) -> Self {
        let path = path(ring);
        let next = path.with_extension("stat-next");
        Self { path, next, current: None }
    }

    /// Puts a snapshot in the place of the one before.
    ///
    /// # Errors
    /// The machine's: shared memory is full, or somebody else's file has the name.
    pub fn write(&mut self, snapshot: &Snapshot) -> io::Result<()> {
        let text = serde_json::to_vec(snapshot)?;
        // A new file each time, which only this user may read: it names users and addresses. Whatever lies at the name, a
        // link to somewhere else too, is taken away and not written to.
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

/// What was found at a name.
#[derive(Debug)]
pub enum Found {
    /// The counters of a plant that lives.
    Live(Box<Snapshot>),
    /// What a plant left behind that died; the process that it was.
    Stale(u32),
    /// Nothing.
    Nothing,
}

/// Reads the counters of a ring's plant.
///
/// # Errors
/// The machine's, for instance where the file is another user's; a file that is no counters of this layout.
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
        // Nobody has it locked who has put a newer one in its place since it was opened.
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

/// Takes away what a dead plant left behind.
///
/// # Errors
/// The machine's.
pub fn remove(ring: &Name) -> io::Result<()> {
    fs::remove_file(path(ring))
}

/// Rings whose plants have a counters file, by name.
///
/// # Errors
/// Shared memory cannot be listed.
pub fn list() -> io::Result<Vec<Name>> {
    // Any name will do: all lie in one folder.
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

/// Whether this file goes by this name.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a file, and nothing that is not one.
fn open(path: &Path) -> io::Result<File> {
    // Cannot cut: flags are a handful of low bits. Neither a link nor a pipe that keeps its reader waiting.
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
