//! The thread that looks at passwords and tokens, one at a time, and reads the rules anew when it is told to.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use tapeline_hub::access::CheckNumber;
use tapeline_hub::{Check, Verdict};

use super::secrets::look_at;
use super::{AccessConfig, Reload};
use crate::error::Context;

/// What the thread is to do.
enum Job {
    Check(Check),
    ReadAgain(Arc<dyn Reload>),
}

/// What it did.
pub(crate) enum Done {
    Checked(CheckNumber, Verdict),
    /// The rules; nothing where something is wrong with them, which has been said.
    ReadAgain(Option<AccessConfig>),
}

/// The thread, as seen by a hub that never waits for it.
#[derive(Debug)]
pub(crate) struct Worker {
    jobs: SyncSender<Job>,
    done: Receiver<Done>,
    is_busy: bool,
}

/// How much the thread stands back behind those that carry data, as `nice` counts it.
const NICE: i32 = 10;
/// For the last job, when there is to be no other.
const LAST_JOB: Duration = Duration::from_secs(1);

impl Worker {
    /// Makes the thread, which ends when this is dropped. To be called by a thread that is pinned to no core: this one
    /// inherits that.
    pub(crate) fn start() -> crate::Result<Self> {
        // One job at a time: what waits does so in the hub, where addresses take turns.
        let (jobs, todo) = sync_channel::<Job>(1);
        let (tell, done) = sync_channel(1);
        std::thread::Builder::new()
            .name("passwords".to_owned())
            .spawn(move || {
                // Of this thread alone. Where it is not granted, the hub's core is shared as the kernel sees fit.
                let _ = rustix::process::nice(NICE);
                for job in todo {
                    let done = match job {
                        Job::Check(check) => Done::Checked(check.number, look_at(&check.proof)),
                        Job::ReadAgain(reload) => Done::ReadAgain(reload.read()),
                    };
                    if tell.send(done).is_err() {
                        return;
                    }
                }
            })
            .context("cannot start the thread that checks passwords")?;
        Ok(Self { jobs, done, is_busy: false })
    }

    /// What it did since this was asked last.
    ///
    /// # Errors
    /// The thread has ended: nobody can log in any more.
    pub(crate) fn done(&mut self) -> crate::Result<Option<Done>> {
        match self.done.try_recv() {
            Ok(done) => {
                self.is_busy = false;
                Ok(Some(done))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => {
                crate::error::bail!("the thread that checks passwords has ended")
            }
        }
    }

    /// Ends it: what it is at, if that comes within a moment.
    pub(crate) fn end(self) -> Option<Done> {
        drop(self.jobs);
        if self.is_busy { self.done.recv_timeout(LAST_JOB).ok() } else { None }
    }

    /// Whether it has something to do already.
    pub(crate) const fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Gives it something to look at. Only when it is not busy.
    pub(crate) fn check(&mut self, check: Check) {
        self.begin(Job::Check(check));
    }

    /// Has it read the rules again. Only when it is not busy.
    pub(crate) fn read_again(&mut self, reload: Arc<dyn Reload>) {
        self.begin(Job::ReadAgain(reload));
    }

    fn begin(&mut self, job: Job) {
        // There is room for one. A thread that has ended is found out by `done`.
        self.is_busy = self.jobs.try_send(job).is_ok();
    }
}
