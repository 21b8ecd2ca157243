//! What waits to be told to the sources.

use std::collections::VecDeque;

use tapeline_plant::demand::{Demand, Ticket};

use crate::interest::ItemSlot;

/// Demands in their order. What is wanted of items is found out when its turn comes, so that each item waits here once, however
/// many clients ask; messages are as many as may be.
#[derive(Debug)]
pub(crate) struct Demands {
    waiting: VecDeque<Waiting>,
    messages: usize,
    most: usize,
    /// Of the messages.
    bytes: usize,
    most_bytes: usize,
    /// Bytes that all sessions have kept of posts whose last part has not come.
    kept: usize,
    tickets: u64,
}

/// Something to be told.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// What is wanted of an item now.
    Item(ItemSlot),
    /// This, as it is.
    Message(Demand),
}

/// There is no room for another message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Demands {
    /// None, and room for so many messages and bytes of them.
    pub(crate) const fn new(most: usize, most_bytes: usize) -> Self {
        Self { waiting: VecDeque::new(), messages: 0, most, bytes: 0, most_bytes, kept: 0, tickets: 0 }
    }

    /// A number that no answer has had.
    pub(crate) const fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// There is news of an item, which does not wait here yet.
    pub(crate) fn item(&mut self, place: ItemSlot) {
        self.waiting.push_back(Waiting::Item(place));
    }

    /// A message is to be told.
    ///
    /// # Errors
    /// As many wait as may.
    pub(crate) fn message(&mut self, demand: Demand) -> Result<(), Full> {
        if self.messages >= self.most || bytes_of(&demand) > self.room() {
            return Err(Full);
        }
        self.last_word(demand);
        Ok(())
    }

    /// Bytes that may still wait, or be kept.
    pub(crate) const fn room(&self) -> usize {
        self.most_bytes.saturating_sub(self.bytes + self.kept)
    }

    /// A session keeps so many bytes, where it kept so many before.
    pub(crate) const fn keep(&mut self, before: usize, now: usize) {
        self.kept = self.kept - before + now;
    }

    /// A message that must not be lost: it ends something of which there are only so many.
    pub(crate) fn last_word(&mut self, demand: Demand) {
        self.messages += 1;
        self.bytes += bytes_of(&demand);
        self.waiting.push_back(Waiting::Message(demand));
    }

    /// What has waited longest.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        if let Waiting::Message(demand) = &first {
            self.messages -= 1;
            self.bytes -= bytes_of(demand);
        }
        Some(first)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Bytes of the message in a demand.
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
