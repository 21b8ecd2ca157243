//! How fast ITCH is read: million messages a second on one core, simulated messages in memory, each behind its length.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench itch -- [--size small|day] [--messages N] [--seed N] [--core N] [--runs N] [--json]
//! ```
//!
//! `small` is 500 symbols and 200,000 orders on the books when it begins, `day` 8,000 symbols and 1,900,000 orders,
//! what a busy day of NASDAQ's has.
//!
//! | what | does |
//! |---|---|
//! | `memory` | sums all bytes as words of eight: as fast as bytes come |
//! | `framing` | steps from length to length and sums them: the floor of any sequential reading |
//! | `switch` | a hand-written `match` on the type byte; every field read and summed: the yardstick |
//! | `decode` | the same with this crate's framing, decoder and views; the same sum |
//! | `portable` | records of 64 bytes with all fields, 32 at a time, by a look at the type |
//! | `permuted` | the same records by permuting bytes, where the processor can (elsewhere as `portable`) |
//! | `books` | records, books of all symbols, an event at each change of a best price or size; one message after another |
//! | `batched` | the same, 32 messages at a time |
//! | `portable books` | as `batched`, with portable records |
//! | `queues` | as `batched`, with the orders of each level in the order of their coming |
//! | `normalise` | decode, books, and a draft of every update |
//! | `arbitrate` | packets of 1,400 bytes on one line: parse, arbitrate, sum the lengths |
//! | `channel` | packets on two lines: parse, arbitrate, decode, books, drafts |
//!
//! Each figure is min / median / max over the runs, in which all take turns. A sum over what was read is printed with it, so that
//! nothing can be left out: `switch` and `decode` have to agree on all fields (records are checked field by field, too), all
//! books on the number of events and with the exchange's own books. Then follows what one message takes that comes
//! alone, from its bytes to its event, percentiles in ns: two stamps around each, the cost of two stamps beside it.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod books;
mod fields;
mod input;
mod plant;
mod switch;

use std::hint::black_box;

use tapeline_feed::book::BookSettings;
use tapeline_feed::itch::Decoder;
use tapeline_feed::line::{self, Arbiter, Line};
use tapeline_feed::normalise::{Itch, Normaliser};
use tapeline_measure::{Clock, Nanos, Recorder, cores, pin, ticks_ordered};

use crate::input::Input;
use crate::plant::Taken;

struct Options {
    messages: u64,
    size: &'static str,
    symbols: u16,
    live: u32,
    seed: u64,
    core: Option<usize>,
    runs: usize,
    json: bool,
}

fn options() -> Options {
    let mut options = Options {
        messages: 10_000_000,
        size: "small",
        symbols: 500,
        live: 200_000,
        seed: 1,
        core: cores().last().copied(),
        runs: 5,
        json: false,
    };
    let mut benched = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--size" {
            (options.size, options.symbols, options.live) = match arguments.next().as_deref() {
                Some("small") => ("small", 500, 200_000),
                Some("day") => ("day", 8_000, 1_900_000),
                _ => {
                    eprintln!("itch: --size is small or day");
                    std::process::exit(2);
                }
            };
            continue;
        }
        let mut number = || {
            let value = arguments.next().unwrap_or_default();
            value.replace(['_', ','], "").parse::<u64>().unwrap_or_else(|_| {
                eprintln!("itch: {argument} needs a number, not {value:?}");
                std::process::exit(2);
            })
        };
        match argument.as_str() {
            "--messages" => options.messages = number(),
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
        (options.messages, options.runs, options.live) = (options.messages.min(50_000), 1, 20_000);
    }
    options
}

struct Row {
    what: &'static str,
    /// Million messages a second, ascending.
    rates: Vec<f64>,
    sum: u64,
}

struct Bench {
    clock: Clock,
    messages: u64,
    rows: Vec<Row>,
}

impl Bench {
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
    let input = Input::simulated(options.seed, options.symbols, options.live, options.messages);
    let file = &input.file;
    let (packets, _) = input::packed(file, 1);
    let clock = Clock::calibrate();
    let mut bench = Bench { clock, messages: options.messages, rows: Vec::new() };
    let normaliser = || {
        let mut normaliser = Normaliser::Itch(Itch::new(BookSettings::default(), Nanos(0)));
        plant::normalise(&input.before, &mut normaliser);
        normaliser
    };
    let settings = line::ArbiterSettings::default();
    for _ in 0..options.runs {
        bench.time("memory", || switch::memory(file));
        bench.time("framing", || switch::framing(file));
        bench.time("switch", || switch::switch(file));
        bench.time("decode", || fields::decode_all(file));
        bench.time("portable", || fields::portable(file));
        bench.time("permuted", || fields::permuted(file));

        let mut state = books::opened(&input, false);
        bench.time("books", || books::one_by_one(file, &mut state));
        books::check(&state, &input, options.symbols);
        for (what, decoder) in [("batched", Decoder::new()), ("portable books", Decoder::portable())] {
            let mut state = books::opened(&input, false);
            bench.time(what, || books::batched(file, &mut state, decoder));
            books::check(&state, &input, options.symbols);
        }
        let mut state = books::opened(&input, true);
        bench.time("queues", || books::batched(file, &mut state, Decoder::new()));
        books::check(&state, &input, options.symbols);
        drop(state);

        let mut state = normaliser();
        bench.time("normalise", || plant::normalise(file, &mut state));
        drop(state);
        let mut taken = Taken { sum: 0, gaps: 0, normaliser: None };
        let mut arbiter = Arbiter::new(settings);
        bench.time("arbitrate", || plant::channel(&packets, &[Line::A], &mut arbiter, &mut taken));
        let mut taken = Taken { sum: 0, gaps: 0, normaliser: Some(normaliser()) };
        let mut arbiter = Arbiter::new(settings);
        bench.time("channel", || plant::channel(&packets, &[Line::A, Line::B], &mut arbiter, &mut taken));
    }
    let read = bench.sum("switch");
    assert_eq!(read, bench.sum("decode"), "both read the same fields");
    for decoder in [Decoder::portable(), Decoder::new()] {
        assert_eq!(read, fields::sum_of_records(file, decoder), "records have the same fields");
    }
    assert_eq!(bench.sum("portable"), bench.sum("permuted"), "both make the same records");
    for what in ["books", "portable books", "queues"] {
        assert_eq!(bench.sum("batched"), bench.sum(what), "as many events");
    }
    assert_eq!(bench.sum("framing"), bench.sum("arbitrate"), "every message arrives");
    assert_eq!(bench.sum("normalise"), bench.sum("channel"), "every message arrives once");

    let mut state = books::opened(&input, false);
    let alone = books::alone(file, &mut state, &clock);
    let memory = state.bytes();
    print(&options, pinned, &input, &bench, &alone, memory);
}

/// Percentiles in ns.
fn percentiles(times: &Recorder) -> [u64; 4] {
    [0.5, 0.9, 0.99, 0.999].map(|share| times.value_at(share).unwrap_or_default())
}

fn print(
    options: &Options,
    pinned: Option<usize>,
    input: &Input,
    bench: &Bench,
    (alone, nothing): &(Recorder, Recorder),
    memory: usize,
) {
    let Options { messages, size, symbols, seed, runs, .. } = options;
    let Input { live_orders, levels, .. } = input;
    let bytes = input.file.len();
    let (alone, nothing) = (percentiles(alone), percentiles(nothing));
    let core = pinned.map_or("not pinned".into(), |core| format!("core {core}"));
    if options.json {
        let rows: Vec<_> = bench.rows.iter().map(|row| {
            serde_json::json!({ "what": row.what, "million_per_second": row.rates, "sum": format!("{:016x}", row.sum) })
        }).collect();
        println!(
            "{}",
            serde_json::json!({
                "bench": "itch", "size": size, "messages": messages, "bytes": bytes, "symbols": symbols, "seed": seed, "runs": runs,
                "core": pinned, "live_orders": live_orders, "levels": levels, "books_bytes": memory,
                "permutes": Decoder::new().is_permuting(), "rows": rows, "alone_ns": alone, "two_stamps_ns": nothing,
            })
        );
        return;
    }
    println!("{messages} messages, {bytes} bytes, {symbols} symbols, seed {seed}, {runs} runs, {core}");
    println!("{live_orders} orders, {levels} levels at the end; books take {} MB", memory / 1_000_000);
    println!("{:<14} {:>8} {:>8} {:>8} M/s {:>8} ns  {:<16}", "", "min", "median", "max", "median", "sum");
    for row in &bench.rows {
        let (min, median, max) =
            (row.rates[0], row.rates[row.rates.len() / 2], row.rates[row.rates.len() - 1]);
        println!(
            "{:<14} {min:>8.1} {median:>8.1} {max:>8.1}     {:>8.2}     {:016x}",
            row.what,
            1e3 / median,
            row.sum
        );
    }
    println!("alone          p50 {} p90 {} p99 {} p99.9 {} ns", alone[0], alone[1], alone[2], alone[3]);
    println!(
        "two stamps     p50 {} p90 {} p99 {} p99.9 {} ns",
        nothing[0], nothing[1], nothing[2], nothing[3]
    );
}
