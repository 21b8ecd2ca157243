//! `tapeline omm ni-provider`: NIProvPerf, the guide's chapter 6.
//!
//! Each thread has its own connection to the hub. It logs in, publishes the service and then its share of the items:
//! in each slice a burst of updates of the items that have their image, and in the rest of the slice images of the
//! others.
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | the work of all threads: the options, with their files loaded |
//! | `working.rs` | a thread: its connection, and its stage of the test |
//! | `publisher.rs` | its items, and the messages published for them |

mod plan;
mod publisher;
mod working;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use self::plan::NiProviderPlan;
use super::collect::{self, Limit, Rates, RunSettings};
use super::options::NiProviderArgs;
use super::tool::Tool;

impl NiProviderArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.run.results.log.begin("ni-provider")?;
        self.check()?;
        let plan = Arc::new(NiProviderPlan::new(self)?);
        let run = RunSettings {
            tool: Tool::NiProvider,
            inputs: plan.inputs(),
            threads: &self.run.threads,
            results: &self.run.results,
            summary_file: &self.summary_file,
            stats_file: &self.stats_file,
            limit: Limit::RunTime(Duration::from_secs(self.publishing.run_time())),
            is_timed: self.publishing.run_time.is_some(),
            images: Vec::new(),
            rates: Rates { updates: self.publishing.update_rate, ..Rates::default() },
            tick_rate: self.run.pace.tick_rate,
            unit: plan.publishing.unit,
        };
        collect::run(&run, move |number, link| working::work(&plan, number, link))
    }
}
