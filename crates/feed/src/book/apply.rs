//! The effect of each message on the books.

use std::hint::select_unpredictable as select;

use super::Books;
use super::books::Book;
use super::ladder::{self, Best, Ladder, ORDER, Rank};
use super::matches::VolumePart;
use super::orders::{Added, StoredOrder};
use super::queues::Pair;
use crate::itch::{Code, ItchRecord, ItchText, Locate, MatchNumber, Message, MessageType, Price4, Side};
use crate::processor::prefetch;

/// An execution to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Print {
    /// Price.
    pub price: Price4,
    /// Shares.
    pub shares: u64,
    /// The execution's number.
    pub match_number: MatchNumber,
    /// The kind of execution.
    pub kind: PrintKind,
}

/// The kind of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintKind {
    /// Against a displayed order of this side, at its price (`E`).
    AtOrder(Side),
    /// Against a displayed order of this side, at another price (`C`).
    Priced(Side),
    /// Against an order that was not displayed (`P`): its side is not stated.
    Hidden,
    /// A complete auction (`Q`) of this type.
    Cross(Code),
}

/// A trade that was broken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Broken {
    /// The execution's number.
    pub match_number: MatchNumber,
    /// Its price and shares, if it is remembered.
    pub traded: Option<(Price4, u64)>,
}

/// The changes by a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Change {
    /// The locate of the book: that of the order, if the message names an order.
    pub locate: Locate,
    /// `true` if the best bid's price changed, or a best bid appeared or disappeared.
    pub bid: bool,
    /// `true` if the best bid's size changed.
    pub bid_size: bool,
    /// `true` if the best ask's price changed, or a best ask appeared or disappeared.
    pub ask: bool,
    /// `true` if the best ask's size changed.
    pub ask_size: bool,
    /// `true` if the trading state or its reason changed.
    pub status: bool,
    /// A trade that counts as volume.
    pub print: Option<Print>,
    /// `true` if a trade was broken; if it is remembered, no sum includes it any more: [`Books::broken`].
    pub correction: bool,
    /// `true` if the state of an auction changed.
    pub auction: bool,
    /// The union of the first four fields. The caller reads it at once, and the processor cannot read four bytes together that were written one by
    /// one until they have left the store buffer.
    quote: bool,
}

impl Change {
    #[inline(always)]
    fn none(locate: Locate) -> Self {
        Self { locate, ..Self::default() }
    }

    /// Returns the differences between two best levels of a side.
    #[inline(always)]
    fn of(locate: Locate, side: Side, before: Best, after: Best) -> Self {
        let (price, shares) = (before.price_differs(after), before.shares_differ(after));
        let is_ask = matches!(side, Side::Ask);
        Self {
            bid: price & !is_ask,
            bid_size: shares & !is_ask,
            ask: price & is_ask,
            ask_size: shares & is_ask,
            quote: price | shares,
            ..Self::none(locate)
        }
    }

    /// Returns `true` if the best bid or ask changed in any way.
    #[inline]
    #[must_use]
    pub const fn is_quote(&self) -> bool {
        self.quote
    }

    /// Returns `true` if any change requires an update.
    #[inline]
    #[must_use]
    pub const fn is_any(&self) -> bool {
        self.is_quote() | self.status | self.correction | self.auction | self.print.is_some()
    }
}

/// The effect of a message on an order, as bits.
type Action = u8;

/// The message concerns one order, and is no replacement.
const IS_ORDER: Action = 1;
/// The order is new.
const ADDS: Action = 2;
/// It takes all shares of the order.
const ALL: Action = 4;
/// It executes the order.
const EXECUTES: Action = 8;
/// It has its own price.
const PRICED: Action = 16;
const REPLACES: Action = 32;

/// Actions by the message's first byte.
static ACTIONS: [Action; 256] = {
    let mut actions = [0; 256];
    actions[MessageType::AddOrder as usize] = IS_ORDER | ADDS;
    actions[MessageType::AddOrderAttributed as usize] = IS_ORDER | ADDS;
    actions[MessageType::OrderDelete as usize] = IS_ORDER | ALL;
    actions[MessageType::OrderCancel as usize] = IS_ORDER;
    actions[MessageType::OrderExecuted as usize] = IS_ORDER | EXECUTES;
    actions[MessageType::OrderExecutedWithPrice as usize] = IS_ORDER | EXECUTES | PRICED;
    actions[MessageType::OrderReplace as usize] = REPLACES;
    actions
};

/// Number of messages that are prefetched together.
const BATCH: usize = 32;

/// Number of live orders from which they exceed the second-level cache, so that a second prefetch pass over a batch, for the price levels, is worth
/// its cost.
const MANY: usize = 500_000;

impl Books {
    /// Applies a message. Types without data on books, volumes or trading states only set the stock's name.
    #[inline]
    pub fn apply(&mut self, message: &Message<'_>) -> Change {
        let record = self.decoder.record(message.bytes());
        self.apply_record(&record)
    }

    /// Applies a message in the form of a record; a record that is short or of unknown type has no effect.
    ///
    /// Additions, executions, cancellations and deletions share one code path: their order is random, so that a branch would be mispredicted for
    /// every second message. The cost is one access to the order, one to the level and one to the side; `benches/itch` shows the average.
    #[inline]
    pub fn apply_record(&mut self, record: &ItchRecord) -> Change {
        let action = ACTIONS[usize::from(record.kind)];
        if action & IS_ORDER != 0 && record.is_whole() {
            self.order_near(record, action)
        } else {
            self.apply_other(record, action)
        }
    }

    /// Applies messages in order, such as all of a datagram, and passes each with its change and the books directly after it.
    ///
    /// Prefetches the orders and sides of later messages before it applies the first: with many
    /// orders this is faster by half. More than 32 messages at once gain nothing.
    #[inline]
    pub fn apply_all(&mut self, records: &[ItchRecord], mut each: impl FnMut(&Self, &ItchRecord, Change)) {
        self.prefetch(records);
        for record in records {
            let change = self.apply_record(record);
            each(self, record, change);
        }
    }

    /// Prefetches the data of messages that will be applied next: those of a received datagram.
    #[inline]
    pub fn prefetch(&self, records: &[ItchRecord]) {
        for records in records.chunks(BATCH) {
            self.prefetch_batch(records);
        }
    }

    /// Prefetches orders and sides first; then, with queues or many orders, the levels and queues of those; then the neighbours in the queue.
    #[inline(always)]
    fn prefetch_batch(&self, records: &[ItchRecord]) {
        let mut orders = [&StoredOrder::NONE; BATCH];
        for (record, order) in records.iter().zip(&mut orders) {
            *order = self.orders.near(record.reference);
            if record.kind == MessageType::OrderReplace as u8 {
                self.orders.near(record.other);
            }
            if let Some(book) = self.books.get(usize::from(record.locate)) {
                prefetch(&book.sides[0]);
                prefetch(&book.sides[1]);
                prefetch(&book.symbol);
            }
        }
        if let (Some(queues), Some(rows)) = (&self.queues, &self.means.rows) {
            let mut beside = [&Pair::EMPTY; BATCH];
            for ((record, order), beside) in records.iter().zip(orders).zip(&mut beside) {
                let Some((ladder, rank, adds)) = self.about(record, order) else { continue };
                ladder.prefetch(rank);
                let queue = ladder.queue_near(rank, rows).unwrap_or(&Pair::EMPTY);
                *beside = select(adds, queue, queues.beside(order.node));
                prefetch(queue);
                prefetch(*beside);
            }
            for pair in beside {
                queues.prefetch(pair);
            }
        } else if self.orders.len() > MANY {
            for (record, order) in records.iter().zip(orders) {
                if let Some((ladder, rank, _)) = self.about(record, order) {
                    ladder.prefetch(rank);
                }
            }
        }
    }

    /// Returns side and rank of a message, and `true` if it adds an order; assumes that the order in its place has its reference.
    #[inline(always)]
    fn about(&self, record: &ItchRecord, order: &StoredOrder) -> Option<(&Ladder, Rank, bool)> {
        let adds = ACTIONS[usize::from(record.kind)] & ADDS != 0;
        let is_ask = select(adds, record.code == b'S', order.side() == Side::Ask);
        let side = if is_ask { Side::Ask } else { Side::Bid };
        let book = self.books.get(usize::from(record.locate))?;
        let rank = ladder::rank(select(adds, record.price, order.price), side);
        Some((&book.sides[side as usize], rank, adds))
    }

    /// Fast path for a valid message about an order in a known place, on a listed stock's book: nearly all messages. Any other message takes the
    /// slow path, before anything has changed.
    #[inline(always)]
    fn order_near(&mut self, record: &ItchRecord, action: Action) -> Change {
        let (adds, all) = (action & ADDS != 0, action & ALL != 0);
        let is_full = self.orders.is_full();
        let Some(place) = self.orders.place(record.reference) else { return self.order_far(record, action) };
        let old = *place.order;
        let is_ask = record.code == b'S';
        let may_add = (old.shares == 0)
            & !place.is_mixed()
            & (is_ask | (record.code == b'B'))
            & (record.shares != 0)
            & !is_full;
        let may_take = place.is_its()
            & (all | ((record.shares != 0) & (record.shares <= old.shares)))
            & (record.locate == old.locate);
        if !select(adds, may_add, may_take) {
            return self.order_far(record, action);
        }
        let book = match self.books.get_mut(usize::from(record.locate)) {
            Some(book) if book.listed => book,
            _ => return self.order_far(record, action),
        };

        let taken = select(all, old.shares, record.shares);
        let left = select(adds, record.shares, old.shares.wrapping_sub(taken));
        let goes = !adds & (left == 0);
        let mark = select(adds, place.tag << 1 | u8::from(is_ask), old.mark);
        let price = select(adds, record.price, old.price);
        let mut new = StoredOrder { price, shares: left, node: old.node, locate: record.locate, mark };
        let side = new.side();
        let rank = ladder::rank(price, side);
        let more = ORDER + u64::from(record.shares);
        let less = (u64::from(taken) + u64::from(goes) * ORDER).wrapping_neg();

        let ladder = &mut book.sides[side as usize];
        let before = ladder.best();
        if !ladder.change(side, rank, select(adds, more, less), adds, &mut self.means) {
            self.counters.refused.count(record.kind);
            return Change::none(Locate(record.locate));
        }
        if let (true, Some(queues), Some(rows)) = (adds | goes, &mut self.queues, &mut self.means.rows) {
            new.node = queues.level_changed(ladder, rank, rows, (adds, old.node), record.reference);
        }
        *place.order = new;
        let is_empty = place.changed(adds, goes);
        self.orders.changed(adds, goes);
        self.counters.max_live_orders = self.counters.max_live_orders.max(self.orders.len());
        let (after, locate) = (ladder.best(), Locate(record.locate));
        let is_quote = before.price_differs(after) | before.shares_differ(after);
        book.quoted_ts_ns = select(is_quote, record.ts_ns, book.quoted_ts_ns);
        let mut print = None;
        if action & EXECUTES != 0 {
            print = book.executed(record, action, price, taken, side);
            if let Some(print) = &print {
                self.matches.remember(locate, print, VolumePart::Displayed);
            }
        }
        if is_empty & goes {
            self.orders.emptied(record.reference);
        }
        Change { print, ..Change::of(locate, side, before, after) }
    }

    /// Slow path for a message about an order.
    #[inline(never)]
    fn order_far(&mut self, record: &ItchRecord, action: Action) -> Change {
        if action & ADDS != 0 { self.add(record) } else { self.take(record, action) }
    }

    fn add(&mut self, record: &ItchRecord) -> Change {
        let locate = Locate(record.locate);
        let Some(side) = Code(record.code).side() else {
            self.counters.unknown_side.count(record.kind);
            return Change::none(locate);
        };
        let order = StoredOrder {
            price: record.price,
            shares: record.shares,
            node: 0,
            locate: record.locate,
            mark: side as u8,
        };
        let before = self.best(locate, side);
        if !self.insert(record.kind, record.reference, order) {
            return Change::none(locate);
        }
        self.named(record);
        self.changed(locate, side, before, record.ts_ns)
    }

    /// Adds an order to its book, or counts the reason for ignoring it.
    fn insert(&mut self, kind: u8, reference: u64, mut order: StoredOrder) -> bool {
        if order.shares == 0 {
            self.counters.no_shares.count(kind);
            return false;
        }
        if self.orders.order(reference).is_some() {
            self.counters.duplicate_reference.count(kind);
            return false;
        }
        if self.orders.is_full() {
            self.counters.refused.count(kind);
            return false;
        }
        let side = order.side();
        let rank = ladder::rank(order.price, side);
        self.open(Locate(order.locate));
        let ladder = &mut self.books[usize::from(order.locate)].sides[side as usize];
        if !ladder.change(side, rank, ORDER + u64::from(order.shares), true, &mut self.means) {
            self.counters.refused.count(kind);
            return false;
        }
        if let (Some(queues), Some(rows)) = (&mut self.queues, &mut self.means.rows) {
            order.node = queues.level_changed(ladder, rank, rows, (true, 0), reference);
        }
        let added = self.orders.add(reference, order);
        debug_assert_eq!(added, Added::New, "there was room, and none of that reference");
        self.counters.max_live_orders = self.counters.max_live_orders.max(self.orders.len());
        true
    }

    fn take(&mut self, record: &ItchRecord, action: Action) -> Change {
        let all = action & ALL != 0;
        if !all && record.shares == 0 {
            self.counters.no_shares.count(record.kind);
            return Change::none(Locate(record.locate));
        }
        let wanted = if all { u32::MAX } else { record.shares };
        let Some(taken) = self.orders.take(record.reference, wanted) else { return self.unknown(record) };
        if !all && taken.excess {
            self.counters.excess_shares.count(record.kind);
        }
        let order = taken.order;
        let (locate, side) = (Locate(order.locate), order.side());
        self.of(record, locate);
        let before = self.best(locate, side);
        self.reduce(&order, taken.shares, taken.gone);
        let mut change = self.changed(locate, side, before, record.ts_ns);
        if action & EXECUTES != 0 {
            change.print = self.open(locate).executed(record, action, order.price, taken.shares, side);
            if let Some(print) = &change.print {
                self.matches.remember(locate, print, VolumePart::Displayed);
            }
        }
        change
    }

    /// Subtracts shares of an order from its level, and the order itself if none are left.
    fn reduce(&mut self, order: &StoredOrder, shares: u32, gone: bool) {
        let side = order.side();
        let rank = ladder::rank(order.price, side);
        let by = (u64::from(shares) + u64::from(gone) * ORDER).wrapping_neg();
        let Some(book) = self.books.get_mut(usize::from(order.locate)) else { return };
        let ladder = &mut book.sides[side as usize];
        let _ = ladder.change(side, rank, by, false, &mut self.means);
        if let (true, Some(queues), Some(rows)) = (gone, &mut self.queues, &mut self.means.rows) {
            queues.level_changed(ladder, rank, rows, (false, order.node), 0);
        }
    }

    /// Fast path for a valid replacement of an order in a known place by one in another, on a listed stock's book. Any other takes the slow path,
    /// before anything has changed.
    fn replace(&mut self, record: &ItchRecord) -> Change {
        let Some(place) = self.orders.place(record.other) else { return self.replace_far(record) };
        let (is_free, tag) = ((place.order.shares == 0) & !place.is_mixed(), place.tag);
        let Some(place) = self.orders.place(record.reference) else { return self.replace_far(record) };
        let old = *place.order;
        if !(is_free & place.is_its() & (record.shares != 0) & (record.locate == old.locate)) {
            return self.replace_far(record);
        }
        let book = match self.books.get_mut(usize::from(record.locate)) {
            Some(book) if book.listed => book,
            _ => return self.replace_far(record),
        };

        let side = old.side();
        let (old_rank, rank) = (ladder::rank(old.price, side), ladder::rank(record.price, side));
        let ladder = &mut book.sides[side as usize];
        let before = ladder.best();
        let less = (ORDER + u64::from(old.shares)).wrapping_neg();
        ladder.change(side, old_rank, less, false, &mut self.means);
        if let (Some(queues), Some(rows)) = (&mut self.queues, &mut self.means.rows) {
            queues.level_changed(ladder, old_rank, rows, (false, old.node), 0);
        }
        let more = ORDER + u64::from(record.shares);
        let is_added = ladder.change(side, rank, more, true, &mut self.means);
        let mut new =
            StoredOrder { price: record.price, shares: record.shares, mark: tag << 1 | old.mark & 1, ..old };
        if !is_added {
            self.counters.refused.count(record.kind);
        } else if let (Some(queues), Some(rows)) = (&mut self.queues, &mut self.means.rows) {
            new.node = queues.level_changed(ladder, rank, rows, (true, 0), record.other);
        }
        let change = Change::of(Locate(record.locate), side, before, ladder.best());
        book.quoted_ts_ns = select(change.quote, record.ts_ns, book.quoted_ts_ns);
        self.orders.replaced(record.reference, is_added.then_some((record.other, new)));
        change
    }

    /// Slow path of a replacement.
    #[inline(never)]
    fn replace_far(&mut self, record: &ItchRecord) -> Change {
        let Some(old) = self.orders.remove(record.reference) else { return self.unknown(record) };
        let (locate, side) = (Locate(old.locate), old.side());
        self.of(record, locate);
        let before = self.best(locate, side);
        self.reduce(&old, old.shares, true);
        let new = StoredOrder { price: record.price, shares: record.shares, ..old };
        let _ = self.insert(record.kind, record.other, new);
        self.changed(locate, side, before, record.ts_ns)
    }

    fn best(&mut self, locate: Locate, side: Side) -> Best {
        self.books.get(usize::from(locate.0)).map_or(Best::default(), |book| book.sides[side as usize].best())
    }

    /// Returns the changes since `before`, and records their time on the book.
    fn changed(&mut self, locate: Locate, side: Side, before: Best, ts_ns: u64) -> Change {
        let book = self.open(locate);
        let change = Change::of(locate, side, before, book.sides[side as usize].best());
        if change.is_quote() {
            book.quoted_ts_ns = ts_ns;
        }
        change
    }

    /// Applies every message that does not concern a single order.
    #[inline(never)]
    fn apply_other(&mut self, record: &ItchRecord, action: Action) -> Change {
        let locate = Locate(record.locate);
        if !record.is_whole() {
            return Change::none(locate);
        }
        if action & REPLACES != 0 {
            return self.replace(record);
        }
        let mut change = Change::none(locate);
        match MessageType::of(record.kind) {
            Some(kind @ (MessageType::Trade | MessageType::CrossTrade)) => return self.trade(record, kind),
            Some(MessageType::StockDirectory) => {
                let book = self.open(locate);
                let stock = ItchText(record.stock);
                let renamed = !book.symbol.is_blank() && book.symbol != stock;
                book.symbol = stock;
                book.listed = true;
                self.counters.renamed += u64::from(renamed);
            }
            Some(MessageType::TradingAction) => {
                let book = self.named(record);
                let new = (Code(record.code), ItchText(record.fifth.to_be_bytes()));
                change.status = (book.state, book.reason) != new;
                (book.state, book.reason) = new;
            }
            Some(MessageType::OperationalHalt) if locate != Locate(0) => {
                let book = self.named(record);
                // Other codes are other markets: the stock continues to trade here.
                if record.code == b'Q' {
                    let halted = record.code_2 == b'H';
                    change.status = book.halted != halted;
                    book.halted = halted;
                }
            }
            Some(MessageType::BrokenTrade) => {
                let match_number = MatchNumber(record.other);
                let broken = self.matches.forget(match_number);
                let traded = broken.map(|broken| (Price4(broken.price), broken.shares));
                self.broken = Broken { match_number, traded };
                match broken {
                    Some(broken) => {
                        change.locate = broken.locate;
                        self.open(broken.locate).volume.take_back(&broken);
                    }
                    // A receiver that stored the trade can still reverse it.
                    None => self.counters.unknown_match += 1,
                }
                change.correction = change.locate != Locate(0);
            }
            Some(kind) if kind.has_stock() && locate != Locate(0) => {
                self.named(record);
                change.auction = kind == MessageType::NetOrderImbalance;
            }
            // Messages about no stock, or with a symbol but no stock number.
            _ => {}
        }
        change
    }

    fn trade(&mut self, record: &ItchRecord, kind: MessageType) -> Change {
        let is_cross = kind == MessageType::CrossTrade;
        let shares = if is_cross { record.reference } else { u64::from(record.shares) };
        let mut change = Change::none(Locate(record.locate));
        if shares == 0 {
            self.counters.no_shares.count(record.kind);
            self.named(record);
            return change;
        }
        let kind = if is_cross { PrintKind::Cross(Code(record.code)) } else { PrintKind::Hidden };
        let (price, match_number) = (Price4(record.price), MatchNumber(record.other));
        let print = Print { price, shares, match_number, kind };
        let volume = &mut self.named(record).volume;
        volume.add(print, record.ts_ns);
        let part = if is_cross { VolumePart::Cross } else { VolumePart::Hidden };
        if let Some(sum) = volume.part(part) {
            *sum = sum.saturating_add(shares);
        }
        self.matches.remember(change.locate, &print, part);
        change.print = Some(print);
        change
    }

    /// Returns the book of a message that contains the stock's symbol; before the directory entry, sets the symbol.
    fn named(&mut self, record: &ItchRecord) -> &mut Book {
        let locate = Locate(record.locate);
        if !self.open(locate).listed {
            self.counters.before_directory.count(record.kind);
            self.open(locate).symbol = ItchText(record.stock);
        }
        self.open(locate)
    }

    /// Counts irregularities of a message about a known order.
    fn of(&mut self, record: &ItchRecord, locate: Locate) {
        if record.locate != locate.0 {
            self.counters.other_locate.count(record.kind);
        }
        if !self.open(locate).listed {
            self.counters.before_directory.count(record.kind);
        }
    }

    #[cold]
    fn unknown(&mut self, record: &ItchRecord) -> Change {
        self.counters.unknown_reference.count(record.kind);
        Change::none(Locate(record.locate))
    }
}

impl Book {
    /// Counts an execution; returns it if it has to be reported.
    fn executed(
        &mut self,
        record: &ItchRecord,
        action: Action,
        price: u32,
        shares: u32,
        side: Side,
    ) -> Option<Print> {
        let is_priced = action & PRICED != 0;
        let shares = u64::from(shares);
        // Only `N` excludes it from the volume; an unknown code does not.
        if is_priced && record.code == b'N' {
            self.volume.nonprintable_shares = self.volume.nonprintable_shares.saturating_add(shares);
            return None;
        }
        let price = Price4(if is_priced { record.price } else { price });
        let kind = if is_priced { PrintKind::Priced(side) } else { PrintKind::AtOrder(side) };
        let print = Print { price, shares, match_number: MatchNumber(record.other), kind };
        self.volume.add(print, record.ts_ns);
        Some(print)
    }
}
