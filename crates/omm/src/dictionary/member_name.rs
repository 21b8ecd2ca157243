//! The name of a field as JSON has it.

use crate::rwf::DataType;

/// Most bytes of a [`MemberName`].
pub(crate) const MEMBER_NAME: usize = 30;

/// The name of a field as a member of a JSON object, `,"NAME":`, with the separator in front, and the type of its value: all
/// that the writer of a field needs, in half a cache line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberName {
    /// The text, and zeros behind it: a copy of a known length needs no call.
    pub(crate) bytes: [u8; MEMBER_NAME],
    /// Length of the text; 0 for a name that is too long or needs an escape.
    pub(crate) len: u8,
    /// Type of the value; unknown for a name that is too long or needs an escape.
    pub(crate) data_type: DataType,
}

impl MemberName {
    pub(super) fn new(name: &str, data_type: DataType) -> Self {
        let text = format!(",\"{name}\":");
        let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        let mut bytes = [0; MEMBER_NAME];
        match bytes.get_mut(..text.len()).filter(|_| is_plain) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                Self { bytes, len: text.len() as u8, data_type }
            }
            None => Self { bytes, len: 0, data_type: DataType::UNKNOWN },
        }
    }

    /// Returns the text; empty for a name that is too long or needs an escape.
    pub(crate) fn text(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }

    /// Returns `false` for a name that is too long or needs an escape.
    pub(crate) const fn is_prepared(&self) -> bool {
        self.len > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_names_with_escapes_are_not_prepared() {
        let longest = "N".repeat(26);
        let name = MemberName::new(&longest, DataType::REAL);
        assert_eq!(name.bytes[..usize::from(name.len)], *format!(",\"{longest}\":").as_bytes());
        for other in [&*"N".repeat(27), "a\"b", "a\\b", "a\tb", "\u{7F}", "é"] {
            assert!(!MemberName::new(other, DataType::REAL).is_prepared(), "{other:?}");
        }
    }
}
