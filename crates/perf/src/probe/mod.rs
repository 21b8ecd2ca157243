//! `tapeline bridge probe`: what a path carries before a bridge uses it.
//!
//! | file | owns |
//! |---|---|
//! | `datagram.rs` | the datagrams of a probe |
//! | `tally.rs` | counting at the listening end: loss, order, duplicates |
//! | `listen.rs` | the listening end |
//! | `ask.rs` | the asking end: listeners, round trips, the largest datagram, steps of rates |
//! | `report.rs` | the output as tables and as JSON |

mod ask;
mod datagram;
mod listen;
mod report;
mod tally;

use std::net::SocketAddrV4;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgGroup, Args};
use tapeline_console::arguments;
use tapeline_console::output::Format;
use tapeline_console::stop::Stop;

/// Measure a path for a bridge: loss, order, duplicates, the largest datagram, round trip, at several rates
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("end").required(true).args(["listen", "to"]),
    after_help = "\
Start the listening end on the host of the plant below, at the address of a line, and the asking end on the host of \
the plant above. A multicast group may have several listeners. The datagrams are the probe's own: no plant takes them \
for ticks, and every listener answers whoever asks.

Examples:
  tapeline bridge probe --listen 239.255.14.1:14041 --interface 10.0.0.6           on each host below
  tapeline bridge probe --to 239.255.14.1:14041 --interface 10.0.0.5               on the host above
  tapeline bridge probe --to 10.0.0.6:14041 --interface 10.0.0.5 --rates 5k,200k   one host, other rates
  tapeline bridge probe --to 127.0.0.1:14041 --format json | jq .listeners         JSON, for a program"
)]
pub struct Probe {
    /// Listen at this address: a multicast group, or this host's own address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    listen: Option<SocketAddrV4>,

    /// Measure the path to this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    to: Option<SocketAddrV4>,

    /// Network interface, by name or address; with the default, nothing leaves this machine
    #[arg(long, value_name = "NAME|ADDRESS", default_value = "127.0.0.1")]
    interface: String,

    /// End after one measurement
    #[arg(long, requires = "listen")]
    once: bool,

    /// Multicast TTL: the number of routers that a datagram may pass, plus one
    #[arg(long, default_value_t = 1)]
    ttl: u8,

    /// Datagrams per second, one step after the other, at most 1M
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_values = ["1k", "10k", "50k"], value_parser = step_rate)]
    rates: Vec<u64>,

    /// Duration of each step
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = step_time)]
    step: Duration,

    /// Bytes of each datagram; fewer if the path does not carry them whole
    #[arg(long, value_name = "BYTES", default_value_t = 1_400, value_parser = clap::value_parser!(u16).range(104..=65_507))]
    size: u16,

    /// How long to look for listeners
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = arguments::some_duration)]
    patience: Duration,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The highest rate of a step.
const HIGHEST_RATE: u64 = 1_000_000;
/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(600);

fn step_rate(text: &str) -> Result<u64, String> {
    match arguments::rate(text)? {
        rate if (1..=HIGHEST_RATE).contains(&rate) => Ok(rate),
        _ => Err(format!("'{text}' is not between 1 and 1M")),
    }
}

fn step_time(text: &str) -> Result<Duration, String> {
    match arguments::some_duration(text)? {
        time if time <= LONGEST_STEP => Ok(time),
        _ => Err(format!("'{text}' is longer than 10m")),
    }
}

impl Probe {
    /// Runs one end and returns the process's exit status.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        match (self.listen, self.to) {
            (Some(address), _) => listen::listen(address, &self.interface, self.once, &stop)?,
            (None, Some(to)) => {
                let probed = ask::Asker::open(to, &self)?.run(&self, &stop)?;
                report::print(&probed, self.format)?;
            }
            // The command line has one of them.
            (None, None) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}
