//! Due times of messages: a steady rate, with optional bursts at regular intervals.

use std::fmt;
use std::str::FromStr;

/// Nanoseconds of a second.
const SECOND_NS: u64 = 1_000_000_000;

/// The maximum rate in messages per second: one message a nanosecond.
pub const FASTEST_HZ: u64 = SECOND_NS;

/// For `length_ns` at the start of every `every_ns`, the rate is multiplied by `factor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The factor of the base rate.
    pub factor: u32,
    /// The duration of a burst, ns.
    pub length_ns: u64,
    /// The time from the start of one burst to the start of the next, ns.
    pub every_ns: u64,
}

/// The error for a text that is not a burst; [`Display`](fmt::Display) states what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a burst: expected FACTORx:LENGTH:EVERY with LENGTH below EVERY, for example 10x:50ms:1s"
)]
pub struct NotABurst(String);

impl FromStr for Burst {
    type Err = NotABurst;

    /// Parses `10x:50ms:1s`: ten times the rate for 50 ms of every second. Units are ns, us, ms, s.
    fn from_str(text: &str) -> Result<Self, NotABurst> {
        let parse = || {
            let mut parts = text.split(':');
            let factor = parts.next()?.trim_end_matches(['x', 'X', '×']).parse().ok()?;
            let length_ns = span_ns(parts.next()?)?;
            let every_ns = span_ns(parts.next()?)?;
            let sound = parts.next().is_none()
                && (1..=100_000).contains(&factor)
                && length_ns > 0
                && length_ns < every_ns
                && every_ns <= 3_600 * SECOND_NS;
            sound.then_some(Self { factor, length_ns, every_ns })
        };
        parse().ok_or_else(|| NotABurst(text.to_owned()))
    }
}

/// Parses `50ms` to nanoseconds.
pub(crate) fn span_ns(text: &str) -> Option<u64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(unit_at);
    let unit_ns: u64 = match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND_NS,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit_ns)
}

impl fmt::Display for Burst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x for {} ns of every {} ns", self.factor, self.length_ns, self.every_ns)
    }
}

/// Due times from the start, in whole nanoseconds. Message k is due at the same time in a run of any length, so that a late sender catches up and
/// nothing drifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    rate_hz: u64,
    burst: Option<Period>,
}

/// One period of bursts, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Period {
    every_ns: u64,
    length_ns: u64,
    burst_hz: u64,
    in_burst: u64,
    in_all: u64,
}

impl Schedule {
    /// Creates a schedule of `rate_hz` messages a second, within 1..=[`FASTEST_HZ`] (other values are set to the nearest limit); the
    /// rate of a burst is limited in the same way.
    #[must_use]
    pub fn new(rate_hz: u64, burst: Option<Burst>) -> Self {
        let rate_hz = rate_hz.clamp(1, FASTEST_HZ);
        let burst = burst.and_then(|burst| {
            let burst_hz = rate_hz.saturating_mul(u64::from(burst.factor)).min(FASTEST_HZ);
            let in_burst = count(burst_hz, burst.length_ns);
            let in_all = in_burst + count(rate_hz, burst.every_ns.checked_sub(burst.length_ns)?);
            // A period without messages has no length in messages to divide by.
            (in_all > 0).then_some(Period {
                every_ns: burst.every_ns,
                length_ns: burst.length_ns,
                burst_hz,
                in_burst,
                in_all,
            })
        });
        Self { rate_hz, burst }
    }

    /// Returns the due time of message `k`, counted from 0: nanoseconds from the start.
    #[must_use]
    #[inline]
    pub fn due_ns(&self, k: u64) -> u64 {
        let Some(period) = &self.burst else {
            return span(k, self.rate_hz);
        };
        let within = k % period.in_all;
        let offset = if within < period.in_burst {
            span(within, period.burst_hz)
        } else {
            period.length_ns + span(within - period.in_burst, self.rate_hz)
        };
        (k / period.in_all).saturating_mul(period.every_ns).saturating_add(offset)
    }

    /// Returns the long-term rate in messages per second, bursts included.
    #[must_use]
    pub fn mean_hz(&self) -> u64 {
        match &self.burst {
            None => self.rate_hz,
            Some(period) => {
                let mean = u128::from(period.in_all) * u128::from(SECOND_NS) / u128::from(period.every_ns);
                mean as u64
            }
        }
    }

    /// Returns the number of messages that are due before `duration_ns` has passed.
    #[must_use]
    pub fn messages_in(&self, duration_ns: u64) -> u64 {
        // due_ns grows with k, so a binary search finds the first message that is due too late.
        let (mut low, mut high) = (0_u64, u64::MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.due_ns(middle) < duration_ns { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Returns the duration of `k` messages at a rate, rounded down to the nanosecond; errors do not accumulate.
#[inline]
fn span(k: u64, rate_hz: u64) -> u64 {
    let seconds = k / rate_hz;
    // The remainder is below FASTEST_HZ, so the product stays below 2^60.
    seconds.saturating_mul(SECOND_NS).saturating_add((k % rate_hz) * SECOND_NS / rate_hz)
}

/// Returns the number of messages in a time at a rate, the one at its start included.
fn count(rate_hz: u64, length_ns: u64) -> u64 {
    (u128::from(rate_hz) * u128::from(length_ns)).div_ceil(u128::from(SECOND_NS)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rate_does_not_drift() {
        let schedule = Schedule::new(3, None);
        assert_eq!([0, 1, 2, 3].map(|k| schedule.due_ns(k)), [0, 333_333_333, 666_666_666, SECOND_NS]);
        assert_eq!(schedule.due_ns(3 * 86_400), 86_400 * SECOND_NS);
        assert_eq!(schedule.messages_in(SECOND_NS), 3);
        assert_eq!(schedule.messages_in(SECOND_NS + 1), 4);
        assert_eq!(Schedule::new(1_000_000, None).messages_in(10 * SECOND_NS), 10_000_000);
        assert_eq!(Schedule::new(0, None).mean_hz(), 1);
    }

    #[test]
    fn bursts_come_at_the_start_of_every_period() {
        let burst: Burst = "10x:50ms:1s".parse().unwrap();
        let schedule = Schedule::new(1000, Some(burst));
        assert_eq!(schedule.mean_hz(), 1450);
        assert_eq!(schedule.due_ns(1), 100_000);
        assert_eq!(schedule.due_ns(499), 49_900_000);
        assert_eq!(schedule.due_ns(500), 50_000_000);
        assert_eq!(schedule.due_ns(501), 51_000_000);
        assert_eq!(schedule.due_ns(1449), 999_000_000);
        assert_eq!(schedule.due_ns(1450), SECOND_NS);
        assert!((0..5000).all(|k| schedule.due_ns(k) < schedule.due_ns(k + 1)));
        assert_eq!(schedule.messages_in(2 * SECOND_NS), 2900);
    }

    #[test]
    fn what_is_no_burst_is_named() {
        for text in
            ["", "10x", "10x:1s", "10x:2s:1s", "0x:1ms:1s", "10x:0ms:1s", "10x:1ms:1s:1s", "10x:1h:9h"]
        {
            let error = text.parse::<Burst>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}`")), "{error}");
        }
        assert_eq!("3:1us:10us".parse(), Ok(Burst { factor: 3, length_ns: 1_000, every_ns: 10_000 }));
    }
}
