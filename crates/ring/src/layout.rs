//! The segment's layout: its regions, and the header that describes them.
//!
//! ```text
//! 0            header: magic, layout version, sizes, policy, framing, checksum. Written once, before the name exists
//! publisher    lines that only the publisher writes: cursor, gate, status, tally, note, orders
//! subscribers  lines that subscribers write: members, waiters, then 64 slots of 256 bytes
//! data         frames; a power of two of bytes, mapped twice in a row so that no frame wraps
//! ```
//!
//! Every region starts on a page, so that subscribers can map all regions but their own read-only. Numbers are in
//! the machine's byte order: a segment never leaves the machine.

use std::fmt;
use std::path::Path;

use crate::Error;
use crate::lines::{PublisherLines, SLOTS, Slot, SubscriberLines};

/// Incremented with every change to this file or to `lines.rs` that moves or reinterprets a byte.
pub(crate) const LAYOUT_VERSION: u32 = 2;
/// Used bytes of the header.
pub(crate) const HEADER_BYTES: usize = 160;
const CHECKSUM_AT: usize = HEADER_BYTES - 8;
const MAGIC: [u8; 8] = *b"tapeRING";

/// The smallest data area: with less, an eighth of the ring (the step in which space is released) holds no frame.
pub(crate) const LEAST_CAPACITY: usize = if cfg!(loom) { 64 } else { 4096 };
/// The largest data area: keeps every sum of positions far below the limit of 64 bits.
pub(crate) const MOST_CAPACITY: usize = 1 << 40;
/// A frame may take at most one of this many parts of the ring, so that several frames always fit.
pub(crate) const FRAME_SHARE: usize = 4;
/// Bytes of a huge page: the processor's next page size on x86-64, and on ARM with 4 KiB pages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// The policy for slow subscribers. Fixed when the ring is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// The publisher never overtakes a registered subscriber: nothing is lost.
    Gated,
    /// The publisher never waits; an overtaken subscriber gets the number of frames that it lost.
    Broadcast,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gated => "gated",
            Self::Broadcast => "broadcast",
        })
    }
}

/// The placement of frames in the data area. Fixed when the ring is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Framing {
    /// Frames follow each other, each aligned to 8 bytes behind an 8-byte header: the highest throughput.
    Packed,
    /// Each frame has cache lines of its own, cleared ahead once the previous frame is committed: the lowest latency
    /// where messages come every 100 ns or faster, at the cost of more space per frame.
    Lines,
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Packed => "packed",
            Self::Lines => "lines",
        })
    }
}

impl Framing {
    /// Bytes to which every frame is aligned.
    pub(crate) const fn align(self) -> usize {
        match self {
            Self::Packed => 8,
            Self::Lines => 64,
        }
    }
}

/// A ring's shape, as its header states it. All other code relies on it once [`Shape::decode`] has checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a page on the machine that made the ring.
    pub(crate) page: usize,
    /// Bytes of the data area; a power of two.
    pub(crate) capacity: usize,
    /// The longest frame in bytes.
    pub(crate) max_frame: usize,
    pub(crate) policy: Policy,
    pub(crate) framing: Framing,
    /// How long a live subscriber may block the full ring, in ns; 0 = no limit.
    pub(crate) stall_limit_ns: u64,
    /// Whether the data area is aligned to huge pages and requested to be on them.
    pub(crate) huge_pages: bool,
    /// ns since 1970 UTC.
    pub(crate) created_ns: u64,
    pub(crate) creator_pid: u32,
}

impl Shape {
    pub(crate) fn publisher_at(&self) -> usize {
        self.page
    }

    pub(crate) fn subscribers_at(&self) -> usize {
        self.publisher_at() + size_of::<PublisherLines>().next_multiple_of(self.page)
    }

    pub(crate) fn data_at(&self) -> usize {
        let end = self.subscribers_at() + size_of::<SubscriberLines>();
        end.next_multiple_of(if self.huge_pages { HUGE_PAGE } else { self.page })
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        (self.data_at() + self.capacity) as u64
    }

    /// Checks that the shape is valid. All other code in the crate relies on this check alone.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bad = |what, found: usize, expected: String| {
            Err(Error::BadOptions { what, found: found as u64, expected })
        };
        let page = rustix::param::page_size();
        if self.page != page {
            return bad("pages of", self.page, format!("{page}, as this machine has them"));
        }
        let least = if cfg!(loom) { LEAST_CAPACITY } else { LEAST_CAPACITY.max(page) };
        if !self.capacity.is_power_of_two() || self.capacity < least || self.capacity > MOST_CAPACITY {
            let expected = format!("a power of two from {least} to {MOST_CAPACITY} bytes");
            return bad("capacity", self.capacity, expected);
        }
        if self.huge_pages && self.capacity < HUGE_PAGE {
            let expected = format!("at least {HUGE_PAGE} bytes, one huge page");
            return bad("huge pages and a capacity of", self.capacity, expected);
        }
        let most = longest_frame(self.capacity);
        if self.max_frame == 0 || self.max_frame > most {
            let expected = format!("1 to {most} bytes, a quarter of the ring");
            return bad("a longest frame of", self.max_frame, expected);
        }
        Ok(())
    }

    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &LAYOUT_VERSION.to_ne_bytes());
        put(12, &(HEADER_BYTES as u32).to_ne_bytes());
        put(16, &(self.page as u64).to_ne_bytes());
        put(24, &(self.capacity as u64).to_ne_bytes());
        put(32, &(self.max_frame as u64).to_ne_bytes());
        put(40, &(self.publisher_at() as u64).to_ne_bytes());
        put(48, &(self.subscribers_at() as u64).to_ne_bytes());
        put(56, &(self.data_at() as u64).to_ne_bytes());
        put(64, &(SLOTS as u32).to_ne_bytes());
        put(68, &(size_of::<Slot>() as u32).to_ne_bytes());
        put(72, &(self.policy as u32).to_ne_bytes());
        put(76, &(self.framing as u32).to_ne_bytes());
        put(80, &self.stall_limit_ns.to_ne_bytes());
        put(88, &self.created_ns.to_ne_bytes());
        put(96, &self.creator_pid.to_ne_bytes());
        put(100, &u32::from(self.huge_pages).to_ne_bytes());
        // 104..152 is zero: reserved for later framings and policies.
        let sum = checksum(&header[..CHECKSUM_AT]);
        header[CHECKSUM_AT..].copy_from_slice(&sum.to_ne_bytes());
        header
    }

    /// Decodes a header and checks all of it: against itself, this build, the machine and the size of the file.
    pub(crate) fn decode(header: &[u8; HEADER_BYTES], file_bytes: u64, path: &Path) -> Result<Self, Error> {
        let foreign = |why: String| Err(Error::Foreign { path: path.to_owned(), why });
        let damaged = |why: String| Err(Error::Damaged { path: path.to_owned(), why });
        if header[..8] != MAGIC {
            return foreign("it does not start with a ring's magic bytes".to_owned());
        }
        let word32 = |at| u32::from_ne_bytes(word(header, at));
        let word64 = |at| u64::from_ne_bytes(word(header, at));
        let version = word32(8);
        if version != LAYOUT_VERSION {
            return Err(Error::Layout { path: path.to_owned(), found: version, expected: LAYOUT_VERSION });
        }
        let (found, expected) = (word64(CHECKSUM_AT), checksum(&header[..CHECKSUM_AT]));
        if found != expected {
            return damaged(format!("its header's checksum is {found:016x}, expected {expected:016x}"));
        }
        // The crate requires 64 bits, so no value is truncated.
        let size = |at| word64(at) as usize;
        let shape = Self {
            page: size(16),
            capacity: size(24),
            max_frame: size(32),
            policy: match word32(72) {
                0 => Policy::Gated,
                1 => Policy::Broadcast,
                other => {
                    return damaged(format!("its policy is {other}, expected 0 (gated) or 1 (broadcast)"));
                }
            },
            framing: match word32(76) {
                0 => Framing::Packed,
                1 => Framing::Lines,
                other => return damaged(format!("its framing is {other}, expected 0 (packed) or 1 (lines)")),
            },
            stall_limit_ns: word64(80),
            huge_pages: word32(100) != 0,
            created_ns: word64(88),
            creator_pid: word32(96),
        };
        if let Err(error) = shape.check() {
            return damaged(error.to_string());
        }
        // The offsets follow from the sizes; they are in the header for people and for other languages.
        if shape.encode()[..CHECKSUM_AT] != header[..CHECKSUM_AT] {
            return damaged("its offsets do not follow from its sizes".to_owned());
        }
        if file_bytes != shape.file_bytes() {
            return foreign(format!("it has {file_bytes} bytes, and its header says {}", shape.file_bytes()));
        }
        Ok(shape)
    }
}

/// The longest frame that a ring of `capacity` bytes allows.
pub(crate) fn longest_frame(capacity: usize) -> usize {
    // The length has 32 bits in a frame's header.
    (capacity / FRAME_SHARE).min(u32::MAX as usize)
}

/// FNV-1a, 64 bits (Fowler, Noll, Vo): detects a damaged header, not a forged one.
fn checksum(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The bytes of the number at `at`.
fn word<const N: usize>(header: &[u8; HEADER_BYTES], at: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&header[at..at + N]);
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(capacity: usize) -> Shape {
        Shape {
            page: rustix::param::page_size(),
            capacity,
            max_frame: capacity / 4,
            policy: Policy::Gated,
            framing: Framing::Packed,
            stall_limit_ns: 0,
            huge_pages: false,
            created_ns: 17,
            creator_pid: 4711,
        }
    }

    #[test]
    fn a_header_reads_back_as_written() {
        for power in 16..30 {
            let shape = Shape {
                policy: [Policy::Gated, Policy::Broadcast][power % 2],
                framing: [Framing::Packed, Framing::Lines][power / 2 % 2],
                huge_pages: power > 20,
                ..shape(1 << power)
            };
            let read = Shape::decode(&shape.encode(), shape.file_bytes(), Path::new("x")).unwrap();
            assert_eq!(read, shape);
        }
    }

    #[test]
    fn regions_start_on_pages_and_do_not_overlap() {
        let shape = shape(1 << 20);
        assert!(shape.publisher_at() >= HEADER_BYTES);
        for at in [shape.publisher_at(), shape.subscribers_at(), shape.data_at()] {
            assert_eq!(at % shape.page, 0);
        }
        assert!(shape.subscribers_at() - shape.publisher_at() >= size_of::<PublisherLines>());
        assert!(shape.data_at() - shape.subscribers_at() >= size_of::<SubscriberLines>());
    }

    #[test]
    fn every_refusal_has_its_own_reason() {
        let good = shape(1 << 20);
        let read = |header: &[u8; HEADER_BYTES], bytes| Shape::decode(header, bytes, Path::new("x"));
        let changed = |at: usize, to: fn(u8) -> u8| {
            let mut other = good.encode();
            other[at] = to(other[at]);
            read(&other, good.file_bytes())
        };
        assert!(matches!(changed(0, |byte| byte ^ 1), Err(Error::Foreign { .. })));
        let layout = changed(8, |_| 9);
        assert!(matches!(layout, Err(Error::Layout { found: 9, expected: LAYOUT_VERSION, .. })));
        assert!(matches!(changed(24, |byte| byte ^ 1), Err(Error::Damaged { .. })));
        assert!(matches!(read(&good.encode(), good.file_bytes() - 1), Err(Error::Foreign { .. })));
        assert!(matches!(read(&good.encode(), 0), Err(Error::Foreign { .. })));
    }

    proptest! {
        /// Arbitrary bytes with a correct checksum: the header is refused, or it describes a valid ring.
        #[test]
        fn a_header_is_refused_or_possible(
            at in 16usize..CHECKSUM_AT, byte: u8, more in proptest::collection::vec((16usize..CHECKSUM_AT, any::<u8>()), 0..4)
        ) {
            let mut header = shape(1 << 20).encode();
            header[at] = byte;
            for (at, byte) in more {
                header[at] = byte;
            }
            let sum = checksum(&header[..CHECKSUM_AT]);
            header[CHECKSUM_AT..].copy_from_slice(&sum.to_ne_bytes());
            if let Ok(shape) = Shape::decode(&header, shape(1 << 20).file_bytes(), Path::new("x")) {
                prop_assert!(shape.check().is_ok());
                prop_assert_eq!(shape.capacity, 1 << 20);
            }
        }
    }
}
