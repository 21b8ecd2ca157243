//! The login's fields.

use std::fmt;

use super::Malformed;

/// The name of a session: ten characters, padded with spaces on either side. Compared without them.
#[derive(Clone, Copy, Debug)]
pub struct Session(pub [u8; 10]);

impl Session {
    /// The current session, whatever its name.
    pub const CURRENT: Self = Self([b' '; 10]);

    /// A session's name, padded on the right; what does not fit is cut.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(field(name.as_bytes()))
    }

    /// The name without its padding.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.0.trim_ascii()
    }

    /// Whether it names no session in particular.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.name().is_empty()
    }
}

impl PartialEq for Session {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Session {}

/// The name without its padding; bytes that cannot be printed appear as `\x00`.
impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.name().escape_ascii(), f)
    }
}

/// A user's name: six characters, padded on the right. Compared without padding and case.
#[derive(Clone, Copy, Debug)]
pub struct Username(pub [u8; 6]);

impl Username {
    /// A name; what does not fit is cut.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(field(name.as_bytes()))
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

/// A password: ten characters, padded on the right. It never prints itself.
#[derive(Clone, Copy)]
pub struct Password([u8; 10]);

impl Password {
    /// A password; what does not fit is cut.
    #[must_use]
    pub fn new(password: &str) -> Self {
        Self(field(password.as_bytes()))
    }

    /// Its field in a login.
    pub(super) const fn field(&self) -> &[u8; 10] {
        &self.0
    }

    /// Whether they are the same but for case, as the protocol has it. Looks at every character whatever the first ones
    /// are, so that the time it takes tells nothing.
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

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct Login {
    /// Who it is.
    pub username: Username,
    /// Its password.
    pub password: Password,
    /// The session; [`Session::CURRENT`] for whichever there is.
    pub session: Session,
    /// The sequence of the first message wanted: 1 for all, 0 for the most recent one.
    pub sequence: u64,
}

impl Login {
    /// Bytes of the fields: name, password, session, sequence.
    pub(super) const BYTES: usize = 6 + 10 + 10 + 20;

    pub(super) fn decode(payload: &[u8; Self::BYTES]) -> Result<Self, Malformed> {
        let [username, password, session, sequence] = [0..6, 6..16, 16..26, 26..46].map(|at| &payload[at]);
        Ok(Self {
            username: Username(field(username)),
            password: Password(field(password)),
            session: Session(field(session)),
            sequence: number(sequence)?,
        })
    }
}

/// A field's bytes, padded where there are fewer.
fn field<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut field = [b' '; N];
    for (to, from) in field.iter_mut().zip(bytes) {
        *to = *from;
    }
    field
}

/// A decimal number between spaces.
pub(super) fn number(field: &[u8]) -> Result<u64, Malformed> {
    let digits = field.trim_ascii();
    if digits.is_empty() {
        return Err(Malformed::Number);
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'));
        digit.and_then(|digit| number.checked_mul(10)?.checked_add(digit)).ok_or(Malformed::Number)
    })
}

/// Why a login was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// Name or password are wrong.
    NotAuthorized,
    /// The session is not there.
    SessionNotAvailable,
    /// A letter that the specification does not have.
    Other(u8),
}

impl Reject {
    /// Its letter.
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
