//! `tapeline omm consumer`: ConsPerf, the guide's chapter 4.
//!
//! Each thread has a connection of its own, or with warm standby one to each server: it logs in, waits for the service, asks for its items in bursts until each of them
//! has an image, and then takes what comes, posting and sending generic messages meanwhile if it is told to.
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | what all threads are to do: the options with their files read |
//! | `servers.rs` | whom a thread connects to, and who stands by |
//! | `working.rs` | a thread: its servers, and where in the test it is; with API dispatch, two threads |
//! | `server.rs` | one server: its connection, what its role wants, which items are asked for there |
//! | `taking.rs` | what comes: images, updates, generic messages, and what is counted of them |
//! | `renewal.rs` | images that come again when another server takes over, and how long that takes |
//! | `decoding.rs` | payloads, every value of them, and the times in them |
//! | `sending.rs` | bursts of posts and generic messages |

pub(super) mod decoding;
mod plan;
mod renewal;
mod sending;
mod server;
mod servers;
mod taking;
mod working;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use self::plan::Plan;
use super::collect::{self, Limit, Rates, Run, Tool};
use super::options::ConsumerArgs;

/// A thread of a consumer with these options.
#[cfg(test)]
pub(super) fn consume(options: &str, link: super::link::Link) {
    let plan = Plan::new(&super::options::of::<ConsumerArgs>(options)).unwrap();
    working::work(&Arc::new(plan), 0, link);
}

impl ConsumerArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.check()?;
        let plan = Arc::new(Plan::new(self)?);
        let run = Run {
            tool: Tool::Consumer,
            inputs: plan.inputs(self),
            threads: &self.threads,
            results: &self.results,
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
            tick_rate: self.pace.tick_rate,
            unit: plan.unit,
        };
        collect::run(&run, move |number, link| working::work(&plan, number, link))
    }
}
