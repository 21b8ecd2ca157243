//! Which publisher serves an item, and which stand by for it.

use std::collections::{BTreeMap, HashMap};

use tapeline_omm::rwf::Domain;

use super::LinkId;
use crate::ItemId;

/// The publishers of each item that has a number. There are no more entries than streams of publishers, and of items that nobody
/// serves no more than there are numbers and domains.
#[derive(Debug, Default)]
pub(super) struct Serving {
    /// In the order in which they came with the item: the first serves it.
    publishers: HashMap<(Domain, ItemId), Vec<LinkId>>,
    /// How many items of a service each publisher serves.
    served: HashMap<(usize, LinkId), usize>,
    /// Items whose publishers are gone, each with its service.
    unserved: BTreeMap<(ItemId, u8), usize>,
    /// How many those are, by service.
    unserved_of: HashMap<usize, usize>,
}

/// What becomes of an item that a publisher has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Another serves it as before, or the publisher did not have it.
    Unchanged,
    /// This one, which stood by, serves it from now on.
    HandedOver(LinkId),
    /// Nobody publishes it.
    ToNobody,
}

impl Serving {
    /// Who serves an item.
    pub(super) fn server(&self, domain: Domain, item: ItemId) -> Option<LinkId> {
        self.publishers.get(&(domain, item))?.first().copied()
    }

    /// Whether somebody would take an item over.
    pub(super) fn has_standby(&self, domain: Domain, item: ItemId) -> bool {
        self.publishers.get(&(domain, item)).is_some_and(|publishers| publishers.len() > 1)
    }

    /// A publisher publishes an item of a service from now on: it serves it, or stands by behind all that are there.
    pub(super) fn join(&mut self, service: usize, (domain, item): (Domain, ItemId), link: LinkId) {
        let publishers = self.publishers.entry((domain, item)).or_default();
        if publishers.contains(&link) {
            return;
        }
        publishers.push(link);
        if publishers.len() == 1 {
            *self.served.entry((service, link)).or_default() += 1;
            self.found((item, domain.0));
        }
    }

    /// A publisher publishes an item no longer.
    pub(super) fn leave(&mut self, service: usize, (domain, item): (Domain, ItemId), link: LinkId) -> Left {
        let Some(publishers) = self.publishers.get_mut(&(domain, item)) else { return Left::Unchanged };
        let Some(place) = publishers.iter().position(|known| *known == link) else { return Left::Unchanged };
        publishers.remove(place);
        let next = publishers.first().copied();
        if next.is_none() {
            self.publishers.remove(&(domain, item));
        }
        if place > 0 {
            return Left::Unchanged;
        }
        if let Some(served) = self.served.get_mut(&(service, link)) {
            *served -= 1;
            if *served == 0 {
                self.served.remove(&(service, link));
            }
        }
        let Some(next) = next else { return Left::ToNobody };
        *self.served.entry((service, next)).or_default() += 1;
        Left::HandedOver(next)
    }

    /// The last publisher of an item is gone, and has not ended it.
    pub(super) fn lose(&mut self, service: usize, (domain, item): (Domain, ItemId)) {
        if self.unserved.insert((item, domain.0), service).is_none() {
            *self.unserved_of.entry(service).or_default() += 1;
        }
    }

    /// The number of an item is another's from now on.
    pub(super) fn forget(&mut self, item: ItemId) {
        let known: Vec<_> = self.unserved.range((item, 0)..=(item, u8::MAX)).map(|(key, _)| *key).collect();
        known.into_iter().for_each(|key| self.found(key));
    }

    fn found(&mut self, key: (ItemId, u8)) {
        if let Some(service) = self.unserved.remove(&key)
            && let Some(count) = self.unserved_of.get_mut(&service)
        {
            *count -= 1;
        }
    }

    /// How many items of a service a publisher serves.
    pub(super) fn served(&self, service: usize, link: LinkId) -> usize {
        self.served.get(&(service, link)).copied().unwrap_or(0)
    }

    /// How many items of a service nobody serves any more.
    pub(super) fn unserved(&self, service: usize) -> usize {
        self.unserved_of.get(&service).copied().unwrap_or(0)
    }
}
