//! The path of a feed inside a plant, from datagrams in memory to a subscriber of the ring: million messages a second.
//!
//! ```text
//! cargo bench -p tapeline-plant --bench path -- [--size small|day] [--messages N] [--seed N] [--runs N] [--only ROW] [--json]
//! ```
//!
//! `small` is 500 symbols with 200,000 orders on the books at the start, `day` 8,000 symbols with 1,900,000 orders. Messages are simulated,
//! in MoldUDP64 datagrams of up to 1,400 bytes on one line.
//!
//! | row | does |
//! |---|---|
//! | `books` | decode, books of all symbols, an event for each change of a best price: what the rest is compared with |
//! | `quotes` | datagrams, arbitration, decode, books, a draft of each change |
//! | `ticks` | the same, and ticks written into memory that nobody reads |
//! | `ring` | the same, into a ring with one subscriber on another core, which parses each tick |
//!
//! All rows take turns. Each figure is min / median / max over the runs; the ratio is the median over that of `books`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

#[path = "../../feed/benches/itch/input.rs"]
mod input;

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use input::{Input, packed};
use tapeline_feed::Protocol;
use tapeline_feed::book::{Book, BookSettings, Books, Quote};
use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::itch::{Decoder, ItchRecord, Locate, Side};
use tapeline_feed::line::{self, Arbiter, Line, Sink};
use tapeline_feed::normalise::{Applied, Itch, Normaliser};
use tapeline_feed::simulate::checksum;
use tapeline_measure::{Clock, Nanos, cores, pin, ticks_ordered};
use tapeline_plant::tick::Tick;
use tapeline_plant::{
    Channel, ChannelSettings, Items, Publish, PublishPolicy, Refused, RingPublish, Sequencer,
};
use tapeline_ring::{Options as RingOptions, Poll, Publisher, Start, Subscriber};

const ROWS: [&str; 4] = ["books", "quotes", "ticks", "ring"];

struct Options {
    messages: u64,
    symbols: u16,
    live: u32,
    size: &'static str,
    seed: u64,
    runs: usize,
    /// The only row to measure, for profiles.
    only: Option<usize>,
    json: bool,
}

fn options() -> Options {
    let mut options = Options {
        messages: 5_000_000,
        symbols: 500,
        live: 200_000,
        size: "small",
        seed: 1,
        runs: 5,
        only: None,
        json: false,
    };
    let mut is_bench = false;
    let mut arguments = std::env::args().skip(1);
    let wrong = |text: String| -> ! {
        eprintln!("path: {text}");
        std::process::exit(2);
    };
    while let Some(argument) = arguments.next() {
        if argument == "--only" {
            let row = arguments.next().unwrap_or_default();
            let known = ROWS.iter().position(|known| *known == row);
            options.only = known.or_else(|| wrong(format!("--only is one of {ROWS:?}, not {row:?}")));
            continue;
        }
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            let number = value.replace(['_', ','], "").parse::<u64>();
            number.unwrap_or_else(|_| wrong(format!("{argument} needs a number, not {value:?}")))
        };
        match argument.as_str() {
            "--size" => {
                (options.size, options.symbols, options.live) = match arguments.next().as_deref() {
                    Some("small") => ("small", 500, 200_000),
                    Some("day") => ("day", 8_000, 1_900_000),
                    other => wrong(format!("--size is small or day, not {other:?}")),
                }
            }
            "--messages" => options.messages = number(),
            "--seed" => options.seed = number(),
            "--runs" => options.runs = number().max(1) as usize,
            "--json" => options.json = true,
            "--bench" => is_bench = true,
            other => wrong(format!("unknown option {other}")),
        }
    }
    if !is_bench {
        // Run as a test: enough to see that it works.
        (options.messages, options.runs, options.live) = (options.messages.min(50_000), 1, 20_000);
    }
    options
}

/// Decode and books alone, 32 messages at a time, with an event for each change of a best price.
fn books(file: &[u8], books: &mut Books) -> u64 {
    let decoder = Decoder::new();
    let mut frames = Frames::with(file, FileFraming::Length);
    let mut records = [ItchRecord::default(); 32];
    let mut events = 0;
    loop {
        let filled = decoder.fill(&mut frames, &mut records);
        books.apply_all(&records[..filled], |books, _, change| {
            black_box(books.book(change.locate).map(Book::top).unwrap_or_default());
            events += u64::from(change.is_quote());
        });
        if filled < records.len() {
            return events;
        }
    }
}

/// The books agree with the exchange's own.
fn check(books: &Books, input: &Input, symbols: u16) {
    let plain = |quote: Quote| (quote.price.0, quote.shares);
    let sum = checksum((1..=symbols).map(|locate| {
        let top = books.book(Locate(locate)).map(Book::top).unwrap_or_default();
        (top.bid.map(plain), top.ask.map(plain))
    }));
    assert_eq!(sum, input.checksum, "best prices of all symbols");
    assert_eq!(books.live_orders(), input.live_orders);
    let levels = books.iter().map(|(_, book)| book.levels(Side::Bid).len() + book.levels(Side::Ask).len());
    assert_eq!(levels.sum::<usize>(), input.levels);
}

struct Drafts {
    normaliser: Normaliser,
    count: u64,
}

impl Sink for Drafts {
    fn run(&mut self, messages: line::Messages<'_>, _received: Nanos) {
        let expected = self.normaliser.expect(messages.map(|(_, bytes)| bytes));
        for (at, (_, bytes)) in messages.enumerate() {
            assert!(at < expected, "a datagram has fewer messages");
            // Where it was written, as a channel takes it: a draft is large.
            if let Ok(Applied { change: Some(draft), .. }) = &self.normaliser.apply_expected(at, bytes) {
                black_box(draft);
                self.count += 1;
            }
        }
    }

    fn message(&mut self, _sequence: u64, bytes: &[u8], _received: Nanos) {
        if let Ok(Applied { change: Some(draft), .. }) = &self.normaliser.apply(bytes) {
            black_box(draft);
            self.count += 1;
        }
    }

    fn gap(&mut self, _first: u64, _last: u64) {}

    fn end_of_session(&mut self, _next: u64) {}

    fn reset(&mut self, _session: line::Session) {}
}

/// Ticks written into the same memory again and again.
struct Unread(Vec<u8>);

impl Publish for Unread {
    #[inline]
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        black_box(fill(&mut self.0[..len]));
        Ok(())
    }
}

fn channel() -> Channel {
    Channel::new(ChannelSettings {
        number: 1,
        protocol: Protocol::ItchMoldUdp64,
        lines: 1,
        stale_after_ns: 0,
        midnight: Nanos(0),
        midnight_before: None,
        publish: PublishPolicy::Changes,
        arbitration: line::ArbiterSettings::default(),
        books: BookSettings::default(),
    })
}

fn feed<P: Publish>(packets: &[u8], channel: &mut Channel, to: &mut Sequencer<P>, clock: &Clock) {
    for packet in Frames::with(packets, FileFraming::Length) {
        channel.datagram(Line::A, packet, Nanos(1), clock, to).unwrap();
    }
}

/// Reads ticks to the end of the ring.
fn subscribe(name: &tapeline_ring::Name, core: Option<usize>, read: &AtomicU64) -> (u64, u64) {
    if let Some(core) = core {
        let _ = pin(core);
    }
    let mut subscriber = Subscriber::join(name, Start::Oldest).unwrap();
    let (mut count, mut bytes) = (0, 0);
    loop {
        match subscriber.next() {
            Poll::Frame(frame) => {
                let tick = Tick::parse(&frame).unwrap();
                count += 1;
                assert_eq!(tick.header.seq.0, count, "ticks are in order");
                bytes += tick.body.len() as u64;
            }
            Poll::Empty => {
                read.store(count, Ordering::Relaxed);
                std::hint::spin_loop();
            }
            _ => return (count, bytes),
        }
    }
}

fn main() {
    let options = options();
    let cores = cores();
    // Best effort: a bench on a wandering thread is still a bench.
    let _ = cores.last().map(|core| pin(*core));
    let other = cores.first().copied().filter(|_| cores.len() > 1);
    let input = Input::simulated(options.seed, options.symbols, options.live, options.messages);
    let (before, next) = packed(&input.before, 1);
    let (packets, _) = packed(&input.file, next);
    let clock = Clock::calibrate();
    let mut rates: [Vec<f64>; ROWS.len()] = Default::default();
    let mut counts = [0_u64; ROWS.len()];
    let mut time = |row: usize, work: &mut dyn FnMut() -> u64| {
        let start = ticks_ordered();
        let count = work();
        let ns = clock.ns_between(start, ticks_ordered());
        assert!(counts[row] == 0 || counts[row] == count, "{} is not the same each time", ROWS[row]);
        counts[row] = count;
        rates[row].push(options.messages as f64 * 1e3 / ns as f64);
    };
    let is_wanted = |row| options.only.is_none_or(|only| only == row);
    for _ in 0..options.runs {
        if is_wanted(0) {
            let mut state = Books::new(BookSettings::default());
            books(&input.before, &mut state);
            time(0, &mut || books(&input.file, &mut state));
            check(&state, &input, options.symbols);
        }
        if is_wanted(1) {
            let mut drafts = Drafts {
                normaliser: Normaliser::Itch(Itch::new(BookSettings::default(), Nanos(0))),
                count: 0,
            };
            let mut arbiter = Arbiter::new(line::ArbiterSettings::default());
            for packet in Frames::with(&before, FileFraming::Length) {
                arbiter.datagram(Line::A, packet, Nanos(1), &mut drafts).unwrap();
            }
            drafts.count = 0;
            time(1, &mut || {
                for packet in Frames::with(&packets, FileFraming::Length) {
                    arbiter.datagram(Line::A, packet, Nanos(1), &mut drafts).unwrap();
                }
                drafts.count
            });
        }
        if is_wanted(2) {
            let mut to = Sequencer::new(1, Items::new(100_000), Unread(vec![0; 64 << 10]));
            let mut path = channel();
            feed(&before, &mut path, &mut to, &clock);
            let begun = to.published();
            time(2, &mut || {
                feed(&packets, &mut path, &mut to, &clock);
                to.published() - begun
            });
        }
        if !is_wanted(3) {
            continue;
        }
        let name = tapeline_ring::Name::new(&format!("bench-path-{}", std::process::id())).unwrap();
        let ring = RingOptions { capacity: 4 << 20, max_frame: 16 << 10, ..RingOptions::default() };
        let publisher = Publisher::open(&name, &ring).unwrap();
        let read = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let subscriber = scope.spawn(|| subscribe(&name, other, &read));
            let mut to =
                Sequencer::new(1, Items::new(100_000), RingPublish::new(publisher, Box::new(|_, _| true)));
            while to.publisher().ring().subscribers() == 0 {
                std::thread::yield_now();
            }
            let mut path = channel();
            feed(&before, &mut path, &mut to, &clock);
            let begun = to.published();
            time(3, &mut || {
                feed(&packets, &mut path, &mut to, &clock);
                // Until the subscriber has the last tick.
                while read.load(Ordering::Relaxed) < to.published() {
                    std::hint::spin_loop();
                }
                to.published() - begun
            });
            let published = to.published();
            to.into_publisher().close().unwrap();
            assert_eq!(subscriber.join().unwrap().0, published, "nothing is lost");
        });
    }
    report(&options, &mut rates, counts);
}

fn report(options: &Options, rates: &mut [Vec<f64>; ROWS.len()], counts: [u64; ROWS.len()]) {
    for of_row in rates.iter_mut() {
        of_row.sort_by(f64::total_cmp);
    }
    let median = |of_row: &[f64]| of_row.get(of_row.len() / 2).copied().unwrap_or(f64::NAN);
    let yardstick = median(&rates[0]);
    if options.json {
        let rows: Vec<String> = ROWS
            .iter()
            .zip(rates.iter())
            .map(|(row, of_row)| format!("\"{row}\":{:.3}", median(of_row)))
            .collect();
        println!("{{\"size\":\"{}\",\"messages\":{},{}}}", options.size, options.messages, rows.join(","));
        return;
    }
    println!(
        "{}: {} messages, {} runs; million messages a second, min / median / max",
        options.size, options.messages, options.runs
    );
    for ((row, of_row), count) in ROWS.iter().zip(rates.iter()).zip(counts) {
        if of_row.is_empty() {
            continue;
        }
        println!(
            "{row:8} {:7.2} / {:7.2} / {:7.2}   {:5.2} x books   {count} events",
            of_row[0],
            median(of_row),
            of_row[of_row.len() - 1],
            median(of_row) / yardstick
        );
    }
}
