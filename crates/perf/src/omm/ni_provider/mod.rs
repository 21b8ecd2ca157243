//! `tapeline omm ni-provider`: NIProvPerf, the guide's chapter 6.
//!
//! Each thread has a connection of its own to the hub: it logs in, publishes the service, and then its share of the items: in
//! each slice a burst of updates of those that have their image, in what is left of it images of the others.
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | what all threads are to do: the options with their files read |
//! | `working.rs` | a thread: its connection, and where in the test it is |
//! | `publisher.rs` | its items, and what is published of them |

mod plan;
mod publisher;
mod working;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use self::plan::Plan;
use super::collect::{self, Limit, Rates, Run, Tool};
use super::options::NiProviderArgs;

impl NiProviderArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.check()?;
        let plan = Arc::new(Plan::new(self)?);
        let run = Run {
            tool: Tool::NiProvider,
            inputs: plan.inputs(self),
            threads: &self.threads,
            results: &self.results,
            summary_file: &self.summary_file,
            stats_file: &self.stats_file,
            limit: Limit::RunTime(Duration::from_secs(self.publishing.run_time())),
            is_timed: self.publishing.run_time.is_some(),
            images: Vec::new(),
            rates: Rates { updates: self.publishing.update_rate, ..Rates::default() },
            tick_rate: self.pace.tick_rate,
            unit: plan.publishing.unit,
        };
        collect::run(&run, move |number, link| working::work(&plan, number, link))
    }
}
