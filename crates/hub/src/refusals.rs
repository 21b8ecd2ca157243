//! The refused items of a session in the log: some by name, all of them counted.

use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::RequestedItem;

use crate::access::NOT_ENTITLED;
use crate::event::HubEvent;
use crate::login::{MOST_DENIALS, TOO_MANY_STREAMS};
use crate::request_handler::RequestHandler;
use crate::session::Refusal;

/// Number of refused items of one session that are named in a second: enough to see a pattern, and too few to fill a log.
const MOST_NAMED: u32 = 5;
const SECOND_NS: u64 = 1_000_000_000;

/// The refused items of one session in the present second.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    begun: Nanos,
    named: u32,
    /// Refused items without a name in the log.
    others: u64,
}

impl Refusals {
    /// Returns `true` if a refused item of now may be named. Otherwise, or if `is_full`, it is counted.
    pub(crate) fn admit(&mut self, now: Nanos, is_full: bool) -> bool {
        if self.others == 0 && self.is_over(now) {
            (self.begun, self.named) = (now, 0);
        }
        let is_named = !is_full && self.named < MOST_NAMED;
        if is_named {
            self.named += 1;
        } else {
            self.others += 1;
        }
        is_named
    }

    /// Returns the number of items that were not named in a second that is over, once.
    #[inline]
    pub(crate) fn due(&mut self, now: Nanos) -> Option<u64> {
        if self.others > 0 && self.is_over(now) { self.rest() } else { None }
    }

    /// Returns the number of items that were not named and not returned yet.
    pub(crate) fn rest(&mut self) -> Option<u64> {
        self.named = 0;
        Some(std::mem::take(&mut self.others)).filter(|others| *others > 0)
    }

    fn is_over(&self, now: Nanos) -> bool {
        // A clock that was set back also ends the second.
        !(self.begun.0..self.begun.0.saturating_add(SECOND_NS)).contains(&now.0)
    }
}

impl RequestHandler<'_> {
    /// Records an item that was refused, unless for lack of access: such an item has its event already.
    pub(crate) fn note_refused(&mut self, request: &RequestedItem<'_>, refusal: Refusal) {
        if [NOT_ENTITLED, TOO_MANY_STREAMS].contains(&refusal)
            || !self.session_state.refusals.admit(self.now, self.notes.len() >= MOST_DENIALS)
        {
            return;
        }
        let service = request.key.service_id.map(|id| {
            self.shared.services.get(id).map_or_else(|| id.to_string(), |service| service.name.clone())
        });
        self.notes.push_back(HubEvent::ItemRefused {
            session: self.id,
            peer: self.session_state.pass.peer,
            user: self.session_state.user.clone(),
            service: service.unwrap_or_default(),
            domain: request.domain,
            name: String::from_utf8_lossy(request.key.name.unwrap_or_default()).into_owned(),
            why: refusal.text,
        });
    }

    /// Records how many items were refused without an event in a second that is over.
    #[inline]
    pub(crate) fn note_more_refused(&mut self) {
        if let Some(items) = self.session_state.refusals.due(self.now) {
            let (session, peer, user) =
                (self.id, self.session_state.pass.peer, self.session_state.user.clone());
            self.notes.push_back(HubEvent::MoreItemsRefused { session, peer, user, items });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_items_of_a_second_are_named_and_the_others_counted_once() {
        let mut refusals = Refusals::default();
        let at = |ms: u64| Nanos(5_000_000_000 + ms * 1_000_000);
        let named = (0..100).filter(|ms| refusals.admit(at(*ms), false)).count();
        assert_eq!(named, 5);
        assert_eq!(refusals.due(at(999)), None);
        assert_eq!(refusals.due(at(1000)), Some(95));
        assert_eq!((refusals.due(at(1001)), refusals.rest()), (None, None));
        // A second that is over with nothing to count needs no call in between.
        assert!((0..5).all(|_| refusals.admit(at(1500), false)) && refusals.admit(at(2500), false));
        assert!(!refusals.admit(at(2501), true));
        assert_eq!(refusals.rest(), Some(1));
        // A clock that was set back.
        assert!(refusals.admit(at(0), false) && !refusals.admit(at(0), true));
        assert_eq!(refusals.due(Nanos(0)), Some(1));
    }
}
