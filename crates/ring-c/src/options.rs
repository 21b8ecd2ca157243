//! What C asks of a ring.

#![allow(unsafe_code)]

use std::time::Duration;

use tapeline_ring::{Framing, Options, Policy};

use crate::failure::{Failure, null};
use crate::sized::read_sized;
use crate::tapeline_code::TAPELINE_ERROR_ARGUMENT;

/// What a new ring is to be like. An existing ring that is continued must have the same shape. Zero is the default of
/// every field but the first: `tapeline_publisher_options options = { .size = sizeof options };`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tapeline_publisher_options {
    /// sizeof(tapeline_publisher_options). Later releases add fields behind the last one; this tells which there are.
    pub size: usize,
    /// Bytes of the data area, a power of two from 4096; 0 = 1 MiB.
    pub capacity: usize,
    /// The longest frame in bytes, up to a quarter of the capacity; 0 = that quarter.
    pub max_frame: usize,
    /// Permission bits of the segment; 0 = 0600.
    pub mode: u32,
    /// Not 0: keep the ring's name after the publisher has closed, so that subscribers can still join and drain.
    pub keep: u32,
    /// Not 0: sleeping subscribers are woken by tapeline_publisher_flush() alone, not by each commit. For frames that
    /// come in bursts.
    pub wake_on_flush: u32,
    /// A tapeline_policy: what becomes of subscribers that are slow.
    pub policy: u32,
    /// A tapeline_framing: how frames lie.
    pub framing: u32,
    /// Not 0: the segment is given to `group`.
    pub set_group: u32,
    /// The group's number. With a mode of 0660 its members can subscribe.
    pub group: u32,
    /// Not 0: lay the data area on huge pages (of 2 MiB, so the capacity is at least that).
    pub huge_pages: u32,
    /// For how long a live subscriber may hold a full ring without releasing anything, in ns; then it is evicted and
    /// told so. 0 = for ever. Broadcast rings take none.
    pub stall_limit_ns: u64,
}

/// What becomes of subscribers that are slow. Fixed when a ring is made.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_policy {
    /// The publisher waits for them: nothing is lost.
    TAPELINE_GATED = 0,
    /// The publisher never waits: they are told how much they lost.
    TAPELINE_BROADCAST = 1,
}

/// How frames lie.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_framing {
    /// One after the other: the most messages a second.
    TAPELINE_PACKED = 0,
    /// Each on cache lines of its own: the least latency where messages come every 100 ns or faster.
    TAPELINE_LINES = 1,
}

/// Where a subscriber joins.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_start {
    /// Behind the newest frame: only what comes from now on.
    TAPELINE_NEWEST = 0,
    /// At the oldest frame that is still there for sure, about 7/8 of the ring back.
    TAPELINE_OLDEST = 1,
}

/// How to wait for a frame: each trades the processor for time.
#[repr(u32)]
#[derive(Clone, Copy, Debug)]
pub enum tapeline_wait {
    /// Polls with the processor's pause for 50 µs, then sleeps until woken.
    TAPELINE_WAIT_ADAPTIVE = 0,
    /// Polls without a break: the least latency, a whole core.
    TAPELINE_WAIT_SPIN = 1,
    /// Polls with the processor's pause: a whole core, kind to a sibling thread.
    TAPELINE_WAIT_PAUSE = 2,
    /// Gives the core to others between polls.
    TAPELINE_WAIT_YIELD = 3,
    /// Sleeps until woken.
    TAPELINE_WAIT_PARK = 4,
}

impl tapeline_publisher_options {
    /// The fields that the caller knows; the others are zero.
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

/// A number that stands for none of its values.
pub(crate) fn no_value(what: &str, found: u32, expected: &str) -> Failure {
    Failure::new(TAPELINE_ERROR_ARGUMENT, format!("{found} is no {what}, expected {expected}"))
}

/// Whether a pointer to a result may be written to.
pub(crate) fn given<T>(pointer: *mut T, what: &str) -> Result<*mut T, Failure> {
    if pointer.is_null() { Err(null(what)) } else { Ok(pointer) }
}
