//! The settings of a plant's sources.

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::domain::login::LoginAttributes;
use tapeline_omm::domain::{LoginRequest, login};
use tapeline_omm::role::{acceptor, consumer};

/// The settings of a plant's sources.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The services of providers. Any other service that a provider offers is refused.
    pub services: Vec<ServiceSettings>,
    /// The interactive providers to which the plant logs in.
    pub providers: Vec<ProviderSettings>,
    /// The settings of each connection of a non-interactive provider.
    pub publishers: acceptor::AcceptorSettings,
    /// Maximum number of connections of non-interactive providers without a login. Beyond it the oldest one is closed once it is a second old,
    /// so that such connections cannot keep others out.
    pub max_strangers: usize,
    /// The users who may publish; `None` for everyone who can connect.
    pub users: Option<Vec<String>>,
    /// The field dictionary that providers can download.
    pub dictionary: Arc<Dictionary>,
    /// `true` if several hubs demand items: the end of an item that none demands any more is then a tick, because each may have an image of it.
    pub is_shared: bool,
    /// Maximum number of simultaneously open items of interactive providers.
    pub max_items: usize,
    /// Maximum number of simultaneous private streams.
    pub max_private: usize,
    /// Maximum bytes of images stored for each source that stands by.
    pub standby_bytes: usize,
    /// Maximum number of queued answers. Beyond it generic messages are dropped and private streams end; statuses and receipts, whose number is
    /// bounded by the items and posts, are still queued.
    pub max_answers: usize,
    /// Maximum bytes of those answers, except for the message that exceeds it. Beyond it statuses of items that stay open are dropped too, and
    /// final statuses and receipts are queued without their text.
    pub answer_bytes: usize,
    /// Maximum number of posts that wait for their receipt.
    pub max_posts: usize,
    /// Time that a post waits for its receipt, in milliseconds.
    pub post_timeout_ms: u64,
    /// Time before the plant retries a provider that refused its login, in milliseconds.
    pub refused_pause_ms: u64,
}

impl Default for Settings {
    /// No services.
    fn default() -> Self {
        Self {
            services: Vec::new(),
            providers: Vec::new(),
            publishers: acceptor::AcceptorSettings::default(),
            max_strangers: 50,
            users: None,
            dictionary: Arc::new(Dictionary::builtin().clone()),
            is_shared: false,
            max_items: 100_000,
            max_private: 10_000,
            standby_bytes: 256 << 20,
            max_answers: 65_536,
            answer_bytes: 64 << 20,
            max_posts: 100_000,
            post_timeout_ms: 15_000,
            refused_pause_ms: 10_000,
        }
    }
}

/// A service.
#[derive(Debug, Clone)]
pub struct ServiceSettings {
    /// The service's number in the plant.
    pub id: u16,
    /// The service's name, in the plant and at its sources.
    pub name: String,
    /// The number in its ticks in place of a channel number; [`POSTED`](crate::tick::POSTED) for the feeds' service.
    pub channel: u16,
    /// The sources of its items.
    pub sources: Sourcing,
    /// The handling of posts.
    pub posts: Posts,
}

/// The sources of a service's items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sourcing {
    /// Non-interactive providers, which connect to the plant.
    Publishers {
        /// The users who may publish the service, among those who may publish at all; `None` for all.
        users: Option<Vec<String>>,
        /// The sharing of the service among several publishers.
        sharing: Sharing,
    },
    /// The plant's own feeds. Only posts that are [reflected](Posts::Reflect) pass through [`Sources`](super::Sources): updates of existing items
    /// of the feeds. The state of this service is not published here.
    Feeds,
    /// Interactive providers, which are asked for an item on demand.
    Providers {
        /// Their indexes in [`Settings::providers`].
        of: Vec<usize>,
        /// The sharing of the service among several providers.
        policy: Policy,
    },
}

/// The sharing of one service among several non-interactive providers. Those that stand by keep their images up to date.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The service has the items of all publishers that are up. The first publisher of an item serves it. The others that have published the item
    /// stand by, and take over in the order in which they published it.
    #[default]
    Merge,
    /// The first publisher that is up serves the whole service; the others stand by, and take over in the order in which they connected.
    First,
}

/// The sharing of one service among several interactive providers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// The first provider that is up serves until it is down; then the next takes over, and items are requested from it.
    #[default]
    First,
    /// Items are distributed over all providers that are up, and moved when one is down.
    Balance,
    /// All providers have the items open. The first that is up serves; the data of the others is stored, and passed on when the serving one is down.
    Warm,
}

/// The handling of posts to a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Posts {
    /// Posts are refused.
    #[default]
    Refuse,
    /// Posts go to the source, and its receipt goes back to the client.
    Forward,
    /// The message in the post becomes a message of its item, with the user information of the poster.
    Reflect,
}

/// An interactive provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// The name of the provider in logs and tables.
    pub name: String,
    /// The time-outs and limits; [`Settings::max_items`] also limits the number of open items.
    pub consumer: consumer::ConsumerSettings,
    /// The user name of the login.
    pub user: String,
    /// The password of the login, if the provider requires one.
    pub password: Option<String>,
    /// The application id of the login.
    pub application_id: String,
    /// The position of the login.
    pub position: String,
}

impl ProviderSettings {
    pub(super) fn login(&self) -> LoginRequest<'_> {
        let attributes = LoginAttributes {
            application_id: Some(self.application_id.as_bytes()),
            application_name: Some(b"tapeline"),
            position: Some(self.position.as_bytes()),
            password: self.password.as_ref().map(String::as_bytes),
            role: Some(login::ROLE_CONSUMER),
            ..LoginAttributes::default()
        };
        LoginRequest { attributes, ..LoginRequest::new(self.user.as_bytes()) }
    }
}
