//! The exchange: decides the next event, applies it to its own books, and writes the message.

use super::book::{BookSide, SimulatedBooks};
use super::listing::{self, PARTICIPANTS, Stock};
use super::mix::{self, Event};
use super::random::{Random, Zipf};
use super::{Best, SimulatedDay, TICK, Totals, checksum};
use crate::itch::encode::{
    AddOrder, AddOrderAttributed, AuctionCollar, BreakerStatus, BrokenTrade, CrossTrade, DirectListing,
    IpoQuoting, LONGEST, NetOrderImbalance, OperationalHalt, OrderCancel, OrderDelete, OrderExecuted,
    OrderExecutedWithPrice, OrderReplace, ParticipantPosition, PrefixFields, RegSho, RetailInterest,
    SystemEvent, Trade, TradingAction, text,
};

/// Distance of successive order references, as in real NASDAQ data.
const REFERENCE_STEP: u64 = 4;

/// The skew of the activity: the weight of symbol k is k^-0.9.
const ACTIVITY_EXPONENT: f64 = 0.9;

/// Number of a symbol's youngest orders, which most deletes take.
const YOUNG: u32 = 32;

/// Maximum number of successive messages about one symbol.
const LONGEST_RUN: u32 = 7;

/// The phase of the day.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Directory and states, with the number of the next message.
    Opening(u64),
    Trading,
    /// The messages of a paused stock, with the number of the next.
    Paused(u16, u8),
    Closing(u8),
    Over,
}

/// The simulated exchange.
#[derive(Clone, Debug)]
pub struct Exchange {
    phase: Phase,
    random: Random,
    zipf: Zipf,
    stocks: Vec<Stock>,
    books: SimulatedBooks,
    /// The stock of the present run of messages, and the remaining number of them.
    stock: u16,
    run: u32,
    next_reference: u64,
    next_match: u64,
    /// Shares of the last match that count as traded.
    last_traded: u64,
    totals: Totals,
}

impl Exchange {
    /// Creates an exchange before its first message.
    #[must_use]
    pub fn new(settings: SimulatedDay) -> Self {
        let symbols = settings.symbols.clamp(1, 65_000);
        let mut random = Random::seeded(settings.seed);
        let zipf = Zipf::new(u32::from(symbols), ACTIVITY_EXPONENT);
        Self {
            phase: Phase::Opening(0),
            stocks: Stock::all(symbols, settings.live_orders, &zipf, &mut random),
            random,
            zipf,
            books: SimulatedBooks::new(symbols),
            stock: 0,
            run: 0,
            next_reference: REFERENCE_STEP,
            next_match: 1,
            last_traded: 0,
            totals: Totals::default(),
        }
    }

    /// Writes the next message into `out` and returns its length; `None` after the end of the day.
    ///
    /// `event_ns` is the message's time, ns since midnight in New York. Costs about 70 ns for each message on a current core at 500 symbols; does
    /// not allocate after the books have reached their size.
    pub fn next(&mut self, event_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
        let length = match self.phase {
            Phase::Trading => self.trade(event_ns, out),
            Phase::Opening(step) => match listing::prologue(step, &self.stocks, event_ns, out) {
                Some(length) => {
                    self.phase = Phase::Opening(step + 1);
                    Some(length)
                }
                None => {
                    self.phase = Phase::Trading;
                    self.trade(event_ns, out)
                }
            },
            Phase::Paused(stock, step) => self.pause(stock, step, event_ns, out),
            Phase::Closing(step) => {
                let (event, then) = match step {
                    0 => (b'M', Phase::Closing(1)),
                    1 => (b'E', Phase::Closing(2)),
                    _ => (b'C', Phase::Over),
                };
                self.phase = then;
                SystemEvent { event }.encode(PrefixFields { ts_ns: event_ns, ..PrefixFields::default() }, out)
            }
            Phase::Over => None,
        };
        self.totals.messages += u64::from(length.is_some());
        length
    }

    /// Does the same as [`next`](Self::next), but after the start of trading every message adds an order, without a limit, so that books are filled
    /// quickly.
    pub fn next_addition(&mut self, event_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
        if !matches!(self.phase, Phase::Trading) {
            return self.next(event_ns, out);
        }
        let stock = self.go_on();
        let length = self.add(stock, false, self.prefix(stock, event_ns), out);
        self.totals.messages += u64::from(length.is_some());
        length
    }

    /// Ends the day: `CLOSING_MESSAGES` more messages follow.
    pub fn end_day(&mut self) {
        if !matches!(self.phase, Phase::Closing(_) | Phase::Over) {
            self.phase = Phase::Closing(0);
        }
    }

    /// Returns the number of messages before trading starts.
    #[must_use]
    pub fn opening_messages(&self) -> u64 {
        listing::prologue_length(self.stocks.len() as u16)
    }

    /// Returns the counters so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the number of orders on all books.
    #[must_use]
    pub fn live_orders(&self) -> usize {
        self.books.live_orders()
    }

    /// Returns the number of price levels on all books, both sides.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.books.levels()
    }

    /// Returns the number of stocks; their locates are 1..=this.
    #[must_use]
    pub fn symbols(&self) -> u16 {
        self.stocks.len() as u16
    }

    /// Returns the padded symbol of a locate.
    #[must_use]
    pub fn symbol(&self, locate: u16) -> Option<[u8; 8]> {
        Some(self.stocks.get(usize::from(locate.checked_sub(1)?))?.name)
    }

    /// Returns best bid and ask of a locate; `None` on a side without orders, or for a locate that is not listed.
    #[must_use]
    pub fn top(&self, locate: u16) -> (Best, Best) {
        match locate.checked_sub(1).filter(|stock| usize::from(*stock) < self.stocks.len()) {
            Some(stock) => (self.books.best(stock, BookSide::Buy), self.books.best(stock, BookSide::Sell)),
            None => (None, None),
        }
    }

    /// Returns the [`checksum`] over the best bid and ask of every stock, in the order of the locates.
    #[must_use]
    pub fn checksum(&self) -> u64 {
        checksum((1..=self.symbols()).map(|locate| self.top(locate)))
    }

    fn prefix(&self, stock: u16, ts_ns: u64) -> PrefixFields {
        PrefixFields { locate: stock + 1, tracking: 0, ts_ns }
    }

    /// Writes one message of the trading day.
    fn trade(&mut self, ts_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
        let stock = self.go_on();
        let prefix = self.prefix(stock, ts_ns);
        let live = self.books.live_orders_of(stock);
        let event = match mix::event(&mut self.random) {
            Event::Add | Event::AddAttributed if live >= self.stocks[usize::from(stock)].most_orders => {
                Event::Delete
            }
            Event::Trade => Event::Trade,
            Event::Other => Event::Other,
            // There is no order to change yet.
            _ if live == 0 => Event::Add,
            event => event,
        };
        match event {
            Event::Add | Event::AddAttributed => self.add(stock, event == Event::AddAttributed, prefix, out),
            Event::Delete => self.delete(stock, live, prefix, out),
            Event::Execute | Event::ExecuteWithPrice => {
                self.execute(stock, event == Event::ExecuteWithPrice, prefix, out)
            }
            Event::Replace => {
                let slot = self.some_order(stock, live);
                let old = *self.books.order(slot);
                self.books.remove(slot);
                let price = self.price(stock, old.side);
                let shares =
                    if self.random.below(4) == 0 { mix::shares(&mut self.random) } else { old.shares };
                let new_reference = self.reference();
                self.books.add(stock, old.side, new_reference, price, shares);
                OrderReplace { reference: old.reference, new_reference, shares, price }.encode(prefix, out)
            }
            Event::Cancel => {
                let slot = self.some_order(stock, live);
                let order = *self.books.order(slot);
                if order.shares < 2 {
                    return self.delete(stock, live, prefix, out);
                }
                let shares = 1 + self.random.below(order.shares - 1);
                self.books.reduce(slot, shares);
                OrderCancel { reference: order.reference, shares }.encode(prefix, out)
            }
            Event::Trade => {
                let shares = mix::shares(&mut self.random);
                let match_number = self.traded(shares.into());
                let Stock { name, middle, .. } = self.stocks[usize::from(stock)];
                let price = Stock::price(middle);
                Trade { reference: 0, side: b'B', shares, stock: name, price, match_number }
                    .encode(prefix, out)
            }
            Event::Other => self.other(stock, prefix, out),
        }
    }

    /// Returns the stock of the next message: the same one for a short run.
    fn go_on(&mut self) -> u16 {
        if self.run == 0 {
            self.stock = self.zipf.draw(&mut self.random) as u16;
            self.run = 1 + self.random.below(LONGEST_RUN);
            self.walk();
        }
        self.run -= 1;
        self.stock
    }

    /// Moves the middle price of the present stock by at most one tick, within its bounds.
    fn walk(&mut self) {
        let stock = &mut self.stocks[usize::from(self.stock)];
        match self.random.below(8) {
            0 if stock.middle < stock.high => stock.middle += 1,
            1 if stock.middle > stock.low => stock.middle -= 1,
            _ => {}
        }
    }

    fn reference(&mut self) -> u64 {
        let reference = self.next_reference;
        self.next_reference += REFERENCE_STEP;
        reference
    }

    /// Returns the number of a match of shares that count as traded.
    fn traded(&mut self, shares: u64) -> u64 {
        let number = self.next_match;
        self.next_match += 1;
        self.last_traded = shares;
        self.totals.traded_shares += shares;
        number
    }

    /// Returns a price for a new order that does not cross the book.
    fn price(&mut self, stock: u16, side: BookSide) -> u32 {
        let away = 1 + mix::distance(&mut self.random);
        let middle = self.stocks[usize::from(stock)].middle;
        let other = self.books.best(stock, side.opposite());
        match side {
            // The lowest middle price is 720 ticks, and orders are at most 511 away, so no price is near zero. An ask is never placed below its
            // middle and at most one tick above a bid, so its price minus a tick is a price.
            BookSide::Buy => {
                let price = Stock::price(middle - away);
                other.map_or(price, |(ask, _)| price.min(ask - TICK))
            }
            BookSide::Sell => {
                let price = Stock::price(middle + away);
                other.map_or(price, |(bid, _)| price.max(bid + TICK))
            }
        }
    }

    /// Returns an order of the stock, which has `live` orders (at least one): mostly a young one.
    fn some_order(&mut self, stock: u16, live: u32) -> u32 {
        let place = if self.random.below(10) < 7 {
            live - 1 - self.random.below(live.min(YOUNG))
        } else {
            self.random.below(live)
        };
        self.books.at_place(stock, place)
    }

    fn add(
        &mut self,
        stock: u16,
        attributed: bool,
        prefix: PrefixFields,
        out: &mut [u8; LONGEST],
    ) -> Option<usize> {
        let buys = self.random.word() & 1 == 0;
        let side = if buys { BookSide::Buy } else { BookSide::Sell };
        let price = self.price(stock, side);
        let shares = mix::shares(&mut self.random);
        let reference = self.reference();
        self.books.add(stock, side, reference, price, shares);
        let name = self.stocks[usize::from(stock)].name;
        let side = side.letter();
        if attributed {
            let attribution = PARTICIPANTS[(reference / REFERENCE_STEP) as usize % PARTICIPANTS.len()];
            AddOrderAttributed { reference, side, shares, stock: name, price, attribution }
                .encode(prefix, out)
        } else {
            AddOrder { reference, side, shares, stock: name, price }.encode(prefix, out)
        }
    }

    fn delete(
        &mut self,
        stock: u16,
        live: u32,
        prefix: PrefixFields,
        out: &mut [u8; LONGEST],
    ) -> Option<usize> {
        let slot = self.some_order(stock, live);
        let reference = self.books.order(slot).reference;
        self.books.remove(slot);
        OrderDelete { reference }.encode(prefix, out)
    }

    fn execute(
        &mut self,
        stock: u16,
        with_price: bool,
        prefix: PrefixFields,
        out: &mut [u8; LONGEST],
    ) -> Option<usize> {
        let word = self.random.word();
        let side = if word & 1 == 0 { BookSide::Buy } else { BookSide::Sell };
        let slot = self.books.front(stock, side).or_else(|| self.books.front(stock, side.opposite()))?;
        let order = *self.books.order(slot);
        // Four of five executions take the whole order.
        let whole = order.shares == 1 || !(word >> 1).is_multiple_of(5);
        let shares = if whole { order.shares } else { 1 + self.random.below(order.shares - 1) };
        self.books.reduce(slot, shares);
        let reference = order.reference;
        if !with_price {
            let match_number = self.traded(shares.into());
            return OrderExecuted { reference, shares, match_number }.encode(prefix, out);
        }
        let prints = !(word >> 8).is_multiple_of(10);
        let match_number = self.traded(if prints { shares.into() } else { 0 });
        let printable = if prints { b'Y' } else { b'N' };
        let price = order.price + TICK;
        OrderExecutedWithPrice { reference, shares, match_number, printable, price }.encode(prefix, out)
    }

    /// Writes one of the rarer messages, none of which changes a book.
    fn other(&mut self, number: u16, prefix: PrefixFields, out: &mut [u8; LONGEST]) -> Option<usize> {
        let nobody = PrefixFields { locate: 0, ..prefix };
        let Stock { name: stock, middle, .. } = self.stocks[usize::from(number)];
        let price = Stock::price(middle);
        match self.random.below(100) {
            0..40 => self.imbalance(number, b'C', prefix, out),
            40..65 => {
                let mpid = PARTICIPANTS[usize::from(number) % PARTICIPANTS.len()];
                let state = if self.random.below(2) == 0 { b'A' } else { b'E' };
                ParticipantPosition { mpid, stock, primary: b'N', mode: b'N', state }.encode(prefix, out)
            }
            65..75 => {
                RetailInterest { stock, interest: b"BSAN"[self.random.below(4) as usize] }.encode(prefix, out)
            }
            75..82 => RegSho { stock, action: b'0' + self.random.below(3) as u8 }.encode(prefix, out),
            82..90 => self.pause(number, 0, prefix.ts_ns, out),
            90..94 => {
                let match_number = self.next_match.saturating_sub(1).max(1);
                self.totals.traded_shares -= std::mem::take(&mut self.last_traded);
                BrokenTrade { match_number }.encode(prefix, out)
            }
            94..96 => OperationalHalt { stock, market: b'Q', action: b'T' }.encode(prefix, out),
            96..98 => {
                let release_s = (prefix.ts_ns / 1_000_000_000) as u32 + 600;
                IpoQuoting { stock, release_s, qualifier: b'A', price }.encode(prefix, out)
            }
            98 => DirectListing {
                stock,
                eligible: b'N',
                min_price: price - price / 5,
                max_price: price + price / 5,
                near_price: price,
                near_time: prefix.ts_ns,
                lower: price - price / 10,
                upper: price + price / 10,
            }
            .encode(prefix, out),
            // The market continues: receivers must know the type, not stop.
            _ => BreakerStatus { level: b'1' }.encode(nobody, out),
        }
    }

    fn imbalance(
        &mut self,
        number: u16,
        cross: u8,
        prefix: PrefixFields,
        out: &mut [u8; LONGEST],
    ) -> Option<usize> {
        let Stock { name: stock, middle, .. } = self.stocks[usize::from(number)];
        let price = Stock::price(middle);
        let paired = u64::from(self.random.below(100_000));
        let imbalance = u64::from(self.random.below(20_000));
        let direction = b"BSN"[self.random.below(3) as usize];
        NetOrderImbalance {
            paired,
            imbalance,
            direction,
            stock,
            far: price,
            near: price,
            reference_price: price,
            cross,
            variation: b'L',
        }
        .encode(prefix, out)
    }

    /// Writes a volatility pause, from the halt through the auction to the resumption, without any other message between.
    fn pause(&mut self, number: u16, step: u8, ts_ns: u64, out: &mut [u8; LONGEST]) -> Option<usize> {
        let prefix = self.prefix(number, ts_ns);
        let Stock { name: stock, middle, .. } = self.stocks[usize::from(number)];
        let price = Stock::price(middle);
        self.phase = if step < 5 { Phase::Paused(number, step + 1) } else { Phase::Trading };
        let state = |state| TradingAction { stock, state, reserved: b' ', reason: text("LUDP") };
        match step {
            0 => state(b'P').encode(prefix, out),
            1 => AuctionCollar {
                stock,
                reference_price: price,
                upper: price + price / 20,
                lower: price - price / 20,
                extension: 0,
            }
            .encode(prefix, out),
            2 => self.imbalance(number, b'H', prefix, out),
            3 => state(b'Q').encode(prefix, out),
            4 => {
                let shares = u64::from(100 * self.random.below(500));
                let match_number = self.traded(shares);
                CrossTrade { shares, stock, price, match_number, cross: b'H' }.encode(prefix, out)
            }
            _ => state(b'T').encode(prefix, out),
        }
    }
}
