//! Order books from records, beside a plain replay that knows no better than to sort everything.

use crate::shared_data;

use std::collections::BTreeMap;

use proptest::prelude::*;
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::dbn::{
    self, Best, DbnBooks, DbnPrice, DbnRecord, DbnSettings, DbnSymbols, DbnTop, Flags, Header,
};
use tapeline_feed::itch::Side;

/// The orders of one instrument, by id.
#[derive(Default)]
struct Replay {
    orders: BTreeMap<u64, (u8, i64, u32)>,
}

impl Replay {
    fn apply(&mut self, action: u8, side: u8, id: u64, price: i64, size: u32) {
        let placed = matches!(side, b'A' | b'B') && price != i64::MAX;
        match action {
            b'A' | b'M' if placed => {
                self.orders.remove(&id);
                if size > 0 {
                    self.orders.insert(id, (side, price, size));
                }
            }
            b'C' => {
                if let Some((_, _, left)) = self.orders.get_mut(&id) {
                    *left = left.saturating_sub(size);
                    if *left == 0 {
                        self.orders.remove(&id);
                    }
                }
            }
            b'R' => self.orders.clear(),
            _ => {}
        }
    }

    /// The levels of a side, best first.
    fn levels(&self, side: u8) -> Vec<Best> {
        let mut levels: BTreeMap<i64, (u64, u32)> = BTreeMap::new();
        for (_, price, size) in self.orders.values().filter(|(of, ..)| *of == side) {
            let level = levels.entry(*price).or_default();
            *level = (level.0 + u64::from(*size), level.1 + 1);
        }
        let best = |(price, (size, orders)): (i64, (u64, u32))| Best { price: DbnPrice(price), size, orders };
        match side {
            b'B' => levels.into_iter().rev().map(best).collect(),
            _ => levels.into_iter().map(best).collect(),
        }
    }

    fn top(&self) -> DbnTop {
        DbnTop { bid: self.levels(b'B').first().copied(), ask: self.levels(b'A').first().copied() }
    }
}

#[test]
fn order_books_of_real_files_are_those_of_a_plain_replay() {
    for file in ["esh4-glbx-mdp3-20231224.mbo", "orderbooks_mbo_2024-05-08"] {
        let Some(bytes) = shared_data::bytes(&format!("data/dbn-cme-opra/{file}.dbn.zst")) else { return };
        let Recording::Records(mut file) = capture::open(&bytes[..]).unwrap() else { panic!("records") };
        let mut books = DbnBooks::new(DbnSettings::default(), DbnSymbols::of(file.metadata().unwrap()));
        let mut replay = Replay::default();
        let (mut place, mut shown, mut events) = (None, DbnTop::default(), 0);
        while let Some(bytes) = file.next().unwrap() {
            let record = dbn::decode(bytes).unwrap();
            let change = books.apply(&Header::of(bytes).unwrap(), &record);
            let DbnRecord::Mbo(mbo) = record else { panic!("orders only") };
            place = change.place;
            replay.apply(mbo.action().0, mbo.side().0, mbo.order_id(), mbo.price().0, mbo.size());
            let book = books.book(place.unwrap()).unwrap();
            if !mbo.flags().has(Flags::LAST) {
                assert!(
                    !change.fields.bid
                        && !change.fields.ask
                        && !change.fields.bid_size
                        && !change.fields.ask_size
                );
                assert_eq!(book.top, shown, "in the middle of an event nothing is shown");
                continue;
            }
            events += 1;
            // Sorting everything is slow: the snapshot is looked at once, at its end.
            shown = replay.top();
            assert_eq!(book.top, shown);
        }
        let book = books.book(place.unwrap()).unwrap();
        assert!(events > 0);
        assert_eq!(book.levels(Side::Bid).collect::<Vec<_>>(), replay.levels(b'B'));
        assert_eq!(book.levels(Side::Ask).collect::<Vec<_>>(), replay.levels(b'A'));
        assert_eq!(book.live_orders(), Some(replay.orders.len()));
        assert!(book.top.bid.unwrap().price < book.top.ask.unwrap().price);
    }
}

/// A record of an order.
fn mbo(instrument: u32, action: u8, side: u8, id: u64, price: i64, size: u32, flags: u8) -> [u8; 56] {
    let mut record = [0; 56];
    record[..2].copy_from_slice(&[14, 0xA0]);
    record[2] = 1;
    record[4..8].copy_from_slice(&instrument.to_le_bytes());
    record[16..24].copy_from_slice(&id.to_le_bytes());
    record[24..32].copy_from_slice(&price.to_le_bytes());
    record[32..36].copy_from_slice(&size.to_le_bytes());
    record[36] = flags;
    record[38..40].copy_from_slice(&[action, side]);
    record
}

fn applied(books: &mut DbnBooks, bytes: &[u8]) -> dbn::DbnChange {
    books.apply(&Header::of(bytes).unwrap(), &dbn::decode(bytes).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_orders_gives_the_book_of_a_plain_replay(
        steps in proptest::collection::vec(
            (0_u32..3, prop::sample::select(&b"AAAAMCCCRTFN?"[..]), prop::sample::select(&b"ABABABN"[..]),
             0_u64..12, prop_oneof![-3_i64..8, Just(i64::MAX)], 0_u32..5, any::<bool>()),
            0..200,
        ),
    ) {
        let mut books = DbnBooks::new(DbnSettings::default(), DbnSymbols::default());
        let mut replays: BTreeMap<u32, (Replay, DbnTop)> = BTreeMap::new();
        for (instrument, action, side, id, price, size, last) in steps {
            let flags = if last { Flags::LAST } else { 0 };
            let change = applied(&mut books, &mbo(instrument, action, side, id, price, size, flags));
            let (replay, shown) = replays.entry(instrument).or_default();
            replay.apply(action, side, id, price, size);
            let before = *shown;
            // A trade is no part of the book, and ends an event where it says so.
            if last {
                *shown = replay.top();
            }
            let book = books.book(change.place.unwrap()).unwrap();
            prop_assert_eq!(book.top, *shown);
            prop_assert_eq!(change.fields.trade, action == b'T');
            prop_assert_eq!(change.fields.bid, before.bid.map(|bid| bid.price) != shown.bid.map(|bid| bid.price));
            prop_assert_eq!(change.fields.ask_size, before.ask.map(|ask| ask.size) != shown.ask.map(|ask| ask.size));
            prop_assert_eq!(book.levels(Side::Bid).collect::<Vec<_>>(), replay.levels(b'B'));
            prop_assert_eq!(book.levels(Side::Ask).collect::<Vec<_>>(), replay.levels(b'A'));
        }
        prop_assert_eq!(books.live_orders(), replays.values().map(|(replay, _)| replay.orders.len()).sum::<usize>());
    }
}

#[test]
fn what_cannot_be_right_is_counted() {
    let mut books = DbnBooks::new(DbnSettings::default(), DbnSymbols::default());
    for step in [
        mbo(7, b'A', b'B', 1, 10, 5, 0),
        mbo(7, b'A', b'B', 1, 11, 5, 0),
        mbo(7, b'M', b'A', 2, 12, 5, 0),
        mbo(7, b'C', b'B', 1, 11, 9, 0),
        mbo(7, b'C', b'B', 9, 11, 9, 0),
        mbo(7, b'A', b'N', 3, 11, 9, 0),
        mbo(7, b'A', b'B', 3, i64::MAX, 9, Flags::LAST),
    ] {
        let _ = applied(&mut books, &step);
    }
    let counters = books.counters();
    assert_eq!((counters.duplicate_orders, counters.unknown_modified, counters.excess_cancelled), (1, 1, 1));
    assert_eq!((counters.unknown_cancelled, counters.odd_orders), (1, 2));
    let (_, book) = books.iter().next().unwrap();
    assert_eq!((book.name(), book.top.bid, book.live_orders()), ("7", None, Some(1)));
}

#[test]
fn bounds_hold_and_what_has_no_room_is_counted() {
    let settings = DbnSettings { max_instruments: 2, max_orders: 3, max_levels: 2 };
    let mut books = DbnBooks::new(settings, DbnSymbols::default());
    for id in 0..10_u64 {
        let price = i64::try_from(id).unwrap();
        let _ = applied(&mut books, &mbo(1, b'A', b'B', id, price, 1, Flags::LAST));
    }
    assert_eq!((books.live_orders(), books.counters().refused_orders), (2, 8));
    let change = applied(&mut books, &mbo(2, b'A', b'B', 1, 1, 1, Flags::LAST));
    assert!(change.named && change.fields.bid);
    assert_eq!(books.live_orders(), 3);
    let _ = applied(&mut books, &mbo(2, b'A', b'B', 2, 1, 1, Flags::LAST));
    assert_eq!((books.live_orders(), books.counters().refused_orders), (3, 9));
    assert_eq!(applied(&mut books, &mbo(3, b'A', b'B', 1, 1, 1, 0)), dbn::DbnChange::default());
    assert_eq!(books.counters().refused_instruments, 1);
    // A cleared book gives its room back.
    let _ = applied(&mut books, &mbo(1, b'R', b'N', 0, 0, 0, Flags::LAST));
    assert_eq!(books.live_orders(), 1);
}

#[test]
fn a_top_of_book_record_takes_the_place_of_its_side() {
    let mut books = DbnBooks::new(DbnSettings::default(), DbnSymbols::default());
    let last = Flags::LAST | Flags::TOP_OF_BOOK;
    for (price, size) in [(10, 5), (9, 4)] {
        let change = applied(&mut books, &mbo(1, b'A', b'B', 0, price, size, last));
        let book = books.book(change.place.unwrap()).unwrap();
        assert_eq!(book.top.bid.map(|bid| (bid.price.0, bid.size)), Some((price, u64::from(size))));
    }
    let change = applied(&mut books, &mbo(1, b'A', b'B', 0, i64::MAX, 0, last));
    assert!(change.fields.bid && books.book(change.place.unwrap()).unwrap().top.bid.is_none());
}
