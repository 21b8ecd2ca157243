//! What can be set of a hub.

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::role::provider;
use tapeline_plant::sources::Posts;

use crate::Access;

/// What becomes of a client that does not take what it is sent.
///
/// In either case nobody else waits for it: what there is no room for is kept for it within a limit, or is not kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SlowPolicy {
    /// Its updates are left out as long as it has no room, and each item that changed meanwhile gets one new image when it
    /// has. It keeps up with the market, and not with every update.
    #[default]
    Conflate,
    /// It gets every update or none: what it has no room for waits, and beyond these limits the session is over.
    Cut {
        /// Bytes of messages that may wait for it, beyond what its connection holds.
        bytes: usize,
        /// So many messages may.
        messages: usize,
    },
    /// What it has no room for waits; what finds no room there is dropped. Each stream that lost something is told (a status:
    /// suspect, gap detected) and gets an image as soon as there is room.
    DropWithGap {
        /// Bytes of messages that may wait.
        bytes: usize,
        /// So many messages may.
        messages: usize,
    },
    /// What it has no room for waits, for [`Settings::stuck_ms`] at most, and a source that is this client's alone is held
    /// back meanwhile. A feed never is, nor a source that others have open: for those this is [`Cut`](Self::Cut) with a limit of
    /// time.
    Block {
        /// Bytes of messages that may wait.
        bytes: usize,
        /// So many messages may.
        messages: usize,
    },
}

impl SlowPolicy {
    /// Bytes that may wait.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Conflate => 0,
            Self::Cut { bytes, .. } | Self::DropWithGap { bytes, .. } | Self::Block { bytes, .. } => bytes,
        }
    }

    /// Messages that may.
    #[must_use]
    pub const fn messages(self) -> usize {
        match self {
            Self::Conflate => 0,
            Self::Cut { messages, .. }
            | Self::DropWithGap { messages, .. }
            | Self::Block { messages, .. } => messages,
        }
    }
}

/// What is said of an item that the plant has not published (yet).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unknown {
    /// It is closed: not found. For services all of whose items are there before anybody asks.
    Closed,
    /// The stream stays open without an image, its data suspect, until the item appears or [time is up](Late).
    #[default]
    Wait,
}

/// What becomes of a stream whose item has not appeared in time. A snapshot is closed in either case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Late {
    /// It is closed, and the client may ask again (CLOSED_RECOVER, TIMEOUT).
    Recover,
    /// It stays open, its data suspect: the client hears that nothing came in time, and goes on waiting, for [`Service::wait_timeout_ms`].
    #[default]
    Suspect,
}

/// A service whose data comes from OMM providers. The directory has it from the beginning, down until a provider of it is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// What clients call it, whatever its providers do.
    pub name: String,
    /// The number that the directory and the plant give it.
    pub id: u16,
    /// Its items are there only while they are [demanded](tapeline_plant::demand::Demand): its providers are interactive.
    pub on_demand: bool,
    /// Images are kept, so that a second client is served from here.
    pub is_cached: bool,
    /// Of items that are not there.
    pub unknown: Unknown,
    /// What becomes of posts.
    pub posts: Posts,
    /// How long an item may take to appear, milliseconds; 0 for as long as it likes.
    pub request_timeout_ms: u64,
    /// What happens then.
    pub late: Late,
    /// With [`Late::Suspect`]: how long a stream waits in all until it is closed, and its client may ask again, milliseconds; 0 for ever.
    pub wait_timeout_ms: u64,
}

impl Service {
    /// A service of interactive providers: cached, items waited for 15 s, posts refused.
    #[must_use]
    pub fn new(name: &str, id: u16) -> Self {
        Self {
            name: name.to_owned(),
            id,
            on_demand: true,
            is_cached: true,
            unknown: Unknown::Wait,
            posts: Posts::Refuse,
            request_timeout_ms: 15_000,
            late: Late::Recover,
            wait_timeout_ms: 0,
        }
    }
}

/// What can be set of a hub.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What clients call the service of the plant's own feeds; empty where the plant has none.
    pub service: String,
    /// The number that the directory gives it.
    pub service_id: u16,
    /// The services of providers. One with a number or a name that is taken is left out.
    pub services: Vec<Service>,
    /// What fields mean, for those who download it.
    pub dictionary: Arc<Dictionary>,
    /// What becomes of a slow client.
    pub slow: SlowPolicy,
    /// For so long an update may wait for its client, milliseconds; 0 for as long as the other limits allow. Of a client that
    /// is conflated none waits.
    pub slow_age_ms: u64,
    /// A client that is owed something and has taken nothing at all for so long is cut, milliseconds; under either policy.
    pub stuck_ms: u64,
    /// Of items that the feeds have not published.
    pub unknown: Unknown,
    /// How long a request for one of those waits until it is told so, milliseconds: see [`Late::Suspect`]. 0 for as long as
    /// it likes.
    pub request_timeout_ms: u64,
    /// How long such a request waits in all until it is closed, and its client may ask again (CLOSED_RECOVER, TIMEOUT), milliseconds; 0
    /// for ever.
    pub wait_timeout_ms: u64,
    /// What becomes of posts to the feeds' service: refused, unless they are reflected.
    pub posts: Posts,
    /// Names at most, each of which may be published in two domains (quotes and orders); those of the plant beyond are served to
    /// nobody, and counted. As many items again may be waited for.
    pub max_items: usize,
    /// Open streams of all sessions at most; requests beyond are refused. One that is closed counts as long as its session has
    /// open ones that are younger.
    pub max_streams: usize,
    /// Sessions that have sent no login: of more than so many the one that has been there for longest gives way, once it has had a second.
    pub max_strangers: usize,
    /// Streams on which one session may have the same item open; requests beyond are refused. Each tick of an item costs a look at every
    /// stream that has it open, which a session that reads nothing would have for nothing.
    pub max_streams_of_item: usize,
    /// Bytes of all images together at most; an item whose image does not fit is suspect.
    pub cache_bytes: usize,
    /// Bytes of one image at most; one that is longer is suspect.
    pub image_bytes: usize,
    /// Bytes that may wait for all clients together of what no policy leaves out: images that are longer than a client had room
    /// for, messages of private streams. At least one image's. While it is reached, clients that want an image in parts wait for
    /// their turn.
    pub waiting_bytes: usize,
    /// Posts, generic messages and messages of private streams that wait for the sources at most; more are refused.
    pub max_demands: usize,
    /// Bytes of those messages at most.
    pub demand_bytes: usize,
    /// Private streams at most, of all sessions.
    pub max_private: usize,
    /// Receipts of posts that are waited for at most, of all sessions; more posts are refused.
    pub max_receipts: usize,
    /// Distinct views at most, of all sessions; a request with one more gets all fields, as does one that names more than a
    /// thousand.
    pub max_views: usize,
    /// Messages that cannot be read until a session is cut: a good client sends none.
    pub max_malformed: u64,
    /// Who may in, and who may see what. Replaced by [`Hub::set_access`](crate::Hub::set_access).
    pub access: Arc<Access>,
    /// Logins that may wait for their check; more are refused, to be tried again.
    pub max_checks: usize,
    /// Of each session: streams, time to log in, what may be owed.
    pub session: provider::Settings,
}

impl Settings {
    /// For how long an update may wait under a policy, milliseconds; 0 for any time.
    pub(crate) const fn age_ms(&self, slow: SlowPolicy) -> u64 {
        match slow {
            SlowPolicy::Block { .. } if self.slow_age_ms == 0 || self.stuck_ms < self.slow_age_ms => {
                self.stuck_ms
            }
            _ => self.slow_age_ms,
        }
    }
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
            stuck_ms: 60_000,
            unknown: Unknown::Wait,
            request_timeout_ms: 5_000,
            // Six times what a client waits until it hears that nothing came: a name that is mistyped holds no place for a day.
            wait_timeout_ms: 30_000,
            posts: Posts::Refuse,
            max_items: 100_000,
            max_streams: 1_000_000,
            max_strangers: 500,
            max_streams_of_item: 100,
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
            // Ten seconds' worth, at what a hash costs: a client waits for longer, EMA 45 s.
            max_checks: 500,
            session: provider::Settings::default(),
        }
    }
}
