//! A draft of an update: the changes of one item, before they are encoded in the Open Message Model.

mod detail;

use tapeline_omm::rwf::UpdateType;
use tapeline_omm::{Fid, FieldListEncoder, Full, Real, fid, rwf::Time};

use self::detail::Part;
use crate::digits::Digits;
use crate::itch::Side;

pub use self::detail::{Auction, BrokenTrade, Detail, ImbalanceSide, Variation};

/// The changed fields of a draft.
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
    /// TRDPRC_1, TRDVOL_1, TRADE_ID, AGGRS_SID1, COND_N, ACVOL_1, NUM_MOVES and SALTIM_NS.
    pub trade: bool,
    /// ACVOL_1 and NUM_MOVES: a trade was broken, and is no longer included. A [`Detail`] names the trade.
    pub correction: bool,
    /// TRD_STATUS and HALT_REASN.
    pub status: bool,
    /// None of a draft's fields: the state of an auction changed, which a [`Detail`] contains.
    pub auction: bool,
}

impl Changed {
    /// All fields, as for an image.
    pub const ALL: Self = Self {
        bid: true,
        bid_size: true,
        ask: true,
        ask_size: true,
        trade: true,
        correction: false,
        status: true,
        auction: false,
    };

    /// Returns `true` if the best bid or ask changed in any way.
    #[inline]
    #[must_use]
    pub const fn is_quote(self) -> bool {
        self.bid | self.bid_size | self.ask | self.ask_size
    }

    /// Returns `true` if any change requires an update.
    #[inline]
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.is_quote() | self.status | self.trade | self.correction | self.auction
    }

    /// Returns `true` if there is a [`Detail`] in addition to the draft.
    #[inline]
    #[must_use]
    pub const fn has_detail(self) -> bool {
        self.correction | self.auction
    }

    /// Returns the kind of update: a quote, a trade, both at once, a correction, or unspecified if only
    /// the trading status or an auction changed.
    #[inline]
    #[must_use]
    pub const fn update_type(self) -> UpdateType {
        match (self.is_quote(), self.trade) {
            (true, false) => UpdateType::QUOTE,
            (false, true) => UpdateType::TRADE,
            (true, true) => UpdateType::QUOTES_TRADE,
            (false, false) if self.correction => UpdateType::CORRECTION,
            (false, false) => UpdateType::UNSPECIFIED,
        }
    }
}

/// A price: `mantissa` × 10^−`decimals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Price {
    /// The number without its decimal point.
    pub mantissa: i64,
    /// Decimals, 0 to 14: the range of a REAL.
    pub decimals: u8,
}

/// The best price of a side and the size at that price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DraftQuote {
    /// Price.
    pub price: Price,
    /// Total size at that price: with `size_decimals` decimals, in units such as shares.
    pub size: u64,
    /// Decimals of the size: 0 for shares, more where parts of a unit are traded. At most 14.
    pub size_decimals: u8,
}

impl DraftQuote {
    /// Returns the size and its decimals.
    pub(crate) const fn quantity(self) -> (u64, u8) {
        (self.size, self.size_decimals)
    }
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Trade {
    /// Price.
    pub price: Price,
    /// Size, with `size_decimals` decimals, in units such as shares.
    pub size: u64,
    /// Decimals of the size.
    pub size_decimals: u8,
    /// The exchange's number of the trade; 0 if there is none.
    pub id: u64,
    /// The aggressor's side: that of the incoming order, if the feed states it.
    pub aggressor: Option<Side>,
    /// The sale conditions.
    pub conditions: Conditions,
}

/// Sale conditions, in the exchange's own letters: up to six ASCII characters, the length of COND_N.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions([u8; 6]);

impl Conditions {
    /// Creates conditions from ASCII letters; a zero ends them.
    #[inline]
    #[must_use]
    pub const fn new(letters: [u8; 6]) -> Self {
        Self(letters)
    }

    /// Returns the text; empty without conditions.
    #[must_use]
    pub fn as_str(&self) -> &str {
        ascii(&self.0)
    }
}

/// Returns the first of these letters, and zeros after them.
#[inline]
pub(crate) fn letters<const N: usize>(text: impl Iterator<Item = u8>) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(text) {
        *to = from;
    }
    bytes
}

/// Returns the text before the first zero; empty if it is not ASCII.
pub(crate) fn ascii(bytes: &[u8]) -> &str {
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    std::str::from_utf8(&bytes[..length]).unwrap_or_default()
}

/// A value of TRD_STATUS. Source: the standard enumeration of field 6614.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TradingStatus(pub u16);

impl TradingStatus {
    /// No status is known.
    pub const UNDEFINED: Self = Self(0);
    /// The instrument trades.
    pub const NORMAL: Self = Self(1);
    /// Trading is halted or paused.
    pub const HALTED: Self = Self(2);
    /// Trading is restricted, such as to quotations.
    pub const RESTRICTED: Self = Self(5);
}

/// The reason of a trading halt, as the exchange's code: up to eight ASCII characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reason([u8; 8]);

impl Reason {
    /// Creates a reason from the first eight characters of `text`, up to the first that is not ASCII or is NUL.
    #[inline]
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(letters(text.bytes().take_while(|byte| byte.is_ascii() && *byte != 0)))
    }

    /// Returns the text; empty without a reason.
    #[must_use]
    pub fn as_str(&self) -> &str {
        ascii(&self.0)
    }
}

/// An update of one item, of fixed size. The item's name is the [normaliser's](crate::normalise::Normaliser::name).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The kind of update.
    pub update: UpdateType,
    /// The changed fields.
    pub changed: Changed,
    /// Best bid; `None` leaves its fields blank.
    pub bid: Option<DraftQuote>,
    /// Best ask; `None` leaves its fields blank.
    pub ask: Option<DraftQuote>,
    /// Time of the last change of the best bid or ask: ns since midnight, GMT.
    pub quote_ns: Option<u64>,
    /// The last trade that counts as volume; may be left out if it did not change.
    pub trade: Option<Trade>,
    /// Time of that trade: ns since midnight, GMT. Left out together with the trade.
    pub trade_ns: Option<u64>,
    /// Volume of today, with `volume_decimals` decimals.
    pub volume: u64,
    /// Decimals of the volume.
    pub volume_decimals: u8,
    /// Number of trades of today.
    pub trades: u64,
    /// The trading status.
    pub status: TradingStatus,
    /// The reason of a halt; may be left out if the status did not change.
    pub reason: Reason,
}

impl Draft {
    /// An image without any values.
    pub const BLANK: Self = Self {
        update: UpdateType::UNSPECIFIED,
        changed: Changed::ALL,
        bid: None,
        ask: None,
        quote_ns: None,
        trade: None,
        trade_ns: None,
        volume: 0,
        volume_decimals: 0,
        trades: 0,
        status: TradingStatus::UNDEFINED,
        reason: Reason([0; 8]),
    };

    /// The maximum number of bytes that [`encode`](Self::encode) writes, with the list's own header: 176 of a draft, 105 of a detail.
    pub const MAX_BYTES: usize = 288;

    /// Writes the changed fields and those of the detail, in ascending order of their ids. Prices are REAL with their decimals,
    /// sizes and volumes REAL with theirs, times TIME in GMT.
    ///
    /// # Errors
    /// [`Full`]: the buffer is too short.
    pub fn encode(&self, detail: Option<&Detail>, fields: &mut FieldListEncoder<'_>) -> Result<(), Full> {
        let Self { changed, .. } = self;
        // An update has a detail or lasting fields, rarely both.
        let part = |part, fields: &mut FieldListEncoder<'_>| match detail {
            Some(detail) => detail.encode(part, fields),
            None => Ok(()),
        };
        if changed.trade {
            price(fields, fid::TRDPRC_1, self.trade.map(|trade| trade.price))?;
        }
        if changed.bid {
            price(fields, fid::BID, self.bid.map(|quote| quote.price))?;
        }
        if changed.ask {
            price(fields, fid::ASK, self.ask.map(|quote| quote.price))?;
        }
        if changed.bid_size {
            size(fields, fid::BIDSIZE, self.bid.map(DraftQuote::quantity))?;
        }
        if changed.ask_size {
            size(fields, fid::ASKSIZE, self.ask.map(DraftQuote::quantity))?;
        }
        if changed.trade || changed.correction {
            size(fields, fid::ACVOL_1, Some((self.volume, self.volume_decimals)))?;
            size(fields, fid::NUM_MOVES, Some((self.trades, 0)))?;
        }
        if changed.trade {
            size(fields, fid::TRDVOL_1, self.trade.map(|trade| (trade.size, trade.size_decimals)))?;
            let id = self.trade.filter(|trade| trade.id > 0).map(|trade| Digits::of(trade.id));
            text(fields, fid::TRADE_ID, id.as_ref().map_or(&[], Digits::as_bytes))?;
        }
        part(Part::Indication, fields)?;
        if changed.trade {
            let conditions = self.trade.as_ref().map_or("", |trade| trade.conditions.as_str());
            text(fields, fid::COND_N, conditions.as_bytes())?;
        }
        if changed.status {
            text(fields, fid::HALT_REASN, self.reason.as_str().as_bytes())?;
        }
        part(Part::Broken, fields)?;
        if changed.status {
            fields.enumeration(fid::TRD_STATUS, self.status.0)?;
        }
        part(Part::Extensions, fields)?;
        if changed.trade {
            match self.trade.and_then(|trade| trade.aggressor) {
                Some(aggressor) => fields.enumeration(fid::AGGRS_SID1, side(aggressor))?,
                None => fields.blank(fid::AGGRS_SID1)?,
            }
        }
        if changed.is_quote() {
            time(fields, fid::QUOTIM_NS, self.quote_ns)?;
        }
        if changed.trade {
            time(fields, fid::SALTIM_NS, self.trade_ns)?;
        }
        part(Part::Times, fields)
    }
}

/// Returns the number of a side in AGGRS_SID1 and ORDER_SIDE.
pub(crate) const fn side(side: Side) -> u16 {
    match side {
        Side::Bid => 1,
        Side::Ask => 2,
    }
}

/// Returns a size or a volume without decimals; the largest REAL stands for any that is larger.
#[inline]
pub(crate) fn whole(size: u64) -> Real {
    Real::integer(i64::try_from(size).unwrap_or(i64::MAX))
}

/// Returns a size or a volume with its decimals; the largest REAL stands for any that is larger.
#[inline]
pub(crate) fn quantity(size: u64, decimals: u8) -> Real {
    if decimals == 0 { whole(size) } else { Real::decimal(i64::try_from(size).unwrap_or(i64::MAX), decimals) }
}

/// Writes a text; blank if it is empty.
#[inline]
pub(crate) fn text(fields: &mut FieldListEncoder<'_>, fid: Fid, text: &[u8]) -> Result<(), Full> {
    if text.is_empty() { fields.blank(fid) } else { fields.rmtes(fid, text) }
}

#[inline]
pub(crate) fn price(fields: &mut FieldListEncoder<'_>, fid: Fid, value: Option<Price>) -> Result<(), Full> {
    match value {
        Some(Price { mantissa, decimals }) => fields.real(fid, Real::decimal(mantissa, decimals)),
        None => fields.blank(fid),
    }
}

#[inline]
pub(crate) fn size(
    fields: &mut FieldListEncoder<'_>,
    fid: Fid,
    value: Option<(u64, u8)>,
) -> Result<(), Full> {
    match value {
        Some((value, decimals)) => fields.real(fid, quantity(value, decimals)),
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
