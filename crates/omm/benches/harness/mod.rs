//! What the benches of this crate have in common: options, repeats, a table.
//!
//! With `--rounds` each case goes over its 1,024 messages so many times instead of so long, for tools that count
//! instructions, and its name and number of messages are printed; `--case decode/70/varied` leaves the others out. Each
//! figure is min / median / max over the repeats; the checksum is a function of what was read or written, so that nothing
//! can be left out.

use std::hint::black_box;

use tapeline_measure::{Clock, cores, pin, ticks};

/// Messages of an input that varies; a power of two.
pub(crate) const VARIED: usize = 1_024;
/// Messages between two readings of the clock.
const BATCH: usize = 4_096;

pub(crate) struct Bench {
    name: &'static str,
    seconds: f64,
    repeats: usize,
    json: bool,
    case: Option<String>,
    rounds: Option<usize>,
    /// A tool that counts instructions need not know the clock's.
    clock: Option<Clock>,
    rows: Vec<Row>,
}

struct Row {
    what: &'static str,
    fields: usize,
    input: &'static str,
    bytes: f64,
    millions_per_s: Vec<f64>,
    checksum: u64,
}

impl Bench {
    /// With the options of the command line, on one core.
    pub(crate) fn new(name: &'static str) -> Self {
        let mut bench = Self {
            name,
            seconds: 0.15,
            repeats: 5,
            json: false,
            case: None,
            rounds: None,
            clock: None,
            rows: Vec::new(),
        };
        let mut core = cores().last().copied();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().unwrap_or_default();
            match argument.as_str() {
                "--core" => core = value().parse().ok(),
                "--seconds" => bench.seconds = value().parse().unwrap_or(bench.seconds),
                "--repeats" => bench.repeats = value().parse().unwrap_or(bench.repeats).max(1),
                "--json" => bench.json = true,
                "--case" => bench.case = Some(value()),
                "--rounds" => bench.rounds = value().parse().ok(),
                // What cargo passes on.
                "--bench" => {}
                other => eprintln!("{name}: {other} is not an option"),
            }
        }
        if let Some(core) = core
            && let Err(failure) = pin(core)
        {
            eprintln!("{name}: runs unpinned: {failure}");
        }
        if bench.rounds.is_none() {
            bench.clock = Some(Clock::calibrate());
        }
        bench
    }

    /// Measures `work` on 0, 1, 2 …, if it is wanted; messages of so many bytes on average.
    pub(crate) fn add(
        &mut self,
        (what, fields, input): (&'static str, usize, &'static str),
        bytes: f64,
        work: impl FnMut(usize) -> u64,
    ) {
        let case = format!("{what}/{fields}/{input}");
        if self.case.as_ref().is_none_or(|wanted| *wanted == case) {
            let (millions_per_s, checksum) = self.measure(work);
            self.rows.push(Row { what, fields, input, bytes, millions_per_s, checksum });
        }
    }

    /// Million calls a second for each repeat, and the sum of one pass over the messages.
    fn measure(&self, mut work: impl FnMut(usize) -> u64) -> (Vec<f64>, u64) {
        let mut pass =
            |sum: u64| (0..VARIED).fold(sum, |sum, place| sum.wrapping_mul(31).wrapping_add(work(place)));
        let Some(clock) = &self.clock else {
            // The first pass finds its pages and library functions; that is not the work's.
            let mut checksum = pass(0);
            counting_begins_or_ends();
            checksum = (0..self.rounds.unwrap_or(1)).fold(checksum, |sum, _| pass(sum));
            counting_begins_or_ends();
            return (vec![f64::NAN], checksum);
        };
        let checksum = pass(0);
        let limit_ns = (self.seconds * 1e9) as i64;
        let repeat = |_| {
            let (start, mut done, mut sum) = (ticks(), 0_usize, 0_u64);
            loop {
                for place in 0..BATCH {
                    sum = sum.wrapping_add(work(place));
                }
                done += BATCH;
                let spent_ns = clock.ns_between(start, ticks());
                if spent_ns >= limit_ns {
                    black_box(sum);
                    return done as f64 * 1e3 / spent_ns as f64;
                }
            }
        };
        let mut rates: Vec<f64> = (0..self.repeats).map(repeat).collect();
        rates.sort_by(f64::total_cmp);
        (rates, checksum)
    }

    pub(crate) fn print(&self) {
        if let Some(rounds) = self.rounds {
            for Row { what, fields, input, .. } in &self.rows {
                println!("{}/{what}/{fields}/{input} {}", self.name, rounds * VARIED);
            }
            return;
        }
        if !self.json {
            println!(
                "{:<7} {:>6} {:<7} {:>6}  {:>8} {:>8} {:>8}  {:>7}  checksum",
                "what", "fields", "input", "bytes", "min", "median", "max", "ns"
            );
        }
        for row in &self.rows {
            let rates = &row.millions_per_s;
            let (min, median, max) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
            let Row { what, fields, input, bytes, checksum, .. } = row;
            if self.json {
                println!(
                    "{{\"bench\":\"{}\",\"what\":\"{what}\",\"fields\":{fields},\"input\":\"{input}\",\"bytes\":{bytes:.1},\
                     \"min\":{min:.3},\"median\":{median:.3},\"max\":{max:.3},\"unit\":\"million/s\",\
                     \"checksum\":\"{checksum:016x}\"}}",
                    self.name
                );
            } else {
                println!(
                    "{what:<7} {fields:>6} {input:<7} {bytes:>6.1}  {min:>8.2} {median:>8.2} {max:>8.2}  {:>7.1}  \
                     {checksum:016x}",
                    1e3 / median,
                );
            }
        }
    }
}

/// `scripts/instructions` counts from one call of this to the next, from every odd one. One function, as the linker would
/// make one of two that do the same.
#[inline(never)]
fn counting_begins_or_ends() {
    black_box(());
}
