//! What can be set of a plant's sources.

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::domain::login::LoginAttributes;
use tapeline_omm::domain::{LoginRequest, login};
use tapeline_omm::role::{acceptor, consumer};

/// All of it.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The services of providers. What a provider offers beside them is refused.
    pub services: Vec<ServiceSettings>,
    /// The interactive providers, which the plant logs in to.
    pub providers: Vec<ProviderSettings>,
    /// Of each connection of a non-interactive provider.
    pub publishers: acceptor::Settings,
    /// Connections of non-interactive providers that may be without a login. Where there are more, the oldest of them is closed once
    /// it is a second old: they would keep others out.
    pub max_strangers: usize,
    /// Who may publish; `None` for everybody who can connect.
    pub users: Option<Vec<String>>,
    /// What fields mean, for providers that download it.
    pub dictionary: Arc<Dictionary>,
    /// Items of interactive providers that are open at once at most.
    pub max_items: usize,
    /// Streams at once at most that are a client's alone.
    pub max_private: usize,
    /// Bytes of images at most that are kept of each source that stands by.
    pub standby_bytes: usize,
    /// Answers that wait to be taken at most. Generic messages beyond are dropped, streams that are a client's alone end;
    /// statuses and receipts, of which there are no more than items and posts, still wait.
    pub max_answers: usize,
    /// Bytes that those take at most, but for the message that goes beyond. From then on statuses of items that stay open are
    /// dropped too, and last words and receipts wait without their text.
    pub answer_bytes: usize,
    /// Posts at most that wait for their receipt.
    pub max_posts: usize,
    /// How long a post waits for its receipt, milliseconds.
    pub post_timeout_ms: u64,
    /// How long a provider that refused the plant's login is left alone, milliseconds.
    pub refused_pause_ms: u64,
}

impl Default for Settings {
    /// No services.
    fn default() -> Self {
        Self {
            services: Vec::new(),
            providers: Vec::new(),
            publishers: acceptor::Settings::default(),
            max_strangers: 50,
            users: None,
            dictionary: Arc::new(Dictionary::builtin().clone()),
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
    /// Its number in the plant.
    pub id: u16,
    /// What it is called, here and where it comes from.
    pub name: String,
    /// The number that its ticks have in the place of a channel's; [`POSTED`](crate::tick::POSTED) for the feeds'.
    pub channel: u16,
    /// Who has its items.
    pub sources: Sourcing,
    /// What becomes of posts.
    pub posts: Posts,
}

/// Who has the items of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sourcing {
    /// Non-interactive providers, which connect to the plant.
    Publishers {
        /// Who of those who may publish at all may publish it; `None` for all.
        users: Option<Vec<String>>,
        /// What several of them are for.
        sharing: Sharing,
    },
    /// The plant's own feeds, of which nothing comes here but posts that are [reflected](Posts::Reflect): updates of items
    /// that the feeds have. Nothing is said of the service here.
    Feeds,
    /// Interactive providers, which are asked for an item when somebody wants it.
    Providers {
        /// Their places in [`Settings::providers`].
        of: Vec<usize>,
        /// What several of them are for.
        policy: Policy,
    },
}

/// What several non-interactive providers of one service are for. Those that stand by do so with their images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sharing {
    /// The service has the items of all that are up. Each item is served by the first that has published it; the others that have
    /// published it stand by for it, and take over in the order in which they came with it.
    #[default]
    Merge,
    /// The first that is up serves the whole service; the others stand by for it, and take over in the order in which they came.
    First,
}

/// What several interactive providers of one service are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// The first that is up serves until it is not; then the next takes over, and items are asked for again there.
    #[default]
    First,
    /// Items are spread over all that are up, and moved when one goes.
    Balance,
    /// All have the items open. The first that is up serves, the others' data is kept, and passed on when it goes.
    Warm,
}

/// What becomes of posts to a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Posts {
    /// They are refused.
    #[default]
    Refuse,
    /// The source gets them, and its receipt goes back.
    Forward,
    /// The message in the post becomes one of its item, with the user information of whoever posted.
    Reflect,
}

/// An interactive provider.
#[derive(Debug, Clone)]
pub struct ProviderSettings {
    /// What it is called where something is said of it.
    pub name: String,
    /// Patience and limits; how many items are open is said in [`Settings::max_items`] too.
    pub consumer: consumer::Settings,
    /// Who logs in.
    pub user: String,
    /// With which password, where one is wanted.
    pub password: Option<String>,
    /// As which application.
    pub application_id: String,
    /// From where.
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
