//! `tapeline omm provider`: IProvPerf, the guide's chapter 5.
//!
//! The threads share one port: a connection goes to the thread with the fewest connections. Each thread does all the
//! work of its connections: in each slice a burst of updates, then generic messages, then reflected posts; in the
//! rest of the slice, answers to requests and received messages.
//!
//! | file | owns |
//! |---|---|
//! | `plan.rs` | the work of all threads: the options, with their files loaded |
//! | `working.rs` | a thread: its consumers, slice by slice |
//! | `client.rs` | one consumer's connection, and the messages sent on it |
//! | `items.rs` | its open items |
//! | `answers.rs` | its requests and posts, and the answers to them |

mod answers;
mod client;
mod items;
mod plan;
mod working;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tapeline_client::ema_config::Group;
use tapeline_console::failure::Hinted;
use tapeline_omm::domain::ServiceEntry;

use self::plan::ProviderPlan;
use super::collect::{self, Limit, Rates, RunSettings};
use super::options::{ProviderArgs, StampRate};
use super::tool::Tool;

/// Default port at which EMA's consumers connect to a provider.
const USUAL_PORT: u16 = 14_002;
/// Maximum connections of one thread; more are refused.
const MOST_CONNECTIONS: usize = 1_000;
/// Maximum bytes of partly received messages, on all connections of a thread.
const MOST_HELD: usize = 256 << 20;

/// Runs a thread of a provider with these options, on a listening reactor.
#[cfg(test)]
pub(super) fn serve(options: &str, reactor: tapeline_wire::rssl::Reactor, link: super::link::Link) {
    let args = super::options::of::<ProviderArgs>(options);
    let plan = ProviderPlan::new(&args, tapeline_client::ema_config::Chosen::default()).unwrap();
    working::work(&Arc::new(plan), 0, reactor, link);
}

impl ProviderArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.run.results.log.begin("provider")?;
        self.check()?;
        let mut chosen = self.run.config.load(Group::IProvider)?;
        let further = self.run.config.further(Group::IProvider, self.run.threads())?;
        if let Some((place, name)) = further.first() {
            let what = format!(
                "the configuration has {name} for thread {}, and all threads listen at one port",
                place + 1
            );
            return Err(Hinted::new(what, "start one provider for each port, or take one thread").into());
        }
        let hosts = std::mem::take(&mut chosen.hosts);
        let plan = Arc::new(ProviderPlan::new(self, chosen)?);
        let (address, mut settings) = self.server.listen(hosts, USUAL_PORT)?;
        plan.publishing.check_pack(settings.max_fragment_size)?;
        Arc::make_mut(&mut settings).pack_bytes = Some(self.publishing.pack_bytes());
        let mut reactors = collect::reactors(self.run.threads(), MOST_CONNECTIONS)?;
        reactors.iter_mut().for_each(|reactor| reactor.limit_held(MOST_HELD));
        collect::listen(&mut reactors, address, &settings)?;
        let service = plan.services.services().next().and_then(ServiceEntry::name).unwrap_or_default();
        let run = RunSettings {
            tool: Tool::Provider,
            inputs: plan.args.test_inputs(&plan.name, service),
            threads: &self.run.threads,
            results: &self.run.results,
            summary_file: &self.summary_file,
            stats_file: &self.stats_file,
            limit: Limit::RunTime(Duration::from_secs(self.publishing.run_time())),
            is_timed: self.publishing.run_time.is_some(),
            images: Vec::new(),
            rates: Rates {
                updates: self.publishing.update_rate,
                generics: self.generic_msg_rate,
                stamped_generics: match self.generic_msg_latency_rate {
                    StampRate::PerSecond(rate) => rate,
                    StampRate::All => self.generic_msg_rate,
                },
                ..Rates::default()
            },
            tick_rate: self.run.pace.tick_rate,
            unit: plan.publishing.unit,
        };
        collect::run_on(&run, reactors, move |number, reactor, link| {
            working::work(&plan, number, reactor, link);
        })
    }
}
