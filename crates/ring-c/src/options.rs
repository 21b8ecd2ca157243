//! What C asks of a ring.

#![allow(unsafe_code)]

use tapeline_ring::Options;

use crate::failure::{Failure, null};
use crate::sized::{self, read_sized};

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
    /// 0.
    pub reserved: u32,
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
    /// Polls for some microseconds, then yields, then sleeps.
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
    pub(crate) unsafe fn read(options: *const Self) -> Result<Options, Failure> {
        let read = if options.is_null() {
            Self::default()
        } else {
            // SAFETY: the caller's promise; its first field is the size, and any bytes are numbers.
            unsafe { read_sized(options) }?
        };
        if read.reserved != 0 {
            return Err(sized::unknown());
        }
        let default = Options::default();
        let or = |value, otherwise| if value == 0 { otherwise } else { value };
        Ok(Options {
            capacity: or(read.capacity, default.capacity),
            mode: if read.mode == 0 { default.mode } else { read.mode },
            max_frame: read.max_frame,
            keep: read.keep != 0,
            wake_on_commit: read.wake_on_flush == 0,
            ..default
        })
    }
}

/// Whether a pointer to a result may be written to.
pub(crate) fn given<T>(pointer: *mut T, what: &str) -> Result<*mut T, Failure> {
    if pointer.is_null() { Err(null(what)) } else { Ok(pointer) }
}
