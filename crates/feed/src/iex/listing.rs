//! The data of a security other than its quotes and trades.

use super::{AuctionInformation, IexMessage, IexPrice};
use crate::itch::{Code, ItchText};

/// The data in the last messages about a security; a code is 0 before its first message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its directory entry.
    pub directory: Option<Directory>,
    /// Trading status: `H` halted, `O` accepts orders, `P` paused, `T` trades. Independent of an operational halt.
    pub trading: Code,
    /// The reason of the trading status.
    pub reason: ItchText<4>,
    /// `O` if IEX alone has halted the security, `N` if not.
    pub operational: Code,
    /// `true` if the short-sale price test is in effect.
    pub short_sale: Option<bool>,
    /// The reason of the price test: space none, `A` activated, `C` continued, `D` deactivated, `N` not available.
    pub short_sale_detail: Code,
    /// The last completed process: `O` opening, `C` closing.
    pub event: Code,
    /// Interest of retail orders: space none, `A` buy, `B` sell, `C` both.
    pub retail: Code,
    /// Flags of the last quote update: 0x80 not available, 0x40 outside regular hours.
    pub quote_flags: u8,
    /// Send time of that update, ns since 1970 in UTC; 0 before the first.
    pub quote_ts_ns: u64,
    /// Official opening price.
    pub official_open: Option<IexPrice>,
    /// Official closing price.
    pub official_close: Option<IexPrice>,
    /// The last auction information.
    pub auction: Option<IexAuction>,
}

/// A security's directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// 0x80 test security, 0x40 when issued, 0x20 exchange-traded product.
    pub flags: u8,
    /// Shares in a round lot.
    pub round_lot: u32,
    /// Previous official close, adjusted.
    pub previous_close: IexPrice,
    /// Tier of limit up, limit down: 0 not applicable, 1 or 2.
    pub luld_tier: u8,
}

/// The state of an auction before it takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IexAuction {
    /// `O` opening, `C` closing, `I` new issue, `H` after a halt, `V` after volatility.
    pub kind: Code,
    /// Shares that would match.
    pub paired: u32,
    /// Shares that would not match.
    pub imbalance: u32,
    /// Side of the shares that would not match: `B`, `S` or `N`.
    pub side: Code,
    /// Number of extensions of the auction.
    pub extensions: u8,
    /// Time of the auction, seconds since 1970 in UTC.
    pub scheduled_s: u32,
    /// Reference price.
    pub reference: IexPrice,
    /// Price at which the auction would clear.
    pub indicative: IexPrice,
    /// Price at which the orders for the auction alone would clear.
    pub book_clearing: IexPrice,
    /// Lower and upper collar.
    pub collars: (IexPrice, IexPrice),
}

impl IexAuction {
    fn of(message: &AuctionInformation<'_>) -> Self {
        Self {
            kind: message.kind(),
            paired: message.paired(),
            imbalance: message.imbalance(),
            side: message.side(),
            extensions: message.extensions(),
            scheduled_s: message.scheduled_s(),
            reference: message.reference(),
            indicative: message.indicative(),
            book_clearing: message.book_clearing(),
            collars: (message.lower(), message.upper()),
        }
    }
}

impl Listing {
    /// Stores the data of a message. Returns `true` if the trading status, its reason or the operational halt changed.
    pub(super) fn apply(&mut self, message: &IexMessage<'_>) -> bool {
        let before = (self.trading, self.reason, self.operational);
        match message {
            IexMessage::TradingStatus(m) => (self.trading, self.reason) = (m.status(), m.reason()),
            IexMessage::OperationalHalt(m) => self.operational = m.status(),
            IexMessage::ShortSale(m) => {
                (self.short_sale, self.short_sale_detail) = (Some(m.in_effect() != 0), m.detail());
            }
            IexMessage::SecurityDirectory(m) => {
                self.directory = Some(Directory {
                    flags: m.flags(),
                    round_lot: m.round_lot(),
                    previous_close: m.previous_close(),
                    luld_tier: m.luld_tier(),
                });
            }
            IexMessage::OfficialPrice(m) => match m.kind().0 {
                b'Q' => self.official_open = Some(m.price()),
                b'M' => self.official_close = Some(m.price()),
                _ => {}
            },
            IexMessage::AuctionInformation(m) => self.auction = Some(IexAuction::of(m)),
            IexMessage::SecurityEvent(m) => self.event = m.event(),
            IexMessage::RetailLiquidity(m) => self.retail = m.indicator(),
            _ => {}
        }
        before != (self.trading, self.reason, self.operational)
    }

    /// Returns `true` if IEX alone has halted the security.
    #[must_use]
    pub const fn is_halted_operationally(&self) -> bool {
        self.operational.0 == b'O'
    }
}
