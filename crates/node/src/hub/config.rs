//! What a hub is configured to be, and the most memory that it takes then.

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
    /// Where it listens; port 0 for a free one.
    pub address: SocketAddr,
    /// Of every connection.
    pub transport: Arc<rssl::Settings>,
    /// Connections at most; more are refused.
    pub max_connections: usize,
    /// Of them from one address at most.
    pub max_connections_per_address: usize,
    /// Bytes of messages of which a part has arrived, on all connections together.
    pub incoming_bytes: usize,
    /// The core that its thread is pinned to.
    pub cpu: Option<usize>,
    /// Look without rest instead of sleeping in the kernel while nothing happens.
    pub spin: bool,
    /// Metrics, health and the live page, where they are wanted.
    pub web: Option<WebConfig>,
    /// Who may in.
    pub access: AccessConfig,
    /// All else.
    pub settings: Settings,
    /// What subscribers of ZeroMQ get.
    pub zeromq: Option<ZeromqConfig>,
}

/// A provider says much to many: as many buffers, and as patient, as EMA's.
const OUTPUT_BUFFERS: u32 = 200;
/// The longest message of a client: a batch of 65,535 items, the most that RWF has, or 15,000 requests in JSON.
const LONGEST_RECEIVED: u32 = 1 << 20;
/// The ping time-out, where nothing else is configured, seconds.
pub const PING_TIMEOUT_S: u8 = 60;
/// Messages of which a part has arrived, where nothing else is configured, bytes.
pub const INCOMING_BYTES: usize = 64 << 20;
/// Connections, where nothing else is configured.
pub const CONNECTIONS: usize = 1_000;
/// What a hub has for a client goes out after each batch of ticks, and within one when it is so much, bytes: a call of the system
/// costs as much as some thirty updates.
const HIGH_WATER_MARK: u32 = 32 << 10;

impl HubConfig {
    /// Creates the configuration of a hub that everybody may use, with the defaults of a configuration file.
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
    pub fn transport() -> rssl::Settings {
        rssl::Settings {
            guaranteed_output_buffers: OUTPUT_BUFFERS,
            max_received_bytes: Some(LONGEST_RECEIVED),
            pause_when_full: true,
            high_water_mark: HIGH_WATER_MARK,
            connection_ping_timeout: PING_TIMEOUT_S,
            ..rssl::Settings::default()
        }
    }

    /// Pages that come from there may connect.
    pub(crate) fn let_in(&mut self, origins: impl IntoIterator<Item = String>) {
        let mut transport = rssl::Settings::clone(&self.transport);
        transport.ws_origins.extend(origins);
        self.transport = Arc::new(transport);
    }

    /// What is known of the hub before it begins.
    pub(crate) fn begin(&self) -> snapshot::Hub {
        snapshot::Hub {
            tls: self.transport.tls.is_some(),
            page_items: self.web.as_ref().map_or_else(Vec::new, |web| web.items.clone()),
            slow: super::counting::slow(self.settings.slow).to_owned(),
            cache: snapshot::Cache { limit_bytes: self.settings.cache_bytes, ..Default::default() },
            ..Default::default()
        }
    }
}

/// The longest message that a hub sends, bytes: an image of a field list has 64 KiB at most, and its JSON may be eight times as
/// long.
const LONGEST_SENT: usize = 512 << 10;
/// What is received of messages in one turn of a connection, and the longest message three times over: in pieces, put together,
/// and inflated.
const AT_HAND: usize = (2 << 20) + 3 * LONGEST_RECEIVED as usize;
/// What checking one password takes at most: as much as a hash in the file of users may ask for.
const PASSWORD: usize = (MOST_MEMORY_KIB as usize + 1024) << 10;

/// What is counted for the counters' thread: two sets of figures and one of all time, of four histograms each, 300 KB in every one;
/// what is known of a session, in each of them and as text.
const FIGURES: usize = 3 * 4 * (400 << 10);
const SESSION_FIGURES: usize = 4 << 10;

impl HubConfig {
    /// What may take memory, and how much of it at most, bytes: whatever clients do. The system's socket buffers are not in it,
    /// nor what the plant has without a hub.
    pub fn memory_bound(&self) -> [(&'static str, usize); 13] {
        let hub = self.settings.memory_bound(self.max_connections);
        // Beside what a connection's own buffers hold, one message waits to be sent: as RWF and as JSON.
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
