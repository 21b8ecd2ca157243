//! `[bridge]`: the plants below, and `[[upstream]]`: the plant above.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_feed::history::Limits;
use tapeline_feed::moldudp64::retransmit::ServerSettings;
use tapeline_node::bridge::{BridgeConfig, BridgeLine, TcpLineOptions};
use tapeline_node::config::STALE_AFTER;
use tapeline_node::image_server::ImageServerConfig;
use tapeline_node::upstream::{RECEIVE_BUFFER, TlsToPlant, UpstreamConfig, UpstreamLine};
use tapeline_plant::bridge::{FollowerSettings, PackerSettings, PlantId};
use tapeline_plant::demand::FarPolicy;
use tapeline_wire::tls::{Tls, TlsVersions};
use tapeline_wire::udp::SendOptions;
use toml::Spanned;

use super::aeron::RawChannel;
use super::source::Span;
use super::{RawLine, Source};

/// The port of a bridge: re-requests over UDP, catching up over TCP.
const USUAL_PORT: u16 = 14_040;
/// The default size of a datagram: with its headers it fits in an Ethernet frame, with room for tunnels.
const PACKET_BYTES: usize = 1_400;
/// That of a bridge with a line over Aeron: with its header of 32 bytes it fits in the usual `mtu` of a channel, and is not split.
const AERON_PACKET_BYTES: usize = 1_376;
/// A datagram must hold a tick of a usual length.
const LEAST_PACKET_BYTES: usize = 256;
/// The longest payload of UDP over IPv4.
const MOST_PACKET_BYTES: usize = 65_507;
/// The default memory of ticks for re-requests: about a second of a million ticks.
const HISTORY_BYTES: usize = 256 << 20;
/// Bytes of history for each tick that it may hold: ticks are rarely shorter.
const HISTORY_TICK_BYTES: usize = 128;
/// The default memory of images for plants that start.
const IMAGE_BYTES: usize = 1 << 30;
/// Defaults of the catch-up server: plants at once, and bytes per second of each.
const CATCHING_UP: usize = 8;
const CATCH_UP_RATE: u64 = 100_000_000;
/// Bytes per second of answers to re-requests: of one plant, and of all.
const ANSWER_RATES: (u64, u64) = (100_000_000, 400_000_000);
const MAX_LINES: usize = 8;
const MAX_SERVERS: usize = 8;
/// Default number of plants that follow one line over TCP, and the most.
const FOLLOWERS: usize = 8;
const MAX_FOLLOWERS: usize = 1_000;
/// Default number of items that one plant below may have open, and the most.
const DEMANDED: usize = 10_000;
const MAX_DEMANDED: usize = 10_000_000;
const MAX_TICKS: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBridge {
    plant: Spanned<String>,
    bind: Option<Spanned<String>>,
    port: Option<u16>,
    packet: Option<Spanned<usize>>,
    history: Option<Spanned<String>>,
    images: Option<Spanned<String>>,
    max_catching_up: Option<Spanned<usize>>,
    catch_up_rate: Option<Spanned<String>>,
    cert: Option<Spanned<PathBuf>>,
    key: Option<Spanned<PathBuf>>,
    client_ca: Option<Spanned<PathBuf>>,
    demands: Option<Spanned<String>>,
    max_demanded: Option<Spanned<usize>>,
    #[serde(default)]
    line: Vec<Spanned<RawBridgeLine>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBridgeLine {
    address: Option<Spanned<String>>,
    interface: Option<Spanned<String>>,
    ttl: Option<Spanned<u8>>,
    aeron: Option<Spanned<String>>,
    stream: Option<Spanned<i32>>,
    tcp: Option<Spanned<String>>,
    max_followers: Option<Spanned<usize>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawUpstreamLine {
    name: Option<Spanned<String>>,
    address: Option<Spanned<String>>,
    interface: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
    aeron: Option<Spanned<String>>,
    stream: Option<Spanned<i32>>,
    tcp: Option<Spanned<String>>,
}

/// An address, or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawUpstream {
    name: Option<String>,
    plant: Spanned<String>,
    server: Spanned<OneOrMore>,
    tls: Option<bool>,
    ca: Option<Spanned<PathBuf>>,
    server_name: Option<Spanned<String>>,
    cert: Option<Spanned<PathBuf>>,
    key: Option<Spanned<PathBuf>>,
    requests: Option<Vec<Spanned<String>>>,
    start: Option<Spanned<String>>,
    stale_after: Option<Spanned<String>>,
    reorder_time: Option<Spanned<String>>,
    reorder_ticks: Option<Spanned<usize>>,
    recovery_time: Option<Spanned<String>>,
    receive_buffer: Option<Spanned<String>>,
    #[serde(default)]
    line: Vec<Spanned<RawUpstreamLine>>,
}

impl Source<'_> {
    /// Checks the bridge to plants below; `images` has the services and items of the images that it keeps.
    pub(super) fn bridge(&self, raw: &RawBridge, images: ImageServerConfig) -> Option<BridgeConfig> {
        let plant = self.plant_id(&raw.plant);
        let (span, count) = (raw.plant.span(), raw.line.len());
        if !(1..=MAX_LINES).contains(&count) {
            let what = format!("[bridge] has {count} lines; 1 to {MAX_LINES} are expected");
            self.fault(span, what, "a line is a table [[bridge.line]] with the address to which it sends");
        }
        let (over_tcp, of_datagrams): (Vec<_>, Vec<_>) =
            raw.line.iter().partition(|line| line.get_ref().tcp.is_some());
        let lines: Vec<_> = of_datagrams.into_iter().filter_map(|line| self.bridge_line(line)).collect();
        let tcp_lines = over_tcp.into_iter().filter_map(|line| self.tcp_line(line.get_ref())).collect();
        let has_aeron = raw.line.iter().any(|line| line.get_ref().aeron.is_some());
        let usual = if has_aeron { AERON_PACKET_BYTES } else { PACKET_BYTES };
        let packet_bytes = raw.packet.as_ref().map_or(usual, |packet| *packet.get_ref());
        if let Some(packet) = &raw.packet
            && !(LEAST_PACKET_BYTES..=MOST_PACKET_BYTES).contains(&packet_bytes)
        {
            let what = format!(
                "packet is {packet_bytes} bytes; {LEAST_PACKET_BYTES} to {MOST_PACKET_BYTES} are expected"
            );
            self.fault(
                packet.span(),
                what,
                "1400 is the default: the network's MTU, less 28 bytes of headers and some for tunnels",
            );
        }
        let address = self.listens(&raw.bind, raw.port, USUAL_PORT);
        let requests = match address.ip() {
            IpAddr::V4(ip) => SocketAddrV4::new(ip, address.port()),
            IpAddr::V6(ip) if ip.is_unspecified() => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, address.port()),
            IpAddr::V6(_) => {
                let bind = raw.bind.as_ref().map_or_else(|| self.end(), Spanned::span);
                self.fault(bind, "re-requests travel over IPv4", "such as bind = \"10.0.0.5\"");
                return None;
            }
        };
        let history = self.some_size(&raw.history, HISTORY_BYTES);
        let image_bytes = self.size_or(&raw.images, IMAGE_BYTES);
        let hint = "max_catching_up = 8 is the default; more plants wait";
        let most = self.number("max_catching_up", &raw.max_catching_up, CATCHING_UP, 1_000, hint);
        let hint =
            "\"items\" lets plants below demand items of this plant's services, \"posts\" lets them post too";
        let known = [("refuse", FarPolicy::Refuse), ("items", FarPolicy::Items), ("posts", FarPolicy::Posts)];
        let demands = self.word("demands", &raw.demands, known, hint);
        if let Some(given) = raw.demands.as_ref().filter(|_| demands != FarPolicy::Refuse && image_bytes == 0)
        {
            let what = "demands is set, and images is \"0\"";
            self.fault(given.span(), what, "plants below learn from the images which services are up");
        }
        let hint = "max_demanded = 10000 is the default: open items of one plant below";
        let max_demanded = self.number("max_demanded", &raw.max_demanded, DEMANDED, MAX_DEMANDED, hint);
        let rate = self.some_size(&raw.catch_up_rate, CATCH_UP_RATE as usize);
        Some(BridgeConfig {
            plant: plant?,
            lines,
            tcp_lines,
            tls: self.or(self.tls_for_plants(raw), None),
            requests,
            catch_up: address,
            packer: PackerSettings {
                packet_bytes,
                history: Limits { messages: (history / HISTORY_TICK_BYTES).max(1_024), bytes: history },
                answers: ServerSettings {
                    packet_bytes,
                    requester_bytes_per_second: ANSWER_RATES.0,
                    bytes_per_second: ANSWER_RATES.1,
                    ..ServerSettings::default()
                },
            },
            max_catching_up: self.or(most, CATCHING_UP),
            catch_up_bytes_per_second: rate as u64,
            images: (image_bytes > 0).then_some(ImageServerConfig { bytes: image_bytes, ..images }),
            term: None,
            demands,
            max_demanded: self.or(max_demanded, DEMANDED),
        })
    }

    /// Checks the plant above.
    pub(super) fn upstream(&self, raw: RawUpstream) -> Option<UpstreamConfig> {
        let plant = self.plant_id(&raw.plant);
        let servers = self.servers(&raw.server);
        let tls = self.tls_to_plant(&raw);
        // A line over TCP sends again by itself what was lost with a connection.
        let all_over_tcp = raw.line.iter().all(|line| line.get_ref().tcp.is_some());
        let requests = match &raw.requests {
            None if all_over_tcp => Some(Vec::new()),
            None => servers.clone(),
            Some(servers) => {
                servers.iter().map(|server| self.server(server.get_ref(), server.span())).collect()
            }
        };
        let count = raw.line.len();
        if !(1..=MAX_LINES).contains(&count) {
            let what = format!("[[upstream]] has {count} lines; 1 to {MAX_LINES} are expected");
            let hint = "a line is a table [[upstream.line]] with the address of a [[bridge.line]] of the plant above";
            self.fault(raw.plant.span(), what, hint);
        }
        let lines: Vec<_> =
            raw.line.into_iter().enumerate().filter_map(|(at, line)| self.upstream_line(at, line)).collect();
        let usual = FollowerSettings::default();
        let ns = |given: Option<Duration>, usual: u64| given.map_or(usual, |time| time.as_nanos() as u64);
        let hint = "reorder_time = \"5ms\" is the default: one line may be later than the other by that much";
        let reorder_ns = ns(self.time(&raw.reorder_time, arguments::duration, hint), usual.reorder_ns);
        let hint = "recovery_time = \"1s\" is the default: then the catch-up server is asked";
        // Without re-requests nothing comes in that time, and the lines go on where the catch-up server ends.
        let has_requests = !all_over_tcp || raw.requests.is_some();
        let usual_ns = if has_requests { usual.recovery_ns } else { reorder_ns.max(1) };
        let recovery_ns = ns(self.time(&raw.recovery_time, arguments::some_duration, hint), usual_ns);
        let hint = "reorder_ticks = 32768 is the default; the memory is taken when the plant goes live";
        let ticks = self.number("reorder_ticks", &raw.reorder_ticks, usual.window_ticks, MAX_TICKS, hint);
        let window_ticks = self.or(ticks, usual.window_ticks);
        let hint = "stale_after = \"3s\" is the default: bridges send a heartbeat ten times a second; \"0s\" is never";
        let stale_after = self.time(&raw.stale_after, arguments::duration, hint);
        let hint = "\"images\" is the default; \"epoch\" takes every tick since the plant above began";
        let whole_epoch = self.word("start", &raw.start, [("images", false), ("epoch", true)], hint);
        let receive_buffer = self.size_or(&raw.receive_buffer, RECEIVE_BUFFER);
        let (plant, servers, requests) = (plant?, servers?, requests?);
        let mut rules = usual.requests;
        (rules.servers, rules.delay_ns) = (requests.len().max(1), reorder_ns);
        Some(UpstreamConfig {
            name: raw.name.unwrap_or_else(|| plant.to_string()),
            lines,
            requests,
            passes_over_older: servers.len() > 1,
            catch_up: servers.into_iter().map(SocketAddr::V4).collect(),
            tls,
            whole_epoch,
            follower: FollowerSettings {
                plant,
                window_ticks,
                window_bytes: window_ticks.saturating_mul(usual.window_bytes / usual.window_ticks),
                reorder_ns,
                recovery_ns,
                requests: rules,
            },
            stale_after: stale_after.unwrap_or(STALE_AFTER),
            receive_buffer,
        })
    }

    fn plant_id(&self, given: &Spanned<String>) -> Option<PlantId> {
        let id = given.get_ref().parse().map_err(|error| {
            let what = format!("plant is \"{}\": {error}", given.get_ref());
            self.wrong(
                given.span(),
                what,
                "such as plant = \"NY1\", the same in [bridge] above and in [[upstream]] below",
            )
        });
        self.sound(id)
    }

    /// The servers of the plants that may lead.
    fn servers(&self, given: &Spanned<OneOrMore>) -> Option<Vec<SocketAddrV4>> {
        let all = match given.get_ref() {
            OneOrMore::One(server) => std::slice::from_ref(server),
            OneOrMore::More(servers) => servers,
        };
        if !(1..=MAX_SERVERS).contains(&all.len()) {
            let what = format!("server names {} addresses; 1 to {MAX_SERVERS} are expected", all.len());
            self.fault(given.span(), what, "one for each plant above that may lead");
        }
        all.iter().map(|server| self.server(server, given.span())).collect()
    }

    fn server(&self, given: &str, span: Span) -> Option<SocketAddrV4> {
        let address = given.parse().map_err(|_| {
            let what = format!("server \"{given}\" is not an IPv4 address with a port");
            self.wrong(span, what, "such as server = \"10.0.0.5:14040\", or a list of two")
        });
        self.sound(address)
    }

    /// The trusted certificates for a plant above that has one.
    fn tls_to_plant(&self, raw: &RawUpstream) -> Option<TlsToPlant> {
        let tls = self.or(self.trusted(raw.tls.unwrap_or(false), &raw.ca), None);
        if let (Some(name), false) = (&raw.server_name, raw.tls.unwrap_or(false)) {
            self.fault(name.span(), "server_name is set without tls", "set tls = true");
        }
        let own = self.or(self.cert_and_key(&raw.cert, &raw.key), None);
        let tls = match (tls, own) {
            (None, Some((cert, _))) if !raw.tls.unwrap_or(false) => {
                self.fault(cert.span(), "cert and key are set without tls", "set tls = true");
                return None;
            }
            (Some(tls), Some((cert, key))) => {
                let presented = self.file(cert).and_then(|chain| Ok((chain, self.file(key)?)));
                let presented = presented.and_then(|(chain, key)| {
                    tls.presenting(&chain, &key).with_context(|| self.unusable(cert))
                });
                self.sound(presented)
            }
            (tls, _) => tls,
        };
        let server_name = raw.server_name.as_ref().map(|name| name.get_ref().clone());
        tls.map(|tls| TlsToPlant { tls, server_name })
    }

    /// The certificate for plants below, and whose certificates theirs must be.
    fn tls_for_plants(&self, raw: &RawBridge) -> anyhow::Result<Option<Tls>> {
        let Some(clients) = &raw.client_ca else { return self.certificate(&raw.cert, &raw.key) };
        let Some((cert, key)) = self.cert_and_key(&raw.cert, &raw.key)? else {
            let hint = "cert and key: only over TLS does a plant below show a certificate";
            return Err(self.wrong(clients.span(), "client_ca is set without cert and key", hint));
        };
        let tls =
            Tls::server_for(&self.file(clients)?, &self.file(cert)?, &self.file(key)?, TlsVersions::Both);
        tls.map(Some).with_context(|| self.unusable(clients))
    }

    /// Checks a line over TCP.
    fn tcp_line(&self, raw: &RawBridgeLine) -> Option<TcpLineOptions> {
        let tcp = raw.tcp.as_ref()?;
        let others = [
            raw.address.as_ref().map(|address| ("address", address.span())),
            raw.interface.as_ref().map(|interface| ("interface", interface.span())),
            raw.ttl.as_ref().map(|ttl| ("ttl", ttl.span())),
            raw.aeron.as_ref().map(|aeron| ("aeron", aeron.span())),
            raw.stream.as_ref().map(|stream| ("stream", stream.span())),
        ];
        let address = self.tcp_address(tcp, others);
        let hint = "max_followers = 8 is the default; one more is refused";
        let most = self.number("max_followers", &raw.max_followers, FOLLOWERS, MAX_FOLLOWERS, hint);
        Some(TcpLineOptions { address: address?, max_followers: self.or(most, FOLLOWERS) })
    }

    /// The address of a line over TCP, which has none of the keys of `others`.
    fn tcp_address(
        &self,
        tcp: &Spanned<String>,
        others: [Option<(&'static str, Span)>; 5],
    ) -> Option<SocketAddr> {
        for (key, span) in others.into_iter().flatten() {
            let what = format!("{key} is a key of other lines, and this line is over TCP");
            self.fault(span, what, "a line is over UDP, over Aeron or over TCP: each has a table of its own");
        }
        let address = tcp.get_ref().parse().map_err(|_| {
            let what = format!("tcp is \"{}\"; an address with a port is expected", tcp.get_ref());
            let hint = "such as tcp = \"10.0.0.5:14043\": above where it listens, below where to connect";
            self.wrong(tcp.span(), what, hint)
        });
        self.sound(address)
    }

    fn bridge_line(&self, raw: &Spanned<RawBridgeLine>) -> Option<BridgeLine> {
        let (span, raw) = (raw.span(), raw.get_ref());
        if let Some(followers) = &raw.max_followers {
            self.fault(
                followers.span(),
                "max_followers is a key of lines over TCP",
                "it goes with tcp = \"…\"",
            );
        }
        let of_udp = [
            raw.address.as_ref().map(|address| ("address", address.span())),
            raw.interface.as_ref().map(|interface| ("interface", interface.span())),
            raw.ttl.as_ref().map(|ttl| ("ttl", ttl.span())),
        ];
        let carriers = (&raw.address, &raw.aeron, &raw.stream);
        let address = match self.address_or_channel(span, carriers, of_udp)? {
            AddressOr::Channel(line) => return Some(line),
            AddressOr::Address(address) => address,
        };
        let destination = address.get_ref().parse().map_err(|_| {
            let what = format!("address \"{}\" is not an IPv4 address with a port", address.get_ref());
            self.wrong(address.span(), what, "such as address = \"239.255.14.1:14041\"")
        });
        let destination = self.sound(destination)?;
        let interface = raw.interface.as_ref().map_or("127.0.0.1", |i| i.get_ref().as_str());
        let found = tapeline_wire::interface::find(interface).map_err(|error| {
            let span = raw.interface.as_ref().map_or_else(|| address.span(), Spanned::span);
            let hint = "an interface is named by its address or its name, such as \"10.0.0.5\" or \"eth0\"";
            self.wrong(span, error, hint)
        });
        self.sound(found)?;
        let usual = SendOptions::new(destination);
        let ttl = raw.ttl.as_ref().map_or(usual.ttl, |ttl| *ttl.get_ref());
        Some(SendOptions { interface: interface.to_owned(), ttl, ..usual }.into())
    }

    fn upstream_line(&self, at: usize, raw: Spanned<RawUpstreamLine>) -> Option<UpstreamLine> {
        let (span, raw) = (raw.span(), raw.into_inner());
        if let Some(tcp) = &raw.tcp {
            let others = [
                raw.address.as_ref().map(|address| ("address", address.span())),
                raw.interface.as_ref().map(|interface| ("interface", interface.span())),
                raw.source.as_ref().map(|source| ("source", source.span())),
                raw.aeron.as_ref().map(|aeron| ("aeron", aeron.span())),
                raw.stream.as_ref().map(|stream| ("stream", stream.span())),
            ];
            return self.tcp_address(tcp, others).map(UpstreamLine::Tcp);
        }
        let of_udp = [
            raw.address.as_ref().map(|address| ("address", address.span())),
            raw.interface.as_ref().map(|interface| ("interface", interface.span())),
            raw.source.as_ref().map(|source| ("source", source.span())),
        ];
        match self.address_or_channel(span, (&raw.address, &raw.aeron, &raw.stream), of_udp)? {
            AddressOr::Channel(line) => Some(line),
            AddressOr::Address(address) => {
                let address = address.clone();
                let line = RawLine { name: raw.name, address, interface: raw.interface, source: raw.source };
                self.line(at, line).map(UpstreamLine::from)
            }
        }
    }

    /// What carries a line: a channel of Aeron, or the address of datagrams. `of_udp` has the keys that a line with a channel cannot have.
    fn address_or_channel<'a, T: OfChannel>(
        &self,
        span: Span,
        (address, aeron, stream): Carriers<'a>,
        of_udp: [Option<(&'static str, Span)>; 3],
    ) -> Option<AddressOr<'a, T>> {
        match (address, aeron) {
            (_, Some(channel)) => {
                let stream = stream.as_ref().map(|stream| *stream.get_ref());
                let other = of_udp.into_iter().flatten().next();
                self.channel(&RawChannel { channel, stream, other }).map(AddressOr::Channel)
            }
            (Some(address), None) => {
                if let Some(stream) = stream {
                    self.fault(
                        stream.span(),
                        "stream is a key of lines over Aeron",
                        "it goes with aeron = \"aeron:udp?…\"",
                    );
                }
                Some(AddressOr::Address(address))
            }
            (None, None) => {
                let hint = "address = \"239.255.14.1:14041\" is a line over UDP, tcp = \"10.0.0.5:14043\" one over TCP, aeron = \"aeron:udp?endpoint=…\" one over Aeron";
                self.fault(span, "a line has neither address, tcp nor aeron", hint);
                None
            }
        }
    }
}

/// A line that may have a channel: if the program was built with Aeron.
#[cfg(feature = "aeron")]
trait OfChannel: From<tapeline_wire::aeron::AeronOptions> {}
#[cfg(feature = "aeron")]
impl<T: From<tapeline_wire::aeron::AeronOptions>> OfChannel for T {}
#[cfg(not(feature = "aeron"))]
trait OfChannel {}
#[cfg(not(feature = "aeron"))]
impl<T> OfChannel for T {}

/// The keys of a line that name its carrier.
type Carriers<'a> = (&'a Option<Spanned<String>>, &'a Option<Spanned<String>>, &'a Option<Spanned<i32>>);

/// What carries a line.
enum AddressOr<'a, T> {
    Address(&'a Spanned<String>),
    Channel(T),
}

#[cfg(test)]
mod tests {
    use tapeline_hub::Posts;
    use tapeline_plant::demand::FarPolicy;

    use crate::plant::config::parse;
    use crate::plant::config::testing::{PLANT, checked};

    const BRIDGE: &str = "[bridge]\nplant = \"NY1\"\n[[bridge.line]]\naddress = \"239.1.2.3:5\"\n";
    const UPSTREAM: &str = "[plant]\nring = \"r\"\n[[upstream]]\nplant = \"NY1\"\nserver = \"127.0.0.1:14040\"\n\
                            [[upstream.line]]\naddress = \"239.1.2.3:5\"\n";

    #[test]
    fn a_bridge_and_its_other_end_have_defaults() {
        let above = parse("plant.toml", &format!("{PLANT}{BRIDGE}")).unwrap().bridge.unwrap();
        assert_eq!((above.plant.to_string().as_str(), above.lines.len()), ("NY1", 1));
        assert_eq!(above.catch_up.to_string(), "127.0.0.1:14040");
        assert!(above.images.is_some());
        let below = parse("plant.toml", UPSTREAM).unwrap();
        let upstream = below.upstream.unwrap();
        assert_eq!((upstream.follower.plant, upstream.name.as_str()), (above.plant, "NY1"));
        assert_eq!(upstream.requests, ["127.0.0.1:14040".parse().unwrap()]);
        assert_eq!(upstream.catch_up, ["127.0.0.1:14040".parse().unwrap()]);
        let two = UPSTREAM.replace("\"127.0.0.1:14040\"", "[\"127.0.0.1:14040\", \"127.0.0.1:14041\"]");
        let upstream = parse("plant.toml", &two).unwrap().upstream.unwrap();
        assert_eq!((upstream.catch_up.len(), upstream.requests.len()), (2, 2));
    }

    #[test]
    fn a_line_over_tcp_needs_no_requests_and_may_have_tls() {
        let key = rcgen::KeyPair::generate().unwrap();
        let cert = rcgen::CertificateParams::new(["ny1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("cert.pem"), cert.pem()).unwrap();
        std::fs::write(path("key.pem"), key.serialize_pem()).unwrap();
        let tls = format!("cert = \"{}\"\nkey = \"{}\"\n[[bridge", path("cert.pem"), path("key.pem"));
        let above =
            BRIDGE.replace("[[bridge", &tls) + "[[bridge.line]]\ntcp = \"[::1]:14043\"\nmax_followers = 2\n";
        let above = parse("plant.toml", &format!("{PLANT}{above}")).unwrap().bridge.unwrap();
        assert_eq!((above.lines.len(), above.tcp_lines.len(), above.tls.is_some()), (1, 1, true));
        let line = above.tcp_lines[0];
        assert_eq!((line.address.to_string().as_str(), line.max_followers), ("[::1]:14043", 2));
        let below = UPSTREAM.replace("address = \"239.1.2.3:5\"", "tcp = \"10.0.0.5:14043\"");
        let tls = format!("tls = true\nca = \"{}\"\nserver_name = \"ny1\"\n[[upstream.l", path("cert.pem"));
        let below = parse("plant.toml", &below.replace("[[upstream.l", &tls)).unwrap().upstream.unwrap();
        assert_eq!((below.lines[0].to_string().as_str(), below.requests.len()), ("tcp://10.0.0.5:14043", 0));
        assert_eq!(below.tls.unwrap().server_name.as_deref(), Some("ny1"));
    }

    #[test]
    fn a_plant_below_may_have_services_of_the_plant_above() {
        let refuses = parse("plant.toml", &format!("{PLANT}{BRIDGE}")).unwrap().bridge.unwrap();
        assert_eq!((refuses.demands, refuses.max_demanded), (FarPolicy::Refuse, 10_000));
        let takes = BRIDGE.replace("[[bridge", "demands = \"posts\"\nmax_demanded = 5\n[[bridge");
        let takes = parse("plant.toml", &format!("{PLANT}{takes}")).unwrap().bridge.unwrap();
        assert_eq!((takes.demands, takes.max_demanded), (FarPolicy::Posts, 5));
        let below = format!("{UPSTREAM}[hub]\n[[service]]\nname = \"FEED\"\nid = 7\nposts = \"forward\"\n");
        let below = parse("plant.toml", &below).unwrap();
        assert!(below.sources.is_none());
        let service = &below.hub.unwrap().settings.services[0];
        assert_eq!((service.name.as_str(), service.id, service.posts), ("FEED", 7, Posts::Forward));
    }

    #[test]
    fn what_cannot_be_bridged_is_told_with_its_place() {
        for (text, says) in [
            (format!("{PLANT}{}", BRIDGE.replace("NY1", "NY12")), "plant.toml:10:9: plant is \"NY12\""),
            (format!("{PLANT}[bridge]\nplant = \"A\"\n"), "plant.toml:10:9: [bridge] has 0 lines"),
            (
                format!("{PLANT}{}", BRIDGE.replace("[[bridge", "packet = 100\n[[bridge")),
                "plant.toml:11:10: packet is 100 bytes",
            ),
            (
                UPSTREAM.replace("127.0.0.1:14040", "127.0.0.1"),
                "plant.toml:5:10: server \"127.0.0.1\" is not an IPv4 address",
            ),
            (
                format!("{PLANT}{BRIDGE}tcp = \"127.0.0.1:6\"\n"),
                "plant.toml:12:11: address is a key of other lines, and this line is over TCP",
            ),
            (format!("{PLANT}{BRIDGE}max_followers = 2\n"), "max_followers is a key of lines over TCP"),
            (
                UPSTREAM.replace("address = \"239.1.2.3:5\"", "tcp = \"ny1\""),
                "plant.toml:7:7: tcp is \"ny1\"",
            ),
            (UPSTREAM.replace("\"127.0.0.1:14040\"", "[]"), "server names 0 addresses"),
            (UPSTREAM.replace("[[upstream.l", "ca = \"a.pem\"\n[[upstream.l"), "ca is set without tls"),
            (
                UPSTREAM.replace("[[upstream.l", "server_name = \"a\"\n[[upstream.l"),
                "server_name is set without tls",
            ),
            (
                format!("{PLANT}{}", BRIDGE.replace("[[bridge", "key = \"key.pem\"\n[[bridge")),
                "cert and key: one is set without the other",
            ),
            (
                format!("{PLANT}{}", BRIDGE.replace("[[bridge", "client_ca = \"ca.pem\"\n[[bridge")),
                "client_ca is set without cert and key",
            ),
            (
                UPSTREAM.replace("[[upstream.l", "cert = \"a.pem\"\nkey = \"a.key\"\n[[upstream.l"),
                "cert and key are set without tls",
            ),
            (
                UPSTREAM.replace("[[upstream.l", "tls = true\nkey = \"a.key\"\n[[upstream.l"),
                "cert and key: one is set without the other",
            ),
            (
                format!("{PLANT}{}", BRIDGE.replace("[[b", "images = \"0\"\ndemands = \"items\"\n[[b")),
                "plant.toml:12:11: demands is set, and images is \"0\"",
            ),
            (
                format!("{UPSTREAM}[[service]]\nname = \"FEED\"\nid = 7\nproviders = [\"p\"]\n"),
                "plant.toml:11:13: providers is set for a service whose sources are those of the plant above",
            ),
            (
                format!("{UPSTREAM}[[service]]\nname = \"FEED\"\nid = 1\n"),
                "plant.toml:10:6: id 1 or name \"FEED\" is that of another service",
            ),
            (format!("{UPSTREAM}[publishers]\n"), "[[upstream]] brings the ticks"),
            (format!("{UPSTREAM}{BRIDGE}"), "[bridge] and [[upstream]] are in one plant"),
            (
                format!("{UPSTREAM}{}", &PLANT[PLANT.find("[[feed]]").unwrap()..]),
                "[[upstream]] brings the ticks",
            ),
            (format!("{UPSTREAM}{}", &UPSTREAM[UPSTREAM.find("[[up").unwrap()..]), "2 plants above"),
        ] {
            let said = checked(&text).err().unwrap();
            assert!(said.contains(says), "{text}\n{said}");
        }
    }
}
