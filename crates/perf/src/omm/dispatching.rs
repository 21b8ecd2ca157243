//! API dispatch, as EMA has it: a second thread takes what comes on a thread's connections, while that thread asks or sends. What
//! both need is under a lock, which each holds for a turn. With user dispatch there is neither.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::{pin, unpin};
use tapeline_wire::rssl::{Reactor, Readiness};

/// The longest wait between two looks at whether to end.
const TURN: Duration = Duration::from_millis(100);

/// A tool's thread, in the two halves that dispatching divides.
pub(super) trait Dispatched: Send {
    /// What both halves send on and receive from.
    fn reactor(&mut self) -> &mut Reactor;

    /// Takes what has come: whether there is more to do for the other half now.
    ///
    /// # Errors
    /// What ends the thread.
    fn take(&mut self) -> anyhow::Result<bool>;

    /// Does what is due: how long until there is more, or `None` when it is over.
    ///
    /// # Errors
    /// What ends the thread.
    fn perform(&mut self) -> anyhow::Result<Option<Duration>>;
}

/// What both threads need.
struct Shared<'a, D> {
    both: Mutex<&'a mut D>,
    /// The performing thread waits for the lock: it is let in before more is taken. Under a flood it would never be, since who
    /// gives a lock back is the first to have it again.
    is_wanted: AtomicBool,
    is_over: AtomicBool,
}

/// A thread's whole work, with a further one, of this number, on this core or on any.
///
/// # Errors
/// What either half came to, or a machine that refuses a thread.
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
        // A machine that refuses has it end a turn later.
        let _ = end.wake();
        performed.and(joined(dispatcher))
    })
}

/// What became of the thread: its panic is this one's.
fn joined(dispatcher: ScopedJoinHandle<'_, anyhow::Result<()>>) -> anyhow::Result<()> {
    dispatcher.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl<D: Dispatched> Shared<'_, D> {
    /// The further thread's work.
    fn dispatch(&self, lookout: &mut Readiness, performer: &Thread) -> anyhow::Result<()> {
        let mut wait = Duration::ZERO;
        // Relaxed: both flags publish nothing but themselves, and what is shared is under the lock.
        while lookout.wait(Some(wait))? && !self.is_over.load(Ordering::Relaxed) {
            while self.is_wanted.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // The other thread panicked, and says so.
            let Ok(mut both) = self.both.lock() else { break };
            both.reactor().wait(Duration::ZERO)?;
            let moves_on = both.take()?;
            // What the role owes for what has come goes out now.
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

    /// The thread's own work.
    fn perform(&self) -> anyhow::Result<()> {
        while !self.is_over.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
            // The other thread panicked, and is joined.
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
