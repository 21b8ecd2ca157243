//! Pings and pongs of the JSON sub-protocols.

/// A ping as EMA writes it: an array of one.
pub(in super::super) const PING: &[u8] = br#"[{"Type":"Ping"}]"#;
/// The answer.
pub(in super::super) const PONG: &[u8] = br#"[{"Type":"Pong"}]"#;

/// A message that only shows that its sender is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Life {
    /// To be answered.
    Ping,
    /// An answer.
    Pong,
}

/// Maximum length of such a message, with generous white space.
const LONGEST: usize = 64;

impl Life {
    /// Returns the kind of a message that is only a ping or a pong, alone or in an array of one.
    #[inline]
    pub(in super::super) fn of(message: &[u8]) -> Option<Self> {
        if message.len() > LONGEST { None } else { Self::of_short(message) }
    }

    fn of_short(message: &[u8]) -> Option<Self> {
        let mut rest = message;
        let in_array = take(&mut rest, b"[");
        let of = take(&mut rest, b"{") && take(&mut rest, b"\"Type\"") && take(&mut rest, b":");
        let life = match of {
            true if take(&mut rest, b"\"Ping\"") => Self::Ping,
            true if take(&mut rest, b"\"Pong\"") => Self::Pong,
            _ => return None,
        };
        let ended = take(&mut rest, b"}") && (!in_array || take(&mut rest, b"]"));
        (ended && rest.trim_ascii().is_empty()).then_some(life)
    }
}

/// Removes white space and this word from the front. Returns `true` if the word was there.
fn take(rest: &mut &[u8], word: &[u8]) -> bool {
    match rest.trim_ascii_start().strip_prefix(word) {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Life, PING, PONG};

    #[test]
    fn pings_and_pongs_are_told_from_messages() {
        for (message, life) in [
            (PING, Some(Life::Ping)),
            (PONG, Some(Life::Pong)),
            (br#"{"Type":"Ping"}"#, Some(Life::Ping)),
            (b" [ { \"Type\" : \"Pong\" } ]\n", Some(Life::Pong)),
            (br#"[{"Type":"Ping"},{"Type":"Ping"}]"#, None),
            (br#"{"Type":"Ping","ID":1}"#, None),
            (br#"{"Type":"Ping""#, None),
            (br#"[{"Type":"Ping"}"#, None),
            (br#"{"ID":1}"#, None),
            (b"", None),
        ] {
            assert_eq!(Life::of(message), life, "{}", String::from_utf8_lossy(message));
        }
    }
}
