//! The spread of a figure over several runs.

use std::cmp::Ordering;

use serde::Serialize;

/// The median, the least and the most of several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Spread<T = f64> {
    pub(crate) median: T,
    pub(crate) least: T,
    pub(crate) most: T,
}

impl<T: Copy> Spread<T> {
    /// The spread of values in any order; `None` without values. `order` compares two of them, `midpoint` is the middle
    /// between two.
    pub(crate) fn of(
        values: impl IntoIterator<Item = T>,
        order: fn(&T, &T) -> Ordering,
        midpoint: fn(T, T) -> T,
    ) -> Option<Self> {
        let mut values: Vec<T> = values.into_iter().collect();
        values.sort_by(order);
        let (least, most) = (*values.first()?, *values.last()?);
        let median = midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_of_the_values_in_order() {
        let of = |values: &[u64]| Spread::of(values.iter().copied(), u64::cmp, u64::midpoint);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[5]), Some(Spread { median: 5, least: 5, most: 5 }));
        assert_eq!(of(&[9, 1, 5]), Some(Spread { median: 5, least: 1, most: 9 }));
        assert_eq!(of(&[9, 1, 5, 7]), Some(Spread { median: 6, least: 1, most: 9 }));
        assert_eq!(
            Spread::of([4.0, 1.0], f64::total_cmp, f64::midpoint),
            Some(Spread { median: 2.5, least: 1.0, most: 4.0 })
        );
    }

    #[test]
    fn values_that_are_no_numbers_have_a_place_in_the_order() {
        let values = (0..64_u32).map(|number| if number % 3 == 0 { f64::NAN } else { -f64::from(number) });
        let spread = Spread::of(values, f64::total_cmp, f64::midpoint).unwrap();
        assert_eq!(spread.least, -62.0);
        assert!(spread.most.is_nan());
    }
}
