//! Books against a sorted map of every order: simulated days, walks of the market, references from anywhere, in batches and
//! one by one, with queues.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tapeline_feed::book::{Ahead, BookSettings, Books};
use tapeline_feed::itch::encode::{self, LONGEST, PrefixFields, text};
use tapeline_feed::itch::{Decoder, ItchRecord, Locate, Message, OrderRef, Price4, Side, decode};
use tapeline_feed::simulate::{self, Exchange};

/// An order: side, price, shares, and the number of the message it came with.
type Order = (u16, Side, u32, u32, u64);

/// Every order by its reference; what books show is worked out from it.
#[derive(Default)]
struct Oracle {
    orders: BTreeMap<u64, Order>,
    count: u64,
}

impl Oracle {
    fn apply(&mut self, message: &Message<'_>) {
        self.count += 1;
        let count = self.count;
        let mut take = |reference: OrderRef, shares: u32| {
            let order = self.orders.get_mut(&reference.0)?;
            let before = *order;
            order.3 = order.3.saturating_sub(shares);
            if order.3 == 0 {
                self.orders.remove(&reference.0);
            }
            Some(before)
        };
        let new = match *message {
            Message::AddOrder(m) => {
                let side = m.side().side().unwrap();
                Some((m.reference(), (m.locate().0, side, m.price().0, m.shares(), count)))
            }
            Message::AddOrderAttributed(m) => {
                let side = m.side().side().unwrap();
                Some((m.reference(), (m.locate().0, side, m.price().0, m.shares(), count)))
            }
            Message::OrderReplace(m) => take(m.reference(), u32::MAX).map(|(locate, side, ..)| {
                (m.new_reference(), (locate, side, m.price().0, m.shares(), count))
            }),
            Message::OrderExecuted(m) => take(m.reference(), m.shares()).and(None),
            Message::OrderExecutedWithPrice(m) => take(m.reference(), m.shares()).and(None),
            Message::OrderCancel(m) => take(m.reference(), m.shares()).and(None),
            Message::OrderDelete(m) => take(m.reference(), u32::MAX).and(None),
            _ => None,
        };
        if let Some((reference, order)) = new {
            self.orders.entry(reference.0).or_insert(order);
        }
    }

    /// Levels of a side, best first, each with its orders in the order of their coming.
    fn side(&self, locate: u16, side: Side) -> Vec<(u32, Vec<(OrderRef, u32)>)> {
        let mut levels: BTreeMap<u32, Vec<(u64, OrderRef, u32)>> = BTreeMap::new();
        for (reference, (_, _, price, shares, came)) in
            self.orders.iter().filter(|(_, order)| (order.0, order.1) == (locate, side))
        {
            levels.entry(*price).or_default().push((*came, OrderRef(*reference), *shares));
        }
        let mut levels: Vec<_> = levels
            .into_iter()
            .map(|(price, mut orders)| {
                orders.sort_unstable();
                (price, orders.into_iter().map(|(_, reference, shares)| (reference, shares)).collect())
            })
            .collect();
        if side == Side::Bid {
            levels.reverse();
        }
        levels
    }

    /// Everything that can be seen of the books, compared.
    fn check(&self, books: &Books, symbols: u16) {
        assert_eq!(books.live_orders(), self.orders.len());
        for locate in 1..=symbols {
            for side in [Side::Bid, Side::Ask] {
                let wanted = self.side(locate, side);
                let Some(book) = books.book(Locate(locate)) else {
                    assert!(wanted.is_empty());
                    continue;
                };
                assert_eq!(book.levels(side).len(), wanted.len());
                for (level, (price, orders)) in book.levels(side).zip(&wanted) {
                    let shares: u64 = orders.iter().map(|(_, shares)| u64::from(*shares)).sum();
                    assert_eq!(
                        (level.price.0, level.shares, level.orders as usize),
                        (*price, shares, orders.len())
                    );
                    let queue: Vec<_> = books.queue(Locate(locate), side, Price4(*price)).collect();
                    assert_eq!(&queue, orders);
                    let (last, before) = orders.split_last().unwrap();
                    let shares = before.iter().map(|(_, shares)| u64::from(*shares)).sum();
                    let ahead = Ahead { orders: before.len() as u32, shares };
                    assert_eq!(books.ahead(last.0), Some(ahead));
                }
                let top = book.top();
                let best = if side == Side::Bid { top.bid } else { top.ask };
                assert_eq!(best.map(|best| best.price.0), wanted.first().map(|level| level.0));
            }
        }
    }
}

/// Applies messages in batches to one set of books and one by one to another, and both to the oracle.
fn run(messages: &[Vec<u8>], symbols: u16, settings: BookSettings) {
    let mut batched = Books::new(BookSettings { queues: true, ..settings });
    let mut single = Books::new(settings);
    let mut oracle = Oracle::default();
    let decoder = Decoder::new();
    let mut records = [ItchRecord::default(); 32];
    for (number, batch) in messages.chunks(32).enumerate() {
        let count = decoder.fill(batch.iter().map(Vec::as_slice), &mut records);
        let mut changes = Vec::new();
        batched.apply_all(&records[..count], |_, _, change| changes.push(change));
        for (message, change) in batch.iter().zip(changes) {
            let message = decode(message).unwrap();
            assert_eq!(single.apply(&message), change);
            oracle.apply(&message);
        }
        if number % 64 == 0 {
            oracle.check(&batched, symbols);
        }
    }
    oracle.check(&batched, symbols);
    assert_eq!(single.counters(), batched.counters());
    assert!(batched.counters().refused.total() == 0);
}

#[test]
fn simulated_days_are_as_the_oracle_has_them() {
    for (seed, symbols, live) in [(1, 3, 2_000), (2, 40, 20_000), (3, 1, 500)] {
        let mut exchange = Exchange::new(simulate::SimulatedDay { seed, symbols, live_orders: live });
        let mut bytes = [0; LONGEST];
        let messages: Vec<Vec<u8>> = (0..60_000)
            .map(|time| {
                let length = if time % 3 == 0 && time < 30_000 {
                    exchange.next_addition(time, &mut bytes).unwrap()
                } else {
                    exchange.next(time, &mut bytes).unwrap()
                };
                bytes[..length].to_vec()
            })
            .collect();
        run(
            &messages,
            symbols,
            BookSettings { max_orders: 40_000, reserve_orders: 0, ..BookSettings::default() },
        );
    }
}

/// A message of a hostile day: what, which order, price, shares.
fn hostile() -> impl Strategy<Value = Vec<(u8, u64, i32, u32)>> {
    let letter = prop::sample::select(&b"AAAAADDEXU"[..]);
    let step = prop_oneof![20 => -40_i32..41, 2 => -4_000_i32..4_000, 1 => any::<i32>()];
    prop::collection::vec((letter, any::<u64>(), step, 1_u32..2_000), 200..2_000)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn hostile_days_are_as_the_oracle_has_them(
        day in hostile(), shift in 0_u32..4, scattered in any::<bool>(), max_ladders in 0_usize..4, cents in any::<bool>(),
    ) {
        let (mut next, mut middle) = (1_u64, 1_000_000_i64);
        let mut live: Vec<u64> = Vec::new();
        let mut messages = Vec::new();
        for (number, (letter, random, step, shares)) in day.into_iter().enumerate() {
            let locate = 1 + (random >> 60) as u16 % 3;
            let prefix = PrefixFields { locate, tracking: 0, ts_ns: number as u64 };
            // The market walks; now and then a price is far away.
            middle = (middle + i64::from(step.clamp(-40, 40)) * 100).clamp(0, i64::from(u32::MAX));
            let away = i64::from(step) * if cents { 100 } else { 1 };
            let price = (middle + away).clamp(0, i64::from(u32::MAX)) as u32;
            let mut reference = || {
                next += 1 << shift;
                let reference = if scattered && random % 8 == 0 { random } else { next };
                live.push(reference);
                reference
            };
            let side = if random & 1 == 0 { b'B' } else { b'S' };
            let mut bytes = [0; LONGEST];
            let length = match letter {
                b'A' => {
                    let reference = reference();
                    encode::AddOrder { reference, side, shares, stock: text("X"), price }.encode(prefix, &mut bytes)
                }
                _ if live.is_empty() => continue,
                b'U' => {
                    let old = live.swap_remove(random as usize % live.len());
                    live.push(next + (1 << shift));
                    next += 1 << shift;
                    encode::OrderReplace { reference: old, new_reference: next, shares, price }.encode(prefix, &mut bytes)
                }
                letter => {
                    // Sometimes one that is not there any more, or a neighbour of one.
                    let reference = live[random as usize % live.len()] ^ u64::from(random % 31 == 0);
                    match letter {
                        b'D' => encode::OrderDelete { reference }.encode(prefix, &mut bytes),
                        b'E' => encode::OrderExecuted { reference, shares, match_number: random }.encode(prefix, &mut bytes),
                        _ => encode::OrderCancel { reference, shares }.encode(prefix, &mut bytes),
                    }
                }
            };
            messages.push(bytes[..length.unwrap()].to_vec());
        }
        run(&messages, 3, BookSettings { max_orders: 5_000, reserve_orders: 0, max_ladders, ..BookSettings::default() });
    }
}

/// A feed that spreads orders as widely as it can takes no more memory than is stated, and is refused beyond.
#[test]
fn memory_stays_within_what_is_stated() {
    let settings = BookSettings {
        max_orders: 50_000,
        reserve_orders: 0,
        max_ladders: 64,
        max_far_levels: 100,
        queues: true,
    };
    let mut books = Books::new(settings);
    let mut bytes = [0; LONGEST];
    let mut most = 0;
    for number in 0..300_000_u64 {
        let prefix = PrefixFields { locate: (number % 300) as u16, tracking: 0, ts_ns: number };
        let price = (number as u32).wrapping_mul(2_654_435_761);
        let reference = if number % 2 == 0 { number * 4 } else { number.wrapping_mul(0x9E37_79B9_7F4A_7C15) };
        let add = encode::AddOrder { reference, side: b'B', shares: 1, stock: text("X"), price };
        let length = add.encode(prefix, &mut bytes).unwrap();
        let _ = books.apply(&decode(&bytes[..length]).unwrap());
        if number % 3 == 0 {
            let length =
                encode::OrderDelete { reference: number / 2 * 4 }.encode(prefix, &mut bytes).unwrap();
            let _ = books.apply(&decode(&bytes[..length]).unwrap());
        }
        if number % 50_000 == 0 {
            most = most.max(books.bytes());
        }
    }
    assert!(books.live_orders() <= 50_000);
    assert!(books.counters().refused.of(b'A') > 100_000, "{:?}", books.counters().refused);
    // Orders in pages and in the table, and in line; sides with rungs; levels elsewhere; stocks.
    let bound =
        50_000 * (64 + 107 + 48) + 1_024 * 1_024 + 64 * 16_800 + 30_000 * 96 + 600 * 16 * 24 + 512 * 256;
    most = most.max(books.bytes());
    assert!(most <= bound, "{most} of {bound}");
    books.clear();
    assert_eq!((books.live_orders(), books.iter().count()), (0, 0));
}
