//! Traded volume.

use super::matches::{Match, VolumePart};
use super::{Print, PrintKind};
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
    /// Shares of non-printable executions (`C` with `N`): a later bulk print includes them.
    pub nonprintable_shares: u64,
    /// Trades counted in `traded_shares`.
    pub trades: u64,
    /// Sum of price × shares of those trades, in ten-thousandths of a dollar.
    pub notional: u128,
    /// The last of those trades.
    pub last: Option<LastTrade>,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastTrade {
    /// Price.
    pub price: Price4,
    /// Shares.
    pub shares: u64,
    /// Time of the trade, ns since midnight in New York.
    pub ts_ns: u64,
    /// The execution's number.
    pub match_number: MatchNumber,
    /// The kind of execution.
    pub kind: PrintKind,
}

impl Volume {
    /// Counts a trade. Sums stop at the largest number, so a hostile feed causes wrong sums, not a panic.
    #[inline]
    pub(super) fn add(&mut self, print: Print, ts_ns: u64) {
        let Print { price, shares, match_number, kind } = print;
        self.traded_shares = self.traded_shares.saturating_add(shares);
        self.trades += 1;
        self.notional = self.notional.saturating_add(u128::from(price.0) * u128::from(shares));
        self.last = Some(LastTrade { price, shares, ts_ns, match_number, kind });
    }

    /// Returns the sum of a part.
    pub(super) fn part(&mut self, part: VolumePart) -> Option<&mut u64> {
        match part {
            VolumePart::Displayed => None,
            VolumePart::Hidden => Some(&mut self.hidden_shares),
            VolumePart::Cross => Some(&mut self.cross_shares),
        }
    }

    /// Subtracts a broken trade. The last trade stays.
    pub(super) fn take_back(&mut self, broken: &Match) {
        self.traded_shares = self.traded_shares.saturating_sub(broken.shares);
        self.trades = self.trades.saturating_sub(1);
        self.notional = self.notional.saturating_sub(u128::from(broken.price) * u128::from(broken.shares));
        if let Some(part) = self.part(broken.part) {
            *part = part.saturating_sub(broken.shares);
        }
    }
}
