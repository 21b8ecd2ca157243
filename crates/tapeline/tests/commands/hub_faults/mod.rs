//! Faults of a hub's clients, one at a time, with the real binary. With each fault, another client gets every image and
//! every update of the plant once and in order, and the plant reports what happened and why.

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

/// Messages of a simulated day. All updates of a stock fit into a connection's buffers, so that a witness without a
/// processor for a while misses none.
const DAY: &str = "6k";

/// Runs a step, and prints how long it took: `make hub-faults` shows it. No test depends on it.
#[allow(clippy::print_stdout, reason = "what a run is for, beside its verdict")]
fn timed<T>(what: &str, does: impl FnOnce() -> T) -> T {
    let begun = std::time::Instant::now();
    let done = does();
    println!("{what:<72} {:>8.1} ms", begun.elapsed().as_secs_f64() * 1e3);
    done
}

/// A figure of the hub in the plant's report.
fn count(report: &serde_json::Value, of: &str) -> u64 {
    report["hub"][of].as_u64().unwrap_or_else(|| panic!("no {of} in {report}"))
}

/// A day without faults except those of `fault`; then the rest of the day is sent.
fn day(mut market: Market, fault: impl FnOnce(&mut Market)) -> (serde_json::Value, Vec<String>) {
    let feeder = market.replay(DAY, "3k");
    let before = market.witness_gets(200);
    fault(&mut market);
    feeder.finish();
    // Everything is on the ring: a plant that is asked to end while a reader keeps a small ring full leaves out the rest, and says so by its status.
    market.plant.tells(&["the session is over"]);
    market.end(before)
}
