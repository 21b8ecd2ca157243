//! Stream ids of one connection: handed out upwards, found by index.

/// Whose a stream id is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The stream at this place.
    Stream(u32),
    /// A batch request of so many items, which are on the ids that follow.
    Batch(u32),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// 0 is nobody's: items never have it.
    id: i32,
    owner: Owner,
}

const FREE: Entry = Entry { id: 0, owner: Owner::Batch(0) };

/// The ids that are open, at the place that their low bits give. The table is at least twice as long as there are ids, and
/// an id whose place is taken is skipped; so finding one is one comparison, and none is handed out again before all of
/// 2,147,483,647 went by. 12 bytes for each place.
#[derive(Debug)]
pub(crate) struct StreamIds {
    /// A power of two long.
    entries: Vec<Entry>,
    used: usize,
    first: i32,
    next: i32,
}

impl StreamIds {
    /// Bytes of one place.
    pub(crate) const BYTES: usize = size_of::<Entry>();

    /// Ids from `first` up; it must be positive.
    pub(crate) fn new(first: i32) -> Self {
        Self { entries: vec![FREE; 64], used: 0, first, next: first }
    }

    /// Whether `id` was handed out at some time, on this connection or one before.
    pub(crate) const fn was_open(&self, id: i32) -> bool {
        id >= self.first && id < self.next
    }

    fn place(&self, id: i32) -> usize {
        id as u32 as usize & (self.entries.len() - 1)
    }

    /// Whose `id` is.
    #[inline]
    pub(crate) fn find(&self, id: i32) -> Option<Owner> {
        let entry = self.entries.get(self.place(id))?;
        (entry.id == id && id != 0).then_some(entry.owner)
    }

    /// The next free id.
    pub(crate) fn take(&mut self, owner: Owner) -> i32 {
        self.make_room(1);
        loop {
            let id = self.next;
            self.next = if id == i32::MAX { self.first } else { id + 1 };
            if self.set(id, owner) {
                return id;
            }
        }
    }

    /// The first of `count` ids in a row that are all free, which stay so; `None` where holes are all smaller.
    pub(crate) fn row(&mut self, count: usize) -> Option<i32> {
        self.make_room(count);
        let (mut first, mut len) = (self.next, 0);
        // Once round the table sees every hole; more, and one that begins where the search began.
        for _ in 0..self.entries.len() + count {
            let last = first.checked_add(i32::try_from(len).ok()?);
            let Some(last) = last.filter(|last| *last < i32::MAX) else {
                (first, len) = (self.first, 0);
                continue;
            };
            if self.entries.get(self.place(last))?.id != 0 {
                (first, len) = (last + 1, 0);
                continue;
            }
            len += 1;
            if len == count {
                return Some(first);
            }
        }
        None
    }

    /// Takes an id of a [`StreamIds::row`]. The next id is behind it.
    pub(crate) fn take_in_row(&mut self, id: i32, owner: Owner) {
        if self.set(id, owner) {
            self.next = id.saturating_add(1).max(self.first);
        }
    }

    /// Gives `id` back.
    pub(crate) fn free(&mut self, id: i32) {
        let place = self.place(id);
        if let Some(entry) = self.entries.get_mut(place)
            && entry.id == id
            && id != 0
        {
            *entry = FREE;
            self.used -= 1;
        }
    }

    /// The last id that was taken, and was given back as it was not used, is the next again.
    pub(crate) fn take_back(&mut self, id: i32) {
        if self.next.checked_sub(1) == Some(id) && self.find(id).is_none() {
            self.next = id;
        }
    }

    /// Gives all ids back. The next id is still a new one.
    pub(crate) fn clear(&mut self) {
        self.entries.fill(FREE);
        self.used = 0;
    }

    fn set(&mut self, id: i32, owner: Owner) -> bool {
        let place = self.place(id);
        match self.entries.get_mut(place) {
            Some(entry) if entry.id == 0 => {
                *entry = Entry { id, owner };
                self.used += 1;
                true
            }
            _ => false,
        }
    }

    /// Doubles the table until it is twice as long as what will be in it. Ids that had places of their own still have.
    fn make_room(&mut self, count: usize) {
        while (self.used + count) * 2 > self.entries.len() {
            let longer = vec![FREE; self.entries.len() * 2];
            let shorter = std::mem::replace(&mut self.entries, longer);
            for entry in shorter.into_iter().filter(|entry| entry.id != 0) {
                let place = self.place(entry.id);
                if let Some(slot) = self.entries.get_mut(place) {
                    *slot = entry;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_go_up_and_come_round() {
        let mut ids = StreamIds::new(5);
        let taken: Vec<_> = (0..200).map(|place| ids.take(Owner::Stream(place))).collect();
        assert_eq!(taken, (5..205).collect::<Vec<_>>());
        ids.free(9);
        assert_eq!((ids.find(9), ids.find(10), ids.find(0)), (None, Some(Owner::Stream(5)), None));
        assert_eq!(ids.take(Owner::Stream(7)), 205, "an old id is not the next one");
        ids.next = i32::MAX;
        assert_eq!(ids.take(Owner::Stream(0)), i32::MAX);
        assert_eq!(ids.take(Owner::Stream(0)), 9, "the first one that is free");
    }

    #[test]
    fn a_row_is_free_from_end_to_end() {
        let mut ids = StreamIds::new(3);
        for id in (0..20).map(|n| 3 + 3 * n) {
            ids.take_in_row(id, Owner::Stream(1));
        }
        ids.next = 3;
        // Holes of two, then what is behind the last.
        assert_eq!((ids.row(2), ids.row(3)), (Some(4), Some(61)));
        ids.next = i32::MAX - 1;
        assert_eq!(ids.row(3), Some(61), "a row does not go round");
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u8..4, any::<u16>()), 1..400)) {
            let mut ids = StreamIds::new(3);
            let mut model: BTreeMap<i32, Owner> = BTreeMap::new();
            for (step, number) in steps {
                match step {
                    0 | 1 => {
                        let owner = Owner::Stream(u32::from(number));
                        prop_assert_eq!(model.insert(ids.take(owner), owner), None);
                    }
                    2 => if let Some(id) = model.keys().nth(usize::from(number) % model.len().max(1)).copied() {
                        model.remove(&id);
                        ids.free(id);
                    },
                    _ => if let Some(first) = ids.row(usize::from(number % 9) + 1) {
                        for id in (first..).take(usize::from(number % 9) + 1) {
                            let owner = Owner::Batch(u32::from(number));
                            ids.take_in_row(id, owner);
                            prop_assert_eq!(model.insert(id, owner), None);
                        }
                    },
                }
                prop_assert_eq!(ids.used, model.len());
            }
            for id in 0..2_000 {
                prop_assert_eq!(ids.find(id), model.get(&id).copied());
            }
        }
    }
}
