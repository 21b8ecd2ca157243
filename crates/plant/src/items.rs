//! The items of a plant and their numbers.

use std::collections::HashMap;
use std::fmt;

/// The number of an item in its plant, whatever its service, given in the order in which items first appear, from 1.
/// 0 stands for no item: the channel as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u32);

/// A plant has as many items as its limit allows; the next new one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyItems {
    /// The limit.
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
    names: Vec<(u16, Box<str>)>,
    /// By service; a plant has few.
    services: Vec<(u16, HashMap<Box<str>, ItemId>)>,
    limit: usize,
}

impl Items {
    /// Room for `limit` items; memory is taken as they come.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { names: Vec::new(), services: Vec::new(), limit: limit.min(u32::MAX as usize - 1) }
    }

    /// The number of `name` in a service, given now if it is new. No other item of any service has it.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the limit is reached.
    pub fn id(&mut self, service: u16, name: &str) -> Result<ItemId, TooManyItems> {
        if let Some(id) = self.find(service, name) {
            return Ok(id);
        }
        if self.names.len() >= self.limit {
            return Err(TooManyItems { limit: self.limit });
        }
        self.names.push((service, name.into()));
        // Cannot cut: the limit is below u32::MAX.
        let id = ItemId(self.names.len() as u32);
        let place = self.services.iter().position(|(known, _)| *known == service);
        let place = place.unwrap_or_else(|| {
            self.services.push((service, HashMap::new()));
            self.services.len() - 1
        });
        self.services[place].1.insert(name.into(), id);
        Ok(id)
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
        self.names.get((id.0 as usize).checked_sub(1)?).map(|(_, name)| &**name)
    }

    /// How many items there are, in all services.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
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
}
