//! The types of messages: their letters, names and lengths.

use super::table::iex_messages;
use crate::wire::message_types;

iex_messages! { message_types { "TOPS 1.6 or DEEP 1.0", IexMessageType: 14, MalformedIexMessage } }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_types_are_one_to_one() {
        for kind in IexMessageType::ALL {
            assert_eq!(IexMessageType::of(kind.letter()), Some(kind));
        }
        assert_eq!((0..=u8::MAX).filter_map(IexMessageType::of).count(), IexMessageType::ALL.len());
        // Again from the specification: one table declares decoder and encoder.
        assert_eq!(
            IexMessageType::ALL.map(IexMessageType::length),
            [10, 31, 22, 18, 19, 42, 30, 30, 38, 26, 38, 80, 18, 18]
        );
    }
}
