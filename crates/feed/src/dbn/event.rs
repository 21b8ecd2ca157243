//! What a record means, whatever schema and version it was in.

use super::field::{Flags, Letter, Price};
use super::record::{Level, Mbp10, Record, Status};
use crate::itch::Side;

/// What a record means. Bars, imbalances and gateways' messages mean nothing here: they are only counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event<'a> {
    /// An order book changes, order by order.
    Order(Order),
    /// A trade.
    Trade(Trade),
    /// The top of book is now this; a trade may have come with it.
    Quote(Quote<'a>),
    /// What an instrument is.
    Definition(Definition),
    /// The instrument's symbol is this.
    Symbol(Symbol),
    /// A trading state.
    Status(TradingStatus),
    /// A statistic of the session.
    Statistic(Statistic),
    /// Nothing that changes an instrument.
    Nothing,
}

/// What becomes of an order, or of a whole book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// What becomes of it.
    pub action: Action,
    /// The venue's number of the order.
    pub id: u64,
    /// Its side; `None` where the record names none.
    pub side: Option<Side>,
    /// Its price.
    pub price: Price,
    /// Its size, or how much of it was cancelled.
    pub size: u32,
    /// Of the event.
    pub flags: Flags,
}

/// What becomes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It comes.
    Add,
    /// It has another price or size, or both.
    Modify,
    /// A part of it goes, or all of it.
    Cancel,
    /// All orders of the instrument go.
    Clear,
    /// Nothing: fills are told again as cancels.
    None,
}

/// A trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trade {
    /// Price.
    pub price: Price,
    /// Size.
    pub size: u32,
    /// When, ns since 1970 UTC.
    pub ts_event: u64,
    /// Of the event.
    pub flags: Flags,
    /// The aggressor's side, where the venue tells it.
    pub aggressor: Option<Side>,
}

/// A top of book as the publisher keeps it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quote<'a> {
    /// The best level of each side.
    pub top: Level,
    /// The record with the levels behind it, where there are any.
    pub depth: Option<Mbp10<'a>>,
    /// The trade that came with it.
    pub trade: Option<Trade>,
    /// Whether the top is one that the venue showed: not in the middle of an event.
    pub settled: bool,
}

/// What an instrument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Its symbol.
    pub symbol: Symbol,
    /// The smallest step of its price.
    pub tick: Price,
    /// By what prices are multiplied for display.
    pub display_factor: Price,
}

/// A symbol of up to 71 bytes.
pub type Symbol = super::field::Text<71>;

/// A trading state, in the format's own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TradingStatus {
    /// What was done: 7 trading, 8 halt, 9 pause, …
    pub action: u16,
    /// Why.
    pub reason: u16,
    /// Whether there is trading: `Y`, `N`, `~` unknown.
    pub is_trading: Letter,
    /// Whether there is quoting.
    pub is_quoting: Letter,
}

/// A statistic of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistic {
    /// Which: 1 opening price, 3 settlement price, …
    pub kind: u16,
    /// Its price; undefined where it is a quantity.
    pub price: Price,
    /// Its quantity; `None` where it is a price.
    pub quantity: Option<i64>,
}

/// A top of book, with the trade where the record is of one.
macro_rules! quote {
    ($it:ident, $top:ident, $depth:expr) => {{
        let trade = ($it.action() == Letter(b'T')).then(|| trade!($it));
        Self::Quote(Quote { top: $top, depth: $depth, trade, settled: $it.flags().has(Flags::LAST) })
    }};
}

macro_rules! trade {
    ($it:ident) => {
        Trade {
            price: $it.price(),
            size: $it.size(),
            ts_event: $it.header().ts_event,
            flags: $it.flags(),
            aggressor: side($it.side()),
        }
    };
}

impl<'a> Event<'a> {
    /// What a record means.
    #[inline]
    #[must_use]
    pub fn of(record: &Record<'a>) -> Self {
        match record {
            Record::Mbo(mbo) if mbo.action() == Letter(b'T') => Self::Trade(trade!(mbo)),
            Record::Mbo(mbo) => Self::Order(Order {
                action: Action::of(mbo.action()),
                id: mbo.order_id(),
                side: side(mbo.side()),
                price: mbo.price(),
                size: mbo.size(),
                flags: mbo.flags(),
            }),
            Record::Trade(trade) => Self::Trade(trade!(trade)),
            Record::Mbp1(mbp) => {
                let [top] = mbp.levels();
                quote!(mbp, top, None)
            }
            _ => Self::rarer(record),
        }
    }

    fn rarer(record: &Record<'a>) -> Self {
        match record {
            Record::Mbp10(mbp) => {
                let [top, ..] = mbp.levels();
                quote!(mbp, top, Some(*mbp))
            }
            Record::Cmbp1(mbp) => {
                let [top] = mbp.levels();
                quote!(mbp, top, None)
            }
            // The end of an interval is between events.
            Record::Bbo(bbo) => {
                let [top] = bbo.levels();
                Self::Quote(Quote { top, depth: None, trade: None, settled: true })
            }
            Record::Cbbo(bbo) => {
                let [top] = bbo.levels();
                Self::Quote(Quote { top, depth: None, trade: None, settled: true })
            }
            Record::DefinitionV1(it) => Self::Definition(Definition {
                symbol: widened(it.raw_symbol().0),
                tick: it.min_price_increment(),
                display_factor: it.display_factor(),
            }),
            Record::DefinitionV2(it) => Self::Definition(Definition {
                symbol: it.raw_symbol(),
                tick: it.min_price_increment(),
                display_factor: it.display_factor(),
            }),
            Record::DefinitionV3(it) => Self::Definition(Definition {
                symbol: it.raw_symbol(),
                tick: it.min_price_increment(),
                display_factor: it.display_factor(),
            }),
            // The symbol is the side that is no number; both may be symbols, then it is the one that was asked for.
            Record::MappingV1(it) => {
                Self::Symbol(symbol(widened(it.stype_in_symbol().0), widened(it.stype_out_symbol().0)))
            }
            Record::Mapping(it) => Self::Symbol(symbol(it.stype_in_symbol(), it.stype_out_symbol())),
            Record::Status(status) => Self::Status(TradingStatus::of(status)),
            Record::StatisticV1(it) => Self::Statistic(Statistic {
                kind: it.stat_type(),
                price: it.price(),
                quantity: (it.quantity() != ::dbn::v1::UNDEF_STAT_QUANTITY).then(|| i64::from(it.quantity())),
            }),
            Record::Statistic(it) => Self::Statistic(Statistic {
                kind: it.stat_type(),
                price: it.price(),
                quantity: (it.quantity() != ::dbn::v3::UNDEF_STAT_QUANTITY).then(|| it.quantity()),
            }),
            _ => Self::Nothing,
        }
    }
}

impl Action {
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

impl TradingStatus {
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

/// A symbol of version 1 as one of the later versions.
fn widened<const N: usize>(short: [u8; N]) -> Symbol {
    let mut wide = [0; 71];
    for (to, from) in wide.iter_mut().zip(short) {
        *to = from;
    }
    super::field::Text(wide)
}

/// The symbol of a mapping record.
fn symbol(of_input: Symbol, of_output: Symbol) -> Symbol {
    let is_number = |symbol: &Symbol| symbol.bytes().iter().all(u8::is_ascii_digit);
    if is_number(&of_output) { of_input } else { of_output }
}
