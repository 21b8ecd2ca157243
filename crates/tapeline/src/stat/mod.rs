//! `tapeline stat`: shows running plants from outside.

mod drift;
mod text;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tapeline_console::{FilePath, Format, Hinted, Stop, arguments, output};
use tapeline_node::stat::file::{self, Found};
use tapeline_node::stat::snapshot::Snapshot;
use tapeline_ring::Name;

use crate::plant::reload;

/// Maximum number of rings to list when the named ring has no plant.
const MOST_NAMED: usize = 10;

/// Show running plants: feeds, services, sessions and their queues, latency
#[derive(Debug, Args)]
#[command(after_help = "\
A plant writes its counters once a second; reading them costs the plant nothing. A plant that has written none for 3 s is
shown as silent, without rates. Counters of a plant that died are removed.

Examples:
  tapeline stat                                 every plant of this user
  tapeline stat tapeline --every 1s             repeat until Ctrl-C or until the plant ends
  tapeline stat --format json | jq .hub.sessions
  tapeline stat tapeline --every 10s --format json > day.jsonl
  tapeline stat --drift day.jsonl --svg day.svg     check for drift; exit status 1: growth, 3: losses")]
pub(crate) struct Stat {
    /// Name of the plant's ring, as in its configuration and in `tapeline ring ls` [default: every plant]
    #[arg(value_name = "NAME", value_parser = name)]
    name: Option<Name>,
    /// Repeat at this interval
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    every: Option<Duration>,
    /// Check a file with the output of `--every` and `--format json` for losses, and for growth of memory, descriptors,
    /// threads or latency from the second quarter of the run to the last
    #[arg(long, value_name = "FILE", conflicts_with_all = ["name", "every"])]
    drift: Option<FilePath>,
    /// Plot the figures of --drift to this SVG file
    #[arg(long, value_name = "FILE", requires = "drift")]
    svg: Option<FilePath>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

impl Stat {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(file) = &self.drift {
            return drift::judge(file, self.svg.as_deref(), self.format);
        }
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let mut was_there = false;
        loop {
            let plants = match &self.name {
                Some(name) => look(name)?.into_iter().collect(),
                None => all()?,
            };
            if plants.is_empty() {
                if was_there {
                    anstream::eprintln!("the plant has ended");
                    return Ok(ExitCode::SUCCESS);
                }
                return Err(self.nothing());
            }
            was_there = true;
            self.show(&plants)?;
            match self.every {
                Some(every) if stop.sleep(every) => {}
                _ => return Ok(ExitCode::SUCCESS),
            }
        }
    }

    fn nothing(&self) -> anyhow::Error {
        let lives = |ring: &Name| matches!(file::read(ring), Ok(Found::Live(_)));
        let there: Vec<Name> = file::list().unwrap_or_default().into_iter().filter(lives).collect();
        let names: Vec<&str> = there.iter().take(MOST_NAMED).map(Name::as_str).collect();
        let hint = match names.join(", ") {
            none if none.is_empty() => "`tapeline plant --config FILE` starts one".to_owned(),
            all if there.len() <= MOST_NAMED => format!("plants have these rings: {all}"),
            some => format!("plants have these rings: {some}, and others; `tapeline stat` shows them"),
        };
        let what = match &self.name {
            Some(name) => format!("no running plant publishes ring {name}"),
            None => "no plant runs here".to_owned(),
        };
        Hinted::new(what, hint).into()
    }

    fn show(&self, plants: &[Snapshot]) -> anyhow::Result<()> {
        if self.format == Format::Json {
            return plants.iter().try_for_each(|plant| match self.every {
                None => output::print_json(plant),
                Some(_) => output::print_json_line(plant),
            });
        }
        let text = plants.iter().map(text::of).collect::<Vec<_>>().join("\n\n");
        if self.every.is_some() { print_again(&text) } else { output::print(&text) }
    }
}

/// Prints a text in the place of the one before, or behind it if standard output is no terminal.
pub(crate) fn print_again(text: &str) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() {
        return output::print(&format!("{text}\n"));
    }
    // Cursor home, then clear to the end of each line and of the screen: no flicker.
    let lines: Vec<String> = text.lines().map(|line| format!("{line}\x1b[K")).collect();
    output::print(&format!("\x1b[H{}\x1b[J", lines.join("\n")))
}

/// The running plant of a ring. Removes the counters of a dead plant, with a note.
fn look(ring: &Name) -> anyhow::Result<Option<Snapshot>> {
    match file::read(ring) {
        Ok(Found::Live(mut snapshot)) => {
            snapshot.judge_silence(tapeline_measure::utc_now().0);
            Ok(Some(*snapshot))
        }
        Ok(Found::Nothing) => Ok(None),
        Ok(Found::Stale(pid)) => {
            let removed = file::remove(ring);
            reload::forget(ring);
            let what = if removed.is_ok() { "removed" } else { "left there" };
            anstream::eprintln!("the plant of ring {ring} (process {pid}) has died; its counters are {what}");
            Ok(None)
        }
        Err(error) => {
            let what = format!("cannot read the counters at {}: {error}", file::path(ring).display());
            Err(Hinted::new(what, "only the user who runs the plant, and root, may read them").into())
        }
    }
}

/// Every running plant that can be read; prints a warning for each of the others.
fn all() -> anyhow::Result<Vec<Snapshot>> {
    let mut plants = Vec::new();
    for ring in file::list().context("cannot list shared memory")? {
        match look(&ring) {
            Ok(plant) => plants.extend(plant),
            Err(error) => anstream::eprintln!("warning: {error}"),
        }
    }
    Ok(plants)
}
