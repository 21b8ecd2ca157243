//! Patterns of names: of users, services and items.

use std::fmt;

/// A pattern of names: `*` matches any run of characters, also an empty one, `?` matches one character, every other character itself.
/// Case-sensitive.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern(Box<str>);

impl Pattern {
    /// Creates a pattern from a text. Every text is a valid pattern.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if the pattern matches a name. Takes at most as many steps as the product of both lengths in bytes.
    #[must_use]
    pub fn matches(&self, name: &[u8]) -> bool {
        let pattern = self.0.as_bytes();
        let (mut at, mut of_name) = (0, 0);
        // The last star, and the end of its run in the name: only that run ever needs to grow.
        let mut star: Option<(usize, usize)> = None;
        while of_name < name.len() {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, of_name));
                    at += 1;
                }
                Some(b'?') => {
                    at += 1;
                    of_name = after(name, of_name);
                }
                Some(byte) if name.get(of_name) == Some(byte) => {
                    at += 1;
                    of_name += 1;
                }
                _ => {
                    let Some((behind, end)) = star else { return false };
                    let end = after(name, end);
                    star = Some((behind, end));
                    (at, of_name) = (behind + 1, end);
                }
            }
        }
        pattern.get(at..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
    }
}

/// Returns the end of the character at `at`; each byte that is not UTF-8 is a character.
fn after(name: &[u8], at: usize) -> usize {
    let rest = name.get(at + 1..).unwrap_or_default();
    at + 1 + rest.iter().take_while(|byte| **byte & 0xC0 == 0x80).count()
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Matches by the definition, in any number of steps.
    fn oracle(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=name.len()).any(|run| oracle(rest, &name[run..])),
            (['?', rest @ ..], [_, others @ ..]) => oracle(rest, others),
            ([one, rest @ ..], [other, others @ ..]) if one == other => oracle(rest, others),
            _ => false,
        }
    }

    #[test]
    fn stars_marks_and_names() {
        for (pattern, name, matches) in [
            ("AAPL", "AAPL", true),
            ("AAPL", "AAPL.O", false),
            ("AAPL", "aapl", false),
            ("", "", true),
            ("", "A", false),
            ("*", "", true),
            ("*", "anything", true),
            ("AAPL*", "AAPL", true),
            ("*.NBBO", "AAPL.NBBO", true),
            ("*.NBBO", "AAPL.NBBO.X", false),
            ("A*L*O", "AAPL.O", true),
            ("MS?T", "MSFT", true),
            ("MS?T", "MST", false),
            ("?", "é", true),
            ("??", "é", false),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("/dev[0]", "/dev[0]", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(name.as_bytes()), matches, "{pattern} {name}");
        }
        // Bytes that are not UTF-8 are neither lost nor match another character.
        assert!(Pattern::new("A*").matches(b"A\xFF\xFE"));
        assert!(!Pattern::new("A").matches(b"A\xFF"));
    }

    proptest! {
        #[test]
        fn as_it_is_defined(pattern in "[ab*?é]{0,8}", name in "[abé]{0,10}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = oracle(&chars(&pattern), &chars(&name));
            prop_assert_eq!(Pattern::new(&pattern).matches(name.as_bytes()), expected);
        }
    }
}
