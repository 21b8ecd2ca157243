//! The rates of what was measured.

use std::fmt;
use std::hint::black_box;

use tapeline_measure::{Clock, ticks_ordered};

/// Rates in million messages a second by what was measured, in the order of measuring. Formatted as a table of Markdown.
pub(crate) struct Rows {
    pub(crate) title: String,
    clock: Clock,
    messages: u64,
    rows: Vec<(&'static str, Vec<f64>, u64)>,
}

impl Rows {
    pub(crate) fn new(clock: Clock, messages: u64) -> Self {
        Self { title: String::new(), clock, messages, rows: Vec::new() }
    }

    /// Times `work`, and returns its result, which is the same in each run.
    pub(crate) fn time(&mut self, what: &'static str, work: impl FnOnce() -> u64) -> u64 {
        let start = ticks_ordered();
        let result = black_box(work());
        let ns = self.clock.ns_between(start, ticks_ordered());
        let rate = self.messages as f64 * 1e3 / ns as f64;
        match self.rows.iter_mut().find(|(row, ..)| *row == what) {
            Some((_, rates, first)) => {
                assert_eq!(*first, result, "{what} is not the same each time");
                rates.push(rate);
                rates.sort_by(f64::total_cmp);
            }
            None => self.rows.push((what, vec![rate], result)),
        }
        result
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let median = |rates: &[f64]| rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN);
        let floor = self.rows.first().map_or(f64::NAN, |(_, rates, _)| median(rates));
        writeln!(f, "## {}\n", self.title)?;
        writeln!(f, "| what | min | median | max | ns | times the floor |\n|---|---:|---:|---:|---:|---:|")?;
        for (what, rates, _) in &self.rows {
            let (least, median, most) = (rates[0], median(rates), rates[rates.len() - 1]);
            writeln!(
                f,
                "| {what} | {least:.1} | **{median:.1}** | {most:.1} | {:.1} | {:.1} |",
                1e3 / median,
                floor / median
            )?;
        }
        Ok(())
    }
}

/// The floor of anything that reads these bytes: their sum as words of eight.
#[inline(never)]
pub(crate) fn memory(file: &[u8]) -> u64 {
    file.as_chunks().0.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}
