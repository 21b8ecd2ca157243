//! What each part costs by its size: items, clients, symbols, orders, subscribers, lengths, and the load up to the knee.
//!
//! ```text
//! cargo bench -p tapeline --bench growth -- [--to PAGE] [--turns N] [--only DRAWING] [--small]
//! ```
//!
//! The page has a drawing and a table for each, with the growth of every line and where it bends; the drawings are written beside the page.
//! `--small` leaves the sizes out that need gigabytes or minutes.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod books;
mod fit;
#[path = "../../../hub/tests/floor/mod.rs"]
#[allow(dead_code, reason = "other benches use more of the floor")]
mod floor;
mod hub;
#[path = "../../../feed/benches/itch/input.rs"]
#[allow(dead_code, reason = "other benches compare the books with it")]
mod input;
mod knee;
mod page;
mod ring;
#[path = "../hub/turns.rs"]
#[allow(dead_code, reason = "the other benches compare pairs")]
mod turns;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Parser;
use tapeline_measure::{Clock, Environment, cores, pin, ticks_ordered};
use tapeline_perf::plot::Scale;

/// The cost of each part by its size
#[derive(Debug, Parser)]
struct Arguments {
    /// Write the page there rather than to standard output, and the drawings beside it
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// How often each size is measured
    #[arg(long, default_value_t = 5)]
    turns: usize,
    /// Measure for this drawing alone, and print its tables
    #[arg(long, value_name = "DRAWING", conflicts_with = "to")]
    only: Option<String>,
    /// Leave out the sizes that need gigabytes or minutes
    #[arg(long)]
    small: bool,
    /// What cargo passes on
    #[arg(long, hide = true)]
    bench: bool,
}

/// Lines over one size.
struct Drawing {
    /// Its file beside the page, without `.svg`.
    name: &'static str,
    title: &'static str,
    x_title: &'static str,
    y_title: &'static str,
    scale: Scale,
    /// What is measured, in a sentence or two.
    what: &'static str,
    sizes: Vec<u64>,
    lines: Vec<Line>,
}

/// One figure by size.
#[derive(Default)]
struct Line {
    name: &'static str,
    /// The figures of all turns for each size; none where nothing could be measured.
    figures: Vec<Vec<f64>>,
    /// The memory of what grows with the size, at each size, bytes; and what that is.
    bytes: Vec<u64>,
    memory: &'static str,
    /// What bends the line where no cache does.
    bend: &'static str,
}

impl Line {
    const fn new(name: &'static str) -> Self {
        Self { name, figures: Vec::new(), bytes: Vec::new(), memory: "", bend: "" }
    }
}

/// How to measure: for how long, how often, with which sizes.
struct Measuring {
    clock: Clock,
    cores: Vec<usize>,
    turns: usize,
    is_small: bool,
}

impl Measuring {
    /// Nanoseconds of a call of `work`, once for each turn. `work` gets 0, 1, 2 …
    fn each(&self, mut work: impl FnMut(usize)) -> Vec<f64> {
        const TURN_NS: i64 = 150_000_000;
        const BATCH: usize = 256;
        let mut next = 0;
        let mut turn = |least_ns| {
            let start = ticks_ordered();
            let mut done = 0;
            loop {
                for _ in 0..BATCH {
                    work(next);
                    next += 1;
                }
                done += BATCH;
                let spent_ns = self.clock.ns_between(start, ticks_ordered());
                if spent_ns >= least_ns {
                    return spent_ns as f64 / done as f64;
                }
            }
        };
        turn(TURN_NS / 3);
        (0..self.turns).map(|_| turn(TURN_NS)).collect()
    }

    /// Nanoseconds that `work` takes as a whole, by its result.
    fn once(&self, work: impl FnOnce() -> u64) -> f64 {
        let start = ticks_ordered();
        let count = work();
        self.clock.ns_between(start, ticks_ordered()) as f64 / count as f64
    }

    /// Calls `work` on a thread of the last core. The others of this program, and the programs that it starts, stay where they like.
    fn pinned<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let core = self.cores.last().copied();
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                // Best effort: a bench on a wandering thread is still a bench.
                let _ = core.map(pin);
                work()
            });
            thread.join().unwrap()
        })
    }

    /// Those of `sizes` that are wanted; the last so many are large.
    fn sizes(&self, sizes: &[u64], large: usize) -> Vec<u64> {
        sizes[..sizes.len() - if self.is_small { large } else { 0 }].to_vec()
    }
}

/// How one drawing comes about.
type Draw = fn(&Measuring) -> anyhow::Result<Drawing>;

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    // Minutes before there is something to write.
    if let Some(to) = &arguments.to {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        ensure!(folder.is_none_or(Path::is_dir), "--to {}: there is no such folder", to.display());
    }
    let clock = Clock::calibrate();
    let environment = Environment::read(&clock).summary();
    let measuring =
        Measuring { clock, cores: cores(), turns: arguments.turns.max(1), is_small: arguments.small };
    let all: [(&str, Draw); 8] = [
        ("growth-memory", |measuring| measuring.pinned(|| hub::memory(measuring))),
        ("growth-items", |measuring| measuring.pinned(|| hub::items(measuring))),
        ("growth-clients", |measuring| measuring.pinned(|| hub::clients(measuring))),
        ("growth-symbols", |measuring| measuring.pinned(|| books::symbols(measuring))),
        ("growth-orders", |measuring| measuring.pinned(|| books::orders(measuring))),
        ("growth-lengths", ring::lengths),
        ("growth-subscribers", ring::subscribers),
        ("growth-load", knee::load),
    ];
    let mut drawings = Vec::new();
    for (name, draw) in all {
        if arguments.only.as_deref().is_none_or(|only| name.ends_with(only)) {
            eprintln!("growth: {name}");
            drawings.push(draw(&measuring)?);
        }
    }
    ensure!(
        !drawings.is_empty(),
        "--only is one of {}",
        all.map(|(name, _)| &name["growth-".len()..]).join(", ")
    );
    let page = page::page(&drawings, measuring.turns, &environment);
    let Some(to) = arguments.to else {
        print!("{page}");
        return Ok(());
    };
    std::fs::write(&to, page).with_context(|| format!("cannot write {}", to.display()))?;
    for drawing in &drawings {
        let file = to.with_file_name(format!("{}.svg", drawing.name));
        std::fs::write(&file, page::chart(drawing).svg())
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
