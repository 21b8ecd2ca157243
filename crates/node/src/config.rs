//! The configuration of a plant. Programs fill it in, from a file or directly.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tapeline_feed::Protocol;
use tapeline_feed::soupbintcp::{Password, Username};
use tapeline_feed::symbols::Symbols;
use tapeline_feed::venues::VenueSettings;
use tapeline_measure::Nanos;
use tapeline_plant::sources::{self, Policy, Sourcing};
use tapeline_plant::{ConsolidationSettings, MidnightBefore, PublishPolicy};
use tapeline_wire::tls::Tls;
use tapeline_wire::web_client::Url;
use tapeline_wire::{pool, rssl};

use crate::bridge::BridgeConfig;
use crate::hub::HubConfig;
use crate::image_server::ImageServerConfig;
use crate::journal::JournalConfig;
use crate::kdb::KdbConfig;
use crate::lease::{LeaseConfig, Term};
use crate::otlp::OtlpConfig;
use crate::upstream::UpstreamConfig;

/// The checked configuration of a plant.
#[derive(Debug)]
pub struct Config {
    /// The service's name, as clients know it.
    pub name: String,
    /// The ring to which ticks are published.
    pub ring: tapeline_ring::Name,
    /// The ring's data area, in bytes.
    pub ring_bytes: usize,
    /// How long a live subscriber may keep the ring full; zero means for ever.
    pub stall_limit: Duration,
    /// Leave the ring's name in place at the end.
    pub keep_ring: bool,
    /// Whether the plant ends when its ring's name is removed; otherwise it continues.
    pub ends_without_name: bool,
    /// Which ticks are published.
    pub publish: PublishPolicy,
    /// Poll continuously instead of sleeping in the kernel while nothing arrives.
    pub spin: bool,
    /// The thread that reads the sockets.
    pub receive: Receive,
    /// The core that the plant's thread is pinned to.
    pub cpu: Option<usize>,
    /// Maximum number of items. With feeds, providers' services together have at most half of them.
    pub max_items: usize,
    /// Number of items guaranteed to each source.
    pub reserved_items: usize,
    /// The feeds.
    pub feeds: Vec<Feed>,
    /// The feeds over which the best bid and offer is published.
    pub nbbo: Option<ConsolidationSettings>,
    /// The service number of the feeds.
    pub service_id: u16,
    /// The images stored for readers that join late.
    pub images: Option<ImageServerConfig>,
    /// The journal of published ticks.
    pub journal: Option<JournalConfig>,
    /// The tickerplant that serves the ticks to kdb+ clients.
    pub kdb: Option<KdbConfig>,
    /// The OMM providers from which the plant gets items.
    pub sources: Option<SourcesConfig>,
    /// The hub that serves clients on the network.
    pub hub: Option<HubConfig>,
    /// The bridge to plants below.
    pub bridge: Option<BridgeConfig>,
    /// The plant above whose ticks this plant publishes. It excludes every other input, unless there is a [`lease`](Self::lease).
    pub upstream: Option<UpstreamConfig>,
    /// The lease that decides whether this plant numbers ticks or follows the plant above. Needs a journal, a bridge and a plant above, and
    /// [`RunningLease`](crate::lease::RunningLease).
    pub lease: Option<LeaseConfig>,
    /// The part that the lease has assigned.
    pub term: Option<Term>,
    /// The collector of OpenTelemetry to which metrics are pushed.
    pub otlp: Option<OtlpConfig>,
    /// A media driver of Aeron in this process, for lines of the bridge and for other programs of this machine. Needs the feature `aeron`.
    pub aeron_driver: Option<AeronDriverConfig>,
}

/// A media driver of Aeron.
#[derive(Clone, Debug, Default)]
pub struct AeronDriverConfig {
    /// The folder of the driver's files, which it empties first; `None` for Aeron's usual one.
    pub folder: Option<PathBuf>,
}

/// Default capacity of the ring, in bytes.
pub const RING_BYTES: usize = 8 << 20;
/// Default of the time that a live subscriber may keep the ring full.
pub const STALL_LIMIT: Duration = Duration::from_secs(1);
/// Default maximum number of items.
pub const MAX_ITEMS: usize = 100_000;
/// Default of the time after which a silent line is stale: feeds send a heartbeat each second, so three in a
/// row are missing.
pub const STALE_AFTER: Duration = Duration::from_secs(3);
/// Default of that time for a venue's stream: a quiet market sends nothing, but the venue answers a ping.
pub const VENUE_STALE_AFTER: Duration = Duration::from_secs(30);
/// Default socket buffer of each line, in bytes.
pub const RECEIVE_BUFFER: usize = 4 << 20;
/// Default of the time that messages wait for a missing one.
pub const REORDER_TIME: Duration = Duration::from_millis(5);

impl Config {
    /// Creates the configuration of a plant without inputs and clients, with the defaults of a configuration file.
    #[must_use]
    pub fn new(name: &str, ring: tapeline_ring::Name) -> Self {
        Self {
            name: name.to_owned(),
            ring,
            ring_bytes: RING_BYTES,
            stall_limit: STALL_LIMIT,
            keep_ring: false,
            ends_without_name: false,
            publish: PublishPolicy::Changes,
            spin: false,
            receive: Receive::Inline,
            cpu: None,
            max_items: MAX_ITEMS,
            reserved_items: 0,
            feeds: Vec::new(),
            nbbo: None,
            service_id: 1,
            images: None,
            journal: None,
            kdb: None,
            sources: None,
            hub: None,
            bridge: None,
            upstream: None,
            lease: None,
            term: None,
            otlp: None,
            aeron_driver: None,
        }
    }
}

impl Feed {
    /// Creates a feed without lines, with the defaults of a configuration file; `midnight` is that of the trading day in the time zone of the
    /// feed's stamps.
    #[must_use]
    pub fn new(name: &str, protocol: Protocol, midnight: Nanos) -> Self {
        Self {
            name: name.to_owned(),
            protocol,
            midnight,
            midnight_before: None,
            stale_after: STALE_AFTER,
            from_one: false,
            restart: true,
            reorder_messages: tapeline_feed::line::ArbiterSettings::default().window_messages,
            reorder_time: REORDER_TIME,
            receive_buffer: RECEIVE_BUFFER,
            symbols: None,
            market_by_order: false,
            venue: String::new(),
            suffix: String::new(),
            recovery: None,
            lines: Vec::new(),
            file: None,
            stream: None,
        }
    }
}

impl Line {
    /// Creates a line that joins a multicast group on the interface that the system chooses, or receives at an own address.
    #[must_use]
    pub fn new(name: &str, address: SocketAddrV4) -> Self {
        Self { name: name.to_owned(), address, interface: String::new(), source: None }
    }
}

/// The thread that reads a plant's sockets.
#[derive(Clone, Copy, Debug)]
pub enum Receive {
    /// The plant's own thread.
    Inline,
    /// A thread for each feed, with a pool of these settings.
    Thread(pool::PoolSettings),
}

/// One feed: a numbered stream of messages that arrives on one or more lines.
#[derive(Debug)]
pub struct Feed {
    /// The feed's name, in counters and warnings.
    pub name: String,
    /// The protocol of the feed.
    pub protocol: Protocol,
    /// Midnight in New York of the trading day: the feed's stamps count from it.
    pub midnight: Nanos,
    /// How to determine the day if no date is configured: each new session is then a new day.
    pub midnight_before: Option<MidnightBefore>,
    /// The time after which a silent line is stale, and the feed if all its lines are; zero means never.
    pub stale_after: Duration,
    /// Start with message 1 and report the messages missed before the plant started; otherwise start with the
    /// first message received.
    pub from_one: bool,
    /// Whether sequence numbers that restart within a session are a sequence reset; otherwise the messages
    /// are duplicates.
    pub restart: bool,
    /// Maximum number of messages that wait for a missing one.
    pub reorder_messages: usize,
    /// Maximum time that messages wait for a missing one.
    pub reorder_time: Duration,
    /// Socket buffer of each line, in bytes.
    pub receive_buffer: usize,
    /// Symbols to publish; `None` means all.
    pub symbols: Option<Symbols>,
    /// Whether the feed's orders are published too.
    pub market_by_order: bool,
    /// Short name of the venue.
    pub venue: String,
    /// Suffix of item names, after the symbol.
    pub suffix: String,
    /// The recovery of messages that are missing on every line.
    pub recovery: Option<RecoveryConfig>,
    /// The redundant lines of the feed.
    pub lines: Vec<Line>,
    /// The file that replaces the lines.
    pub file: Option<Recording>,
    /// The public stream of a crypto venue, which replaces the lines.
    pub stream: Option<VenueStream>,
}

/// The public stream of a crypto venue. [`Feed::stale_after`] is the time without any message after which the connection is made again.
#[derive(Debug, Clone)]
pub struct VenueStream {
    /// The venue, its symbols and the limits of their books.
    pub settings: VenueSettings,
    /// Address of the WebSocket.
    pub url: Url,
    /// Address of the snapshots, for venues that serve them by HTTPS.
    pub snapshot_url: Option<Url>,
    /// TLS settings; needed for addresses that ask for TLS.
    pub tls: Option<Tls>,
}

/// A file that replaces a feed's lines, played as if it arrived now.
#[derive(Debug)]
pub struct Recording {
    /// Path of the file.
    pub path: PathBuf,
    /// Speed relative to the recording; `None` means as fast as possible.
    pub speed: Option<f64>,
}

/// One redundant line of a feed.
#[derive(Debug)]
pub struct Line {
    /// The line's name.
    pub name: String,
    /// Multicast group, or own address for unicast, and port.
    pub address: SocketAddrV4,
    /// The interface to join on, by address or name.
    pub interface: String,
    /// Accept datagrams of this sender only.
    pub source: Option<Ipv4Addr>,
}

/// A feed's recovery.
#[derive(Debug)]
pub struct RecoveryConfig {
    /// The protocol of the servers.
    pub kind: RecoveryKind,
    /// The servers, in the order in which they are asked.
    pub servers: Vec<SocketAddrV4>,
    /// How long to wait for an answer before the next server is asked.
    pub timeout: Duration,
    /// Maximum number of requests in a row for the same messages without a result.
    pub tries: u32,
    /// How long a gap may stay open after the lines' reorder time.
    pub time: Duration,
    /// Maximum long-term rate of requests, per second.
    pub requests_per_second: u64,
    /// Maximum size of a gap that is requested, in messages; a larger gap is given up at once.
    pub max_hole: u64,
}

/// The protocol of recovery servers.
#[derive(Debug)]
pub enum RecoveryKind {
    /// Requests and answers are datagrams of the feed's own protocol.
    MoldUdp64,
    /// A login with the first sequence number requested.
    SoupBinTcp {
        /// User name of the login.
        username: Username,
        /// Password of the login.
        password: Password,
    },
}

/// A plant's sources.
#[derive(Debug)]
pub struct SourcesConfig {
    /// Services, providers and limits.
    pub settings: sources::Settings,
    /// The port for non-interactive providers, if there is one.
    pub door: Option<Door>,
    /// The hosts of interactive providers, in the order of [`sources::Settings::providers`].
    pub hosts: Vec<Vec<Host>>,
    /// The services as published to clients.
    pub for_clients: Vec<tapeline_hub::Service>,
}

impl SourcesConfig {
    /// Returns the memory bound, in bytes, of warm standby sources: their images as counted by the cache,
    /// plus the allocator's overhead.
    #[must_use]
    pub fn standby_bound(&self) -> usize {
        let warm = self.settings.services.iter().filter_map(|service| match &service.sources {
            Sourcing::Providers { of, policy: Policy::Warm } => Some(of),
            _ => None,
        });
        let warm: BTreeSet<&usize> = warm.flatten().collect();
        let publishers = self.door.as_ref().map_or(0, |door| door.max_connections);
        let each = self.settings.standby_bytes.saturating_add(self.settings.standby_bytes / 4);
        each.saturating_mul(warm.len().saturating_add(publishers))
    }
}

/// The port for non-interactive providers.
#[derive(Debug)]
pub struct Door {
    /// Address of the listener; port 0 selects a free port.
    pub address: SocketAddr,
    /// Settings of every connection.
    pub transport: Arc<rssl::ConnectionSettings>,
    /// Maximum number of connections.
    pub max_connections: usize,
}

/// A host of an interactive provider.
#[derive(Debug, Clone)]
pub struct Host {
    /// The name or address in the configuration; a name is looked up whenever the plant connects.
    pub server: String,
    /// Settings of the connection.
    pub transport: Arc<rssl::ConnectionSettings>,
}
