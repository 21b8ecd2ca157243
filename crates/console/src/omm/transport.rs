//! Where and how to connect or listen: options, and the settings that they become.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use tapeline_client::ema_config::{Chosen, Config, Group, Host};
use tapeline_client::endpoint::{Endpoint, own_address};
use tapeline_wire::rssl::{Compression, ConnectionSettings, ConnectionType, SubProtocol};
use tapeline_wire::tls::TlsVersions;

use crate::failure::Hinted;
use crate::log;
use crate::paths::{self, FilePath};

/// The compression of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CompressionArg {
    /// No compression
    #[default]
    None,
    /// One zlib stream for each direction; JSON by permessage-deflate
    Zlib,
    /// One LZ4 block for each payload
    Lz4,
}

/// The sub-protocol of a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WebSocketArg {
    /// rssl.rwf: RSSL as on TCP
    #[value(alias = "rssl.rwf")]
    Rwf,
    /// tr_json2: simplified JSON
    #[value(alias = "tr_json2")]
    Json,
    /// rssl.json.v2: simplified JSON, under EMA's name
    #[value(alias = "rssl.json.v2")]
    JsonV2,
}

impl WebSocketArg {
    /// Those of several, in their order; `None` if there are none.
    fn protocols(several: &[Self]) -> Option<Vec<SubProtocol>> {
        let protocol = |argument: &Self| match argument {
            Self::Rwf => SubProtocol::Rwf,
            Self::Json => SubProtocol::TrJson2,
            Self::JsonV2 => SubProtocol::RsslJsonV2,
        };
        (!several.is_empty()).then(|| several.iter().map(protocol).collect())
    }
}

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsVersionArg {
    /// TLS 1.2
    #[value(name = "1.2")]
    V1_2,
    /// TLS 1.3
    #[value(name = "1.3")]
    V1_3,
}

/// Settings of one end of a connection, under the names that EMA gives them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
pub struct TransportArgs {
    /// Compression to request; a server with compression accepts the client's choice
    #[arg(long, alias = "compression-type", value_enum, default_value_t, value_name = "TYPE")]
    pub compression: CompressionArg,
    /// Compression level of zlib, 0 to 9; a client uses it only if its server sends no level [default: 6]
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=9))]
    pub compression_level: Option<u8>,
    /// Maximum payload of a frame in bytes; longer messages are fragmented
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(256..=65_000))]
    pub max_fragment_size: Option<u16>,
    /// Maximum number of queued output frames
    #[arg(long, alias = "output-bufs", value_name = "COUNT", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub guaranteed_output_buffers: Option<u32>,
    /// Maximum number of queued input frames
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub num_input_buffers: Option<u32>,
    /// Flush when more than this many bytes are queued
    #[arg(long, value_name = "BYTES")]
    pub high_water_mark: Option<u32>,
    /// SO_SNDBUF in bytes; 0 leaves it to the system
    #[arg(long, alias = "send-buf-size", value_name = "BYTES")]
    pub sys_send_buf_size: Option<u32>,
    /// SO_RCVBUF in bytes; 0 leaves it to the system
    #[arg(long, alias = "recv-buf-size", value_name = "BYTES")]
    pub sys_recv_buf_size: Option<u32>,
    /// TCP_NODELAY: send flushed data at once [default: true]
    #[arg(long, value_name = "BOOL")]
    pub tcp_nodelay: Option<bool>,
    /// Close a connection after this many seconds without input
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u8).range(1..=255))]
    connection_ping_timeout: Option<u8>,
    /// Accepted TLS versions; the newest common version is used [default: both]
    #[arg(long, value_enum, value_name = "VERSIONS", value_delimiter = ',')]
    tls_version: Vec<TlsVersionArg>,
}

impl TransportArgs {
    /// The settings that these options change.
    pub fn apply(&self, settings: &mut ConnectionSettings) {
        match self.compression {
            CompressionArg::None => {}
            CompressionArg::Zlib => settings.compression_type = Compression::Zlib,
            CompressionArg::Lz4 => settings.compression_type = Compression::Lz4,
        }
        fn set<T: Copy>(to: &mut T, from: Option<T>) {
            *to = from.unwrap_or(*to);
        }
        set(&mut settings.guaranteed_output_buffers, self.guaranteed_output_buffers);
        set(&mut settings.num_input_buffers, self.num_input_buffers);
        set(&mut settings.high_water_mark, self.high_water_mark);
        set(&mut settings.sys_send_buf_size, self.sys_send_buf_size);
        set(&mut settings.sys_recv_buf_size, self.sys_recv_buf_size);
        set(&mut settings.max_fragment_size, self.max_fragment_size);
        set(&mut settings.tcp_nodelay, self.tcp_nodelay);
        set(&mut settings.compression_level, self.compression_level);
        set(&mut settings.connection_ping_timeout, self.connection_ping_timeout);
    }

    fn tls_versions(&self) -> TlsVersions {
        let has = |version| self.tls_version.contains(&version);
        match (has(TlsVersionArg::V1_2), has(TlsVersionArg::V1_3)) {
            (true, false) => TlsVersions::V1_2,
            (false, true) => TlsVersions::V1_3,
            _ => TlsVersions::Both,
        }
    }

    /// # Errors
    /// Versions of TLS are named, and there is none.
    fn check_plain(&self, hint: &'static str) -> Result<(), Hinted> {
        match self.tls_version.is_empty() {
            true => Ok(()),
            false => Err(Hinted::of_options("--tls-version has no effect without TLS", hint)),
        }
    }
}

/// The configuration file, and the entry to use.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// EmaConfig.xml, or the same settings in TOML; command-line options take precedence
    #[arg(long, value_name = "FILE")]
    config: Option<FilePath>,
    /// Consumer or provider of the file to use [default: the file's default]
    #[arg(long, value_name = "NAME", requires = "config")]
    config_name: Option<String>,
}

impl ConfigArgs {
    /// What the file says, if there is one.
    pub fn load(&self, group: Group) -> anyhow::Result<Chosen> {
        let Some(path) = &self.config else { return Ok(Chosen::default()) };
        let chosen = Config::load(paths::short(path))?.choose(group, self.config_name.as_deref())?;
        log::note(format_args!("the settings are those of {} in {}", chosen.name, paths::shown(&path)));
        say_idle(&chosen, path);
        Ok(chosen)
    }

    /// What the file calls the settings of further ones of so many threads, by their places: beside `NAME_1`, or `NAME` alone,
    /// `NAME_2` of the second. Nothing is of a thread by its number where no name is given.
    pub fn further(&self, group: Group, threads: usize) -> anyhow::Result<Vec<(usize, String)>> {
        let (Some(path), Some(name)) = (&self.config, &self.config_name) else { return Ok(Vec::new()) };
        let config = Config::load(paths::short(path))?;
        let base = name.strip_suffix("_1").unwrap_or(name);
        let of = |place: usize| {
            // LSEG's tools put the number behind any name that they are given.
            let names = [format!("{base}_{}", place + 1), format!("{name}{}", place + 1)];
            Some((place, names.into_iter().find(|name| config.has(group, name))?))
        };
        Ok((1..threads).filter_map(of).collect())
    }

    /// The settings of one of [`Self::further`].
    pub fn load_further(&self, group: Group, place: usize, name: &str) -> anyhow::Result<Chosen> {
        let Some(path) = &self.config else { return Ok(Chosen::default()) };
        let chosen = Config::load(paths::short(path))?.choose(group, Some(name))?;
        log::note(format_args!(
            "connection {} uses the settings of {name}; all else is as for the first one",
            place + 1
        ));
        say_idle(&chosen, path);
        Ok(chosen)
    }
}

/// Says what of an entry does not count.
fn say_idle(chosen: &Chosen, path: &Path) {
    let file = paths::shown(&path);
    for (name, line) in &chosen.others {
        log::note(format_args!("{file}:{line}: another {name} is ignored: the first one counts"));
    }
    if !chosen.idle.is_empty() {
        let idle: Vec<String> =
            chosen.idle.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
        log::warning(format_args!("{file}: settings without an effect here: {}", idle.join(", ")));
    }
}

/// The server to connect to.
#[derive(Clone, Debug, Args)]
pub struct ClientArgs {
    /// Host and port of the server [default: localhost:14002, for NI providers localhost:14003]
    #[arg(long, value_name = "HOST:PORT")]
    pub server: Option<String>,
    /// Use TLS, and check the server's certificate
    #[arg(long)]
    pub tls: bool,
    /// Certificates to trust, as PEM, instead of the system's
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub ca: Option<FilePath>,
    /// Interface to connect from, by address or name [default: chosen by the machine's routes]
    #[arg(long, value_name = "INTERFACE", value_parser = own_address)]
    pub interface: Option<IpAddr>,
    /// Connect over a WebSocket with this sub-protocol; of several, the first that the server supports
    #[arg(long, value_enum, value_name = "PROTOCOLS", value_delimiter = ',')]
    pub websocket: Vec<WebSocketArg>,
    /// Settings of the connection.
    #[command(flatten)]
    pub transport: TransportArgs,
}

impl ClientArgs {
    /// The servers to try, one after the other: that of the command line, or those of the configuration, or the usual one.
    pub fn endpoints(&self, hosts: Vec<Host>, usual: &str) -> anyhow::Result<Vec<Endpoint>> {
        let plain = || Host::plain(usual);
        match &self.server {
            Some(server) => {
                let host = hosts.into_iter().next().unwrap_or_else(plain);
                Ok(vec![self.endpoint(Host { server: server.clone(), ..host })?])
            }
            None if hosts.is_empty() => Ok(vec![self.endpoint(plain())?]),
            None => hosts.into_iter().map(|host| self.endpoint(host)).collect(),
        }
    }

    /// Where a host is, and how to speak to it.
    pub fn endpoint(&self, mut host: Host) -> anyhow::Result<Endpoint> {
        self.transport.apply(&mut host.settings);
        if let Some(interface) = self.interface {
            host.interface = Some(interface.to_string());
        }
        host.is_encrypted |= self.tls;
        if host.is_encrypted {
            host.tls_versions = self.transport.tls_versions();
            host.trusted = self.ca.as_deref().or(host.trusted.as_deref()).map(as_shown);
        } else {
            self.transport.check_plain("--tls encrypts the connection")?;
        }
        if let Some(protocols) = WebSocketArg::protocols(&self.websocket) {
            host.settings.connection_type = ConnectionType::WebSocket;
            host.settings.ws_protocols = protocols;
        }
        Ok(host.endpoint()?)
    }
}

/// The address to listen on.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// Port to listen on; 0 takes a free port and prints it [default: 14002, for NI providers 14003]
    #[arg(long)]
    pub port: Option<u16>,
    /// Address or interface name to listen on, such as 0.0.0.0 for IPv4 or :: for both families [default: 127.0.0.1, which only
    /// this machine can reach]
    #[arg(long, value_name = "ADDRESS", value_parser = own_address)]
    pub bind: Option<IpAddr>,
    /// Accepted WebSocket sub-protocols, in order of preference [default: all]
    #[arg(long, value_enum, value_name = "PROTOCOLS", value_delimiter = ',')]
    pub websocket: Vec<WebSocketArg>,
    /// Use TLS with this certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<FilePath>,
    /// The certificate's private key, as PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<FilePath>,
    /// Settings of the connection.
    #[command(flatten)]
    pub transport: TransportArgs,
}

impl ServerArgs {
    /// Where to listen, and the settings for every connection: of the command line, or of the configuration, or the usual
    /// ones.
    pub fn listen(
        &self,
        hosts: Vec<Host>,
        usual_port: u16,
    ) -> anyhow::Result<(SocketAddr, Arc<ConnectionSettings>)> {
        let mut host = hosts.into_iter().next().unwrap_or_else(|| {
            // A provider says much to many: as many buffers, and as patient, as EMA's.
            let mut host = Host::plain("");
            (host.settings.guaranteed_output_buffers, host.settings.connection_ping_timeout) = (200, 60);
            host
        });
        let (interface, port) = host.server.rsplit_once(':').unwrap_or_default();
        let interface = self.bind.map_or(interface.to_owned(), |bind| bind.to_string());
        let port = self.port.map_or(port.to_owned(), |port| port.to_string());
        host.server = format!("{interface}:{port}");
        self.transport.apply(&mut host.settings);
        if let Some(protocols) = WebSocketArg::protocols(&self.websocket) {
            host.settings.ws_protocols = protocols;
        }
        let files = self.cert.as_deref().zip(self.key.as_deref());
        let of_host = host.certificate.as_ref().map(|(cert, key)| (cert.as_path(), key.as_path()));
        host.certificate = files.or(of_host).map(|(cert, key)| (as_shown(cert), as_shown(key)));
        if host.certificate.is_some() {
            host.tls_versions = self.transport.tls_versions();
        } else if host.is_encrypted {
            let hint = "name them with --cert and --key, or as ServerCert and ServerPrivateKey";
            return Err(Hinted::new("an encrypted server needs a certificate and a key", hint).into());
        } else {
            self.transport.check_plain("--cert and --key encrypt a server's connections")?;
        }
        Ok(host.listen(usual_port)?)
    }
}

/// A file as errors are to name it.
fn as_shown(path: &Path) -> PathBuf {
    paths::short(&paths::absolute(path)).to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        transport: TransportArgs,
    }

    /// The settings that came of a command line.
    fn settings(line: &str) -> ConnectionSettings {
        let program = Program::parse_from(std::iter::once("program").chain(line.split_whitespace()));
        let mut settings = ConnectionSettings::default();
        program.transport.apply(&mut settings);
        settings
    }

    #[test]
    fn each_option_changes_its_setting_alone() {
        let usual = ConnectionSettings::default();
        assert_eq!(settings(""), usual);
        let with = |change: fn(&mut ConnectionSettings)| {
            let mut settings = usual.clone();
            change(&mut settings);
            settings
        };
        for (line, expected) in [
            ("--compression lz4", with(|settings| settings.compression_type = Compression::Lz4)),
            ("--compression-level 2", with(|settings| settings.compression_level = 2)),
            ("--max-fragment-size 300", with(|settings| settings.max_fragment_size = 300)),
            ("--guaranteed-output-buffers 7", with(|settings| settings.guaranteed_output_buffers = 7)),
            ("--num-input-buffers 8", with(|settings| settings.num_input_buffers = 8)),
            ("--high-water-mark 0", with(|settings| settings.high_water_mark = 0)),
            ("--sys-send-buf-size 9", with(|settings| settings.sys_send_buf_size = 9)),
            ("--sys-recv-buf-size 10", with(|settings| settings.sys_recv_buf_size = 10)),
            ("--tcp-nodelay false", with(|settings| settings.tcp_nodelay = false)),
            ("--connection-ping-timeout 11", with(|settings| settings.connection_ping_timeout = 11)),
        ] {
            assert_eq!(settings(line), expected, "{line}");
            assert_ne!(settings(line), usual, "{line}");
        }
    }
}
