//! Services that an application requests, and their state in the directory.

use std::collections::VecDeque;

use crate::domain::Directory;
use crate::domain::directory::{ServiceEntry, ServiceState};
use crate::rwf::Domain;

/// Reference of an application to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceName<'a> {
    /// Name in the directory. The id of the service may change from connection to connection.
    Name(&'a str),
    /// Service id.
    Id(u16),
}

#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Name(Box<str>),
    Id(u16),
}

/// Readiness of a service for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Ready, with the service id.
    Ready(u16),
    /// The service does not exist, is down, or does not serve the domain; with the text for the items.
    NotYet(&'static [u8]),
    /// Too many requests are unanswered.
    WindowFull,
}

/// A requested service.
#[derive(Debug)]
pub(super) struct Service {
    wanted: Wanted,
    /// Service id, while the directory has the service.
    id: Option<u16>,
    accepts: bool,
    /// One bit for each domain that the service serves.
    capabilities: [u64; 4],
    window: Option<u64>,
    /// Number of unanswered requests.
    asked: u64,
    /// Streams that wait for the service, with their turns.
    blocked: VecDeque<(u32, u32)>,
    /// `true` if the service has changed since the last check.
    has_changed: bool,
}

/// Services by place. An application names few, so a lookup is a linear search.
#[derive(Debug, Default)]
pub(super) struct Services {
    list: Vec<Service>,
}

impl Services {
    /// Returns the place of a service, which never changes.
    pub(super) fn place(&mut self, name: ServiceName<'_>, directory: &Directory) -> u32 {
        let place = self.list.iter().position(|service| match (&service.wanted, name) {
            (Wanted::Name(wanted), ServiceName::Name(name)) => **wanted == *name,
            (Wanted::Id(wanted), ServiceName::Id(id)) => *wanted == id,
            _ => false,
        });
        let place = place.unwrap_or_else(|| {
            let wanted = match name {
                ServiceName::Name(name) => Wanted::Name(name.into()),
                ServiceName::Id(id) => Wanted::Id(id),
            };
            let mut service = Service {
                wanted,
                id: None,
                accepts: false,
                capabilities: [0; 4],
                window: None,
                asked: 0,
                blocked: VecDeque::new(),
                has_changed: false,
            };
            service.look_up(directory);
            self.list.push(service);
            self.list.len() - 1
        });
        u32::try_from(place).unwrap_or(u32::MAX)
    }

    /// Returns a service that has changed since it was last returned here.
    pub(super) fn changed(&mut self) -> Option<u32> {
        let place = self.list.iter().position(|service| service.has_changed)?;
        self.list.get_mut(place)?.has_changed = false;
        u32::try_from(place).ok()
    }

    /// Reads the directory again for every service. Appends the ids of services that are gone or have another id to
    /// `gone`.
    pub(super) fn look_up(&mut self, directory: &Directory, gone: &mut Vec<u16>) {
        for service in &mut self.list {
            let before = service.id;
            service.look_up(directory);
            gone.extend(before.filter(|_| service.id != before));
        }
    }

    /// Forgets the directory.
    pub(super) fn forget(&mut self) {
        for service in &mut self.list {
            (service.id, service.accepts, service.asked) = (None, false, 0);
        }
    }

    /// Returns the readiness for one more request of this domain, after `before` requests that are about to be sent.
    pub(super) fn readiness(
        &self,
        place: u32,
        domain: Domain,
        obeys_window: bool,
        before: usize,
    ) -> Readiness {
        let Some(service) = self.list.get(place as usize) else {
            return Readiness::NotYet(b"No such service.");
        };
        let Some(id) = service.id else { return Readiness::NotYet(b"The service is not in the directory.") };
        if !service.accepts {
            return Readiness::NotYet(b"The service is down or takes no requests.");
        }
        let (word, bit) = (usize::from(domain.0 / 64), domain.0 % 64);
        if service.capabilities.get(word).is_none_or(|bits| bits >> bit & 1 == 0) {
            return Readiness::NotYet(b"The service does not serve this domain.");
        }
        match service.window {
            Some(0) => Readiness::WindowFull,
            Some(window) if obeys_window && service.asked + before as u64 >= window => Readiness::WindowFull,
            _ => Readiness::Ready(id),
        }
    }

    /// Counts a request that was sent.
    pub(super) fn count_request(&mut self, place: u32) {
        if let Some(service) = self.list.get_mut(place as usize) {
            service.asked += 1;
        }
    }

    /// Counts a request that was answered or given up.
    pub(super) fn count_answer(&mut self, place: u32) {
        if let Some(service) = self.list.get_mut(place as usize) {
            service.asked = service.asked.saturating_sub(1);
        }
    }

    /// Adds a stream that waits for the service. `is_current` identifies streams that still exist; `most` is the number
    /// of streams.
    pub(super) fn block(
        &mut self,
        place: u32,
        stream: (u32, u32),
        most: usize,
        is_current: impl Fn(u32, u32) -> bool,
    ) {
        let Some(service) = self.list.get_mut(place as usize) else { return };
        if service.blocked.len() >= 2 * most + SPARE {
            service.blocked.retain(|(place, turn)| is_current(*place, *turn));
        }
        service.blocked.push_back(stream);
    }

    /// Removes and returns a stream that waits for the service.
    pub(super) fn unblock(&mut self, place: u32) -> Option<(u32, u32)> {
        self.list.get_mut(place as usize)?.blocked.pop_front()
    }

    /// Returns `true` if one more request is allowed, and a stream waits for it.
    pub(super) fn has_room(&self, place: u32) -> bool {
        self.list.get(place as usize).is_some_and(|service| {
            service.accepts
                && !service.blocked.is_empty()
                && service.window.is_none_or(|window| service.asked < window)
        })
    }
}

/// Number of duplicate entries before the queue is swept.
const SPARE: usize = 64;

impl Service {
    fn look_up(&mut self, directory: &Directory) {
        let before = (self.id, self.accepts, self.window, self.capabilities);
        let entry = match &self.wanted {
            Wanted::Name(name) => directory.named(name),
            Wanted::Id(id) => directory.service(*id),
        };
        // A service without a name cannot be requested, even by id.
        let entry = entry.filter(|entry| entry.name().is_some());
        self.id = entry.map(|entry| entry.id);
        self.accepts = entry.and_then(ServiceEntry::state).is_some_and(ServiceState::accepts_requests);
        self.window = entry.and_then(ServiceEntry::load).and_then(|load| load.open_window);
        self.capabilities = [0; 4];
        let domains = entry.and_then(ServiceEntry::info).and_then(|info| info.capabilities.as_deref());
        for domain in domains.unwrap_or_default() {
            if let Some(word) = self.capabilities.get_mut(usize::from(domain.0 / 64)) {
                *word |= 1 << (domain.0 % 64);
            }
        }
        self.has_changed |= before != (self.id, self.accepts, self.window, self.capabilities);
    }
}
