//! Whose item numbers are in use, and whose can be another item's.
//!
//! A plant has so many numbers, and providers invent names without end. An item keeps its number for as long as a provider
//! publishes it or somebody wants it, and afterwards until its place is needed: then the item that has been nobody's for
//! longest is [ended](Sequencer::end_item) by a last tick, and the next tick with its number is of the new item. No reader
//! mixes the two: it sees ticks in their sequence, so it has forgotten the number by then, or knows from a gap in the
//! sequence that it may have missed the word, and trusts no number of a provider's item until its next tick.

use std::collections::{BTreeMap, HashMap};

use tapeline_omm::rwf::{Domain, Header, StateCode, StreamState};

use super::passing::{Passed, closed};
use super::{Desk, Note};
use crate::publish::Refused;
use crate::{ItemId, Publish, Sequencer, Time};

/// Numbers of providers' items.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    given: HashMap<ItemId, Given>,
    /// Of items that are nobody's: since when, in the order in which that happened.
    idle: BTreeMap<u64, ItemId>,
    turn: u64,
}

#[derive(Debug, Clone, Copy)]
struct Given {
    /// Of its first image.
    domain: Domain,
    /// How many streams of providers and wishes of clients there are.
    users: u32,
    idle_since: u64,
    /// Its source's last word on it was that it has permission data.
    has_codes: bool,
}

impl Numbers {
    /// An item that is nobody's yet has got a number.
    fn add(&mut self, item: ItemId, domain: Domain) {
        self.turn += 1;
        self.given.insert(item, Given { domain, users: 0, idle_since: self.turn, has_codes: false });
        self.idle.insert(self.turn, item);
    }

    /// Somebody has the item from now on: its number stays, until [`release`](Self::release) was called as often.
    pub(super) fn hold(&mut self, item: ItemId) {
        if let Some(given) = self.given.get_mut(&item) {
            self.idle.remove(&given.idle_since);
            given.users += 1;
        }
    }

    /// Somebody has it no longer.
    pub(super) fn release(&mut self, item: ItemId) {
        let Some(given) = self.given.get_mut(&item).filter(|given| given.users > 0) else { return };
        given.users -= 1;
        if given.users == 0 {
            self.turn += 1;
            given.idle_since = self.turn;
            self.idle.insert(self.turn, item);
        }
    }

    /// An item has permission data, where a message says so: from then on, as the number is that of all domains of the name, and
    /// an image in parts has it in one of them.
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

    /// Whether an item has permission data.
    pub(super) fn has_codes(&self, item: ItemId) -> bool {
        self.given.get(&item).is_some_and(|given| given.has_codes)
    }

    /// Takes the number back that has been nobody's for longest.
    fn take(&mut self) -> Option<(ItemId, Domain)> {
        let (_, item) = self.idle.pop_first()?;
        self.given.remove(&item).map(|given| (item, given.domain))
    }
}

impl Desk {
    /// The number of an item that has an image, held by nobody if it is new; 0 where it has no place.
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
            self.note(Note::NoPlace { service, item: name.escape_ascii().to_string(), why });
        }
        Ok(ItemId(0))
    }

    /// The item that has been nobody's for longest, if there is one, gives its number back.
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
        // One that was given back is nobody's to hold.
        numbers.hold(a);
        numbers.release(a);
        assert_eq!(taken(&mut numbers), None);
        numbers.release(b);
        numbers.release(b);
        assert_eq!((taken(&mut numbers), taken(&mut numbers)), (Some(b), None));
    }
}
