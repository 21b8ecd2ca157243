//! Logins and disconnects of a hub: passwords checked on another thread, rules that are read again, and the
//! audit.

use std::sync::Arc;

use tapeline_hub::Hub;
use tapeline_measure::Nanos;

use super::audit::Audit;
use super::connections::ClientConnections;
use crate::access::worker::{Done, Job, Worker};
use crate::access::{AccessConfig, Reload};
use crate::events::Events;

/// The authenticator of a hub. It never blocks.
#[derive(Debug)]
pub(super) struct Authenticator {
    audit: Audit,
    /// Present if access is configured.
    guard: Option<Guard>,
    /// When connections that never opened were last summed up.
    summed: Nanos,
    events: Events,
}

const SUM_NS: i64 = 1_000_000_000;

/// The thread that checks passwords and reads the rules again.
#[derive(Debug)]
struct Guard {
    worker: Worker,
    reload: Arc<dyn Reload>,
    /// A reload was requested and has not started.
    is_to_read: bool,
}

impl Authenticator {
    /// Opens the audit, and starts the threads. Call on a thread that is not pinned.
    pub(super) fn start(config: &AccessConfig, events: &Events) -> crate::Result<Self> {
        let guard = match &config.reload {
            None => None,
            Some(reload) => {
                reload.begin()?;
                Some(Guard { worker: Worker::start()?, reload: Arc::clone(reload), is_to_read: false })
            }
        };
        let audit = Audit::start(&config.audit, events)?;
        Ok(Self { audit, guard, summed: Nanos(0), events: events.clone() })
    }

    /// Passes on checks, verdicts, and lines for the audit.
    ///
    /// # Errors
    /// The thread that checks passwords has ended.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        hub: &mut Hub,
        connections: &mut ClientConnections,
    ) -> crate::Result<()> {
        if let Some(guard) = &mut self.guard {
            guard.turn(now, hub, connections, &self.audit)?;
        }
        while let Some(note) = hub.next_event() {
            self.audit.note(now, &note);
        }
        let is_summed = now.since(self.summed) >= SUM_NS;
        if is_summed {
            self.summed = now;
        }
        connections.say_who_never_opened(now, &self.audit, is_summed);
        Ok(())
    }

    /// Whether a check is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.worker.is_busy)
    }

    /// The hub has ended: writes its last lines to the audit.
    pub(super) fn end(mut self, now: Nanos, hub: &mut Hub, connections: &mut ClientConnections) {
        connections.say_who_never_opened(now, &self.audit, true);
        while let Some(note) = hub.next_event() {
            self.audit.note(now, &note);
        }
        // A reload reported on standard error is in the audit too.
        if let Some(Done::ReadAgain(read)) = self.guard.take().and_then(|guard| guard.worker.end()) {
            self.audit.read_again(now, read.is_some());
        }
        self.audit.end();
        self.events.end(now);
    }
}

impl Guard {
    fn turn(
        &mut self,
        now: Nanos,
        hub: &mut Hub,
        connections: &mut ClientConnections,
        audit: &Audit,
    ) -> crate::Result<()> {
        if self.reload.is_requested() {
            audit.reopen();
            self.is_to_read = true;
        }
        match self.worker.done()? {
            None => {}
            Some(Done::Checked(number, verdict)) => {
                hub.checked(now, number, verdict, connections);
                connections.close_those_over(hub, now);
            }
            Some(Done::ReadAgain(read)) => {
                audit.read_again(now, read.is_some());
                if let Some(config) = read {
                    hub.set_access(config.access);
                }
            }
        }
        if self.worker.is_busy {
            return Ok(());
        }
        if std::mem::take(&mut self.is_to_read) {
            self.worker.begin(Job::ReadAgain(Arc::clone(&self.reload)));
        } else if let Some(check) = hub.next_check() {
            self.worker.begin(Job::Check(check));
        }
        Ok(())
    }
}
