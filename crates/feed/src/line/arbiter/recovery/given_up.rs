//! Messages that recovery will not deliver, while an older message is still waited for.

use std::ops::RangeInclusive;

use super::MAX_HOLES;

/// Ranges of sequences, ascending and separate. Bounded: a range beyond the limit is not stored.
#[derive(Debug, Default)]
pub(in super::super) struct GivenUp(Vec<(u64, u64)>);

impl GivenUp {
    #[inline]
    pub(in super::super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, messages: RangeInclusive<u64>) {
        let (mut first, mut last) = (*messages.start(), *messages.end());
        if first > last {
            return;
        }
        // Merges ranges that overlap or touch.
        self.0.retain(|&(other_first, other_last)| {
            let apart = other_last.saturating_add(1) < first || last.saturating_add(1) < other_first;
            if !apart {
                (first, last) = (first.min(other_first), last.max(other_last));
            }
            apart
        });
        if self.0.len() < MAX_HOLES {
            let at = self.0.partition_point(|&(other, _)| other < first);
            self.0.insert(at, (first, last));
        }
    }

    /// Returns the last sequence of the range that contains `sequence`.
    pub(super) fn last_of(&self, sequence: u64) -> Option<u64> {
        self.0.iter().find(|(first, last)| (*first..=*last).contains(&sequence)).map(|(_, last)| *last)
    }

    /// Returns the parts of a hole that are not given up.
    pub(super) fn less(&self, hole: RangeInclusive<u64>) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        let (mut at, end) = hole.into_inner();
        let mut done = false;
        std::iter::from_fn(move || {
            while !done {
                let next = self.0.iter().find(|(_, last)| *last >= at);
                match next {
                    Some(&(first, last)) if first <= at => {
                        done = last >= end;
                        at = last.saturating_add(1);
                    }
                    other => {
                        let until = other.map_or(end, |(first, _)| end.min(first - 1));
                        done = until == end;
                        let open = at..=until;
                        at = until.saturating_add(1);
                        return Some(open);
                    }
                }
            }
            None
        })
    }

    pub(super) fn forget_before(&mut self, next: u64) {
        self.0.retain(|(_, last)| *last >= next);
    }

    pub(in super::super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_are_taken_from_holes() {
        let mut given_up = GivenUp::default();
        for range in [20..=25, 10..=12, 13..=14, 40..=40, 24..=30] {
            given_up.add(range);
        }
        assert_eq!(given_up.0, [(10, 14), (20, 30), (40, 40)]);
        let less = |hole| given_up.less(hole).collect::<Vec<_>>();
        assert_eq!(less(1..=50), [1..=9, 15..=19, 31..=39, 41..=50]);
        assert_eq!(less(10..=14), []);
        assert_eq!(less(12..=22), [15..=19]);
        assert_eq!(less(50..=u64::MAX), [50..=u64::MAX]);
        assert_eq!((given_up.last_of(13), given_up.last_of(15)), (Some(14), None));
        given_up.forget_before(15);
        assert_eq!(given_up.0, [(20, 30), (40, 40)]);
    }

    #[test]
    fn it_agrees_with_a_set() {
        let mut random = 1_u64;
        let mut number = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..500 {
            let mut given_up = GivenUp::default();
            let mut set = std::collections::BTreeSet::new();
            for _ in 0..number(9) {
                let first = number(60);
                let last = first + number(9);
                given_up.add(first..=last);
                set.extend(first..=last);
            }
            let (first, last) = (number(50), 50 + number(20));
            let left: Vec<_> = given_up.less(first..=last).flatten().collect();
            let wanted: Vec<_> = (first..=last).filter(|sequence| !set.contains(sequence)).collect();
            assert_eq!(left, wanted);
        }
    }
}
