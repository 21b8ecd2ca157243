//! The torn tail that a crash leaves after the last whole record, as opposed to damage in the middle.

use crate::Error;
use crate::folder::{File, read_full};
use crate::format::{RECORD_BYTES, RecordHeader};

/// Bytes per read.
const BLOCK: usize = 1 << 20;

/// Bytes after the last whole record of a journal that are no record: a write that was under way when its process or
/// machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The segment's file name.
    pub segment: String,
    /// Offset of the tail, in bytes from the start of the segment.
    pub offset: u64,
    /// Length of the tail in bytes, without the zeros after it.
    pub bytes: u64,
    /// Sequence of the last record before the tail; 0 if none.
    pub after: u64,
    /// Number of whole records inside the tail, from the same write as the torn bytes before them: a machine that stops
    /// can have written later bytes before earlier ones.
    pub records: u64,
}

/// The contents after a place where a record is expected and missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The end of the last nonzero byte; the place itself if there are only zeros.
    pub(crate) end: u64,
    /// Whole records of the torn write.
    pub(crate) records: u64,
    /// A later write follows: the torn write had been complete, so this is damage.
    pub(crate) later_write: bool,
}

/// Searches for records after `from`, where the record after `last` should be.
///
/// Bytes count as a record if the checksum is correct and the sequence is possible. Checksums cover at most twice the
/// bytes of the segment: bytes crafted to need more count as damage. Parts that were never written are skipped, so the
/// cost depends on the bytes written after `from`, not on the allocated space.
pub(crate) fn behind(file: &impl File, name: &str, from: u64, last: u64) -> Result<Behind, Error> {
    let length = file.length().map_err(Error::io("look at", name))?;
    let mut found = Behind { end: from, ..Behind::default() };
    let most = last.saturating_add(length.saturating_sub(from) / RECORD_BYTES as u64);
    let mut allowed = length.saturating_sub(from).saturating_mul(2) + BLOCK as u64;
    let (mut block, mut record) = (vec![0; BLOCK + RECORD_BYTES], Vec::new());
    let mut at = from;
    // The next place where a record may begin, after the last one found.
    let mut next = from;
    while at < length {
        match file.next_data(at).map_err(Error::io("look at", name))? {
            // A place where a record may begin.
            Some(data) if data < length => at = at.max(data / 8 * 8),
            _ => break,
        }
        let count = read_full(file, &mut block, at).map_err(Error::io("read", name))?;
        // Not past the initial length: the file may grow meanwhile.
        let own = count.min(BLOCK).min(usize::try_from(length - at).unwrap_or(BLOCK));
        if own == 0 {
            break;
        }
        if let Some(last_byte) = block[..own].iter().rposition(|byte| *byte != 0) {
            found.end = at + last_byte as u64 + 1;
            for place in (0..=last_byte).step_by(8) {
                let offset = at + place as u64;
                let there = block.get(place..).and_then(<[u8]>::first_chunk).filter(|_| offset >= next);
                let Some(Ok(Some(header))) = there.map(RecordHeader::parse) else { continue };
                let size = header.size() as u64;
                if header.seq <= last || header.seq > most || size > length - offset {
                    continue;
                }
                if size > allowed {
                    return Ok(Behind { later_write: true, ..found });
                }
                allowed -= size;
                record.resize(header.size(), 0);
                let read = read_full(file, &mut record, offset).map_err(Error::io("read", name))?;
                if read == record.len() && header.check(&record).is_ok() {
                    next = offset + size;
                    found.records += 1;
                    if header.begins {
                        return Ok(Behind { later_write: true, ..found });
                    }
                }
            }
        }
        at += own as u64;
    }
    Ok(found)
}
