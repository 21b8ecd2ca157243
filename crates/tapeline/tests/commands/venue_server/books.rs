//! True books, kept as text in sorted maps.

use std::collections::BTreeMap;

use serde_json::Value;

/// A side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Bid,
    Ask,
}

/// Levels by price in units of 10^-12: price and size as text.
type Levels = BTreeMap<i128, (String, String)>;

/// The books of all symbols.
#[derive(Debug, Default)]
pub(crate) struct Books(BTreeMap<(String, Side), Levels>);

impl Books {
    pub(crate) fn clear(&mut self, symbol: &str) {
        for side in [Side::Bid, Side::Ask] {
            self.0.remove(&(symbol.to_owned(), side));
        }
    }

    /// Sets a level from an array that begins with price and size; removes it if the size is zero.
    pub(crate) fn set(&mut self, symbol: &str, side: Side, level: &[Value]) {
        let [price, size] = [&level[0], &level[1]].map(|value| value.as_str().unwrap().to_owned());
        let levels = self.0.entry((symbol.to_owned(), side)).or_default();
        if scaled(&size) == 0 {
            levels.remove(&scaled(&price));
        } else {
            levels.insert(scaled(&price), (price, size));
        }
    }

    pub(crate) fn set_all(&mut self, symbol: &str, side: Side, levels: &Value) {
        for level in levels.as_array().into_iter().flatten() {
            self.set(symbol, side, level.as_array().unwrap());
        }
    }

    /// Drops the worst levels beyond `most`.
    pub(crate) fn limit(&mut self, symbol: &str, most: usize) {
        for side in [Side::Bid, Side::Ask] {
            let levels = self.0.entry((symbol.to_owned(), side)).or_default();
            while levels.len() > most {
                if side == Side::Bid {
                    levels.pop_first()
                } else {
                    levels.pop_last()
                };
            }
        }
    }

    /// The best levels, best first, as they were written.
    pub(crate) fn best(&self, symbol: &str, side: Side, most: usize) -> Vec<(String, String)> {
        let Some(levels) = self.0.get(&(symbol.to_owned(), side)) else { return Vec::new() };
        match side {
            Side::Bid => levels.values().rev().take(most).cloned().collect(),
            Side::Ask => levels.values().take(most).cloned().collect(),
        }
    }
}

/// A number in units of 10^-12.
fn scaled(text: &str) -> i128 {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{rest:0<12}").parse().unwrap()
}
