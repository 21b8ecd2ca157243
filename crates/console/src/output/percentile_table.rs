//! The table of latency percentiles.

use tapeline_measure::{Percentiles, Rank, figures};

use super::width;

const FIRST: &str = "percentile";
const GAP: &str = "   ";

/// Latency percentiles, one column for each hop. A row appears if any column's samples support it; a column
/// without support shows a dash. Every value has the unit that reads best, with aligned decimal points.
///
/// Below the rows: the number of samples and, if there are any, of negative ones (the error of the clocks) and of
/// those above one hour.
pub fn percentile_table(hops: &[(&str, &Percentiles)]) -> String {
    let columns: Vec<Column> =
        hops.iter().map(|(title, percentiles)| Column::new(title, percentiles)).collect();
    let mut lines = vec![
        line(FIRST, columns.iter().map(|column| right(&column.title, column.width))),
        line(&"-".repeat(FIRST.len()), columns.iter().map(|column| "-".repeat(column.width))),
    ];
    for rank in Rank::ALL {
        if hops.iter().any(|(_, percentiles)| percentiles.at(rank).is_some()) {
            lines.push(line(&rank.to_string(), columns.iter().map(|column| column.latency(rank))));
        }
    }
    for (number, name) in COUNTS.iter().enumerate() {
        // The number of samples always, the other counts only if not zero.
        if number == 0 || columns.iter().any(|column| column.counts[number] != "0") {
            lines.push(line(name, columns.iter().map(|column| right(&column.counts[number], column.width))));
        }
    }
    lines.join("\n")
}

const COUNTS: [&str; 3] = ["samples", "negative", "over 1 h"];

struct Column {
    title: String,
    /// Row, digits before the decimal point, and the rest with the unit.
    cells: Vec<(Rank, String, String)>,
    counts: [String; 3],
    width: usize,
    /// Columns from the decimal point on.
    after: usize,
}

impl Column {
    fn new(title: &str, percentiles: &Percentiles) -> Self {
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
        let before = cells.iter().map(|(_, before, _)| width(before)).max().unwrap_or(1);
        let after = cells.iter().map(|(_, _, after)| width(after)).max().unwrap_or(0);
        let widest = counts.iter().map(|count| width(count)).max().unwrap_or(0);
        Self {
            title: title.to_owned(),
            cells,
            counts,
            width: (before + after).max(width(title)).max(widest),
            after,
        }
    }

    /// The cell of one row, padded to the column's width.
    fn latency(&self, rank: Rank) -> String {
        let found = self.cells.iter().find(|(row, ..)| *row == rank);
        let (before, after) = found.map_or(("–", ""), |(_, before, after)| (before, after));
        let padding = " ".repeat(self.after - width(after));
        right(&format!("{before}{after}{padding}"), self.width)
    }
}

fn right(text: &str, wide: usize) -> String {
    format!("{text:>wide$}")
}

fn line(first: &str, cells: impl Iterator<Item = String>) -> String {
    let mut line = format!("{first:<wide$}", wide = FIRST.len());
    for cell in cells {
        line.push_str(GAP);
        line.push_str(&cell);
    }
    line.trim_end().to_owned()
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
