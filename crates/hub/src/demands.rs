//! Demands queued for the sources.

use std::collections::VecDeque;

use tapeline_plant::demand::{Demand, Ticket};

use crate::interest::ItemSlot;

/// Demands in order. The demand of an item is determined when it is taken, so each item is queued once for any number of clients; the number of
/// messages is limited.
#[derive(Debug)]
pub(crate) struct Demands {
    waiting: VecDeque<Waiting>,
    messages: usize,
    most: usize,
    /// Bytes of the queued messages.
    bytes: usize,
    most_bytes: usize,
    /// Bytes that all sessions store of incomplete posts.
    kept: usize,
    tickets: u64,
}

/// A queued demand.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// An item, whose demand is determined when it is taken.
    Item(ItemSlot),
    /// A message, sent unchanged.
    Message(Demand),
}

/// There is no capacity for another message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Demands {
    /// Creates an empty queue for `most` messages of `most_bytes` bytes.
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        Self { waiting: VecDeque::new(), messages: 0, most, bytes: 0, most_bytes, kept: 0, tickets: 0 }
    }

    /// Returns a ticket that no answer has had.
    pub(crate) const fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Queues an item that is not queued yet.
    pub(crate) fn item(&mut self, place: ItemSlot) {
        self.waiting.push_back(Waiting::Item(place));
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`Full`]: the maximum number is queued.
    pub(crate) fn message(&mut self, demand: Demand) -> Result<(), Full> {
        if self.messages >= self.most || bytes_of(&demand) > self.room() {
            return Err(Full);
        }
        self.last_word(demand);
        Ok(())
    }

    /// Returns the number of bytes that may still be queued or stored.
    pub(crate) const fn room(&self) -> usize {
        self.most_bytes.saturating_sub(self.bytes + self.kept)
    }

    /// Records that a session stores `now` bytes instead of `before`.
    pub(crate) const fn keep(&mut self, before: usize, now: usize) {
        self.kept = self.kept - before + now;
    }

    /// Queues a message that must not be lost, regardless of the limits: it ends something whose number is limited.
    pub(crate) fn last_word(&mut self, demand: Demand) {
        self.messages += 1;
        self.bytes += bytes_of(&demand);
        self.waiting.push_back(Waiting::Message(demand));
    }

    /// Returns the oldest queued demand.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        if let Waiting::Message(demand) = &first {
            self.messages -= 1;
            self.bytes -= bytes_of(demand);
        }
        Some(first)
    }

    /// Returns the number of queued demands.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

fn bytes_of(demand: &Demand) -> usize {
    match demand {
        Demand::OpenPrivate { request: message, .. }
        | Demand::Private { message, .. }
        | Demand::Generic { message, .. } => message.len(),
        Demand::Post { message, more, .. } => {
            message.len() + more.iter().map(|part| part.len()).sum::<usize>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_up_to_their_number_and_their_bytes() {
        let mut demands = Demands::new(3, 1000);
        let post = |len: usize| Demand::Private { ticket: Ticket(1), message: vec![0; len].into() };
        assert_eq!(demands.message(post(600)), Ok(()));
        assert_eq!(demands.message(post(401)), Err(Full));
        assert_eq!(demands.message(post(400)), Ok(()));
        demands.pop();
        demands.keep(0, 600);
        assert_eq!(demands.message(post(1)), Err(Full));
        demands.keep(600, 0);
        assert_eq!(
            [demands.message(post(1)), demands.message(post(1)), demands.message(post(1))],
            [Ok(()), Ok(()), Err(Full)]
        );
    }
}
