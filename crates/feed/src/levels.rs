//! Price levels of sources that maintain the best ten of each side: all levels, and the changes by each message.
//!
//! Memory: about 1 KiB for each instrument that has levels.
//!
//! ```
//! use tapeline_feed::depth::Action;
//! use tapeline_feed::draft::Price;
//! use tapeline_feed::itch::Side;
//! use tapeline_feed::levels::{Level, Levels};
//! use tapeline_feed::normalise::Instrument;
//!
//! let level = |mantissa, size| Level { side: Side::Bid, price: Price { mantissa, decimals: 2 }, size, size_decimals: 0, orders: 1 };
//! let (mut levels, es) = (Levels::default(), Instrument(1));
//! levels.show(es, 0, [level(521_400, 17), level(521_375, 40)].into_iter());
//! levels.begin();
//! levels.show(es, 0, [level(521_400, 12), level(521_350, 8)].into_iter());
//! let changes: Vec<_> = levels.changes().iter().map(|change| (change.action, change.level.size)).collect();
//! assert_eq!(changes, [(Action::Delete, 40), (Action::Update, 12), (Action::Add, 8)]);
//! ```

mod encode;

use crate::depth::Action;
use crate::draft::Price;
use crate::itch::Side;
use crate::normalise::Instrument;

pub use encode::head;

/// The maximum number of levels of one side.
pub const MOST_LEVELS: usize = 10;
/// The maximum number of levels of both sides.
const MOST: usize = 2 * MOST_LEVELS;

/// A price level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Its side.
    pub side: Side,
    /// Its price.
    pub price: Price,
    /// Total size of the level's orders, with `size_decimals` decimals.
    pub size: u64,
    /// Decimals of the size.
    pub size_decimals: u8,
    /// Number of orders; 0 if the source does not state it.
    pub orders: u32,
}

impl Level {
    /// Returns `true` if side and price are equal: they identify a level.
    fn is(&self, other: &Self) -> bool {
        self.side == other.side && self.price == other.price
    }
}

/// A change of one level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChange {
    /// The kind of change: a level that is no longer among the best ten is deleted.
    pub action: Action,
    /// The level after the change; a deleted one before it.
    pub level: Level,
    /// Time of the change: ns since midnight, GMT.
    pub at_ns: u64,
}

/// The latest price levels of all instruments.
#[derive(Debug, Default)]
pub struct Levels {
    /// By the instrument's number; `None` if no levels were ever set.
    shown: Vec<Option<Shown>>,
    next: Vec<Level>,
    changed: Vec<LevelChange>,
    instrument: Option<Instrument>,
}

#[derive(Debug)]
struct Shown {
    levels: Vec<Level>,
    at_ns: u64,
}

impl Levels {
    /// Begins the next message: drops the changes so far.
    #[inline]
    pub fn begin(&mut self) {
        self.changed.clear();
        self.instrument = None;
    }

    /// Sets the levels of an instrument, best first: at most [`MOST_LEVELS`] of a side, and the first of several with the same price.
    /// Allocates only for an instrument without levels. Costs up to 400 comparisons, some 20 if prices stay.
    pub fn show(&mut self, instrument: Instrument, at_ns: u64, levels: impl Iterator<Item = Level>) {
        self.begin();
        self.next.clear();
        for level in levels {
            let of_side = self.next.iter().filter(|other| other.side == level.side).count();
            if of_side < MOST_LEVELS && !self.next.iter().any(|other| other.is(&level)) {
                self.next.push(level);
            }
        }
        let at = instrument.0 as usize;
        if self.shown.len() <= at {
            // The normaliser's numbers are dense and bounded.
            self.shown.resize_with(at + 1, || None);
        }
        let Some(place) = self.shown.get_mut(at) else { return };
        let shown = place.get_or_insert_with(|| Shown { levels: Vec::with_capacity(MOST), at_ns });
        let change = |action, level| LevelChange { action, level, at_ns };
        let is_gone = |old: &&Level| !self.next.iter().any(|new| new.is(old));
        self.changed.extend(shown.levels.iter().filter(is_gone).map(|old| change(Action::Delete, *old)));
        for (at, new) in self.next.iter().enumerate() {
            let same = shown.levels.get(at).filter(|old| old.is(new));
            match same.or_else(|| shown.levels.iter().find(|old| old.is(new))) {
                None => self.changed.push(change(Action::Add, *new)),
                Some(old) if old != new => self.changed.push(change(Action::Update, *new)),
                Some(_) => {}
            }
        }
        shown.at_ns = at_ns;
        std::mem::swap(&mut shown.levels, &mut self.next);
        self.instrument = Some(instrument);
    }

    /// Returns the changes since [`begin`](Self::begin), in order: deleted levels first.
    #[inline]
    #[must_use]
    pub fn changes(&self) -> &[LevelChange] {
        &self.changed
    }

    /// Returns the instrument whose levels were set last.
    #[inline]
    #[must_use]
    pub const fn instrument(&self) -> Option<Instrument> {
        self.instrument
    }

    /// Returns the levels of an instrument, each as an addition, bids and asks best first; `None` if none were ever set.
    #[must_use]
    pub fn of(&self, instrument: Instrument) -> Option<impl ExactSizeIterator<Item = LevelChange> + '_> {
        let shown = self.shown.get(instrument.0 as usize)?.as_ref()?;
        let added = |level: &Level| LevelChange { action: Action::Add, level: *level, at_ns: shown.at_ns };
        Some(shown.levels.iter().map(added))
    }

    /// Drops the levels of an instrument whose number is reassigned.
    pub fn forget(&mut self, instrument: Instrument) {
        if let Some(shown) = self.shown.get_mut(instrument.0 as usize) {
            *shown = None;
        }
    }

    /// Deletes all levels at the start of a session.
    pub fn clear(&mut self) {
        self.begin();
        self.shown.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(side: Side, mantissa: i64, size: u64) -> Level {
        Level { side, price: Price { mantissa, decimals: 0 }, size, size_decimals: 0, orders: 1 }
    }

    #[test]
    fn what_changes_is_told_level_by_level_and_makes_what_is_shown() {
        let mut levels = Levels::default();
        let mut copy: Vec<Level> = Vec::new();
        // Prices that appear, disappear, change size and cross over; duplicate prices, and more than ten.
        for step in 0..200_u64 {
            let of = |side, best: i64, worse: i64| {
                (0..12_i64).filter_map(move |k| {
                    let price = best + worse * (k - i64::from(k == 3));
                    let is_there = !(step * 7 + k as u64).is_multiple_of(5);
                    is_there.then(|| level(side, price, step % 3 + k as u64))
                })
            };
            let middle = (step / 4 % 6) as i64;
            levels.begin();
            levels.show(Instrument(2), step, of(Side::Bid, middle, -1).chain(of(Side::Ask, middle + 1, 1)));
            for LevelChange { action, level, .. } in levels.changes() {
                let at = copy.iter().position(|known| known.is(level));
                match (action, at) {
                    (Action::Add, None) => copy.push(*level),
                    (Action::Update, Some(at)) => copy[at] = *level,
                    (Action::Delete, Some(at)) => assert_eq!(copy.swap_remove(at), *level),
                    other => panic!("{other:?} of {level:?}"),
                }
            }
            let shown: Vec<Level> = levels.of(Instrument(2)).unwrap().map(|change| change.level).collect();
            let of_bids = shown.iter().filter(|level| level.side == Side::Bid).count();
            assert!(of_bids <= MOST_LEVELS && shown.len() - of_bids <= MOST_LEVELS);
            assert!(shown.len() == copy.len() && shown.iter().all(|level| copy.contains(level)));
        }
        assert!(levels.of(Instrument(1)).is_none());
        levels.forget(Instrument(2));
        assert!(levels.of(Instrument(2)).is_none());
    }
}
