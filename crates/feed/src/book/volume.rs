//! What was traded.

use crate::itch::{MatchNumber, Price4};

/// The trades of one stock so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Shares: executions against the book that may be printed, hidden trades and crosses.
    pub traded_shares: u64,
    /// Shares of hidden trades (`P`).
    pub hidden_shares: u64,
    /// Shares of crosses (`Q`).
    pub cross_shares: u64,
    /// Shares of executions that must not count as volume (`C` with `N`): they come again in a bulk print.
    pub nonprintable_shares: u64,
    /// Trades that are counted in `traded_shares`.
    pub trades: u64,
    /// Sum of price × shares over them, in ten-thousandths of a dollar.
    pub notional: u128,
    /// The last of them.
    pub last: Option<LastTrade>,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTrade {
    /// Price.
    pub price: Price4,
    /// Shares.
    pub shares: u64,
    /// When, ns since midnight in New York.
    pub ts_ns: u64,
    /// The execution's number.
    pub match_number: MatchNumber,
}
