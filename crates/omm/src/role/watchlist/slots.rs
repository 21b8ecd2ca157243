//! Table whose entries keep their places, with a count of how often each place was reused.

/// No place: the end of a list.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Entries whose places stay the same until they are removed. A reused place has another turn, so that an old reference
/// is not mistaken for the new entry.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// First free place, or [`NOWHERE`].
    free: u32,
    len: usize,
}

#[derive(Debug)]
struct Slot<T> {
    turn: u32,
    content: Content<T>,
}

#[derive(Debug)]
enum Content<T> {
    Full(T),
    /// A free place, with the next free place.
    Free(u32),
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: NOWHERE, len: 0 }
    }
}

impl<T> Slots<T> {
    /// Size of one place, bytes.
    pub(crate) const BYTES: usize = size_of::<Slot<T>>();

    /// Returns the number of entries.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Makes room for `count` entries in total.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.slots.reserve(count.saturating_sub(self.slots.len()));
    }

    /// Stores `value` at a free place. With four thousand million entries there is none: callers have lower limits.
    pub(crate) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(slot) = self.slots.get_mut(self.free as usize)
            && let Content::Free(next) = slot.content
        {
            let place = self.free;
            self.free = next;
            slot.turn = slot.turn.wrapping_add(1);
            slot.content = Content::Full(value);
            return place;
        }
        self.slots.push(Slot { turn: 0, content: Content::Full(value) });
        u32::try_from(self.slots.len() - 1).unwrap_or(NOWHERE)
    }

    /// Removes the entry; its place is free.
    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        let slot = self.slots.get_mut(place as usize)?;
        if matches!(slot.content, Content::Free(_)) {
            return None;
        }
        let content = std::mem::replace(&mut slot.content, Content::Free(self.free));
        self.free = place;
        self.len -= 1;
        match content {
            Content::Full(value) => Some(value),
            Content::Free(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        match &self.slots.get(place as usize)?.content {
            Content::Full(value) => Some(value),
            Content::Free(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        match &mut self.slots.get_mut(place as usize)?.content {
            Content::Full(value) => Some(value),
            Content::Free(_) => None,
        }
    }

    /// Returns how often the place was reused.
    pub(crate) fn turn(&self, place: u32) -> u32 {
        self.slots.get(place as usize).map_or(0, |slot| slot.turn)
    }

    /// Returns `true` if the place still has this turn.
    pub(crate) fn is_current(&self, place: u32, turn: u32) -> bool {
        self.slots
            .get(place as usize)
            .is_some_and(|slot| slot.turn == turn && matches!(slot.content, Content::Full(_)))
    }

    /// Returns the number of places, including free ones, for iteration by number.
    pub(crate) fn places(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(NOWHERE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_out_again_under_another_turn() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert('a'), slots.insert('b'));
        let turn = slots.turn(a);
        assert_eq!((slots.remove(a), slots.remove(a)), (Some('a'), None));
        assert!(!slots.is_current(a, turn));
        let c = slots.insert('c');
        assert_eq!((c, slots.len(), slots.places()), (a, 2, 2));
        assert!(slots.is_current(c, turn + 1) && !slots.is_current(c, turn));
        assert_eq!((slots.get(a), slots.get(b)), (Some(&'c'), Some(&'b')));
        assert_eq!(slots.get(NOWHERE), None);
        assert_eq!(slots.remove(7), None);
    }
}
