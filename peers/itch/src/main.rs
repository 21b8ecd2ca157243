//! Tapeline's ITCH decoding and books beside other libraries, floors and a plain book, taking turns on one core.
//!
//! `make bench-peers-itch` builds and runs it; README.md says what is measured and how.

#[path = "../../../crates/feed/benches/itch/books.rs"]
mod books;
mod cpp;
#[path = "../../../crates/feed/benches/itch/fields.rs"]
mod fields;
#[path = "../../../crates/feed/benches/itch/input.rs"]
#[allow(dead_code, reason = "nothing is in packets here")]
mod input;
mod others;
mod page;
mod plain;
#[path = "../../../crates/feed/benches/itch/switch.rs"]
mod switch;

use std::hint::black_box;
use std::path::PathBuf;

use clap::Parser;
use tapeline_feed::book::Memory;
use tapeline_feed::itch::Decoder;
use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_measure::{Clock, Environment, Recorder, cores, pin, ticks_ordered};

use crate::cpp::{Files, Program};
use crate::input::Input;

/// Tapeline's ITCH decoding and books beside other libraries
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Messages in each of the two inputs
    #[arg(long, default_value_t = 3_000_000, value_parser = clap::value_parser!(u64).range(1_000..))]
    messages: u64,
    /// How often each reads each input
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Only one input: small or day
    #[arg(long)]
    size: Option<String>,
    /// Books only, no decoding by itself
    #[arg(long)]
    books: bool,
    /// The simulated exchange's seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The core; the last if not given
    #[arg(long)]
    core: Option<usize>,
    /// Write the page there rather than to standard output
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

/// What one of the inputs is.
struct Size {
    name: &'static str,
    symbols: u16,
    live: u32,
}

const SIZES: [Size; 2] = [
    Size { name: "small", symbols: 500, live: 200_000 },
    Size { name: "day", symbols: 8_000, live: 1_900_000 },
];

/// Types that a peer stops at; they are left out for all, a message in two thousand.
const LEFT_OUT: [u8; 2] = *b"hO";

/// One system at one task.
struct Row {
    what: &'static str,
    /// Million messages a second, ascending.
    rates: Vec<f64>,
    sum: u64,
}

/// All of one input.
struct Figures {
    size: &'static Size,
    bytes: usize,
    messages: u64,
    live_orders: usize,
    levels: usize,
    rows: Vec<Row>,
    alone: Recorder,
    two_stamps: Recorder,
    /// Of our books at the end, with lines.
    memory: Memory,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Some(core) = arguments.core.or_else(|| cores().last().copied()) {
        pin(core)?;
    }
    let clock = Clock::calibrate();
    let environment = Environment::read(&clock);
    let wanted = |size: &&Size| arguments.size.as_deref().is_none_or(|wanted| wanted == size.name);
    let programs = cpp::programs()?;
    let figures: Vec<_> = SIZES
        .iter()
        .filter(wanted)
        .map(|size| measure(size, &arguments, &clock, &programs))
        .collect::<anyhow::Result<_>>()?;
    anyhow::ensure!(!figures.is_empty(), "--size is small or day");
    let page = page::page(&figures, arguments.runs, &environment.summary(), &programs);
    match arguments.to {
        Some(file) => std::fs::write(file, page)?,
        None => print!("{page}"),
    }
    Ok(())
}

fn measure(
    size: &'static Size,
    arguments: &Arguments,
    clock: &Clock,
    programs: &[Program],
) -> anyhow::Result<Figures> {
    let mut input = Input::simulated(arguments.seed, size.symbols, size.live, arguments.messages);
    for file in [&mut input.before, &mut input.file] {
        let kept = Frames::with(file, FileFraming::Length).filter(|message| !LEFT_OUT.contains(&message[0]));
        *file = kept
            .flat_map(|message| {
                (message.len() as u16).to_be_bytes().into_iter().chain(message.iter().copied())
            })
            .collect();
    }
    let file = &input.file[..];
    let messages = Frames::with(file, FileFraming::Length).count() as u64;
    let files = if programs.is_empty() { None } else { Some(Files::write(&input, size)?) };
    let mut turns = Turns { clock, messages, rows: Vec::new() };
    let mut memory = Memory::default();
    for _ in 0..arguments.runs {
        if !arguments.books {
            decode(file, &mut turns);
        }
        let mut plain = plain::Books::new(size.symbols);
        plain.apply_all(&input.before);
        turns.time("plain book", &mut || plain.apply_all(file));
        assert_eq!((plain.checksum(), plain.live_orders()), (input.checksum, input.live_orders));
        drop(plain);
        let mut state = books::opened(&input, false);
        turns.time("books", &mut || books::one_by_one(file, &mut state));
        books::check(&state, &input, size.symbols);
        for (what, queues, decoder) in [
            ("batched", false, Decoder::new()),
            ("portable batched", false, Decoder::portable()),
            ("queues", true, Decoder::new()),
        ] {
            let mut state = books::opened(&input, queues);
            turns.time(what, &mut || books::batched(file, &mut state, decoder));
            books::check(&state, &input, size.symbols);
            memory = state.memory();
        }
        for (program, files) in programs.iter().zip(files.iter().cycle()) {
            turns.took(program.name, 0, program.time(files)?);
        }
    }
    let sum = |what: &str| turns.rows.iter().find(|row| row.what == what).map(|row| row.sum);
    assert_eq!(sum("switch"), sum("views"));
    assert!(sum("lunary views").is_none_or(|lunary| Some(lunary) == sum("switch")), "the same fields");
    assert!(sum("switch").is_none_or(|sum| sum == fields::sum_of_records(file, Decoder::new())));
    for what in ["books", "portable batched", "queues", "plain book"] {
        assert_eq!(sum("batched"), sum(what), "as many events: {what}");
    }
    let mut state = books::opened(&input, false);
    let (alone, two_stamps) = books::alone(file, &mut state, clock);
    Ok(Figures {
        size,
        bytes: file.len(),
        messages,
        live_orders: input.live_orders,
        levels: input.levels,
        rows: turns.rows,
        alone,
        two_stamps,
        memory,
    })
}

/// All that read messages and do no more, once.
fn decode(file: &[u8], turns: &mut Turns<'_>) {
    turns.time("memory", &mut || switch::memory(file));
    turns.time("framing", &mut || switch::framing(file));
    turns.time("switch", &mut || switch::switch(file));
    turns.time("views", &mut || fields::decode_all(file));
    turns.time("portable", &mut || fields::portable(file));
    turns.time("permuted", &mut || fields::permuted(file));
    for (what, work) in others::DECODERS {
        turns.time(what, &mut || work(file));
    }
}

/// Rows that grow by a figure each turn.
struct Turns<'a> {
    clock: &'a Clock,
    messages: u64,
    rows: Vec<Row>,
}

impl Turns<'_> {
    fn time(&mut self, what: &'static str, work: &mut dyn FnMut() -> u64) {
        let start = ticks_ordered();
        let sum = black_box(work());
        self.took(what, sum, self.clock.ns_between(start, ticks_ordered()));
    }

    fn took(&mut self, what: &'static str, sum: u64, ns: i64) {
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
}
