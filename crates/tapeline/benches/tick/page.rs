//! The figures as a page.

use std::fmt::{self, Write};

use serde_json::Value;
use tapeline_measure::figures::{duration, thousands};

use crate::turns::spread;
use crate::{DRAWN, PLOTS, ROWS, Rounds, Row};

/// Percentiles that are shown, as the suite names them.
const SHOWN: [&str; 5] = ["p50", "p90", "p99", "p99.9", "p99.99"];

/// What the suite of kdb-X gives for itself, µs: updates a second, then [`SHOWN`].
const KDB_X: [(u64, [u64; 5]); 4] = [
    (10_000, [34, 35, 38, 38, 45]),
    (20_000, [34, 39, 42, 47, 54]),
    (40_000, [34, 35, 39, 42, 45]),
    (60_000, [27, 32, 35, 43, 262]),
];

pub(crate) fn page(
    all: &[Rounds],
    limits: &[f64],
    measured_for: &str,
    turns: usize,
    environment: &str,
) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut page, all, limits, measured_for, turns, environment);
    page
}

fn write(
    page: &mut String,
    all: &[Rounds],
    limits: &[f64],
    measured_for: &str,
    turns: usize,
    environment: &str,
) -> fmt::Result {
    let [one, plant, spinning, batches] = all else { return Ok(()) };
    writeln!(
        page,
        "# The tickerplant by rate\n\n\
         Written by `make bench-tick DOC=1`, from the results of `tapeline tick bench`: each row is measured for {measured_for} after a second of \
         warm-up, and has the median of {turns} turns (of an even number, the higher of the two in the middle). Another machine, or this one at another \
         hour, has other figures.\n\n\
         ```text\n{}\n```\n\n\
         Publisher, tickerplant and subscriber are separate processes, connected by Unix-domain sockets. Latency is from when an update was **due** until \
         the subscriber had read it. The publisher alone, into a sink that does nothing, sends {} million updates/s.\n\n\
         * *Through*: the program between publisher and subscriber. `relay` passes the same bytes over the same sockets without looking at them. \
         `written`: the log is in the page cache before an update is published; `synced`: the log is on disk before that; neither: no log.\n\
         * *Ratio to relay*: p50 and p99.9 divided by the relay's in the same turn at the same rate, min / **median** / max.\n\
         * *Verdict*: those of the turns, or one if they agree. `overflow`: updates pile up; the words in brackets tell whether the relay keeps up at \
         that rate. –: updates piled up, or too few samples.\n",
        environment.trim_end(),
        spread(&limits.iter().map(|limit| limit / 1e6).collect::<Vec<_>>(), 2)
    )?;
    writeln!(
        page,
        "## Compared with kdb-X\n\nOne row per update; all processes sleep while they wait. Aim, with the log `written`: median at most 1.5 × and p99.9 at \
         most 2 × the relay's, up to 60,000/s; no overflow at 200,000/s.\n"
    )?;
    table(page, one)?;
    writeln!(
        page,
        "\nThe results that the kdb-X suite publishes for kdb-X (c5d.4xlarge, 16 vCPUs, tuned, Unix-domain sockets, **no log**), µs:\n\n\
         | updates/s | {} |\n|---:|{}",
        SHOWN.join(" | "),
        "---:|".repeat(SHOWN.len())
    )?;
    for (rate, latencies) in KDB_X {
        let cells: Vec<_> = latencies.iter().map(u64::to_string).collect();
        writeln!(page, "| {} | {} |", thousands(rate), cells.join(" | "))?;
    }
    writeln!(
        page,
        "| 80,000 | – | – | – | – | overflow |\n\n\
         Differences: their machine has a core for each process; here publisher, tickerplant and subscriber share the cores named above. Their figures are \
         without a log. Their latency counts from when a trade is made, ours from when it was due, so that a late publisher makes our latencies longer, not \
         shorter. `tapeline tick bench --target HOST:PORT` measures a `q tick.q` on the same machine by the same clock.\n\n\
         ## Through a plant\n\nThe same with the `[kdb]` port of a `tapeline plant` in place of the tickerplant. Each row becomes a tick with its own sequence \
         number on the ring, and goes from there to subscribers: two more hand-overs between threads. `written`: the plant's journal and the kdb+ log are \
         written; `synced`: nothing is published before it is in the journal on disk; neither: no journal and no log.\n"
    )?;
    table(page, plant)?;
    writeln!(
        page,
        "\n## Plots\n\nThe last turn, with the log (and the plant's journal) `written`: latency by percentile, histogram, and latency over time.\n"
    )?;
    for rate in DRAWN {
        writeln!(page, "{} updates/s:\n", thousands(rate))?;
        for name in PLOTS {
            writeln!(page, "![{name} at {} updates/s]({})\n", thousands(rate), plot(rate, name))?;
        }
    }
    writeln!(
        page,
        "\n## Spinning\n\nThe tickerplant; all three processes poll without sleeping, which needs a core for each.\n"
    )?;
    table(page, spinning)?;
    writeln!(
        page,
        "\n## Rows in batches\n\n{ROWS} rows in each update. Aim: 5 million rows/s without a log; with one, as many as the disk takes.\n"
    )?;
    table(page, batches)
}

fn table(page: &mut String, rounds: &Rounds) -> fmt::Result {
    writeln!(
        page,
        "| updates/s | through | {} | ratio to relay: p50 | p99.9 | verdict |\n|---:|---|{}---|---|---|",
        SHOWN.join(" | "),
        "---:|".repeat(SHOWN.len())
    )?;
    for (row, turns) in rounds {
        let relay = rounds.get(&Row { through: "relay".to_owned(), ..row.clone() });
        let by = |rank| {
            let relay = relay.filter(|_| row.through != "relay")?;
            let ratios: Vec<f64> = turns
                .iter()
                .zip(relay)
                .filter_map(|(ours, relay)| Some(latency(ours, rank)? as f64 / latency(relay, rank)? as f64))
                .collect();
            Some(spread(&ratios, 2))
        };
        let cells = SHOWN.map(|rank| {
            let mut all: Vec<u64> = turns.iter().filter_map(|round| latency(round, rank)).collect();
            all.sort_unstable();
            // Turns in which updates piled up are the longest.
            all.get(turns.len() / 2).map_or_else(|| "–".to_owned(), |ns| duration(*ns))
        });
        let mut verdicts: Vec<&str> = turns.iter().filter_map(|round| round["verdict"].as_str()).collect();
        verdicts.dedup();
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            thousands(row.rate),
            row.through,
            cells.join(" | "),
            by("p50").unwrap_or_default(),
            by("p99.9").unwrap_or_default(),
            verdicts.join(", ")
        )?;
    }
    Ok(())
}

/// The file of a plot.
pub(crate) fn plot(rate: u64, name: &str) -> String {
    format!("tick-{rate}-{name}.svg")
}

/// A percentile of a round, ns; none where it has too few samples, or updates piled up.
fn latency(round: &Value, rank: &str) -> Option<u64> {
    round["latency"]["latency_ns"][rank].as_u64()
}
