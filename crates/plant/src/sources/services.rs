//! The services, and the sources that serve their items.

use std::collections::HashMap;

use tapeline_omm::domain::directory::{Info, ServiceState};
use tapeline_omm::domain::{Directory, ServiceEntry, ServicePart};
use tapeline_omm::rwf::{Domain, FilterAction, MapAction, StateCode};

use super::passing::suspect;
use super::{
    Desk, Handling, Link, LinkId, Policy, Posts, Role, ServiceSettings, Settings, Sharing, SourceNote,
    Sourcing,
};
use crate::publish::Refused;
use crate::{Origin, Publish, Sequencer, State, Time};

#[derive(Debug)]
pub(super) struct Service {
    pub(super) settings: ServiceSettings,
    /// Its sources: interactive providers permanently, NI providers in the order in which they offered it.
    pub(super) members: Vec<Member>,
    /// The source whose state is that of the service, and whose items are passed on; if items are distributed or merged, only the former.
    pub(super) active: Option<LinkId>,
    /// The published directory entry.
    told: Vec<ServicePart>,
    pub(super) has_said_too_long: bool,
    pub(super) has_said_no_place: bool,
    /// For NI providers: items that clients have open, each with its number of domains.
    pub(super) wanted: HashMap<Box<str>, u32>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    pub(super) link: LinkId,
    pub(super) is_up: bool,
}

impl Service {
    pub(super) fn new(settings: &ServiceSettings, all: &Settings) -> Self {
        let members = match &settings.sources {
            Sourcing::Publishers { .. } | Sourcing::Feeds => Vec::new(),
            Sourcing::Providers { of, .. } => of
                .iter()
                .filter(|number| **number < all.providers.len())
                .map(|number| Member { link: LinkId(*number as u32), is_up: false })
                .collect(),
        };
        Self {
            settings: settings.clone(),
            members,
            active: None,
            told: Vec::new(),
            has_said_too_long: false,
            has_said_no_place: false,
            wanted: HashMap::new(),
        }
    }

    pub(super) const fn id(&self) -> u16 {
        self.settings.id
    }

    pub(super) fn name(&self) -> &str {
        &self.settings.name
    }

    /// Returns the origin of a tick of the service as a whole.
    pub(super) fn origin(&self) -> Origin<'static> {
        let state = if self.is_up() { State::Live } else { State::Stale };
        Origin { service: Some(self.id()), channel: self.settings.channel, state, ..Origin::default() }
    }

    pub(super) const fn is_up(&self) -> bool {
        self.active.is_some() || self.is_of_feeds()
    }

    /// Returns `true` for the service of the plant's own feeds.
    pub(super) const fn is_of_feeds(&self) -> bool {
        matches!(self.settings.sources, Sourcing::Feeds)
    }

    pub(super) const fn posts(&self) -> Posts {
        self.settings.posts
    }

    pub(super) const fn is_published(&self) -> bool {
        matches!(self.settings.sources, Sourcing::Publishers { .. })
    }

    /// Returns `true` if the service has the items of all its publishers.
    pub(super) const fn is_merged(&self) -> bool {
        matches!(self.settings.sources, Sourcing::Publishers { sharing: Sharing::Merge, .. })
    }

    /// Returns `true` if this publisher's data is passed on: it serves the service, or takes part in it.
    pub(super) fn hears(&self, link: LinkId) -> bool {
        if self.is_merged() { self.is_source_up(link) } else { self.active == Some(link) }
    }

    /// Returns the sharing among several providers; `None` for NI providers.
    pub(super) const fn policy(&self) -> Option<Policy> {
        match self.settings.sources {
            Sourcing::Providers { policy, .. } => Some(policy),
            Sourcing::Publishers { .. } | Sourcing::Feeds => None,
        }
    }

    pub(super) fn is_source_up(&self, link: LinkId) -> bool {
        self.members.iter().any(|member| member.link == link && member.is_up)
    }

    /// Returns `true` if this user may publish the service.
    pub(super) fn takes_from(&self, user: &str) -> bool {
        match &self.settings.sources {
            Sourcing::Publishers { users, .. } => {
                users.as_ref().is_none_or(|users| users.iter().any(|known| known == user))
            }
            Sourcing::Providers { .. } | Sourcing::Feeds => false,
        }
    }
}

impl Desk {
    /// Returns the index of a service by its number.
    pub(super) fn service(&self, id: u16) -> Option<usize> {
        self.services.iter().position(|service| service.id() == id)
    }

    /// Publishes the changes of a service; `theirs` is its entry at the source.
    pub(super) fn tell_service<P: Publish>(
        &mut self,
        place: usize,
        theirs: Option<&ServiceEntry>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Some(service) = self.services.get_mut(place) else { return Ok(()) };
        let is_first = service.told.is_empty();
        let is_up = service.is_up();
        let mut parts = Vec::new();
        let info = theirs.and_then(ServiceEntry::info);
        if info.is_some() || is_first {
            // Without a source the information stays. Clients do not accept a directory in which a service has no capabilities.
            let info = info.cloned().unwrap_or_default();
            let capabilities =
                info.capabilities.or_else(|| Some(vec![Domain::DICTIONARY, Domain::MARKET_PRICE]));
            let name = Some(service.settings.name.clone());
            parts.push(ServicePart::Info(Info { name, capabilities, ..info }));
        }
        // An NI provider does not accept requests, and announces that; its published items can be requested nevertheless.
        let theirs_accepting = theirs.and_then(ServiceEntry::state).map(ServiceState::accepts_requests);
        let accepting = theirs_accepting.filter(|_| !service.is_published());
        parts.push(ServicePart::State(ServiceState {
            service_state: Some(is_up.into()),
            accepting_requests: Some((is_up && accepting.unwrap_or(true)).into()),
            status: None,
        }));
        if let Some(theirs) = theirs {
            let rest = theirs.parts.iter().map(|(_, part)| part);
            parts.extend(rest.filter(|part| is_load_or_link(part)).cloned());
        }
        let was_up = service.told.iter().any(|part| matches!(part, ServicePart::State(s) if s.is_up()));
        let mut news = Vec::new();
        for part in &parts {
            match service.told.iter_mut().find(|told| told.id() == part.id()) {
                Some(before) if before == part => continue,
                Some(before) => before.clone_from(part),
                None => service.told.push(part.clone()),
            }
            news.push((FilterAction::SET, part.clone()));
        }
        let gone =
            |told: &ServicePart| is_load_or_link(told) && !parts.iter().any(|part| part.id() == told.id());
        for told in service.told.extract_if(.., |told| gone(told)) {
            news.push((FilterAction::CLEAR, ServicePart::Cleared(told.id())));
        }
        if news.is_empty() {
            return Ok(());
        }
        let action = if is_first { MapAction::ADD } else { MapAction::UPDATE };
        let entry = ServiceEntry { action, id: service.id(), parts: news };
        self.tick_service(place, &entry, is_first || was_up != is_up, to, time)
    }
}

const fn is_load_or_link(part: &ServicePart) -> bool {
    matches!(part, ServicePart::Load(_) | ServicePart::Links(_))
}

/// Returns the states that an NI provider has set for all items of a service or for its groups: published unchanged, because clients know the
/// groups of their items.
pub(super) fn states(entry: &ServiceEntry, id: u16) -> Option<ServiceEntry> {
    let mut parts = Vec::new();
    for (_, part) in &entry.parts {
        match part {
            ServicePart::Group(group) if group.group.is_some() => {
                parts.push((FilterAction::UPDATE, ServicePart::Group(group.clone())));
            }
            ServicePart::State(ServiceState { status: status @ Some(_), .. }) => {
                let state = ServiceState { status: status.clone(), ..ServiceState::default() };
                parts.push((FilterAction::UPDATE, ServicePart::State(state)));
            }
            _ => {}
        }
    }
    (!parts.is_empty()).then_some(ServiceEntry { action: MapAction::UPDATE, id, parts })
}

impl Link {
    pub(super) fn directory(&self) -> &Directory {
        match &self.role {
            Role::Provider(consumer) => consumer.directory(),
            Role::Publisher(acceptor) => acceptor.directory(),
        }
    }
}

impl<P: Publish, T: Time> Handling<'_, P, T> {
    /// Handles a change of a source's services.
    pub(super) fn review(&mut self, id: LinkId) -> Result<(), Refused> {
        let Some(link) = self.sources.links.get_mut(&id) else { return Ok(()) };
        link.state.has_news = false;
        let mut concerned = Vec::new();
        if matches!(link.role, Role::Publisher(_)) {
            concerned = self.sources.review_publisher(id);
        } else if let Some(Link { role: Role::Provider(consumer), .. }) = self.sources.links.get(&id) {
            for (place, service) in self.sources.desk.services.iter_mut().enumerate() {
                let entry = consumer.directory().named(&service.settings.name);
                let state = entry.and_then(ServiceEntry::state);
                let is_up = consumer.is_ready() && state.is_some_and(ServiceState::is_up);
                if let Some(member) = service.members.iter_mut().find(|member| member.link == id) {
                    member.is_up = is_up;
                    concerned.push(place);
                }
            }
        }
        concerned.into_iter().try_for_each(|service| {
            self.leave_merged(service, id)?;
            self.elect(service)?;
            self.join_merged(service, id)
        })
    }

    /// Determines the active source of a service, and publishes the changes.
    pub(super) fn elect(&mut self, place: usize) -> Result<(), Refused> {
        let Some(service) = self.sources.desk.services.get_mut(place) else { return Ok(()) };
        let before = service.active;
        let first_up = || service.members.iter().find(|member| member.is_up).map(|member| member.link);
        let next = before.filter(|link| service.is_source_up(*link)).or_else(first_up);
        let (policy, is_merged) = (service.policy(), service.is_merged());
        if next != before {
            let text = if next.is_some() { "Another source takes over" } else { "The source is down" };
            if let Some(before) = before.filter(|_| !is_merged) {
                self.doubt(place, before, text)?;
            }
            if let Some(service) = self.sources.desk.services.get_mut(place) {
                service.active = next;
                let source =
                    next.and_then(|next| self.sources.links.get(&next)).map(|link| link.state.name.clone());
                let service = service.name().to_owned();
                if !is_merged {
                    self.sources.desk.counters.taken_over += u64::from(before.is_some() && next.is_some());
                }
                // In a merged service each publisher is reported when it joins.
                if !is_merged || source.is_none() {
                    self.sources.desk.note(SourceNote::Serves { service, source });
                }
            }
        }
        let theirs = next.and_then(|next| {
            let service = self.sources.desk.services.get(place)?;
            let link = self.sources.links.get(&next)?;
            link.directory().named(service.name()).cloned()
        });
        self.sources.desk.tell_service(place, theirs.as_ref(), self.to, self.time)?;
        match (policy, next) {
            (None, Some(next)) if Some(next) != before && !is_merged => {
                self.take_up_published(place, next)?;
            }
            (Some(Policy::First), Some(next)) if Some(next) != before => self.sources.move_items(place, next),
            (Some(Policy::Warm), Some(next)) if Some(next) != before => {
                self.switch_items(place, next)?;
            }
            (Some(Policy::Balance), Some(_)) => {
                self.spread_items(place)?;
                if next != before {
                    self.sources.renew_items(place);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Marks all items of a service at a source as suspect.
    fn doubt(&mut self, service: usize, source: LinkId, text: &str) -> Result<(), Refused> {
        let is_published = self.sources.desk.services.get(service).is_some_and(Service::is_published);
        if is_published {
            self.doubt_published(service, source, suspect(text)).map(|_| ())
        } else {
            self.sources.desk.doubt_requested(service, source, suspect(text), self.to, self.time)
        }
    }
}

/// The status code for a request to an unknown service.
pub(super) const UNKNOWN: StateCode = StateCode::SOURCE_UNKNOWN;
