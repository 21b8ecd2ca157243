//! Prefetching what the next messages need.

use super::books::{IexBooks, Reach};
use super::{IexMessage, decode};

/// Number of messages that are prefetched together, at most: a segment of 1,400 bytes has about 40.
const BATCH: usize = 32;
/// Number of symbols from which the books exceed the second-level cache, so that prefetching is worth its time.
const MANY: usize = 1_000;

impl IexBooks {
    /// Prefetches what the next messages need, such as those of a segment. Returns their number, at most 32; 0 if the books are few, and so near.
    #[inline]
    pub fn expect<'a>(&self, messages: impl Iterator<Item = &'a [u8]>) -> usize {
        if self.len() < MANY {
            return 0;
        }
        let mut levels: [Option<Reach<'_>>; BATCH] = [None; BATCH];
        let mut count = 0;
        for (level, message) in levels.iter_mut().zip(messages) {
            *level = decode(message).ok().and_then(|message| self.level_of(&message));
            count += 1;
        }
        levels.iter().flatten().for_each(|(ladder, price)| ladder.prefetch(*price));
        count
    }

    /// Prefetches the book of a message; returns the side and the price of a level.
    #[inline]
    fn level_of(&self, message: &IexMessage<'_>) -> Option<Reach<'_>> {
        let book = self.near(message.symbol()?)?;
        match message {
            IexMessage::PriceLevel(level) => Some((book.ladder(level.side()), level.price())),
            _ => None,
        }
    }
}
