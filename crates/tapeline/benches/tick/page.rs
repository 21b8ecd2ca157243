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
         Written by `make bench-tick DOC=1`, from what `tapeline tick bench` says: {measured_for} for each row after a second of warm-up, median of \
         {turns} turns. Another machine, or this one at another hour, has other figures.\n\n\
         ```text\n{}\n```\n\n\
         Publisher, tickerplant and subscriber are processes, on Unix-domain sockets. A latency is from when an update was **due** to when \
         the subscriber had read it. `relay` passes the same bytes over the same sockets and looks at none of them. What `by relay` \
         has are median and p99.9 by the relay's of the same turn and rate, each as min / **median** / max. `overflow` stands where updates pile \
         up. The publisher alone, into a sink that does nothing, sends {} million updates/s.\n",
        environment.trim_end(),
        spread(&limits.iter().map(|limit| limit / 1e6).collect::<Vec<_>>(), 2)
    )?;
    writeln!(
        page,
        "## Beside kdb-X\n\nA row per update, all wait by sleeping. The aim: median at most 1.5 and p99.9 at most 2 of the relay's with the log \
         written, up to 60,000/s; no overflow at 200,000/s.\n"
    )?;
    table(page, one)?;
    writeln!(
        page,
        "\nWhat the suite of kdb-X gives for itself (its published table: c5d.4xlarge, 16 vCPUs, tuned, Unix-domain sockets, **no log**), µs:\n\n\
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
         What differs: their machine has a core for each process, and this one has those that are named above, for publisher, \
         tickerplant and subscriber together. Theirs has no log in these figures. Their stamp is taken when a trade is made, ours is when it was due, which a \
         late publisher makes longer, not shorter. `tapeline tick bench --target HOST:PORT` measures a `q tick.q` on the same machine by the same \
         clock.\n\n\
         ## Through a plant\n\nThe same with `tapeline plant` and its `[kdb]` between the two. Each row is a tick with its own sequence, on the ring and in the \
         journal, and goes to subscribers from there: two hand-overs between threads more. `written` has the journal and the kdb+ log; with \
         `synced` nothing leaves before the journal has it on the disk.\n"
    )?;
    table(page, plant)?;
    writeln!(
        page,
        "\n## Drawn\n\nOf the last turn, with the log (and the plant's journal) written: latency by percentile, how many took how long, and over time.\n"
    )?;
    for rate in DRAWN {
        writeln!(page, "{} updates/s:\n", thousands(rate))?;
        for name in PLOTS {
            writeln!(page, "![{name} at {} updates/s]({})\n", thousands(rate), plot(rate, name))?;
        }
    }
    writeln!(
        page,
        "\n## Spinning\n\nA tickerplant alone, with all three looking for messages without sleeping, which wants a core for each.\n"
    )?;
    table(page, spinning)?;
    writeln!(
        page,
        "\n## Rows in batches\n\n{ROWS} rows in each update. The aim: 5 million rows/s without a log, and with it what the disk carries.\n"
    )?;
    table(page, batches)
}

fn table(page: &mut String, rounds: &Rounds) -> fmt::Result {
    writeln!(
        page,
        "| updates/s | through | {} | by relay: p50 | p99.9 | verdict |\n|---:|---|{}---|---|---|",
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
