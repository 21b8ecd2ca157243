//! The books: random messages against a model without any index, and the rules one by one.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tapeline_feed::book::{BookSettings, Books, Change, Quote, Top};
use tapeline_feed::itch::encode::{self, PrefixFields, text};
use tapeline_feed::itch::{ByType, Code, Locate, MatchNumber, Price4, Side, decode};

/// A message in terms of the rules: letter, locate, two references, side, shares, price.
#[derive(Clone, Copy, Debug)]
struct Said {
    letter: u8,
    locate: u16,
    reference: u64,
    new_reference: u64,
    side: u8,
    shares: u32,
    price: u32,
}

impl Said {
    fn encode(self, ts_ns: u64) -> Vec<u8> {
        let Self { locate, reference, new_reference, side, shares, price, .. } = self;
        let prefix = PrefixFields { locate, tracking: 0, ts_ns };
        let (stock, match_number) = (text("TEST"), ts_ns);
        let mut bytes = vec![0; encode::LONGEST];
        let length = match self.letter {
            b'A' => encode::AddOrder { reference, side, shares, stock, price }.encode(prefix, &mut bytes),
            b'F' => encode::AddOrderAttributed {
                reference,
                side,
                shares,
                stock,
                price,
                attribution: text("MPID"),
            }
            .encode(prefix, &mut bytes),
            b'E' => encode::OrderExecuted { reference, shares, match_number }.encode(prefix, &mut bytes),
            b'C' => encode::OrderExecutedWithPrice {
                reference,
                shares,
                match_number,
                printable: self.printable(),
                price,
            }
            .encode(prefix, &mut bytes),
            b'X' => encode::OrderCancel { reference, shares }.encode(prefix, &mut bytes),
            b'D' => encode::OrderDelete { reference }.encode(prefix, &mut bytes),
            b'U' => {
                encode::OrderReplace { reference, new_reference, shares, price }.encode(prefix, &mut bytes)
            }
            b'P' => encode::Trade { reference: 0, side: b'B', shares, stock, price, match_number }
                .encode(prefix, &mut bytes),
            _ => encode::CrossTrade { shares: u64::from(shares), stock, price, match_number, cross: b'O' }
                .encode(prefix, &mut bytes),
        };
        bytes.truncate(length.unwrap());
        bytes
    }

    const fn printable(self) -> u8 {
        if self.side == b'S' { b'N' } else { b'Y' }
    }
}

fn said() -> impl Strategy<Value = Said> {
    let letter = prop::sample::select(&b"AAAAAAFEECXDUUPQ"[..]);
    let side = prop::sample::select(&b"BBBBBBBSSSSSSS?"[..]);
    (letter, 1_u16..4, 1_u64..25, 1_u64..25, side, 0_u32..8, 1_u32..12).prop_map(
        |(letter, locate, reference, new_reference, side, shares, price)| Said {
            letter,
            locate,
            reference,
            new_reference,
            side,
            shares,
            price,
        },
    )
}

/// All orders in a map; everything else is worked out from it when it is asked for.
#[derive(Default)]
struct Model {
    orders: BTreeMap<u64, (u16, Side, u32, u32)>,
    limit: usize,
    /// Traded, hidden, cross, not printable, trades, notional, by locate.
    volumes: BTreeMap<u16, [u64; 6]>,
    /// Unknown, duplicate, excess, side, no shares, refused, other locate.
    counts: [u64; 7],
    max: usize,
}

impl Model {
    fn levels(&self, locate: u16, side: Side) -> Vec<(u32, u64, u32)> {
        let mut levels = BTreeMap::new();
        for (_, (_, _, price, shares)) in self.orders.iter().filter(|(_, o)| o.0 == locate && o.1 == side) {
            let level: &mut (u64, u32) = levels.entry(*price).or_default();
            *level = (level.0 + u64::from(*shares), level.1 + 1);
        }
        let levels = levels.into_iter().map(|(price, (shares, orders))| (price, shares, orders));
        match side {
            Side::Bid => levels.rev().collect(),
            Side::Ask => levels.collect(),
        }
    }

    fn top(&self, locate: u16) -> Top {
        let best = |side| {
            let level = self.levels(locate, side).first().copied();
            level.map(|(price, shares, _)| Quote { price: Price4(price), shares })
        };
        Top { bid: best(Side::Bid), ask: best(Side::Ask) }
    }

    fn insert(&mut self, reference: u64, order: (u16, Side, u32, u32)) {
        if order.3 == 0 {
            self.counts[4] += 1;
        } else if self.orders.contains_key(&reference) {
            self.counts[1] += 1;
        } else if self.orders.len() >= self.limit {
            self.counts[5] += 1;
        } else {
            self.orders.insert(reference, order);
            self.max = self.max.max(self.orders.len());
        }
    }

    fn trade(&mut self, locate: u16, part: Option<usize>, price: u32, shares: u32) {
        let volume = self.volumes.entry(locate).or_default();
        let shares = u64::from(shares);
        volume[0] += shares;
        if let Some(part) = part {
            volume[part] += shares;
        }
        volume[4] += 1;
        volume[5] += shares * u64::from(price);
    }

    /// Gives the locate whose book is meant, and the print.
    fn apply(&mut self, said: Said) -> (u16, Option<(u32, u32)>) {
        let Said { letter, locate, reference, new_reference, side, shares, price } = said;
        match letter {
            b'A' | b'F' => {
                match Code(side).side() {
                    None => self.counts[3] += 1,
                    Some(side) => self.insert(reference, (locate, side, price, shares)),
                }
                return (locate, None);
            }
            b'P' | b'Q' if shares == 0 => self.counts[4] += 1,
            b'P' | b'Q' => {
                self.trade(locate, Some(if letter == b'P' { 1 } else { 2 }), price, shares);
                return (locate, Some((price, shares)));
            }
            b'E' | b'C' | b'X' if shares == 0 => self.counts[4] += 1,
            _ => {
                let Some(order) = self.orders.remove(&reference) else {
                    self.counts[0] += 1;
                    return (locate, None);
                };
                self.counts[6] += u64::from(order.0 != locate);
                let taken = shares.min(order.3);
                if matches!(letter, b'E' | b'C' | b'X') {
                    self.counts[2] += u64::from(shares > order.3);
                    if taken < order.3 {
                        self.orders.insert(reference, (order.0, order.1, order.2, order.3 - taken));
                    }
                }
                match letter {
                    b'U' => self.insert(new_reference, (order.0, order.1, price, shares)),
                    b'C' if said.printable() == b'N' => {
                        self.volumes.entry(order.0).or_default()[3] += u64::from(taken);
                    }
                    b'E' | b'C' => {
                        let price = if letter == b'C' { price } else { order.2 };
                        self.trade(order.0, None, price, taken);
                        return (order.0, Some((price, taken)));
                    }
                    _ => {}
                }
                return (order.0, None);
            }
        }
        (locate, None)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn random_messages_agree_with_the_model(messages in prop::collection::vec(said(), 1..200), limit in 1_usize..30) {
        let mut books = Books::new(BookSettings { max_orders: limit, reserve_orders: 0, ..BookSettings::default() });
        let mut model = Model { limit, ..Model::default() };
        for (ts_ns, said) in messages.into_iter().enumerate() {
            let before: BTreeMap<u16, Top> = (1..4).map(|locate| (locate, model.top(locate))).collect();
            let bytes = said.encode(ts_ns as u64);
            let change = books.apply(&decode(&bytes).unwrap());
            let (locate, print) = model.apply(said);
            prop_assert_eq!(change.locate, Locate(locate));
            prop_assert_eq!(change.print.map(|print| (print.price.0, print.shares)),
                print.map(|(price, shares)| (price, u64::from(shares))));
            for locate in 1..4 {
                let top = model.top(locate);
                if let Some(book) = books.book(Locate(locate)) {
                    prop_assert_eq!(book.top(), top);
                    for side in [Side::Bid, Side::Ask] {
                        let levels: Vec<_> =
                            book.levels(side).map(|level| (level.price.0, level.shares, level.orders)).collect();
                        prop_assert_eq!(levels, model.levels(locate, side));
                    }
                    let volume = book.volume();
                    let found = [volume.traded_shares, volume.hidden_shares, volume.cross_shares,
                        volume.nonprintable_shares, volume.trades, u64::try_from(volume.notional).unwrap()];
                    prop_assert_eq!(found, model.volumes.get(&locate).copied().unwrap_or_default());
                } else {
                    prop_assert_eq!(top, Top::default());
                }
                let changed = |of: fn(Quote) -> u64, side: fn(&Top) -> Option<Quote>| {
                    side(&before[&locate]).map(of) != side(&top).map(of)
                };
                let price = |quote: Quote| u64::from(quote.price.0);
                let shares = |quote: Quote| quote.shares;
                let wanted = [
                    changed(price, |top| top.bid), changed(shares, |top| top.bid),
                    changed(price, |top| top.ask), changed(shares, |top| top.ask),
                ];
                let found = if change.locate.0 == locate {
                    [change.bid, change.bid_size, change.ask, change.ask_size]
                } else {
                    [false; 4]
                };
                prop_assert_eq!(found, wanted, "stock {}", locate);
            }
            prop_assert_eq!(books.live_orders(), model.orders.len());
        }
        let counters = books.counters();
        let found = [
            &counters.unknown_reference, &counters.duplicate_reference, &counters.excess_shares,
            &counters.unknown_side, &counters.no_shares, &counters.refused, &counters.other_locate,
        ];
        prop_assert_eq!(found.map(ByType::total), model.counts);
        prop_assert_eq!(counters.max_live_orders, model.max);
    }
}

const SAID: Said =
    Said { letter: b'A', locate: 1, reference: 1, new_reference: 2, side: b'B', shares: 100, price: 10 };

fn apply(books: &mut Books, said: Said) -> Change {
    books.apply(&decode(&said.encode(7)).unwrap())
}

fn bid(books: &Books) -> Option<(u32, u64)> {
    books.book(Locate(1)).unwrap().top().bid.map(|quote| (quote.price.0, quote.shares))
}

#[test]
fn an_execution_that_may_not_be_printed_takes_shares_and_counts_no_volume() {
    let mut books = Books::new(BookSettings::default());
    assert!(apply(&mut books, SAID).bid);
    let change = apply(&mut books, Said { letter: b'C', side: b'S', shares: 30, price: 9, ..SAID });
    assert_eq!((change.print, change.bid, change.bid_size), (None, false, true));
    let change = apply(&mut books, Said { letter: b'C', shares: 30, price: 9, ..SAID });
    let print = change.print.unwrap();
    assert_eq!((print.price, print.shares, print.match_number), (Price4(9), 30, MatchNumber(7)));
    let volume = books.book(Locate(1)).unwrap().volume();
    assert_eq!((volume.traded_shares, volume.nonprintable_shares, volume.trades), (30, 30, 1));
    assert_eq!(bid(&books), Some((10, 40)));
}

#[test]
fn a_replacement_keeps_side_and_stock() {
    let mut books = Books::new(BookSettings::default());
    let _ = apply(&mut books, SAID);
    let change = apply(&mut books, Said { letter: b'U', side: b'S', shares: 50, price: 11, ..SAID });
    assert!(change.bid && change.bid_size && !change.ask);
    assert_eq!((bid(&books), books.live_orders()), (Some((11, 50)), 1));
    // The old reference is gone; a replacement of it adds nothing.
    let change = apply(&mut books, Said { letter: b'U', new_reference: 3, ..SAID });
    assert!(!change.is_any());
    assert_eq!(books.counters().unknown_reference.of(b'U'), 1);
    // At the limit a replacement still fits, since it takes the old one's place.
    let mut books = Books::new(BookSettings { max_orders: 1, reserve_orders: 1, ..BookSettings::default() });
    let _ = apply(&mut books, SAID);
    let _ = apply(&mut books, Said { letter: b'U', shares: 1, ..SAID });
    assert_eq!((bid(&books), books.counters().refused.total()), (Some((10, 1)), 0));
    let _ = apply(&mut books, Said { reference: 9, ..SAID });
    assert_eq!((books.live_orders(), books.counters().refused.of(b'A')), (1, 1));
}

#[test]
fn more_than_is_left_takes_what_is_left() {
    let mut books = Books::new(BookSettings::default());
    let _ = apply(&mut books, SAID);
    let change = apply(&mut books, Said { letter: b'E', shares: 101, ..SAID });
    assert_eq!(change.print.unwrap().shares, 100);
    assert_eq!((bid(&books), books.live_orders()), (None, 0));
    assert_eq!(books.counters().excess_shares.of(b'E'), 1);
}

#[test]
fn a_crossed_book_stays_crossed() {
    let mut books = Books::new(BookSettings::default());
    let _ = apply(&mut books, SAID);
    let _ = apply(&mut books, Said { reference: 2, side: b'S', price: 5, ..SAID });
    let top = books.book(Locate(1)).unwrap().top();
    assert!(top.bid.unwrap().price > top.ask.unwrap().price);
}

#[test]
fn names_come_from_the_directory_or_else_from_the_message() {
    let prefix = PrefixFields { locate: 1, tracking: 0, ts_ns: 0 };
    let mut books = Books::new(BookSettings::default());
    let _ = apply(&mut books, SAID);
    let _ = apply(&mut books, Said { letter: b'X', shares: 1, ..SAID });
    assert_eq!(books.book(Locate(1)).unwrap().symbol().to_string(), "TEST");
    assert!(!books.book(Locate(1)).unwrap().is_listed());
    let early = &books.counters().before_directory;
    assert_eq!((early.of(b'A'), early.of(b'X')), (1, 1));

    let mut bytes = [b' '; 39];
    bytes[..11].copy_from_slice(&[b'R', 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes[11..14].copy_from_slice(b"IBM");
    let _ = books.apply(&decode(&bytes).unwrap());
    let book = books.book(Locate(1)).unwrap();
    assert_eq!((book.symbol().to_string(), book.is_listed()), ("IBM".into(), true));
    assert_eq!(books.counters().renamed, 1);
    let _ = apply(&mut books, Said { letter: b'X', shares: 1, ..SAID });
    assert_eq!(books.counters().before_directory.total(), 2);

    let mut bytes = [0; 25];
    let halt = encode::TradingAction { stock: text("IBM"), state: b'H', reserved: b' ', reason: text("T1") };
    halt.encode(prefix, &mut bytes).unwrap();
    let halt = decode(&bytes).unwrap();
    assert!(books.apply(&halt).status);
    assert!(!books.apply(&halt).status, "nothing new");
    assert_eq!(books.book(Locate(1)).unwrap().trading_state(), Code(b'H'));
    assert_eq!(books.book(Locate(2)).map(|_| ()), None);
    books.clear();
    assert_eq!((books.iter().count(), books.live_orders()), (0, 0));
}

#[test]
fn a_broken_trade_is_taken_back_once() {
    let mut books = Books::new(BookSettings::default());
    let _ = apply(&mut books, SAID);
    // The match numbers of `encode` are its times.
    for (said, number) in [
        (Said { letter: b'E', shares: 30, ..SAID }, 1),
        (Said { letter: b'P', shares: 5, ..SAID }, 2),
        (Said { letter: b'Q', shares: 7, ..SAID }, 3),
        (Said { letter: b'C', side: b'S', shares: 1, ..SAID }, 4),
    ] {
        let _ = books.apply(&decode(&said.encode(number)).unwrap());
    }
    let sums = |books: &Books| {
        let volume = *books.book(Locate(1)).unwrap().volume();
        let parts = [volume.traded_shares, volume.hidden_shares, volume.cross_shares, volume.trades];
        (parts, volume.notional)
    };
    assert_eq!(sums(&books), ([42, 5, 7, 3], 420));
    let mut broken = |match_number| {
        let mut bytes = [0; 19];
        // Another locate: the trade's own counts.
        let prefix = PrefixFields { locate: 2, ..PrefixFields::default() };
        encode::BrokenTrade { match_number }.encode(prefix, &mut bytes).unwrap();
        let change = books.apply(&decode(&bytes).unwrap());
        assert!(change.correction && change.is_any(), "it is named all the same");
        assert_eq!(books.broken().match_number.0, match_number);
        let traded = books.broken().traded.map(|(_, shares)| shares);
        (traded, change.locate.0, sums(&books).0, books.counters().unknown_match)
    };
    assert_eq!(broken(2), (Some(5), 1, [37, 0, 7, 2], 0));
    assert_eq!(broken(2), (None, 2, [37, 0, 7, 2], 1), "once");
    assert_eq!(broken(1 + (1 << 16)), (None, 2, [37, 0, 7, 2], 2), "its place, but not its number");
    assert_eq!(broken(4), (None, 2, [37, 0, 7, 2], 3), "never counted");
    assert_eq!(broken(1), (Some(30), 1, [7, 0, 7, 1], 3));
    assert_eq!(broken(3), (Some(7), 1, [0, 0, 0, 0], 3));
}

#[test]
fn an_operational_halt_is_a_halt_here_only_if_it_is_nasdaqs() {
    let mut books = Books::new(BookSettings::default());
    let mut halt = |market, action| {
        let mut bytes = [0; 21];
        let halt = encode::OperationalHalt { stock: text("IBM"), market, action };
        halt.encode(PrefixFields { locate: 1, ..PrefixFields::default() }, &mut bytes).unwrap();
        let change = books.apply(&decode(&bytes).unwrap());
        (change.status, books.book(Locate(1)).unwrap().is_operationally_halted())
    };
    assert_eq!(halt(b'B', b'H'), (false, false));
    assert_eq!(halt(b'Q', b'H'), (true, true));
    assert_eq!(halt(b'Q', b'H'), (false, true));
    assert_eq!(halt(b'X', b'T'), (false, true));
    assert_eq!(halt(b'Q', b'T'), (true, false));
}
