//! The handshake before the first message.
//!
//! The client sends `user:password`, a byte with its capability, and a zero; the server answers with one byte, the capability
//! of both, or closes ([IPC protocol](https://code.kx.com/q/basics/ipc/#handshake)).

use crate::error::{Fault, Malformed, Refused};

/// Maximum length of user and password, with capability and zero, in bytes.
pub const MOST_HELLO: usize = 1_024;

/// The capability of one end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability(pub u8);

impl Capability {
    /// No compression, timestamps, timespans or GUIDs: kdb+ 2.5, and clients that send no capability.
    pub const PLAIN: Self = Self(0);
    /// Compression, timestamps, timespans, GUIDs: kdb+ 3.0, and everything that this crate supports.
    pub const OURS: Self = Self(3);
    /// A larger byte is a character of the password.
    const MOST: u8 = 0x1F;

    /// Returns the capability common to both ends, which is the server's answer.
    #[must_use]
    pub fn common(self, other: Self) -> Self {
        self.min(other)
    }

    /// Returns `true` if an end with this capability can decompress.
    #[must_use]
    pub const fn unpacks(self) -> bool {
        self.0 >= 1
    }
}

/// The handshake of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The user; empty if none is given.
    pub user: &'a [u8],
    /// The password: everything after the first colon.
    pub password: &'a [u8],
    /// The client's capability.
    pub capability: Capability,
}

/// Omits the password.
impl std::fmt::Debug for Hello<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hello {{ user: {}, capability: {} }}", self.user.escape_ascii(), self.capability.0)
    }
}

impl<'a> Hello<'a> {
    /// Reads the handshake from the front of a client's bytes and returns its length in bytes; `None` if it is not
    /// complete.
    ///
    /// # Errors
    /// There is no end within [`MOST_HELLO`] bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let looked_at = &bytes[..bytes.len().min(MOST_HELLO)];
        let Some(len) = looked_at.iter().position(|&byte| byte == 0) else {
            let is_endless = looked_at.len() == MOST_HELLO;
            let endless = Malformed::new(MOST_HELLO, Fault::Hello { most: MOST_HELLO });
            return if is_endless { Err(endless) } else { Ok(None) };
        };
        let text = &bytes[..len];
        let (text, capability) = match text.split_last() {
            Some((&last, text)) if last <= Capability::MOST => (text, Capability(last)),
            _ => (text, Capability::PLAIN),
        };
        let (user, password) = match text.iter().position(|&byte| byte == b':') {
            Some(colon) => (&text[..colon], &text[colon + 1..]),
            None => (text, &[][..]),
        };
        Ok(Some((Self { user, password, capability }, len + 1)))
    }

    /// Writes the handshake and returns its length in bytes.
    ///
    /// # Errors
    /// No capacity; a zero in user or password, or a colon in the user.
    pub fn write(&self, out: &mut [u8]) -> Result<usize, Refused> {
        if self.user.iter().chain(self.password).any(|&byte| byte == 0) {
            return Err(Refused::Zero);
        }
        if self.user.contains(&b':') {
            return Err(Refused::Colon);
        }
        // A client without capabilities sends no capability byte: the zero ends the handshake.
        let end: &[u8] = if self.capability == Capability::PLAIN { &[0] } else { &[self.capability.0, 0] };
        let mut len = 0;
        for part in [self.user, b":", self.password, end] {
            out.get_mut(len..len + part.len()).ok_or(Refused::Full)?.copy_from_slice(part);
            len += part.len();
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_passwords_and_capabilities_are_told_apart() {
        let cases: [(&[u8], &str, &str, u8); 6] = [
            (b"user:pass\x03\0", "user", "pass", 3),
            (b"user:pass\0", "user", "pass", 0),
            (b"user:pa:ss\x06\0", "user", "pa:ss", 6),
            (b"user\x03\0", "user", "", 3),
            (b":\x03\0", "", "", 3),
            (b"\0", "", "", 0),
        ];
        for (bytes, user, password, capability) in cases.iter().copied() {
            let (hello, len) = Hello::parse(bytes).unwrap().unwrap();
            assert_eq!(len, bytes.len());
            assert_eq!((hello.user, hello.password), (user.as_bytes(), password.as_bytes()));
            assert_eq!(hello.capability, Capability(capability));
            assert_eq!(Hello::parse(&bytes[..len - 1]), Ok(None));
            // The next byte belongs to the first message.
            assert_eq!(Hello::parse(&[bytes, &[1]].concat()).unwrap(), Some((hello, len)));
        }
        assert_eq!(Capability(6).common(Capability::OURS), Capability(3));
        assert!(!format!("{:?}", Hello::parse(cases[0].0)).contains("pass"));
    }

    #[test]
    fn an_endless_password_is_refused() {
        assert_eq!(Hello::parse(&[b'x'; MOST_HELLO - 1]), Ok(None));
        let fault = Hello::parse(&[b'x'; MOST_HELLO]).unwrap_err();
        assert_eq!(fault.fault, Fault::Hello { most: MOST_HELLO });
    }

    #[test]
    fn what_is_written_is_read() {
        for capability in [Capability::PLAIN, Capability::OURS] {
            let hello = Hello { user: b"user", password: b"a:b", capability };
            let mut out = [0; 16];
            let len = hello.write(&mut out).unwrap();
            assert_eq!(Hello::parse(&out[..len]), Ok(Some((hello, len))));
        }
        let colon = Hello { user: b"a:b", password: b"", capability: Capability::OURS };
        assert_eq!(colon.write(&mut [0; 16]), Err(Refused::Colon));
    }
}
