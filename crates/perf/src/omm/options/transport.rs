//! `tapeline omm transport`: TransportPerf. The guide has no chapter on it: options, defaults and rules are those of
//! the public tool (ETA C 3.6, transportPerfConfig.c).

use std::net::IpAddr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tapeline_client::endpoint::own_address;
use tapeline_console::arguments;
use tapeline_console::failure::Hinted;
use tapeline_console::omm::transport::{ClientArgs, ServerArgs, TransportArgs, WebSocketArg};
use tapeline_console::paths::{self, FilePath};
use tapeline_wire::rssl::SubProtocol;

use super::super::transport::SHORTEST;
use super::inputs::yes;
use super::rules::check_servers;
use super::{PaceArgs, ResultArgs, StampRate, ThreadArgs, rate, stamp_rate};

/// Send, receive and time transport messages.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline omm transport server                                     on localhost:14002; then, on another terminal:\n  \
    tapeline omm transport client --msg-rate 1M --run-time 10         a million messages a second each way, and a verdict\n  \
    tapeline omm transport client --unpaced --pack 20 --run-time 10   as fast as possible\n  \
    tapeline omm transport server --reflect-msgs                      sends each message back, for round trips\n\
    LSEG's TransportPerf can be either end.")]
pub struct TransportPerfArgs {
    /// Wait for clients, or connect to a server [default: server]
    #[arg(value_enum, conflicts_with = "app_type")]
    end: Option<End>,
    /// Server or client, under TransportPerf's name for this option
    #[arg(long, value_enum, value_name = "END")]
    app_type: Option<End>,

    /// Messages a second on each connection; 0 sends none
    #[arg(long, value_name = "RATE", default_value = "100000", value_parser = rate, help_heading = "Traffic")]
    pub(in super::super) msg_rate: u64,
    /// Send as fast as the connection accepts, instead of at a rate
    #[arg(long, conflicts_with = "msg_rate", help_heading = "Traffic")]
    pub(in super::super) unpaced: bool,
    /// Messages a second that carry a time stamp, or all [default: 10, or none if none are sent]
    #[arg(long, value_name = "RATE", value_parser = stamp_rate, help_heading = "Traffic")]
    latency_msg_rate: Option<StampRate>,
    /// Send back each received message, and send no others, so that the other end measures round trips
    #[arg(long, conflicts_with_all = ["msg_rate", "unpaced", "latency_msg_rate", "msg_size", "pack", "no_due"], help_heading = "Traffic")]
    pub(in super::super) reflect_msgs: bool,
    /// Size of a message in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 76, value_parser = clap::value_parser!(u32).range(SHORTEST as i64..=1 << 24), help_heading = "Traffic")]
    pub(in super::super) msg_size: u32,
    /// Maximum number of messages in a frame; a JSON message always has a frame of its own
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_535), help_heading = "Traffic")]
    pub(in super::super) pack: u32,
    /// Omit the due time, which time-stamped messages of 24 bytes or more carry
    #[arg(long, help_heading = "Traffic")]
    pub(in super::super) no_due: bool,
    /// Poll for messages without sleeping: lowest latency, uses a whole core
    #[arg(long, help_heading = "Traffic")]
    pub(in super::super) busy_read: bool,

    /// Run time in seconds, or with a unit [default: 300]
    #[arg(long, value_name = "TIME", value_parser = arguments::some_duration)]
    pub(in super::super) run_time: Option<Duration>,
    /// Client: connection attempts of each thread, one a second [default: no limit]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in super::super) attempts: Option<u32>,
    /// Server: end when all clients have disconnected
    #[arg(long)]
    pub(in super::super) end_with_clients: bool,

    /// Summary file [default: TransportSummary_PID.out]
    #[arg(long, value_name = "FILE")]
    summary_file: Option<FilePath>,
    /// Statistics files, one for each thread: NAME1.csv and so on [default: TransportStats_PID_]
    #[arg(long, value_name = "NAME")]
    stats_file: Option<String>,

    #[command(flatten)]
    pub(in super::super) pace: PaceArgs,
    #[command(flatten)]
    pub(in super::super) threads: ThreadArgs,
    #[command(flatten)]
    pub(in super::super) results: ResultArgs,
    #[command(flatten)]
    ends: EndArgs,
    #[command(flatten)]
    pub(in super::super) transport: TransportArgs,
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum End {
    /// Wait for clients
    #[default]
    Server,
    /// Connect to a server
    Client,
}

/// Address of the other end, and the kind of connection.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
struct EndArgs {
    /// Client: host and port of the server [default: localhost:14002]
    #[arg(long, value_name = "HOST:PORT", conflicts_with_all = ["host", "port"])]
    server: Option<String>,
    /// Client: host of the server, with --port
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Server: port to listen on, 0 for a free port; client: port of the server [default: 14002]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Server: address or interface name to listen on, 0.0.0.0 or :: for all [default: 127.0.0.1]; client: address or interface
    /// name to connect from
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    bind: Option<IpAddr>,
    /// Kind of connection, as in TransportPerf; a server accepts sockets and WebSockets on one port
    #[arg(long, value_enum, value_name = "TYPE")]
    conn_type: Option<ConnectionKind>,
    /// Client: kind of connection inside an encrypted connection
    #[arg(long, value_enum, value_name = "TYPE", requires = "conn_type")]
    encrypted_conn_type: Option<ConnectionKind>,
    /// WebSocket sub-protocols to request or accept, in order of preference: rssl.rwf, tr_json2, rssl.json.v2
    #[arg(long = "pl", value_name = "LIST", value_parser = sub_protocols)]
    protocols: Option<SubProtocols>,
    /// Client: connect over a WebSocket, with these sub-protocols
    #[arg(long, value_enum, value_name = "PROTOCOLS", value_delimiter = ',', conflicts_with_all = ["conn_type", "protocols"])]
    websocket: Vec<WebSocketArg>,
    /// Client: use TLS, and check the server's certificate
    #[arg(long, conflicts_with = "conn_type")]
    tls: bool,
    /// Client: certificates to trust, as PEM, instead of the system's
    #[arg(long, alias = "castore", value_name = "FILE")]
    ca: Option<FilePath>,
    /// Server: use TLS with this certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<FilePath>,
    /// Server: the certificate's private key, as PEM
    #[arg(long, alias = "keyfile", value_name = "FILE", requires = "cert")]
    key: Option<FilePath>,
    /// Turn TCP_NODELAY off: small writes wait for the acknowledgement of earlier ones
    #[arg(long, conflicts_with = "tcp_nodelay")]
    tcp_delay: bool,
    /// Send each message at once, in its own write
    #[arg(long, conflicts_with = "high_water_mark")]
    direct_write: bool,
}

/// TransportPerf's kinds of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConnectionKind {
    /// RSSL over TCP
    Socket,
    /// A WebSocket
    Websocket,
    /// TLS around a socket or a WebSocket
    Encrypted,
    #[value(hide = true)]
    Http,
    #[value(hide = true, alias = "reliableMCast")]
    ReliableMcast,
    #[value(hide = true)]
    Shmem,
    #[value(hide = true, alias = "seqMCast")]
    SeqMcast,
}

/// Sub-protocols in order.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SubProtocols(Vec<SubProtocol>);

/// Parses a list with commas or blanks.
fn sub_protocols(text: &str) -> Result<SubProtocols, String> {
    let names = text.split([',', ' ', '\t']).filter(|name| !name.is_empty());
    let known = |name: &str| {
        let unknown =
            || format!("there is no sub-protocol {name}; there are rssl.rwf, tr_json2 and rssl.json.v2");
        SubProtocol::named(name).ok_or_else(unknown)
    };
    let protocols = names.map(known).collect::<Result<Vec<_>, _>>()?;
    if protocols.is_empty() {
        Err("no sub-protocol is named".to_owned())
    } else {
        Ok(SubProtocols(protocols))
    }
}

/// TransportPerf's default number of output buffers.
const OUTPUT_BUFFERS: u32 = 5_000;
/// TransportPerf's default.
const COMPRESSION_LEVEL: u8 = 5;
const USUAL_PORT: u16 = 14_002;
const USUAL_RUN_TIME: Duration = Duration::from_secs(300);

impl TransportPerfArgs {
    pub(in super::super) fn run_time(&self) -> Duration {
        self.run_time.unwrap_or(USUAL_RUN_TIME)
    }

    /// Which end of the connection this is.
    pub(in super::super) fn end(&self) -> End {
        self.end.or(self.app_type).unwrap_or_default()
    }

    /// Messages a second that carry a time.
    pub(in super::super) fn stamps(&self) -> StampRate {
        let sends = self.unpaced || self.msg_rate > 0;
        StampRate::or_usual(self.latency_msg_rate, sends)
    }

    pub(in super::super) fn summary_file(&self) -> FilePath {
        let usual = || FilePath::of(format!("TransportSummary_{}.out", std::process::id()));
        self.summary_file.clone().unwrap_or_else(usual)
    }

    pub(in super::super) fn stats_file(&self) -> String {
        let usual = || format!("TransportStats_{}_", std::process::id());
        self.stats_file.clone().unwrap_or_else(usual)
    }

    /// Refuses options that break a rule, with the first broken rule, and unsupported ones.
    pub(in super::super) fn check(&self) -> anyhow::Result<()> {
        self.check_rates()?;
        self.check_end()?;
        check_servers("--server", &self.ends.server)?;
        self.check_kind()
    }

    fn check_rates(&self) -> anyhow::Result<()> {
        let (rate, ticks, stamps) = (self.msg_rate, self.pace.tick_rate, self.stamps());
        let is_paced = !self.reflect_msgs && !self.unpaced;
        let (what, hint) = match stamps {
            _ if is_paced && rate > 0 && rate < ticks => (
                format!("--msg-rate {rate} is below --tick-rate {ticks}"),
                "each slice has a message at least: raise the one, lower the other, or send none (0)",
            ),
            StampRate::PerSecond(stamps) if is_paced && stamps > rate => (
                format!("--latency-msg-rate {stamps} is above --msg-rate {rate}"),
                "no more messages carry a time than are sent",
            ),
            StampRate::PerSecond(stamps) if stamps > ticks => (
                format!("--latency-msg-rate {stamps} is above --tick-rate {ticks}"),
                "a slice has one message with a time: raise --tick-rate, or let all carry one (all)",
            ),
            _ => return Ok(()),
        };
        Err(Hinted::of_options(what, hint).into())
    }

    /// Refuses options of the other end.
    fn check_end(&self) -> anyhow::Result<()> {
        let EndArgs { server, host, cert, tls, ca, websocket, encrypted_conn_type, .. } = &self.ends;
        let (others, end): (&[(&str, bool)], _) = match self.end() {
            End::Server => (
                &[
                    ("--server", server.is_some()),
                    ("--attempts", self.attempts.is_some()),
                    ("--tls", *tls),
                    ("--ca", ca.is_some()),
                    ("--websocket", !websocket.is_empty()),
                    ("--encrypted-conn-type", encrypted_conn_type.is_some()),
                    // TransportPerf's servers accept it and ignore it.
                    ("--host", host.is_some()),
                ],
                "server",
            ),
            End::Client => {
                (&[("--cert", cert.is_some()), ("--end-with-clients", self.end_with_clients)], "client")
            }
        };
        match others.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => {
                let hint = "`tapeline omm transport server` waits, `client` connects";
                Err(Hinted::of_options(format!("{option} means nothing for a {end}"), hint).into())
            }
        }
    }

    fn check_kind(&self) -> anyhow::Result<()> {
        use ConnectionKind::{Encrypted, Http, ReliableMcast, SeqMcast, Shmem, Socket, Websocket};
        let EndArgs { conn_type, encrypted_conn_type, cert, protocols, .. } = &self.ends;
        let kinds = "there are socket, websocket and encrypted";
        let is_server = self.end() == End::Server;
        let (what, hint) = match (conn_type, encrypted_conn_type) {
            (Some(ReliableMcast | SeqMcast), _) => ("RSSL over multicast is not spoken here", kinds),
            (Some(Shmem), _) => {
                ("RSSL over shared memory is not spoken here", "`tapeline ring pub` measures shared memory")
            }
            (Some(Http), _) | (_, Some(Http)) => ("RSSL inside HTTP is not spoken here", kinds),
            (_, Some(kind)) if *conn_type != Some(Encrypted) || !matches!(kind, Socket | Websocket) => {
                ("--encrypted-conn-type says what is inside --conn-type encrypted: socket or websocket", "")
            }
            (Some(Encrypted), _) if is_server && cert.is_none() => {
                ("an encrypted server needs a certificate and a key", "name them with --cert and --key")
            }
            _ if protocols.is_some() && !is_server && !self.is_websocket() => {
                ("--pl names protocols inside a WebSocket", "add --conn-type websocket")
            }
            _ => return Ok(()),
        };
        Err(Hinted::of_options(what, hint).into())
    }

    fn is_websocket(&self) -> bool {
        let EndArgs { conn_type, encrypted_conn_type, websocket, .. } = &self.ends;
        [conn_type, encrypted_conn_type].contains(&&Some(ConnectionKind::Websocket)) || !websocket.is_empty()
    }

    fn is_encrypted(&self) -> bool {
        self.ends.tls || self.ends.conn_type == Some(ConnectionKind::Encrypted)
    }

    /// Settings of both ends, with TransportPerf's defaults.
    fn settings(&self) -> TransportArgs {
        let mut settings = self.transport.clone();
        settings.guaranteed_output_buffers.get_or_insert(OUTPUT_BUFFERS);
        settings.compression_level.get_or_insert(COMPRESSION_LEVEL);
        if self.ends.tcp_delay {
            settings.tcp_nodelay = Some(false);
        }
        if self.ends.direct_write {
            settings.high_water_mark = Some(0);
        }
        settings
    }

    pub(in super::super) fn protocols(&self) -> Option<&[SubProtocol]> {
        self.ends.protocols.as_ref().map(|SubProtocols(protocols)| &protocols[..])
    }

    /// A client's connection to its server.
    pub(in super::super) fn client(&self) -> ClientArgs {
        let EndArgs { server, host, port, bind, ca, websocket, .. } = &self.ends;
        let beside = || {
            let host = host.as_deref().unwrap_or("localhost");
            let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
            format!("{host}:{}", port.unwrap_or(USUAL_PORT))
        };
        ClientArgs {
            server: Some(server.clone().unwrap_or_else(beside)),
            tls: self.is_encrypted(),
            ca: ca.clone(),
            interface: *bind,
            websocket: match websocket.as_slice() {
                [] if self.is_websocket() => vec![WebSocketArg::Rwf],
                asked => asked.to_vec(),
            },
            transport: self.settings(),
        }
    }

    /// A server's listener.
    pub(in super::super) fn listener(&self) -> ServerArgs {
        let EndArgs { port, bind, cert, key, .. } = &self.ends;
        ServerArgs {
            port: port.or(Some(USUAL_PORT)),
            bind: *bind,
            websocket: Vec::new(),
            cert: cert.clone(),
            key: key.clone(),
            transport: self.settings(),
        }
    }

    /// The summary's TEST INPUTS: the tool's own names in its order.
    pub(in super::super) fn inputs(&self) -> Vec<(&'static str, String)> {
        let settings = self.settings();
        let usual = |value: Option<u32>| match value {
            Some(0) | None => "(use default)".to_owned(),
            Some(bytes) => format!("{bytes} bytes"),
        };
        let kind = match (self.is_encrypted() || self.ends.cert.is_some(), self.is_websocket()) {
            (true, true) => "encrypted, websocket",
            (true, false) => "encrypted",
            (false, true) => "websocket",
            (false, false) => "socket",
        };
        let reflecting = |text: String| if self.reflect_msgs { "0 (reflecting)".to_owned() } else { text };
        let client = self.client().server.unwrap_or_default();
        let (host, port) = client.rsplit_once(':').unwrap_or((&client, ""));
        let rate = if self.unpaced { "unpaced".to_owned() } else { self.msg_rate.to_string() };
        let mut inputs = vec![
            ("Runtime", format!("{} sec", self.run_time().as_secs_f64())),
            ("Connection Type", kind.to_owned()),
        ];
        inputs.extend(match self.end() {
            End::Server => [
                ("Hostname", self.ends.bind.map_or_else(|| "127.0.0.1".to_owned(), |bind| bind.to_string())),
                ("Port", self.ends.port.unwrap_or(USUAL_PORT).to_string()),
            ],
            End::Client => [("Hostname", host.to_owned()), ("Port", port.to_owned())],
        });
        if let Some(protocols) = self.protocols() {
            let names: Vec<&str> = protocols.iter().map(|protocol| protocol.name()).collect();
            inputs.push(("WebSocket protocols", names.join(", ")));
        }
        inputs.extend([
            ("App Type", if self.end() == End::Server { "server" } else { "client" }.to_owned()),
            ("Thread List", self.threads.shown()),
            ("Busy Read", yes(self.busy_read)),
            ("Msg Size", self.msg_size.to_string()),
            ("Msg Rate", reflecting(rate)),
            ("Latency Msg Rate", reflecting(self.stamps().to_string())),
            ("Output Buffers", settings.guaranteed_output_buffers.unwrap_or(OUTPUT_BUFFERS).to_string()),
            ("Max Fragment Size", settings.max_fragment_size.map_or(6_144, u32::from).to_string()),
            ("Send Buffer Size", usual(settings.sys_send_buf_size)),
            ("Recv Buffer Size", usual(settings.sys_recv_buf_size)),
            ("High Water Mark", usual(self.transport.high_water_mark)),
            ("Compression Type", format!("{:?}", settings.compression).to_lowercase()),
            ("Compression Level", settings.compression_level.unwrap_or(COMPRESSION_LEVEL).to_string()),
            ("Tcp_NoDelay", yes(settings.tcp_nodelay.unwrap_or(true))),
            ("Tick Rate", self.pace.tick_rate.to_string()),
            ("Use Direct Writes", yes(self.ends.direct_write)),
            ("Latency Log File", self.results.latency_file()),
            ("Summary File", paths::shown(&self.summary_file()).to_string()),
            ("Stats File", self.stats_file()),
            ("Write Stats Interval", self.results.write_stats_interval.to_string()),
            ("Display Stats", yes(!self.results.no_display_stats)),
            ("Packing", if self.pack > 1 { format!("Yes({} per pack)", self.pack) } else { yes(false) }),
        ]);
        inputs
    }
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;

    fn parsed(words: &str) -> TransportPerfArgs {
        of(words)
    }

    #[test]
    fn defaults_are_transport_perf_s() {
        let args = parsed("");
        args.check().unwrap();
        assert_eq!((args.end(), args.msg_rate, args.msg_size, args.pack), (End::Server, 100_000, 76, 1));
        assert_eq!((args.stamps(), args.pace.tick_rate), (StampRate::PerSecond(10), 1_000));
        assert_eq!((args.run_time(), args.results.write_stats_interval), (Duration::from_secs(300), 5));
        let settings = args.settings();
        assert_eq!(settings.guaranteed_output_buffers, Some(5_000));
        assert_eq!((settings.compression_level, settings.tcp_nodelay), (Some(5), None));
        assert_eq!(parsed("--msg-rate 0").stamps(), StampRate::PerSecond(0));
    }

    #[test]
    fn options_of_the_transport_become_settings() {
        let args = parsed("--tcp-delay --direct-write --send-buf-size 7 --recv-buf-size 8 --output-bufs 9");
        let settings = args.client().transport;
        assert_eq!((settings.tcp_nodelay, settings.high_water_mark), (Some(false), Some(0)));
        assert_eq!((settings.sys_send_buf_size, settings.sys_recv_buf_size), (Some(7), Some(8)));
        assert_eq!(args.listener().transport.guaranteed_output_buffers, Some(9));
        assert_eq!(parsed("--high-water-mark 5").listener().transport.high_water_mark, Some(5));
    }

    #[test]
    fn servers_are_named_as_either_tool_does() {
        for (words, server) in [
            ("client", "localhost:14002"),
            ("client --host feed", "feed:14002"),
            ("--app-type client --host ::1 --port 7", "[::1]:7"),
            ("client --server feed:8", "feed:8"),
        ] {
            assert_eq!(parsed(words).client().server.as_deref(), Some(server));
        }
    }
}
