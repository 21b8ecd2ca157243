//! `tapeline doctor`: every setting of this machine that costs latency, with the command that fixes it.
//!
//! It reads files of the kernel and changes nothing, unless asked to. A setting that no file reports is unknown, not guessed.
//!
//! | file | owns |
//! |---|---|
//! | `machine.rs` | the machine under check, its cores, and what checks share |
//! | `finding.rs` | the finding of one check |
//! | `cores.rs`, `memory.rs`, `network.rs`, `system.rs` | the checks, and the better settings |
//! | `floor.rs` | the jitter floor, measured |
//! | `apply.rs`, `drop_in.rs` | the files that make settings last: proposed, written after asking, removed again |
//! | `show.rs` | the findings for people and for programs |

mod apply;
mod cores;
mod drop_in;
mod finding;
mod floor;
mod machine;
mod memory;
mod network;
mod show;
mod system;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tapeline_console::FilePath;
use tapeline_console::arguments::{self, Cores};
use tapeline_console::failure::Hinted;
use tapeline_console::output::{self, Format};
use tapeline_measure::{Clock, Environment, SystemFiles, figures};

use self::apply::Consent;
use self::finding::Finding;
use self::machine::{Check, Machine};
use self::show::{Looked, MachineReport};

/// Check this machine's settings, and show the command that fixes each setting that costs latency
#[derive(Debug, Args)]
#[command(after_help = "\
Nothing is changed without --apply: each finding that could be better shows the command that fixes it until the next boot. A setting \
that the kernel does not report is unknown. Some fixes cost power, cores or safety: read the reason, then choose.

Examples:
  tapeline doctor --cores 2-3             check cores that are dedicated to a plant and its readers
  tapeline doctor --no-jitter             without the measurement, which takes two seconds
  tapeline doctor --no-jitter --strict    status 1 if anything could be better, for a script
  sudo tapeline doctor --cores 2-3 --apply     write files that make settings last, each after asking
  sudo tapeline doctor --revert           remove these files again
  tapeline doctor --format json | jq '.findings[] | select(.severity == \"could-be-better\").command'")]
pub struct Doctor {
    /// Dedicated cores, such as 2-3 [default: check all, and expect all but the first to be quiet]
    #[arg(long, value_name = "LIST", value_parser = arguments::cores)]
    cores: Option<Cores>,

    /// Skip the measurement of the jitter floor
    #[arg(long, conflicts_with = "duration")]
    no_jitter: bool,

    /// Duration of the jitter measurement
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = arguments::some_duration)]
    duration: Duration,

    /// End with status 1 if anything could be better
    #[arg(long)]
    strict: bool,

    /// Make settings last: write each setting that could be better into a file of the system, after asking. With --cores, plants of
    /// `tapeline@.service` run on these cores
    #[arg(long, conflicts_with_all = ["strict", "format", "no_jitter", "duration"])]
    apply: bool,

    /// Remove the files that --apply has written, after asking
    #[arg(long, conflicts_with_all = ["apply", "cores", "strict", "format", "no_jitter", "duration"])]
    revert: bool,

    /// Write or remove the files without asking
    #[arg(long)]
    yes: bool,

    /// Write below this folder instead of /, such as the root of a mounted image
    #[arg(long, value_name = "FOLDER", default_value = "/")]
    root: FilePath,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// All checks, in output order.
const AREAS: [(&str, &[Check]); 4] = [
    ("cores", &cores::CHECKS),
    ("memory", &memory::CHECKS),
    ("network", &network::CHECKS),
    ("system", &system::CHECKS),
];

impl Doctor {
    /// Checks the machine and prints the findings.
    ///
    /// # Errors
    /// If standard output cannot be written or, with --apply and --revert, a file of the system.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let answers = Consent { is_yes: self.yes };
        if self.revert {
            apply::revert(&self.root, answers)?;
            return Ok(ExitCode::SUCCESS);
        }
        if self.yes && !self.apply {
            return Err(Hinted::new("--yes answers nothing", "it goes with --apply or --revert").into());
        }
        let files = SystemFiles::of_this_machine();
        let online = files.online().unwrap_or_else(|_| tapeline_measure::cores());
        let named = self.cores.map(|Cores(cores)| cores);
        let pinned = named.clone();
        if let Some(core) = named.iter().flatten().find(|core| !online.contains(core)) {
            let hint = format!("the cores that are online are {}", figures::list(&online));
            return Err(Hinted::new(format!("there is no core {core}"), hint).into());
        }
        let machine = Machine::new(files, &online, named);
        let mut findings = looked_at(&machine);
        if self.apply {
            apply::apply(&machine, &findings, pinned.as_deref(), &self.root, answers)?;
            return Ok(ExitCode::SUCCESS);
        }
        let clock = Clock::calibrate();
        if !self.no_jitter {
            let finding = floor::measured(&machine, self.duration, &clock)?;
            findings.push(Looked { area: "cores", topic: "jitter floor", finding });
        }
        let environment = Environment::read(&clock);
        let report = MachineReport::new(&machine, findings, &environment);
        match self.format {
            Format::Table => output::print(&report.text())?,
            Format::Json => output::print_json(&report)?,
        }
        Ok(ExitCode::from(u8::from(self.strict && report.could_be_better > 0)))
    }
}

/// Runs the checks that only read files.
fn looked_at(machine: &Machine) -> Vec<Looked> {
    let all = AREAS.iter().flat_map(|&(area, checks)| checks.iter().map(move |check| (area, check)));
    all.map(|(area, &(topic, check))| {
        let finding = check(machine).unwrap_or_else(|error| {
            Finding::unknown(if error.is_absent() {
                error.to_string().replace("cannot read", "there is no")
            } else {
                tapeline_console::failure::text(&error.into())
                    .replacen("error: ", "", 1)
                    .replace("\n  because", "")
            })
        });
        Looked { area, topic, finding }
    })
    .collect()
}
