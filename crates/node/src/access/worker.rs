//! The thread that checks passwords and tokens, one at a time, and reads the rules again on request.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use tapeline_hub::access::CheckNumber;
use tapeline_hub::{Check, Verdict};

use super::secrets::verify;
use super::{AccessConfig, Reload};
use crate::error::Context;

pub(crate) enum Job {
    Check(Check),
    ReadAgain(Arc<dyn Reload>),
}

pub(crate) enum Done {
    Checked(CheckNumber, Verdict),
    /// The new rules; `None` if they are faulty, which has been reported.
    ReadAgain(Option<AccessConfig>),
}

/// The thread, from the side of a hub that never waits for it.
#[derive(Debug)]
pub(crate) struct Worker {
    jobs: SyncSender<Job>,
    done: Receiver<Done>,
    /// A job is in progress.
    pub(crate) is_busy: bool,
}

/// The thread's `nice` value: threads that carry data go first.
const NICE: i32 = 10;
/// How long to wait for the last job at the end.
const LAST_JOB: Duration = Duration::from_secs(1);

impl Worker {
    /// Starts the thread, which ends when this is dropped. Call before this thread is pinned.
    pub(crate) fn start() -> crate::Result<Self> {
        // One job at a time: further checks wait in the hub, where addresses take turns.
        let (jobs, todo) = sync_channel::<Job>(1);
        let (tell, done) = sync_channel(1);
        std::thread::Builder::new()
            .name("passwords".to_owned())
            .spawn(move || {
                // Applies to this thread only. If it is refused, the kernel shares the hub's core as usual.
                let _ = rustix::process::nice(NICE);
                for job in todo {
                    let done = match job {
                        Job::Check(check) => Done::Checked(check.number, verify(&check.proof)),
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

    /// Returns the job finished since the last call, if any.
    ///
    /// # Errors
    /// The thread has ended: no client can log in any more.
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

    /// Ends the thread. Returns the result of the current job, if it arrives in time.
    pub(crate) fn end(self) -> Option<Done> {
        drop(self.jobs);
        if self.is_busy { self.done.recv_timeout(LAST_JOB).ok() } else { None }
    }

    /// Starts a job. Call only if none is in progress.
    pub(crate) fn begin(&mut self, job: Job) {
        // There is capacity for one job. `done` reports a thread that has ended.
        self.is_busy = self.jobs.try_send(job).is_ok();
    }
}
