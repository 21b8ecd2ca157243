//! `tapeline bridge probe`: what a path carries before a bridge uses it.
//!
//! | file | owns |
//! |---|---|
//! | `datagram.rs` | the datagrams of a probe |
//! | `tally.rs` | counting at the listening end: loss, order, duplicates |
//! | `listen.rs` | the listening end |
//! | `ask.rs` | the asking end: listeners, round trips, the largest datagram, steps of rates |
//! | `tcp.rs` | a connection over TCP, and the messages on it |
//! | `tcp_listen.rs`, `tcp_ask.rs` | the two ends over TCP |
//! | `report.rs` | the output as tables and as JSON |

mod ask;
mod datagram;
mod listen;
mod report;
mod tally;
mod tcp;
mod tcp_ask;
mod tcp_listen;

use std::net::{SocketAddr, SocketAddrV4};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{ArgGroup, Args};
use tapeline_console::failure::of_socket;
use tapeline_console::output::Format;
use tapeline_console::stop::Stop;
use tapeline_console::{FilePath, arguments, paths};
use tapeline_wire::tls::{Tls, TlsVersions};

/// Measure a path for a bridge, over UDP or TCP: loss, order, the largest datagram, round trip, backlog, at several rates
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("end").required(true).args(["listen", "to", "listen_tcp", "tcp"]),
    after_help = "\
Start the listening end on the host of the plant below, at the address of a line, and the asking end on the host of \
the plant above. A multicast group may have several listeners. The datagrams are the probe's own: no plant takes them \
for ticks, and every listener answers whoever asks.

Over TCP the plant above listens, so start the listening end there: it sends, as fast as the path takes and then at the \
rates, to the asking end on the host of the plant below.

Examples:
  tapeline bridge probe --listen 239.255.14.1:14041 --interface 10.0.0.6           on each host below
  tapeline bridge probe --to 239.255.14.1:14041 --interface 10.0.0.5               on the host above
  tapeline bridge probe --to 10.0.0.6:14041 --interface 10.0.0.5 --rates 5k,200k   one host, other rates
  tapeline bridge probe --to 127.0.0.1:14041 --format json | jq .listeners         JSON, for a program
  tapeline bridge probe --listen-tcp 0.0.0.0:14044                                 over TCP, on the host above
  tapeline bridge probe --tcp 10.0.0.5:14044 --rates 10k,100k                      on the host below
  tapeline bridge probe --tcp 10.0.0.5:14044 --tls --ca ca.pem                     with TLS"
)]
pub struct Probe {
    /// Listen at this address: a multicast group, or this host's own address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    listen: Option<SocketAddrV4>,

    /// Measure the path to this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    to: Option<SocketAddrV4>,

    /// Listen for a measurement over TCP at this address of this host
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddr>)]
    listen_tcp: Option<SocketAddr>,

    /// Measure the path over TCP from this address
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddr>)]
    tcp: Option<SocketAddr>,

    /// Certificate of the listening end over TCP, in PEM: then it has TLS
    #[arg(long, value_name = "FILE", requires_all = ["listen_tcp", "key"])]
    cert: Option<FilePath>,

    /// Key of the certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<FilePath>,

    /// The listening end over TCP has TLS
    #[arg(long, requires = "tcp")]
    tls: bool,

    /// Certificates that are trusted, in PEM, instead of the system's
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca: Option<FilePath>,

    /// Name that the certificate must have, instead of the address
    #[arg(long, value_name = "NAME", requires = "tls")]
    server_name: Option<String>,

    /// Network interface, by name or address; with the default, nothing leaves this machine
    #[arg(long, value_name = "NAME|ADDRESS", default_value = "127.0.0.1", conflicts_with_all = OVER_TCP)]
    interface: String,

    /// End after one measurement
    #[arg(long, conflicts_with_all = ["to", "tcp"])]
    once: bool,

    /// Multicast TTL: the number of routers that a datagram may pass, plus one
    #[arg(long, default_value_t = 1, conflicts_with_all = OVER_TCP)]
    ttl: u8,

    /// Datagrams per second, one step after the other, at most 1M
    #[arg(long, value_name = "RATES", value_delimiter = ',', default_values = ["1k", "10k", "50k"], value_parser = step_rate)]
    rates: Vec<u64>,

    /// Duration of each step
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = step_time)]
    step: Duration,

    /// Bytes of each datagram; fewer if the path does not carry them whole
    #[arg(long, value_name = "BYTES", default_value_t = 1_400, value_parser = clap::value_parser!(u16).range(104..=i64::from(LONGEST_DATAGRAM)))]
    size: u16,

    /// How long to look for listeners
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = arguments::some_duration)]
    patience: Duration,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The ends over TCP.
const OVER_TCP: [&str; 2] = ["listen_tcp", "tcp"];
/// The longest payload of UDP over IPv4.
const LONGEST_DATAGRAM: u16 = 65_507;
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

fn read(file: &FilePath) -> anyhow::Result<Vec<u8>> {
    std::fs::read(file).with_context(|| format!("cannot read {}", paths::shown(file)))
}

impl Probe {
    /// Runs one end and returns the process's exit status.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        // The command line has one of them.
        if let Some(address) = self.listen {
            listen::listen(address, &self.interface, self.once, &stop)?;
        } else if let Some(to) = self.to {
            let probed = ask::Asker::open(to, &self)?.run(&self, &stop)?;
            report::print(&probed, self.format)?;
        } else if let Some(address) = self.listen_tcp {
            tcp_listen::listen(address, self.certificate()?.as_ref(), self.once, &stop)?;
        } else if let Some(server) = self.tcp {
            let probed = tcp_ask::ask(server, self.trusted(server)?.as_ref(), &self, &stop)?;
            report::print_tcp(&probed, self.format)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The certificate of the listening end over TCP.
    fn certificate(&self) -> anyhow::Result<Option<Tls>> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        let tls = Tls::server(&read(cert)?, &read(key)?, TlsVersions::Both).map_err(of_socket);
        tls.map(Some).with_context(|| format!("cannot use the certificate {}", paths::shown(cert)))
    }

    /// The trusted certificates of the asking end over TCP, and the name that it expects.
    fn trusted(&self, server: SocketAddr) -> anyhow::Result<Option<(Tls, String)>> {
        if !self.tls {
            return Ok(None);
        }
        let tls = match &self.ca {
            Some(ca) => Tls::client(&read(ca)?, TlsVersions::Both),
            None => Tls::client_of_system(TlsVersions::Both),
        };
        let name = self.server_name.clone().unwrap_or_else(|| server.ip().to_string());
        Ok(Some((tls.map_err(of_socket)?, name)))
    }
}
