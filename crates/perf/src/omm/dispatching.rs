//! API dispatch, as in EMA: a second thread receives on a thread's connections, while the thread itself sends. Their
//! shared state is under a lock, which each holds for a turn. User dispatch has neither the thread nor the lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::{pin, unpin};
use tapeline_wire::rssl::{Reactor, Readiness};

use crate::jitter::joined;

/// Maximum time between two checks for the end.
const TURN: Duration = Duration::from_millis(100);

/// A tool's thread, as the two halves that API dispatch separates.
pub(super) trait Dispatched: Send {
    /// The reactor on which both halves send and receive.
    fn reactor(&mut self) -> &mut Reactor;

    /// Processes received messages; returns whether the other half has more to do now. An error ends the thread.
    fn take(&mut self) -> anyhow::Result<bool>;

    /// Performs due work; returns the time until the next, or `None` when the run is over. An error ends the thread.
    fn perform(&mut self) -> anyhow::Result<Option<Duration>>;
}

/// State that both threads share.
struct Shared<'a, D> {
    both: Mutex<&'a mut D>,
    /// The performing thread waits for the lock: the dispatching thread yields to it before receiving more. Otherwise
    /// it would starve under heavy load, because the thread that releases a lock is the first to acquire it again.
    is_wanted: AtomicBool,
    is_over: AtomicBool,
}

/// Runs a thread's work with an additional dispatching thread of this number, on this core or on any.
pub(super) fn run<D: Dispatched>(both: &mut D, number: usize, core: Option<usize>) -> anyhow::Result<()> {
    let (mut lookout, end) = both.reactor().lookout()?;
    let shared =
        Shared { both: Mutex::new(both), is_wanted: AtomicBool::new(false), is_over: AtomicBool::new(false) };
    let performer = thread::current();
    thread::scope(|scope| {
        let dispatch = || {
            let bound =
                core.map_or_else(unpin, pin).context("cannot bind its dispatching thread (--api-threads)");
            let how = bound.and_then(|()| shared.dispatch(&mut lookout, &performer));
            shared.is_over.store(true, Ordering::Relaxed);
            performer.unpark();
            how
        };
        let name = format!("dispatch-{}", number + 1);
        let dispatcher = thread::Builder::new().name(name).spawn_scoped(scope, dispatch)?;
        let performed = shared.perform();
        shared.is_over.store(true, Ordering::Relaxed);
        // If waking fails, the dispatching thread ends one turn later.
        let _ = end.wake();
        performed.and(joined(dispatcher))
    })
}

impl<D: Dispatched> Shared<'_, D> {
    /// The dispatching thread's loop.
    fn dispatch(&self, lookout: &mut Readiness, performer: &Thread) -> anyhow::Result<()> {
        let mut wait = Duration::ZERO;
        // Relaxed: the flags publish no other data, and the shared state is under the lock.
        while lookout.wait(Some(wait))? && !self.is_over.load(Ordering::Relaxed) {
            while self.is_wanted.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // The other thread panicked, and reports it.
            let Ok(mut both) = self.both.lock() else { break };
            both.reactor().wait(Duration::ZERO)?;
            let moves_on = both.take()?;
            // The role's answers to received messages are sent now.
            let reactor = both.reactor();
            reactor.flush();
            wait = if reactor.is_idle() { TURN } else { Duration::ZERO };
            drop(both);
            if moves_on {
                performer.unpark();
            }
        }
        Ok(())
    }

    /// The performing thread's loop.
    fn perform(&self) -> anyhow::Result<()> {
        while !self.is_over.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
            // The other thread panicked, and will be joined.
            let Ok(mut both) = self.both.lock() else { break };
            self.is_wanted.store(false, Ordering::Relaxed);
            let Some(wait) = both.perform()? else { break };
            both.reactor().flush();
            drop(both);
            thread::park_timeout(wait);
        }
        Ok(())
    }
}
