//! The options of a ring, from C.

#![allow(unsafe_code)]

use std::time::Duration;

use tapeline_ring::{Framing, Options, Policy};

use crate::failure::{Failure, no_value};
use crate::sized::read_sized;

/// Options of a new ring. An existing ring can be continued only with the same shape. Zero is the default of
/// every field but the first: `tapeline_ring_publisher_options options = { .size = sizeof options };`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tapeline_ring_publisher_options {
    /// sizeof(tapeline_ring_publisher_options). Later releases add fields at the end; the size shows which fields exist.
    pub size: usize,
    /// Bytes of the data area, a power of two from 4096; 0 = 1 MiB.
    pub capacity: usize,
    /// The longest frame in bytes, up to a quarter of the capacity; 0 = that quarter.
    pub max_frame: usize,
    /// Permission bits of the segment; 0 = 0600.
    pub mode: u32,
    /// Not 0: keep the ring's name after the publisher has closed, so that subscribers can still join and drain.
    pub keep: u32,
    /// Not 0: only tapeline_ring_publisher_flush() wakes sleeping subscribers, not each commit. For frames that come in
    /// bursts.
    pub wake_on_flush: u32,
    /// A tapeline_policy: the policy for slow subscribers.
    pub policy: u32,
    /// A tapeline_framing: the placement of frames.
    pub framing: u32,
    /// Not 0: the segment gets the group `group`.
    pub set_group: u32,
    /// The group's number. With mode 0660 the group's members can subscribe.
    pub group: u32,
    /// Not 0: place the data area on huge pages (2 MiB each, so the capacity is at least 2 MiB).
    pub huge_pages: u32,
    /// How long a live subscriber may block a full ring without releasing anything, in ns; then it is evicted and
    /// gets TAPELINE_EVICTED. 0 = no limit. Broadcast rings take no limit.
    pub stall_limit_ns: u64,
}

/// The policy for slow subscribers. Fixed when the ring is created.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_policy {
    /// The publisher waits for slow subscribers: nothing is lost.
    TAPELINE_GATED = 0,
    /// The publisher never waits: a slow subscriber gets the number of frames that it lost.
    TAPELINE_BROADCAST = 1,
}

/// The placement of frames.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_framing {
    /// One after the other: the highest throughput.
    TAPELINE_PACKED = 0,
    /// Each on cache lines of its own: the lowest latency where messages come every 100 ns or faster.
    TAPELINE_LINES = 1,
}

/// The position at which a subscriber joins.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_start {
    /// Behind the newest frame: only later frames are read.
    TAPELINE_NEWEST = 0,
    /// At the oldest frame that is guaranteed to be intact: about 7/8 of the ring back.
    TAPELINE_OLDEST = 1,
}

/// How to wait for a frame. Each choice trades processor time for latency.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_wait {
    /// Polls with the processor's pause instruction for 50 µs, then sleeps until woken.
    TAPELINE_WAIT_ADAPTIVE = 0,
    /// Polls without a break: the lowest latency, but takes a whole core.
    TAPELINE_WAIT_SPIN = 1,
    /// Polls with the processor's pause instruction: takes a whole core, but spares a sibling hyper-thread.
    TAPELINE_WAIT_PAUSE = 2,
    /// Yields the core to other threads between polls.
    TAPELINE_WAIT_YIELD = 3,
    /// Sleeps until woken.
    TAPELINE_WAIT_PARK = 4,
}

impl tapeline_ring_publisher_options {
    /// Reads the fields that the caller knows; the others are zero.
    ///
    /// # Safety
    /// `options` is NULL, or points to its own `size` bytes.
    pub(crate) unsafe fn read(options: *const Self) -> Result<(Policy, Options), Failure> {
        let read = if options.is_null() {
            Self::default()
        } else {
            // SAFETY: the caller's promise; its first field is the size, and any bytes are numbers.
            unsafe { read_sized(options) }?
        };
        let policy = match read.policy {
            0 => Policy::Gated,
            1 => Policy::Broadcast,
            other => return Err(no_value("policy", other, "TAPELINE_GATED or TAPELINE_BROADCAST")),
        };
        let framing = match read.framing {
            0 => Framing::Packed,
            1 => Framing::Lines,
            other => return Err(no_value("framing", other, "TAPELINE_PACKED or TAPELINE_LINES")),
        };
        let default = Options::default();
        let options = Options {
            capacity: if read.capacity == 0 { default.capacity } else { read.capacity },
            mode: if read.mode == 0 { default.mode } else { read.mode },
            group: (read.set_group != 0).then_some(read.group),
            max_frame: read.max_frame,
            framing,
            stall_limit: Duration::from_nanos(read.stall_limit_ns),
            huge_pages: read.huge_pages != 0,
            keep: read.keep != 0,
            wake_on_commit: read.wake_on_flush == 0,
        };
        Ok((policy, options))
    }
}
