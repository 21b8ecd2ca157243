//! What waits between two threads: bounded in number, and in bytes, for a message may take 16 MiB.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

/// Something that waits.
pub(super) trait Bytes {
    /// Bytes that it takes.
    fn bytes(&self) -> usize;
}

/// The one end where things go in.
#[derive(Debug)]
pub(super) struct Entry<T> {
    to: SyncSender<T>,
    waiting: Arc<AtomicUsize>,
    most: usize,
}

/// Where they come out.
#[derive(Debug)]
pub(super) struct Exit<T> {
    from: Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

/// A queue of so many things, and of `most_bytes` but for the one that goes beyond.
pub(super) fn queue<T: Bytes>(most: usize, most_bytes: usize) -> (Entry<T>, Exit<T>) {
    let (to, from) = sync_channel(most);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Entry { to, waiting: Arc::clone(&waiting), most: most_bytes }, Exit { from, waiting })
}

impl<T: Bytes> Entry<T> {
    /// Puts something in.
    ///
    /// # Errors
    /// The queue is full, or its other end is gone.
    pub(super) fn try_send(&self, what: T) -> Result<(), TrySendError<T>> {
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
    pub(super) fn is_over(&self) -> bool {
        Arc::strong_count(&self.waiting) == 1
    }

    /// What is there now.
    pub(super) fn try_iter(&self) -> impl Iterator<Item = T> {
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
}
