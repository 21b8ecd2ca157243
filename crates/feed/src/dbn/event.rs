//! The meaning of a record, in any schema and version.

use super::field::{DbnPrice, Flags, Letter};
use super::record::{DbnLevel, DbnRecord, Mbp10, Status};
use crate::draft::letters;
use crate::itch::Side;

/// The meaning of a record. Bars, imbalances and gateways' messages have none: they are only counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DbnEvent<'a> {
    /// A change of an order book, order by order.
    Order(DbnOrder),
    /// A trade.
    Trade(DbnTrade),
    /// A new top of book, possibly with a trade.
    Quote(DbnQuote<'a>),
    /// A definition of an instrument.
    Definition(Definition),
    /// A new symbol of the instrument.
    Symbol(Symbol),
    /// A trading state.
    Status(DbnTradingStatus),
    /// A statistic of the session.
    Statistic(Statistic),
    /// No change of an instrument.
    Nothing,
}

/// A change of an order, or of a whole book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbnOrder {
    /// The change.
    pub action: DbnAction,
    /// The venue's number of the order.
    pub id: u64,
    /// Its side; `None` if the record names none.
    pub side: Option<Side>,
    /// Its price.
    pub price: DbnPrice,
    /// Its size, or the cancelled size.
    pub size: u32,
    /// The flags of the event.
    pub flags: Flags,
}

/// The kind of change to an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbnAction {
    /// The order is added.
    Add,
    /// The order's price or size changes, or both.
    Modify,
    /// A part of the order is cancelled, or all of it.
    Cancel,
    /// All orders of the instrument are deleted.
    Clear,
    /// No change: fills are repeated as cancels.
    None,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbnTrade {
    /// Price.
    pub price: DbnPrice,
    /// Size.
    pub size: u32,
    /// Time of the trade, ns since 1970 UTC.
    pub ts_event: u64,
    /// The flags of the event.
    pub flags: Flags,
    /// The aggressor's side, if the venue states it.
    pub aggressor: Option<Side>,
}

/// A top of book from the publisher.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DbnQuote<'a> {
    /// The best level of each side.
    pub top: DbnLevel,
    /// The record with the further levels, if there are any.
    pub depth: Option<Mbp10<'a>>,
    /// The trade in the same record.
    pub trade: Option<DbnTrade>,
    /// `true` if the venue showed this top: not in the middle of an event.
    pub settled: bool,
}

/// A definition of an instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its symbol.
    pub symbol: Symbol,
    /// Its minimum price increment.
    pub tick: DbnPrice,
    /// The factor by which prices are multiplied for display.
    pub display_factor: DbnPrice,
}

/// A symbol of up to 71 bytes.
pub type Symbol = super::field::DbnText<71>;

/// A trading state, in the format's own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbnTradingStatus {
    /// The action: 7 trading, 8 halt, 9 pause, …
    pub action: u16,
    /// The reason.
    pub reason: u16,
    /// Trading: `Y` yes, `N` no, `~` unknown.
    pub is_trading: Letter,
    /// Quoting, with the same letters.
    pub is_quoting: Letter,
}

/// A statistic of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// The kind: 1 opening price, 3 settlement price, …
    pub kind: u16,
    /// Its price; undefined if it is a quantity.
    pub price: DbnPrice,
    /// Its quantity; `None` if it is a price.
    pub quantity: Option<i64>,
}

/// A top of book, with the trade if the record contains one.
macro_rules! quote {
    ($it:ident, $top:ident, $depth:expr) => {{
        let trade = ($it.action() == Letter(b'T')).then(|| trade!($it));
        Self::Quote(DbnQuote { top: $top, depth: $depth, trade, settled: $it.flags().has(Flags::LAST) })
    }};
}

macro_rules! trade {
    ($it:ident) => {
        DbnTrade {
            price: $it.price(),
            size: $it.size(),
            ts_event: $it.header().ts_event,
            flags: $it.flags(),
            aggressor: side($it.side()),
        }
    };
}

macro_rules! definition {
    ($it:ident, $symbol:expr) => {
        Self::Definition(Definition {
            symbol: $symbol,
            tick: $it.min_price_increment(),
            display_factor: $it.display_factor(),
        })
    };
}

impl<'a> DbnEvent<'a> {
    /// Returns the meaning of a record.
    #[inline]
    #[must_use]
    pub fn of(record: &DbnRecord<'a>) -> Self {
        match record {
            DbnRecord::Mbo(mbo) if mbo.action() == Letter(b'T') => Self::Trade(trade!(mbo)),
            DbnRecord::Mbo(mbo) => Self::Order(DbnOrder {
                action: DbnAction::of(mbo.action()),
                id: mbo.order_id(),
                side: side(mbo.side()),
                price: mbo.price(),
                size: mbo.size(),
                flags: mbo.flags(),
            }),
            DbnRecord::Trade(trade) => Self::Trade(trade!(trade)),
            DbnRecord::Mbp1(mbp) => {
                let [top] = mbp.levels();
                quote!(mbp, top, None)
            }
            _ => Self::rarer(record),
        }
    }

    fn rarer(record: &DbnRecord<'a>) -> Self {
        match record {
            DbnRecord::Mbp10(mbp) => {
                let [top, ..] = mbp.levels();
                quote!(mbp, top, Some(*mbp))
            }
            DbnRecord::Cmbp1(mbp) => {
                let [top] = mbp.levels();
                quote!(mbp, top, None)
            }
            DbnRecord::Bbo(bbo) => Self::of_interval(bbo.levels()),
            DbnRecord::Cbbo(bbo) => Self::of_interval(bbo.levels()),
            DbnRecord::DefinitionV1(it) => definition!(it, widened(it.raw_symbol().0)),
            DbnRecord::DefinitionV2(it) => definition!(it, it.raw_symbol()),
            DbnRecord::DefinitionV3(it) => definition!(it, it.raw_symbol()),
            // The symbol is the side that is not a number; if both are symbols, the requested one.
            DbnRecord::MappingV1(it) => {
                Self::Symbol(symbol(widened(it.stype_in_symbol().0), widened(it.stype_out_symbol().0)))
            }
            DbnRecord::Mapping(it) => Self::Symbol(symbol(it.stype_in_symbol(), it.stype_out_symbol())),
            DbnRecord::Status(status) => Self::Status(DbnTradingStatus::of(status)),
            DbnRecord::StatisticV1(it) => Self::Statistic(Statistic {
                kind: it.stat_type(),
                price: it.price(),
                quantity: (it.quantity() != ::dbn::v1::UNDEF_STAT_QUANTITY).then(|| i64::from(it.quantity())),
            }),
            DbnRecord::Statistic(it) => Self::Statistic(Statistic {
                kind: it.stat_type(),
                price: it.price(),
                quantity: (it.quantity() != ::dbn::v3::UNDEF_STAT_QUANTITY).then(|| it.quantity()),
            }),
            _ => Self::Nothing,
        }
    }

    /// Returns the quote at the end of an interval, which lies between events.
    fn of_interval([top]: [DbnLevel; 1]) -> Self {
        Self::Quote(DbnQuote { top, depth: None, trade: None, settled: true })
    }
}

impl DbnAction {
    const fn of(letter: Letter) -> Self {
        match letter.0 {
            b'A' => Self::Add,
            b'M' => Self::Modify,
            b'C' => Self::Cancel,
            b'R' => Self::Clear,
            _ => Self::None,
        }
    }
}

impl DbnTradingStatus {
    fn of(status: &Status<'_>) -> Self {
        Self {
            action: status.action(),
            reason: status.reason(),
            is_trading: status.is_trading(),
            is_quoting: status.is_quoting(),
        }
    }
}

#[inline]
const fn side(letter: Letter) -> Option<Side> {
    match letter.0 {
        b'B' => Some(Side::Bid),
        b'A' => Some(Side::Ask),
        _ => None,
    }
}

/// Converts a symbol of version 1 to the length of the later versions.
fn widened<const N: usize>(short: [u8; N]) -> Symbol {
    super::field::DbnText(letters(short.into_iter()))
}

/// Returns the symbol of a mapping record.
fn symbol(of_input: Symbol, of_output: Symbol) -> Symbol {
    let is_number = |symbol: &Symbol| symbol.bytes().iter().all(u8::is_ascii_digit);
    if is_number(&of_output) { of_input } else { of_output }
}
