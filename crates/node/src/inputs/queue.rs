//! A queue between two threads: bounded in number and in bytes, because a message may take 16 MiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// An entry of a queue.
pub trait Bytes {
    /// Bytes of memory that the entry takes.
    fn bytes(&self) -> usize;
}

/// Makes entries of types that count their bytes themselves.
macro_rules! bytes {
    ($($entry:ty)*) => {$(
        impl Bytes for $entry {
            fn bytes(&self) -> usize {
                Self::bytes(self)
            }
        }
    )*};
}

pub(crate) use bytes;

/// The sending end.
#[derive(Debug)]
pub struct Entry<T> {
    to: SyncSender<T>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

/// The receiving end.
#[derive(Debug)]
pub struct Exit<T> {
    from: Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

/// Creates a queue of at most `most` entries and `most_bytes` bytes; one entry may exceed the bytes.
pub fn queue<T: Bytes>(most: usize, most_bytes: usize) -> (Entry<T>, Exit<T>) {
    let (to, from) = sync_channel(most);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Entry { to, waiting: Arc::clone(&waiting), most: most_bytes }, Exit { from, waiting })
}

impl<T: Bytes> Entry<T> {
    /// Adds an entry.
    ///
    /// # Errors
    /// The queue is full, or its receiving end was dropped.
    pub fn try_send(&self, what: T) -> Result<(), TrySendError<T>> {
        // Relaxed: a counter only; the channel orders the entries.
        if self.waiting.load(Ordering::Relaxed) >= self.most {
            return Err(TrySendError::Full(what));
        }
        let bytes = what.bytes();
        // Before the entry can be taken, so that the counter never becomes negative.
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.to.try_send(what).inspect_err(|_| {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        })
    }

    /// Sends the entry that was held back, and then those of `next`, while the queue has capacity; the first that it has
    /// no capacity for is held back. Entries for a receiving end that was dropped are dropped too. Returns whether
    /// any was sent.
    pub fn send_all(&self, held: &mut Option<T>, mut next: impl FnMut() -> Option<T>) -> bool {
        let mut has_sent = false;
        while let Some(what) = held.take().or_else(&mut next) {
            match self.try_send(what) {
                Ok(()) => has_sent = true,
                Err(TrySendError::Full(what)) => {
                    *held = Some(what);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        has_sent
    }
}

impl<T: Bytes> Exit<T> {
    /// Whether no more entries will follow: the sending end was dropped.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.waiting) == 1
    }

    /// Takes up to `most` entries. Returns their number and whether no more entries will follow.
    ///
    /// # Errors
    /// The error of `each`, which is not called again.
    pub fn take<E>(&self, most: usize, mut each: impl FnMut(T) -> Result<(), E>) -> Result<(usize, bool), E> {
        // Checked before entries are taken: the last entry sent is then visible.
        let is_over = self.is_over();
        let mut taken = 0;
        for what in self.try_iter().take(most) {
            taken += 1;
            each(what)?;
        }
        Ok((taken, is_over && taken < most))
    }

    /// Takes the entries that are available now.
    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        self.from.try_iter().inspect(|what| {
            self.waiting.fetch_sub(what.bytes(), Ordering::Relaxed);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Bytes for usize {
        fn bytes(&self) -> usize {
            *self
        }
    }

    #[test]
    fn number_and_bytes_are_bounded() {
        let (entry, exit) = queue(3, 100);
        assert_eq!((entry.try_send(60), entry.try_send(60)), (Ok(()), Ok(())));
        assert_eq!(entry.try_send(1), Err(TrySendError::Full(1)));
        assert_eq!(exit.try_iter().take(1).collect::<Vec<usize>>(), [60]);
        assert_eq!((entry.try_send(1), entry.try_send(2)), (Ok(()), Ok(())));
        assert_eq!(entry.try_send(3), Err(TrySendError::Full(3)));
        assert_eq!(exit.try_iter().collect::<Vec<usize>>(), [60, 1, 2]);
        // An entry refused for the limit on the number does not count in bytes.
        assert_eq!(exit.waiting.load(Ordering::Relaxed), 0);
        assert!(!exit.is_over());
        drop(exit);
        assert_eq!(entry.try_send(4), Err(TrySendError::Disconnected(4)));
        let (entry, exit) = queue::<usize>(3, 100);
        drop(entry);
        assert!(exit.is_over());
    }

    /// An end that was noticed before the entries in front of it would be reported too early.
    #[test]
    fn the_end_comes_behind_all_that_was_put_in() {
        let (entry, exit) = queue(5, 100);
        (1..=5).for_each(|what| entry.try_send(what).unwrap());
        let mut came = Vec::new();
        let mut take = |exit: &Exit<usize>, most| {
            exit.take(most, |what| {
                came.push(what);
                if what == 4 { Err("no more of this") } else { Ok(()) }
            })
        };
        assert_eq!(take(&exit, 2), Ok((2, false)));
        drop(entry);
        assert_eq!(take(&exit, 1), Ok((1, false)));
        assert_eq!(take(&exit, 9), Err("no more of this"));
        assert_eq!((take(&exit, 1), take(&exit, 1)), (Ok((1, false)), Ok((0, true))));
        assert_eq!(came, [1, 2, 3, 4, 5]);
        // An entry is sent, and its sender dropped, during the take: the next take notices that end.
        let (entry, exit) = queue::<usize>(5, 100);
        entry.try_send(1).unwrap();
        let mut entry = Some(entry);
        let taken = exit.take(9, |_| {
            drop(entry.take());
            Ok::<_, ()>(())
        });
        assert_eq!((taken, exit.take(9, |_| Ok::<_, ()>(()))), (Ok((1, false)), Ok((0, true))));
    }
}
