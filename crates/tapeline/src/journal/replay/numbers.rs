//! One number for each item of a journal, even if several plants wrote it.
//!
//! A restarted plant continues the journal of the plant before, but assigns new item numbers. A reader that knows
//! items by number, such as a hub, would confuse them.

use std::collections::HashMap;

use tapeline_plant::ItemId;
use tapeline_plant::tick::{Flags, Tick};

/// An item: its service and its name.
type Key = (u16, Box<str>);

pub(super) struct Numbers {
    /// By a plant's number: the last item that had it, and the item's number here.
    of_plant: Vec<Option<(Key, ItemId)>>,
    /// By item: its number here, and the plant's.
    here: HashMap<Key, (ItemId, usize)>,
    /// Numbers of items that are closed.
    free: Vec<ItemId>,
    /// The highest permitted number.
    most: usize,
}

/// There are more items than permitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl Numbers {
    /// An empty assignment of the numbers 1 to `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { of_plant: Vec::new(), here: HashMap::new(), free: Vec::new(), most }
    }

    /// The number of a tick's item; 0 for a tick without an item. A new item, or one with another plant's number,
    /// costs a table lookup; any other item costs a comparison of names.
    pub(super) fn of(&mut self, tick: &Tick<'_>) -> Result<ItemId, TooMany> {
        let (service, number) = (tick.header.service, tick.header.item.0 as usize);
        if number == 0 {
            return Ok(ItemId(0));
        }
        let item = match self.of_plant.get(number) {
            Some(Some((key, item))) if key.0 == service && *key.1 == *tick.name => *item,
            _ => self.name(number, (service, tick.name.into()))?,
        };
        if tick.header.flags.contains(Flags::LAST)
            && let Some((key, _)) = self.of_plant.get_mut(number).and_then(Option::take)
        {
            self.here.remove(&key);
            self.free.push(item);
        }
        Ok(item)
    }

    /// Assigns a plant's number to this item.
    #[cold]
    fn name(&mut self, number: usize, key: Key) -> Result<ItemId, TooMany> {
        let known = self.here.get(&key).copied();
        let fresh = || self.free.last().copied().unwrap_or(ItemId(self.here.len() as u32 + 1));
        let item = known.map_or_else(fresh, |(item, _)| item);
        if number > self.most || item.0 as usize > self.most {
            return Err(TooMany);
        }
        match known {
            // The item's former number becomes unused, unless another item has it by now.
            Some((_, before)) => {
                let place = self.of_plant.get_mut(before);
                _ = place.and_then(|place| place.take_if(|(of, _)| *of == key));
            }
            None => _ = self.free.pop(),
        }
        self.here.insert(key.clone(), (item, number));
        if self.of_plant.len() <= number {
            self.of_plant.resize(number + 1, None);
        }
        self.of_plant[number] = Some((key, item));
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use tapeline_plant::Seq;
    use tapeline_plant::tick::Header;

    use super::*;

    fn of(numbers: &mut Numbers, number: u32, name: &str, flags: Flags) -> Result<u32, TooMany> {
        let header = Header { seq: Seq(1), item: ItemId(number), service: 1, flags, ..Header::default() };
        numbers.of(&Tick { header, name, body: &[], source: &[] }).map(|item| item.0)
    }

    #[test]
    fn an_item_keeps_its_number_when_a_plant_gives_it_another() {
        let (mut numbers, none) = (Numbers::new(10), Flags::default());
        assert_eq!(of(&mut numbers, 0, "", none), Ok(0));
        assert_eq!(of(&mut numbers, 1, "A", none), Ok(1));
        assert_eq!(of(&mut numbers, 2, "B", none), Ok(2));
        // Another plant: its first item is another one.
        for _ in 0..2 {
            assert_eq!(of(&mut numbers, 1, "B", none), Ok(2));
            assert_eq!(of(&mut numbers, 2, "C", none), Ok(3));
            assert_eq!(of(&mut numbers, 3, "A", none), Ok(1));
        }
    }

    #[test]
    fn a_number_is_given_again_when_its_item_is_over_and_none_above_the_most() {
        let (mut numbers, none) = (Numbers::new(2), Flags::default());
        assert_eq!(of(&mut numbers, 1, "A", none), Ok(1));
        assert_eq!(of(&mut numbers, 2, "B", none), Ok(2));
        assert_eq!(of(&mut numbers, 1, "A", Flags::LAST), Ok(1));
        assert_eq!(of(&mut numbers, 1, "C", none), Ok(1));
        assert_eq!(of(&mut numbers, 2, "D", none), Err(TooMany));
        assert_eq!(of(&mut numbers, 3, "B", none), Err(TooMany));
        assert_eq!(of(&mut numbers, u32::MAX, "B", none), Err(TooMany));
        assert_eq!(of(&mut numbers, 2, "B", none), Ok(2));
        // Neither the item's former number nor that of another plant leads to a closed item.
        assert_eq!(of(&mut numbers, 1, "B", Flags::LAST), Ok(2));
        assert_eq!(of(&mut numbers, 1, "E", none), Ok(2));
        assert_eq!(of(&mut numbers, 2, "B", none), Err(TooMany));
    }
}
