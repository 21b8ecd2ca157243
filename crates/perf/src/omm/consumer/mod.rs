//! `tapeline omm consumer`: ConsPerf, the guide's chapter 4.
//!
//! Each thread has its own connection, or with warm standby one to each server. It logs in, waits for the service,
//! and requests its items in bursts until each has an image. Then it receives messages, and posts and sends generic
//! messages if configured.
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | the work of all threads: the options, with their files loaded |
//! | `servers.rs` | the servers of a thread, active and standby |
//! | `working.rs` | a thread: its servers, and its phase of the test |
//! | `server.rs` | one server: its connection, the requests of its role, the items requested there |
//! | `taking.rs` | received images, updates and generic messages, and their counts |
//! | `renewal.rs` | new images after a failover to another server, and the time until all have arrived |
//! | `decoding.rs` | payloads, every value of them, and the times in them |
//! | `sending.rs` | bursts of posts and generic messages |

pub(super) mod decoding;
pub(super) mod plan;
mod renewal;
mod sending;
mod server;
pub(super) mod servers;
mod taking;
mod working;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use self::plan::ConsumerPlan;
use super::collect::{self, Limit, Rates, RunSettings};
use super::options::ConsumerArgs;
use super::tool::Tool;

/// Runs a thread of a consumer with these options.
#[cfg(test)]
pub(super) fn consume(options: &str, link: super::link::Link) {
    let plan = ConsumerPlan::new(&super::options::of::<ConsumerArgs>(options)).unwrap();
    working::work(&Arc::new(plan), 0, link);
}

impl ConsumerArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.run.results.log.begin("consumer")?;
        self.check()?;
        let plan = Arc::new(ConsumerPlan::new(self)?);
        let run = RunSettings {
            tool: Tool::Consumer,
            inputs: plan.inputs(),
            threads: &self.run.threads,
            results: &self.run.results,
            summary_file: &self.summary_file,
            stats_file: &self.stats_file,
            limit: Limit::SteadyState {
                time: Duration::from_secs(self.steady_state_time),
                delay: Duration::from_millis(self.delay_steady_state_calc),
            },
            is_timed: true,
            images: plan.images(),
            rates: Rates {
                updates: 0,
                posts: self.posting_rate,
                stamped_posts: self.posting_latency_rate,
                generics: self.generic_msg_rate,
                stamped_generics: self.generic_msg_latency_rate,
            },
            tick_rate: self.run.pace.tick_rate,
            unit: plan.unit,
        };
        collect::run(&run, move |number, link| working::work(&plan, number, link))
    }
}
