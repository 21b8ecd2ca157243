//! A segment without a file: the words that its parties share, and locks that a model can drop as the kernel does.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64 as Bits, Ordering::Relaxed};

use crate::atomics::{AtomicU64, Ordering};
use crate::layout::Shape;
use crate::lines::{PublisherLines, SLOTS, SubscriberLines};
use crate::{Error, Name};

/// The contents of the "file".
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) publisher: PublisherLines,
    pub(crate) subscribers: SubscriberLines,
    pub(crate) data: Vec<AtomicU64>,
    /// 1 = locked: one for each slot, and the publisher's.
    locks: [AtomicU64; SLOTS + 1],
    named: AtomicBool,
}

const PUBLISHER: usize = SLOTS;

thread_local! {
    /// The one segment that has a name. Loom runs a model's threads on one thread of the system.
    static NAMED: RefCell<Option<(Shape, Arc<Shared>)>> = const { RefCell::new(None) };
}

/// Drops the segment of the previous interleaving.
pub(crate) fn begin() {
    NAMED.take();
}

/// As the real one.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) file: OpenFile,
    pub(crate) path: PathBuf,
    pub(crate) shape: Shape,
}

/// One party's open file, with its locks.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) shared: Arc<Shared>,
    /// Locks that this file owns, one bit each.
    held: Bits,
}

/// As in the real file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    TakePart,
    Observe,
}

impl Segment {
    pub(crate) fn create(name: &Name, shape: Shape, _: u32, _: Option<u32>) -> Result<Self, Error> {
        let data = (0..shape.capacity / 8).map(|_| AtomicU64::default()).collect();
        let shared = Arc::new(Shared { data, ..Shared::default() });
        Ok(Self { file: OpenFile::of(shared), path: name.path(), shape })
    }

    pub(crate) fn publish_name(&self) -> Result<bool, Error> {
        self.file.shared.named.store(true, Relaxed);
        NAMED.set(Some((self.shape, Arc::clone(&self.file.shared))));
        Ok(true)
    }

    pub(crate) fn open(name: &Name, _: Purpose) -> Result<Self, Error> {
        let path = name.path();
        NAMED.with_borrow(|named| match named {
            Some((shape, shared)) => Ok(Self { file: OpenFile::of(Arc::clone(shared)), path, shape: *shape }),
            None => Err(Error::NotFound { path }),
        })
    }

    pub(crate) fn is_named(&self) -> Result<bool, Error> {
        Ok(self.file.shared.named.load(Relaxed))
    }

    /// A model has one user.
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        Ok(())
    }

    pub(crate) fn unlink(&self) -> Result<(), Error> {
        self.file.shared.named.store(false, Relaxed);
        NAMED.take();
        Ok(())
    }

    pub(crate) fn mode(&self) -> Result<u32, Error> {
        Ok(0o600)
    }

    pub(crate) fn lock_publisher(&self) -> Result<bool, Error> {
        Ok(self.file.acquire(PUBLISHER))
    }

    pub(crate) fn unlock_publisher(&self) -> Result<(), Error> {
        self.file.release(PUBLISHER);
        Ok(())
    }

    pub(crate) fn publisher_is_alive(&self) -> Result<bool, Error> {
        Ok(self.file.is_held(PUBLISHER))
    }

    pub(crate) fn lock_slot(&self, slot: usize) -> Result<bool, Error> {
        Ok(self.file.acquire(slot))
    }

    pub(crate) fn unlock_slot(&self, slot: usize) -> Result<(), Error> {
        self.file.release(slot);
        Ok(())
    }

    pub(crate) fn slot_is_alive(&self, slot: usize) -> Result<bool, Error> {
        Ok(self.file.is_held(slot))
    }
}

impl OpenFile {
    fn of(shared: Arc<Shared>) -> Self {
        Self { shared, held: Bits::new(0) }
    }

    /// Acquire pairs with the release of the lock. No more: the models do not rely on other orderings of the
    /// kernel.
    fn acquire(&self, lock: usize) -> bool {
        if self.held.load(Relaxed) >> lock & 1 == 1 {
            return true;
        }
        // Only a success stores: loom does not know the place of the old value in the order of stores.
        let free = self.shared.locks[lock].compare_exchange(0, 1, Ordering::Acquire, Relaxed).is_ok();
        self.held.fetch_or(u64::from(free) << lock, Relaxed);
        free
    }

    fn release(&self, lock: usize) {
        self.held.fetch_and(!(1 << lock), Relaxed);
        self.shared.locks[lock].store(0, Ordering::Release);
    }

    fn is_held(&self, lock: usize) -> bool {
        self.shared.locks[lock].load(Relaxed) == 1
    }
}

impl Drop for OpenFile {
    /// The kernel releases the locks, whatever ended their holder.
    fn drop(&mut self) {
        for lock in 0..=SLOTS {
            if self.held.load(Relaxed) >> lock & 1 == 1 {
                self.release(lock);
            }
        }
    }
}

pub(crate) fn unlink(_: &Path) -> Result<(), Error> {
    Ok(())
}
