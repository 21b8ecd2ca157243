//! What each message does to the books.

use super::books::Book;
use super::ladder::Ladder;
use super::orders::{Added, Order};
use super::{Books, Quote};
use crate::itch::{Code, Locate, MatchNumber, Message, MessageType, OrderRef, Prefix, Price4, Side, Symbol};

/// An execution to be reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Price.
    pub price: Price4,
    /// Shares.
    pub shares: u64,
    /// The execution's number.
    pub match_number: MatchNumber,
}

/// What a message changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Change {
    /// Whose book: the order's, where the message names an order.
    pub locate: Locate,
    /// The best bid has another price, or there is none any more, or one again.
    pub bid: bool,
    /// The best bid has another size.
    pub bid_size: bool,
    /// The best ask has another price, or there is none any more, or one again.
    pub ask: bool,
    /// The best ask has another size.
    pub ask_size: bool,
    /// The trading state or its reason is another.
    pub status: bool,
    /// A trade that counts as volume.
    pub print: Option<Print>,
}

impl Change {
    const fn none(locate: Locate) -> Self {
        Self { locate, bid: false, bid_size: false, ask: false, ask_size: false, status: false, print: None }
    }

    /// Whether the best of a side changed in any way.
    #[inline]
    #[must_use]
    pub const fn is_quote(&self) -> bool {
        self.bid | self.bid_size | self.ask | self.ask_size
    }

    /// Whether anything changed that is worth an update.
    #[inline]
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.is_quote() | self.status | self.print.is_some()
    }
}

/// The fields of `A` and `F`.
struct NewOrder {
    kind: MessageType,
    locate: Locate,
    ts_ns: u64,
    reference: OrderRef,
    side: Code,
    shares: u32,
    stock: Symbol,
    price: Price4,
}

/// What names an order on the book.
#[derive(Clone, Copy)]
struct About {
    kind: MessageType,
    locate: Locate,
    ts_ns: u64,
    reference: OrderRef,
}

/// The four values that `A`, `F` and those messages share that name an order.
macro_rules! about {
    ($kind:ident, $message:expr) => {
        About {
            kind: MessageType::$kind,
            locate: $message.locate(),
            ts_ns: $message.ts_ns(),
            reference: $message.reference(),
        }
    };
}

impl Books {
    /// Applies a message. Types that say nothing about books, volumes or trading states only tell the stock's name.
    ///
    /// Costs one look into the table of orders (two for a replacement) and a search near the best level; what a message
    /// costs on average is shown by `benches/itch.rs`.
    #[inline]
    pub fn apply(&mut self, message: &Message<'_>) -> Change {
        match *message {
            Message::AddOrder(m) => self.add(NewOrder {
                kind: MessageType::AddOrder,
                locate: m.locate(),
                ts_ns: m.ts_ns(),
                reference: m.reference(),
                side: m.side(),
                shares: m.shares(),
                stock: m.stock(),
                price: m.price(),
            }),
            Message::AddOrderAttributed(m) => self.add(NewOrder {
                kind: MessageType::AddOrderAttributed,
                locate: m.locate(),
                ts_ns: m.ts_ns(),
                reference: m.reference(),
                side: m.side(),
                shares: m.shares(),
                stock: m.stock(),
                price: m.price(),
            }),
            Message::OrderDelete(m) => self.delete(about!(OrderDelete, m)),
            Message::OrderReplace(m) => {
                self.replace(about!(OrderReplace, m), m.new_reference(), m.shares(), m.price())
            }
            Message::OrderExecuted(m) => {
                self.execute(about!(OrderExecuted, m), m.shares(), m.match_number(), None, true)
            }
            Message::OrderExecutedWithPrice(m) => {
                // Only `N` keeps it out of the volume; a code that is not known yet does not.
                let printable = m.printable() != Code(b'N');
                let about = about!(OrderExecutedWithPrice, m);
                self.execute(about, m.shares(), m.match_number(), Some(m.price()), printable)
            }
            Message::OrderCancel(m) => self.cancel(about!(OrderCancel, m), m.shares()),
            Message::Trade(m) => {
                let print =
                    Print { price: m.price(), shares: u64::from(m.shares()), match_number: m.match_number() };
                self.trade(MessageType::Trade, m.locate(), m.stock(), print, m.ts_ns())
            }
            Message::CrossTrade(m) => {
                let print = Print { price: m.price(), shares: m.shares(), match_number: m.match_number() };
                self.trade(MessageType::CrossTrade, m.locate(), m.stock(), print, m.ts_ns())
            }
            _ => self.about_stock(message),
        }
    }

    fn add(&mut self, new: NewOrder) -> Change {
        let NewOrder { kind, locate, ts_ns, reference, side, shares, stock, price } = new;
        let change = Change::none(locate);
        let Some(side) = side.side() else {
            self.counters.unknown_side.count(kind.letter());
            return change;
        };
        if shares == 0 {
            self.counters.no_shares.count(kind.letter());
            return change;
        }
        if !self.insert(kind, reference, Order { price, shares, locate, side }) {
            return change;
        }
        self.named(kind, locate, stock).touch(locate, side, ts_ns, |ladder| ladder.add(price, shares))
    }

    /// Puts an order into the table, or counts why not.
    #[inline]
    fn insert(&mut self, kind: MessageType, reference: OrderRef, order: Order) -> bool {
        match self.orders.add(reference, order) {
            Added::New => {
                self.counters.max_live_orders = self.counters.max_live_orders.max(self.orders.len());
                return true;
            }
            Added::Duplicate => self.counters.duplicate_reference.count(kind.letter()),
            Added::Refused => self.counters.refused.count(kind.letter()),
        }
        false
    }

    fn delete(&mut self, about: About) -> Change {
        let Some(order) = self.orders.remove(about.reference) else { return self.unknown(about) };
        self.of(about, &order).touch(order.locate, order.side, about.ts_ns, |ladder| {
            ladder.reduce(order.price, order.shares, true);
        })
    }

    fn cancel(&mut self, about: About, shares: u32) -> Change {
        if shares == 0 {
            self.counters.no_shares.count(about.kind.letter());
            return Change::none(about.locate);
        }
        let Some(taken) = self.orders.take(about.reference, shares) else { return self.unknown(about) };
        if taken.excess {
            self.counters.excess_shares.count(about.kind.letter());
        }
        let order = taken.order;
        self.of(about, &order).touch(order.locate, order.side, about.ts_ns, |ladder| {
            ladder.reduce(order.price, taken.shares, taken.gone);
        })
    }

    fn execute(
        &mut self,
        about: About,
        shares: u32,
        match_number: MatchNumber,
        price: Option<Price4>,
        printable: bool,
    ) -> Change {
        if shares == 0 {
            self.counters.no_shares.count(about.kind.letter());
            return Change::none(about.locate);
        }
        let Some(taken) = self.orders.take(about.reference, shares) else { return self.unknown(about) };
        if taken.excess {
            self.counters.excess_shares.count(about.kind.letter());
        }
        let order = taken.order;
        let book = self.of(about, &order);
        let mut change = book.touch(order.locate, order.side, about.ts_ns, |ladder| {
            ladder.reduce(order.price, taken.shares, taken.gone);
        });
        let shares = u64::from(taken.shares);
        if printable {
            let print = Print { price: price.unwrap_or(order.price), shares, match_number };
            book.volume.add(print, about.ts_ns);
            change.print = Some(print);
        } else {
            book.volume.nonprintable_shares = book.volume.nonprintable_shares.saturating_add(shares);
        }
        change
    }

    fn replace(&mut self, about: About, reference: OrderRef, shares: u32, price: Price4) -> Change {
        let Some(old) = self.orders.remove(about.reference) else { return self.unknown(about) };
        let added = if shares == 0 {
            self.counters.no_shares.count(about.kind.letter());
            false
        } else {
            self.insert(about.kind, reference, Order { price, shares, ..old })
        };
        self.of(about, &old).touch(old.locate, old.side, about.ts_ns, |ladder| {
            ladder.reduce(old.price, old.shares, true);
            if added {
                ladder.add(price, shares);
            }
        })
    }

    fn trade(
        &mut self,
        kind: MessageType,
        locate: Locate,
        stock: Symbol,
        print: Print,
        ts_ns: u64,
    ) -> Change {
        let mut change = Change::none(locate);
        if print.shares == 0 {
            self.counters.no_shares.count(kind.letter());
            let _ = self.named(kind, locate, stock);
            return change;
        }
        let volume = &mut self.named(kind, locate, stock).volume;
        volume.add(print, ts_ns);
        let part = match kind {
            MessageType::CrossTrade => &mut volume.cross_shares,
            _ => &mut volume.hidden_shares,
        };
        *part = part.saturating_add(print.shares);
        change.print = Some(print);
        change
    }

    /// Directory, trading state, and everything that at least says which stock a locate stands for.
    #[cold]
    fn about_stock(&mut self, message: &Message<'_>) -> Change {
        let mut change = Change::none(message.prefix().map_or(Locate(0), Prefix::locate));
        let (Some(kind), Some(stock)) = (message.kind().known(), message.stock()) else { return change };
        match *message {
            Message::StockDirectory(_) => {
                let book = self.open(change.locate);
                let renamed = !book.symbol.is_blank() && book.symbol != stock;
                book.symbol = stock;
                book.listed = true;
                self.counters.renamed += u64::from(renamed);
            }
            Message::TradingAction(m) => {
                let book = self.named(kind, change.locate, stock);
                change.status = (book.state, book.reason) != (m.state(), m.reason());
                (book.state, book.reason) = (m.state(), m.reason());
            }
            // These are about no stock's number of the day, though they name one.
            _ if change.locate == Locate(0) => {}
            _ => {
                let _ = self.named(kind, change.locate, stock);
            }
        }
        change
    }

    /// The book of a message that carries the stock's symbol: it is taken where the directory has not told it.
    #[inline]
    fn named(&mut self, kind: MessageType, locate: Locate, stock: Symbol) -> &mut Book {
        if !self.open(locate).listed {
            self.counters.before_directory.count(kind.letter());
            self.open(locate).symbol = stock;
        }
        self.open(locate)
    }

    /// The book of a known order.
    #[inline]
    fn of(&mut self, about: About, order: &Order) -> &mut Book {
        if about.locate != order.locate {
            self.counters.other_locate.count(about.kind.letter());
        }
        if !self.open(order.locate).listed {
            self.counters.before_directory.count(about.kind.letter());
        }
        self.open(order.locate)
    }

    #[cold]
    fn unknown(&mut self, about: About) -> Change {
        self.counters.unknown_reference.count(about.kind.letter());
        Change::none(about.locate)
    }
}

impl Book {
    /// Changes a side, and finds out whether its best changed.
    #[inline]
    fn touch(&mut self, locate: Locate, side: Side, ts_ns: u64, change: impl FnOnce(&mut Ladder)) -> Change {
        let ladder = match side {
            Side::Bid => &mut self.bids,
            Side::Ask => &mut self.asks,
        };
        let before = ladder.best();
        change(ladder);
        let after = ladder.best();
        let mut found = Change::none(locate);
        if before != after {
            self.quoted_ts_ns = Some(ts_ns);
            let price = before.map(price_of) != after.map(price_of);
            let size = before.map(|quote| quote.shares) != after.map(|quote| quote.shares);
            match side {
                Side::Bid => (found.bid, found.bid_size) = (price, size),
                Side::Ask => (found.ask, found.ask_size) = (price, size),
            }
        }
        found
    }
}

const fn price_of(quote: Quote) -> Price4 {
    quote.price
}
