//! What can go wrong with a hub's clients, each by itself, with the real binary. Beside each fault there is a client that gets
//! every image and every update of the plant's, once and in order, and the plant says what happened and why.

mod bytes;
mod dying;
mod market;
mod memory;
mod peer;
mod providing;
mod silent;
mod slow;
mod stopping;
mod storm;
mod tls;

use crate::stage;

use market::Market;

/// Messages of a day. All of a stock's updates fit into a connection's buffers, so that a witness that gets no processor for a
/// while misses none.
const DAY: &str = "6k";

/// Does something, and prints how long it took: `make hub-faults` shows it. No test depends on it.
#[allow(clippy::print_stdout, reason = "what a run is for, beside its verdict")]
fn timed<T>(what: &str, does: impl FnOnce() -> T) -> T {
    let begun = std::time::Instant::now();
    let done = does();
    println!("{what:<72} {:>8.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    done
}

/// What the plant reports of its hub under this name.
fn count(report: &serde_json::Value, of: &str) -> u64 {
    report["hub"][of].as_u64().unwrap_or_else(|| panic!("no {of} in {report}"))
}

/// A day with nothing wrong but what `fault` does, after which the day's rest goes by.
fn day(mut market: Market, fault: impl FnOnce(&mut Market)) -> (serde_json::Value, Vec<String>) {
    let feeder = market.replay(DAY, "3k");
    let before = market.witness_gets(200);
    fault(&mut market);
    feeder.finish();
    market.end(before)
}
