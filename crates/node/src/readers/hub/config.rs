//! The configuration of a hub, and its memory bound.

use std::net::SocketAddr;
use std::sync::Arc;

use tapeline_hub::Settings;
use tapeline_wire::rssl;

use crate::access::{AccessConfig, MOST_MEMORY_KIB};
use crate::sources::BETWEEN;
use crate::stat::snapshot;
use crate::web::WebConfig;
use crate::zeromq::ZeromqConfig;

/// A plant's hub.
#[derive(Debug)]
pub struct HubConfig {
    /// Address of the listener; port 0 selects a free port.
    pub address: SocketAddr,
    /// Settings of every connection.
    pub transport: Arc<rssl::ConnectionSettings>,
    /// Maximum number of connections; more are refused.
    pub max_connections: usize,
    /// Maximum number of connections from one address.
    pub max_connections_per_address: usize,
    /// Maximum bytes of partially received messages, on all connections together.
    pub incoming_bytes: usize,
    /// The core that the hub's thread is pinned to.
    pub cpu: Option<usize>,
    /// Poll continuously instead of sleeping in the kernel while nothing happens.
    pub spin: bool,
    /// Metrics, health and the live page, if enabled.
    pub web: Option<WebConfig>,
    /// Who may connect.
    pub access: AccessConfig,
    /// All other settings.
    pub settings: Settings,
    /// The ZeroMQ outlet, if enabled.
    pub zeromq: Option<ZeromqConfig>,
}

/// A provider sends much data to many clients: as many buffers as EMA's default.
const OUTPUT_BUFFERS: u32 = 200;
/// The longest message of a client: a batch of 65,535 items, RWF's maximum, or 15,000 requests in JSON.
const LONGEST_RECEIVED: u32 = 1 << 20;
/// Default ping time-out, in seconds.
pub const PING_TIMEOUT_S: u8 = 60;
/// Default maximum bytes of partially received messages.
pub const INCOMING_BYTES: usize = 64 << 20;
/// Default maximum number of connections.
pub const CONNECTIONS: usize = 1_000;
/// A client's output is sent after each batch of ticks, and within a batch once it has this many bytes: a
/// system call costs as much as about thirty updates.
const HIGH_WATER_MARK: u32 = 32 << 10;

/// The longest message sent, in bytes: a field list's image has 64 KiB at most, its JSON eight times as many.
const LONGEST_SENT: usize = 512 << 10;
/// Bytes received in one turn of a connection, and the longest message: in pieces, assembled, and inflated.
const AT_HAND: usize = (2 << 20) + 3 * LONGEST_RECEIVED as usize;
/// The maximum memory of one password check: as much as a hash in the file of users may require.
const PASSWORD: usize = (MOST_MEMORY_KIB as usize + 1024) << 10;

/// Memory of the counters: two sets of figures and one of totals, with four histograms of 300 KB each; and
/// the figures of a session, in each set and as text.
const FIGURES: usize = 3 * 4 * (400 << 10);
const SESSION_FIGURES: usize = 4 << 10;

impl HubConfig {
    /// Creates the configuration of a hub that every client may use, with the defaults of a configuration
    /// file.
    #[must_use]
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            transport: Arc::new(Self::transport()),
            max_connections: CONNECTIONS,
            max_connections_per_address: CONNECTIONS,
            incoming_bytes: INCOMING_BYTES,
            cpu: None,
            spin: false,
            web: None,
            access: AccessConfig::default(),
            settings: Settings { max_strangers: CONNECTIONS.div_ceil(2), ..Settings::default() },
            zeromq: None,
        }
    }

    /// Returns the settings of a client's connection, without encryption.
    #[must_use]
    pub fn transport() -> rssl::ConnectionSettings {
        rssl::ConnectionSettings {
            guaranteed_output_buffers: OUTPUT_BUFFERS,
            max_received_bytes: Some(LONGEST_RECEIVED),
            pause_when_full: true,
            high_water_mark: HIGH_WATER_MARK,
            connection_ping_timeout: PING_TIMEOUT_S,
            ..rssl::ConnectionSettings::default()
        }
    }

    /// Allows pages from these origins to connect.
    pub(crate) fn let_in(&mut self, origins: impl IntoIterator<Item = String>) {
        let mut transport = rssl::ConnectionSettings::clone(&self.transport);
        transport.ws_origins.extend(origins);
        self.transport = Arc::new(transport);
    }

    /// The hub's figures that are known before it starts.
    pub(crate) fn begin(&self) -> snapshot::Hub {
        snapshot::Hub {
            tls: self.transport.tls.is_some(),
            page_items: self.web.as_ref().map_or_else(Vec::new, |web| web.items.clone()),
            slow: super::counting::slow(self.settings.slow).to_owned(),
            cache: snapshot::Cache { limit_bytes: self.settings.cache_bytes, ..Default::default() },
            ..Default::default()
        }
    }

    /// Returns each part that takes memory and its maximum in bytes, whatever clients do. The system's socket
    /// buffers and the memory of a plant without a hub are not included.
    pub fn memory_bound(&self) -> [(&'static str, usize); 13] {
        let hub = self.settings.memory_bound(self.max_connections);
        // In addition to a connection's own buffers, one message waits to be sent: as RWF and as JSON.
        let connection = self.transport.memory_bound(LONGEST_SENT) + 2 * LONGEST_SENT;
        [
            ("connections", self.max_connections.saturating_mul(connection)),
            ("incoming messages (incoming_size)", self.incoming_bytes.saturating_add(AT_HAND)),
            ("images (cache_size)", hub.images),
            ("items (max_items)", hub.items),
            ("sessions: updates queued for clients (slow_bytes)", hub.sessions),
            ("images in parts, queued for clients (waiting_size)", hub.waiting),
            ("streams (streams_in_all, max_streams)", hub.streams),
            ("views", hub.views),
            ("demand, posts, private streams", hub.demand),
            ("between hub and sources", BETWEEN),
            ("notes, messages at hand", hub.rest),
            ("figures", self.max_connections.saturating_mul(SESSION_FIGURES).saturating_add(FIGURES)),
            ("checking passwords", PASSWORD),
        ]
    }
}
