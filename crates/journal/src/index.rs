//! The index of a segment: a file with the place of one record per [`EVERY_BYTES`].
//!
//! It is a hint. A mark is used if its checksum is correct and the record at its offset has its sequence. The index is
//! never synced, and may be lost or deleted at any time: then the segment is read from its beginning.

use tapeline_nanos::Nanos;

use crate::folder::{File, Folder, read_full, write_full};
use crate::format::{index_name, u64_at};

/// Bytes per mark: the most that is read before the wanted record.
pub(crate) const EVERY_BYTES: u64 = 256 << 10;
/// Bytes of a mark: three numbers, their CRC-32C, and four zeros.
const MARK_BYTES: usize = 32;
/// The number of marks of the largest segment; limits the memory for an index.
const MOST_MARKS: usize = (crate::Settings::MOST_SEGMENT_BYTES / EVERY_BYTES) as usize + 1;

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) seq: u64,
    /// The latest time of any record before it: clocks may be set back.
    pub(crate) latest: Nanos,
    /// Bytes from the segment's beginning.
    pub(crate) offset: u64,
}

/// Appends marks to an index.
#[derive(Debug)]
pub(crate) struct Index<File> {
    file: File,
    bytes: u64,
    ready: Vec<u8>,
}

impl<F: File> Index<F> {
    /// Creates an index; `None` if the file cannot be created.
    pub(crate) fn create(folder: &impl Folder<File = F>, first: u64) -> Option<Self> {
        let name = index_name(first);
        // Removes the index of a segment that was never completed.
        let _ = folder.remove(&name);
        Some(Self { file: folder.create(&name).ok()?, bytes: 0, ready: Vec::new() })
    }

    pub(crate) fn put(&mut self, mark: Mark) {
        let at = self.ready.len();
        for number in [mark.seq, mark.latest.0, mark.offset] {
            self.ready.extend_from_slice(&number.to_le_bytes());
        }
        let crc = u64::from(crc32c::crc32c(&self.ready[at..]));
        self.ready.extend_from_slice(&crc.to_le_bytes());
    }

    /// Writes the pending marks. Returns `true` on success.
    pub(crate) fn write(&mut self) -> bool {
        let is_written = write_full(&self.file, &self.ready, self.bytes).is_ok();
        self.bytes += self.ready.len() as u64;
        self.ready.clear();
        is_written
    }
}

/// Returns the marks of a segment, up to the first invalid one.
pub(crate) fn read(folder: &impl Folder, first: u64) -> Vec<Mark> {
    let Ok(file) = folder.open(&index_name(first), false) else { return Vec::new() };
    let length = file.length().unwrap_or(0).min((MOST_MARKS * MARK_BYTES) as u64);
    let mut bytes = vec![0; length as usize];
    let count = read_full(&file, &mut bytes, 0).unwrap_or(0);
    let mut marks: Vec<Mark> = Vec::new();
    for bytes in bytes[..count].chunks_exact(MARK_BYTES) {
        let mark = Mark { seq: u64_at(bytes, 0), latest: Nanos(u64_at(bytes, 8)), offset: u64_at(bytes, 16) };
        let is_behind =
            |last: &Mark| last.seq < mark.seq && last.offset < mark.offset && last.latest <= mark.latest;
        let is_whole = u64_at(bytes, 24) == u64::from(crc32c::crc32c(&bytes[..24]));
        if !is_whole || !marks.last().is_none_or(is_behind) {
            break;
        }
        marks.push(mark);
    }
    marks
}
