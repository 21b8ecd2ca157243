//! A reader that stands still on one plant below: what it costs the reader of another.

use std::path::Path;

use anyhow::ensure;
use tapeline_measure::Recorder;
use tapeline_ring::{Start, Subscriber};

use crate::plants::{Plant, day, feed, read, received, unbound};

/// Ticks a second.
pub(crate) const RATE: u64 = 100_000;
/// Enough for a reader that stands still to fill a ring of 64 MiB, and to be evicted.
const SECONDS: u64 = 8;

/// What one turn gave: latencies at the first of two plants below.
pub(crate) struct Neighbour {
    /// While a reader of the second reads.
    pub(crate) reading: Recorder,
    /// While it stands still.
    pub(crate) stalled: Recorder,
}

pub(crate) fn turn(folder: &Path) -> anyhow::Result<Neighbour> {
    let day = day(folder, RATE, SECONDS)?;
    Ok(Neighbour { reading: beside(folder, &day, true)?, stalled: beside(folder, &day, false)? })
}

/// Measures the first plant beside a reader of the second that reads or stands still.
fn beside(folder: &Path, day: &Path, reads: bool) -> anyhow::Result<Recorder> {
    let (server, lines) = (unbound()?, [unbound()?, unbound()?]);
    let [first, second] = lines.map(|line| format!("address = \"{line}\"\n"));
    let port = server.port();
    let mut above = Plant::begin(
        folder,
        "above",
        &format!(
            "{}[bridge]\nplant = \"UP\"\nport = {port}\n[[bridge.line]]\n{first}[[bridge.line]]\n{second}",
            feed(day)
        ),
    )?;
    let below = |name, line| {
        let upstream = "[[upstream]]\nplant = \"UP\"\nstale_after = \"0s\"\n";
        Plant::begin(folder, name, &format!("{upstream}server = \"{server}\"\n[[upstream.line]]\n{line}"))
    };
    let (mut one, mut other) = (below("one", first)?, below("other", second)?);
    let (clock, of_other) = (above.clock()?, above.clock()?);
    let report = if reads {
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read(&other.ring, of_other));
            let report = read(&one.ring, clock);
            reader.join().expect("the reader has panicked").and(report)
        })
    } else {
        let still = Subscriber::join_as(&other.ring, Start::Newest, "bench")?;
        let report = read(&one.ring, clock);
        ensure!(still.is_evicted(), "the reader that stands still was not evicted: the day was too short");
        report
    };
    for plant in [&mut one, &mut other, &mut above] {
        plant.finish()?;
    }
    received(&report?)
}
