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

impl<T: Copy + PartialOrd> Spread<T> {
    /// The spread of values in any order; `None` without values. `midpoint` is the middle between two of them.
    pub(crate) fn of(values: impl IntoIterator<Item = T>, midpoint: fn(T, T) -> T) -> Option<Self> {
        let mut values: Vec<T> = values.into_iter().collect();
        values.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
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
        let of = |values: &[u64]| Spread::of(values.iter().copied(), u64::midpoint);
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[5]), Some(Spread { median: 5, least: 5, most: 5 }));
        assert_eq!(of(&[9, 1, 5]), Some(Spread { median: 5, least: 1, most: 9 }));
        assert_eq!(of(&[9, 1, 5, 7]), Some(Spread { median: 6, least: 1, most: 9 }));
        assert_eq!(
            Spread::of([4.0, 1.0], f64::midpoint),
            Some(Spread { median: 2.5, least: 1.0, most: 4.0 })
        );
    }
}
