//! `tapeline omm transport`: transport messages, sent, counted and timed as in TransportPerf. It measures RSSL alone.
//!
//! A client has one connection per thread. A server's threads share one port, and a connection goes to the thread
//! with the fewest connections. Both ends send bursts, one per time slice, and check received messages; or one end
//! reflects them.
//!
//! | file | owns |
//! |---|---|
//! | `message.rs` | the message format: that of TransportPerf |
//! | `sending.rs` | sending on one connection: bursts, times, packing |
//! | `hearing.rs` | messages received on one connection, in sequence or not |
//! | `working.rs` | a thread: its connections |

mod hearing;
mod message;
mod sending;
mod working;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use tapeline_client::endpoint::Endpoint;
use tapeline_wire::rssl::ConnectionSettings;

pub(super) use self::message::SHORTEST;
use self::working::TransportPlan;
use super::collect::{self, Limit, Rates, RunSettings};
use super::options::{End, TransportPerfArgs};
use super::stamp::Unit;
use super::tool::Tool;

/// The protocol type that TransportPerf requests; the contents are not RWF.
const PROTOCOL_TYPE: u8 = 88;
/// Maximum connections of one of a server's threads; more are refused.
const MOST_CONNECTIONS: usize = 10_000;

impl TransportPerfArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.results.log.begin("transport")?;
        self.check()?;
        let threads = self.threads.threads.len();
        let (endpoint, reactors) = match self.end() {
            End::Client => {
                let endpoint = self.client().endpoints(Vec::new(), "")?.remove(0);
                let settings = self.opaque(&endpoint.settings);
                (Some(Endpoint { settings, ..endpoint }), collect::reactors(threads, 1)?)
            }
            End::Server => {
                let (address, settings) = self.listener().listen(Vec::new(), 0)?;
                let mut reactors = collect::reactors(threads, MOST_CONNECTIONS)?;
                collect::listen(&mut reactors, address, &self.opaque(&settings))?;
                (None, reactors)
            }
        };
        let plan = Arc::new(TransportPlan {
            endpoint,
            args: self.clone(),
            open: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
        });
        let (summary_file, stats_file) = (self.summary_file(), self.stats_file());
        let run = RunSettings {
            tool: Tool::Transport,
            inputs: self.inputs(),
            threads: &self.threads,
            results: &self.results,
            summary_file: &summary_file,
            stats_file: &stats_file,
            limit: Limit::RunTime(self.run_time()),
            is_timed: self.run_time.is_some(),
            images: Vec::new(),
            rates: Rates::default(),
            tick_rate: self.pace.tick_rate,
            unit: Unit::Nanos,
        };
        collect::run_on(&run, reactors, move |number, reactor, link| {
            working::work(&plan, number, reactor, link);
        })
    }

    /// The same settings for transport messages.
    fn opaque(&self, settings: &ConnectionSettings) -> Arc<ConnectionSettings> {
        let mut settings = ConnectionSettings { protocol_type: PROTOCOL_TYPE, ..settings.clone() };
        if let Some(protocols) = self.protocols() {
            settings.ws_protocols = protocols.to_vec();
        }
        Arc::new(settings)
    }
}
