//! Figures by system and question, as medians and spreads over the turns.

use std::fmt;

use crate::case::{Latency, Metric, Received, Sent};
use crate::session::{Figure, Outcome};

/// Median, least and most over the turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None` without values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median =
            if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Self { median, least, most })
    }

    /// All three through a function that keeps their order.
    pub(crate) fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { median: f(self.median), least: f(self.least), most: f(self.most) }
    }
}

/// To three digits: `1.02 (0.98–1.10)`, `252 (240–260)`.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}–{})", three(self.median), three(self.least), three(self.most))
    }
}

/// A number to three digits, whole ones in full.
pub(crate) fn three(value: f64) -> String {
    match value.abs() {
        v if v < 9.995 => format!("{value:.2}"),
        v if v < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Results<'a>(pub(crate) &'a [Figure]);

impl<'a> Results<'a> {
    /// Turn, sender and receivers of each measurement that came to an end.
    pub(crate) fn done(
        self,
        system: &str,
        metric: Metric,
    ) -> impl Iterator<Item = (usize, &'a Sent, &'a [Received])> {
        self.0.iter().filter_map(move |figure| match &figure.result {
            Outcome::Done { sent, received } if figure.system == system && figure.metric == metric => {
                Some((figure.turn, sent, received.as_slice()))
            }
            _ => None,
        })
    }

    /// The value by which systems are compared, of each turn: messages a second of the slowest receiver, median latency in
    /// ns.
    fn by_turn(self, system: &str, metric: Metric) -> Vec<(usize, f64)> {
        self.done(system, metric)
            .filter_map(|(turn, _, received)| {
                let values = received.iter().filter_map(|one| metric.value(one));
                Some((turn, values.reduce(f64::min)?))
            })
            .collect()
    }

    /// That value over the turns.
    pub(crate) fn value(self, system: &str, metric: Metric) -> Option<Spread> {
        Spread::of(self.by_turn(system, metric).into_iter().map(|(_, value)| value))
    }

    /// The ratio of two values, taken within each turn: what is compared was measured within seconds.
    pub(crate) fn ratio(self, over: (&str, Metric), under: (&str, Metric)) -> Option<Spread> {
        let under = self.by_turn(under.0, under.1);
        Spread::of(self.by_turn(over.0, over.1).into_iter().filter_map(|(turn, value)| {
            let (_, other) = under.iter().find(|(other, _)| *other == turn)?;
            (*other > 0.0).then_some(value / other)
        }))
    }

    /// A part of the latency over the turns.
    pub(crate) fn latency(
        self,
        system: &str,
        metric: Metric,
        part: impl Fn(&Latency) -> u64,
    ) -> Option<Spread> {
        let latencies = self.done(system, metric).filter_map(|(_, _, received)| received.first()?.latency);
        Spread::of(latencies.map(|latency| part(&latency) as f64))
    }

    /// Messages that a system lost, disordered or tore, and measurements that came to no end.
    pub(crate) fn faults(self, system: &str) -> (u64, Vec<String>) {
        let (mut wrong, mut failed) = (0, Vec::new());
        for figure in self.0.iter().filter(|figure| figure.system == system) {
            match &figure.result {
                Outcome::Done { received, .. } => {
                    wrong += received.iter().map(|one| one.lost + one.disordered + one.torn).sum::<u64>();
                }
                Outcome::Failed(why) => {
                    failed.push(format!("{}, turn {}: {why}", figure.metric, figure.turn + 1));
                }
            }
        }
        (wrong, failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Regime;

    fn figure(system: &str, turn: usize, per_second: f64) -> Figure {
        let received = vec![Received { per_second, lost: 1, ..Received::default() }];
        let metric = Metric::Throughput { bytes: 32, regime: Regime::Backlog };
        let result = Outcome::Done { sent: Sent::default(), received };
        Figure { system: system.to_owned(), metric, turn, result }
    }

    #[test]
    fn ratios_are_taken_within_a_turn() {
        let metric = Metric::Throughput { bytes: 32, regime: Regime::Backlog };
        let mut figures = Vec::new();
        for (turn, (a, b)) in [(10.0, 5.0), (30.0, 10.0), (4.0, 1.0)].into_iter().enumerate() {
            figures.extend([figure("a", turn, a), figure("b", turn, b)]);
        }
        let results = Results(&figures);
        assert_eq!(results.value("a", metric), Some(Spread { median: 10.0, least: 4.0, most: 30.0 }));
        let ratio = results.ratio(("a", metric), ("b", metric)).unwrap();
        assert_eq!(ratio.to_string(), "3.00 (2.00–4.00)");
        assert_eq!(results.ratio(("a", metric), ("c", metric)), None);
        assert_eq!(results.faults("a"), (3, Vec::new()));
    }

    #[test]
    fn numbers_have_three_digits() {
        for (value, text) in [(0.0, "0.00"), (1.0, "1.00"), (9.996, "10.0"), (99.96, "100"), (252.4, "252")] {
            assert_eq!(three(value), text);
        }
    }
}
