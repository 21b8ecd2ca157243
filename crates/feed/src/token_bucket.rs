//! A limit on the rate of an action.

use tapeline_nanos::Nanos;

/// A token bucket with a rate per second and a maximum number of saved tokens. It is full at the start.
///
/// Stores one number, the time at which the bucket will be full again, in units of 1 ns ÷ rate so that no rate loses a
/// fraction of a token (the generic cell rate algorithm, ITU-T I.371 annex A). Time that goes back adds no tokens.
#[derive(Clone, Debug)]
pub struct TokenBucket {
    per_second: u128,
    depth: u128,
    full_at: u128,
}

const NS_PER_SECOND: u128 = 1_000_000_000;

impl TokenBucket {
    /// Creates a full bucket of `depth` tokens that fills at `per_second`; 0 counts as 1 in both.
    #[must_use]
    pub fn new(per_second: u64, depth: u64) -> Self {
        let depth = u128::from(depth.max(1)) * NS_PER_SECOND;
        Self { per_second: u128::from(per_second.max(1)), depth, full_at: 0 }
    }

    /// Takes `tokens` if the bucket has them. Returns `true` if it did.
    pub fn take(&mut self, tokens: u64, now: Nanos) -> bool {
        let enough = self.has(tokens, now);
        if enough {
            self.full_at = self.after(tokens, now);
        }
        enough
    }

    /// Returns `true` if the bucket has `tokens`; takes none.
    #[must_use]
    pub fn has(&self, tokens: u64, now: Nanos) -> bool {
        self.after(tokens, now) <= self.scaled(now) + self.depth
    }

    /// Returns the time at which the bucket will have `tokens` if none are taken before; `now` if it has them. Never more than the depth.
    #[must_use]
    pub fn ready_at(&self, tokens: u64, now: Nanos) -> Nanos {
        let wait = self.after(tokens, now).saturating_sub(self.scaled(now) + self.depth);
        now + u64::try_from(wait.div_ceil(self.per_second)).unwrap_or(u64::MAX)
    }

    /// Returns `true` if the bucket is full.
    #[must_use]
    pub fn is_full(&self, now: Nanos) -> bool {
        self.full_at <= self.scaled(now)
    }

    fn scaled(&self, now: Nanos) -> u128 {
        u128::from(now.0) * self.per_second
    }

    /// When the bucket would be full after taking `tokens`.
    fn after(&self, tokens: u64, now: Nanos) -> u128 {
        self.full_at.max(self.scaled(now)) + u128::from(tokens) * NS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_up_goes_at_once_and_the_rest_at_the_rate() {
        let mut bucket = TokenBucket::new(3, 2);
        let start = Nanos(1_000_000_000_000);
        assert!(bucket.is_full(start) && bucket.take(1, start) && bucket.take(1, start));
        assert!(!bucket.take(1, start));
        let ready = bucket.ready_at(1, start);
        assert_eq!(ready, start + 333_333_334);
        assert!(!bucket.take(1, Nanos(ready.0 - 1)) && bucket.take(1, ready));
        // In ten seconds thirty more, neither more nor less.
        let taken = (0..10_000_u64).filter(|ms| bucket.take(1, ready + ms * 1_000_000)).count();
        assert_eq!(taken, 29);
        assert!(bucket.is_full(ready + 60_000_000_000));
    }

    #[test]
    fn more_than_the_depth_never_goes_and_time_that_goes_back_gives_nothing() {
        let mut bucket = TokenBucket::new(1_000, 10);
        assert!(!bucket.take(11, Nanos(u64::MAX)));
        assert!(bucket.take(10, Nanos(5_000_000_000)));
        assert!(!bucket.take(1, Nanos(4_000_000_000)));
        assert!(bucket.take(1, Nanos(5_001_000_000)));
    }
}
