//! When a subscriber that has caught up lets the publisher get ahead.
//!
//! A subscriber that polls takes the cache line away from the publisher that is writing it, and both wait for the line at
//! every frame. Where frames come faster than lines can move between the cores, both are faster if the subscriber holds
//! off for a while and then reads many complete lines. At lower rates holding off only delays frames.
//!
//! The rate of frames that are read does not tell the two cases apart, because polling itself slows the publisher down. So
//! the subscriber tries: it holds off once, and counts what came meanwhile. If that was much, it holds off again the next
//! time that it has caught up. If not, it tries again later, after twice as many times as before.

use std::time::Duration;

/// How long a subscriber holds off. Both sides meet at the end of each hold only, so longer holds gain throughput. Frames of
/// 32 bytes, publisher at full speed, ring of 1 MiB, in million a second: 43 to 54 without, 58 to 65 with 1 µs, 89 to 98
/// with 4 µs (cores under one cache of an AMD EPYC).
pub(super) const TIME: Duration = Duration::from_micros(4);
/// The publisher is fast if so many frames come in [`TIME`]: 25 million a second. Ten million a second can be polled.
const FRAMES: usize = 100;
/// The publisher is also fast if frames with so many bytes come in [`TIME`].
const BYTES: usize = 32 << 10;
/// The most times that a subscriber catches up between two trials, as a power of two. At ten million frames a second it
/// catches up with each, and a trial delays forty: one frame in 1,600.
const RAREST: u32 = 16;

/// A subscriber's experience with holding off.
#[derive(Debug, Default)]
pub(super) struct HoldOff {
    /// So many more times that the subscriber catches up, it does not hold off.
    skipped: u32,
    /// Trials in a row that did not find a fast publisher, up to [`RAREST`].
    in_vain: u32,
}

impl HoldOff {
    /// Whether to hold off, for a subscriber that has just caught up.
    pub(super) fn is_due(&mut self) -> bool {
        let is_due = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        is_due
    }

    /// Learns from the lengths of the frames that came meanwhile.
    pub(super) fn learn(&mut self, lengths: impl Iterator<Item = usize>) {
        let mut bytes = 0;
        let is_fast = lengths.enumerate().any(|(frames_before, len)| {
            bytes += len;
            frames_before + 1 >= FRAMES || bytes >= BYTES
        });
        if is_fast {
            *self = Self::default();
        } else {
            self.in_vain = (self.in_vain + 1).min(RAREST);
            self.skipped = 1 << self.in_vain;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skips(hold_off: &mut HoldOff) -> usize {
        std::iter::from_fn(|| (!hold_off.is_due()).then_some(())).count()
    }

    #[test]
    fn a_fast_publisher_is_given_way_each_time() {
        for lengths in [vec![32; FRAMES], vec![1500; BYTES.div_ceil(1500)], vec![BYTES]] {
            let mut hold_off = HoldOff::default();
            for _ in 0..3 {
                assert!(hold_off.is_due());
                hold_off.learn(lengths.iter().copied());
            }
        }
    }

    #[test]
    fn a_slow_publisher_is_tried_ever_more_rarely_until_it_is_fast() {
        let mut hold_off = HoldOff::default();
        for trial in 1..=2 * RAREST {
            assert!(hold_off.is_due());
            hold_off.learn([32; FRAMES - 1].into_iter());
            assert_eq!(skips(&mut hold_off), 1 << trial.min(RAREST), "trial {trial}");
        }
        hold_off.learn([32; FRAMES].into_iter());
        assert!(hold_off.is_due());
        hold_off.learn(std::iter::empty());
        assert_eq!(skips(&mut hold_off), 2, "what was learnt before is forgotten");
    }
}
