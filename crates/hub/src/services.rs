//! The services, and their directory entries for clients.

use tapeline_omm::domain::directory::{Info, ServiceState, filter};
use tapeline_omm::domain::{Directory, OwnedState, ServiceEntry, ServicePart};
use tapeline_omm::rwf::{Domain, FilterAction, MapAction, StateCode, StreamState};
use tapeline_omm::{Qos, State};
use tapeline_plant::sources::Posts;

use crate::settings::{Late, Service, Settings};
use crate::status_texts::{NOTHING_YET, PLANT_ABOVE_SILENT, PROVIDER_GONE};
use crate::statuses::suspect;

/// All services: that of the feeds, if there is one, and those of providers.
#[derive(Debug)]
pub(crate) struct Services {
    services: Vec<Service>,
    feeds: Option<u16>,
    directory: Directory,
    /// Providers' services of a plant above that is silent.
    silent: Vec<u16>,
}

impl Services {
    /// Creates the services, all down.
    pub(crate) fn new(settings: &Settings) -> Self {
        let feeds = (!settings.service.is_empty()).then(|| Service {
            on_demand: false,
            unknown: settings.unknown,
            // The feeds have no provider to which posts could be passed.
            posts: if settings.posts == Posts::Reflect { Posts::Reflect } else { Posts::Refuse },
            request_timeout_ms: settings.request_timeout_ms,
            late: Late::Suspect,
            wait_timeout_ms: settings.wait_timeout_ms,
            ..Service::new(&settings.service, settings.service_id)
        });
        let feeds_id = feeds.as_ref().map(|service| service.id);
        let mut all =
            Self { services: Vec::new(), feeds: feeds_id, directory: Directory::new(), silent: Vec::new() };
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

    pub(crate) fn get(&self, id: u16) -> Option<&Service> {
        self.services.iter().find(|service| service.id == id)
    }

    /// Returns all services, in the order of their positions.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Service> {
        self.services.iter()
    }

    /// Returns a service with its position, by number.
    pub(crate) fn find(&self, id: u16) -> Option<(usize, &Service)> {
        self.services.iter().enumerate().find(|(_, service)| service.id == id)
    }

    /// Returns `true` for the service of the plant's own feeds.
    #[inline]
    pub(crate) fn is_of_feeds(&self, id: u16) -> bool {
        self.feeds == Some(id)
    }

    pub(crate) const fn feeds(&self) -> Option<u16> {
        self.feeds
    }

    /// Returns `true` if items of a service can be requested.
    pub(crate) fn is_up(&self, id: u16) -> bool {
        self.directory.service(id).and_then(ServiceEntry::state).is_some_and(ServiceState::accepts_requests)
    }

    /// Returns `true` if a service accepts posts.
    pub(crate) fn take_posts(&self) -> bool {
        self.services.iter().any(|service| service.posts != Posts::Refuse)
    }

    /// Returns the directory that clients see.
    pub(crate) const fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Applies a change. Its statuses of the items of a service that is up concern clients with open items, and are not stored for others.
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

    /// Returns the form of a provider's own service entry for clients; `None` for an invalid entry. The service keeps its name, and the
    /// dictionaries are those of the hub. A deleted service is down.
    pub(crate) fn admit(&self, from: u16, mut change: ServiceEntry) -> Option<ServiceEntry> {
        let service = self.get(from).filter(|_| change.id == from && !self.is_of_feeds(from))?;
        if change.action == MapAction::DELETE {
            return Some(ServiceEntry::change(from, ServicePart::State(state(false, PROVIDER_GONE))));
        }
        change.action = MapAction::UPDATE;
        let is_own = |part: &_| matches!(part, ServicePart::Cleared(filter::INFO_ID | filter::STATE_ID));
        change.parts.retain(|(_, part)| !is_own(part));
        for (_, part) in &mut change.parts {
            if let ServicePart::Info(info) = part {
                let Info { dictionaries_provided, dictionaries_used, .. } = dictionaries();
                let name = Some(service.name.clone());
                // The hub's capabilities: LSEG's consumers request dictionaries only from a service that announces them.
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

    /// Notes whether the plant above of a provider's service is silent. Returns `true` if that is a change.
    pub(crate) fn set_silent(&mut self, id: u16, is_silent: bool) -> bool {
        match self.silent.iter().position(|silent| *silent == id) {
            None if is_silent && self.get(id).is_some() => self.silent.push(id),
            Some(at) if !is_silent => _ = self.silent.swap_remove(at),
            _ => return false,
        }
        true
    }

    /// Returns the state that items of a provider's service have in place of a good one: their plant above is silent.
    pub(crate) fn silence(&self, id: u16) -> Option<State<'static>> {
        let is_silent = self.silent.contains(&id);
        is_silent.then(|| suspect(StreamState::OPEN, StateCode::NONE, PLANT_ABOVE_SILENT))
    }

    /// Returns the changes that mark all providers' services as suspect: the hub itself missed ticks.
    pub(crate) fn doubt(&self, text: &str) -> Vec<ServiceEntry> {
        let status = state(false, text).status;
        let doubt = ServiceState { status, ..ServiceState::default() };
        let of_providers = self.services.iter().map(|service| service.id).filter(|id| !self.is_of_feeds(*id));
        of_providers.map(|id| ServiceEntry::change(id, ServicePart::State(doubt.clone()))).collect()
    }

    /// Returns the changes that set all services down.
    pub(crate) fn end(&self, why: &str) -> Vec<ServiceEntry> {
        let down =
            |service: &Service| ServiceEntry::change(service.id, ServicePart::State(state(false, why)));
        self.services.iter().map(down).collect()
    }

    /// Records that the feeds publish a domain for the first time; returns the change for clients.
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

/// Returns the dictionaries of every service's data.
fn dictionaries() -> Info {
    let both = || Some(vec!["RWFFld".to_owned(), "RWFEnum".to_owned()]);
    Info { dictionaries_provided: both(), dictionaries_used: both(), ..Info::default() }
}

pub(crate) fn state(is_up: bool, why: &str) -> ServiceState {
    let status = (!is_up).then(|| OwnedState::from(suspect(StreamState::OPEN, StateCode::NONE, why)));
    ServiceState { service_state: Some(is_up.into()), accepting_requests: Some(is_up.into()), status }
}
