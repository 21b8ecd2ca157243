//! The present state of the sources.

use super::{Link, LinkId, Policy, Role, Sources};

/// The state of one source at this moment.
#[derive(Debug, Clone, Copy)]
pub struct SeenSource<'s> {
    sources: &'s Sources,
    id: LinkId,
    link: &'s Link,
}

/// The state of the connection between a source and the plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// An interactive provider that is not connected, or has not answered yet.
    #[default]
    Away,
    /// An interactive provider that has refused the plant's login; the plant waits before it retries.
    Refused,
    /// The source is logged in to the plant, or the plant to the source.
    Connected,
}

/// The role of a source in a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceRole {
    /// The source serves: its data is passed on.
    Serves,
    /// The source is up, and takes over when the serving one fails.
    StandsBy,
    /// The source does not have the service: its items are suspect.
    #[default]
    Down,
}

impl<'s> SeenSource<'s> {
    /// Returns the name of the source in logs and tables.
    #[must_use]
    pub fn name(&self) -> &'s str {
        &self.link.state.name
    }

    /// Returns `true` for a non-interactive provider, which connected to the plant.
    #[must_use]
    pub const fn is_publisher(&self) -> bool {
        matches!(self.link.role, Role::Publisher(_))
    }

    /// Returns the state of the connection.
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

    /// Returns the number of items that are open at the source, or that it publishes.
    #[must_use]
    pub fn items(&self) -> usize {
        match &self.link.role {
            Role::Provider(consumer) => consumer.items(),
            Role::Publisher(acceptor) => acceptor.items().len(),
        }
    }

    /// Returns the number of those items that the source serves: its data is passed on.
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

    /// Returns the number of items for which the source stands by: its data is stored, and passed on when the serving source fails.
    #[must_use]
    pub fn stands_by(&self) -> usize {
        // A source that is down stores data to pass on when it is up.
        let is_up = self.services().any(|(_, part)| part != SourceRole::Down);
        if is_up { self.link.state.publishing.kept() } else { 0 }
    }

    /// Returns the services of the source, each with the role of the source.
    pub fn services(&self) -> impl Iterator<Item = (&'s str, SourceRole)> + use<'s> {
        let id = self.id;
        let (kept, serving) = (self.link.state.publishing.kept(), &self.sources.desk.serving);
        let services = self.sources.desk.services.iter().enumerate();
        services.filter_map(move |(place, service)| {
            let member = service.members.iter().find(|member| member.link == id)?;
            let is_spread = service.policy() == Some(Policy::Balance);
            let part = match service.active {
                _ if !member.is_up => SourceRole::Down,
                _ if service.is_merged() => {
                    let serves = serving.served(place, id) > 0;
                    if serves || kept == 0 { SourceRole::Serves } else { SourceRole::StandsBy }
                }
                Some(active) if active == id || is_spread => SourceRole::Serves,
                _ => SourceRole::StandsBy,
            };
            Some((service.name(), part))
        })
    }
}

impl Sources {
    /// Returns all sources: interactive providers in the order of the settings, then publishers in the order of connection. Costs a few
    /// loads for each.
    pub fn seen(&self) -> impl Iterator<Item = SeenSource<'_>> {
        self.links.iter().map(|(id, link)| SeenSource { sources: self, id: *id, link })
    }
}
