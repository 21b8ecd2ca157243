//! Rates, latencies from when updates were due, verdicts.

use tapeline_console::output;
use tapeline_measure::{Percentiles, Rank, figures};

use super::round::Round;

/// A row for each round; rows of tickerplants also show the ratio to the relay at the same rate and way of waiting.
pub(super) fn of(rounds: &[Round]) -> output::Table {
    let head =
        ["updates/s", "through", "waiting", "p50", "p90", "p99", "p99.9", "p99.99", "by relay", "verdict"];
    let mut table = output::table(head);
    for round in rounds {
        let at = |rank| output::latency(round.latency.as_ref().and_then(|latency| latency.at(rank)));
        let relay = rounds.iter().find(|other| {
            other.is_relay()
                && !round.is_relay()
                && (other.rate, other.waiting) == (round.rate, round.waiting)
        });
        table.add_row([
            figures::thousands(round.rate),
            round.through.clone(),
            round.waiting.word().to_owned(),
            at(Rank::MEDIAN),
            at(Rank::Hundredths(90_00)),
            at(Rank::P99),
            at(Rank::Hundredths(99_90)),
            at(Rank::Hundredths(99_99)),
            relay.and_then(|relay| by(round, relay)).unwrap_or_else(|| "–".to_owned()),
            round.verdict.clone(),
        ]);
    }
    table
}

/// Median and p99.9, each divided by the relay's.
fn by(round: &Round, relay: &Round) -> Option<String> {
    let at = |latency: &Percentiles, rank| latency.at(rank).map(|ns| ns as f64);
    let ratio = |rank| Some(at(round.latency.as_ref()?, rank)? / at(relay.latency.as_ref()?, rank)?.max(1.0));
    Some(format!("{:.2}, {:.2}", ratio(Rank::MEDIAN)?, ratio(Rank::Hundredths(99_90))?))
}
