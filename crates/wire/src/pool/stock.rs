//! The empty slots, for each kind of pool.

use std::collections::LinkedList;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::{hint, thread};

use tapeline_ring::spsc::{self, Consumer, Producer, QueuePoll};

use super::PoolKind;
use super::memory::Slot;

/// The side that takes empty slots.
#[derive(Debug)]
pub(super) enum Stock {
    /// Returned slots go onto a stack of the taker: the next slot is the one used last.
    Spsc {
        back: Consumer<Option<Slot>>,
        stack: Vec<Slot>,
    },
    List(Arc<Shelf>),
    Heap,
}

/// The side that returns them.
#[derive(Debug)]
pub(super) enum Returns {
    Spsc(Producer<Option<Slot>>),
    List(Arc<Shelf>),
    Heap,
}

/// Creates both sides of a stock that starts with `owned` slots and can have at most `most`.
pub(super) fn of(kind: PoolKind, owned: Vec<Slot>, most: usize) -> (Stock, Returns) {
    match kind {
        PoolKind::Spsc => {
            let (producer, back) = spsc::queue(most, || None);
            (Stock::Spsc { back, stack: owned }, Returns::Spsc(producer))
        }
        PoolKind::List | PoolKind::CountedList => {
            let counted = kind == PoolKind::CountedList;
            let shelf = Arc::new(Shelf { list: Mutex::new(LinkedList::new()), most, counted });
            (Stock::List(Arc::clone(&shelf)), Returns::List(shelf))
        }
        PoolKind::Heap => (Stock::Heap, Returns::Heap),
    }
}

impl Stock {
    /// Collects the returned slots. Called once per receive.
    #[inline]
    pub(super) fn collect(&mut self) {
        let Self::Spsc { back, stack } = self else { return };
        while let QueuePoll::Ready(mut slots) = back.take() {
            stack.extend(slots.iter_mut().filter_map(Option::take));
        }
    }

    /// Returns an empty slot, if one is available; with [`PoolKind::Heap`] never.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Slot> {
        match self {
            Self::Spsc { stack, .. } => stack.pop(),
            Self::List(shelf) => shelf.lock().pop_back(),
            Self::Heap => None,
        }
    }
}

impl Returns {
    /// Returns `count` slots. Slots that do not belong to the pool are freed.
    #[inline]
    pub(super) fn give(&mut self, count: usize, slots: impl Iterator<Item = Slot>) {
        match self {
            Self::Spsc(producer) => give_in_batches(producer, count, slots),
            Self::List(shelf) => slots.for_each(|slot| shelf.put(slot)),
            Self::Heap => slots.for_each(drop),
        }
    }
}

/// The queue has capacity for all slots of the pool. If the taker is gone, the slots are dropped.
#[inline]
fn give_in_batches(producer: &mut Producer<Option<Slot>>, count: usize, slots: impl Iterator<Item = Slot>) {
    let mut slots = slots.filter(Slot::is_pooled);
    let mut left = count;
    while left > 0 {
        let Ok(mut batch) = producer.claim_batch(left) else { return slots.for_each(drop) };
        let mut given = 0;
        for (place, slot) in batch.iter_mut().zip(slots.by_ref()) {
            *place = Some(slot);
            given += 1;
        }
        let whole = given == batch.len();
        batch.commit_first(given);
        left -= given;
        if !whole {
            return;
        }
    }
}

/// A list behind a spinlock. A slot returned to a full list is freed; a slot missing from an empty list is
/// allocated.
#[derive(Debug)]
pub(super) struct Shelf {
    list: Mutex<LinkedList<Slot>>,
    most: usize,
    /// Count the list by walking it.
    counted: bool,
}

/// Number of attempts on a taken lock before the thread yields its core, as in Boost's `spinlock`
/// (`yield_k.hpp`).
const LOOKS: u32 = 16;

impl Shelf {
    /// A spinlock: one compare-and-swap if it is free, and no sleep if it is not. (`Mutex::try_lock` does
    /// exactly that, so no custom lock has to be proved correct.)
    fn lock(&self) -> MutexGuard<'_, LinkedList<Slot>> {
        let mut looks = 0;
        loop {
            match self.list.try_lock() {
                Ok(list) => return list,
                Err(TryLockError::Poisoned(poisoned)) => return PoisonError::into_inner(poisoned),
                Err(TryLockError::WouldBlock) if looks < LOOKS => {
                    looks += 1;
                    hint::spin_loop();
                }
                Err(TryLockError::WouldBlock) => thread::yield_now(),
            }
        }
    }

    fn put(&self, slot: Slot) {
        let mut list = self.lock();
        let length = if self.counted { hint::black_box(list.iter()).count() } else { list.len() };
        if length < self.most {
            list.push_back(slot);
        } else {
            drop(list);
            drop(slot);
        }
    }
}
