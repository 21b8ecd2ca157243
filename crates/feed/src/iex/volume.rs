//! Traded volume.

use super::IexPrice;

/// The trades of one security so far, less broken trades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IexVolume {
    /// Shares.
    pub shares: u64,
    /// Trades.
    pub trades: u64,
    /// Sum of price × shares, in ten-thousandths of a dollar.
    pub notional: i128,
    /// Shares of trades that were broken.
    pub broken_shares: u64,
    /// Trades that were broken.
    pub broken_trades: u64,
    /// The last trade, with any conditions. A broken trade does not change it, nor high and low: no message contains the previous values.
    pub last: Option<IexLastTrade>,
    /// The highest price of all trades, with any conditions.
    pub high: Option<IexPrice>,
    /// The lowest price of all trades.
    pub low: Option<IexPrice>,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IexLastTrade {
    /// Price.
    pub price: IexPrice,
    /// Shares.
    pub size: u32,
    /// Sale conditions.
    pub flags: u8,
    /// Time of the trade, ns since 1970 in UTC.
    pub ts_ns: u64,
    /// IEX's number of the trade.
    pub trade: u64,
}

impl IexLastTrade {
    fn notional(&self) -> i128 {
        i128::from(self.price.0) * i128::from(self.size)
    }
}

impl IexVolume {
    /// Counts a trade. Sums stop at the largest number, so a hostile feed causes wrong sums, not a panic.
    #[inline]
    pub(super) fn add(&mut self, trade: IexLastTrade) {
        self.shares = self.shares.saturating_add(u64::from(trade.size));
        self.trades += 1;
        self.notional = self.notional.saturating_add(trade.notional());
        self.last = Some(trade);
        self.high = Some(self.high.map_or(trade.price, |high| high.max(trade.price)));
        self.low = Some(self.low.map_or(trade.price, |low| low.min(trade.price)));
    }

    /// Subtracts a broken trade, with the price and size of its message. A trade before the start of reception subtracts nothing below zero.
    pub(super) fn take_back(&mut self, broken: IexLastTrade) {
        self.shares = self.shares.saturating_sub(u64::from(broken.size));
        self.trades = self.trades.saturating_sub(1);
        self.notional = self.notional.saturating_sub(broken.notional());
        self.broken_shares = self.broken_shares.saturating_add(u64::from(broken.size));
        self.broken_trades += 1;
    }
}
