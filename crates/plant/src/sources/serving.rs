//! The serving and standby publishers of each item.

use std::collections::{BTreeMap, HashMap};

use tapeline_omm::rwf::Domain;

use super::LinkId;
use crate::ItemId;

/// The publishers of each numbered item. The number of entries is limited by the publishers' streams, and that of items without a source by the
/// numbers and domains.
#[derive(Debug, Default)]
pub(super) struct Serving {
    /// In the order in which they published the item: the first serves it.
    publishers: HashMap<(Domain, ItemId), Vec<LinkId>>,
    /// Number of items of a service that each publisher serves.
    served: HashMap<(usize, LinkId), usize>,
    /// Items without a source, each with its service.
    unserved: BTreeMap<(ItemId, u8), usize>,
    /// Number of those items by service.
    unserved_of: HashMap<usize, usize>,
}

/// The effect on an item when a publisher leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// The same publisher serves it, or the publisher did not have it.
    Unchanged,
    /// This publisher, which stood by, serves it from now on.
    HandedOver(LinkId),
    /// No publisher is left.
    ToNobody,
}

impl Serving {
    pub(super) fn server(&self, domain: Domain, item: ItemId) -> Option<LinkId> {
        self.publishers.get(&(domain, item))?.first().copied()
    }

    /// Returns `true` if another publisher stands by for an item.
    pub(super) fn has_standby(&self, domain: Domain, item: ItemId) -> bool {
        self.publishers.get(&(domain, item)).is_some_and(|publishers| publishers.len() > 1)
    }

    /// Adds a publisher of an item: it serves the item, or stands by after all present ones.
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

    /// Removes a publisher of an item.
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

    /// Records that the last publisher of an item has disconnected without ending it.
    pub(super) fn lose(&mut self, service: usize, (domain, item): (Domain, ItemId)) {
        if self.unserved.insert((item, domain.0), service).is_none() {
            *self.unserved_of.entry(service).or_default() += 1;
        }
    }

    /// Handles the reassignment of an item's number.
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

    /// Returns the number of items of a service that a publisher serves.
    pub(super) fn served(&self, service: usize, link: LinkId) -> usize {
        self.served.get(&(service, link)).copied().unwrap_or(0)
    }

    /// Returns the number of items of a service without a source.
    pub(super) fn unserved(&self, service: usize) -> usize {
        self.unserved_of.get(&service).copied().unwrap_or(0)
    }
}
