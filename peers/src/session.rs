//! The session: every system in turns on the same two cores.
//!
//! All systems answer one question before the next is asked, and begin with another system in each turn, so that what is
//! compared was measured within seconds of each other. A virtual machine's cores move, and with them every figure.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use tapeline_measure::Clock;

use crate::case::{Case, Metric, Received, Regime, Sent};
use crate::stage::{Role, Stage, Word};
use crate::systems::{HIGHEST_PACE_HZ, Place, SYSTEMS, System};

/// Bytes of a message.
pub(crate) const BYTES: [usize; 4] = [32, 100, 500, 1500];
/// Messages a second.
pub(crate) const RATES_HZ: [u64; 4] = [1_000, 250_000, 1_000_000, 10_000_000];
/// Beyond its measured time, what a process may take. Only one that hangs comes near.
const PATIENCE: Duration = Duration::from_secs(15);

/// How much is measured.
#[derive(Clone)]
pub(crate) struct Plan {
    pub(crate) systems: Vec<&'static System>,
    pub(crate) metrics: Vec<Metric>,
    pub(crate) turns: usize,
    pub(crate) warm_up_ms: u64,
    pub(crate) measured_ms: u64,
    /// At 1,000 messages a second, where the usual time gives too few samples.
    pub(crate) slow_ms: u64,
    pub(crate) cores: [usize; 2],
}

/// One measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Figure {
    /// The system's name.
    pub(crate) system: String,
    /// What was measured.
    pub(crate) metric: Metric,
    /// Counted from 0.
    pub(crate) turn: usize,
    /// What came of it, or why nothing did.
    #[serde(flatten)]
    pub(crate) result: Outcome,
}

/// What came of a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Sender and receivers.
    Done {
        /// The sender's account.
        sent: Sent,
        /// Each receiver's account.
        received: Vec<Received>,
    },
    /// The reason.
    Failed(String),
}

impl Plan {
    /// The questions of a turn whose text contains one of `texts`; all where that is empty.
    ///
    /// # Errors
    /// A text that is in none.
    pub(crate) fn chosen_metrics(texts: &[String]) -> anyhow::Result<Vec<Metric>> {
        let mut metrics = Self::all_metrics();
        let is_in = |metric: &Metric, text: &String| metric.to_string().contains(text.as_str());
        if let Some(text) = texts.iter().find(|text| !metrics.iter().any(|metric| is_in(metric, text))) {
            let known: Vec<_> = metrics.iter().map(Metric::to_string).collect();
            bail!("nothing to measure is called {text:?}; there are: {}", known.join("; "));
        }
        metrics.retain(|metric| texts.is_empty() || texts.iter().any(|text| is_in(metric, text)));
        Ok(metrics)
    }

    fn all_metrics() -> Vec<Metric> {
        let mut metrics = vec![Metric::Bounce];
        for regime in [Regime::Contended, Regime::Backlog] {
            metrics.extend(BYTES.map(|bytes| Metric::Throughput { bytes, regime }));
        }
        metrics.extend(RATES_HZ.map(|rate_hz| Metric::Latency { rate_hz }));
        metrics.push(Metric::Latency { rate_hz: HIGHEST_PACE_HZ });
        metrics.extend([2, 3].map(|receivers| Metric::FanOut { receivers }));
        metrics
    }

    /// How many measurements there are.
    pub(crate) fn count(&self) -> usize {
        let answers = |system: &System| self.metrics.iter().filter(|metric| system.answers(**metric)).count();
        self.turns * self.systems.iter().map(|system| answers(system)).sum::<usize>()
    }

    /// Runs all; `each` hears of every figure.
    pub(crate) fn run(&self, clock: &Clock, mut each: impl FnMut(&Figure)) -> Vec<Figure> {
        let mut figures = Vec::new();
        for turn in 0..self.turns {
            for &metric in &self.metrics {
                let mut systems: Vec<_> =
                    self.systems.iter().filter(|system| system.answers(metric)).collect();
                let first = turn % systems.len().max(1);
                systems.rotate_left(first);
                for system in systems {
                    let case = self.case(system, metric, figures.len(), clock);
                    let result = match measure(system, &case) {
                        Ok((sent, received)) => Outcome::Done { sent, received },
                        Err(error) => {
                            sweep(&case);
                            Outcome::Failed(format!("{error:#}"))
                        }
                    };
                    let figure = Figure { system: system.name.to_owned(), metric, turn, result };
                    each(&figure);
                    figures.push(figure);
                }
            }
        }
        figures
    }

    fn case(&self, system: &System, metric: Metric, number: usize, clock: &Clock) -> Case {
        let is_slow = metric == Metric::Latency { rate_hz: RATES_HZ[0] };
        Case {
            system: system.name.to_owned(),
            metric,
            id: format!("peers-{}-{number}", std::process::id()),
            cores: self.cores,
            clock: clock.calibration().to_words(),
            warm_up_ms: self.warm_up_ms,
            measured_ms: if is_slow { self.slow_ms } else { self.measured_ms },
        }
    }
}

/// Removes what processes that were killed have left in shared memory: a folder of Aeron's takes 200 MB.
fn sweep(case: &Case) {
    let path = Path::new("/dev/shm").join(&case.id);
    // Most leave nothing there.
    let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
}

/// All systems of this build that belong to one of `names`, by system or by peer; all where that is empty.
///
/// # Errors
/// A name that is none.
pub(crate) fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static System>> {
    for name in names {
        if !SYSTEMS.iter().any(|system| system.name == name || system.peer == name) {
            let known: Vec<_> = SYSTEMS.iter().map(|system| system.name).collect();
            bail!("no system {name:?} in this build; there are {}", known.join(", "));
        }
    }
    let is_chosen = |system: &&System| {
        names.is_empty() || names.iter().any(|name| system.name == name || system.peer == name)
    };
    Ok(SYSTEMS.iter().filter(is_chosen).collect())
}

/// Runs one case from the first process to the last.
///
/// # Errors
/// What a process says went wrong, or that one hangs.
pub(crate) fn measure(system: &System, case: &Case) -> anyhow::Result<(Sent, Vec<Received>)> {
    let mut parts = Vec::new();
    let mut start = |role| -> anyhow::Result<()> {
        let part = Part::start(case, role)?;
        match part.hear()? {
            Word::Ready => parts.push(part),
            other => bail!("not ready, but {other:?}"),
        }
        Ok(())
    };
    match system.place {
        Place::Threads => start(Role::Pair)?,
        Place::Processes | Place::ProcessesAndDriver => {
            if system.place == Place::ProcessesAndDriver {
                start(Role::Driver)?;
            }
            start(Role::Sender)?;
            for _ in 0..case.metric.receivers() {
                start(Role::Receiver)?;
            }
        }
    }
    // Receivers first; the sender needs them.
    for part in parts.iter_mut().rev() {
        part.go()?;
    }
    let (mut sent, mut received): (Option<Sent>, Vec<Received>) = (None, Vec::new());
    for part in &parts {
        let words = match part.role {
            Role::Driver => 0,
            Role::Sender | Role::Receiver => 1,
            Role::Pair => 2,
        };
        for _ in 0..words {
            match part.hear()? {
                Word::Sent(word) => sent = Some(word),
                Word::Received(word) => received.push(word),
                Word::Ready => bail!("ready twice"),
                Word::Failed(_) => bail!("failed twice"),
            }
        }
    }
    // The last to come goes first: the driver outlives its clients.
    while let Some(part) = parts.pop() {
        part.finish();
    }
    let sent = sent.context("no sender")?;
    for one in &mut received {
        if one.seconds > 0.0 {
            one.per_second = sent.measured as f64 / one.seconds;
        }
    }
    Ok((sent, received))
}

/// A started process.
struct Part {
    role: Role,
    child: Child,
    input: Option<ChildStdin>,
    words: Receiver<String>,
    patience: Duration,
}

impl Part {
    fn start(case: &Case, role: Role) -> anyhow::Result<Self> {
        let stage = serde_json::to_string(&Stage { case: case.clone(), role })?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(program)
            .args(["role", &stage])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a process")?;
        let (line, words) = mpsc::channel();
        let out = child.stdout.take().context("no pipe from the process")?;
        thread::spawn(move || {
            for text in BufReader::new(out).lines().map_while(Result::ok) {
                if line.send(text).is_err() {
                    return;
                }
            }
        });
        let patience = PATIENCE + Duration::from_millis(case.warm_up_ms + case.measured_ms);
        Ok(Self { role, input: child.stdin.take(), child, words, patience })
    }

    /// The next word of the process, unless it failed.
    fn hear(&self) -> anyhow::Result<Word> {
        let text = self.words.recv_timeout(self.patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => anyhow::anyhow!("the {:?} does not come to an end", self.role),
            RecvTimeoutError::Disconnected => anyhow::anyhow!("the {:?} died", self.role),
        })?;
        match serde_json::from_str(&text).with_context(|| format!("the {:?} said {text}", self.role))? {
            Word::Failed(why) => bail!("{:?}: {why}", self.role),
            word => Ok(word),
        }
    }

    fn go(&mut self) -> anyhow::Result<()> {
        if self.role == Role::Driver {
            return Ok(());
        }
        self.input.as_mut().context("no pipe to the process")?.write_all(b"go\n").context("the process died")
    }

    /// Lets the process end in order.
    fn finish(mut self) {
        self.input = None;
        // The thread's end of the channel closes with the process's standard output.
        while self.words.recv_timeout(self.patience).is_ok() {}
    }
}

impl Drop for Part {
    /// Whatever happened, nothing runs on. No harm to one that has ended.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
