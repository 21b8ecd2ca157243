//! A distribution over time.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use tapeline_nanos::Nanos;

/// Digits within a window: percentiles accurate to 1 % take 20 KB, which is quick to clear at the end of each
/// window.
const DIGITS: u8 = 2;
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Latencies by time window (usually a second), in bounded memory: one row of statistics for each window.
#[derive(Clone, Debug)]
pub struct Series {
    start: Nanos,
    window_ns: u64,
    limit: usize,
    rows: Vec<Window>,
    beyond: u64,
    open: Histogram<u32>,
    open_index: u64,
    open_max_ns: u64,
    negatives: u64,
    open_until: Nanos,
}

/// One window of a [`Series`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Index of the window: it began at `index × window` after the start.
    pub index: u64,
    /// Number of samples in the window, negative ones included.
    pub count: u64,
    /// Number of negative samples.
    pub negatives: u64,
    /// Median latency in nanoseconds, to 1 %.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds, to 1 %. With few samples it is the largest one: check `count`.
    pub p99_ns: u64,
    /// Largest latency in nanoseconds, exact.
    pub max_ns: u64,
}

impl Series {
    /// Row limit of [`by_second`](Self::by_second): more than a day.
    pub const ROWS: usize = 100_000;

    /// Creates a series with one row a second from `start` on.
    #[must_use]
    pub fn by_second(start: Nanos) -> Self {
        Self::new(start, 1_000_000_000, Self::ROWS)
    }

    /// Creates a series with one row for each `window_ns` (at least 1) from `start` on. After `limit` rows, samples are
    /// only counted ([`beyond`](Self::beyond)). A window without samples has no row.
    #[must_use]
    #[allow(clippy::unwrap_used)]
    pub fn new(start: Nanos, window_ns: u64, limit: usize) -> Self {
        let window_ns = window_ns.max(1);
        // Cannot fail: the bounds are constants that the histogram accepts (a test makes one).
        let mut open = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).unwrap();
        open.reset();
        Self {
            start,
            window_ns,
            limit,
            // Capacity for one hour of rows; the vector grows beyond that only at the end of a window, and
            // rarely.
            rows: Vec::with_capacity(limit.min(3_600)),
            beyond: 0,
            open,
            open_index: 0,
            open_max_ns: 0,
            negatives: 0,
            open_until: start + window_ns,
        }
    }

    /// Adds a latency observed at `at`. A sample older than the open window counts in the open window. Costs one
    /// comparison more than [`Recorder::record`](crate::Recorder::record), and some microseconds at the end of a
    /// window.
    #[inline]
    pub fn record(&mut self, at: Nanos, ns: i64) {
        if at >= self.open_until {
            self.turn(at);
        }
        match u64::try_from(ns) {
            Ok(ns) => {
                self.open_max_ns = self.open_max_ns.max(ns);
                self.open.saturating_record(ns);
            }
            Err(_) => self.negatives += 1,
        }
    }

    /// Closes the open window and opens the one that contains `at`.
    #[cold]
    fn turn(&mut self, at: Nanos) {
        self.close();
        self.open_index = at.0.saturating_sub(self.start.0) / self.window_ns;
        self.open_until = self.start + (self.open_index + 1).saturating_mul(self.window_ns);
    }

    fn close(&mut self) {
        let count = self.open.len() + self.negatives;
        if count == 0 {
            return;
        }
        if self.rows.len() < self.limit {
            let quantile = |q| self.open.value_at_quantile(q).min(self.open_max_ns);
            self.rows.push(Window {
                index: self.open_index,
                count,
                negatives: self.negatives,
                p50_ns: quantile(0.5),
                p99_ns: quantile(0.99),
                max_ns: self.open_max_ns,
            });
        } else {
            self.beyond += count;
        }
        self.open.reset();
        self.open_max_ns = 0;
        self.negatives = 0;
    }

    /// Ends the series and returns its rows in order.
    #[must_use]
    pub fn finish(mut self) -> Vec<Window> {
        self.close();
        self.rows
    }

    /// Returns the number of samples in windows beyond the limit, which have no row.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }

    /// Returns the length of a window in nanoseconds.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn one_row_a_window_and_none_for_silence() {
        let start = Nanos(77 * SECOND);
        let mut series = Series::by_second(start);
        for k in 0..100 {
            series.record(start + k, 100 + k as i64);
        }
        series.record(start + SECOND, -3);
        series.record(start + 5 * SECOND + 1, 7);
        series.record(start + 4 * SECOND, 9);
        let rows = series.finish();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].index, rows[0].count, rows[0].max_ns), (0, 100, 199));
        assert!(rows[0].p50_ns.abs_diff(149) <= 2 && rows[0].p99_ns.abs_diff(198) <= 2, "{:?}", rows[0]);
        let negative = Window { index: 1, count: 1, negatives: 1, p50_ns: 0, p99_ns: 0, max_ns: 0 };
        assert_eq!(rows[1], negative);
        assert_eq!((rows[2].index, rows[2].count, rows[2].max_ns), (5, 2, 9));
    }

    #[test]
    fn memory_is_bounded_and_what_is_left_out_is_counted() {
        let mut series = Series::new(Nanos(0), 10, 3);
        for k in 0..100 {
            series.record(Nanos(k), 1);
        }
        series.record(Nanos(u64::MAX), 1);
        assert_eq!((series.rows.len(), series.beyond()), (3, 70));
        assert_eq!(series.finish().len(), 3);
    }
}
