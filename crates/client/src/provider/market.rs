//! The state that all consumers of a provider share.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use tapeline_measure::Nanos;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::directory::Info;
use tapeline_omm::domain::directory::ServiceState;
use tapeline_omm::domain::{Directory, LoginRequest, ServiceEntry};
use tapeline_omm::rwf::{DataType, Domain};
use tapeline_wire::rssl::{ConnectionId, Negotiated, Sender};

use super::client::{Answers, Client};
use super::{LoginAnswer, ProviderEvent};
use crate::connection::{JsonSettings, MOST_MALFORMED, RoleConnection, Side};
use crate::payload::Payload;
use crate::server::Serve;
use crate::values::{self, LastValues};

/// The number of the service.
pub(super) const SERVICE_ID: u16 = 1;

/// The domain and the name of an item.
pub(super) type ItemKey = (Domain, String);

/// The image of an item.
#[derive(Debug)]
pub(super) enum Values {
    /// The last value of each field of a MarketPrice item.
    Fields(LastValues),
    /// The image of an item of another domain.
    Payload(Payload),
}

impl Values {
    pub(super) const fn container(&self) -> DataType {
        match self {
            Self::Fields(_) => DataType::FIELD_LIST,
            Self::Payload(payload) => payload.container,
        }
    }
}

type CheckLogin = Box<dyn FnMut(&LoginRequest<'_>) -> LoginAnswer + Send>;

/// The state that all consumers share.
pub(super) struct Market {
    pub(super) services: Directory,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) items: HashMap<ItemKey, Values>,
    /// The number of streams of each item that was requested.
    uses: HashMap<ItemKey, usize>,
    pub(super) events: VecDeque<ProviderEvent>,
    info: Info,
    pub(super) takes_posts: bool,
    login_check: Option<CheckLogin>,
}

impl fmt::Debug for Market {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Market").field("items", &self.items.len()).finish_non_exhaustive()
    }
}

impl Market {
    pub(super) fn new(service: &str) -> Self {
        let mut info = values::service(service);
        info.dictionaries_provided.clone_from(&info.dictionaries_used);
        let mut services = Directory::new();
        services.apply(&ServiceEntry::new(SERVICE_ID, info.clone(), ServiceState::UP));
        Self {
            services,
            dictionary: Arc::new(Dictionary::builtin().clone()),
            items: HashMap::new(),
            uses: HashMap::new(),
            events: VecDeque::new(),
            info,
            takes_posts: false,
            login_check: None,
        }
    }

    /// Adds a domain to those of the service.
    pub(super) fn serve(&mut self, domain: Domain) {
        if !self.serves(domain) {
            self.info.capabilities.get_or_insert_default().push(domain);
            self.services.apply(&ServiceEntry::new(SERVICE_ID, self.info.clone(), ServiceState::UP));
        }
    }

    pub(super) fn serves(&self, domain: Domain) -> bool {
        self.info.capabilities.as_ref().is_some_and(|domains| domains.contains(&domain))
    }

    pub(super) fn set_login_check(&mut self, check: CheckLogin) {
        self.login_check = Some(check);
    }

    pub(super) fn check_login(&mut self, request: &LoginRequest<'_>) -> LoginAnswer {
        self.login_check.as_mut().map_or(LoginAnswer::Accept, |check| check(request))
    }

    /// Counts a new stream of an item. Returns `true` if the item has an image; else the program is asked for it.
    pub(super) fn opened(&mut self, key: &ItemKey, is_snapshot: bool) -> bool {
        *self.uses.entry(key.clone()).or_default() += 1;
        let has_image = self.items.contains_key(key);
        if !has_image {
            let (domain, item) = key.clone();
            self.events.push_back(ProviderEvent::Opened { domain, item, is_snapshot });
        }
        has_image
    }

    /// Counts a stream of an item that a consumer has closed.
    pub(super) fn closed(&mut self, key: ItemKey) {
        let Some(uses) = self.uses.get_mut(&key) else { return };
        *uses = uses.saturating_sub(1);
        if *uses == 0 {
            self.uses.remove(&key);
            self.events.push_back(ProviderEvent::Unused { domain: key.0, item: key.1 });
        }
    }
}

impl Serve for Market {
    type Client = Client;

    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> Client {
        let json = JsonSettings::default();
        let mut messages = RoleConnection::new(Side::Server, agreed, &self.dictionary, json);
        messages.set_services(&self.services);
        Client::new(messages, now)
    }

    fn step(
        &mut self,
        client: &mut Client,
        id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String> {
        let Client { role, messages, user, streams, owed } = client;
        let mut answers = Answers { market: self, id, user, streams, owed, now };
        let done = match message {
            Some(received) => messages
                .receive(received, sender, |message, out| role.message(now, message, out, &mut answers)),
            None => role.tick(now, &mut messages.outbox(sender), &mut answers).map(|_| ()),
        };
        done.map_err(|over| over.to_string())?;
        client.send_owed(self, sender);
        while let Some(note) = client.messages.next_note() {
            self.events.push_back(ProviderEvent::Note(note.to_string()));
        }
        if client.role.counters().malformed + client.messages.unreadable() >= MOST_MALFORMED {
            return Err(format!("{MOST_MALFORMED} of its messages could not be read"));
        }
        Ok(())
    }

    fn closed(&mut self, _id: ConnectionId, client: Client, reason: &str) {
        for open in client.streams.into_values() {
            Self::closed(self, open.key);
        }
        self.events.push_back(ProviderEvent::Closed { user: client.user, reason: reason.to_owned() });
    }
}
