//! One run of one cell: started as separate processes, and stored as a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapeline_console::part::Part;
use tapeline_console::stop::Stop;
use tapeline_measure::Nanos;

use super::plan::{Cell, Reading, SweepPlan};

/// Time limit beyond the measured time: a slow receiver reads a full ring of messages before and after.
const SLACK: Duration = Duration::from_secs(60);

/// The summaries of the processes of one run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) cell: Cell,
    pub(super) round: u32,
    /// Start time, in ns since 1970 UTC.
    started_ns: u64,
    /// Whether processes had to share a core: the run then measured the scheduler.
    pub(super) shared_cores: bool,
    /// The summary of `ring pub`.
    pub(super) publisher: Value,
    /// The summaries of `ring sub`.
    pub(super) subscribers: Vec<Value>,
}

impl Record {
    /// The path of the record of a cell's run in a round.
    fn path(folder: &Path, cell: &Cell, round: u32) -> PathBuf {
        folder.join("cells").join(cell.name()).join(format!("run-{round}.json"))
    }

    /// The record of a finished run; `None` if there is none, or it belongs to another cell or is incomplete.
    pub(super) fn read(folder: &Path, cell: &Cell, round: u32) -> Option<Self> {
        let text = fs::read(Self::path(folder, cell, round)).ok()?;
        let record: Self = serde_json::from_slice(&text).ok()?;
        (record.cell == *cell && record.round == round).then_some(record)
    }

    /// Writes the record completely or not at all: a sweep can be killed at any moment.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let path = Self::path(folder, &self.cell, self.round);
        let text = tapeline_console::output::json(self)?;
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(folder))?;
            let unfinished = path.with_extension("unfinished");
            fs::write(&unfinished, text + "\n")?;
            fs::rename(&unfinished, &path)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Runs a cell once.
    pub(super) fn run(
        plan: &SweepPlan,
        cell: &Cell,
        round: u32,
        now: Nanos,
        stop: &Stop,
    ) -> anyhow::Result<Self> {
        let places = Places::new(&plan.cpus, cell.subscribers);
        let ring = format!("sweep-{}-{round}", std::process::id());
        let limit = plan.per_run() + SLACK;
        let mut publisher = Part::start("publisher", &publisher(plan, cell, &ring, &places))?;
        let mut subscribers = (0..cell.subscribers)
            .map(|number| Part::start("subscriber", &subscriber(cell, &ring, number, &places)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let sent = publisher.says(limit, stop, || {})?;
        let read = subscribers
            .iter_mut()
            .map(|subscriber| subscriber.says(limit, stop, || {}))
            .collect::<anyhow::Result<Vec<Value>>>()?;
        Ok(Self {
            cell: cell.clone(),
            round,
            started_ns: now.0,
            shared_cores: places.shared,
            publisher: sent,
            subscribers: read,
        })
    }
}

/// The core of each process.
struct Places {
    publisher: usize,
    subscribers: Vec<usize>,
    /// Whether any processes share a core, and whether the publisher does.
    shared: bool,
    publisher_shares: bool,
}

impl Places {
    /// The first core is for the publisher; the subscribers take the others in turn.
    fn new(cpus: &[usize], subscribers: usize) -> Self {
        let (publisher, others) = match cpus {
            [only] => (*only, cpus),
            [first, others @ ..] => (*first, others),
            [] => (0, &[][..]),
        };
        let subscribers: Vec<usize> = others.iter().cycle().take(subscribers).copied().collect();
        let shared = subscribers.len() + 1 > cpus.len();
        Self { publisher, subscribers, shared, publisher_shares: cpus.len() < 2 }
    }
}

/// A process that shares a core yields it between polls; a process with a core of its own spins.
fn wait(shares: bool) -> &'static str {
    if shares { "yield" } else { "spin" }
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

fn publisher(plan: &SweepPlan, cell: &Cell, ring: &str, places: &Places) -> Vec<String> {
    let mut line = words(["ring", "pub", "--name", ring, "--format", "json", "--log-level", "error"]);
    for (option, value) in [
        ("--framing", cell.framing.word()),
        ("--message-size", cell.message_size.to_string()),
        ("--queue-size", cell.queue_size.to_string()),
        ("--rate", cell.rate_hz.to_string()),
        ("--seconds", format!("{}us", plan.per_run().as_micros())),
        ("--warmup", cell.warm_up().to_string()),
        ("--subscribers", cell.subscribers.to_string()),
        ("--spin", cell.sender_spin.to_string()),
        ("--cpu", places.publisher.to_string()),
        ("--wait", wait(places.publisher_shares).to_owned()),
    ] {
        line.extend([option.to_owned(), value]);
    }
    if cell.reading == Reading::Count {
        line.push("--no-stamps".to_owned());
    }
    line
}

fn subscriber(cell: &Cell, ring: &str, number: usize, places: &Places) -> Vec<String> {
    let mut line = words(["ring", "sub", "--name", ring, "--format", "json", "--log-level", "error"]);
    line.extend(words(["--wait-for-ring", "30s", "--wait", wait(places.shared)]));
    line.extend(["--spin".to_owned(), cell.spin.to_string()]);
    if let Some(core) = places.subscribers.get(number) {
        line.extend(["--cpu".to_owned(), core.to_string()]);
    }
    if cell.reading == Reading::Count {
        line.extend(words(["--fast", "--copy"]));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_publisher_has_a_core_of_its_own_as_long_as_there_are_two() {
        let places = |cpus: &[usize], subscribers| {
            let Places { publisher, subscribers, shared, .. } = Places::new(cpus, subscribers);
            (publisher, subscribers, shared)
        };
        assert_eq!(places(&[2, 5], 1), (2, vec![5], false));
        assert_eq!(places(&[2, 5], 3), (2, vec![5, 5, 5], true));
        assert_eq!(places(&[0, 1, 2, 3], 3), (0, vec![1, 2, 3], false));
        assert_eq!(places(&[4], 1), (4, vec![4], true));
    }
}
