//! The part of a distribution that is printed.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::recorder::Recorder;

/// A row of the percentile table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rank {
    /// The smallest sample.
    Min,
    /// The percentile in hundredths of a per cent: 9995 is 99.95 %.
    Hundredths(u16),
    /// The largest sample.
    Max,
}

/// Hundredths of a per cent in the whole.
const WHOLE: u16 = 10_000;

impl Rank {
    /// All rows, in the order of the table.
    pub const ALL: [Self; 15] = [
        Self::Min,
        Self::Hundredths(100),
        Self::Hundredths(1_000),
        Self::Hundredths(2_500),
        Self::Hundredths(5_000),
        Self::Hundredths(7_500),
        Self::Hundredths(8_000),
        Self::Hundredths(9_000),
        Self::Hundredths(9_500),
        Self::Hundredths(9_900),
        Self::Hundredths(99_50),
        Self::Hundredths(99_90),
        Self::Hundredths(99_95),
        Self::Hundredths(99_99),
        Self::Max,
    ];

    /// The median.
    pub const MEDIAN: Self = Self::Hundredths(5_000);
    /// The 99th percentile.
    pub const P99: Self = Self::Hundredths(9_900);

    /// Returns the name in JSON and in headings: `min`, `p50`, `p99.9`, `max`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Min | Self::Max => self.to_string(),
            Self::Hundredths(_) => format!("p{self}"),
        }
    }

    /// Returns `true` if this number of samples supports the row: at least [`Percentiles::BEYOND`] of them lie beyond
    /// it (below it for the rows under the median).
    #[must_use]
    pub fn supported_by(self, samples: u64) -> bool {
        match self {
            Self::Min | Self::Max => samples > 0,
            Self::Hundredths(hundredths) => {
                let beyond = u64::from(hundredths.min(WHOLE.saturating_sub(hundredths)));
                u128::from(samples) * u128::from(beyond)
                    >= u128::from(Percentiles::BEYOND) * u128::from(WHOLE)
            }
        }
    }
}

impl fmt::Display for Rank {
    /// As in the table: `min`, `50`, `99.5`, `99.99`, `max`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Min => f.pad("min"),
            Self::Max => f.pad("max"),
            // The shortest decimal that is this number: 50, 99.5, 99.99.
            Self::Hundredths(hundredths) => f.pad(&(f64::from(hundredths) / 100.0).to_string()),
        }
    }
}

/// The percentiles of a [`Recorder`] at one moment. Only rows that the samples support are present.
///
/// As JSON: `{"samples":…,"negatives":…,"most_negative_ns":…,"clamped":…,"mean_ns":…,"latency_ns":{"min":…,"p50":…,…,"max":…}}`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Number of samples that the rows describe.
    pub samples: u64,
    /// Number of negative samples (the clocks' error), which are in no row.
    pub negatives: u64,
    /// The most negative sample, in nanoseconds.
    pub most_negative_ns: i64,
    /// Number of samples above one hour, which count as one hour.
    pub clamped: u64,
    /// Arithmetic mean in nanoseconds; 0 without samples. For comparison with tools that print only a mean.
    pub mean_ns: u64,
    /// Rows in ascending order, each with its latency in nanoseconds.
    #[serde(rename = "latency_ns", serialize_with = "as_map")]
    pub rows: Vec<(Rank, u64)>,
}

impl Percentiles {
    /// Number of samples that must lie beyond a percentile for it to be printed: with fewer, chance events decide the
    /// value.
    pub const BEYOND: u64 = 10;

    pub(crate) fn of(recorder: &Recorder) -> Self {
        let samples = recorder.samples();
        let rows = Rank::ALL.into_iter().filter(|rank| rank.supported_by(samples)).filter_map(|rank| {
            let ns = match rank {
                Rank::Min => recorder.min_ns(),
                Rank::Max => recorder.max_ns(),
                Rank::Hundredths(hundredths) => recorder.value_at(f64::from(hundredths) / f64::from(WHOLE)),
            };
            ns.map(|ns| (rank, ns))
        });
        Self {
            samples,
            negatives: recorder.negatives(),
            most_negative_ns: recorder.most_negative_ns(),
            clamped: recorder.clamped(),
            mean_ns: if samples == 0 { 0 } else { recorder.histogram().mean().round() as u64 },
            rows: rows.collect(),
        }
    }

    /// Returns the latency of one row in nanoseconds, if the samples support it.
    #[must_use]
    pub fn at(&self, rank: Rank) -> Option<u64> {
        self.rows.iter().find(|(row, _)| *row == rank).map(|(_, ns)| *ns)
    }
}

fn as_map<S: Serializer>(rows: &[(Rank, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(rows.len()))?;
    for (rank, ns) in rows {
        map.serialize_entry(&rank.name(), ns)?;
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: u64) -> Percentiles {
        let mut recorder = Recorder::new();
        for ns in 1..=samples {
            recorder.record(ns as i64);
        }
        recorder.percentiles()
    }

    fn ranks(samples: u64) -> String {
        of(samples).rows.iter().map(|(rank, _)| rank.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_row_needs_ten_samples_beyond_it() {
        assert_eq!(ranks(0), "");
        assert_eq!([ranks(1), ranks(19)], ["min max"; 2]);
        assert_eq!([ranks(20), ranks(39)], ["min 50 max"; 2]);
        assert_eq!(ranks(40), "min 25 50 75 max");
        assert_eq!(ranks(999), "min 10 25 50 75 80 90 95 max");
        assert_eq!(ranks(1_000), "min 1 10 25 50 75 80 90 95 99 max");
        assert_eq!(ranks(99_999), "min 1 10 25 50 75 80 90 95 99 99.5 99.9 99.95 max");
        assert_eq!(ranks(100_000), "min 1 10 25 50 75 80 90 95 99 99.5 99.9 99.95 99.99 max");
        assert!(Rank::Max.supported_by(u64::MAX) && Rank::Hundredths(99_99).supported_by(u64::MAX));
    }

    #[test]
    fn rows_have_the_values_of_the_samples() {
        let percentiles = of(1_000);
        for (rank, ns) in [(Rank::Min, 1), (Rank::Hundredths(100), 10), (Rank::MEDIAN, 500), (Rank::P99, 990)]
        {
            assert_eq!(percentiles.at(rank), Some(ns));
        }
        assert_eq!(percentiles.at(Rank::Max), Some(1_000));
        assert_eq!(percentiles.at(Rank::Hundredths(99_99)), None);
        assert!(percentiles.mean_ns.abs_diff(500) <= 1);
    }

    #[test]
    fn json_names_every_row() {
        let json = serde_json::to_value(of(200)).unwrap();
        assert_eq!(json["samples"], 200);
        assert_eq!(json["latency_ns"]["p95"], 190);
        assert_eq!(json["latency_ns"]["max"], 200);
        assert!(json["latency_ns"].get("p99").is_none());
    }
}
