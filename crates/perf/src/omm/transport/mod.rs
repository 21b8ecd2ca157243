//! `tapeline omm transport`: messages without a meaning, sent, counted and timed, as TransportPerf does. What it measures is RSSL
//! alone.
//!
//! A client has a connection for each thread; a server's threads share one port, and a connection goes to the thread that has
//! the fewest. Both ends send in bursts, a slice of time after the other, and check what comes; or one sends back what comes.
//!
//! | file | owns |
//! |---|---|
//! | `message.rs` | what the messages are: those of TransportPerf |
//! | `sending.rs` | one connection's sending: its bursts, its times, its packing |
//! | `hearing.rs` | what came on one connection, in sequence or not |
//! | `working.rs` | a thread: its connections |

mod hearing;
mod message;
mod sending;
mod working;

use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};

use tapeline_client::endpoint::Endpoint;
use tapeline_wire::rssl::{Reactor, Settings};

pub(super) use self::message::SHORTEST;
use self::sending::{Load, Rate};
use self::working::Plan;
use super::collect::{self, Limit, Rates, Run, Tool};
use super::options::{End, TransportPerfArgs};
use super::stamp::Unit;

/// The protocol type that TransportPerf asks for; what is said is not RWF.
const PROTOCOL_TYPE: u8 = 88;
/// Connections of one of a server's threads; more are refused.
const MOST_CONNECTIONS: usize = 10_000;

impl TransportPerfArgs {
    /// Runs the tool to its end; the code is the process's exit status.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.check()?;
        let threads = self.threads.threads.len();
        let (endpoint, reactors) = match self.end() {
            End::Client => {
                let endpoint = self.client().endpoints(Vec::new(), "")?.remove(0);
                let settings = self.opaque(&endpoint.settings);
                let reactors = (0..threads).map(|_| Reactor::new(1)).collect::<Result<Vec<_>, _>>()?;
                (Some(Endpoint { settings, ..endpoint }), reactors)
            }
            End::Server => (None, self.listen(threads)?),
        };
        let plan = Arc::new(Plan {
            endpoint,
            attempts: self.attempts,
            load: Load {
                rate: if self.unpaced { Rate::Unpaced } else { Rate::PerSecond(self.msg_rate) },
                stamps: self.stamps(),
                says_due: !self.no_due,
                len: self.msg_size as usize,
                pack: self.pack,
                tick_rate: self.pace.tick_rate,
            },
            reflects: self.reflect_msgs,
            spins: self.busy_read,
            ends_with_clients: self.end_with_clients,
            open: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
        });
        let (summary_file, stats_file) = (self.summary_file(), self.stats_file());
        let run = Run {
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
        // Each thread takes its own.
        let reactors: Vec<_> = reactors.into_iter().map(|reactor| Mutex::new(Some(reactor))).collect();
        let reactors = Arc::new(reactors);
        collect::run(&run, move |number, link| {
            let reactor = reactors[number].lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(reactor) = reactor {
                working::work(&plan, number, reactor, link);
            }
        })
    }

    /// A server's threads, behind one port.
    fn listen(&self, threads: usize) -> anyhow::Result<Vec<Reactor>> {
        let (address, settings) = self.listener().listen(Vec::new(), 0)?;
        let mut reactors =
            (0..threads).map(|_| Reactor::new(MOST_CONNECTIONS)).collect::<Result<Vec<_>, _>>()?;
        let doors = reactors.iter_mut().map(Reactor::door).collect::<Result<Vec<_>, _>>()?;
        if let Some(first) = reactors.first_mut() {
            let address = first.listen_for(&doors, address, &self.opaque(&settings))?;
            tapeline_console::output::print(&format!("listening at {address}"))?;
        }
        Ok(reactors)
    }

    /// The same settings for messages without a meaning.
    fn opaque(&self, settings: &Settings) -> Arc<Settings> {
        let mut settings = Settings { protocol_type: PROTOCOL_TYPE, ..settings.clone() };
        if let Some(protocols) = self.protocols() {
            settings.ws_protocols = protocols.to_vec();
        }
        Arc::new(settings)
    }
}
