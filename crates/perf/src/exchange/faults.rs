//! Scripted faults on outgoing datagrams: options, the lines that they act on, and the ledger of applied faults.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tapeline_console::failure::Hinted;
use tapeline_console::paths::{self, FilePath};
use tapeline_feed::faults::{Did, Entry, Fault, FaultyLine, Outlet, Script};
use tapeline_feed::line::Line;
use tapeline_measure::{Nanos, figures};

use super::lines::Staged;

/// The options, the same for every command that sends a feed.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct FaultArgs {
    /// Fault to inject, such as `loss=1%,burst=5,line=A`, `reorder=2%`, `delay=200us,line=B`, `reset=4000` (a sequence reset to 1
    /// at that message) or `roll=8000` (a new session at that message); can be given several times
    #[arg(long = "fault", value_name = "FAULT")]
    faults: Vec<Fault>,
    /// File of faults, one a line; `#` starts a comment
    #[arg(long = "faults", value_name = "FILE")]
    fault_file: Option<FilePath>,
    /// Seed of the faults: the same seed gives the same faults
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    fault_seed: u64,
    /// Log each fault with its datagram to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    fault_log: Option<FilePath>,
}

impl FaultArgs {
    /// The faults from the file, then those from the options.
    fn script(&self) -> anyhow::Result<Script> {
        let mut script = match &self.fault_file {
            None => Script::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read the faults in {}", paths::shown(&path)))?;
                text.parse::<Script>().map_err(|error| {
                    anyhow::anyhow!("{}:{}: {}", paths::shown(&path), error.line, error.problem)
                })?
            }
        };
        for fault in &self.faults {
            if !script.push(*fault) {
                let hint = "every fault is checked for every datagram; combine several of one kind";
                return Err(Hinted::new("more than 64 faults", hint).into());
            }
        }
        Ok(script)
    }
}

/// Applied faults: for each line, the count of each kind.
pub(super) type Done = BTreeMap<char, BTreeMap<&'static str, u64>>;

/// Applies faults to the datagrams of a feed's lines.
#[derive(Debug)]
pub(super) struct Faults {
    lines: Vec<FaultyLine>,
    ledger: Ledger,
}

/// Counts of applied faults by line and label, and the file that logs them.
#[derive(Debug)]
struct Ledger {
    file: Option<BufWriter<File>>,
    failed: std::io::Result<()>,
    counts: Done,
}

/// The output of one line: staged datagrams and ledger entries.
struct Passage<'a> {
    ledger: &'a mut Ledger,
    staged: &'a mut Staged,
}

impl Outlet for Passage<'_> {
    fn leave(&mut self, datagram: &[u8]) {
        self.staged.push(datagram);
    }

    fn note(&mut self, entry: &Entry) {
        let ledger = &mut *self.ledger;
        *ledger.counts.entry(entry.line.letter()).or_default().entry(entry.did.label()).or_default() += 1;
        if let Some(file) = &mut ledger.file
            && ledger.failed.is_ok()
        {
            ledger.failed = writeln!(file, "{}", described(entry));
        }
    }
}

fn described(entry: &Entry) -> serde_json::Value {
    let mut line = json!({ "line": entry.line.letter(), "datagram": entry.datagram });
    if let Some(numbers) = entry.numbers {
        line["session"] = json!(numbers.session.to_string());
        line["sequence"] = json!(numbers.sequence);
        line["messages"] = json!(numbers.messages);
    }
    line["did"] = json!(entry.did.label());
    match &entry.did {
        Did::Duplicated { after } => line["after"] = json!(after),
        Did::Reordered { by } => line["by"] = json!(by),
        Did::Truncated { to } => line["to"] = json!(to),
        Did::Corrupted { bytes } => line["bytes"] = json!(bytes),
        Did::Reset { from } | Did::Rolled { from } => line["from"] = json!(from),
        _ => {}
    }
    line
}

impl Faults {
    /// The requested faults for this number of lines; `None` without faults.
    pub(super) fn of(arguments: &FaultArgs, lines: usize) -> anyhow::Result<Option<Self>> {
        let script = arguments.script()?;
        let lines: Vec<Line> = (0..lines).filter_map(Line::new).collect();
        let nowhere = |fault: &&Fault| fault.line.is_some_and(|line| !lines.contains(&line));
        if let Some(fault) = script.faults().iter().find(nowhere) {
            let what =
                format!("'{fault}' is for a line that does not exist; number of lines: {}", lines.len());
            return Err(Hinted::new(what, "--also GROUP:PORT adds line B").into());
        }
        let create = |path: &FilePath| {
            File::create(path).with_context(|| format!("cannot write the ledger {}", paths::shown(&path)))
        };
        let file = arguments.fault_log.as_ref().map(create).transpose()?.map(BufWriter::new);
        if script.is_empty() {
            return Ok(None);
        }
        let line = |line| FaultyLine::new(&script, arguments.fault_seed, line);
        Ok(Some(Self {
            lines: lines.into_iter().map(line).collect(),
            ledger: Ledger { file, failed: Ok(()), counts: BTreeMap::new() },
        }))
    }

    /// Stages the output of line `number` for a batch.
    pub(super) fn pass(&mut self, number: usize, batch: &Staged, now: Nanos, staged: &mut Staged) {
        let mut passage = Passage { ledger: &mut self.ledger, staged };
        for datagram in batch.iter() {
            self.lines[number].datagram(datagram, now, &mut passage);
        }
    }

    /// Stages the datagrams of line `number` whose delay is over.
    pub(super) fn release(&mut self, number: usize, now: Nanos, staged: &mut Staged) {
        self.lines[number].release(now, &mut Passage { ledger: &mut self.ledger, staged });
    }

    /// Stages the datagrams that line `number` still buffers, since no more follow.
    pub(super) fn finish(&mut self, number: usize, now: Nanos, staged: &mut Staged) {
        self.lines[number].finish(now, &mut Passage { ledger: &mut self.ledger, staged });
    }

    /// Time at which the next delayed datagram is due.
    pub(super) fn next_release(&self) -> Option<Nanos> {
        self.lines.iter().filter_map(FaultyLine::next_release).min()
    }

    /// Writes out the ledger.
    pub(super) fn settle(&mut self) -> anyhow::Result<()> {
        let failed = std::mem::replace(&mut self.ledger.failed, Ok(()));
        let flushed = self.ledger.file.as_mut().map_or(Ok(()), Write::flush);
        failed.and(flushed).context("cannot write the ledger of faults")
    }

    /// Counts of applied faults.
    pub(super) fn done(&self) -> &Done {
        &self.ledger.counts
    }
}

/// Counts of applied faults, for people.
pub(super) fn summary(done: &Done) -> String {
    let lines = done.iter().map(|(line, counts)| {
        let counts: Vec<String> =
            counts.iter().map(|(label, count)| format!("{} {label}", figures::thousands(*count))).collect();
        format!("{line}: {}", counts.join(", "))
    });
    match lines.collect::<Vec<_>>().join("; ") {
        nothing if nothing.is_empty() => "faults: none happened".to_owned(),
        done => format!("faults, in datagrams: {done}"),
    }
}
