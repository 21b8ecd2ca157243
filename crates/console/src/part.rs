//! The process tree of a measurement: each part is this program, started as a child that cannot outlive its
//! parent.

use std::io::BufReader;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use serde::de::DeserializeOwned;
use tapeline_measure::{Spent, Usage, monotonic_ns};

use crate::stop::Stop;

/// Names the parent for [`end_with_parent`].
const PARENT: &str = "TAPELINE_PARENT";

/// How often a part is checked during a wait for it.
const LOOK: Duration = Duration::from_millis(50);
/// How long a part may take to end after it was asked to.
const END_LIMIT_NS: u64 = 3_000_000_000;

/// Makes this process end when its parent ends, however that ends, if the parent started it as a part.
pub fn end_with_parent() {
    let Some(parent) = std::env::var(PARENT).ok().and_then(|pid| pid.parse::<i32>().ok()) else { return };
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    // The parent may have died before the line above: then no signal will be sent.
    if rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent) {
        std::process::exit(1);
    }
}

/// Returns the file of this process's program: also after an upgrade has replaced it, or it was removed.
fn this_program() -> PathBuf {
    let named = std::env::current_exe().ok().filter(|file| file.exists());
    named.unwrap_or_else(|| "/proc/self/exe".into())
}

/// One running part.
#[derive(Debug)]
pub struct Part {
    role: String,
    child: Child,
    said: Receiver<serde_json::Result<serde_json::Value>>,
    first: Option<Usage>,
    last: Option<Usage>,
}

impl Part {
    /// Starts `tapeline` with `arguments`. Its standard output is read as JSON; its standard error is this
    /// process's.
    pub fn start(role: &str, arguments: &[String]) -> anyhow::Result<Self> {
        let mut child = Command::new(this_program())
            .args(arguments)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Its own process group: Ctrl-C reaches only the parent, which asks its parts to end in order. A
            // second Ctrl-C in between cannot end a part prematurely.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start the {role}"))?;
        let output = child.stdout.take().context("the child has no standard output")?;
        // Bounded: a part sends few values.
        let (sender, said) = sync_channel(16);
        std::thread::spawn(move || {
            let values = serde_json::Deserializer::from_reader(BufReader::new(output)).into_iter();
            for value in values {
                let failed = value.is_err();
                if sender.send(value).is_err() || failed {
                    return;
                }
            }
        });
        Ok(Self { role: role.to_owned(), child, said, first: None, last: None })
    }

    /// Reads the resource usage of the process so far; the difference of the last and the first reading is its
    /// usage.
    pub fn look(&mut self) {
        if let Ok(usage) = Usage::of(self.child.id()) {
            self.first.get_or_insert(usage);
            // A process that has ended reports no memory.
            if usage.resident_bytes > 0 {
                self.last = Some(usage);
            }
        }
    }

    /// The name of the part, and its resource usage between the first and the last reading.
    pub fn spent(&self) -> (String, Spent) {
        let spent = match (&self.first, &self.last) {
            (Some(first), Some(last)) => last.since(first),
            _ => Spent::default(),
        };
        (self.role.clone(), spent)
    }

    /// The next value that the part sends. `meanwhile` is called about 20 times a second. Ends early if the user
    /// stops the run or the part ends.
    pub fn says<T: DeserializeOwned>(
        &mut self,
        limit: Duration,
        stop: &Stop,
        mut meanwhile: impl FnMut(),
    ) -> anyhow::Result<T> {
        let begun = monotonic_ns();
        let value = loop {
            self.look();
            meanwhile();
            match self.said.recv_timeout(LOOK) {
                Ok(value) => break value,
                Err(_) if stop.requested() => bail!("stopped"),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().context("cannot wait for a child process")?;
                    return Err(self.ended_early(status));
                }
                Err(RecvTimeoutError::Timeout) if u128::from(monotonic_ns() - begun) > limit.as_nanos() => {
                    bail!("the {} sent nothing for {limit:?}", self.role);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        value
            .and_then(serde_json::from_value)
            .with_context(|| format!("cannot read the output of the {}", self.role))
    }

    /// As [`says`](Self::says), for a part that should end by itself: if it has said nothing after `patience`, it is asked
    /// to end.
    pub fn says_at_the_end<T: DeserializeOwned>(
        &mut self,
        patience: Duration,
        limit: Duration,
        stop: &Stop,
    ) -> anyhow::Result<T> {
        let (id, begun, mut is_asked) = (self.child.id(), monotonic_ns(), false);
        self.says(limit, stop, || {
            if !is_asked && u128::from(monotonic_ns() - begun) > patience.as_nanos() {
                is_asked = true;
                ask_to_end(id);
            }
        })
    }

    /// # Errors
    /// The part has ended.
    pub fn still_runs(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait().context("cannot check a child process")? {
            Some(status) => Err(self.ended_early(status)),
            None => Ok(()),
        }
    }

    fn ended_early(&self, status: ExitStatus) -> anyhow::Error {
        anyhow::anyhow!("the {} ended early ({status}); its messages are above", self.role)
    }

    /// Asks the part to end.
    pub fn ask_to_end(&self) {
        ask_to_end(self.child.id());
    }
}

/// Asks a child that was not waited for to end.
fn ask_to_end(id: u32) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

impl Drop for Part {
    /// Leaves no process behind: asks the part to end, waits up to the limit, then kills it.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        self.ask_to_end();
        let begun = monotonic_ns();
        while monotonic_ns() - begun < END_LIMIT_NS {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
