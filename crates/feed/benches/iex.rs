//! How fast IEX's DEEP is read: million messages a second on one core, made-up messages in memory, each behind its length.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench iex -- [--messages N] [--symbols N] [--seed N] [--core N] [--runs N] [--json]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `memory` | sums the file as words of 64 bits: the floor of anything that reads it |
//! | `framing` | steps from length to length and sums them: the floor of any sequential reading |
//! | `switch` | a hand-written `match` on the type byte; every field read and summed: the yardstick |
//! | `decode` | the same with this crate's decoder and views; the same sum |
//! | `books` | decode, and the price levels of all symbols with their top of book, changes counted |
//! | `normalise` | decode, books, and a draft of every update |
//! | `channel` | segments of 1,400 bytes on two lines: parse, arbitrate, decode, books, drafts |
//! | `alone` | `books`, each message only when the one before is done, as it is when messages come one by one |
//!
//! Each figure is min / median / max over the runs, which take turns. `switch` and `decode` have to agree on the sum of
//! all fields, and `books` on the number of changes at the top and on the final tops of the generator's own books.
//!
//! The flow: 92 % price levels (four in a hundred leave their event open, and the next one closes it), 5 % trades, each with the
//! level that it takes from, 3 % statuses, quotes and others; symbols in short bursts, few of them busy; some twenty levels a side.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::hint::black_box;

use tapeline_feed::Framing;
use tapeline_feed::iex::encode::{self, LONGEST, text};
use tapeline_feed::iex::tp::{IexSession, MessageProtocol, SegmentBuilder, SegmentRefused};
use tapeline_feed::iex::{IexBooks, IexMessage, IexPrice, IexQuote, IexSettings, decode};
use tapeline_feed::itch::{Code, ItchText, Symbol};
use tapeline_feed::line::{self, Arbiter, Line, Sink};
use tapeline_feed::normalise::Iex;
use tapeline_measure::{Clock, Nanos, cores, pin, ticks_ordered};

#[derive(Clone, Copy)]
struct Options {
    messages: u64,
    symbols: usize,
    seed: u64,
    core: Option<usize>,
    runs: usize,
    json: bool,
}

fn options() -> Options {
    let core = cores().last().copied();
    let mut options = Options { messages: 20_000_000, symbols: 500, seed: 1, core, runs: 5, json: false };
    let mut benched = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.replace(['_', ','], "").parse::<u64>().unwrap_or_else(|_| {
                eprintln!("iex: {argument} needs a number, not {value:?}");
                std::process::exit(2);
            })
        };
        match argument.as_str() {
            "--messages" => options.messages = number(),
            "--symbols" => options.symbols = number().clamp(1, 16_000) as usize,
            "--seed" => options.seed = number(),
            "--core" => options.core = Some(number() as usize),
            "--runs" => options.runs = number().max(1) as usize,
            "--json" => options.json = true,
            "--bench" => benched = true,
            other => {
                eprintln!("iex: unknown option {other}");
                std::process::exit(2);
            }
        }
    }
    if !benched {
        // Run as a test: enough to see that it works.
        (options.messages, options.runs) = (options.messages.min(50_000), 1);
    }
    options
}

/// Numbers that look random; the generator of Marsaglia's "Xorshift RNGs" (2003), with shifts 13, 7, 17.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

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

fn flow(options: &Options) -> Flow {
    let mut random = Random(options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let mut books: Vec<Made> = (0..options.symbols)
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
    while flow.messages < options.messages {
        // The cube of a uniform number makes the first symbols the busiest.
        let uniform = random.below(1 << 20) as f64 / (1 << 20) as f64;
        let symbol = (uniform.powi(3) * options.symbols as f64) as usize;
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
fn memory(file: &[u8]) -> u64 {
    file.as_chunks().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
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

/// Rates in million messages a second by what was measured, in the order of measuring.
struct Bench {
    clock: Clock,
    messages: u64,
    rows: Vec<(&'static str, Vec<f64>, u64)>,
}

impl Bench {
    fn time(&mut self, what: &'static str, work: impl FnOnce() -> u64) {
        let start = ticks_ordered();
        let sum = black_box(work());
        let ns = self.clock.ns_between(start, ticks_ordered());
        let rate = self.messages as f64 * 1e3 / ns as f64;
        match self.rows.iter_mut().find(|(row, ..)| *row == what) {
            Some((_, rates, first)) => {
                assert_eq!(*first, sum, "{what} is not the same each time");
                rates.push(rate);
                rates.sort_by(f64::total_cmp);
            }
            None => self.rows.push((what, vec![rate], sum)),
        }
    }

    fn sum(&self, what: &str) -> u64 {
        self.rows.iter().find(|(row, ..)| *row == what).unwrap().2
    }
}

fn main() {
    let options = options();
    // Best effort: a bench on a wandering thread is still a bench.
    let pinned = options.core.filter(|core| pin(*core).is_ok());
    let flow = flow(&options);
    let (file, segments) = (&flow.file, packed(&flow.file));
    let mut bench = Bench { clock: Clock::calibrate(), messages: flow.messages, rows: Vec::new() };
    for _ in 0..options.runs {
        bench.time("memory", || memory(file));
        bench.time("framing", || framing(file));
        bench.time("switch", || switch(file));
        bench.time("decode", || decode_all(file));
        for (what, way) in [("books", books as fn(&[u8], &mut IexBooks) -> u64), ("alone", alone)] {
            let mut state = IexBooks::new(IexSettings::default());
            bench.time(what, || way(file, &mut state));
            let top = |quote: IexQuote| (quote.price.0, quote.size);
            let tops = state
                .iter()
                .fold(0, |sum, (_, book, _)| fold(sum, book.symbol.0, top(book.top.bid), top(book.top.ask)));
            assert_eq!(tops, flow.tops, "the generator's books");
            assert_eq!((state.counters().no_level, state.counters().full_side), (0, 0));
        }
        let mut normaliser = Iex::new(IexSettings::default());
        bench.time("normalise", || normalise(file, &mut normaliser));
        let settings = line::ArbiterSettings { framing: Framing::IexTp, ..line::ArbiterSettings::default() };
        let taken = Taken { sum: 0, normaliser: Iex::new(IexSettings::default()) };
        let mut whole = (Arbiter::new(settings), taken);
        bench.time("channel", || channel(&segments, &mut whole));
    }
    assert_eq!(bench.sum("switch"), bench.sum("decode"), "both read the same fields");
    assert_eq!(bench.sum("books"), flow.top_changes, "the generator's changes at the top");
    assert_eq!(bench.sum("normalise"), bench.sum("channel"), "every message arrives once");
    print(&options, pinned, &flow, &bench);
}

fn print(options: &Options, pinned: Option<usize>, flow: &Flow, bench: &Bench) {
    let Options { symbols, seed, runs, .. } = options;
    let (messages, bytes) = (flow.messages, flow.file.len());
    if options.json {
        let rows: Vec<_> = bench.rows.iter().map(|(what, rates, sum)| {
            serde_json::json!({ "what": what, "million_per_second": rates, "sum": format!("{sum:016x}") })
        }).collect();
        println!(
            "{}",
            serde_json::json!({
                "bench": "iex", "messages": messages, "bytes": bytes, "symbols": symbols, "seed": seed, "runs": runs,
                "core": pinned, "top_changes": flow.top_changes, "rows": rows,
            })
        );
        return;
    }
    let core = pinned.map_or("not pinned".into(), |core| format!("core {core}"));
    println!("{messages} messages, {bytes} bytes, {symbols} symbols, seed {seed}, {runs} runs, {core}");
    println!("{} changes at the top of a book", flow.top_changes);
    println!("{:<10} {:>8} {:>8} {:>8} M/s {:>8} ns  {:<16}", "", "min", "median", "max", "median", "sum");
    for (what, rates, sum) in &bench.rows {
        let (min, median, max) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
        println!("{what:<10} {min:>8.1} {median:>8.1} {max:>8.1}     {:>8.2}     {sum:016x}", 1e3 / median);
    }
}
