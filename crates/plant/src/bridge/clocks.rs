//! The difference between the clocks of two plants, with its bound, from round trips.
//!
//! ```text
//!  request and answer (48), little-endian:
//!  "tapeclk1" (8)  plant's id, padded (3)  zero (5)  sent (8)  received (8)  answered (8)  error (8)
//! ```
//! The plant below asks at `sent`, by its own clock; the plant above fills in when the request arrived and when the answer left, by its clock,
//! and the bound on the error of that clock's reading. A request has zeros there. Over UDP the port is that of the re-requests;
//! a plant below whose lines are all over TCP asks on a [line](super::tcp_line).
//!
//! The answer is at most as long as the request: nobody is made to send more than was sent to it.

use tapeline_measure::Nanos;

use super::{BridgeSession, Epoch, PlantId};
use crate::note::ClockDifference;

/// The first bytes of a request and of an answer; another layout has another last digit.
pub const MAGIC: &[u8; 8] = b"tapeclk1";
/// The length of a request, and of an answer, in bytes.
pub const CLOCK_BYTES: usize = 48;

/// Round trips that are remembered.
const REMEMBERED: usize = 8;
/// The most by which two clocks drift apart, in parts per million: twice the 15 of RFC 5905 (PHI, section 7.1), once for each.
const DRIFT_PPM: u64 = 30;
/// A longer round trip says nothing that anyone needs. It also keeps sums of times far from overflow.
const LONGEST_NS: i64 = 10_000_000_000;

/// A request for the time of the plant above, or the answer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockExchange {
    /// The plant that is asked.
    pub plant: PlantId,
    /// When the request left, by the clock of the plant below.
    pub sent: Nanos,
    /// When the request arrived, by the clock of the plant above.
    pub received: Nanos,
    /// When the answer left, by the clock of the plant above.
    pub answered: Nanos,
    /// The bound on the error of a reading of that clock, in ns.
    pub error_ns: u64,
}

impl ClockExchange {
    /// Creates a request.
    #[must_use]
    pub const fn request(plant: PlantId, sent: Nanos) -> Self {
        Self { plant, sent, received: Nanos(0), answered: Nanos(0), error_ns: 0 }
    }

    /// Returns the bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; CLOCK_BYTES] {
        let mut bytes = [0; CLOCK_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        let id = BridgeSession { plant: self.plant, epoch: Epoch(0) }.to_mold();
        bytes[8..11].copy_from_slice(&id.0[1..4]);
        let numbers = [self.sent.0, self.received.0, self.answered.0, self.error_ns];
        for (place, number) in bytes[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads a request or an answer; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; CLOCK_BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..].first_chunk().map_or(0, |number| u64::from_le_bytes(*number));
        let id = std::str::from_utf8(&bytes[8..11]).ok()?;
        let plant = id.trim_end_matches('_').parse().ok()?;
        bytes.starts_with(MAGIC).then(|| Self {
            plant,
            sent: Nanos(number(16)),
            received: Nanos(number(24)),
            answered: Nanos(number(32)),
            error_ns: number(40),
        })
    }
}

/// One round trip.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    /// When its answer arrived, by the clock of the plant below.
    at: Nanos,
    /// The difference that would be exact if both ways had taken equally long.
    ahead_ns: i64,
    /// Half the time on the way, and the errors of both readings.
    bound_ns: u64,
}

/// The difference between the clock of the plant above and this one's, from the best of the last round trips.
#[derive(Clone, Debug, Default)]
pub struct ClockEstimate {
    trips: [Option<RoundTrip>; REMEMBERED],
    next: usize,
}

impl ClockEstimate {
    /// Takes an answer that arrived at `arrived`, by a clock whose readings are within `error_ns`. An answer whose times cannot be is left out.
    pub fn take(&mut self, answer: &ClockExchange, arrived: Nanos, error_ns: u64) {
        let on_both = arrived.since(answer.sent);
        let above = answer.answered.since(answer.received);
        let on_the_way = on_both.saturating_sub(above);
        if above < 0 || !(0..LONGEST_NS).contains(&on_both) || !(0..LONGEST_NS).contains(&on_the_way) {
            return;
        }
        // Both differences have the same error in opposite directions, half the time on the way if that was all one way.
        let there = i128::from(answer.received.0) - i128::from(answer.sent.0);
        let back = i128::from(answer.answered.0) - i128::from(arrived.0);
        let Ok(ahead_ns) = i64::try_from((there + back) / 2) else { return };
        // Rounded up: `ahead_ns` was rounded too.
        let bound_ns =
            (on_the_way.unsigned_abs() / 2 + 1).saturating_add(answer.error_ns).saturating_add(error_ns);
        self.trips[self.next % REMEMBERED] = Some(RoundTrip { at: arrived, ahead_ns, bound_ns });
        self.next += 1;
    }

    /// Returns the difference now; `None` before the first answer, and if the bound is greater than a note can state, which is four seconds.
    #[must_use]
    pub fn difference(&self, now: Nanos) -> Option<ClockDifference> {
        let drifted = |at: Nanos| now.since(at).max(0).unsigned_abs() / 1_000 * DRIFT_PPM / 1_000;
        let aged = |trip: &RoundTrip| (trip.ahead_ns, trip.bound_ns.saturating_add(drifted(trip.at)));
        let (ahead_ns, bound_ns) = self.trips.iter().flatten().map(aged).min_by_key(|(_, bound)| *bound)?;
        u32::try_from(bound_ns)
            .ok()
            .filter(|bound| *bound < u32::MAX)
            .map(|bound_ns| ClockDifference { ahead_ns, bound_ns })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_exchange_is_read_as_it_was_written() {
        let plant = "NY".parse().unwrap();
        let answer =
            ClockExchange { plant, sent: Nanos(1), received: Nanos(2), answered: Nanos(3), error_ns: 4 };
        let bytes = answer.encode();
        assert_eq!(ClockExchange::decode(&bytes), Some(answer));
        assert_eq!(bytes[..16], *b"tapeclk1NY_\0\0\0\0\0");
        for cut in 0..CLOCK_BYTES {
            assert_eq!(ClockExchange::decode(&bytes[..cut]), None);
        }
        let mut other = bytes;
        other[7] = b'2';
        assert_eq!(ClockExchange::decode(&other), None);
    }

    #[test]
    fn the_bound_grows_while_nothing_is_heard() {
        let mut estimate = ClockEstimate::default();
        assert_eq!(estimate.difference(Nanos(0)), None);
        let sent = Nanos(1_000_000_000);
        let answer = ClockExchange {
            received: Nanos(sent.0 + 5_010),
            answered: Nanos(sent.0 + 5_020),
            ..ClockExchange::request(PlantId::default(), sent)
        };
        let arrived = Nanos(sent.0 + 30);
        estimate.take(&answer, arrived, 7);
        assert_eq!(estimate.difference(arrived), Some(ClockDifference { ahead_ns: 5_000, bound_ns: 18 }));
        let later = arrived + 1_000_000_000;
        assert_eq!(estimate.difference(later), Some(ClockDifference { ahead_ns: 5_000, bound_ns: 30_018 }));
        assert_eq!(estimate.difference(Nanos(u64::MAX / 2)), None, "the bound is no use");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Clocks with any difference that drift, ways of any length: the difference is within the bound.
        #[test]
        fn the_difference_is_within_its_bound(
            ahead in -4_000_000_000_000_000_000_i64..4_000_000_000_000_000_000,
            drift_ppm in -20_i64..20,
            trips in proptest::collection::vec((0_u64..1_000_000, 0_u64..1_000_000, 0_u64..5_000_000, 0_u64..900_000_000), 1..20),
        ) {
            let begun = Nanos(9_000_000_000_000_000_000);
            let true_ahead = |at: Nanos| ahead + at.since(begun) / 1_000 * drift_ppm / 1_000;
            let above = |at: Nanos| Nanos(at.0.checked_add_signed(true_ahead(at)).unwrap());
            let (mut now, mut estimate) = (begun, ClockEstimate::default());
            for (there, back, inside, pause) in trips {
                let sent = now;
                let (received, answered) = (sent + there, sent + there + inside);
                now = answered + back;
                let answer = ClockExchange {
                    received: above(received),
                    answered: above(answered),
                    error_ns: 3,
                    ..ClockExchange::request(PlantId::default(), sent)
                };
                estimate.take(&answer, now, 3);
                now = now + pause;
                let found = estimate.difference(now).unwrap();
                let error = (found.ahead_ns - true_ahead(now)).unsigned_abs();
                prop_assert!(error <= u64::from(found.bound_ns), "{error} ns off, {found:?}");
            }
        }

        /// Whatever an answer says, nothing overflows.
        #[test]
        fn any_times_are_taken(sent: u64, received: u64, answered: u64, error_ns: u64, arrived: u64, now: u64) {
            let answer = ClockExchange {
                received: Nanos(received),
                answered: Nanos(answered),
                error_ns,
                ..ClockExchange::request(PlantId::default(), Nanos(sent))
            };
            let mut estimate = ClockEstimate::default();
            estimate.take(&answer, Nanos(arrived), error_ns);
            let _ = estimate.difference(Nanos(now));
        }
    }
}
