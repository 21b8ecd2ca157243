//! The items of a plant and their numbers.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// The number of an item in its plant, across services, from 1; 0 stands for no item: the channel as a whole. The number of a feeds' item is
/// permanent; the number of a provider's item can be reused after a tick with
/// [`Flags::LAST`](crate::tick::Flags::LAST).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u32);

/// The error for a new item when the plant, or the part of it that is not reserved, has reached its item limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the plant has its limit of {limit} items already")]
pub struct TooManyItems {
    /// The limit that was reached.
    pub limit: usize,
}

/// The source that names an item first, and so takes one of the plant's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemSource {
    /// A channel of the feeds' service, by number: a feed, or rows of kdb+ clients.
    Channel(u16),
    /// A service of providers, by number.
    Service(u16),
}

/// A source with reserved places.
#[derive(Debug)]
struct Share {
    source: ItemSource,
    /// Number of its present items.
    used: usize,
}

/// The numbers of a service's names.
type Ids = HashMap<Box<str>, ItemId, RandomState>;

/// The numbers of item names, by service. Bounded: a hostile source cannot exceed the limit.
#[derive(Debug)]
pub struct Items {
    /// By number; `None` for a free number.
    names: Vec<Option<Entry>>,
    free: Vec<ItemId>,
    /// By service; a plant has few.
    services: Vec<(u16, Ids)>,
    limit: usize,
    /// The service with reserved places, and their number.
    reserved: Option<(u16, usize)>,
    /// Number of items of the other services.
    of_others: usize,
    /// The sources with reserved places; a plant has few.
    shares: Vec<Share>,
    /// Number of places reserved for each of them.
    share: usize,
}

#[derive(Debug)]
struct Entry {
    service: u16,
    /// Index of the share that includes it; [`NO_SHARE`] without a share.
    share: u16,
    name: Box<str>,
}

/// No share.
const NO_SHARE: u16 = u16::MAX;

impl Items {
    /// Creates a table with capacity for `limit` items; memory is allocated as items are added.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let limit = limit.min(u32::MAX as usize - 1);
        let (names, free, services) = (Vec::new(), Vec::new(), Vec::new());
        Self { names, free, services, limit, reserved: None, of_others: 0, shares: Vec::new(), share: 0 }
    }

    /// Reserves `places` of the limit for one service with permanent numbers, so that names of other services cannot use them up. The service
    /// may also use places that the others leave free.
    #[must_use]
    pub fn reserve(self, service: u16, places: usize) -> Self {
        Self { reserved: Some((service, places)), ..self }
    }

    /// Reserves `places` of the limit for each of these sources, so that one source with many names cannot use them up. The remaining places are
    /// first come, first served. Places beyond the limit, and sources beyond 65,000, are not reserved.
    #[must_use]
    pub fn share(self, sources: impl IntoIterator<Item = ItemSource>, places: usize) -> Self {
        let shares = sources.into_iter().take(usize::from(NO_SHARE)).map(|source| Share { source, used: 0 });
        let shares: Vec<_> = shares.collect();
        let share = places.min(self.limit / shares.len().max(1));
        Self { shares, share, ..self }
    }

    /// Returns the number of `name` in a service; assigns one if the name is new. Numbers are unique across services.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the limit is reached, or the remaining places are reserved for another [service](Self::reserve) or for
    /// other [sources](Self::share).
    pub fn id(&mut self, service: u16, name: &str) -> Result<ItemId, TooManyItems> {
        self.id_by(ItemSource::Service(service), service, name)
    }

    /// Does the same as [`Self::id`] for an item that is named by a source other than the service itself.
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn id_by(&mut self, source: ItemSource, service: u16, name: &str) -> Result<ItemId, TooManyItems> {
        if let Some(id) = self.find(service, name) {
            return Ok(id);
        }
        if self.len() >= self.limit {
            return Err(TooManyItems { limit: self.limit });
        }
        if let Some((_, places)) = self.reserved.filter(|(own, _)| *own != service) {
            let limit = self.limit.saturating_sub(places);
            if self.of_others >= limit {
                return Err(TooManyItems { limit });
            }
        }
        if !self.has_place(source) {
            return Err(TooManyItems { limit: self.limit });
        }
        self.of_others += self.is_of_others(service);
        let share = self.shares.iter().position(|share| share.source == source);
        if let Some(share) = share {
            self.shares[share].used += 1;
        }
        // Lossless: there are fewer shares than NO_SHARE.
        let share = share.map_or(NO_SHARE, |share| share as u16);
        let id = self.free.pop().unwrap_or_else(|| {
            self.names.push(None);
            // Lossless: the limit is below u32::MAX.
            ItemId(self.names.len() as u32)
        });
        self.names[id.0 as usize - 1] = Some(Entry { service, share, name: name.into() });
        let place = self.services.iter().position(|(known, _)| *known == service);
        let place = place.unwrap_or_else(|| {
            self.services.push((service, HashMap::default()));
            self.services.len() - 1
        });
        self.services[place].1.insert(name.into(), id);
        Ok(id)
    }

    /// Returns `true` if a source may name one more item: it has reserved places left, or there are more places than those reserved for others.
    fn has_place(&self, source: ItemSource) -> bool {
        let left = |share: &Share| self.share.saturating_sub(share.used);
        let is_own = |share: &&Share| share.source == source;
        if self.shares.iter().find(is_own).is_some_and(|share| left(share) > 0) {
            return true;
        }
        let of_others: usize = self.shares.iter().filter(|share| !is_own(share)).map(left).sum();
        self.limit - self.len() > of_others
    }

    /// Removes an item: its number is reused for the next new item.
    pub(crate) fn free(&mut self, id: ItemId) {
        let place = (id.0 as usize).checked_sub(1).and_then(|place| self.names.get_mut(place));
        let Some(Entry { service, share, name }) = place.and_then(Option::take) else { return };
        if let Some(share) = self.shares.get_mut(usize::from(share)) {
            share.used -= 1;
        }
        if let Some((_, ids)) = self.services.iter_mut().find(|(known, _)| *known == service) {
            ids.remove(&name);
        }
        self.of_others -= self.is_of_others(service);
        self.free.push(id);
    }

    /// Returns 1 for a service without the reserved places, 0 for the others.
    fn is_of_others(&self, service: u16) -> usize {
        usize::from(self.reserved.is_some_and(|(own, _)| own != service))
    }

    /// Returns the number of a name that already has one.
    #[must_use]
    pub fn find(&self, service: u16, name: &str) -> Option<ItemId> {
        let (_, ids) = self.services.iter().find(|(known, _)| *known == service)?;
        ids.get(name).copied()
    }

    /// Returns the name of an item.
    #[must_use]
    pub fn name(&self, id: ItemId) -> Option<&str> {
        self.entry(id).map(|entry| &*entry.name)
    }

    /// Returns the service of an item.
    #[must_use]
    pub fn service(&self, id: ItemId) -> Option<u16> {
        self.entry(id).map(|entry| entry.service)
    }

    fn entry(&self, id: ItemId) -> Option<&Entry> {
        self.names.get((id.0 as usize).checked_sub(1)?)?.as_ref()
    }

    /// Returns the number of items in all services.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len() - self.free.len()
    }

    /// Returns `true` if there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut items = Items::new(10);
        assert_eq!(items.id(1, "AAPL").unwrap(), ItemId(1));
        assert_eq!(items.id(1, "IBM").unwrap(), ItemId(2));
        assert_eq!(items.id(1, "AAPL").unwrap(), ItemId(1));
        assert_eq!(items.name(ItemId(2)), Some("IBM"));
        assert_eq!((items.find(1, "IBM"), items.find(1, "MSFT")), (Some(ItemId(2)), None));
        assert_eq!((items.name(ItemId(0)), items.name(ItemId(3))), (None, None));
    }

    #[test]
    fn two_services_share_numbers_and_not_names() {
        let mut items = Items::new(10);
        assert_eq!(items.id(1, "IBM"), Ok(ItemId(1)));
        assert_eq!(items.id(7, "IBM"), Ok(ItemId(2)));
        assert_eq!((items.find(1, "IBM"), items.find(7, "IBM")), (Some(ItemId(1)), Some(ItemId(2))));
        assert_eq!((items.find(8, "IBM"), items.name(ItemId(2))), (None, Some("IBM")));
    }

    #[test]
    fn the_limit_holds_for_new_names_only() {
        let mut items = Items::new(1);
        items.id(1, "AAPL").unwrap();
        assert_eq!(items.id(1, "IBM").unwrap_err(), TooManyItems { limit: 1 });
        assert_eq!(items.id(1, "AAPL").unwrap(), ItemId(1));
        assert_eq!(items.len(), 1);
    }

    #[test]
    fn a_number_that_is_free_is_the_next_items() {
        let mut items = Items::new(4).reserve(1, 2);
        assert_eq!((items.id(7, "A"), items.id(8, "B")), (Ok(ItemId(1)), Ok(ItemId(2))));
        items.free(ItemId(1));
        items.free(ItemId(1));
        items.free(ItemId(9));
        assert_eq!((items.name(ItemId(1)), items.find(7, "A"), items.len()), (None, None, 1));
        assert_eq!((items.id(1, "A"), items.service(ItemId(1))), (Ok(ItemId(1)), Some(1)));
        assert_eq!((items.id(8, "C"), items.id(8, "D")), (Ok(ItemId(3)), Err(TooManyItems { limit: 2 })));
    }

    /// A source that invents names does not reduce the reserved places of others, in any order of events.
    #[test]
    fn a_source_that_makes_up_names_leaves_the_others_their_places() {
        let sources = [ItemSource::Channel(0), ItemSource::Channel(1), ItemSource::Service(7)];
        let mut items = Items::new(10).share(sources, 2);
        let flood = |items: &mut Items, source, service: u16, most: usize| {
            let names = (0..most).map(|number| format!("{source:?} {number}"));
            names.filter(|name| items.id_by(source, service, name).is_ok()).count()
        };
        assert_eq!(items.id_by(ItemSource::Channel(1), 1, "REAL"), Ok(ItemId(1)));
        assert_eq!(flood(&mut items, ItemSource::Channel(0), 1, 100), 6);
        // A source without a share has no further place.
        assert_eq!(items.id(9, "OTHER"), Err(TooManyItems { limit: 10 }));
        assert_eq!(flood(&mut items, ItemSource::Channel(1), 1, 100), 1);
        assert_eq!(flood(&mut items, ItemSource::Service(7), 7, 100), 2);
        assert_eq!((items.len(), items.id_by(ItemSource::Channel(0), 1, "REAL")), (10, Ok(ItemId(1))));
        // The place of a removed item goes back to its source, and to no other.
        let gone = items.find(7, "Service(7) 0").unwrap();
        items.free(gone);
        assert_eq!(items.id_by(ItemSource::Channel(0), 1, "MORE"), Err(TooManyItems { limit: 10 }));
        assert_eq!(items.id(7, "AGAIN"), Ok(gone));
    }

    #[test]
    fn what_is_kept_is_never_more_than_there_is() {
        let mut items = Items::new(3).share([ItemSource::Channel(0), ItemSource::Channel(1)], 100);
        assert!(items.id_by(ItemSource::Channel(0), 1, "A").is_ok());
        // One place is not reserved.
        assert!(items.id_by(ItemSource::Channel(0), 1, "B").is_ok());
        assert!(items.id_by(ItemSource::Channel(0), 1, "C").is_err());
        assert!(items.id_by(ItemSource::Channel(1), 1, "C").is_ok());
    }

    #[test]
    fn other_services_leave_what_is_reserved() {
        let mut items = Items::new(4).reserve(1, 2);
        assert_eq!((items.id(7, "A"), items.id(8, "B")), (Ok(ItemId(1)), Ok(ItemId(2))));
        assert_eq!(items.id(7, "C"), Err(TooManyItems { limit: 2 }));
        assert_eq!((items.id(1, "A"), items.id(1, "B")), (Ok(ItemId(3)), Ok(ItemId(4))));
        assert_eq!((items.id(8, "B"), items.id(1, "C")), (Ok(ItemId(2)), Err(TooManyItems { limit: 4 })));
        // The service also gets the places that the others do not use.
        let mut items = Items::new(2).reserve(1, 1);
        assert_eq!((items.id(1, "A"), items.id(1, "B")), (Ok(ItemId(1)), Ok(ItemId(2))));
        assert_eq!(items.id(7, "A"), Err(TooManyItems { limit: 2 }));
    }
}
