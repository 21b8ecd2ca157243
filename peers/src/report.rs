//! The tables of a run, as text and as a page.

use tapeline_measure::figures;

use crate::case::{Metric, Regime};
use crate::record::{Described, Record};
use crate::results::{Results, Spread, three};
use crate::session::{BYTES, RATES_HZ};
use crate::systems::HIGHEST_PACE_HZ;
use crate::table::Table;
use crate::verdicts::verdicts;

/// The system that the others are compared with.
const OURS: &str = "ring";
/// What the systems with a promise left out belong to.
const PROMISES: &str = "promises";

/// The report for a terminal.
pub(crate) fn text(record: &Record) -> String {
    let mut text = String::new();
    for table in tables(record) {
        text += &table.text();
        text.push('\n');
    }
    for remark in remarks(record) {
        text += &format!("{remark}\n");
    }
    text += &format!("\n{}\n\n{}", context(record), verdict_table(record).text());
    text
}

/// The report as a page, with the plots of `plots` in the page's own folder.
pub(crate) fn page(record: &Record, plots: &[&str]) -> String {
    let mut text = format!(
        "# The ring compared with other queues\n\n\
         Throughput and latency of Tapeline's ring, of other queues, and of the machine's own limits, measured in turns on the \
         same two cores. `make bench-peers DOC=1` measures and writes this page. [`peers/README.md`](../../peers/README.md) \
         explains each figure.\n\n\
         Figures are medians of {} turns, with least and most in brackets; ratios are taken within a turn. Compare figures within \
         this page only: another machine, or the same one at another hour, has other figures.\n\n\
         * *Limit*: what the machine does without a queue. For latency, a stored cache line is seen by the other core; for \
         throughput, memory is copied.\n\
         * *Contended*: the receiver keeps up, so both sides use the same cache line. *Backlog*: the sender runs at full speed, and \
         only a full queue holds it back.\n\
         * Short names: `ring` and `ring-lines` are Tapeline's ring of 1 MiB, with packed frames and with frames on their own cache \
         lines; `-8m` and `-64m` are rings of 8 and 64 MiB, `ring-fixed` one with a length fixed at compile time; `-batch` is a queue that is read \
         in batches (`take`, `consume_all`, chunks).\n\
         * In the targets, the better of `ring` and `ring-lines` counts, and is named. *–*: not judged on this machine.\n\n",
        record.turns
    );
    for plot in plots {
        text += &format!("![{}]({plot})\n\n", plot.trim_end_matches(".svg"));
    }
    text += &format!("## Targets\n\n{}\n", strip_title(&verdict_table(record).markdown()));
    text += "## Figures\n\n";
    for table in tables(record) {
        text += &table.markdown();
        text.push('\n');
    }
    text += "## Remarks\n\n";
    for remark in remarks(record) {
        text += &format!("* {remark}\n");
    }
    text += &format!("\n## Systems and settings\n\n{}\n", strip_title(&settings(record).markdown()));
    text += &format!("## Where\n\n```text\n{}\n```\n", context(record));
    text
}

fn strip_title(markdown: &str) -> &str {
    markdown.split_once("\n\n").map_or(markdown, |(_, rest)| rest)
}

fn tables(record: &Record) -> Vec<Table> {
    let mut tables = Vec::new();
    tables.push(throughput(record, Regime::Contended));
    tables.push(throughput(record, Regime::Backlog));
    tables.push(ratios(record));
    tables.extend(RATES_HZ.map(|rate_hz| latency(record, rate_hz)));
    tables.extend([pace(record), fan_out(record), promises(record), lines_written(record)]);
    tables.retain(|table| !table.rows.is_empty());
    tables
}

/// A row for each system for which `cells` has anything.
fn fill(table: &mut Table, record: &Record, cells: impl Fn(&Described) -> Vec<Option<String>>) {
    for system in record.systems.iter().filter(|system| system.peer != PROMISES) {
        let cells = cells(system);
        if cells.iter().any(Option::is_some) {
            let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| "–".to_owned()));
            table.rows.push([system.title.clone()].into_iter().chain(cells).collect());
        }
    }
}

fn throughput(record: &Record, regime: Regime) -> Table {
    let title = match regime {
        Regime::Contended => {
            "Throughput in million messages/s, contended: the sender reads the clock before each message"
        }
        Regime::Backlog => "Throughput in million messages/s, backlog: the sender at full speed",
    };
    let mut table = Table::new(title, ["", "32 B", "100 B", "500 B", "1500 B"]);
    let results = Results(&record.figures);
    fill(&mut table, record, |system| {
        let value = |bytes| results.value(&system.name, Metric::Throughput { bytes, regime });
        BYTES.map(|bytes| Some(value(bytes)?.map(|value| value / 1e6).to_string())).to_vec()
    });
    table
}

fn ratios(record: &Record) -> Table {
    let title = format!("Ours over theirs, messages/s (ours: {OURS}, packed, 1 MiB)");
    let mut table = Table::new(&title, ["", "32 B contended", "32 B", "100 B", "500 B", "1500 B"]);
    let results = Results(&record.figures);
    fill(&mut table, record, |system| {
        let questions =
            [(32, Regime::Contended)].into_iter().chain(BYTES.map(|bytes| (bytes, Regime::Backlog)));
        questions
            .map(|(bytes, regime)| {
                let metric = Metric::Throughput { bytes, regime };
                Some(results.ratio((OURS, metric), (&system.name, metric))?.to_string())
            })
            .collect()
    });
    table
}

fn latency(record: &Record, rate_hz: u64) -> Table {
    let metric = Metric::Latency { rate_hz };
    let title = format!("Latency in ns, 32 bytes, {} messages/s", figures::thousands(rate_hz));
    let mut table = Table::new(&title, ["", "min", "p1", "p50", "p90", "p99", "p50 over limit"]);
    let results = Results(&record.figures);
    let whole = |spread: Spread| format!("{:.0} ({:.0}–{:.0})", spread.median, spread.least, spread.most);
    fill(&mut table, record, |system| {
        let part = |part: fn(&crate::case::Latency) -> u64| results.latency(&system.name, metric, part);
        vec![
            part(|latency| latency.min_ns).map(|spread| format!("{:.0}", spread.median)),
            part(|latency| latency.p1_ns).map(|spread| format!("{:.0}", spread.median)),
            part(|latency| latency.p50_ns).map(whole),
            part(|latency| latency.p90_ns).map(whole),
            part(|latency| latency.p99_ns).map(whole),
            results.ratio((&system.name, metric), ("line", metric)).map(|ratio| ratio.to_string()),
        ]
    });
    table
}

fn pace(record: &Record) -> Table {
    let metric = Metric::Latency { rate_hz: HIGHEST_PACE_HZ };
    let title = "40 million messages/s on a schedule, 32 bytes, one in 16 stamped";
    let mut table =
        Table::new(title, ["", "late p50 ns", "late p99 ns", "turns that fell behind", "latency p50 ns"]);
    let results = Results(&record.figures);
    fill(&mut table, record, |system| {
        let late = |part: fn(&crate::case::Sent) -> u64| {
            let late = results.done(&system.name, metric).map(|(_, sent, _)| part(sent) as f64);
            Spread::of(late).map(|late| late.to_string())
        };
        let turns = results.done(&system.name, metric).count();
        let grew = results.done(&system.name, metric).filter(|(_, sent, _)| sent.late_grows).count();
        vec![
            late(|sent| sent.late_p50_ns),
            late(|sent| sent.late_p99_ns),
            (turns > 0).then(|| format!("{grew} of {turns}")),
            results.latency(&system.name, metric, |latency| latency.p50_ns).map(|spread| spread.to_string()),
        ]
    });
    table
}

fn fan_out(record: &Record) -> Table {
    let shared = if record.cores_usable <= 2 { ", all receivers on one core" } else { "" };
    let title =
        format!("One sender to several receivers, million messages/s to each, 32 bytes, backlog{shared}");
    let mut table = Table::new(&title, ["", "2 receivers", "3 receivers"]);
    let results = Results(&record.figures);
    fill(&mut table, record, |system| {
        let value = |receivers| results.value(&system.name, Metric::FanOut { receivers });
        [2, 3].map(|receivers| Some(value(receivers)?.map(|value| value / 1e6).to_string())).to_vec()
    });
    table
}

/// What the ring's promises cost: `ring`, and the same with one promise left out at a time.
fn promises(record: &Record) -> Table {
    const ROWS: [(&str, &str); 6] = [
        (OURS, "all promises"),
        ("ring-threads", "without processes of their own"),
        ("ring-fixed", "without any length at run time"),
        ("ring-shown", "without each message visible on its own (16 at a time)"),
        ("ring-lossy", "without waiting for receivers (what is overwritten is lost)"),
        ("spsc-batch", "without all of these: threads, one receiver, one length, read in slices"),
    ];
    let title = "What a promise costs: the ring with one left out, million messages/s, 32 bytes";
    let mut table = Table::new(title, ["", "backlog", "× all", "contended", "× all"]);
    let results = Results(&record.figures);
    for (name, what) in ROWS {
        let cells = [Regime::Backlog, Regime::Contended].into_iter().flat_map(|regime| {
            let metric = Metric::Throughput { bytes: 32, regime };
            let value = results.value(name, metric).map(|value| value.map(|value| value / 1e6).to_string());
            [value, results.ratio((name, metric), (OURS, metric)).map(|ratio| ratio.to_string())]
        });
        let cells: Option<Vec<String>> = cells.collect();
        table.rows.extend(cells.map(|cells| [what.to_owned()].into_iter().chain(cells).collect()));
    }
    if table.rows.len() < 2 {
        table.rows.clear();
    }
    table
}

/// What one more receiver costs in writes to shared cache lines.
fn lines_written(record: &Record) -> Table {
    let title = "Cache lines written in the ring's segment, for 1,000 messages of 32 bytes (counted)";
    let mut table =
        Table::new(title, ["receivers", "by the sender", "by all receivers", "fetched by all receivers"]);
    for count in &record.lines_written {
        let per_thousand = |lines: u64| lines as f64 * 1e3 / count.messages.max(1) as f64;
        let sender = per_thousand(count.by_sender);
        table.rows.push(vec![
            count.receivers.to_string(),
            three(sender),
            three(per_thousand(count.by_receivers)),
            three(sender * count.receivers as f64),
        ]);
    }
    table
}

fn verdict_table(record: &Record) -> Table {
    let mut table = Table::new("Targets", ["target", "measured", ""]);
    for verdict in verdicts(record) {
        let word = verdict.word().to_owned();
        table.rows.push(vec![verdict.target, verdict.measured, word]);
    }
    table
}

fn settings(record: &Record) -> Table {
    let mut table = Table::new("Systems", ["system", "runs as", "settings"]);
    for system in &record.systems {
        table.rows.push(vec![system.title.clone(), system.place.clone(), system.settings.clone()]);
    }
    table
}

/// What the tables do not say.
fn remarks(record: &Record) -> Vec<String> {
    let results = Results(&record.figures);
    let mut remarks = Vec::new();
    if let Some(bounce) = results.value("line", Metric::Bounce) {
        remarks.push(format!("A line bounced between the two cores takes {bounce} ns one way."));
    }
    for bytes in [32, 1500] {
        let metric = Metric::Throughput { bytes, regime: Regime::Contended };
        let looks = |system: &str| {
            Spread::of(results.done(system, metric).filter_map(|(_, _, r)| Some(r.first()?.per_look)))
        };
        let found: Vec<String> = record
            .systems
            .iter()
            .filter_map(|system| Some(format!("{} {}", system.name, three(looks(&system.name)?.median))))
            .collect();
        if !found.is_empty() {
            remarks.push(format!(
                "Contended, {bytes} B: messages per successful poll of the receiver (1: it has caught up): {}.",
                found.join(", ")
            ));
        }
    }
    for system in &record.systems {
        let (wrong, failed) = results.faults(&system.name);
        // Without waiting for receivers, messages are lost by design.
        if wrong > 0 && system.name != "ring-lossy" {
            remarks.push(format!("{}: {wrong} messages lost, disordered or torn.", system.title));
        }
        for why in failed {
            remarks.push(format!("{}: failed: {why}.", system.title));
        }
    }
    remarks.extend(record.skipped.iter().map(|why| format!("Left out: {why}.")));
    remarks
}

fn context(record: &Record) -> String {
    format!(
        "command   {}\nrun       {}, {:.0} s, {} turns, {} ms each\ncores     sender {}, receiver {}; step of the \
         clock {:.1} ns\njitter    floor at p99 {} (idle cores)\n{}",
        record.command,
        record.started_utc,
        record.seconds,
        record.turns,
        record.measured_ms,
        record.cores[0],
        record.cores[1],
        record.clock_step_ns,
        figures::duration(record.jitter_floor_p99_ns),
        record.environment_text.trim_end()
    )
}
