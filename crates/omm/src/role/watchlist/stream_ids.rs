//! Stream ids of one connection: assigned in ascending order, found by index.

/// Owner of a stream id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The stream at this place.
    Stream(u32),
    /// A batch request of this number of items, which have the ids that follow.
    Batch(u32),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    /// 0 is free: items never have it.
    id: i32,
    owner: Owner,
}

const FREE: Entry = Entry { id: 0, owner: Owner::Batch(0) };

/// Open ids, at the places that their low bits give. The table is at least twice as long as there are ids, and an id
/// whose place is taken is skipped. A lookup is therefore one comparison, and no id is reused before all of
/// 2,147,483,647 were used. 12 bytes for each place.
#[derive(Debug)]
pub(crate) struct StreamIds {
    /// The length is a power of two.
    entries: Vec<Entry>,
    used: usize,
    first: i32,
    next: i32,
}

impl StreamIds {
    /// Size of one place, bytes.
    pub(crate) const BYTES: usize = size_of::<Entry>();

    /// Creates a table of ids from `first` up, which must be positive.
    pub(crate) fn new(first: i32) -> Self {
        Self { entries: vec![FREE; 64], used: 0, first, next: first }
    }

    /// Makes room for `count` ids in total.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.make_room(count.saturating_sub(self.used));
    }

    /// Returns `true` if `id` was assigned at some time, on this connection or an earlier one.
    pub(crate) const fn was_open(&self, id: i32) -> bool {
        id >= self.first && id < self.next
    }

    fn place(&self, id: i32) -> usize {
        id as u32 as usize & (self.entries.len() - 1)
    }

    /// Returns the owner of `id`.
    #[inline]
    pub(crate) fn find(&self, id: i32) -> Option<Owner> {
        let entry = self.entries.get(self.place(id))?;
        (entry.id == id && id != 0).then_some(entry.owner)
    }

    /// Assigns the next free id.
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

    /// Returns the first of `count` consecutive free ids, which stay free; `None` if all gaps are smaller.
    pub(crate) fn row(&mut self, count: usize) -> Option<i32> {
        self.make_room(count);
        let (mut first, mut len) = (self.next, 0);
        // One pass over the table sees every gap; the additional steps are for one that begins where the search began.
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

    /// Assigns an id of a [`StreamIds::row`]. The next id follows it.
    pub(crate) fn take_in_row(&mut self, id: i32, owner: Owner) {
        if self.set(id, owner) {
            self.next = id.saturating_add(1).max(self.first);
        }
    }

    /// Frees `id`.
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

    /// Makes the last assigned id, which was freed unused, the next id again.
    pub(crate) fn take_back(&mut self, id: i32) {
        if self.next.checked_sub(1) == Some(id) && self.find(id).is_none() {
            self.next = id;
        }
    }

    /// Frees all ids. The next id is still a new one.
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

    /// Doubles the table until it is twice as long as its future content. Ids with places of their own still have such
    /// places.
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
        // Gaps of two, then the ids after the last one.
        assert_eq!((ids.row(2), ids.row(3)), (Some(4), Some(61)));
        ids.next = i32::MAX - 1;
        assert_eq!(ids.row(3), Some(61), "a row does not go round");
    }

    proptest! {
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0_u8..5, any::<u16>()), 1..400)) {
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
                    3 => ids.reserve(usize::from(number % 2_000)),
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
