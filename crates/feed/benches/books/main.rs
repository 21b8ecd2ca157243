//! How fast the messages of IEX's DEEP and the orders of DBN are read and become books: million messages a second on one core, simulated messages
//! in memory.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench books -- [--only deep|dbn] [--size small|day] [--messages N] [--runs N] [--seed N] [--to PAGE]
//! ```
//!
//! `small` is 500 symbols and 200,000 orders, `day` 8,000 symbols and 1,900,000 orders; without `--size` both are measured. Each figure is
//! min / median / max over the runs, in which the rows take turns. What ours decodes and what is written by hand or by others have to agree on the
//! sum of the fields, and all books on the best prices at the end, those of DEEP also on the number of their changes. `--to` writes a page.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod dbn;
mod deep;
mod random;
mod rows;

use std::fmt::Write as _;
use std::path::PathBuf;

use tapeline_measure::{Clock, Environment, cores, pin};

use rows::Rows;

/// How many symbols, and how many of their orders on the books.
pub(crate) struct Size {
    pub(crate) name: &'static str,
    pub(crate) symbols: u32,
    pub(crate) orders: usize,
}

const SIZES: [Size; 2] = [
    Size { name: "small", symbols: 500, orders: 200_000 },
    Size { name: "day", symbols: 8_000, orders: 1_900_000 },
];

pub(crate) struct Measuring {
    pub(crate) clock: Clock,
    pub(crate) messages: u64,
    pub(crate) runs: usize,
    pub(crate) seed: u64,
}

type Measure = fn(&Measuring, &Size) -> Rows;
const FEEDS: [(&str, Measure); 2] = [("deep", deep::measure), ("dbn", dbn::measure)];

fn wrong(text: &str) -> ! {
    eprintln!("books: {text}");
    std::process::exit(2);
}

fn main() {
    let (mut messages, mut runs, mut seed) = (5_000_000, 5, 1);
    let (mut only, mut size, mut to, mut is_bench) = (None, None, None::<PathBuf>, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--bench" {
            is_bench = true;
            continue;
        }
        let value =
            arguments.next().unwrap_or_else(|| wrong(&format!("{argument} is not known, or needs a value")));
        let number = || {
            let number = value.replace(['_', ','], "").parse().ok().filter(|number| *number > 0);
            number.unwrap_or_else(|| wrong(&format!("{argument} needs a number above 0, not {value:?}")))
        };
        match argument.as_str() {
            "--messages" => messages = number(),
            "--runs" => runs = number() as usize,
            "--seed" => seed = number(),
            "--only" if FEEDS.iter().any(|(feed, _)| *feed == value) => only = Some(value),
            "--only" => wrong(&format!("--only is deep or dbn, not {value:?}")),
            "--size" if SIZES.iter().any(|size| size.name == value) => size = Some(value),
            "--size" => wrong(&format!("--size is small or day, not {value:?}")),
            "--to" => to = Some(value.into()),
            _ => wrong(&format!("unknown option {argument}")),
        }
    }
    // Minutes before there is something to write.
    if let Some(folder) =
        to.as_ref().and_then(|to| to.parent()).filter(|folder| !folder.as_os_str().is_empty())
        && !folder.is_dir()
    {
        wrong(&format!("--to: there is no folder {}", folder.display()));
    }
    let mut sizes: Vec<_> =
        SIZES.into_iter().filter(|of| size.as_ref().is_none_or(|size| *size == of.name)).collect();
    if !is_bench {
        // Run as a test: enough to see that it works.
        (messages, runs) = (messages.min(50_000), 1);
        sizes.iter_mut().for_each(|size| size.orders = 5_000);
    }
    // Best effort: a bench on a wandering thread is still a bench.
    let _ = cores().last().map(|core| pin(*core));
    let clock = Clock::calibrate();
    let mut page = format!("{HEAD}```text\n{}\n```\n", Environment::read(&clock).summary().trim_end());
    let measuring = Measuring { clock, messages, runs, seed };
    for (feed, measure) in FEEDS.iter().filter(|(feed, _)| only.as_ref().is_none_or(|only| only == feed)) {
        for size in &sizes {
            eprintln!("books: {feed}, {}", size.name);
            let _ = write!(page, "\n{}", measure(&measuring, size));
        }
    }
    match to {
        Some(to) => std::fs::write(&to, page)
            .unwrap_or_else(|error| wrong(&format!("cannot write {}: {error}", to.display()))),
        None => print!("{page}"),
    }
}

const HEAD: &str = "# DEEP and DBN: decoding and books

Written by `make bench-books DOC=1`. All rates are million messages a second on one core: min / **median** / max of the runs, in which the
rows take turns. *ns* is the time for each message at the median, *times the floor* that time divided by the time to sum the same bytes.

DEEP is IEX's feed of price levels. DBN is Databento's format of records; here it has the single orders of all symbols (MBO). The messages are
simulated and in memory. Books are checked: the best prices of all of them are the same at the end.

";
