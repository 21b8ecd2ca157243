//! The bytes of a segment, little-endian.
//!
//! ```text
//!  header (64)                                        record, aligned to 8
//!   0  TAPEJRN1                                        0  CRC-32C of the bytes after it, up to the body's end
//!   8  sequence of the first record                    4  length of the body; bit 31: begins a write
//!  16  sequence of the last record before it, or 0     8  sequence
//!  24  the latest time of any record before it        16  time, ns since 1970 UTC
//!  32  zeros                                          24  the body, then zeros up to a multiple of 8
//!  60  CRC-32C of the bytes before it
//! ```
//! After the last record the file ends, or has zeros: it is preallocated to its maximum size.

use tapeline_nanos::Nanos;

use crate::Fault;
use crate::checksum;

/// The longest body of a record, in bytes: a tick of the plant has 17 MiB at most.
pub const MOST_BODY: usize = 32 << 20;

/// Bytes of what [`sealed`] returns.
pub(crate) const SEALED_BYTES: usize = 64;
/// Bytes of a segment's header.
pub(crate) const SEGMENT_BYTES: usize = SEALED_BYTES;
/// Bytes before a record's body.
pub(crate) const RECORD_BYTES: usize = 24;

const MAGIC: &[u8; 8] = b"TAPEJRN1";
/// The bit in a record's length that marks the first record of a write.
const BEGINS: u32 = 1 << 31;
const SUFFIX: &str = ".journal";
const INDEX_SUFFIX: &str = ".index";

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// The sequence of its first record.
    pub(crate) first: u64,
    /// The sequence of the last record before it; sequences in between are missing in the journal.
    pub(crate) after: u64,
    /// The latest time of any record before it.
    pub(crate) latest: Nanos,
}

impl SegmentHeader {
    pub(crate) fn bytes(&self) -> [u8; SEGMENT_BYTES] {
        sealed(MAGIC, &[self.first, self.after, self.latest.0])
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let Some(bytes) = bytes.first_chunk::<SEGMENT_BYTES>() else {
            return Err(Fault::Cut { wanted: SEGMENT_BYTES as u64, left: bytes.len() as u64 });
        };
        if bytes[..8] != *MAGIC {
            return Err(Fault::Magic(eight(bytes, 0)));
        }
        let (said, found) = (u32_at(bytes, 60), crc32c::crc32c(&bytes[..60]));
        if said != found {
            return Err(Fault::Checksum { said, found });
        }
        let (first, after) = (u64_at(bytes, 8), u64_at(bytes, 16));
        if first <= after {
            return Err(Fault::After { expected: first.saturating_sub(1), found: after });
        }
        Ok(Self { first, after, latest: Nanos(u64_at(bytes, 24)) })
    }
}

/// Returns a name and at most six numbers, then zeros, and the CRC-32C of all of it at the end.
pub(crate) fn sealed(name: &[u8; 8], numbers: &[u64]) -> [u8; SEALED_BYTES] {
    let mut out = [0; SEALED_BYTES];
    out[..8].copy_from_slice(name);
    for (number, out) in numbers.iter().zip(out[8..].chunks_exact_mut(8)) {
        out.copy_from_slice(&number.to_le_bytes());
    }
    let crc = crc32c::crc32c(&out[..60]);
    out[60..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// The parsed header of a record, not checked yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordHeader {
    pub(crate) crc: u32,
    pub(crate) body: usize,
    /// The record is the first of a write.
    pub(crate) begins: bool,
    pub(crate) seq: u64,
    pub(crate) time: Nanos,
}

impl RecordHeader {
    /// Parses a header; `None` if there are zeros instead of a record.
    pub(crate) fn parse(bytes: &[u8; RECORD_BYTES]) -> Result<Option<Self>, Fault> {
        if u64_at(bytes, 0) | u64_at(bytes, 8) | u64_at(bytes, 16) == 0 {
            return Ok(None);
        }
        let length = u32_at(bytes, 4);
        let body = (length & !BEGINS) as usize;
        if body > MOST_BODY {
            return Err(Fault::Length { most: MOST_BODY, found: u64::from(length & !BEGINS) });
        }
        Ok(Some(Self {
            crc: u32_at(bytes, 0),
            body,
            begins: length & BEGINS != 0,
            seq: u64_at(bytes, 8),
            time: Nanos(u64_at(bytes, 16)),
        }))
    }

    /// Bytes of the record on disk.
    pub(crate) fn size(&self) -> usize {
        record_size(self.body)
    }

    /// Checks all bytes of a record against its checksum.
    #[inline]
    pub(crate) fn check(&self, record: &[u8]) -> Result<(), Fault> {
        let body = &record[RECORD_BYTES..RECORD_BYTES + self.body];
        let found = checksum::of_record(length(self.body, self.begins), self.seq, self.time.0, body);
        if found == self.crc { Ok(()) } else { Err(Fault::Checksum { said: self.crc, found }) }
    }
}

/// Returns the word of a record with its body's length.
#[inline]
const fn length(body: usize, begins: bool) -> u32 {
    body as u32 | if begins { BEGINS } else { 0 }
}

/// Returns the bytes of a record with a body of this length.
#[inline]
pub(crate) const fn record_size(body: usize) -> usize {
    (RECORD_BYTES + body).next_multiple_of(8)
}

/// Appends a record to `out`. A body has at most [`MOST_BODY`] bytes.
#[inline]
pub(crate) fn put_record(out: &mut Vec<u8>, begins: bool, seq: u64, time: Nanos, body: &[u8]) {
    let length = length(body.len(), begins);
    let mut fixed = [0; RECORD_BYTES];
    fixed[..4].copy_from_slice(&checksum::of_record(length, seq, time.0, body).to_le_bytes());
    fixed[4..8].copy_from_slice(&length.to_le_bytes());
    fixed[8..16].copy_from_slice(&seq.to_le_bytes());
    fixed[16..24].copy_from_slice(&time.0.to_le_bytes());
    out.extend_from_slice(&fixed);
    out.extend_from_slice(body);
    let padding = record_size(body.len()) - RECORD_BYTES - body.len();
    if padding > 0 {
        out.extend_from_slice(&[0; 8][..padding]);
    }
}

/// Returns the file name of the segment whose first record has this sequence.
pub(crate) fn segment_name(first: u64) -> String {
    format!("{first:020}{SUFFIX}")
}

/// Returns the file name of its index.
pub(crate) fn index_name(first: u64) -> String {
    format!("{first:020}{INDEX_SUFFIX}")
}

/// Returns the first sequence of the segment with this file name; `None` for another file.
pub(crate) fn first_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(SUFFIX)?;
    (digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

pub(crate) fn eight(bytes: &[u8], at: usize) -> [u8; 8] {
    bytes[at..at + 8].try_into().expect("a slice of eight bytes")
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(eight(bytes, at))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a slice of four bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Journals outlive the program that wrote them: any change here is a new format.
    #[test]
    fn the_layout_is_pinned() {
        let header = SegmentHeader { first: 0x0102, after: 0x0101, latest: Nanos(7) }.bytes();
        assert_eq!(header[..8], *b"TAPEJRN1");
        assert_eq!(header[8..32], [2, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(header[32..60], [0; 28]);
        assert_eq!(u32_at(&header, 60), crc32c::crc32c(&header[..60]));

        let mut out = b"before".to_vec();
        put_record(&mut out, true, 9, Nanos(10), b"body!");
        let record = &out[6..];
        assert_eq!(record.len(), 32);
        assert_eq!(record[4..], *b"\x05\0\0\x80\x09\0\0\0\0\0\0\0\x0A\0\0\0\0\0\0\0body!\0\0\0");
        assert_eq!(u32_at(record, 0), crc32c::crc32c(&record[4..29]));
        // The published check value of CRC-32C (RFC 3720, B.4): other readers can be written.
        assert_eq!(crc32c::crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(segment_name(12), "00000000000000000012.journal");
        assert_eq!(index_name(12), "00000000000000000012.index");
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(first_of(&segment_name(u64::MAX)), Some(u64::MAX));
        for other in ["12.journal", "0000000000000000001x.journal", "lock", "99999999999999999999.journal"] {
            assert_eq!(first_of(other), None, "{other}");
        }
    }

    #[test]
    fn a_header_comes_back_or_is_refused() {
        let header = SegmentHeader { first: 8, after: 5, latest: Nanos(1) };
        let bytes = header.bytes();
        assert_eq!(SegmentHeader::parse(&bytes), Ok(header));
        for at in 0..SEGMENT_BYTES {
            let mut other = bytes;
            other[at] ^= 0x10;
            assert!(SegmentHeader::parse(&other).is_err(), "byte {at}");
            assert!(SegmentHeader::parse(&bytes[..at]).is_err(), "cut to {at}");
        }
        let backwards = SegmentHeader { first: 5, after: 5, latest: Nanos(1) }.bytes();
        assert_eq!(SegmentHeader::parse(&backwards), Err(Fault::After { expected: 4, found: 5 }));
    }
}
