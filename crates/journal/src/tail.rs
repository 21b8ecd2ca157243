//! What a crash leaves behind the last whole record, told from damage in the middle.

use crate::Error;
use crate::folder::{File, read_full};
use crate::format::{RECORD_BYTES, RecordHeader};

/// Bytes that are looked at together.
const BLOCK: usize = 1 << 20;

/// Bytes behind the last whole record of a journal that are no record: a write that was under way when its process or
/// machine stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The segment's file name.
    pub segment: String,
    /// Offset of the tail, in bytes from the start of the segment.
    pub offset: u64,
    /// Length of the tail in bytes, without the zeros behind it.
    pub bytes: u64,
    /// Sequence of the last record before the tail; 0 if none.
    pub after: u64,
    /// Number of whole records inside the tail, from the same write as the torn bytes before them: a machine that stops
    /// can have written later bytes before earlier ones.
    pub records: u64,
}

/// What stands behind a place where a record is expected and none is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Behind {
    /// Up to where there is anything but zeros; the place itself if there is nothing.
    pub(crate) end: u64,
    /// Whole records of the write that is torn.
    pub(crate) records: u64,
    /// A later write has begun there: what is torn was whole before that, and this is damage.
    pub(crate) later_write: bool,
}

/// Looks for records behind `from`, where the one after `last` should be.
///
/// A record is taken for one if its checksum holds and its sequence can be. Checksums are taken over twice what there is at most: bytes
/// that were made to take longer count as damage. What was never written of a segment is passed over, so that a look at a write that is
/// under way costs what is written behind it, and not the room that was made.
pub(crate) fn behind(file: &impl File, name: &str, from: u64, last: u64) -> Result<Behind, Error> {
    let length = file.length().map_err(Error::io("look at", name))?;
    let mut found = Behind { end: from, ..Behind::default() };
    let most = last.saturating_add(length.saturating_sub(from) / RECORD_BYTES as u64);
    let mut allowed = length.saturating_sub(from).saturating_mul(2) + BLOCK as u64;
    let (mut block, mut record) = (vec![0; BLOCK + RECORD_BYTES], Vec::new());
    let mut at = from;
    // The next place where a record may begin, behind the one that was found.
    let mut next = from;
    while at < length {
        match file.next_data(at).map_err(Error::io("look at", name))? {
            // A place where a record may begin.
            Some(data) if data < length => at = at.max(data / 8 * 8),
            _ => break,
        }
        let count = read_full(file, &mut block, at).map_err(Error::io("read", name))?;
        // No further than it went at first: it may grow meanwhile.
        let own = count.min(BLOCK).min(usize::try_from(length - at).unwrap_or(BLOCK));
        if own == 0 {
            break;
        }
        if let Some(last_byte) = block[..own].iter().rposition(|byte| *byte != 0) {
            found.end = at + last_byte as u64 + 1;
            for place in (0..=last_byte).step_by(8) {
                let offset = at + place as u64;
                let Some(header) =
                    block.get(place..).and_then(<[u8]>::first_chunk).filter(|_| offset >= next)
                else {
                    continue;
                };
                let Ok(Some(header)) = RecordHeader::parse(header) else { continue };
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
