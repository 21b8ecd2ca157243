//! What a choice of symbols saves: million messages a second on one core, simulated messages in memory.
//!
//! ```text
//! cargo bench -p tapeline-feed --bench symbols -- [--messages N] [--symbols N] [--runs N]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `filter` | asks the filter, nothing else |
//! | `filter+normalise` | asks the filter; decodes, keeps books and drafts what is wanted |
//! | `normalise` | decodes, keeps books and drafts everything: what there is without a filter |
//! | `filter+orders` | as `filter+normalise`, and keeps the wanted orders for publishing |
//! | `orders` | as `normalise`, and keeps all orders for publishing |
//!
//! Each with one symbol of the middle of the list, with one in ten, and with all. Min / median / max over the runs, which take
//! turns; messages that were wanted are counted, so that nothing can be left out.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

use std::hint::black_box;

use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::normalise::Normaliser;
use tapeline_feed::simulate::{Exchange, SimulatedDay};
use tapeline_feed::symbols::{Filter, Symbols};
use tapeline_feed::{Protocol, book};
use tapeline_measure::{Clock, Nanos, cores, pin, ticks_ordered};

struct Options {
    messages: usize,
    symbols: u16,
    runs: usize,
}

fn options() -> Options {
    let mut options = Options { messages: 4_000_000, symbols: 8_000, runs: 5 };
    let mut benched = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number =
            || arguments.next().and_then(|text| text.replace(['_', ','], "").parse::<u64>().ok());
        let set = match argument.as_str() {
            "--messages" => number().map(|n| options.messages = n as usize),
            "--symbols" => number().map(|n| options.symbols = n as u16),
            "--runs" => number().map(|n| options.runs = n.max(1) as usize),
            "--bench" => {
                benched = true;
                Some(())
            }
            _ => None,
        };
        if set.is_none() {
            eprintln!("symbols: {argument} is not known, or needs a number");
            std::process::exit(2);
        }
    }
    if !benched {
        // Run as a test: enough to see that it works.
        options = Options { messages: 20_000, symbols: 100, runs: 1 };
    }
    options
}

/// A day's messages, one behind the other, and where each begins.
struct Day {
    bytes: Vec<u8>,
    at: Vec<u32>,
    names: Vec<String>,
}

impl Day {
    fn simulated(options: &Options) -> Self {
        let settings = SimulatedDay { seed: 1, symbols: options.symbols, ..SimulatedDay::default() };
        let mut exchange = Exchange::new(settings);
        let mut day = Self { bytes: Vec::new(), at: vec![0], names: Vec::new() };
        let mut message = [0; LONGEST];
        while day.at.len() <= options.messages {
            let event_ns = 34_200_000_000_000 + day.at.len() as u64 * 100;
            let len = exchange.next(event_ns, &mut message).unwrap();
            day.bytes.extend_from_slice(&message[..len]);
            day.at.push(u32::try_from(day.bytes.len()).unwrap());
        }
        let name = |locate| String::from_utf8(exchange.symbol(locate)?.to_vec()).ok();
        let names = (1..=exchange.symbols()).filter_map(name);
        day.names = names.map(|name| name.trim_end().to_owned()).collect();
        day
    }

    fn messages(&self) -> impl Iterator<Item = &[u8]> {
        self.at.windows(2).map(|ends| &self.bytes[ends[0] as usize..ends[1] as usize])
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Filter,
    Normalise { filter: bool, orders: bool },
}

/// One pass over the day: messages that were wanted, ns, messages that were passed over.
fn pass(day: &Day, what: What, symbols: &Symbols, clock: &Clock) -> (u64, i64, u64) {
    let mut filter = Protocol::ItchMoldUdp64.filter(symbols.clone());
    let mut normaliser = Protocol::ItchMoldUdp64.normaliser(book::BookSettings::default(), Nanos(0));
    if let What::Normalise { orders: true, .. } = what {
        normaliser.keep_orders(4_000_000);
    }
    let from = ticks_ordered();
    let wanted = match what {
        What::Filter => day.messages().map(|message| u64::from(filter.wants(message))).sum(),
        What::Normalise { filter: true, .. } => normalise(day, Some(&mut filter), &mut normaliser),
        What::Normalise { filter: false, .. } => normalise(day, None, &mut normaliser),
    };
    let ns = clock.ns_between(from, ticks_ordered());
    (black_box(wanted), ns, filter.passed_over())
}

fn normalise(day: &Day, mut filter: Option<&mut Filter>, normaliser: &mut Normaliser) -> u64 {
    let mut wanted = 0;
    for message in day.messages() {
        if filter.as_mut().is_none_or(|filter| filter.wants(message)) {
            black_box(normaliser.apply(message).is_ok());
            wanted += 1;
        }
    }
    wanted
}

fn main() {
    let options = options();
    if let Some(core) = cores().last() {
        let _ = pin(*core);
    }
    let clock = Clock::calibrate();
    let day = Day::simulated(&options);
    let list = |every: usize| day.names.iter().skip(every / 2).step_by(every).map(String::as_str);
    let choices = [
        ("one", Symbols::new(list(day.names.len())).unwrap()),
        ("tenth", Symbols::new(list(10)).unwrap()),
        ("all", Symbols::new(["*"]).unwrap()),
    ];
    let whats = [
        ("filter", What::Filter),
        ("filter+normalise", What::Normalise { filter: true, orders: false }),
        ("normalise", What::Normalise { filter: false, orders: false }),
        ("filter+orders", What::Normalise { filter: true, orders: true }),
        ("orders", What::Normalise { filter: false, orders: true }),
    ];
    println!("{} messages of {} symbols, million messages a second", day.at.len() - 1, day.names.len());
    for (choice, symbols) in &choices {
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); whats.len()];
        let mut wanted = vec![0; whats.len()];
        for _ in 0..options.runs {
            for (at, (_, what)) in whats.iter().enumerate() {
                let (count, ns, passed_over) = pass(&day, *what, symbols, &clock);
                assert!(passed_over == 0 || count + passed_over == options.messages as u64);
                wanted[at] = count;
                rates[at].push(options.messages as f64 / ns as f64 * 1e3);
            }
        }
        for ((at, (name, _)), rates) in whats.iter().enumerate().zip(&mut rates) {
            rates.sort_by(f64::total_cmp);
            let (least, median, most) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
            println!(
                "{choice:<6} {name:<17} {least:>7.1} / {median:>7.1} / {most:>7.1}   wanted {}",
                wanted[at]
            );
        }
    }
}
