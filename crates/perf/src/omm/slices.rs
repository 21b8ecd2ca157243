//! Time in slices: a fixed grid of `tick_rate` slices per second (the guide's chapter 3.1), and a burst in each.

use tapeline_measure::{Nanos, Pacer};

/// Number of messages due in each slice at a rate: whole numbers whose sum never drifts from the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    rate: u64,
    tick_rate: u64,
}

impl Share {
    /// `rate` messages per second in `tick_rate` slices per second, of which there is at least 1.
    pub(super) fn new(rate: u64, tick_rate: u64) -> Self {
        Self { rate, tick_rate: tick_rate.max(1) }
    }

    /// Messages due in slice `number`, from 0.
    pub(super) fn burst(self, number: u64) -> u64 {
        self.in_first(number + 1) - self.in_first(number)
    }

    /// Messages due in the first `slices` slices.
    pub(super) fn in_first(self, slices: u64) -> u64 {
        let (seconds, rest) = (slices / self.tick_rate, slices % self.tick_rate);
        seconds.saturating_mul(self.rate).saturating_add(rest * self.rate / self.tick_rate)
    }
}

/// The slices of one thread in order: none is skipped, however late the thread is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slices {
    pacer: Pacer,
    next: u64,
}

impl Slices {
    /// `tick_rate` slices per second; the first begins at `start`.
    pub(super) fn new(tick_rate: u64, start: Nanos) -> Self {
        Self { pacer: Pacer::per_second(tick_rate, start), next: 0 }
    }

    /// When the next slice begins: its messages are due then.
    pub(super) fn due(&self) -> Nanos {
        self.pacer.due(self.next)
    }

    /// When slice `number` begins.
    pub(super) fn due_of(&self, number: u64) -> Nanos {
        self.pacer.due(number)
    }

    /// Number of slices that have begun by now, including those not taken yet.
    pub(super) fn begun(&self, now: Nanos) -> u64 {
        self.pacer.due_by(now)
    }

    /// Number of slices that are taken.
    pub(super) fn taken(&self) -> u64 {
        self.next
    }

    /// Takes the next slice if it has begun: its number and due time.
    pub(super) fn begin(&mut self, now: Nanos) -> Option<(u64, Nanos)> {
        let (number, due) = (self.next, self.due());
        (now >= due).then(|| {
            self.next += 1;
            (number, due)
        })
    }
}

/// Selects the messages that carry a time: `rate` of them in each second, each in a different random slice, and there
/// a random message of the burst (the guide's chapter 3.2). The number of slices per second limits the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lots {
    rate: u64,
    tick_rate: u64,
    /// In the current second.
    stamps_left: u64,
    slices_left: u64,
    /// State of Marsaglia's xorshift64; never 0.
    random: u64,
}

impl Lots {
    /// `rate` times per second in `tick_rate` slices per second. Equal seeds draw equally.
    pub(super) fn new(rate: u64, tick_rate: u64, seed: u64) -> Self {
        Self { rate, tick_rate: tick_rate.max(1), stamps_left: 0, slices_left: 0, random: seed | 1 }
    }

    /// Draws for the next slice, which has `burst` messages: the index, from 0, of the message that carries a time,
    /// if one does. A slice without a burst leaves its time to a later slice of the same second.
    pub(super) fn draw(&mut self, burst: u64) -> Option<u64> {
        if self.slices_left == 0 {
            self.slices_left = self.tick_rate;
            self.stamps_left = self.rate.min(self.tick_rate);
        }
        // Knuth's algorithm S: all remaining slices are equally likely, and all times are drawn by the second's end.
        let is_drawn = self.below(self.slices_left) < self.stamps_left;
        self.slices_left -= 1;
        if !is_drawn || burst == 0 {
            return None;
        }
        self.stamps_left -= 1;
        Some(self.below(burst))
    }

    /// A random number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lots_keep_their_rate() {
        for (rate, tick_rate) in [(10, 1_000), (1_000, 1_000), (0, 100), (7, 100), (200, 100)] {
            let mut lots = Lots::new(rate, tick_rate, 42);
            let (mut places, mut slices) = ([0; 4], std::collections::BTreeSet::new());
            for _ in 0..5 {
                let drawn: Vec<_> = (0..tick_rate).map(|slice| (slice, lots.draw(4))).collect();
                let stamps: Vec<_> =
                    drawn.iter().filter_map(|(slice, stamp)| Some((*slice, (*stamp)?))).collect();
                assert_eq!(stamps.len() as u64, rate.min(tick_rate), "{rate} in {tick_rate}");
                for (slice, stamp) in stamps {
                    places[stamp as usize] += 1;
                    slices.insert(slice);
                }
            }
            // Neither the place in a burst nor the slice is constant.
            if rate == 10 {
                assert!(places.iter().all(|count| *count > 0) && slices.len() > 40, "{places:?} {slices:?}");
            }
        }
    }

    #[test]
    fn a_slice_without_a_burst_has_no_time() {
        let mut lots = Lots::new(50, 100, 7);
        assert!((0..100).all(|_| lots.draw(0).is_none()));
        // Times that found no slice are not made up for in the next second.
        assert_eq!((0..100).filter(|_| lots.draw(3).is_some()).count(), 50);
    }

    #[test]
    fn bursts_add_up_to_the_rate() {
        for (rate, tick_rate) in
            [(100_000, 1_000), (35_000, 1_000), (1_001, 1_000), (7, 3), (0, 1_000), (5, 1)]
        {
            let share = Share::new(rate, tick_rate);
            let second: u64 = (0..tick_rate).map(|number| share.burst(number)).sum();
            let next: u64 = (tick_rate..2 * tick_rate).map(|number| share.burst(number)).sum();
            assert_eq!((second, next), (rate, rate), "{rate} in {tick_rate}");
            let bursts: Vec<u64> = (0..tick_rate).map(|number| share.burst(number)).collect();
            let even = rate / tick_rate;
            assert!(bursts.iter().all(|burst| (even..=even + 1).contains(burst)), "{bursts:?}");
        }
    }

    #[test]
    fn slices_keep_to_their_grid() {
        let mut slices = Slices::new(1_000, Nanos(5_000_000));
        assert_eq!(slices.begin(Nanos(4_999_999)), None);
        assert_eq!(slices.begin(Nanos(5_000_100)), Some((0, Nanos(5_000_000))));
        assert_eq!(slices.due(), Nanos(6_000_000));
        // Three slices late: each is returned with its own due time.
        assert_eq!(slices.begun(Nanos(8_500_000)), 4);
        for expected in [Some((1, 6_000_000)), Some((2, 7_000_000)), Some((3, 8_000_000)), None] {
            let expected = expected.map(|(number, due)| (number, Nanos(due)));
            assert_eq!(slices.begin(Nanos(8_500_000)), expected);
        }
    }
}
