//! Shared parts of every printing command: choice of format, tables, rates, and progress.
//!
//! Data goes to standard output through [`print()`] and [`print_json`], which distinguish a failure from a reader
//! that has closed the pipe.

mod percentile_table;
mod progress;
mod table;

use std::io::{self, BufWriter, Write};

use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use tapeline_measure::{Verdict, figures};

pub use percentile_table::percentile_table;
pub use progress::Progress;
pub use table::{Table, table};

/// How a command prints its result on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// Writes text and a line end to standard output. Styles are removed unless it is a terminal.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("cannot write to standard output")
}

/// Writes a value as indented JSON to standard output while it is serialised: its text is never held as a whole.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, value)
        .map_err(io::Error::from)
        .and_then(|()| writeln!(out))
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}

/// Writes a value as JSON on one line to standard output, for programs that read line by line.
pub fn print_json_line(value: &impl Serialize) -> anyhow::Result<()> {
    print(&serde_json::to_string(value).context("cannot express the result as JSON")?)
}

/// A value as indented JSON.
pub fn json(value: &impl Serialize) -> anyhow::Result<String> {
    serde_json::to_string_pretty(value).context("cannot express the result as JSON")
}

/// Formats a rate: `1.23 M msgs/s`; `unit` is plural, without the `/s`.
pub fn rate(per_second: f64, unit: &str) -> String {
    figures::quantity(per_second, &format!("{unit}/s"), false)
}

/// Formats a rate of bytes: `35.1 MB/s`.
pub fn byte_rate(per_second: f64) -> String {
    figures::quantity(per_second, "B/s", true)
}

/// Formats a latency in nanoseconds; a dash if there is none.
pub fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| "–".to_owned(), figures::duration)
}

/// The verdict's word in its colour: green for a pass, yellow if the result is weaker than requested, red for a
/// failure.
pub fn painted(verdict: Verdict) -> String {
    let colour = match verdict {
        Verdict::Pass => 32,
        Verdict::Noisy | Verdict::GeneratorLimited => 33,
        _ => 31,
    };
    format!("\x1b[1;{colour}m{verdict}\x1b[0m")
}

/// The number of characters. Each takes one column in all printed text.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_well() {
        assert_eq!(rate(1_234_567.0, "msgs"), "1.23 M msgs/s");
        assert_eq!(byte_rate(35_100_000.0), "35.1 MB/s");
        assert_eq!((latency(Some(2_100)), latency(None)), ("2.1 µs".to_owned(), "–".to_owned()));
        assert_eq!(painted(Verdict::Pass), "\x1b[1;32mPASS\x1b[0m");
    }
}
