//! The name of a field as JSON has it.

/// The name of a field as a member of a JSON object, `,"NAME":`, with the separator in front.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberName {
    /// The text, and zeros behind it: a copy of a known length needs no call.
    pub(crate) bytes: [u8; 31],
    /// Length of the text; 0 for a name that is too long or needs an escape.
    pub(crate) len: u8,
}

impl MemberName {
    pub(super) fn new(name: &str) -> Self {
        let text = format!(",\"{name}\":");
        let is_plain = name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        let mut bytes = [0; 31];
        match bytes.get_mut(..text.len()).filter(|_| is_plain) {
            Some(room) => {
                room.copy_from_slice(text.as_bytes());
                Self { bytes, len: text.len() as u8 }
            }
            None => Self { bytes, len: 0 },
        }
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
        let longest = "N".repeat(27);
        let name = MemberName::new(&longest);
        assert_eq!(name.bytes[..usize::from(name.len)], *format!(",\"{longest}\":").as_bytes());
        for other in [&*"N".repeat(28), "a\"b", "a\\b", "a\tb", "\u{7F}", "é"] {
            assert!(!MemberName::new(other).is_prepared(), "{other:?}");
        }
    }
}
