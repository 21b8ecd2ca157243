//! A draft of an update: what changed for one item, before it is written in the Open Message Model's form.

use tapeline_omm::rwf::UpdateType;
use tapeline_omm::{Fid, FieldListEncoder, Full, Real, fid, rwf::Time};

use crate::book::{Print, Quote, Top};
use crate::itch::{Code, Locate, Symbol, Text};

/// Which fields of a draft changed. The values of the others are the present ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// BID; with it QUOTIM_NS.
    pub bid: bool,
    /// BIDSIZE; with it QUOTIM_NS.
    pub bid_size: bool,
    /// ASK; with it QUOTIM_NS.
    pub ask: bool,
    /// ASKSIZE; with it QUOTIM_NS.
    pub ask_size: bool,
    /// TRDPRC_1, TRDVOL_1, ACVOL_1, NUM_MOVES and SALTIM_NS.
    pub trade: bool,
    /// TRD_STATUS and HALT_REASN.
    pub status: bool,
}

impl Changed {
    /// Everything, as for an image.
    pub const ALL: Self =
        Self { bid: true, bid_size: true, ask: true, ask_size: true, trade: true, status: true };

    /// Whether the best of a side changed in any way.
    #[inline]
    #[must_use]
    pub const fn is_quote(self) -> bool {
        self.bid | self.bid_size | self.ask | self.ask_size
    }

    /// The kind of update that such a change is: a quote, a trade, both at once, or unspecified where only the
    /// trading status changed.
    #[inline]
    #[must_use]
    pub const fn update_type(self) -> UpdateType {
        match (self.is_quote(), self.trade) {
            (true, false) => UpdateType::QUOTE,
            (false, true) => UpdateType::TRADE,
            (true, true) => UpdateType::QUOTES_TRADE,
            (false, false) => UpdateType::UNSPECIFIED,
        }
    }
}

/// An update of one item, of fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The item's name at the exchange.
    pub symbol: Symbol,
    /// The stock's number of the day.
    pub locate: Locate,
    /// What kind of update it is.
    pub update: UpdateType,
    /// Which fields changed.
    pub changed: Changed,
    /// Best bid and ask; an empty side is written as blank fields.
    pub top: Top,
    /// When the best bid or ask last changed: ns since midnight, GMT.
    pub quote_ns: Option<u64>,
    /// The last trade that counts as volume.
    pub trade: Option<Print>,
    /// When it took place: ns since midnight, GMT.
    pub trade_ns: Option<u64>,
    /// Shares traded today.
    pub volume_shares: u64,
    /// Trades of today.
    pub trades: u64,
    /// Trading state as received: `T`, `H`, `P`, `Q`; code 0 before any was.
    pub status: Code,
    /// Its reason as received.
    pub reason: Text<4>,
}

impl Draft {
    /// The most bytes that [`encode`](Self::encode) writes, with the list's own header.
    pub const MAX_BYTES: usize = 128;

    /// Writes the fields that changed, in ascending order of their ids. Prices are REAL of four decimals, sizes and
    /// volumes REAL of none, times TIME in GMT.
    ///
    /// # Errors
    /// [`Full`]: the buffer is too short.
    pub fn encode(&self, fields: &mut FieldListEncoder<'_>) -> Result<(), Full> {
        let Self { changed, top, .. } = self;
        if changed.trade {
            price(fields, fid::TRDPRC_1, self.trade.map(|trade| trade.price.0))?;
        }
        if changed.bid {
            price(fields, fid::BID, top.bid.map(|quote| quote.price.0))?;
        }
        if changed.ask {
            price(fields, fid::ASK, top.ask.map(|quote| quote.price.0))?;
        }
        if changed.bid_size {
            size(fields, fid::BIDSIZE, top.bid.map(shares))?;
        }
        if changed.ask_size {
            size(fields, fid::ASKSIZE, top.ask.map(shares))?;
        }
        if changed.trade {
            size(fields, fid::ACVOL_1, Some(self.volume_shares))?;
            size(fields, fid::NUM_MOVES, Some(self.trades))?;
            size(fields, fid::TRDVOL_1, self.trade.map(|trade| trade.shares))?;
        }
        if changed.status {
            let reason = self.reason.as_str();
            if reason.is_empty() {
                fields.blank(fid::HALT_REASN)?;
            } else {
                fields.rmtes(fid::HALT_REASN, reason.as_bytes())?;
            }
            fields.enumeration(fid::TRD_STATUS, trading_status(self.status))?;
        }
        if changed.is_quote() {
            time(fields, fid::QUOTIM_NS, self.quote_ns)?;
        }
        if changed.trade {
            time(fields, fid::SALTIM_NS, self.trade_ns)?;
        }
        Ok(())
    }
}

const fn shares(quote: Quote) -> u64 {
    quote.shares
}

/// TRD_STATUS of a trading state: 1 normal, 2 halted (paused stocks too: the reason tells), 5 restricted (to
/// quotations), 0 undefined. Source: the standard enumeration of field 6614.
#[must_use]
pub const fn trading_status(state: Code) -> u16 {
    match state.0 {
        b'T' => 1,
        b'H' | b'P' => 2,
        b'Q' => 5,
        _ => 0,
    }
}

#[inline]
fn price(fields: &mut FieldListEncoder<'_>, fid: Fid, value: Option<u32>) -> Result<(), Full> {
    match value {
        Some(value) => fields.real(fid, Real::decimal(i64::from(value), 4)),
        None => fields.blank(fid),
    }
}

#[inline]
fn size(fields: &mut FieldListEncoder<'_>, fid: Fid, value: Option<u64>) -> Result<(), Full> {
    match value {
        Some(value) => fields.real(fid, Real::integer(i64::try_from(value).unwrap_or(i64::MAX))),
        None => fields.blank(fid),
    }
}

#[inline]
fn time(fields: &mut FieldListEncoder<'_>, fid: Fid, ns: Option<u64>) -> Result<(), Full> {
    match ns {
        Some(ns) => fields.time(fid, Time::from_ns_of_day(ns)),
        None => fields.blank(fid),
    }
}
