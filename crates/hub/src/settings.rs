//! The settings of a hub.

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::role::provider;
use tapeline_plant::sources::Posts;

use crate::Access;
use crate::slow_clients::{SLOW_TIME_MS, SlowPolicy};

/// The answer to a request for an item that the plant has not published yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unknown {
    /// The stream is closed: not found. For services that publish all their items before the first request.
    Closed,
    /// The stream stays open without an image, its data suspect, until the item appears or [the time-out passes](Late). The default.
    #[default]
    Wait,
}

/// The handling of a stream whose item has not appeared in time. A snapshot is closed in either case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Late {
    /// The stream is closed, and the client may request the item again (CLOSED_RECOVER, TIMEOUT).
    Recover,
    /// The stream stays open, its data suspect, with a status that nothing came in time; it waits for [`Service::wait_timeout_ms`] in total.
    #[default]
    Suspect,
}

/// A service with data from OMM providers. The directory contains the service from the start, down until one of its providers is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// The name of the service for clients, whatever name its providers use.
    pub name: String,
    /// The number of the service in the directory and in the plant.
    pub id: u16,
    /// `true` if items exist only while they are [demanded](tapeline_plant::demand::Demand): the providers are interactive.
    pub on_demand: bool,
    /// `true` if other hubs demand items of the same sources: items that this hub does not demand may be on the ring, and this hub stores their
    /// images; a demand for an item that is open brings no image.
    pub is_shared: bool,
    /// `true` if the hub keeps images, and serves further clients from them.
    pub is_cached: bool,
    /// The answer to requests for items that do not exist.
    pub unknown: Unknown,
    /// The handling of posts.
    pub posts: Posts,
    /// Time within which an item must appear, in milliseconds; 0 for no limit.
    pub request_timeout_ms: u64,
    /// The handling of a stream after that time.
    pub late: Late,
    /// Total time of a waiting stream with [`Late::Suspect`], in milliseconds; then it is closed, and its client may retry. 0 for no limit.
    pub wait_timeout_ms: u64,
}

impl Service {
    /// Returns a service of interactive providers: cached, with a request time-out of 15 s, posts refused.
    #[must_use]
    pub fn new(name: &str, id: u16) -> Self {
        Self {
            name: name.to_owned(),
            id,
            on_demand: true,
            is_shared: false,
            is_cached: true,
            unknown: Unknown::Wait,
            posts: Posts::Refuse,
            request_timeout_ms: 15_000,
            late: Late::Recover,
            wait_timeout_ms: 0,
        }
    }
}

/// The settings of a hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of the service of the plant's own feeds; empty if the plant has none. Default `TAPELINE`.
    pub service: String,
    /// The number of that service in the directory. Default 1.
    pub service_id: u16,
    /// The services of providers. A service whose number or name is in use is ignored. Default none.
    pub services: Vec<Service>,
    /// The field dictionary that clients can download. Default the built-in one.
    pub dictionary: Arc<Dictionary>,
    /// The handling of slow clients. Default [`SlowPolicy::Conflate`].
    pub slow: SlowPolicy,
    /// Maximum age of a queued update, in milliseconds; 0, the default, for no limit in addition to the other limits. Does not apply to
    /// [`SlowPolicy::Conflate`], which queues no updates.
    pub slow_age_ms: u64,
    /// Time in milliseconds after which a client with queued output that takes nothing is disconnected, with any policy. Default 60,000.
    pub stuck_ms: u64,
    /// The answer to requests for items that the feeds have not published. Default [`Unknown::Wait`].
    pub unknown: Unknown,
    /// Time in milliseconds after which the client of such a request gets a status that nothing came: see [`Late::Suspect`]. Default 5,000; 0
    /// for no limit.
    pub request_timeout_ms: u64,
    /// Total waiting time of such a request in milliseconds; then it is closed, and its client may retry (CLOSED_RECOVER, TIMEOUT). Default
    /// 30,000; 0 for no limit.
    pub wait_timeout_ms: u64,
    /// The handling of posts to the feeds' service: refused (the default), unless they are reflected.
    pub posts: Posts,
    /// Maximum number of item names, each of which can be published in two domains (quotes and orders). Default 100,000. Further items of the
    /// plant are not served, and counted. The same number of items again can be waited for.
    pub max_items: usize,
    /// Maximum number of open streams of all sessions. Default 1,000,000; further requests are refused. A closed stream counts while its session
    /// has younger open streams.
    pub max_streams: usize,
    /// Maximum number of sessions without a login. Default 500. Beyond it the oldest one is ended, once it is a second old.
    pub max_strangers: usize,
    /// Maximum number of streams on which one session may have the same item open. Default 16; further requests are refused. The limit exists
    /// because each tick costs a test of every stream of its item, even for a session that reads nothing.
    pub max_streams_of_item: usize,
    /// Maximum bytes of all images. Default 1 GiB; an item whose image does not fit is suspect.
    pub cache_bytes: usize,
    /// Maximum bytes of one image. Default 8 MiB; an item with a longer image is suspect.
    pub image_bytes: usize,
    /// Maximum queued bytes, for all clients together, of output that no policy drops: images that exceed the capacity of a connection, and
    /// messages of private streams. Default 64 MiB; at least the size of one image. At the limit, clients that need an image in parts wait for
    /// their turn.
    pub waiting_bytes: usize,
    /// Maximum number of posts, generic messages and private-stream messages queued for the sources. Default 10,000; more are refused.
    pub max_demands: usize,
    /// Maximum bytes of those messages. Default 64 MiB.
    pub demand_bytes: usize,
    /// Maximum number of private streams of all sessions. Default 10,000.
    pub max_private: usize,
    /// Maximum number of outstanding post receipts of all sessions. Default 10,000; further posts are refused.
    pub max_receipts: usize,
    /// Maximum number of distinct views of all sessions. Default 10,000. A request beyond the limit gets all fields, as does a view of more than
    /// 1,000 fields.
    pub max_views: usize,
    /// Number of unreadable messages after which a session is cut. Default 100; a correct client sends none.
    pub max_malformed: u64,
    /// The rules for logins and for access to items. [`Hub::set_access`](crate::Hub::set_access) replaces them.
    pub access: Arc<Access>,
    /// Maximum number of logins that wait for their check. Default 500; further logins are refused, and may be retried.
    pub max_checks: usize,
    /// The limits of each session: streams, time to log in, queued output.
    pub session: provider::ProviderSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            service: "TAPELINE".to_owned(),
            service_id: 1,
            services: Vec::new(),
            dictionary: Arc::new(Dictionary::builtin().clone()),
            slow: SlowPolicy::Conflate,
            slow_age_ms: 0,
            stuck_ms: SLOW_TIME_MS,
            unknown: Unknown::Wait,
            request_timeout_ms: 5_000,
            // Six times the time-out until the status that nothing came: a mistyped name does not occupy a slot for a day.
            wait_timeout_ms: 30_000,
            posts: Posts::Refuse,
            max_items: 100_000,
            max_streams: 1_000_000,
            max_strangers: 500,
            max_streams_of_item: 16,
            cache_bytes: 1 << 30,
            image_bytes: 8 << 20,
            waiting_bytes: 64 << 20,
            max_demands: 10_000,
            demand_bytes: 64 << 20,
            max_private: 10_000,
            max_receipts: 10_000,
            max_views: 10_000,
            max_malformed: 100,
            access: Arc::default(),
            // The checks of ten seconds, at the cost of a password hash: clients wait longer, EMA 45 s.
            max_checks: 500,
            session: provider::ProviderSettings::default(),
        }
    }
}
