//! What a plant is configured to be. Programs fill it in, from a file or by hand.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tapeline_feed::Protocol;
use tapeline_feed::soupbintcp::{Password, Username};
use tapeline_feed::symbols::Symbols;
use tapeline_measure::Nanos;
use tapeline_plant::sources::{self, Policy, Sourcing};
use tapeline_plant::{ConsolidationSettings, MidnightBefore, PublishPolicy};
use tapeline_wire::{pool, rssl};

use crate::hub::HubConfig;
use crate::image_server::ImageServerConfig;
use crate::journal::JournalConfig;
use crate::kdb::KdbConfig;

/// A whole plant, checked.
#[derive(Debug)]
pub struct Config {
    /// The service's name, as clients know it.
    pub name: String,
    /// The ring that ticks go to.
    pub ring: tapeline_ring::Name,
    /// The ring's data area, in bytes.
    pub ring_bytes: usize,
    /// For how long a live subscriber may hold the full ring; zero = for ever.
    pub stall_limit: Duration,
    /// Leave the ring's name in place at the end.
    pub keep_ring: bool,
    /// Whether the plant ends when its ring's name is removed; it goes on otherwise.
    pub ends_without_name: bool,
    /// Which ticks are published.
    pub publish: PublishPolicy,
    /// Poll without rest instead of sleeping in the kernel while nothing arrives.
    pub spin: bool,
    /// Who reads the sockets.
    pub receive: Receive,
    /// The core that the plant's thread is pinned to.
    pub cpu: Option<usize>,
    /// How many items there may be; beside feeds at most half of them are of providers' services, all together.
    pub max_items: usize,
    /// How many of them each source is sure to have.
    pub reserved_items: usize,
    /// Where messages come from.
    pub feeds: Vec<Feed>,
    /// Over which of them the best bid and offer is published.
    pub nbbo: Option<ConsolidationSettings>,
    /// The number of the service that its feeds are.
    pub service_id: u16,
    /// Which images are kept for clients that come late.
    pub images: Option<ImageServerConfig>,
    /// Where what is published is kept.
    pub journal: Option<JournalConfig>,
    /// The tickerplant that kdb+ clients have its ticks of.
    pub kdb: Option<KdbConfig>,
    /// The OMM providers that it has items of.
    pub sources: Option<SourcesConfig>,
    /// Who serves clients on the network.
    pub hub: Option<HubConfig>,
}

/// Capacity of the ring, where nothing else is configured, bytes.
pub const RING_BYTES: usize = 8 << 20;
/// For how long a live subscriber may hold the full ring, where nothing else is configured.
pub const STALL_LIMIT: Duration = Duration::from_secs(1);
/// Items that a plant has at most, where nothing else is configured.
pub const MAX_ITEMS: usize = 100_000;
/// Feeds send a heartbeat each second: three in a row are missing.
pub const STALE_AFTER: Duration = Duration::from_secs(3);
/// Socket buffer of each line, where nothing else is configured, bytes.
pub const RECEIVE_BUFFER: usize = 4 << 20;
/// How long messages wait for a missing one, where nothing else is configured.
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
            reorder_messages: tapeline_feed::line::Settings::default().window_messages,
            reorder_time: REORDER_TIME,
            receive_buffer: RECEIVE_BUFFER,
            symbols: None,
            market_by_order: false,
            venue: String::new(),
            suffix: String::new(),
            recovery: None,
            lines: Vec::new(),
            file: None,
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

/// Who reads a plant's sockets.
#[derive(Clone, Copy, Debug)]
pub enum Receive {
    /// The plant's own thread.
    Inline,
    /// A thread for each feed, with such a pool.
    Thread(pool::Settings),
}

/// One feed: a numbered stream of messages that arrives on one or more lines.
#[derive(Debug)]
pub struct Feed {
    /// The feed's name, in counters and complaints.
    pub name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// Midnight in New York of the trading day: the feed's stamps count from it.
    pub midnight: Nanos,
    /// How to tell when another day began, where the day is not given: each new session is a new day then.
    pub midnight_before: Option<MidnightBefore>,
    /// After how long without a word a line is stale, and the feed where it is all of them; zero for never.
    pub stale_after: Duration,
    /// Begin with message 1 and report what was missed before the plant came, or begin with the first that is seen.
    pub from_one: bool,
    /// Whether numbers that begin again within a session are a reset, or what comes is taken for copies.
    pub restart: bool,
    /// How many messages may wait for a missing one.
    pub reorder_messages: usize,
    /// How long they may wait.
    pub reorder_time: Duration,
    /// Socket buffer of each line, in bytes.
    pub receive_buffer: usize,
    /// The symbols that it is wanted for; all if none is said.
    pub symbols: Option<Symbols>,
    /// Publish its orders too.
    pub market_by_order: bool,
    /// Its venue's short name.
    pub venue: String,
    /// What stands behind a symbol in the name of its item.
    pub suffix: String,
    /// Who is asked for what is missing on every line.
    pub recovery: Option<RecoveryConfig>,
    /// The copies of the feed.
    pub lines: Vec<Line>,
    /// What takes the place of the lines.
    pub file: Option<Recording>,
}

/// A file that a feed is read from, as though it came now.
#[derive(Debug)]
pub struct Recording {
    /// Where it is.
    pub path: PathBuf,
    /// How many times as fast as it was recorded; `None` as fast as it goes.
    pub speed: Option<f64>,
}

/// One copy of a feed.
#[derive(Debug)]
pub struct Line {
    /// The line's name.
    pub name: String,
    /// Multicast group, or own address for unicast, and port.
    pub address: SocketAddrV4,
    /// The interface to join on, by address or name.
    pub interface: String,
    /// Take datagrams of this sender only.
    pub source: Option<Ipv4Addr>,
}

/// A feed's recovery.
#[derive(Debug)]
pub struct RecoveryConfig {
    /// What the servers speak.
    pub kind: RecoveryKind,
    /// Whom to ask, the first first.
    pub servers: Vec<SocketAddrV4>,
    /// How long an answer may take before the next one is asked.
    pub timeout: Duration,
    /// Requests in a row that may bring nothing.
    pub tries: u32,
    /// How long a hole may stay open after the lines had their time.
    pub time: Duration,
    /// Requests a second in the long run.
    pub requests_per_second: u64,
    /// The most messages of one hole that are asked for.
    pub max_hole: u64,
}

/// What servers speak.
#[derive(Debug)]
pub enum RecoveryKind {
    /// Requests and answers are datagrams of the feed's own protocol.
    MoldUdp64,
    /// A login from a sequence on.
    SoupBinTcp {
        /// Who logs in.
        username: Username,
        /// Its password.
        password: Password,
    },
}

/// A plant's sources.
#[derive(Debug)]
pub struct SourcesConfig {
    /// Services, providers and limits.
    pub settings: sources::Settings,
    /// Where non-interactive providers connect, if anywhere.
    pub door: Option<Door>,
    /// Where the interactive ones are, in the order of [`sources::Settings::providers`].
    pub hosts: Vec<Vec<Host>>,
    /// The services as their clients have them.
    pub for_clients: Vec<tapeline_hub::Service>,
}

impl SourcesConfig {
    /// Returns the most memory, in bytes, that sources that stand by may take: their images by the cache's own account, and what the
    /// allocator adds.
    #[must_use]
    pub fn standby_bound(&self) -> usize {
        let mut warm: Vec<usize> = Vec::new();
        for service in &self.settings.services {
            if let Sourcing::Providers { of, policy: Policy::Warm } = &service.sources {
                warm.extend(of);
            }
        }
        warm.sort_unstable();
        warm.dedup();
        let publishers = self.door.as_ref().map_or(0, |door| door.max_connections);
        let each = self.settings.standby_bytes.saturating_add(self.settings.standby_bytes / 4);
        each.saturating_mul(warm.len().saturating_add(publishers))
    }
}

/// Where non-interactive providers connect.
#[derive(Debug)]
pub struct Door {
    /// The address to listen at; port 0 takes a free one.
    pub address: SocketAddr,
    /// Settings of every connection.
    pub transport: Arc<rssl::Settings>,
    /// Maximum number of connections.
    pub max_connections: usize,
}

/// A host of an interactive provider.
#[derive(Debug, Clone)]
pub struct Host {
    /// As the configuration has it: a name is looked up whenever the plant connects.
    pub server: String,
    /// Settings of the connection.
    pub transport: Arc<rssl::Settings>,
}
