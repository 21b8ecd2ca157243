//! Delays after failed logins, growing with each failure, by user and by address.
//!
//! The answer and its time are the same for existing and unknown users. A user's own delay does not apply at the address of the last successful
//! login, so that nobody can lock out another user by guessing; the delay of the address does apply.

use std::net::{IpAddr, Ipv6Addr};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tapeline_nanos::Nanos;

/// Failures without a delay: typing errors.
const FREE: u32 = 3;
/// The first delay, ns; each further failure doubles it.
const FIRST_NS: u64 = 1_000_000_000;
/// The maximum delay, ns: a user who finds the right password must not wait for long.
const LONGEST_NS: u64 = 60_000_000_000;
/// Time without a failure after which the failures are forgotten, ns.
const FORGET_NS: u64 = 600_000_000_000;
/// Maximum number of remembered users and addresses; the least relevant are dropped. Each takes some hundred bytes.
const MOST: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Who {
    User(Box<str>),
    Address(Option<IpAddr>),
}

#[derive(Debug, Clone, Copy, Default)]
struct Record {
    failures: u32,
    last: Nanos,
    /// Address of the last successful login.
    good: Option<IpAddr>,
}

impl Record {
    fn until(&self) -> u64 {
        let Some(beyond) = self.failures.checked_sub(FREE + 1) else { return self.last.0 };
        let wait = FIRST_NS.checked_shl(beyond.min(16)).unwrap_or(LONGEST_NS).min(LONGEST_NS);
        self.last.0.saturating_add(wait)
    }

    fn is_forgotten(&self, now: Nanos) -> bool {
        now.0.saturating_sub(self.last.0) >= FORGET_NS
    }
}

/// The delays after failed logins, by user and by address: three failures cost nothing, the fourth 1 s, each further one twice the time before, up
/// to 60 s. Remembers at most 10,000 users and addresses.
#[derive(Debug, Default)]
pub struct BackOff {
    records: HashMap<Who, Record, RandomState>,
}

/// Returns the part of an address that belongs to one party: for IPv6 a network of 64 bits.
fn network(address: Option<IpAddr>) -> Option<IpAddr> {
    match address?.to_canonical() {
        IpAddr::V6(v6) => Some(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into()),
        v4 => Some(v4),
    }
}

impl BackOff {
    /// Returns `true` if a login as this user from this address must wait.
    #[must_use]
    pub fn holds(&self, now: Nanos, user: &str, address: Option<IpAddr>) -> bool {
        let address = network(address);
        let waits = |record: &Record| now.0 < record.until();
        let is_known = |record: &Record| record.good.is_some() && record.good == address;
        let user = self.records.get(&Who::User(user.into()));
        self.records.get(&Who::Address(address)).is_some_and(waits)
            || user.is_some_and(|record| waits(record) && !is_known(record))
    }

    /// Records a failed login. `user` is empty if a token was wrong.
    pub fn failed(&mut self, now: Nanos, user: &str, address: Option<IpAddr>) {
        let address = network(address);
        let user = (!user.is_empty()).then(|| Who::User(user.into()));
        for who in [Some(Who::Address(address)), user].into_iter().flatten() {
            let record = self.record(now, who);
            record.failures = record.failures.saturating_add(1);
            record.last = now;
        }
    }

    /// Records a successful login. The failures of the address remain: otherwise the owner of one account could guess at others without limit.
    pub fn succeeded(&mut self, now: Nanos, user: &str, address: Option<IpAddr>) {
        let record = self.record(now, Who::User(user.into()));
        *record = Record { failures: 0, last: now, good: network(address) };
    }

    fn record(&mut self, now: Nanos, who: Who) -> &mut Record {
        if self.records.len() >= MOST && !self.records.contains_key(&who) {
            self.records.retain(|_, record| !record.is_forgotten(now));
            if self.records.len() >= MOST
                && let Some((least, _)) = self.records.iter().min_by_key(|(_, record)| record.until())
            {
                let least = least.clone();
                self.records.remove(&least);
            }
        }
        let record = self.records.entry(who).or_default();
        if record.is_forgotten(now) {
            record.failures = 0;
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64) -> Nanos {
        Nanos(1_000_000 * SECOND + seconds * SECOND)
    }

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn waits_double_up_to_a_minute_and_are_forgotten() {
        let mut back_off = BackOff::default();
        for _ in 0..FREE {
            back_off.failed(at(0), "bob", address(1));
            assert!(!back_off.holds(at(0), "bob", address(1)));
        }
        for (failure, wait) in (0..).zip([1, 2, 4, 8, 16, 32, 60, 60, 60]) {
            let now = at(100 * failure);
            back_off.failed(now, "bob", address(1));
            let last = Nanos(now.0 + wait * SECOND - 1);
            assert!(back_off.holds(last, "bob", address(1)), "{failure}");
            assert!(!back_off.holds(Nanos(last.0 + 1), "bob", address(1)), "{failure}");
            // The user must wait at another address, and other users at that address too.
            assert!(back_off.holds(last, "bob", address(2)) && back_off.holds(last, "eve", address(1)));
            assert!(!back_off.holds(last, "eve", address(2)));
        }
        back_off.failed(at(5_000), "bob", address(1));
        assert!(!back_off.holds(at(5_000), "bob", address(1)));
    }

    #[test]
    fn a_user_is_not_locked_out_by_others_who_guess() {
        let mut back_off = BackOff::default();
        back_off.succeeded(at(0), "bob", address(1));
        for _ in 0..10 {
            back_off.failed(at(1), "bob", address(2));
        }
        assert!(back_off.holds(at(2), "bob", address(2)) && back_off.holds(at(2), "bob", address(3)));
        assert!(!back_off.holds(at(2), "bob", address(1)));
        // A successful guess is reported as such, and does not clear the failures of the address.
        back_off.succeeded(at(2), "eve", address(2));
        assert!(back_off.holds(at(2), "eve", address(2)));
    }

    #[test]
    fn an_address_is_a_network_and_memory_is_bounded() {
        let mut back_off = BackOff::default();
        let v6 = |last: u16| Some(IpAddr::from([0x2001, 0xDB8, 0, 1, 0, 0, 0, last]));
        for number in 0..10 {
            back_off.failed(at(0), "", v6(number));
        }
        assert!(back_off.holds(at(0), "", v6(99)));
        assert!(!back_off.holds(at(0), "", Some(IpAddr::from([0x2001, 0xDB8, 0, 2, 0, 0, 0, 1]))));
        for number in 0..2 * MOST {
            back_off.failed(at(0), &format!("user {number}"), v6(1));
        }
        assert_eq!(back_off.records.len(), MOST);
        // An address that has to wait is not dropped in favour of one without a delay.
        assert!(back_off.holds(at(1), "", v6(99)));
    }
}
