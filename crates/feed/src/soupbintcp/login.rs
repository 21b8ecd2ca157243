//! The fields of a login.

use std::fmt;

use super::MalformedSoupPacket;
use crate::itch::encode::text;
use crate::wire::chunk;

/// The name of a session: ten characters, padded with spaces on either side. Compared without them.
#[derive(Clone, Copy, Debug)]
pub struct SoupSession(pub [u8; 10]);

impl SoupSession {
    /// The current session, with any name.
    pub const CURRENT: Self = Self([b' '; 10]);

    /// Creates a session's name, padded on the right; a longer name is cut.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(text(name))
    }

    /// Returns the name without its padding.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.0.trim_ascii()
    }

    /// Returns `true` if the name is blank: the current session.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.name().is_empty()
    }
}

impl PartialEq for SoupSession {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for SoupSession {}

/// Writes the name without its padding; unprintable bytes appear as `\x00`.
impl fmt::Display for SoupSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.name().escape_ascii(), f)
    }
}

/// A user's name: six characters, padded on the right. Compared without padding and case.
#[derive(Clone, Copy, Debug)]
pub struct Username(pub [u8; 6]);

impl Username {
    /// Creates a name; a longer one is cut.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(text(name))
    }
}

impl PartialEq for Username {
    fn eq(&self, other: &Self) -> bool {
        self.0.trim_ascii().eq_ignore_ascii_case(other.0.trim_ascii())
    }
}

impl Eq for Username {}

impl fmt::Display for Username {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.trim_ascii().escape_ascii(), f)
    }
}

/// A password: ten characters, padded on the right. `Debug` does not show it.
#[derive(Clone, Copy)]
pub struct Password([u8; 10]);

impl Password {
    /// Creates a password; a longer one is cut.
    #[must_use]
    pub fn new(password: &str) -> Self {
        Self(text(password))
    }

    /// Returns the password's field in a login.
    pub(super) const fn field(&self) -> &[u8; 10] {
        &self.0
    }

    /// Returns `true` if both are equal except for case, as the protocol requires. Compares every character, so that the time reveals nothing.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        let different = self.0.iter().zip(other.0).fold(0, |different, (one, other)| {
            different | (one.to_ascii_lowercase() ^ other.to_ascii_lowercase())
        });
        different == 0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// A client's login request.
#[derive(Clone, Copy, Debug)]
pub struct Login {
    /// The user name.
    pub username: Username,
    /// The password.
    pub password: Password,
    /// The session; [`SoupSession::CURRENT`] for the current one.
    pub session: SoupSession,
    /// The first requested sequence: 1 for all messages, 0 for the most recent one.
    pub sequence: u64,
}

impl Login {
    /// Bytes of the fields: name, password, session, sequence.
    pub(super) const BYTES: usize = 6 + 10 + 10 + 20;

    pub(super) fn decode(payload: &[u8; Self::BYTES]) -> Result<Self, MalformedSoupPacket> {
        Ok(Self {
            username: Username(chunk::<0, 6, _>(payload)),
            password: Password(chunk::<6, 10, _>(payload)),
            session: SoupSession(chunk::<16, 10, _>(payload)),
            sequence: number(&payload[26..])?,
        })
    }
}

/// Parses a decimal number between spaces.
pub(super) fn number(field: &[u8]) -> Result<u64, MalformedSoupPacket> {
    let digits = field.trim_ascii();
    if digits.is_empty() {
        return Err(MalformedSoupPacket::Number);
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'));
        digit.and_then(|digit| number.checked_mul(10)?.checked_add(digit)).ok_or(MalformedSoupPacket::Number)
    })
}

/// The reason why a login was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// The name or password is wrong.
    NotAuthorized,
    /// The session is not available.
    SessionNotAvailable,
    /// A letter that is not in the specification.
    Other(u8),
}

impl Reject {
    /// Returns the letter of the reason.
    #[must_use]
    pub const fn letter(self) -> u8 {
        match self {
            Self::NotAuthorized => b'A',
            Self::SessionNotAvailable => b'S',
            Self::Other(letter) => letter,
        }
    }

    pub(super) const fn of(letter: u8) -> Self {
        match letter {
            b'A' => Self::NotAuthorized,
            b'S' => Self::SessionNotAvailable,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAuthorized => f.write_str("name or password are wrong"),
            Self::SessionNotAvailable => f.write_str("the session is not available"),
            Self::Other(letter) => {
                write!(f, "reason '{}', which the protocol does not have", letter.escape_ascii())
            }
        }
    }
}
