//! One consumer, provider or NI provider of a file: its connections, services and dictionary.

use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

use tapeline_omm::json;
use tapeline_omm::role::consumer;
use tapeline_wire::rssl::{Compression, ConnectionSettings, ConnectionType, SubProtocol};
use tapeline_wire::tls::TlsVersions;

use super::schema::{GLOBAL, Group, Kind, Setting};
use super::tree::{Fault, Node, names};
use crate::nearest;

/// The settings of one consumer, provider or NI provider of a file. A setting that the file does not have is `None` or empty.
#[derive(Debug, Default)]
pub struct Chosen {
    /// The name of the entry.
    pub name: String,
    /// Entries that are ignored because an earlier entry has the same name: their names and lines.
    pub others: Vec<(String, usize)>,
    /// Settings without effect, with their lines.
    pub idle: Vec<(String, usize)>,
    /// The JSON settings.
    pub json: json::JsonSettings,
    /// The servers to which a client connects, in the order in which they are tried; for a server, the address on which it listens.
    pub hosts: Vec<Host>,
    /// Warm standby servers, to which a consumer connects at the same time; they come before `hosts`.
    pub standby: Option<WarmStandby>,
    /// The services of a provider: number, name, vendor.
    pub services: Vec<(u16, String, Option<String>)>,
    /// The files of field definitions and of enumerations.
    pub dictionary: Option<(PathBuf, PathBuf)>,
    /// `true` if the dictionary comes from the provider.
    pub downloads_dictionary: bool,
    /// `ReconnectMinDelay`.
    pub reconnect_min: Option<Duration>,
    /// `ReconnectMaxDelay`.
    pub reconnect_max: Option<Duration>,
    /// `ReconnectAttemptLimit`.
    pub reconnect_attempts: Option<u32>,
    /// `RequestTimeout`.
    pub request_timeout: Option<Duration>,
    /// `LoginRequestTimeOut`.
    pub login_timeout: Option<Duration>,
    /// `DirectoryRequestTimeOut`.
    pub directory_timeout: Option<Duration>,
    /// `DictionaryRequestTimeOut`.
    pub dictionary_timeout: Option<Duration>,
    /// `PostAckTimeout`.
    pub post_timeout: Option<Duration>,
    /// `MaxOutstandingPosts`.
    pub most_posts: Option<usize>,
    /// `ItemCountHint`.
    pub item_count_hint: Option<usize>,
    /// `ObeyOpenWindow`.
    pub obeys_open_window: Option<bool>,
    /// `EnableRtt`.
    pub takes_round_trips: Option<bool>,
}

/// Servers of which one is active while the others stand by.
#[derive(Debug)]
pub struct WarmStandby {
    /// The servers, at least one: first the initially active one, then the others.
    pub servers: Vec<StandbyServer>,
    /// The unit that fails over.
    pub mode: StandbyMode,
}

/// One server of a [`WarmStandby`].
#[derive(Debug)]
pub struct StandbyServer {
    /// The connection to the server.
    pub host: Host,
    /// The services for which this server is initially the active one.
    pub services: Vec<String>,
}

/// The unit that fails over in a warm standby.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StandbyMode {
    /// A server with all its services: another takes over when its connection is lost.
    #[default]
    Login,
    /// A service: another server takes over also when the service is down.
    Service,
}

impl StandbyMode {
    /// Returns the mode in one word.
    pub const fn what(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Service => "service",
        }
    }
}

impl Chosen {
    /// Turns the servers of a warm standby into hosts, tried one after the other, for a program with one connection at a time. Returns `false`
    /// if there are none.
    pub fn one_after_the_other(&mut self) -> bool {
        let Some(standby) = self.standby.take() else { return false };
        let hosts = standby.servers.into_iter().map(|server| server.host);
        self.hosts = hosts.chain(std::mem::take(&mut self.hosts)).collect();
        true
    }

    /// Returns the settings of a consumer, with the default for each setting that the file does not have.
    pub fn consumer(&self) -> consumer::ConsumerSettings {
        let usual = consumer::ConsumerSettings::default();
        let most = self.reconnect_max.unwrap_or(usual.reconnect.most);
        let first = self.reconnect_min.unwrap_or(usual.reconnect.first);
        consumer::ConsumerSettings {
            downloads_dictionary: self.downloads_dictionary,
            reconnect_attempts: self.reconnect_attempts,
            reconnect: consumer::Backoff { first, most: most.max(first) },
            request_timeout: self.request_timeout.unwrap_or(usual.request_timeout),
            login_timeout: self.login_timeout.unwrap_or(usual.login_timeout),
            directory_timeout: self.directory_timeout.unwrap_or(usual.directory_timeout),
            dictionary_timeout: self.dictionary_timeout.unwrap_or(usual.dictionary_timeout),
            post_timeout: self.post_timeout.unwrap_or(usual.post_timeout),
            most_posts: self.most_posts.unwrap_or(usual.most_posts),
            expected_items: self.item_count_hint.unwrap_or(usual.expected_items),
            obeys_open_window: self.obeys_open_window.unwrap_or(usual.obeys_open_window),
            ..usual
        }
    }
}

/// The settings of one connection.
#[derive(Debug, Default)]
pub struct Host {
    /// Host and port; for a server that listens, the interface before the port may be empty.
    pub server: String,
    /// `true` if the connection uses TLS.
    pub is_encrypted: bool,
    /// The interface from which a client connects, by address or name.
    pub interface: Option<String>,
    /// The certificate and the key of a server, as PEM files.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A file or folder of trusted certificates.
    pub trusted: Option<PathBuf>,
    /// The permitted TLS versions.
    pub tls_versions: TlsVersions,
    /// The transport settings.
    pub settings: ConnectionSettings,
}

impl Host {
    /// Returns the host with default settings.
    #[must_use]
    pub fn plain(server: &str) -> Self {
        Self { server: server.to_owned(), ..Self::default() }
    }
}

/// Returns the settings of the entry of this name, else of the file's default, else of its first entry.
pub(super) fn choose(root: &Node, group: Group, name: Option<&str>) -> Result<Chosen, Fault> {
    let entry = chosen_entry(root, group, name)?;
    let mut chosen = own_settings(entry);
    let mut used = vec![(group, entry)];
    // It was checked that each is there.
    let named = |name, of: Group| entry.text(name).and_then(|name| of.entry(root, name));
    let usual_port = if group == Group::NiProvider { 14_003 } else { 14_002 };
    for name in names(entry.text("ChannelSet").or_else(|| entry.text("Channel"))) {
        if let Some(channel) = Group::Channel.entry(root, name) {
            chosen.hosts.push(client(channel, usual_port)?);
            used.push((Group::Channel, channel));
        }
    }
    chosen.standby = standby(root, entry, usual_port, &mut used, &mut chosen.idle)?;
    if let Some(set) = entry.child("SessionChannelSet")
        && chosen.hosts.is_empty()
        && chosen.standby.is_none()
    {
        let what = format!("only {} says where to connect, and it has no effect", set.name);
        return Err(Fault::new(set.line, what, "give it a Channel or a ChannelSet"));
    }
    if let Some(server) = named("Server", Group::Server) {
        chosen.hosts.push(server_host(server)?);
        used.push((Group::Server, server));
    }
    if let Some(directory) = named("Directory", Group::Directory) {
        chosen.services = services(directory)?;
        used.push((Group::Directory, directory));
    }
    if let Some(dictionary) = named("Dictionary", Group::Dictionary) {
        used.push((Group::Dictionary, dictionary));
        if dictionary.code("DictionaryType") == Some("FileDictionary") {
            let file = |name, usual: &str| PathBuf::from(dictionary.text(name).unwrap_or(usual));
            chosen.dictionary = Some((
                file("RdmFieldDictionaryFileName", "./RDMFieldDictionary"),
                file("EnumTypeDefFileName", "./enumtype.def"),
            ));
        } else {
            chosen.downloads_dictionary = true;
        }
    }
    for (group, entry) in used {
        let same = group.entries(root).filter(|other| other.text("Name") == entry.text("Name"));
        let name = entry.text("Name").unwrap_or_default();
        chosen.others.extend(same.skip(1).map(|other| (name.to_owned(), other.line)));
        idle(group.settings(), entry, &mut chosen.idle);
    }
    for global in root.children.iter().filter(|child| child.name == GLOBAL) {
        chosen.idle.push((global.name.clone(), global.line));
    }
    chosen.idle.sort_by_key(|(_, line)| *line);
    Ok(chosen)
}

/// Returns the entry of this name, else the file's default, else its first entry.
fn chosen_entry<'n>(root: &'n Node, group: Group, name: Option<&str>) -> Result<&'n Node, Fault> {
    let default = || root.child(&group.group())?.text(&group.default());
    let known = || group.entries(root).filter_map(|entry| entry.text("Name")).collect::<Vec<_>>();
    match name.or_else(default) {
        Some(name) => group.entry(root, name).ok_or_else(|| {
            let hint = match nearest(name, &known()) {
                Some(near) => format!("there is {near}"),
                None => format!("there are {}", known().join(", ")),
            };
            Fault::new(root.line, format!("there is no {} called {name}", group.name()), hint)
        }),
        None => group.entries(root).next().ok_or_else(|| {
            let hint = "name it with --config-name, or take another file";
            Fault::new(root.line, format!("there is no {}", group.name()), hint)
        }),
    }
}

/// Returns the settings of an entry itself, without the entries that it references.
fn own_settings(entry: &Node) -> Chosen {
    let milliseconds = |name| entry.number(name).map(Duration::from_millis);
    let count = |name| entry.number(name).and_then(|count| usize::try_from(count).ok());
    let limit = |name| entry.text(name).and_then(|text| text.parse::<u32>().ok());
    let mut json = json::JsonSettings::default();
    json.expand_enumerations = entry.flag("JsonExpandedEnumFields").unwrap_or(json.expand_enumerations);
    json.catch_unknown_fields = entry.flag("CatchUnknownJsonFids").unwrap_or(json.catch_unknown_fields);
    json.catch_unknown_members = entry.flag("CatchUnknownJsonKeys").unwrap_or(json.catch_unknown_members);
    json.default_service = entry.number("DefaultServiceID").and_then(|id| u16::try_from(id).ok());
    Chosen {
        name: entry.text("Name").unwrap_or_default().to_owned(),
        json,
        reconnect_min: milliseconds("ReconnectMinDelay"),
        reconnect_max: milliseconds("ReconnectMaxDelay"),
        reconnect_attempts: limit("ReconnectAttemptLimit"),
        request_timeout: milliseconds("RequestTimeout"),
        login_timeout: milliseconds("LoginRequestTimeOut"),
        directory_timeout: milliseconds("DirectoryRequestTimeOut"),
        dictionary_timeout: milliseconds("DictionaryRequestTimeOut"),
        post_timeout: milliseconds("PostAckTimeout"),
        most_posts: count("MaxOutstandingPosts"),
        item_count_hint: count("ItemCountHint"),
        obeys_open_window: entry.number("ObeyOpenWindow").map(|obeys| obeys != 0),
        takes_round_trips: entry.number("EnableRtt").map(|takes| takes != 0),
        ..Chosen::default()
    }
}

/// Collects the settings of a block that have no effect.
fn idle(settings: &[Setting], block: &Node, found: &mut Vec<(String, usize)>) {
    for child in &block.children {
        match settings.iter().find(|setting| setting.name == child.name) {
            Some(Setting { has_effect: false, .. }) => found.push((child.name.clone(), child.line)),
            Some(Setting { kind: Kind::Block(settings), .. }) => idle(settings, child, found),
            _ => {}
        }
    }
}

/// Returns the first of the groups of servers. The others, which EMA tries when all servers of the first are lost, are
/// recorded as unused.
fn standby<'n>(
    root: &'n Node,
    entry: &'n Node,
    usual_port: u16,
    used: &mut Vec<(Group, &'n Node)>,
    unused: &mut Vec<(String, usize)>,
) -> Result<Option<WarmStandby>, Fault> {
    let Some(set) = entry.child("WarmStandbyChannelSet") else { return Ok(None) };
    let mut groups = names(set.value.as_deref());
    // It was checked that each is there.
    let Some(group) = groups.next().and_then(|name| Group::WarmStandby.entry(root, name)) else {
        return Ok(None);
    };
    unused.extend(groups.map(|name| (format!("WarmStandbyChannel {name}"), set.line)));
    used.push((Group::WarmStandby, group));
    let name = group.text("Name").unwrap_or_default();
    let Some(starting) = group.text("StartingActiveServer") else {
        let what = format!("{name} does not say which server is active at first");
        return Err(Fault::new(group.line, what, "give it a StartingActiveServer"));
    };
    let mut servers = Vec::new();
    for name in std::iter::once(starting).chain(names(group.text("StandbyServerSet"))) {
        let Some(info) = Group::WarmStandbyServer.entry(root, name) else { continue };
        let Some(channel) = info.text("Channel").and_then(|name| Group::Channel.entry(root, name)) else {
            let what = format!("{name} does not say how to connect to it");
            return Err(Fault::new(info.line, what, "give it a Channel"));
        };
        let services = names(info.text("PerServiceNameSet")).map(str::to_owned).collect();
        servers.push(StandbyServer { host: client(channel, usual_port)?, services });
        used.extend([(Group::WarmStandbyServer, info), (Group::Channel, channel)]);
    }
    let is_of_service =
        group.code("WarmStandbyMode").is_some_and(|mode| mode.eq_ignore_ascii_case("SERVICE_BASED"));
    let mode = if is_of_service { StandbyMode::Service } else { StandbyMode::Login };
    Ok(Some(WarmStandby { servers, mode }))
}

fn client(channel: &Node, usual_port: u16) -> Result<Host, Fault> {
    let channel_type = channel.code("ChannelType").unwrap_or("RSSL_SOCKET");
    let is_encrypted = channel_type == "RSSL_ENCRYPTED";
    let inner = if is_encrypted {
        channel.code("EncryptedProtocolType").unwrap_or("RSSL_SOCKET")
    } else {
        channel_type
    };
    if !matches!(inner, "RSSL_SOCKET" | "RSSL_WEBSOCKET") {
        let line = channel.child("ChannelType").map_or(channel.line, |node| node.line);
        let what = format!("a connection of type {inner} cannot be made");
        return Err(Fault::new(line, what, "use RSSL_SOCKET, RSSL_ENCRYPTED or RSSL_WEBSOCKET"));
    }
    if channel.flag("EnableSessionManagement") == Some(true) && channel.text("Host").is_none() {
        let line = channel.child("EnableSessionManagement").map_or(channel.line, |node| node.line);
        let what = "hosts cannot be looked up by a session's location";
        return Err(Fault::new(line, what, "give the channel a Host and a Port"));
    }
    let mut settings = ConnectionSettings::default();
    transport(channel, &mut settings)?;
    if inner == "RSSL_WEBSOCKET" {
        settings.connection_type = ConnectionType::WebSocket;
    }
    let host = channel.text("Host").unwrap_or("localhost");
    // EMA writes an IPv6 address without brackets.
    let host = if host.parse::<Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() };
    let port = channel.number("Port").unwrap_or(u64::from(usual_port));
    Ok(Host {
        is_encrypted,
        interface: channel.text("InterfaceName").map(str::to_owned),
        trusted: channel.text("OpenSSLCAStore").map(PathBuf::from),
        settings,
        ..Host::plain(&format!("{host}:{port}"))
    })
}

fn server_host(server: &Node) -> Result<Host, Fault> {
    // A server accepts both handshakes on one port.
    let is_encrypted = server.code("ServerType") == Some("RSSL_ENCRYPTED");
    let mut settings = ConnectionSettings {
        guaranteed_output_buffers: 200,
        connection_ping_timeout: 60,
        ..ConnectionSettings::default()
    };
    transport(server, &mut settings)?;
    let interface = server.text("InterfaceName").unwrap_or_default();
    let file = |name| server.text(name).map(PathBuf::from);
    // An empty port is the program's default port.
    let address = format!("{interface}:{}", server.text("Port").unwrap_or_default());
    let certificate = file("ServerCert").zip(file("ServerPrivateKey"));
    Ok(Host { is_encrypted, certificate, settings, ..Host::plain(&address) })
}

/// The settings of a connection that have the same name at both ends.
fn transport(node: &Node, settings: &mut ConnectionSettings) -> Result<(), Fault> {
    let number = |name| node.number(name).map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let set = |to: &mut u32, name| *to = number(name).unwrap_or(*to);
    set(&mut settings.guaranteed_output_buffers, "GuaranteedOutputBuffers");
    set(&mut settings.num_input_buffers, "NumInputBuffers");
    set(&mut settings.high_water_mark, "HighWaterMark");
    set(&mut settings.sys_send_buf_size, "SysSendBufSize");
    set(&mut settings.sys_recv_buf_size, "SysRecvBufSize");
    settings.tcp_nodelay = node.flag("TcpNodelay").unwrap_or(settings.tcp_nodelay);
    settings.compression_type = match node.code("CompressionType").map(str::to_ascii_lowercase).as_deref() {
        Some("zlib") => Compression::Zlib,
        Some("lz4") => Compression::Lz4,
        _ => Compression::None,
    };
    settings.compression_threshold = number("CompressionThreshold").or(settings.compression_threshold);
    // EMA's files have milliseconds; the wire format has whole seconds.
    let seconds = |to: &mut u8, name| {
        *to = node.number(name).map_or(*to, |ms| u8::try_from(ms.div_ceil(1_000)).unwrap_or(u8::MAX));
    };
    seconds(&mut settings.connection_ping_timeout, "ConnectionPingTimeout");
    seconds(&mut settings.connection_min_ping_timeout, "ConnectionMinPingTimeout");
    if let Some(seconds) = node.number("InitializationTimeout") {
        settings.initialization_timeout_ms = seconds.saturating_mul(1_000);
    }
    if let Some(bytes) = node.number("MaxFragmentSize").and_then(|bytes| u16::try_from(bytes).ok()) {
        settings.max_fragment_size = bytes;
    }
    if let Some(names) = node.child("WsProtocols") {
        let text = names.value.as_deref().unwrap_or_default();
        let protocol = |name: &str| match name {
            "rssl.rwf" => Ok(SubProtocol::Rwf),
            "tr_json2" => Ok(SubProtocol::TrJson2),
            "rssl.json.v2" => Ok(SubProtocol::RsslJsonV2),
            _ => {
                let hint = "there are rssl.rwf, tr_json2 and rssl.json.v2";
                Err(Fault::new(names.line, format!("there is no sub-protocol {name}"), hint))
            }
        };
        let names = text.split([',', ' ']).filter(|name| !name.is_empty());
        settings.ws_protocols = names.map(protocol).collect::<Result<_, _>>()?;
    }
    Ok(())
}

fn services(directory: &Node) -> Result<Vec<(u16, String, Option<String>)>, Fault> {
    let mut services: Vec<(u16, String, Option<String>)> = Vec::new();
    for service in directory.children.iter().filter(|child| child.name == "Service") {
        let Some(name) = service.text("Name") else {
            return Err(Fault::new(service.line, "a Service has no name", "give it a Name"));
        };
        let info = service.child("InfoFilter");
        let id = info.and_then(|info| info.number("ServiceId")).and_then(|id| u16::try_from(id).ok());
        let id = id.unwrap_or(services.len() as u16 + 1);
        if let Some((_, other, _)) = services.iter().find(|(other, ..)| *other == id) {
            let what = format!("{name} has the number {id}, which {other} has too");
            return Err(Fault::new(service.line, what, "give it another ServiceId"));
        }
        let vendor = info.and_then(|info| info.text("Vendor")).map(str::to_owned);
        services.push((id, name.to_owned(), vendor));
    }
    Ok(services)
}
