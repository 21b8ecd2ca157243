//! Which services there are, and what clients are told of them.

use tapeline_omm::Qos;
use tapeline_omm::domain::directory::{Info, ServiceState, filter};
use tapeline_omm::domain::{Directory, OwnedState, ServiceEntry, ServicePart};
use tapeline_omm::rwf::{DataState, Domain, FilterAction, MapAction, State, StateCode, StreamState};
use tapeline_plant::sources::Posts;

use crate::settings::{Late, Service, Settings};

/// All services: that of the feeds, if there is one, and those of providers.
#[derive(Debug)]
pub(crate) struct Services {
    services: Vec<Service>,
    feeds: Option<u16>,
    directory: Directory,
}

impl Services {
    /// All of them down.
    pub(crate) fn new(settings: &Settings) -> Self {
        let feeds = (!settings.service.is_empty()).then(|| Service {
            on_demand: false,
            unknown: settings.unknown,
            // There is no provider that they could go to.
            posts: if settings.posts == Posts::Reflect { Posts::Reflect } else { Posts::Refuse },
            request_timeout_ms: settings.request_timeout_ms,
            late: Late::Suspect,
            wait_timeout_ms: settings.wait_timeout_ms,
            ..Service::new(&settings.service, settings.service_id)
        });
        let feeds_id = feeds.as_ref().map(|service| service.id);
        let mut all = Self { services: Vec::new(), feeds: feeds_id, directory: Directory::new() };
        for service in feeds.into_iter().chain(settings.services.iter().cloned()) {
            if all.services.iter().any(|other| other.id == service.id || other.name == service.name) {
                continue;
            }
            let info = Info {
                name: Some(service.name.clone()),
                vendor: Some("Tapeline".to_owned()),
                is_source: Some(0),
                capabilities: Some(vec![Domain::DICTIONARY, Domain::MARKET_PRICE]),
                qos: Some(vec![Qos::REALTIME_TICK]),
                ..dictionaries()
            };
            all.directory.apply(&ServiceEntry::new(service.id, info, state(false, NOTHING_YET)));
            all.services.push(service);
        }
        all
    }

    /// A service that is there.
    pub(crate) fn get(&self, id: u16) -> Option<&Service> {
        self.services.iter().find(|service| service.id == id)
    }

    /// All of them, with where each is found.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Service> {
        self.services.iter()
    }

    /// Where a service is in their order.
    pub(crate) fn position(&self, id: u16) -> Option<usize> {
        self.services.iter().position(|service| service.id == id)
    }

    /// Whether a service is that of the plant's own feeds.
    #[inline]
    pub(crate) fn is_of_feeds(&self, id: u16) -> bool {
        self.feeds == Some(id)
    }

    /// The number of the feeds' service.
    pub(crate) const fn feeds(&self) -> Option<u16> {
        self.feeds
    }

    /// Whether items of a service can be asked for.
    pub(crate) fn is_up(&self, id: u16) -> bool {
        self.directory.service(id).and_then(ServiceEntry::state).is_some_and(ServiceState::accepts_requests)
    }

    /// Whether posts to some service are taken.
    pub(crate) fn take_posts(&self) -> bool {
        self.services.iter().any(|service| service.posts != Posts::Refuse)
    }

    /// What clients are told of them.
    pub(crate) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Takes over a change. What it says of the items of a service that is up is news to those who have them open, and not
    /// kept for others.
    pub(crate) fn apply(&mut self, change: &ServiceEntry) {
        let before = self.directory.service(change.id).and_then(ServiceEntry::state).cloned();
        let before = before.unwrap_or_default();
        let mut kept = change.clone();
        for (action, part) in &mut kept.parts {
            if let ServicePart::State(state) = part {
                *action = FilterAction::SET;
                state.service_state = state.service_state.or(before.service_state);
                state.accepting_requests = state.accepting_requests.or(before.accepting_requests);
                let status = state.status.take().or_else(|| before.status.clone());
                state.status = status.filter(|_| !state.is_up());
            }
        }
        self.directory.apply(&kept);
    }

    /// What clients are told of what a provider's service says of itself; `None` where that is not to be believed. The service
    /// keeps its name, and the dictionaries are those that are downloaded from here. It does not go: it is down.
    pub(crate) fn admit(&self, from: u16, mut change: ServiceEntry) -> Option<ServiceEntry> {
        let service = self.get(from).filter(|_| change.id == from && !self.is_of_feeds(from))?;
        if change.action == MapAction::DELETE {
            return Some(ServiceEntry::change(from, ServicePart::State(state(false, GONE))));
        }
        change.action = MapAction::UPDATE;
        change
            .parts
            .retain(|(_, part)| !matches!(part, ServicePart::Cleared(filter::INFO_ID | filter::STATE_ID)));
        for (_, part) in &mut change.parts {
            if let ServicePart::Info(info) = part {
                let Info { dictionaries_provided, dictionaries_used, .. } = dictionaries();
                let name = Some(service.name.clone());
                // Those of the hub: LSEG's consumers ask a service for dictionaries only where it says that it has them.
                let mut capabilities = info.capabilities.clone().unwrap_or_default();
                if !capabilities.contains(&Domain::DICTIONARY) {
                    capabilities.insert(0, Domain::DICTIONARY);
                }
                let capabilities = Some(capabilities);
                *info = Info { name, capabilities, dictionaries_provided, dictionaries_used, ..info.clone() };
            }
        }
        Some(change)
    }

    /// Everything of the providers' services is in doubt: the hub itself missed something.
    pub(crate) fn doubt(&self, text: &str) -> Vec<ServiceEntry> {
        let status = state(false, text).status;
        let doubt = ServiceState { status, ..ServiceState::default() };
        let of_providers = self.services.iter().filter(|service| !self.is_of_feeds(service.id));
        of_providers
            .map(|service| ServiceEntry::change(service.id, ServicePart::State(doubt.clone())))
            .collect()
    }

    /// All services go down.
    pub(crate) fn end(&self, why: &str) -> Vec<ServiceEntry> {
        let down =
            |service: &Service| ServiceEntry::change(service.id, ServicePart::State(state(false, why)));
        self.services.iter().map(down).collect()
    }

    /// A domain is published by the feeds for the first time: what clients are to be told of that.
    pub(crate) fn serves(&self, domain: Domain) -> Option<ServicePart> {
        let info = self.directory.service(self.feeds?)?.info()?;
        let known = info.capabilities.as_deref().unwrap_or_default();
        if known.contains(&domain) {
            return None;
        }
        let capabilities = Some([known, &[domain]].concat());
        Some(ServicePart::Info(Info { capabilities, ..info.clone() }))
    }
}

/// The dictionaries that every service's data is read by.
fn dictionaries() -> Info {
    let both = || Some(vec!["RWFFld".to_owned(), "RWFEnum".to_owned()]);
    Info { dictionaries_provided: both(), dictionaries_used: both(), ..Info::default() }
}

/// The state of a service that serves, or does not.
pub(crate) fn state(is_up: bool, why: &str) -> ServiceState {
    let status = (!is_up).then(|| {
        OwnedState::from(State {
            stream: StreamState::OPEN,
            data: DataState::SUSPECT,
            code: StateCode::NONE,
            text: why.as_bytes(),
        })
    });
    ServiceState { service_state: Some(is_up.into()), accepting_requests: Some(is_up.into()), status }
}

/// Why a service is down before anything was heard of it.
const NOTHING_YET: &str = "Nothing has been published yet";
/// Why a service is down that its provider has taken away.
const GONE: &str = "The provider of this service is gone";
