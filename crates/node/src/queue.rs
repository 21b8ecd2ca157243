//! What waits between two threads: bounded in number, and in bytes, for a message may take 16 MiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Something that waits.
pub trait Bytes {
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
}

/// The one end where things go in.
#[derive(Debug)]
pub struct Entry<T> {
    to: SyncSender<T>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

/// Where they come out.
#[derive(Debug)]
pub struct Exit<T> {
    from: Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

/// A queue of so many things, and of `most_bytes` but for the one that goes beyond.
pub fn queue<T: Bytes>(most: usize, most_bytes: usize) -> (Entry<T>, Exit<T>) {
    let (to, from) = sync_channel(most);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Entry { to, waiting: Arc::clone(&waiting), most: most_bytes }, Exit { from, waiting })
}

impl<T: Bytes> Entry<T> {
    /// Puts something in.
    ///
    /// # Errors
    /// The queue is full, or its other end is gone.
    pub fn try_send(&self, what: T) -> Result<(), TrySendError<T>> {
        // A number and nothing else: the channel orders what goes through it.
        if self.waiting.load(Ordering::Relaxed) >= self.most {
            return Err(TrySendError::Full(what));
        }
        let bytes = what.bytes();
        // Before it can be taken out, so that there is never less than nothing.
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        self.to.try_send(what).inspect_err(|_| {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        })
    }
}

impl<T: Bytes> Exit<T> {
    /// Whether nothing more will be put in: the other end is gone.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.waiting) == 1
    }

    /// Takes what is there, `most` at most: how many, and whether nothing comes behind them any more.
    ///
    /// # Errors
    /// As `each` says, which is then the last.
    pub fn take<E>(&self, most: usize, mut each: impl FnMut(T) -> Result<(), E>) -> Result<(usize, bool), E> {
        // Before anything is taken: what was put in last is seen then.
        let is_over = self.is_over();
        let mut taken = 0;
        for what in self.try_iter().take(most) {
            taken += 1;
            each(what)?;
        }
        Ok((taken, is_over && taken < most))
    }

    /// What is there now.
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
        // What was refused for its number counts for nothing.
        assert_eq!(exit.waiting.load(Ordering::Relaxed), 0);
        assert!(!exit.is_over());
        drop(exit);
        assert_eq!(entry.try_send(4), Err(TrySendError::Disconnected(4)));
        let (entry, exit) = queue::<usize>(3, 100);
        drop(entry);
        assert!(exit.is_over());
    }

    /// An end that was seen before what stands in front of it would be believed too early.
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
        // Put in, and dropped, while it is looked: that end is seen with the next look.
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
