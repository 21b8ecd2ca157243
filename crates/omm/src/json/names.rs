//! Words of the protocol and their numbers.

use crate::rwf::DataType;

/// Words and their numbers.
pub(super) type Names = &'static [(&'static str, u8)];

/// Returns the word for a number.
pub(super) fn word(names: Names, number: u8) -> Option<&'static str> {
    // The words of most codes are in the order of their numbers, from 0 on.
    let in_order = names.get(usize::from(number)).filter(|(_, other)| *other == number);
    in_order.or_else(|| names.iter().find(|(_, other)| *other == number)).map(|(word, _)| *word)
}

/// Returns the number for a word.
pub(super) fn number(names: Names, word: &str) -> Option<u8> {
    names.iter().find(|(other, _)| *other == word).map(|(_, number)| *number)
}

pub(super) const LOGIN_NAME_TYPES: Names =
    &[("Name", 1), ("EmailAddress", 2), ("Token", 3), ("Cookie", 4), ("AuthnToken", 5)];

/// Elements of the payload of a Request or Close that become members of its object: `ID`, `View` and so on.
pub(super) const REQUEST_MEMBERS: [&str; 4] = [":ItemList", ":StreamIdList", ":ViewType", ":ViewData"];

/// Members that hold a container, and the type of the container.
pub(super) const CONTAINERS: Names = &[
    ("Fields", DataType::FIELD_LIST.0),
    ("Elements", DataType::ELEMENT_LIST.0),
    ("Map", DataType::MAP.0),
    ("FilterList", DataType::FILTER_LIST.0),
    ("Vector", DataType::VECTOR.0),
    ("Series", DataType::SERIES.0),
    ("Message", DataType::MSG.0),
    ("Opaque", DataType::OPAQUE.0),
    ("Xml", DataType::XML.0),
    ("Json", DataType::JSON.0),
    ("AnsiPage", DataType::ANSI_PAGE.0),
];
