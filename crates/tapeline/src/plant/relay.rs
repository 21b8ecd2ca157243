//! `tapeline plant relay`: the floor under a plant's latency.

use std::net::SocketAddrV4;
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use tapeline_console::{Stop, arguments, output};
use tapeline_perf::path::BareRelay;
use tapeline_ring::Name;

/// Publish the messages of a MoldUDP64 feed to a ring without a plant, to measure the lower bound of a plant's latency
///
/// `plant measure` on the relay's ring measures the sockets, the ring and the wake-ups, without a plant's work. The
/// relay ends when the feed ends its session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline plant relay --line 239.255.0.1:30001 --ring relay\n  \
    tapeline plant measure --ring relay --until-end-of-session     in another terminal; then start the feed")]
pub(crate) struct RelayArgs {
    /// Group and port of a line of the feed, on the loopback interface; give it twice for lines A and B
    #[arg(long = "line", value_name = "ADDRESS", required = true, value_parser = arguments::address::<SocketAddrV4>)]
    lines: Vec<SocketAddrV4>,
    /// Name of the ring
    #[arg(long, value_name = "NAME", default_value = "relay")]
    ring: String,
    /// Capacity of the ring
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = arguments::size)]
    ring_size: u64,
    /// Poll the sockets instead of sleeping until a datagram arrives; uses a whole core
    #[arg(long)]
    spin: bool,
    /// Pin the relay to this core
    #[arg(long, value_name = "CORE")]
    cpu: Option<usize>,
}

/// Printed once the ring exists and the lines are joined, so that a script can start the feed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Relaying {
    pub(crate) ring: String,
}

impl RelayArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let relay = BareRelay {
            lines: self.lines,
            ring: (Name::new(&self.ring)?, usize::try_from(self.ring_size)?),
            spins: self.spin,
            core: self.cpu,
        };
        let report = relay.run(&stop, || output::print_json_line(&Relaying { ring: self.ring }))?;
        output::print_json_line(&report)?;
        Ok(if report.missing > 0 { ExitCode::from(3) } else { ExitCode::SUCCESS })
    }
}
