//! What each message does to the books.

use crate::itch::{Locate, MatchNumber, Message, Price4};

use super::Books;

/// An execution to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Price.
    pub price: Price4,
    /// Shares.
    pub shares: u64,
    /// The execution's number.
    pub match_number: MatchNumber,
}

/// What a message changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Change {
    /// Whose book: the order's, where the message names an order.
    pub locate: Locate,
    /// The best bid has another price.
    pub bid: bool,
    /// The best bid has another size.
    pub bid_size: bool,
    /// The best ask has another price.
    pub ask: bool,
    /// The best ask has another size.
    pub ask_size: bool,
    /// The trading state or its reason is another.
    pub status: bool,
    /// A trade that counts as volume.
    pub print: Option<Print>,
}

impl Books {
    /// Applies a message.
    pub fn apply(&mut self, message: &Message<'_>) -> Change {
        let _ = message;
        Change::default()
    }
}
