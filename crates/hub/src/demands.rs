//! What waits to be told to the sources.

use std::collections::VecDeque;

use tapeline_plant::demand::{Demand, Ticket};

use crate::interest::Place;

/// Demands in their order. What is wanted of items is found out when its turn comes, so that each item waits here once, however
/// many clients ask; messages are as many as may be.
#[derive(Debug)]
pub(crate) struct Demands {
    waiting: VecDeque<Waiting>,
    messages: usize,
    most: usize,
    tickets: u64,
}

/// Something to be told.
#[derive(Debug)]
pub(crate) enum Waiting {
    /// What is wanted of an item now.
    Item(Place),
    /// This, as it is.
    Message(Demand),
}

/// There is no room for another message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Demands {
    /// None, and room for so many messages.
    pub(crate) const fn new(most: usize) -> Self {
        Self { waiting: VecDeque::new(), messages: 0, most, tickets: 0 }
    }

    /// A number that no answer has had.
    pub(crate) const fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// There is news of an item, which does not wait here yet.
    pub(crate) fn item(&mut self, place: Place) {
        self.waiting.push_back(Waiting::Item(place));
    }

    /// A message is to be told.
    ///
    /// # Errors
    /// As many wait as may.
    pub(crate) fn message(&mut self, demand: Demand) -> Result<(), Full> {
        if self.messages >= self.most {
            return Err(Full);
        }
        self.last_word(demand);
        Ok(())
    }

    /// A message that must not be lost: it ends something of which there are only so many.
    pub(crate) fn last_word(&mut self, demand: Demand) {
        self.messages += 1;
        self.waiting.push_back(Waiting::Message(demand));
    }

    /// What has waited longest.
    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        if matches!(first, Waiting::Message(_)) {
            self.messages -= 1;
        }
        Some(first)
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
