//! The item numbers in use, and their reuse.
//!
//! A plant has a limited number of items, and providers may invent any number of names. An item keeps its number while a provider publishes it or a
//! client needs it, and afterwards until its place is needed: then the item that has been unused longest is [ended](Sequencer::end_item) by a last
//! tick, and the next tick with its number belongs to the new item. A reader cannot confuse the two. It reads ticks in sequence, so it has dropped
//! the number by then; or a gap in the sequence tells it that it may have missed the last tick, and it trusts no number of a provider's item until
//! its next tick.

use std::collections::{BTreeMap, HashMap};

use tapeline_omm::rwf::{Domain, Header, StateCode, StreamState};

use super::passing::{Passed, closed};
use super::{Desk, SourceNote};
use crate::publish::Refused;
use crate::{ItemId, Publish, Sequencer, Time};

/// The numbers of providers' items.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    given: HashMap<ItemId, Given>,
    /// Unused items, in the order in which they became unused.
    idle: BTreeMap<u64, ItemId>,
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Given {
    /// The domain of its first image.
    domain: Domain,
    /// Number of providers' streams and clients' demands.
    users: u32,
    idle_since: u64,
    /// `true` if its source has set permission data.
    has_codes: bool,
}

impl Numbers {
    /// Adds a number, unused so far.
    fn add(&mut self, item: ItemId, domain: Domain) {
        self.turn += 1;
        self.given.insert(item, Given { domain, users: 0, idle_since: self.turn, has_codes: false });
        self.idle.insert(self.turn, item);
    }

    /// Adds a user of the item: its number stays until [`release`](Self::release) has been called as often.
    pub(super) fn hold(&mut self, item: ItemId) {
        if let Some(given) = self.given.get_mut(&item) {
            self.idle.remove(&given.idle_since);
            given.users += 1;
        }
    }

    /// Removes a user of the item.
    pub(super) fn release(&mut self, item: ItemId) {
        let Some(given) = self.given.get_mut(&item).filter(|given| given.users > 0) else { return };
        given.users -= 1;
        if given.users == 0 {
            self.turn += 1;
            given.idle_since = self.turn;
            self.idle.insert(self.turn, item);
        }
    }

    /// Records that an item has permission data, if a message contains some. It stays recorded, because the number belongs to all domains of the
    /// name, and only one part of an image contains the data.
    pub(super) fn note_codes(&mut self, item: ItemId, header: &Header<'_>) {
        let codes = match header {
            Header::Refresh(refresh) => Some(refresh.permission_data.unwrap_or_default()),
            Header::Status(status) => status.permission_data,
            _ => None,
        };
        if let Some((codes, given)) = codes.zip(self.given.get_mut(&item)) {
            given.has_codes |= !codes.is_empty();
        }
    }

    /// Returns `true` if an item has permission data.
    pub(super) fn has_codes(&self, item: ItemId) -> bool {
        self.given.get(&item).is_some_and(|given| given.has_codes)
    }

    /// Takes the number that has been unused longest.
    fn take(&mut self) -> Option<(ItemId, Domain)> {
        let (_, item) = self.idle.pop_first()?;
        self.given.remove(&item).map(|given| (item, given.domain))
    }
}

impl Desk {
    /// Returns the number of an item with an image, assigned if it is new; 0 without a place.
    pub(super) fn number<P: Publish>(
        &mut self,
        service: usize,
        (domain, name): (Domain, &[u8]),
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<ItemId, Refused> {
        let Some(known) = self.services.get(service) else { return Ok(ItemId(0)) };
        let id = known.id();
        let why = match std::str::from_utf8(name) {
            Err(_) => "its name is not UTF-8",
            Ok("") => "it has no name",
            Ok(name) => {
                if let Some(item) = to.items().find(id, name) {
                    return Ok(item);
                }
                if to.item_of(id, name).is_err() {
                    self.end_oldest(to, time)?;
                }
                if let Ok(item) = to.item_of(id, name) {
                    self.numbers.add(item, domain);
                    let clients =
                        self.services.get(service).and_then(|known| known.wanted.get(name).copied());
                    (0..clients.unwrap_or(0)).for_each(|_| self.numbers.hold(item));
                    return Ok(item);
                }
                "providers have as many items as they may, half of max_items beside feeds, else all but what reserved_items keeps for \
                 others, and every one of them is published or wanted"
            }
        };
        let Some(known) = self.services.get_mut(service) else { return Ok(ItemId(0)) };
        if !std::mem::replace(&mut known.has_said_no_place, true) {
            let service = known.name().to_owned();
            self.note(SourceNote::NoPlace { service, item: name.escape_ascii().to_string(), why });
        }
        Ok(ItemId(0))
    }

    /// Ends the item that has been unused longest, if there is one.
    fn end_oldest<P: Publish>(&mut self, to: &mut Sequencer<P>, time: &impl Time) -> Result<(), Refused> {
        let Some((item, domain)) = self.numbers.take() else { return Ok(()) };
        self.serving.forget(item);
        let items = to.items();
        let Some((service, name)) = items.service(item).zip(items.name(item).map(str::to_owned)) else {
            return Ok(());
        };
        let Some(service) = self.service(service) else { return Ok(()) };
        let text = "Nobody publishes or wants this item, and its place is needed";
        let state = closed(StreamState::CLOSED_RECOVER, StateCode::NONE, text);
        self.pass_last(service, (item, &name), &Passed::status(domain, state), to, time)?;
        self.counters.ended += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_been_nobodys_for_longest_goes_first() {
        let mut numbers = Numbers::default();
        let [a, b, c] = [1, 2, 3].map(ItemId);
        for item in [a, b, c] {
            numbers.add(item, Domain::MARKET_PRICE);
        }
        numbers.hold(a);
        numbers.hold(b);
        numbers.hold(b);
        numbers.release(b);
        numbers.release(a);
        let taken = |numbers: &mut Numbers| numbers.take().map(|(item, _)| item);
        assert_eq!((taken(&mut numbers), taken(&mut numbers), taken(&mut numbers)), (Some(c), Some(a), None));
        // A number that was taken back has no users.
        numbers.hold(a);
        numbers.release(a);
        assert_eq!(taken(&mut numbers), None);
        numbers.release(b);
        numbers.release(b);
        assert_eq!((taken(&mut numbers), taken(&mut numbers)), (Some(b), None));
    }
}
