//! The types of messages, and counters by type.

use std::fmt;

use super::table::itch_messages;
use crate::wire::message_types;

itch_messages! { message_types { "ITCH 5.0", MessageType: 23, MalformedItchMessage } }

impl MessageType {
    /// Returns `true` if messages of this type contain a stock's symbol.
    #[inline]
    #[must_use]
    pub const fn has_stock(self) -> bool {
        use MessageType as T;
        !matches!(
            self,
            T::SystemEvent
                | T::BreakerLevels
                | T::BreakerStatus
                | T::OrderExecuted
                | T::OrderExecutedWithPrice
                | T::OrderCancel
                | T::OrderDelete
                | T::OrderReplace
                | T::BrokenTrade
        )
    }
}

/// The type of a message, known or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MessageKind {
    /// A type of ITCH 5.0.
    Known(MessageType),
    /// The first byte of a message of unknown type.
    Unknown(u8),
}

impl MessageKind {
    /// Returns the type; `None` for an unknown type.
    #[inline]
    #[must_use]
    pub const fn known(self) -> Option<MessageType> {
        match self {
            Self::Known(kind) => Some(kind),
            Self::Unknown(_) => None,
        }
    }

    /// Returns the first byte of the message.
    #[inline]
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::Known(kind) => kind.letter(),
            Self::Unknown(letter) => letter,
        }
    }
}

impl From<u8> for MessageKind {
    fn from(letter: u8) -> Self {
        MessageType::of(letter).map_or(Self::Unknown(letter), Self::Known)
    }
}

/// Counters of messages by their first byte, known or not.
#[derive(Clone, PartialEq, Eq)]
pub struct ByType([u64; 256]);

impl ByType {
    /// Creates counters that are all zero.
    #[must_use]
    pub const fn new() -> Self {
        Self([0; 256])
    }

    /// Counts one message that begins with `letter`.
    #[inline]
    pub fn count(&mut self, letter: u8) {
        self.0[usize::from(letter)] += 1;
    }

    /// Returns the number of messages that began with `letter`.
    #[inline]
    #[must_use]
    pub const fn of(&self, letter: u8) -> u64 {
        self.0[letter as usize]
    }

    /// Returns the number of all messages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the letters that occurred with their counts, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (MessageKind, u64)> + '_ {
        (0..=u8::MAX)
            .zip(&self.0)
            .filter(|(_, count)| **count > 0)
            .map(|(letter, count)| (letter.into(), *count))
    }
}

impl Default for ByType {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ByType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(kind, count)| (char::from(kind.letter()), count))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_types_are_one_to_one() {
        for kind in MessageType::ALL {
            assert_eq!(MessageType::of(kind.letter()), Some(kind));
        }
        assert_eq!((0..=u8::MAX).filter_map(MessageType::of).count(), MessageType::ALL.len());
        // Again from the specification: one table declares decoder and encoder.
        assert_eq!(
            MessageType::ALL.map(MessageType::length),
            [12, 39, 25, 20, 26, 35, 12, 28, 35, 21, 36, 40, 31, 36, 23, 19, 35, 44, 40, 19, 50, 20, 48]
        );
    }

    #[test]
    fn counters_list_what_occurred() {
        let mut counters = ByType::new();
        counters.count(b'A');
        counters.count(b'A');
        counters.count(b'z');
        let listed: Vec<_> = counters.iter().collect();
        assert_eq!(listed, [(MessageKind::Known(MessageType::AddOrder), 2), (MessageKind::Unknown(b'z'), 1)]);
        assert_eq!((counters.total(), counters.of(b'D')), (3, 0));
        assert_eq!(format!("{counters:?}"), "{'A': 2, 'z': 1}");
    }
}
