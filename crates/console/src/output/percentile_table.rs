//! The table of latency percentiles.

use tapeline_measure::{Percentiles, Rank, figures};

use super::{table, width};

/// Latency percentiles, one column for each hop. A row appears if any column's samples support it; a column
/// without support shows a dash. Every value has the unit that reads best, with aligned decimal points.
///
/// Below the rows: the number of samples and, if there are any, of negative ones (the error of the clocks) and of
/// those above one hour.
pub fn percentile_table(hops: &[(&str, &Percentiles)]) -> String {
    let columns: Vec<Column> = hops.iter().map(|(_, percentiles)| Column::new(percentiles)).collect();
    let mut table = table(std::iter::once("percentile").chain(hops.iter().map(|(title, _)| *title)));
    let mut row =
        |name: &str, cells: Vec<String>| table.add_row(std::iter::once(name.to_owned()).chain(cells));
    for rank in Rank::ALL {
        if hops.iter().any(|(_, percentiles)| percentiles.at(rank).is_some()) {
            row(&rank.to_string(), columns.iter().map(|column| column.latency(rank)).collect());
        }
    }
    for (number, name) in ["samples", "negative", "over 1 h"].into_iter().enumerate() {
        // The number of samples always, the other counts only if not zero.
        if number == 0 || columns.iter().any(|column| column.counts[number] != "0") {
            row(name, columns.iter().map(|column| column.counts[number].clone()).collect());
        }
    }
    table.to_string()
}

struct Column {
    /// Row, digits before the decimal point, and the rest with the unit.
    cells: Vec<(Rank, String, String)>,
    counts: [String; 3],
    /// The width from the decimal point on.
    after: usize,
}

impl Column {
    fn new(percentiles: &Percentiles) -> Self {
        let cells: Vec<_> = percentiles
            .rows
            .iter()
            .map(|&(rank, ns)| {
                let (number, unit) = figures::duration_parts(ns);
                let point = number.find('.').unwrap_or(number.len());
                let (before, after) = number.split_at(point);
                (rank, before.to_owned(), format!("{after} {unit}"))
            })
            .collect();
        let counts =
            [percentiles.samples, percentiles.negatives, percentiles.clamped].map(figures::thousands);
        let after = cells.iter().map(|(_, _, after)| width(after)).max().unwrap_or(0);
        Self { cells, counts, after }
    }

    /// The cell of one row, with all decimal points at one distance from its end.
    fn latency(&self, rank: Rank) -> String {
        let found = self.cells.iter().find(|(row, ..)| *row == rank);
        let (before, after) = found.map_or(("–", ""), |(_, before, after)| (before, after));
        let padding = " ".repeat(self.after - width(after));
        format!("{before}{after}{padding}")
    }
}

#[cfg(test)]
mod tests {
    use tapeline_measure::Recorder;

    use super::*;

    #[test]
    fn one_column() {
        let mut recorder = Recorder::new();
        for _ in 0..1_230_000 {
            recorder.record(102);
        }
        for _ in 0..4_560 {
            recorder.record(2_100);
        }
        for ns in [3_200_000, 101, 99_000_000] {
            recorder.record(ns);
        }
        recorder.record(-5);
        let expected = "\
percentile     latency
----------   ---------
min           101 ns
1             102 ns
10            102 ns
25            102 ns
50            102 ns
75            102 ns
80            102 ns
90            102 ns
95            102 ns
99            102 ns
99.5          102 ns
99.9            2.1 µs
99.95           2.1 µs
99.99           2.1 µs
max            99.0 ms
samples      1,234,563
negative             1";
        assert_eq!(percentile_table(&[("latency", &recorder.percentiles())]), expected);
    }

    #[test]
    fn columns_side_by_side_with_what_each_supports() {
        let mut few = Recorder::new();
        let mut many = Recorder::new();
        for ns in 0..20 {
            few.record(1_500 + ns);
        }
        for ns in 0..200 {
            many.record(10 * ns);
        }
        let none = Recorder::new();
        let table = percentile_table(&[
            ("wire→decoded", &few.percentiles()),
            ("all", &many.percentiles()),
            ("nothing", &none.percentiles()),
        ]);
        let expected = "\
percentile   wire→decoded        all   nothing
----------   ------------   --------   -------
min                1.5 µs     0 ns           –
10                 –        190 ns           –
25                 –        490 ns           –
50                 1.5 µs   990 ns           –
75                 –          1.5 µs         –
80                 –          1.6 µs         –
90                 –          1.8 µs         –
95                 –          1.9 µs         –
max                1.5 µs     2.0 µs         –
samples                20        200         0";
        assert_eq!(table, expected);
    }
}
