//! The sources at one moment, for who looks from outside.

use super::{Link, LinkId, Policy, Role, Sources};

/// A source.
#[derive(Debug, Clone, Copy)]
pub struct SeenSource<'s> {
    sources: &'s Sources,
    id: LinkId,
    link: &'s Link,
}

/// How a source stands to the plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// An interactive provider that is not there, or does not answer yet.
    #[default]
    Away,
    /// One that has refused the plant's login, and is left alone for a while.
    Refused,
    /// It is logged in, or the plant is to it.
    Connected,
}

/// What a source is to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part {
    /// Its data is passed on.
    Serves,
    /// It is up, and takes over when the one that serves goes.
    StandsBy,
    /// It does not have the service: what it said of items is suspect.
    #[default]
    Down,
}

impl<'s> SeenSource<'s> {
    /// What it is called where something is said of it.
    #[must_use]
    pub fn name(&self) -> &'s str {
        &self.link.state.name
    }

    /// Whether it is non-interactive: it came by itself.
    #[must_use]
    pub const fn is_publisher(&self) -> bool {
        matches!(self.link.role, Role::Publisher(_))
    }

    /// How it stands to the plant.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let is_there = match &self.link.role {
            Role::Provider(consumer) => consumer.is_ready(),
            Role::Publisher(acceptor) => acceptor.is_logged_in(),
        };
        match self.link.state.again {
            _ if is_there => Standing::Connected,
            Some(_) => Standing::Refused,
            None => Standing::Away,
        }
    }

    /// Items that are open at it, or that it publishes.
    #[must_use]
    pub fn items(&self) -> usize {
        match &self.link.role {
            Role::Provider(consumer) => consumer.items(),
            Role::Publisher(acceptor) => acceptor.items().len(),
        }
    }

    /// Items of those that it serves: what it says of them is passed on.
    #[must_use]
    pub fn serves(&self) -> usize {
        let desk = &self.sources.desk;
        (0..desk.services.len())
            .map(|service| match &self.link.role {
                Role::Provider(_) => desk.requests.with(service, self.id),
                Role::Publisher(_) => desk.serving.served(service, self.id),
            })
            .sum()
    }

    /// Items for which it stands by: what it says of them is kept, to be passed on when the one that serves them goes.
    #[must_use]
    pub fn stands_by(&self) -> usize {
        // One that is down keeps what is to be passed on when it is up.
        let is_up = self.services().any(|(_, part)| part != Part::Down);
        if is_up { self.link.state.publishing.kept() } else { 0 }
    }

    /// The services that it is a source of, each with what it is to it.
    pub fn services(&self) -> impl Iterator<Item = (&'s str, Part)> + use<'s> {
        let id = self.id;
        let (kept, serving) = (self.link.state.publishing.kept(), &self.sources.desk.serving);
        let services = self.sources.desk.services.iter().enumerate();
        services.filter_map(move |(place, service)| {
            let member = service.members.iter().find(|member| member.link == id)?;
            let is_spread = service.policy() == Some(Policy::Balance);
            let part = match service.active {
                _ if !member.is_up => Part::Down,
                _ if service.is_merged() => {
                    let serves = serving.served(place, id) > 0;
                    if serves || kept == 0 { Part::Serves } else { Part::StandsBy }
                }
                Some(active) if active == id || is_spread => Part::Serves,
                _ => Part::StandsBy,
            };
            Some((service.name(), part))
        })
    }
}

impl Sources {
    /// All sources: interactive providers in the order of the settings, then those that connected, as they came. Costs a few
    /// loads for each.
    pub fn seen(&self) -> impl Iterator<Item = SeenSource<'_>> {
        self.links.iter().map(|(id, link)| SeenSource { sources: self, id: *id, link })
    }
}
