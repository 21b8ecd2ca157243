//! A thread that reads the plant's ring from its first tick to its end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_ring::{Name, Start, Subscriber, SubscriberId};

use crate::error::Context;
use crate::events::Events;

/// How long a reader that nobody waits for leaves the ring alone after it has taken a few ticks.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);
/// More ticks than these at once are a burst.
const FEW: usize = 64;
/// A smaller ring could be full after a pause.
const PAUSED_RING: usize = 1 << 20;

/// Whether a reader that nobody waits for may pause after it has taken so many ticks. A reader that sleeps on the ring for each tick costs the publisher
/// a system call and an interrupt of the other cores for each.
pub(crate) fn may_pause(subscriber: &Subscriber, taken: usize) -> bool {
    (1..=FEW).contains(&taken) && subscriber.capacity() >= PAUSED_RING
}

/// A reader on its thread, with its result.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    name: &'static str,
    /// Sends the ring's name to the thread; if dropped without a message, the thread ends.
    ring: Option<SyncSender<Name>>,
    joined: Receiver<SubscriberId>,
    pulse: Pulse,
    /// `None` once its result was taken.
    thread: Option<JoinHandle<crate::Result<R>>>,
}

/// The state of a reader's thread, for the counters.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Weak<Signs>);

impl Pulse {
    /// Returns the time of the last turn and the number of missed ticks; `None` once the thread has ended.
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
    pub(crate) missing: AtomicU64,
}

impl<R: Default + Send + 'static> Reader<R> {
    /// Starts the thread, which waits for the ring. Call before this thread is pinned: affinity is inherited.
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
                    let hint = error.hint().map(str::to_owned);
                    events.error(format_args!("{name} has ended early: {error:#}"), hint);
                }
                ended
            })
            .with_context(|| format!("cannot start the thread of {name}"))?;
        Ok(Self { name, ring: Some(ring), joined, pulse, thread: Some(thread) })
    }

    /// The ring exists: returns the reader's place on it, when the thread reads it and misses nothing.
    pub(crate) fn join(&mut self, ring: &Name) -> crate::Result<SubscriberId> {
        if self.ring.take().is_some_and(|to| to.send(ring.clone()).is_ok())
            && let Ok(seat) = self.joined.recv()
        {
            return Ok(seat);
        }
        self.result()?;
        crate::error::bail!("{} has ended before it began", self.name)
    }

    /// Returns access to the state of the thread.
    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// The ring has ended: waits until the reader has ended.
    pub(crate) fn end(mut self) -> crate::Result<R> {
        self.result()
    }

    fn result(&mut self) -> crate::Result<R> {
        self.ring = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(read)) => read.with_context(|| format!("{} has ended early", self.name)),
            Some(Err(_)) => crate::error::bail!("the thread of {} has panicked", self.name),
            None => crate::error::bail!("{} has ended", self.name),
        }
    }
}
