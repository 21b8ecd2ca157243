//! The items of a service and their numbers.

use std::fmt;

/// The number of an item within its service, given in the order in which items first appear, from 1.
/// 0 stands for no item: the channel as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub u32);

/// A service has as many items as its limit allows; the next new one is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyItems {
    /// The limit.
    pub limit: usize,
}

impl fmt::Display for TooManyItems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the service has its limit of {} items already", self.limit)
    }
}

impl std::error::Error for TooManyItems {}

/// Numbers names. Bounded: a hostile feed cannot make it grow past its limit.
#[derive(Debug)]
pub struct Items {
    names: Vec<Box<str>>,
    ids: std::collections::HashMap<Box<str>, ItemId>,
    limit: usize,
}

impl Items {
    /// Room for `limit` items; memory is taken as they come.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            names: Vec::new(),
            ids: std::collections::HashMap::new(),
            limit: limit.min(u32::MAX as usize - 1),
        }
    }

    /// The number of `name`, given now if it is new.
    ///
    /// # Errors
    /// [`TooManyItems`] if it is new and the limit is reached.
    pub fn id(&mut self, name: &str) -> Result<ItemId, TooManyItems> {
        if let Some(id) = self.ids.get(name) {
            return Ok(*id);
        }
        if self.names.len() >= self.limit {
            return Err(TooManyItems { limit: self.limit });
        }
        self.names.push(name.into());
        // Cannot cut: the limit is below u32::MAX.
        let id = ItemId(self.names.len() as u32);
        self.ids.insert(name.into(), id);
        Ok(id)
    }

    /// The number of a name that has one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ItemId> {
        self.ids.get(name).copied()
    }

    /// The name of an item.
    #[must_use]
    pub fn name(&self, id: ItemId) -> Option<&str> {
        self.names.get((id.0 as usize).checked_sub(1)?).map(AsRef::as_ref)
    }

    /// How many items there are.
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
        assert_eq!(items.id("AAPL").unwrap(), ItemId(1));
        assert_eq!(items.id("IBM").unwrap(), ItemId(2));
        assert_eq!(items.id("AAPL").unwrap(), ItemId(1));
        assert_eq!(items.name(ItemId(2)), Some("IBM"));
        assert_eq!((items.find("IBM"), items.find("MSFT")), (Some(ItemId(2)), None));
        assert_eq!((items.name(ItemId(0)), items.name(ItemId(3))), (None, None));
    }

    #[test]
    fn the_limit_holds_for_new_names_only() {
        let mut items = Items::new(1);
        items.id("AAPL").unwrap();
        assert_eq!(items.id("IBM").unwrap_err(), TooManyItems { limit: 1 });
        assert_eq!(items.id("AAPL").unwrap(), ItemId(1));
        assert_eq!(items.len(), 1);
    }
}
