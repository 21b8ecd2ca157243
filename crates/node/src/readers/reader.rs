//! A thread that reads the plant's ring from its first tick to its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use tapeline_measure::Nanos;
use tapeline_ring::{Name, Start, Subscriber, SubscriberId};

use crate::error::Context;
use crate::events::Events;

/// A reader on its thread, with its result.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    name: &'static str,
    /// Sends the ring's name to the thread; if dropped without a message, the thread ends.
    ring: SyncSender<Name>,
    joined: Receiver<SubscriberId>,
    pulse: Pulse,
    thread: JoinHandle<crate::Result<R>>,
}

/// The state of a reader's thread, for the counters.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Weak<Signs>);

impl Pulse {
    /// Returns the time of the thread's last turn and its number of missed ticks; `None` once it has ended or
    /// panicked.
    pub(crate) fn look(&self) -> Option<(Nanos, u64)> {
        let signs = self.0.upgrade()?;
        Some((Nanos(signs.turned.load(Ordering::Relaxed)), signs.missing.load(Ordering::Relaxed)))
    }
}

/// Signs of life of a reader's thread; dropped with the thread, however it ends.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    /// Time of the last turn, ns since 1970 UTC.
    pub(crate) turned: AtomicU64,
    /// Ticks missed.
    pub(crate) missing: AtomicU64,
}

impl<R: Default + Send + 'static> Reader<R> {
    /// Starts the thread, which waits for the ring. Call before this thread is pinned: a new thread inherits
    /// its CPU affinity.
    pub(crate) fn start(
        name: &'static str,
        events: &Events,
        read: impl FnOnce(Name, Subscriber, Arc<Signs>) -> crate::Result<R> + Send + 'static,
    ) -> crate::Result<Self> {
        let (ring, which) = sync_channel(1);
        let (tell, joined) = sync_channel(1);
        let signs = Arc::new(Signs::default());
        let events = events.clone();
        let pulse = Pulse(Arc::downgrade(&signs));
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let Ok(ring) = which.recv() else { return Ok(R::default()) };
                let subscriber = Subscriber::join_as(&ring, Start::Newest, name)
                    .with_context(|| format!("{name} cannot join the plant's ring"))?;
                let _ = tell.send(subscriber.seat());
                let ended = read(ring, subscriber, signs);
                if let Err(error) = &ended {
                    // The plant continues without this reader; a report at the plant's end would be too late.
                    events.warning(format_args!("{name} has ended early: {error:#}"));
                }
                ended
            })
            .with_context(|| format!("cannot start the thread of {name}"))?;
        Ok(Self { name, ring, joined, pulse, thread })
    }

    /// The ring exists: returns when the thread reads it, and misses nothing from here on; with the reader's
    /// place on the ring.
    pub(crate) fn join(self, ring: &Name) -> crate::Result<(Self, SubscriberId)> {
        if self.ring.send(ring.clone()).is_ok()
            && let Ok(seat) = self.joined.recv()
        {
            return Ok((self, seat));
        }
        let name = self.name;
        self.end()?;
        crate::error::bail!("{name} has ended before it began")
    }

    /// Returns access to the state of the thread.
    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// The ring has ended: waits until the reader has ended.
    pub(crate) fn end(self) -> crate::Result<R> {
        drop(self.ring);
        match self.thread.join() {
            Ok(read) => read.with_context(|| format!("{} has ended early", self.name)),
            Err(_) => crate::error::bail!("the thread of {} has panicked", self.name),
        }
    }
}
