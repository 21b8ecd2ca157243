//! The items of a plant and their numbers.

use std::collections::HashMap;
use std::fmt;

/// The number of an item in its plant, whatever its service, from 1; 0 stands for no item: the channel as a whole. An item
/// of the feeds has it for good; that of a provider's item may be another's after a tick that says so
/// ([`Flags::LAST`](crate::tick::Flags::LAST)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u32);

/// A plant, or what of it is no service's own, has as many items as its limit allows; the next new one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyItems {
    /// The limit that is reached.
    pub limit: usize,
}

impl fmt::Display for TooManyItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the plant has its limit of {} items already", self.limit)
    }
}

impl std::error::Error for TooManyItems {}

/// Numbers names, each within its service. Bounded: a hostile source cannot make it grow past its limit.
#[derive(Debug)]
pub struct Items {
    /// Service and name by number; `None` where the number is free.
    names: Vec<Option<(u16, Box<str>)>>,
    free: Vec<ItemId>,
    /// By service; a plant has few.
    services: Vec<(u16, HashMap<Box<str>, ItemId>)>,
    limit: usize,
    /// The service for which places are kept free, and how many.
    reserved: Option<(u16, usize)>,
    /// Items of the other services.
    of_others: usize,
}

impl Items {
    /// Room for `limit` items; memory is taken as they come.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let limit = limit.min(u32::MAX as usize - 1);
        let (names, free, services) = (Vec::new(), Vec::new(), Vec::new());
        Self { names, free, services, limit, reserved: None, of_others: 0 }
    }

    /// Keeps `places` of the limit for one service, whose numbers are for good: whoever names items of other services would
    /// leave it none. It may have those too that the others do not take.
    #[must_use]
    pub fn reserve(self, service: u16, places: usize) -> Self {
        Self { reserved: Some((service, places)), ..self }
    }

    /// The number of `name` in a service, given now if it is new. No other item of any service has it.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the limit is reached, or what of it is not [reserved](Self::reserve) for another
    /// service.
    pub fn id(&mut self, service: u16, name: &str) -> Result<ItemId, TooManyItems> {
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
            self.of_others += 1;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.names.push(None);
            // Cannot cut: the limit is below u32::MAX.
            ItemId(self.names.len() as u32)
        });
        self.names[id.0 as usize - 1] = Some((service, name.into()));
        let place = self.services.iter().position(|(known, _)| *known == service);
        let place = place.unwrap_or_else(|| {
            self.services.push((service, HashMap::new()));
            self.services.len() - 1
        });
        self.services[place].1.insert(name.into(), id);
        Ok(id)
    }

    /// An item is over: its number is the next new item's.
    pub(crate) fn free(&mut self, id: ItemId) {
        let place = (id.0 as usize).checked_sub(1).and_then(|place| self.names.get_mut(place));
        let Some((service, name)) = place.and_then(Option::take) else { return };
        if let Some((_, ids)) = self.services.iter_mut().find(|(known, _)| *known == service) {
            ids.remove(&name);
        }
        self.of_others -= usize::from(self.reserved.is_some_and(|(own, _)| own != service));
        self.free.push(id);
    }

    /// The number of a name that has one.
    #[must_use]
    pub fn find(&self, service: u16, name: &str) -> Option<ItemId> {
        let (_, ids) = self.services.iter().find(|(known, _)| *known == service)?;
        ids.get(name).copied()
    }

    /// The name of an item.
    #[must_use]
    pub fn name(&self, id: ItemId) -> Option<&str> {
        self.entry(id).map(|(_, name)| &**name)
    }

    /// The service of an item.
    #[must_use]
    pub fn service(&self, id: ItemId) -> Option<u16> {
        self.entry(id).map(|(service, _)| *service)
    }

    fn entry(&self, id: ItemId) -> Option<&(u16, Box<str>)> {
        self.names.get((id.0 as usize).checked_sub(1)?)?.as_ref()
    }

    /// How many items there are, in all services.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len() - self.free.len()
    }

    /// Whether there are none.
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

    #[test]
    fn other_services_leave_what_is_reserved() {
        let mut items = Items::new(4).reserve(1, 2);
        assert_eq!((items.id(7, "A"), items.id(8, "B")), (Ok(ItemId(1)), Ok(ItemId(2))));
        assert_eq!(items.id(7, "C"), Err(TooManyItems { limit: 2 }));
        assert_eq!((items.id(1, "A"), items.id(1, "B")), (Ok(ItemId(3)), Ok(ItemId(4))));
        assert_eq!((items.id(8, "B"), items.id(1, "C")), (Ok(ItemId(2)), Err(TooManyItems { limit: 4 })));
        // What the others do not take is the service's too.
        let mut items = Items::new(2).reserve(1, 1);
        assert_eq!((items.id(1, "A"), items.id(1, "B")), (Ok(ItemId(1)), Ok(ItemId(2))));
        assert_eq!(items.id(7, "A"), Err(TooManyItems { limit: 2 }));
    }
}
