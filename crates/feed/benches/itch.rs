//! How fast ITCH is read: million messages a second on one core, simulated messages in memory, each behind its length.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench itch -- [--messages N] [--symbols N] [--live N] [--seed N] [--core N] [--runs N] [--json]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `framing` | steps from length to length and sums them: the floor of any sequential reading |
//! | `switch` | a hand-written `match` on the type byte; every field read and summed: the yardstick |
//! | `decode` | the same with this crate's framing, decoder and views; the same sum |
//! | `copy` | as `decode`, into a record of 64 bytes in a ring of 512 of them |
//! | `books` | decode, and the books of all symbols with their changes counted |
//! | `normalise` | decode, books, and a draft of every update |
//! | `arbitrate` | packets of 1,400 bytes on one line: parse, arbitrate, sum the lengths |
//! | `channel` | packets on two lines: parse, arbitrate, decode, books, drafts |
//!
//! Each figure is min / median / max over the runs; the first four take turns. A sum over everything that was read is printed, so that nothing can be
//! left out, and `switch` and `decode` have to agree on it.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::hint::black_box;

use tapeline_feed::book::{Books, Settings};
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::itch::framing::{Frames, Framing};
use tapeline_feed::itch::{Code, Locate, MatchNumber, Message, OrderRef, Price4, Price8, Text, decode};
use tapeline_feed::line::{self, Arbiter, Line, Sink};
use tapeline_feed::moldudp64::{DEFAULT_PACKET_BYTES, PacketBuilder, Refused, Session};
use tapeline_feed::normalise::{Itch, Normaliser};
use tapeline_feed::simulate::{self, Exchange};
use tapeline_measure::{Clock, Nanos, cores, pin, ticks_ordered};

struct Options {
    messages: u64,
    symbols: u16,
    live: u32,
    seed: u64,
    core: Option<usize>,
    runs: usize,
    json: bool,
}

fn options() -> Options {
    let mut options = Options {
        messages: 20_000_000,
        symbols: 500,
        live: 400_000,
        seed: 1,
        core: cores().last().copied(),
        runs: 5,
        json: false,
    };
    let mut benched = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.replace(['_', ','], "").parse::<u64>().unwrap_or_else(|_| {
                eprintln!("itch: {argument} needs a number, not {value:?}");
                std::process::exit(2);
            })
        };
        match argument.as_str() {
            "--messages" => options.messages = number(),
            "--symbols" => options.symbols = number() as u16,
            "--live" => options.live = number() as u32,
            "--seed" => options.seed = number(),
            "--core" => options.core = Some(number() as usize),
            "--runs" => options.runs = number().max(1) as usize,
            "--json" => options.json = true,
            "--bench" => benched = true,
            other => {
                eprintln!("itch: unknown option {other}");
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

/// Simulated messages, as a file holds them.
fn simulated(options: &Options) -> Vec<u8> {
    let settings =
        simulate::Settings { seed: options.seed, symbols: options.symbols, live_orders: options.live };
    let mut exchange = Exchange::new(settings);
    let mut file = Vec::with_capacity(options.messages as usize * 33);
    let mut message = [0; LONGEST];
    for number in 0..options.messages {
        // From half past nine on, a message a microsecond.
        let length = exchange.next(34_200_000_000_000 + number * 1_000, &mut message).unwrap();
        file.extend((length as u16).to_be_bytes());
        file.extend(&message[..length]);
    }
    file
}

/// The same messages in packets, one behind another, each behind its length.
fn packed(file: &[u8]) -> Vec<u8> {
    let session = Session::new("BENCH");
    let mut out = Vec::with_capacity(file.len() + file.len() / 16);
    let mut buffer = [0; DEFAULT_PACKET_BYTES];
    let mut frames = Frames::with(file, Framing::Length).peekable();
    let mut sequence = 1;
    while frames.peek().is_some() {
        let mut packet = PacketBuilder::new(&mut buffer, session, sequence).unwrap();
        while let Some(message) = frames.peek() {
            match packet.push(message) {
                Ok(()) => frames.next(),
                Err(Refused::Full) => break,
                Err(other) => panic!("{other}"),
            };
        }
        sequence = packet.next_sequence();
        let length = packet.finish();
        out.extend((length as u16).to_be_bytes());
        out.extend(&buffer[..length]);
    }
    out
}

#[inline(never)]
fn framing(file: &[u8]) -> u64 {
    let mut sum = 0;
    for message in Frames::with(file, Framing::Length) {
        sum += message.len() as u64;
    }
    sum
}

/// What a person would write without a library: one `match`, fields by their places.
#[inline(never)]
fn switch(file: &[u8]) -> u64 {
    #[inline(always)]
    fn n1<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(m[at])
    }
    #[inline(always)]
    fn n2<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(u16::from_be_bytes([m[at], m[at + 1]]))
    }
    #[inline(always)]
    fn n4<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        u64::from(u32::from_be_bytes([m[at], m[at + 1], m[at + 2], m[at + 3]]))
    }
    #[inline(always)]
    fn n8<const L: usize>(m: &[u8; L], at: usize) -> u64 {
        let [.., a, b, c, d] = [0, m[at], m[at + 1], m[at + 2], m[at + 3]];
        u64::from(u32::from_be_bytes([a, b, c, d])) << 32 | n4(m, at + 4)
    }
    #[inline(always)]
    fn prefix<const L: usize>(m: &[u8; L]) -> u64 {
        n2(m, 1).wrapping_add(n2(m, 3)).wrapping_add(n2(m, 5) << 32 | n4(m, 7))
    }
    #[inline(always)]
    fn message<const L: usize>(m: &[u8], read: impl FnOnce(&[u8; L]) -> u64) -> u64 {
        m.first_chunk().map_or(0, |m| prefix(m).wrapping_add(read(m)))
    }
    macro_rules! sum {
        ($($read:ident $at:literal),*) => { |m| 0_u64 $(.wrapping_add($read(m, $at)))* };
    }
    let mut sum = 0_u64;
    let mut rest = file;
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        let Some((m, after)) = after.split_at_checked(length) else { break };
        rest = after;
        let Some(kind) = m.first() else { break };
        sum = sum.wrapping_add(match kind {
            b'A' => message::<36>(m, sum!(n8 11, n1 19, n4 20, n8 24, n4 32)),
            b'D' => message::<19>(m, sum!(n8 11)),
            b'E' => message::<31>(m, sum!(n8 11, n4 19, n8 23)),
            b'U' => message::<35>(m, sum!(n8 11, n8 19, n4 27, n4 31)),
            b'X' => message::<23>(m, sum!(n8 11, n4 19)),
            b'P' => message::<44>(m, sum!(n8 11, n1 19, n4 20, n8 24, n4 32, n8 36)),
            b'F' => message::<40>(m, sum!(n8 11, n1 19, n4 20, n8 24, n4 32, n4 36)),
            b'C' => message::<36>(m, sum!(n8 11, n4 19, n8 23, n1 31, n4 32)),
            b'Q' => message::<40>(m, sum!(n8 11, n8 19, n4 27, n8 31, n1 39)),
            b'I' => message::<50>(m, sum!(n8 11, n8 19, n1 27, n8 28, n4 36, n4 40, n4 44, n1 48, n1 49)),
            b'S' => message::<12>(m, sum!(n1 11)),
            b'R' => message::<39>(
                m,
                sum!(n8 11, n1 19, n1 20, n4 21, n1 25, n1 26, n2 27, n1 29, n1 30, n1 31, n1 32, n1 33, n4 34, n1 38),
            ),
            b'H' => message::<25>(m, sum!(n8 11, n1 19, n1 20, n4 21)),
            b'Y' => message::<20>(m, sum!(n8 11, n1 19)),
            b'L' => message::<26>(m, sum!(n4 11, n8 15, n1 23, n1 24, n1 25)),
            b'V' => message::<35>(m, sum!(n8 11, n8 19, n8 27)),
            b'W' => message::<12>(m, sum!(n1 11)),
            b'K' => message::<28>(m, sum!(n8 11, n4 19, n1 23, n4 24)),
            b'J' => message::<35>(m, sum!(n8 11, n4 19, n4 23, n4 27, n4 31)),
            b'h' => message::<21>(m, sum!(n8 11, n1 19, n1 20)),
            b'B' => message::<19>(m, sum!(n8 11)),
            b'N' => message::<20>(m, sum!(n8 11, n1 19)),
            b'O' => message::<48>(m, sum!(n8 11, n1 19, n4 20, n4 24, n4 28, n8 32, n4 40, n4 44)),
            _ => 0,
        });
    }
    sum
}

/// A field as a number to be summed.
trait Number {
    fn number(self) -> u64;
}

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl Number for $kind {
            #[inline(always)]
            fn number(self) -> u64 {
                u64::from(self.0)
            }
        })*
    };
}

numbers!(Code, Locate, MatchNumber, OrderRef, Price4, Price8);

impl Number for u16 {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u32 {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u64 {
    #[inline(always)]
    fn number(self) -> u64 {
        self
    }
}

impl Number for Text<8> {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

impl Number for Text<4> {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(u32::from_be_bytes(self.0))
    }
}

impl Number for Text<2> {
    #[inline(always)]
    fn number(self) -> u64 {
        u64::from(u16::from_be_bytes(self.0))
    }
}

/// The sum of all fields of a message.
macro_rules! fields {
    ($message:expr, $($name:ident { $($field:ident),* })*) => {
        match $message {
            $(Message::$name(m) => {
                let prefix = m.locate().number().wrapping_add(m.tracking().number()).wrapping_add(m.ts_ns());
                prefix $(.wrapping_add(m.$field().number()))*
            })*
            Message::Unknown(_) => 0,
        }
    };
}

#[inline(always)]
fn every_field(message: Message<'_>) -> u64 {
    fields! { message,
        AddOrder { reference, side, shares, stock, price }
        OrderDelete { reference }
        OrderExecuted { reference, shares, match_number }
        OrderReplace { reference, new_reference, shares, price }
        OrderCancel { reference, shares }
        Trade { reference, side, shares, stock, price, match_number }
        AddOrderAttributed { reference, side, shares, stock, price, attribution }
        OrderExecutedWithPrice { reference, shares, match_number, printable, price }
        CrossTrade { shares, stock, price, match_number, cross }
        NetOrderImbalance { paired, imbalance, direction, stock, far, near, reference_price, cross, variation }
        SystemEvent { event }
        StockDirectory {
            stock, market_category, financial_status, round_lot, round_lots_only, issue_classification,
            issue_sub_type, authenticity, short_sale_threshold, ipo_flag, luld_tier, etp_flag, etp_leverage, inverse
        }
        TradingAction { stock, state, reserved, reason }
        RegSho { stock, action }
        ParticipantPosition { mpid, stock, primary, mode, state }
        BreakerLevels { level_1, level_2, level_3 }
        BreakerStatus { level }
        IpoQuoting { stock, release_s, qualifier, price }
        AuctionCollar { stock, reference_price, upper, lower, extension }
        OperationalHalt { stock, market, action }
        BrokenTrade { match_number }
        RetailInterest { stock, interest }
        DirectListing { stock, eligible, min_price, max_price, near_price, near_time, lower, upper }
    }
}

#[inline(never)]
fn decode_all(file: &[u8]) -> u64 {
    let mut sum = 0_u64;
    for bytes in Frames::with(file, Framing::Length) {
        if let Ok(message) = decode(bytes) {
            sum = sum.wrapping_add(every_field(message));
        }
    }
    sum
}

/// What a consumer that keeps messages would store.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Record {
    ts_ns: u64,
    reference: u64,
    other: u64,
    stock: u64,
    price: u32,
    shares: u32,
    locate: u16,
    kind: u8,
    side: u8,
}

#[inline(always)]
fn record(bytes: &[u8], locate: Locate, ts_ns: u64) -> Record {
    Record { ts_ns, locate: locate.0, kind: bytes[0], ..Record::default() }
}

#[inline(never)]
fn copy(file: &[u8]) -> u64 {
    let mut ring = [Record::default(); 512];
    for (at, bytes) in Frames::with(file, Framing::Length).enumerate() {
        let Ok(message) = decode(bytes) else { continue };
        let record = match message {
            Message::AddOrder(m) => Record {
                reference: m.reference().0,
                side: m.side().0,
                shares: m.shares(),
                stock: m.stock().number(),
                price: m.price().0,
                ..record(bytes, m.locate(), m.ts_ns())
            },
            Message::AddOrderAttributed(m) => Record {
                reference: m.reference().0,
                side: m.side().0,
                shares: m.shares(),
                stock: m.stock().number(),
                price: m.price().0,
                other: m.attribution().number(),
                ..record(bytes, m.locate(), m.ts_ns())
            },
            Message::OrderDelete(m) => {
                Record { reference: m.reference().0, ..record(bytes, m.locate(), m.ts_ns()) }
            }
            Message::OrderExecuted(m) => Record {
                reference: m.reference().0,
                shares: m.shares(),
                other: m.match_number().0,
                ..record(bytes, m.locate(), m.ts_ns())
            },
            Message::OrderExecutedWithPrice(m) => Record {
                reference: m.reference().0,
                shares: m.shares(),
                other: m.match_number().0,
                side: m.printable().0,
                price: m.price().0,
                ..record(bytes, m.locate(), m.ts_ns())
            },
            Message::OrderReplace(m) => Record {
                reference: m.reference().0,
                other: m.new_reference().0,
                shares: m.shares(),
                price: m.price().0,
                ..record(bytes, m.locate(), m.ts_ns())
            },
            Message::OrderCancel(m) => Record {
                reference: m.reference().0,
                shares: m.shares(),
                ..record(bytes, m.locate(), m.ts_ns())
            },
            Message::Trade(m) => Record {
                reference: m.reference().0,
                side: m.side().0,
                shares: m.shares(),
                stock: m.stock().number(),
                price: m.price().0,
                other: m.match_number().0,
                ..record(bytes, m.locate(), m.ts_ns())
            },
            rare => rare.prefix().map_or_else(Record::default, |m| record(bytes, m.locate(), m.ts_ns())),
        };
        ring[at % 512] = record;
    }
    black_box(&ring).iter().fold(0, |sum, record| {
        sum ^ record.ts_ns
            ^ record.reference
            ^ record.other
            ^ record.stock
            ^ u64::from(record.price)
            ^ u64::from(record.shares)
            ^ u64::from(record.locate)
            ^ u64::from(record.kind)
            ^ u64::from(record.side)
    })
}

fn book_settings(options: &Options) -> Settings {
    Settings { max_orders: 4_000_000, reserve_orders: options.live as usize, ..Settings::default() }
}

#[inline(never)]
fn books(file: &[u8], books: &mut Books) -> u64 {
    let mut changes = 0;
    for bytes in Frames::with(file, Framing::Length) {
        if let Ok(message) = decode(bytes) {
            changes += u64::from(books.apply(&message).is_quote());
        }
    }
    changes
}

#[inline(never)]
fn normalise(file: &[u8], normaliser: &mut Normaliser) -> u64 {
    let mut sum = 0_u64;
    for bytes in Frames::with(file, Framing::Length) {
        if let Ok(applied) = normaliser.apply(bytes)
            && let Some(draft) = &applied.change
        {
            sum = sum.wrapping_add(black_box(draft).trades + 1);
        }
    }
    sum
}

/// Sums lengths, or hands on to a normaliser.
struct Taken {
    sum: u64,
    gaps: u64,
    normaliser: Option<Normaliser>,
}

impl Sink for Taken {
    #[inline]
    fn message(&mut self, _sequence: u64, bytes: &[u8], _received: Nanos) {
        match &mut self.normaliser {
            Some(normaliser) => {
                let change = normaliser.apply(bytes).ok().and_then(|applied| applied.change);
                if let Some(draft) = &change {
                    self.sum = self.sum.wrapping_add(black_box(draft).trades + 1);
                }
            }
            None => self.sum += bytes.len() as u64,
        }
    }

    fn gap(&mut self, _first: u64, _last: u64) {
        self.gaps += 1;
    }

    fn end_of_session(&mut self, _next: u64) {}

    fn reset(&mut self, _session: line::Session) {}
}

fn channel(packets: &[u8], lines: &[Line], arbiter: &mut Arbiter, taken: &mut Taken) -> u64 {
    for (time, packet) in Frames::with(packets, Framing::Length).enumerate() {
        for line in lines {
            arbiter.datagram(*line, packet, Nanos(time as u64), taken).unwrap();
        }
    }
    assert_eq!(taken.gaps, 0);
    taken.sum
}

struct Row {
    what: &'static str,
    /// Million messages a second, ascending.
    rates: Vec<f64>,
    sum: u64,
}

/// A way to go through a file; gives the sum of what it read.
type Reading = fn(&[u8]) -> u64;

struct Bench {
    clock: Clock,
    messages: u64,
    runs: usize,
    rows: Vec<Row>,
}

impl Bench {
    /// Times `work` on what `prepare` gives it; preparing and dropping are not timed.
    fn row<T>(&mut self, what: &'static str, prepare: impl Fn() -> T, work: impl Fn(&mut T) -> u64) {
        for _ in 0..self.runs {
            let mut state = prepare();
            self.time(what, || work(&mut state));
        }
    }

    /// Times things that are to be compared, one after another in each round.
    fn rounds(&mut self, file: &[u8], rows: &[(&'static str, Reading)]) {
        for _ in 0..self.runs {
            for (what, work) in rows {
                self.time(what, || work(file));
            }
        }
    }

    fn time(&mut self, what: &'static str, work: impl FnOnce() -> u64) {
        let start = ticks_ordered();
        let sum = black_box(work());
        let ns = self.clock.ns_between(start, ticks_ordered());
        let rate = self.messages as f64 * 1e3 / ns as f64;
        match self.rows.iter_mut().find(|row| row.what == what) {
            Some(row) => {
                assert_eq!(row.sum, sum, "{what} is not the same each time");
                row.rates.push(rate);
                row.rates.sort_by(f64::total_cmp);
            }
            None => self.rows.push(Row { what, rates: vec![rate], sum }),
        }
    }

    fn sum(&self, what: &str) -> u64 {
        self.rows.iter().find(|row| row.what == what).unwrap().sum
    }
}

fn main() {
    let options = options();
    // Best effort: a bench on a wandering thread is still a bench.
    let pinned = options.core.filter(|core| pin(*core).is_ok());
    let file = simulated(&options);
    let packets = packed(&file);
    let mut bench =
        Bench { clock: Clock::calibrate(), messages: options.messages, runs: options.runs, rows: Vec::new() };
    bench.rounds(&file, &[("framing", framing), ("switch", switch), ("decode", decode_all), ("copy", copy)]);
    assert_eq!(bench.sum("switch"), bench.sum("decode"), "both read the same fields");
    bench.row("books", || Books::new(book_settings(&options)), |state| books(&file, state));
    let normaliser = || Normaliser::Itch(Itch::new(book_settings(&options), Nanos(0)));
    bench.row("normalise", normaliser, |state| normalise(&file, state));
    let settings = line::Settings::default();
    let alone = || (Arbiter::new(settings), Taken { sum: 0, gaps: 0, normaliser: None });
    bench.row("arbitrate", alone, |(arbiter, taken)| channel(&packets, &[Line::A], arbiter, taken));
    let whole = || (Arbiter::new(settings), Taken { sum: 0, gaps: 0, normaliser: Some(normaliser()) });
    bench.row("channel", whole, |(arbiter, taken)| channel(&packets, &[Line::A, Line::B], arbiter, taken));
    assert_eq!(bench.sum("framing"), bench.sum("arbitrate"), "every message arrives");
    assert_eq!(bench.sum("normalise"), bench.sum("channel"), "every message arrives once");
    print(&options, pinned, file.len(), &bench);
}

fn print(options: &Options, pinned: Option<usize>, bytes: usize, bench: &Bench) {
    let Options { messages, symbols, seed, runs, .. } = options;
    let core = pinned.map_or("not pinned".into(), |core| format!("core {core}"));
    if options.json {
        let rows: Vec<_> = bench.rows.iter().map(|row| {
            serde_json::json!({ "what": row.what, "million_per_second": row.rates, "sum": format!("{:016x}", row.sum) })
        }).collect();
        println!(
            "{}",
            serde_json::json!({
                "bench": "itch", "messages": messages, "bytes": bytes, "symbols": symbols, "seed": seed, "runs": runs,
                "core": pinned, "rows": rows,
            })
        );
        return;
    }
    println!("{messages} messages, {bytes} bytes, {symbols} symbols, seed {seed}, {runs} runs, {core}");
    println!("{:<10} {:>8} {:>8} {:>8} M/s {:>8} ns  {:<16}", "", "min", "median", "max", "median", "sum");
    for row in &bench.rows {
        let (min, median, max) =
            (row.rates[0], row.rates[row.rates.len() / 2], row.rates[row.rates.len() - 1]);
        println!(
            "{:<10} {min:>8.1} {median:>8.1} {max:>8.1}     {:>8.2}     {:016x}",
            row.what,
            1e3 / median,
            row.sum
        );
    }
}
