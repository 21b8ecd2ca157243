//! TOPS and DEEP beyond the samples: any bytes at all, every type both ways, books against a model, rules one by one.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_feed::framing::MalformedDatagram;
use tapeline_feed::iex::encode::{self, text};
use tapeline_feed::iex::tp::{
    self, HEADER_BYTES, IexSession, MessageProtocol, SegmentBuilder, SegmentRefused,
};
use tapeline_feed::iex::{
    IexBooks, IexChange, IexMessage, IexMessageType, IexPrice, IexQuote, IexSettings, IexTop,
    MalformedIexMessage, decode,
};
use tapeline_feed::itch::{Side, Symbol};

/// Bytes that often look like a message: a letter of a type, then anything.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![
        (0..IexMessageType::ALL.len()).prop_map(|at| IexMessageType::ALL[at].letter()),
        any::<u8>()
    ];
    (letter, vec(any::<u8>(), 0..100)).prop_map(|(letter, rest)| [vec![letter], rest].concat())
}

const SESSION: IexSession = IexSession { protocol: MessageProtocol::DEEP_1_0, channel: 1, number: 9 };

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_message_is_known_unknown_or_short(bytes in message()) {
        let known = IexMessageType::of(bytes[0]);
        let mut books = IexBooks::new(IexSettings::default());
        match decode(&bytes) {
            Ok(message) => {
                let length = known.map_or(bytes.len(), IexMessageType::length);
                prop_assert_eq!((message.letter(), message.kind()), (bytes[0], known));
                prop_assert_eq!(message.bytes(), &bytes[..length]);
                prop_assert_eq!(message.extra_bytes(&bytes), bytes.len() - length);
                let ts_ns = known.map(|_| u64::from_le_bytes(bytes[2..10].try_into().unwrap()));
                prop_assert_eq!(message.ts_ns(), ts_ns);
                // Reads every field.
                let text = format!("{message:?}");
                prop_assert!(!text.is_empty());
                let change = books.apply(&message);
                prop_assert_eq!(change.instrument.is_some(), books.iter().len() == 1);
                prop_assert_eq!(change.new, change.instrument.is_some());
            }
            Err(MalformedIexMessage::Short { kind, length }) => {
                prop_assert_eq!((Some(kind), length), (known, bytes.len()));
                prop_assert!(length < kind.length());
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn what_is_packed_is_parsed(
        messages in vec(vec(any::<u8>(), 0..90), 0..40),
        first in 1..i64::MAX as u64 - 100,
        offset in 0..i64::MAX as u64 - 10_000,
        limit in HEADER_BYTES..400,
        extra in 0_usize..5,
    ) {
        let mut buffer = vec![0xEE; limit];
        let mut segment = SegmentBuilder::new(&mut buffer, SESSION, first, offset).unwrap();
        let mut taken = Vec::new();
        let mut used = HEADER_BYTES;
        for message in &messages {
            let block = 2 + message.len();
            let wanted = if HEADER_BYTES + block > limit {
                Err(SegmentRefused::TooLong)
            } else if used + block > limit {
                Err(SegmentRefused::Full)
            } else {
                used += block;
                taken.push(&message[..]);
                Ok(())
            };
            prop_assert_eq!(segment.push(message), wanted);
        }
        let next = segment.next();
        prop_assert_eq!(segment.finish(7), used);
        buffer.truncate(used);
        buffer.extend(vec![1; extra]);
        let segment = tp::parse(&buffer).unwrap();
        prop_assert_eq!((segment.session, segment.first, segment.offset), (SESSION, first, offset));
        prop_assert_eq!((segment.next(), segment.next_offset(), segment.trailing), (next.0, next.1, extra));
        prop_assert!(segment.messages.map(|(_, message)| message).eq(taken.iter().copied()));
        prop_assert!(segment.messages.map(|(sequence, _)| sequence).eq(first..next.0));
        // Cut anywhere, it is no segment any more.
        for cut in 0..used {
            prop_assert!(tp::parse(&buffer[..cut]).is_err());
        }
    }

    #[test]
    fn a_datagram_is_a_segment_or_has_a_reason(
        mut bytes in vec(0_u8..5, 0..120),
        version in 0_u8..3,
        payload in 0_u16..80,
        count in 0_u16..8,
    ) {
        for (at, value) in [(0, u16::from(version)), (12, payload), (14, count)] {
            if let Some(place) = bytes.get_mut(at..at + 2) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        match tp::parse(&bytes) {
            Ok(segment) => {
                let blocks: usize = segment.messages.map(|(_, message)| 2 + message.len()).sum();
                prop_assert_eq!(blocks, segment.blocks.len());
                prop_assert_eq!(HEADER_BYTES + blocks + segment.trailing, bytes.len());
                prop_assert_eq!(segment.messages.len(), usize::from(segment.count()));
                prop_assert_eq!(segment.is_heartbeat(), count == 0);
            }
            Err(MalformedDatagram::ShortHeader) => prop_assert!(bytes.len() < HEADER_BYTES),
            Err(reason) => {
                prop_assert!(bytes.len() >= HEADER_BYTES);
                prop_assert_eq!(MalformedDatagram::ALL[reason.index()].reason(), reason.reason());
            }
        }
    }

    #[test]
    fn books_are_those_of_a_model(said in vec(said(), 0..600), max_levels in prop::sample::select(vec![6, 12, 50])) {
        let settings = IexSettings { max_symbols: 3, max_levels };
        let mut books = IexBooks::new(settings);
        let mut model = Model::default();
        for (at, said) in said.into_iter().enumerate() {
            let bytes = said.encode(at as u64);
            let change = books.apply(&decode(&bytes).unwrap());
            model.apply(said, settings);
            let Some(instrument) = change.instrument else {
                prop_assert!(!model.symbols.contains_key(&said.symbol));
                continue;
            };
            let book = books.book(instrument).unwrap();
            let symbol = &model.symbols[&said.symbol];
            prop_assert_eq!(book.symbol, Symbol::new(NAMES[said.symbol]));
            for (side, levels) in [(Side::Bid, &symbol.bids), (Side::Ask, &symbol.asks)] {
                let mut wanted: Vec<_> = levels.iter().map(|(price, size)| (*price, *size)).collect();
                if side == Side::Bid {
                    wanted.reverse();
                }
                let found: Vec<_> = book.levels(side).map(|level| (level.price.0, level.size)).collect();
                prop_assert_eq!(found, wanted);
            }
            prop_assert_eq!(book.top, symbol.top);
            prop_assert_eq!(change.fields.bid, symbol.top.bid.price != symbol.before.bid.price
                || symbol.top.bid.is_some() != symbol.before.bid.is_some());
            prop_assert_eq!(change.fields.ask_size, symbol.top.ask.size != symbol.before.ask.size);
            prop_assert_eq!(change.fields.is_quote(), symbol.top != symbol.before);
            let volume = book.volume;
            prop_assert_eq!((volume.shares, volume.trades, volume.broken_trades), symbol.volume);
        }
        prop_assert_eq!(books.counters().no_level, model.no_level);
        prop_assert_eq!(books.counters().full_side, model.full_side);
        prop_assert_eq!(books.counters().refused, model.refused);
        books.clear();
        prop_assert_eq!(books.iter().len(), 0);
    }
}

/// Symbols, one more than there is room for.
const NAMES: [&str; 4] = ["A", "BRK.A", "ZXIET", "ABCDEFGH"];

/// A message in terms of the rules.
#[derive(Clone, Copy, Debug)]
struct Said {
    letter: u8,
    symbol: usize,
    complete: bool,
    size: u32,
    price: i64,
}

fn said() -> impl Strategy<Value = Said> {
    let letter = prop::sample::select(&b"888888555555QTTB"[..]);
    (letter, 0..NAMES.len(), prop::bool::weighted(0.8), 0_u32..5, -3_i64..12)
        .prop_map(|(letter, symbol, complete, size, price)| Said { letter, symbol, complete, size, price })
}

impl Said {
    fn encode(self, ts_ns: u64) -> Vec<u8> {
        let Self { letter, symbol, complete, size, price } = self;
        let (symbol, flags) = (text(NAMES[symbol]), u8::from(complete));
        let mut bytes = vec![0; encode::LONGEST];
        let length = match letter {
            b'8' => encode::BuyLevel { flags, symbol, size, price }.encode(ts_ns, &mut bytes),
            b'5' => encode::SellLevel { flags, symbol, size, price }.encode(ts_ns, &mut bytes),
            b'T' => {
                encode::TradeReport { flags, symbol, size, price, trade: ts_ns }.encode(ts_ns, &mut bytes)
            }
            b'B' => encode::TradeBreak { flags, symbol, size, price, trade: 1 }.encode(ts_ns, &mut bytes),
            _ => {
                encode::QuoteUpdate { flags, symbol, bid_size: size, bid: price, ask: price + 1, ask_size: 7 }
                    .encode(ts_ns, &mut bytes)
            }
        };
        bytes.truncate(length.unwrap());
        bytes
    }
}

/// Levels in maps; what is best is worked out when it is asked for.
#[derive(Default)]
struct Model {
    symbols: BTreeMap<usize, Modelled>,
    no_level: u64,
    full_side: u64,
    refused: u64,
}

#[derive(Default)]
struct Modelled {
    bids: BTreeMap<i64, u32>,
    asks: BTreeMap<i64, u32>,
    top: IexTop,
    before: IexTop,
    volume: (u64, u64, u64),
}

impl Model {
    fn apply(&mut self, said: Said, settings: IexSettings) {
        let Said { letter, symbol, complete, size, price } = said;
        if !self.symbols.contains_key(&symbol) && self.symbols.len() >= settings.max_symbols {
            self.refused += 1;
            return;
        }
        let at = self.symbols.entry(symbol).or_default();
        at.before = at.top;
        let quote =
            |price, size| if size == 0 { IexQuote::NONE } else { IexQuote { price: IexPrice(price), size } };
        match letter {
            b'8' | b'5' => {
                let levels = if letter == b'8' { &mut at.bids } else { &mut at.asks };
                if size == 0 {
                    self.no_level += u64::from(levels.remove(&price).is_none());
                } else {
                    levels.insert(price, size);
                }
                if levels.len() > settings.max_levels {
                    self.full_side += 1;
                    if letter == b'8' {
                        levels.pop_first()
                    } else {
                        levels.pop_last()
                    };
                }
                if complete {
                    let best =
                        |best: Option<(&i64, &u32)>| best.map_or(IexQuote::NONE, |(p, s)| quote(*p, *s));
                    at.top =
                        IexTop { bid: best(at.bids.last_key_value()), ask: best(at.asks.first_key_value()) };
                }
            }
            b'T' => (at.volume.0, at.volume.1) = (at.volume.0 + u64::from(size), at.volume.1 + 1),
            b'B' => {
                at.volume.0 = at.volume.0.saturating_sub(u64::from(size));
                at.volume.1 = at.volume.1.saturating_sub(1);
                at.volume.2 += 1;
            }
            _ => at.top = IexTop { bid: quote(price, size), ask: quote(price + 1, 7) },
        }
    }
}

/// Applies a message that was encoded into `bytes`.
fn apply(books: &mut IexBooks, bytes: &[u8], length: Option<usize>) -> IexChange {
    books.apply(&decode(&bytes[..length.unwrap()]).unwrap())
}

#[test]
fn no_top_is_told_within_an_event() {
    let mut books = IexBooks::new(IexSettings::default());
    let (symbol, mut bytes) = (text("ZIEXT"), [0; 40]);
    let mut buy = |flags, size, price| {
        let length = encode::BuyLevel { flags, symbol, size, price }.encode(1, &mut bytes);
        (apply(&mut books, &bytes, length), books.iter().next().unwrap().1.clone())
    };
    let (change, book) = buy(1, 100, 10);
    assert!(
        change.fields.bid && change.fields.bid_size && !change.fields.ask && change.new && book.is_settled()
    );
    // The level goes, and a worse one takes its place: nobody is told of the time between.
    let (change, book) = buy(0, 0, 10);
    assert!(!change.fields.is_any() && !book.is_settled());
    assert_eq!(book.top.bid, IexQuote { price: IexPrice(10), size: 100 });
    assert_eq!(book.levels(Side::Bid).len(), 0);
    let (change, book) = buy(1, 100, 9);
    assert!(change.fields.bid && !change.fields.bid_size && book.is_settled());
    assert_eq!(book.top.bid, IexQuote { price: IexPrice(9), size: 100 });
    // Other bits of the flags say nothing of the event.
    let (change, _) = buy(0xFE, 50, 9);
    assert!(!change.fields.is_any());
}

#[test]
fn what_is_said_of_a_security_is_kept() {
    let mut books = IexBooks::new(IexSettings::default());
    let (symbol, mut bytes) = (text("IPO"), [0; 80]);
    let status = |status, reason| encode::TradingStatus { status, symbol, reason: text(reason) };
    let length = status(b'H', "T1").encode(1, &mut bytes);
    assert!(apply(&mut books, &bytes, length).fields.status);
    assert!(!apply(&mut books, &bytes, length).fields.status, "nothing new");
    let length = status(b'H', "T2").encode(2, &mut bytes);
    assert!(apply(&mut books, &bytes, length).fields.status);
    let length = encode::OperationalHalt { status: b'O', symbol }.encode(3, &mut bytes);
    assert!(apply(&mut books, &bytes, length).fields.status);
    let length = encode::ShortSale { in_effect: 1, symbol, detail: b'A' }.encode(4, &mut bytes);
    assert!(!apply(&mut books, &bytes, length).fields.is_any());
    let directory =
        encode::SecurityDirectory { flags: 0x80, symbol, round_lot: 100, previous_close: -5, luld_tier: 2 };
    let length = directory.encode(5, &mut bytes);
    assert!(!apply(&mut books, &bytes, length).fields.is_any());
    for (kind, price) in [(b'Q', 10), (b'M', 20), (b'?', 30)] {
        let length = encode::OfficialPrice { kind, symbol, price }.encode(6, &mut bytes);
        assert!(!apply(&mut books, &bytes, length).fields.is_any());
    }
    let auction = encode::AuctionInformation {
        kind: b'I',
        symbol,
        paired: 1,
        reference: 2,
        indicative: 3,
        imbalance: 4,
        side: b'S',
        extensions: 5,
        scheduled_s: 6,
        book_clearing: 7,
        collar: 8,
        lower: 9,
        upper: 10,
    };
    let length = auction.encode(7, &mut bytes);
    let numbers = |at: usize| -> Vec<u8> { bytes[at..].iter().copied().filter(|byte| *byte != 0).collect() };
    assert_eq!(numbers(18), [1, 2, 3, 4, b'S', 5, 6, 7, 8, 9, 10], "in the specification's order");
    assert!(apply(&mut books, &bytes, length).fields.auction);
    let length = encode::SecurityEvent { event: b'O', symbol }.encode(8, &mut bytes);
    assert!(!apply(&mut books, &bytes, length).fields.is_any());
    let length = encode::RetailLiquidity { indicator: b'C', symbol }.encode(9, &mut bytes);
    assert!(!apply(&mut books, &bytes, length).fields.is_any());

    let (.., listing) = books.iter().next().unwrap();
    assert_eq!((listing.trading.0, listing.reason.as_str()), (b'H', "T2"));
    assert!(listing.is_halted_operationally());
    assert_eq!((listing.short_sale, listing.short_sale_detail.0), (Some(true), b'A'));
    assert_eq!((listing.official_open, listing.official_close), (Some(IexPrice(10)), Some(IexPrice(20))));
    assert_eq!((listing.event.0, listing.retail.0), (b'O', b'C'));
    let directory = listing.directory.unwrap();
    assert_eq!((directory.flags, directory.previous_close, directory.luld_tier), (0x80, IexPrice(-5), 2));
    let auction = listing.auction.unwrap();
    assert_eq!((auction.kind.0, auction.side.0, auction.collars), (b'I', b'S', (IexPrice(9), IexPrice(10))));
    assert_eq!((auction.paired, auction.imbalance, auction.scheduled_s), (1, 4, 6));
    assert_eq!(books.iter().len(), 1);
}

#[test]
fn a_symbol_of_nothing_has_no_book() {
    let mut books = IexBooks::new(IexSettings::default());
    let mut bytes = [0; 40];
    for symbol in [[0; 8], [b' '; 8]] {
        let length =
            encode::TradeReport { flags: 0, symbol, size: 1, price: 1, trade: 1 }.encode(1, &mut bytes);
        assert_eq!(apply(&mut books, &bytes, length), IexChange::default());
    }
    assert_eq!((books.counters().unnamed, books.iter().len()), (2, 0));
}

#[test]
fn an_unknown_type_and_a_longer_message_are_no_errors() {
    assert_eq!(decode(b"z12"), Ok(IexMessage::Unknown(b"z12")));
    assert_eq!(decode(b""), Err(MalformedIexMessage::Empty));
    let mut event = [0_u8; 20];
    (event[0], event[1]) = (b'S', b'?');
    let Ok(IexMessage::SystemEvent(view)) = decode(&event) else { panic!("it is a system event") };
    assert_eq!((view.event().0, view.bytes().len()), (b'?', 10));
    assert_eq!(
        decode(&event[..9]).unwrap_err().to_string(),
        "message type S (system event) has 10 bytes, 9 received"
    );
}

#[test]
fn whatever_is_expected_is_only_looked_at() {
    let mut books = IexBooks::new(IexSettings::default());
    let mut bytes = [0; 80];
    for number in 0..1_000 {
        let symbol = text(&format!("S{number}"));
        let level = encode::BuyLevel { flags: 1, symbol, size: 100, price: 10_000 };
        let length = level.encode(1, &mut bytes).unwrap();
        assert_eq!(books.expect(std::iter::once(&bytes[..length])), 0, "few books are near");
        let _ = books.apply(&decode(&bytes[..length]).unwrap());
    }
    let before = format!("{books:?}");
    let strange: [&[u8]; 5] = [&bytes[..30], b"", b"8", b"z", &[b'8'; 30]];
    assert_eq!(books.expect(strange.into_iter()), 5);
    assert_eq!(books.expect(std::iter::repeat_n(&bytes[..30], 40)), 32, "at most");
    assert_eq!(format!("{books:?}"), before);
}
