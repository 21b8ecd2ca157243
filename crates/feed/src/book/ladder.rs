//! The price levels of one side.

use crate::itch::Price4;

/// The orders of one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price4,
    /// Shares of all of them.
    pub shares: u64,
    /// How many there are.
    pub orders: u32,
}
