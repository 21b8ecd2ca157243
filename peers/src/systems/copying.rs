//! The limit of throughput: pieces copied into memory by one core and out of it by another, published each 4 KiB only. No
//! queue, because a piece is not visible on its own.
//!
//! Sound because a slot belongs to the sender from the moment that the receiver's position has passed it until its own
//! position is stored behind it, and to the receiver in between.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::Stage;

/// Bytes between two stores of the sender's position.
const PUBLISH_BYTES: u64 = 4096;

const fn system(name: &'static str, title: &'static str) -> System {
    System {
        name,
        title,
        peer: "limits",
        place: Place::Threads,
        scope: Scope::Copy,
        settings: "pieces of the message's size copied in and out, position stored each 4 KiB, no piece visible on its own",
        run,
    }
}

pub(crate) const SMALL: System = system("copy-512k", "limit: copy through 512 KiB");
pub(crate) const LARGE: System = system("copy-8m", "limit: copy through 8 MiB");

fn run(stage: &Stage) -> anyhow::Result<()> {
    let capacity = if stage.case.system == LARGE.name { 8 << 20 } else { 512 << 10 };
    let bytes = stage.case.metric.bytes();
    let stride = bytes.next_multiple_of(8);
    let slots = (capacity / stride) as u64;
    let words = std::iter::repeat_with(|| UnsafeCell::new(0)).take(capacity / 8).collect();
    let area = Arc::new(Area {
        words,
        bytes,
        stride,
        slots,
        written: Position(AtomicU64::new(0)),
        read: Position(AtomicU64::new(0)),
    });
    let inlet = Inlet { area: area.clone(), at: 0, next: 0, published: 0, limit: slots };
    stage.pair(inlet, Outlet { area, at: 0, next: 0, published: 0 })
}

#[repr(align(128))]
struct Position(AtomicU64);

struct Area {
    words: Box<[UnsafeCell<u64>]>,
    bytes: usize,
    stride: usize,
    slots: u64,
    written: Position,
    read: Position,
}

// SAFETY: the two positions hand each slot to one side at a time (see the top); the smoke test checks every sequence.
unsafe impl Sync for Area {}

impl Area {
    /// # Safety
    /// `slot` is below `slots` and belongs to the caller.
    #[inline]
    unsafe fn place(&self, slot: u64) -> *mut u8 {
        // SAFETY: `slots` strides fit the words.
        unsafe { UnsafeCell::raw_get(self.words.as_ptr()).cast::<u8>().add(slot as usize * self.stride) }
    }

    #[inline]
    fn after(&self, slot: u64) -> u64 {
        if slot + 1 == self.slots { 0 } else { slot + 1 }
    }
}

struct Inlet {
    area: Arc<Area>,
    at: u64,
    next: u64,
    published: u64,
    limit: u64,
}

impl Sender for Inlet {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        if self.next == self.limit {
            // Acquire pairs with the receiver's release: its reads are over.
            self.limit = self.area.read.0.load(Ordering::Acquire) + self.area.slots;
            if self.next == self.limit {
                return false;
            }
        }
        // SAFETY: below the limit, so the slot is the sender's.
        message.fill(unsafe { std::slice::from_raw_parts_mut(self.area.place(self.at), self.area.bytes) });
        self.at = self.area.after(self.at);
        self.next += 1;
        if (self.next - self.published) * self.area.stride as u64 >= PUBLISH_BYTES {
            self.flush();
        }
        true
    }

    #[inline]
    fn flush(&mut self) {
        self.published = self.next;
        // Release: the pieces are there before the position says so.
        self.area.written.0.store(self.next, Ordering::Release);
    }
}

struct Outlet {
    area: Arc<Area>,
    at: u64,
    next: u64,
    published: u64,
}

impl Receiver for Outlet {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        // Acquire pairs with the sender's release.
        let count = self.area.written.0.load(Ordering::Acquire) - self.next;
        for _ in 0..count {
            // SAFETY: below the sender's position and not yet given back, so the slot is the receiver's.
            each(unsafe { std::slice::from_raw_parts(self.area.place(self.at), self.area.bytes) });
            self.at = self.area.after(self.at);
        }
        self.next += count;
        let free = self.next - self.published;
        if free >= self.area.slots / 8 || (count == 0 && free > 0) {
            self.published = self.next;
            // Release pairs with the sender's acquire.
            self.area.read.0.store(self.next, Ordering::Release);
        }
        count
    }
}
