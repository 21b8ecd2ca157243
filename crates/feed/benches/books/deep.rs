//! IEX's DEEP: price levels of stocks.
//!
//! The flow: 92 % price levels (four in a hundred leave their event open, and the next one closes it), 5 % trades, each with the
//! level that it takes from, 3 % statuses, quotes and others; symbols in short bursts, few of them busy; some twenty levels a side.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;

use tapeline_feed::Framing;
use tapeline_feed::iex::encode::{self, LONGEST, text};
use tapeline_feed::iex::tp::{IexSession, MessageProtocol, SegmentBuilder, SegmentRefused};
use tapeline_feed::iex::{IexBooks, IexMessage, IexPrice, IexQuote, IexSettings, decode};
use tapeline_feed::itch::{Code, ItchText, Symbol};
use tapeline_feed::line::{self, Arbiter, Line, Sink};
use tapeline_feed::normalise::Iex;
use tapeline_measure::Nanos;

use crate::random::Random;
use crate::rows::{Rows, memory};
use crate::{Measuring, Size};

/// Levels a side that a symbol can have.
const DEPTH: usize = 64;

/// The generator's book of one symbol: sizes by distance from the middle.
#[derive(Clone)]
struct Made {
    symbol: [u8; 8],
    middle: i64,
    sizes: [[u32; DEPTH]; 2],
    top: [(i64, u32); 2],
    trades: u64,
}

impl Made {
    /// The best price and size of both sides.
    fn best(&self) -> [(i64, u32); 2] {
        [0, 1].map(|side| {
            let best = self.sizes[side].iter().position(|size| *size > 0);
            best.map_or((0, 0), |depth| (self.price(side, depth), self.sizes[side][depth]))
        })
    }

    const fn price(&self, side: usize, depth: usize) -> i64 {
        let distance = (depth as i64 + 1) * 100;
        if side == 0 { self.middle - distance } else { self.middle + distance }
    }
}

/// A made-up morning, as a file holds it, and what the books look like at its end.
struct Flow {
    file: Vec<u8>,
    messages: u64,
    top_changes: u64,
    tops: u64,
}

impl Flow {
    fn put(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let mut bytes = [0; LONGEST];
        let length = write(&mut bytes).unwrap();
        self.file.extend((length as u16).to_le_bytes());
        self.file.extend(&bytes[..length]);
        self.messages += 1;
    }

    fn level(&mut self, now: u64, side: usize, flags: u8, symbol: [u8; 8], size: u32, price: i64) {
        self.put(|out| match side {
            0 => encode::BuyLevel { flags, symbol, size, price }.encode(now, out),
            _ => encode::SellLevel { flags, symbol, size, price }.encode(now, out),
        });
    }
}

fn flow(messages: u64, symbols: u32, seed: u64) -> Flow {
    let mut random = Random::new(seed);
    let mut books: Vec<Made> = (0..symbols)
        .map(|number| Made {
            symbol: text(&format!("S{number}")),
            middle: 100_000 + random.below(5_000_000) as i64 / 100 * 100,
            sizes: [[0; DEPTH]; 2],
            top: [(0, 0); 2],
            trades: 0,
        })
        .collect();
    let mut flow = Flow { file: Vec::new(), messages: 0, top_changes: 0, tops: 0 };
    let mut now = 1_493_132_598_000_000_000;
    while flow.messages < messages {
        // The cube of a uniform number makes the first symbols the busiest.
        let uniform = random.below(1 << 20) as f64 / (1 << 20) as f64;
        let symbol = (uniform.powi(3) * f64::from(symbols)) as usize;
        for _ in 0..=random.below(4) {
            let book = &mut books[symbol];
            now += 1 + random.below(2_000);
            let side = random.below(2) as usize;
            // Near the best more often than far from it.
            let near = random.below(1 << 16).trailing_zeros() as usize + random.below(16) as usize;
            let mut depth = near.min(DEPTH - 1);
            match random.below(100) {
                0 => {
                    let status =
                        encode::TradingStatus { status: b'T', symbol: book.symbol, reason: *b"    " };
                    flow.put(|out| status.encode(now, out));
                    continue;
                }
                1 => {
                    let test = encode::ShortSale { in_effect: 0, symbol: book.symbol, detail: b' ' };
                    flow.put(|out| test.encode(now, out));
                    continue;
                }
                2..7 if book.sizes[side].iter().any(|size| *size > 0) => {
                    depth = book.sizes[side].iter().position(|size| *size > 0).unwrap();
                    let size = 1 + random.below(u64::from(book.sizes[side][depth])) as u32;
                    let price = book.price(side, depth);
                    book.trades += 1;
                    let (symbol, trade) = (book.symbol, flow.messages);
                    let trade = encode::TradeReport { flags: 0, symbol, size, price, trade };
                    flow.put(|out| trade.encode(now, out));
                    book.sizes[side][depth] -= size;
                }
                _ => {
                    let there = book.sizes[side][depth] > 0;
                    book.sizes[side][depth] = match random.below(10) {
                        0..5 if there => 0,
                        _ => 100 * (1 + random.below(50)) as u32,
                    };
                }
            }
            let complete = random.below(25) != 0;
            let (symbol, size, price) = (book.symbol, book.sizes[side][depth], book.price(side, depth));
            let flags = u8::from(complete);
            flow.level(now, side, flags, symbol, size, price);
            if !complete {
                // The event goes on at the other side, and ends.
                let (side, depth) = (1 - side, near.min(DEPTH - 1));
                book.sizes[side][depth] = 100;
                let price = book.price(side, depth);
                flow.level(now, side, 1, symbol, 100, price);
            }
            let top = book.best();
            flow.top_changes += u64::from(top != book.top);
            book.top = top;
        }
    }
    for book in &books {
        flow.tops = fold(flow.tops, book.symbol, book.top[0], book.top[1]);
    }
    flow
}

/// Mixes a symbol's top into a sum that does not depend on the order of symbols.
fn fold(sum: u64, symbol: [u8; 8], bid: (i64, u32), ask: (i64, u32)) -> u64 {
    let mut one = u64::from_le_bytes(symbol);
    for part in [bid.0 as u64, u64::from(bid.1), ask.0 as u64, u64::from(ask.1)] {
        one = (one ^ part).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }
    // A symbol that was never met has no top.
    if bid.1 | ask.1 == 0 { sum } else { sum.wrapping_add(one) }
}

/// The same messages in segments, one behind another, each behind its length.
fn packed(file: &[u8]) -> Vec<u8> {
    let session = IexSession { protocol: MessageProtocol::DEEP_1_0, channel: 1, number: 1 };
    let mut out = Vec::with_capacity(file.len() + file.len() / 16);
    let mut buffer = [0; 1_400];
    let (mut next, mut messages) = ((1, 0), Frames(file).peekable());
    while messages.peek().is_some() {
        let mut segment = SegmentBuilder::new(&mut buffer, session, next.0, next.1).unwrap();
        while let Some(message) = messages.peek() {
            match segment.push(message) {
                Ok(()) => messages.next(),
                Err(SegmentRefused::Full) => break,
                Err(other) => panic!("{other}"),
            };
        }
        next = segment.next();
        let length = segment.finish(next.0);
        out.extend((length as u16).to_le_bytes());
        out.extend(&buffer[..length]);
    }
    out
}

/// Pieces one behind another, each behind its length.
struct Frames<'a>(&'a [u8]);

impl<'a> Iterator for Frames<'a> {
    type Item = &'a [u8];

    #[inline(always)]
    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.0.split_first_chunk()?;
        let (message, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        self.0 = rest;
        Some(message)
    }
}

#[inline(never)]
fn framing(file: &[u8]) -> u64 {
    Frames(file).fold(0, |sum, message| sum + message.len() as u64)
}

/// What a person would write without a library: one `match`, fields by their places.
#[inline(never)]
fn switch(file: &[u8]) -> u64 {
    #[inline(always)]
    fn n1<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(m[at])
    }
    #[inline(always)]
    fn n4<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(u32::from_le_bytes([m[at], m[at + 1], m[at + 2], m[at + 3]]))
    }
    #[inline(always)]
    fn n8<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        (n4(m, at + 4) << 32) | n4(m, at)
    }
    #[inline(always)]
    fn message<const L: usize>(m: &[u8], read: impl FnOnce(&[u8; L]) -> u64) -> u64 {
        m.first_chunk().map_or(0, |m| n1(m, 1).wrapping_add(n8(m, 2)).wrapping_add(read(m)))
    }
    macro_rules! sum {
        ($($read:ident $at:literal),*) => { |m| 0_u64 $(.wrapping_add($read(m, $at)))* };
    }
    let mut sum = 0_u64;
    for m in Frames(file) {
        sum = sum.wrapping_add(match m.first() {
            Some(b'8' | b'5') => message::<30>(m, sum!(n8 10, n4 18, n8 22)),
            Some(b'T' | b'B') => message::<38>(m, sum!(n8 10, n4 18, n8 22, n8 30)),
            Some(b'Q') => message::<42>(m, sum!(n8 10, n4 18, n8 22, n8 30, n4 38)),
            Some(b'H') => message::<22>(m, sum!(n8 10, n4 18)),
            Some(b'P') => message::<19>(m, sum!(n8 10, n1 18)),
            Some(b'O' | b'E' | b'I') => message::<18>(m, sum!(n8 10)),
            Some(b'X') => message::<26>(m, sum!(n8 10, n8 18)),
            Some(b'D') => message::<31>(m, sum!(n8 10, n4 18, n8 22, n1 30)),
            Some(b'S') => message::<10>(m, |_| 0),
            _ => 0,
        });
    }
    sum
}

/// A field as a number to be summed.
trait Number {
    fn number(self) -> u64;
}

impl Number for u8 {
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u32 {
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Number for Code {
    fn number(self) -> u64 {
        u64::from(self.0)
    }
}

impl Number for IexPrice {
    fn number(self) -> u64 {
        self.0 as u64
    }
}

impl Number for Symbol {
    fn number(self) -> u64 {
        u64::from_le_bytes(self.0)
    }
}

impl Number for ItchText<4> {
    fn number(self) -> u64 {
        u64::from(u32::from_le_bytes(self.0))
    }
}

#[inline(never)]
fn decode_all(file: &[u8]) -> u64 {
    macro_rules! fields {
        ($message:expr, $($name:ident { $($field:ident),* })*) => {
            match $message {
                $(Ok(IexMessage::$name(m)) => m.ts_ns() $(.wrapping_add(m.$field().number()))*,)*
                _ => 0,
            }
        };
    }
    Frames(file).fold(0, |sum, bytes| {
        sum.wrapping_add(fields! { decode(bytes),
            PriceLevel { flags, symbol, size, price }
            TradeReport { flags, symbol, size, price, trade }
            TradeBreak { flags, symbol, size, price, trade }
            QuoteUpdate { flags, symbol, bid_size, bid, ask, ask_size }
            TradingStatus { status, symbol, reason }
            ShortSale { in_effect, symbol, detail }
            OperationalHalt { status, symbol }
            SecurityEvent { event, symbol }
            RetailLiquidity { indicator, symbol }
            OfficialPrice { kind, symbol, price }
            SecurityDirectory { flags, symbol, round_lot, previous_close, luld_tier }
            SystemEvent { event }
        })
    })
}

#[inline(never)]
fn books(file: &[u8], books: &mut IexBooks) -> u64 {
    let mut changes = 0;
    for bytes in Frames(file) {
        if let Ok(message) = decode(bytes) {
            changes += u64::from(books.apply(&message).fields.is_quote());
        }
    }
    changes
}

/// As [`books`], 32 messages expected at a time.
#[inline(never)]
fn expected(file: &[u8], books: &mut IexBooks) -> u64 {
    let (mut changes, mut frames) = (0, Frames(file));
    loop {
        let count = books.expect(Frames(frames.0)).max(1);
        for _ in 0..count {
            let Some(bytes) = frames.next() else { return changes };
            if let Ok(message) = decode(bytes) {
                changes += u64::from(books.apply(&message).fields.is_quote());
            }
        }
    }
}

/// As [`books`], but the processor cannot begin with a message before it is done with the one before.
#[inline(never)]
fn alone(file: &[u8], books: &mut IexBooks) -> u64 {
    let (mut changes, mut rest) = (0, file);
    loop {
        let mut frames = Frames(rest);
        let Some(bytes) = frames.next() else { return changes };
        let change = decode(bytes).map(|message| books.apply(&message)).unwrap_or_default();
        changes += u64::from(change.fields.is_quote());
        // Nothing is cut off; but that depends on the change.
        let none = usize::from(black_box(change.fields.is_quote() && !change.fields.is_any()));
        rest = &frames.0[none..];
    }
}

#[inline(never)]
fn normalise(file: &[u8], normaliser: &mut Iex) -> u64 {
    let mut sum = 0_u64;
    for bytes in Frames(file) {
        if let Some(draft) = normaliser.apply(bytes).ok().and_then(|applied| applied.change) {
            sum = sum.wrapping_add(black_box(&draft).trades + 1);
        }
    }
    sum
}

struct Taken {
    sum: u64,
    normaliser: Iex,
}

impl Sink for Taken {
    #[inline]
    fn run(&mut self, mut messages: line::Messages<'_>, received: Nanos) {
        loop {
            let expected = self.normaliser.expect(messages.map(|(_, bytes)| bytes)).max(1);
            for _ in 0..expected {
                let Some((sequence, bytes)) = messages.next() else { return };
                self.message(sequence, bytes, received);
            }
        }
    }

    #[inline]
    fn message(&mut self, _sequence: u64, bytes: &[u8], _received: Nanos) {
        if let Some(draft) = self.normaliser.apply(bytes).ok().and_then(|applied| applied.change) {
            self.sum = self.sum.wrapping_add(black_box(&draft).trades + 1);
        }
    }

    fn gap(&mut self, first: u64, last: u64) {
        panic!("{first} to {last} are missing");
    }

    fn end_of_session(&mut self, _next: u64) {}

    fn reset(&mut self, _session: line::Session) {}
}

fn channel(segments: &[u8], (arbiter, taken): &mut (Arbiter, Taken)) -> u64 {
    for (time, segment) in Frames(segments).enumerate() {
        for line in [Line::A, Line::B] {
            arbiter.datagram(line, segment, Nanos(time as u64), taken).unwrap();
        }
    }
    taken.sum
}

/// What a person would write with the collections of the standard library: a map of symbols, and for each side a sorted map of levels.
#[inline(never)]
fn plain(file: &[u8], books: &mut PlainBooks) -> u64 {
    let mut changes = 0;
    for bytes in Frames(file) {
        let (side, level) = match (bytes.first(), decode(bytes)) {
            (Some(b'8'), Ok(IexMessage::PriceLevel(level))) => (0, level),
            (_, Ok(IexMessage::PriceLevel(level))) => (1, level),
            _ => continue,
        };
        let book = books.entry(level.symbol().0).or_default();
        // The best bid is the highest price, and so the last by its negative too.
        let price = if side == 0 { -level.price().0 } else { level.price().0 };
        match level.size() {
            0 => _ = book.sides[side].remove(&price),
            size => _ = book.sides[side].insert(price, size),
        }
        if level.flags() & 1 != 0 {
            let top = book.best();
            changes += u64::from(top != book.top);
            book.top = top;
        }
    }
    changes
}

type PlainBooks = HashMap<[u8; 8], PlainBook>;

/// Levels by price, the best first: bids by their negative price.
#[derive(Default)]
struct PlainBook {
    sides: [BTreeMap<i64, u32>; 2],
    top: [(i64, u32); 2],
}

impl PlainBook {
    fn best(&self) -> [(i64, u32); 2] {
        let first =
            |side: usize| self.sides[side].first_key_value().map_or((0, 0), |(price, size)| (*price, *size));
        let (bid, ask) = (first(0), first(1));
        [(-bid.0, bid.1), ask]
    }
}

/// Measures DEEP.
pub(crate) fn measure(measuring: &Measuring, size: &Size) -> Rows {
    let flow = flow(measuring.messages, size.symbols, measuring.seed);
    let (file, segments) = (&flow.file, packed(&flow.file));
    let mut rows = Rows::new(measuring.clock, flow.messages);
    for _ in 0..measuring.runs {
        rows.time("all bytes summed as words of eight", || memory(file));
        rows.time("from length to length, lengths summed", || framing(file));
        let by_hand = rows.time("hand-written `match`, every field summed", || switch(file));
        let decoded = rows.time("ours: views, every field summed", || decode_all(file));
        assert_eq!(by_hand, decoded, "both read the same fields");
        let mut state = PlainBooks::new();
        let changes =
            rows.time("hash map of symbols, sorted maps of levels, our views", || plain(file, &mut state));
        assert_eq!(changes, flow.top_changes, "the generator's changes at the top");
        let tops = state.iter().fold(0, |sum, (symbol, book)| fold(sum, *symbol, book.top[0], book.top[1]));
        assert_eq!(tops, flow.tops, "the generator's books");
        for (what, way) in [
            ("ours: books, message by message", books as fn(&[u8], &mut IexBooks) -> u64),
            ("ours: books, 32 messages expected at a time", expected),
            ("ours: books, each message only behind the one before", alone),
        ] {
            let mut state = IexBooks::new(IexSettings::default());
            let changes = rows.time(what, || way(file, &mut state));
            assert_eq!(changes, flow.top_changes, "the generator's changes at the top");
            let top = |quote: IexQuote| (quote.price.0, quote.size);
            let tops = state
                .iter()
                .fold(0, |sum, (_, book, _)| fold(sum, book.symbol.0, top(book.top.bid), top(book.top.ask)));
            assert_eq!(tops, flow.tops, "the generator's books");
            assert_eq!((state.counters().no_level, state.counters().full_side), (0, 0));
        }
        let mut normaliser = Iex::new(IexSettings::default());
        let drafts =
            rows.time("ours: books, and a draft of each update", || normalise(file, &mut normaliser));
        let settings = line::ArbiterSettings { framing: Framing::IexTp, ..line::ArbiterSettings::default() };
        let taken = Taken { sum: 0, normaliser: Iex::new(IexSettings::default()) };
        let mut whole = (Arbiter::new(settings), taken);
        let arrived = rows.time("ours: segments on two lines, arbitration, books, drafts", || {
            channel(&segments, &mut whole)
        });
        assert_eq!(drafts, arrived, "every message arrives once");
    }
    rows.title = format!(
        "DEEP, {}: {} messages, {} bytes, {} symbols; {} changes of a best price or size",
        size.name,
        flow.messages,
        file.len(),
        size.symbols,
        flow.top_changes
    );
    rows
}
