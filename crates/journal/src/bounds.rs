//! The journal's two ends, in a small file next to the segments: the oldest segment that retention has not deleted, the
//! segment that was begun last, and the last sequence of a closed journal.
//!
//! ```text
//!  slot (64 bytes), little-endian; two slots, at 0 and 512, written in turns: a torn write leaves the other intact
//!   0  TAPEBND1
//!   8  generation: the slot with the later one is valid
//!  16  first sequence of the oldest segment that retention has not deleted; 0 if no segment was begun
//!  24  first sequence of the segment that was begun last; 0 if no segment was begun
//!  32  1 if the journal was closed, otherwise 0
//!  40  the last sequence, if the journal was closed
//!  48  zeros
//!  60  CRC-32C of the bytes before it
//! ```
//! A journal without the file is from an earlier version, or the file was removed: its ends are unknown. If the file
//! cannot be written, records are still journaled; the next segment retries it.

use std::io;

use crate::folder::{File, Folder, read_full, write_full};
use crate::format::{SEALED_BYTES as SLOT_BYTES, sealed, u64_at};

/// The file's name.
const NAME: &str = "bounds";
const MAGIC: &[u8; 8] = b"TAPEBND1";
/// The distance between the slots: the smallest sector of a disk.
const SLOT_STEP: usize = 512;

/// The contents of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// First sequence of the oldest segment that retention has not deleted; 0 if no segment was begun.
    pub(crate) oldest: u64,
    /// First sequence of the segment that was begun last; 0 if no segment was begun.
    pub(crate) newest: u64,
    /// The last sequence, if the journal was closed.
    pub(crate) closed: Option<u64>,
}

impl Bounds {
    fn bytes(&self, generation: u64) -> [u8; SLOT_BYTES] {
        let closed = [u64::from(self.closed.is_some()), self.closed.unwrap_or_default()];
        sealed(MAGIC, &[generation, self.oldest, self.newest, closed[0], closed[1]])
    }

    /// Parses a slot and its generation; `None` if the slot is torn or was never written.
    fn parse(slot: &[u8]) -> Option<(u64, Self)> {
        let slot = slot.first_chunk::<SLOT_BYTES>()?;
        let is_whole = slot[..8] == *MAGIC && slot[60..] == crc32c::crc32c(&slot[..60]).to_le_bytes();
        is_whole.then(|| {
            let closed = (u64_at(slot, 32) == 1).then(|| u64_at(slot, 40));
            (u64_at(slot, 8), Self { oldest: u64_at(slot, 16), newest: u64_at(slot, 24), closed })
        })
    }
}

/// Reads the file; `None` if there is no file, or if neither slot is intact.
///
/// # Errors
/// The system's, except for a missing file.
pub(crate) fn read(folder: &impl Folder) -> io::Result<Option<Bounds>> {
    match folder.open(NAME, false) {
        Ok(file) => Ok(newest_slot(&file)?.map(|(_, bounds)| bounds)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn newest_slot(file: &impl File) -> io::Result<Option<(u64, Bounds)>> {
    let mut bytes = [0; SLOT_STEP + SLOT_BYTES];
    let count = read_full(file, &mut bytes, 0)?;
    let slots = [0, SLOT_STEP].into_iter().filter_map(|at| Bounds::parse(bytes[..count].get(at..)?));
    Ok(slots.max_by_key(|(generation, _)| *generation))
}

/// Writes the file.
#[derive(Debug)]
pub(crate) struct Writing<File> {
    file: Option<File>,
    generation: u64,
    /// The contents to write.
    pub(crate) bounds: Bounds,
}

impl<F: File> Writing<F> {
    /// Opens an existing file, if there is one. Writes nothing yet.
    pub(crate) fn open(folder: &impl Folder<File = F>, bounds: Bounds) -> Self {
        let file = folder.open(NAME, true).ok();
        let slot = file.as_ref().and_then(|file| newest_slot(file).ok()?);
        Self { file, generation: slot.map_or(0, |(generation, _)| generation), bounds }
    }

    /// Writes the file, and syncs it if `is_synced`. Returns `true` on success.
    pub(crate) fn write(&mut self, folder: &impl Folder<File = F>, is_synced: bool) -> bool {
        if self.file.is_none() {
            // If the file cannot be created, the next segment retries.
            self.file = folder.create(NAME).ok();
        }
        let Some(file) = &self.file else { return false };
        let generation = self.generation.wrapping_add(1);
        let at = (generation % 2) * SLOT_STEP as u64;
        let written = write_full(file, &self.bounds.bytes(generation), at);
        let is_done = written.and_then(|()| if is_synced { file.sync() } else { Ok(()) }).is_ok();
        if is_done {
            self.generation = generation;
        }
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Directory;

    /// Journals outlive the program that wrote them: any change here is a new format.
    #[test]
    fn the_layout_is_pinned() {
        let slot = Bounds { oldest: 0x0102, newest: 0x0304, closed: Some(0x0506) }.bytes(7);
        assert_eq!(slot[..8], *b"TAPEBND1");
        assert_eq!(slot[8..48], *b"\x07\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x04\x03\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x06\x05\0\0\0\0\0\0");
        assert_eq!(slot[48..60], [0; 12]);
        assert_eq!(slot[60..], crc32c::crc32c(&slot[..60]).to_le_bytes());
    }

    #[test]
    fn a_torn_write_leaves_what_was_said_before() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::create(folder.path()).unwrap();
        assert_eq!(read(&directory).unwrap(), None);
        let mut writing = Writing::open(&directory, Bounds::default());
        for newest in 1..=4 {
            writing.bounds = Bounds { oldest: 1, newest, closed: None };
            assert!(writing.write(&directory, true));
            // The next writer continues in the other slot.
            writing = Writing::open(&directory, writing.bounds);
        }
        assert_eq!(read(&directory).unwrap().unwrap().newest, 4);
        let path = folder.path().join(NAME);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[30] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&directory).unwrap().unwrap().newest, 3);
        std::fs::write(&path, &bytes[..40]).unwrap();
        assert_eq!(read(&directory).unwrap(), None);
    }
}
