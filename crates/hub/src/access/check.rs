//! Checks of credentials, as data: they are slow, so another thread performs them and reports the result.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The bytes of a password or a token: never displayed, and overwritten when they are no longer needed.
pub struct Secret(zeroize::Zeroizing<Box<[u8]>>);

impl Secret {
    /// Copies the bytes.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(zeroize::Zeroizing::new(bytes.into()))
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The SHA-256 hash of a token.
pub type TokenHash = [u8; 32];

/// The credentials of a client, with the hashes to compare.
#[derive(Debug)]
#[non_exhaustive]
pub enum Proof {
    /// A password.
    Password {
        /// The password as the client sent it.
        password: Secret,
        /// The user's hash in PHC format; for an unknown user the hash of another, so that the check takes the same time.
        hash: Arc<str>,
    },
    /// A token.
    Token {
        /// The token as the client sent it.
        token: Secret,
        /// The hashes of all tokens. Compare in constant time.
        hashes: Arc<[TokenHash]>,
    },
}

/// A password or token to check: see [`Hub::next_check`](crate::Hub::next_check).
#[derive(Debug)]
pub struct Check {
    /// The number that identifies the answer.
    pub number: CheckNumber,
    /// The credentials.
    pub proof: Proof,
}

/// The number of a [`Check`], which identifies its answer; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CheckNumber(pub u64);

/// The result of a [`Check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The credentials are wrong.
    Wrong,
    /// The credentials are right: the index of the matching hash, 0 for a password.
    Right(usize),
}

/// The queued checks of one address.
type Round = VecDeque<Check>;

/// A queue of checks. The addresses take turns, so that an address with many checks delays the others by one check only.
#[derive(Debug, Default)]
pub struct Checks {
    rounds: VecDeque<(Option<IpAddr>, Round)>,
}

impl Checks {
    /// Returns the number of queued checks of one address.
    #[must_use]
    pub fn of(&self, address: Option<IpAddr>) -> usize {
        self.rounds.iter().find(|(other, _)| *other == address).map_or(0, |(_, checks)| checks.len())
    }

    /// Queues a check of an address.
    pub fn push(&mut self, address: Option<IpAddr>, check: Check) {
        match self.rounds.iter_mut().find(|(other, _)| *other == address) {
            Some((_, checks)) => checks.push_back(check),
            None => self.rounds.push_back((address, Round::from([check]))),
        }
    }

    /// Returns the next check, of the address whose turn it is.
    #[expect(clippy::should_implement_trait, reason = "there may be more after there was none")]
    pub fn next(&mut self) -> Option<Check> {
        let (address, mut checks) = self.rounds.pop_front()?;
        let check = checks.pop_front()?;
        if !checks.is_empty() {
            self.rounds.push_back((address, checks));
        }
        Some(check)
    }

    /// Removes a check that is no longer needed. Returns `true` if it was queued.
    pub fn forget(&mut self, number: CheckNumber) -> bool {
        for (round, (_, checks)) in self.rounds.iter_mut().enumerate() {
            let Some(at) = checks.iter().position(|check| check.number == number) else { continue };
            checks.remove(at);
            if checks.is_empty() {
                self.rounds.remove(round);
            }
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(number: u64) -> Check {
        let proof = Proof::Password { password: Secret::new(b"secret"), hash: "".into() };
        Check { number: CheckNumber(number), proof }
    }

    #[test]
    fn addresses_take_turns_and_secrets_are_not_shown() {
        let mut checks = Checks::default();
        let address = |last| Some(IpAddr::from([192, 0, 2, last]));
        for number in 0..100 {
            checks.push(address(1), check(number));
        }
        checks.push(address(2), check(100));
        checks.push(address(2), check(101));
        assert_eq!((checks.of(address(1)), checks.of(address(2))), (100, 2));
        let mut numbers = || checks.next().map(|check| check.number.0);
        assert_eq!([numbers(), numbers(), numbers(), numbers()], [Some(0), Some(100), Some(1), Some(101)]);
        assert_eq!([checks.forget(CheckNumber(2)), checks.forget(CheckNumber(2))], [true, false]);
        assert_eq!(std::iter::from_fn(|| checks.next()).count(), 97);
        assert!(!format!("{:?}", check(1)).contains("secret"));
    }
}
