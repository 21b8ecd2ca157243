//! API dispatch, as EMA has it: a second thread takes what comes on a connection, while the connection's own asks for items,
//! posts and sends. What both need is under a lock, which a thread holds for a turn. With user dispatch there is neither.

use std::panic::resume_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle, Thread};
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::{pin, unpin};
use tapeline_wire::rssl::Lookout;

use super::super::taking::Taking;
use super::{Stage, TURN, Working, now};

/// What both threads need.
struct Shared<'a> {
    both: Mutex<(&'a mut Working, &'a mut Taking)>,
    /// The connection's thread waits for the lock: it is let in before more is taken. Under a flood it would never be, since who
    /// gives a lock back is the first to have it again.
    is_wanted: AtomicBool,
    is_over: AtomicBool,
}

/// A connection's whole work, with a further thread on this core, or on any.
pub(super) fn run(working: &mut Working, taking: &mut Taking, core: Option<usize>) -> anyhow::Result<()> {
    let (mut lookout, end) = working.reactor.lookout()?;
    let name = format!("dispatch-{}", working.thread + 1);
    let shared = Shared {
        both: Mutex::new((&mut *working, &mut *taking)),
        is_wanted: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
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
        let dispatcher = thread::Builder::new().name(name).spawn_scoped(scope, dispatch)?;
        let performed = shared.perform();
        shared.is_over.store(true, Ordering::Relaxed);
        // A machine that refuses has it end a turn later.
        let _ = end.wake();
        performed.and(joined(dispatcher))
    })?;
    working.log_out(taking)
}

/// What became of the thread: its panic is this one's.
fn joined(dispatcher: ScopedJoinHandle<'_, anyhow::Result<()>>) -> anyhow::Result<()> {
    dispatcher.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl Shared<'_> {
    /// The further thread's work.
    fn dispatch(&self, lookout: &mut Lookout, performer: &Thread) -> anyhow::Result<()> {
        let mut wait = Duration::ZERO;
        // Relaxed: both flags publish nothing but themselves, and what is shared is under the lock.
        while lookout.wait(Some(wait))? && !self.is_over.load(Ordering::Relaxed) {
            while self.is_wanted.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            // The other thread panicked, and says so.
            let Ok(mut both) = self.both.lock() else { break };
            let (working, taking) = &mut *both;
            working.reactor.wait(Duration::ZERO)?;
            let now = now();
            working.receive(now, taking)?;
            working.disconnect(taking);
            working.connect(now, taking)?;
            // What the role owes for what has come goes out now.
            working.tick_roles(now, taking);
            working.reactor.flush();
            wait = if working.reactor.is_idle() { TURN } else { Duration::ZERO };
            let moves_on = match working.stage {
                Stage::Waiting => working.servers.iter().any(|server| server.consumer.is_ready()),
                Stage::Startup => taking.has_all(),
                Stage::Steady(_) => false,
                Stage::Over => true,
            };
            drop(both);
            if moves_on {
                performer.unpark();
            }
        }
        Ok(())
    }

    /// The connection's own thread's work.
    fn perform(&self) -> anyhow::Result<()> {
        while !self.is_over.load(Ordering::Relaxed) {
            self.is_wanted.store(true, Ordering::Relaxed);
            // The other thread panicked, and is joined.
            let Ok(mut both) = self.both.lock() else { break };
            self.is_wanted.store(false, Ordering::Relaxed);
            let (working, taking) = &mut *both;
            if working.is_over(taking) {
                break;
            }
            let now = now();
            working.look_for_service(now, taking);
            working.ask(now, taking)?;
            let next = working.tick(now, taking)?;
            working.say_standing(taking);
            working.reactor.flush();
            working.count_requests(taking);
            taking.say_unknown();
            taking.link.settle();
            let wait = working.wait(next);
            drop(both);
            thread::park_timeout(wait);
        }
        Ok(())
    }
}
