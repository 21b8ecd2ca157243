//! The figures as a page.

use std::fmt::{self, Write};

use tapeline_measure::figures::thousands;

use crate::makers::Maker;
use crate::turns::{ratios, spread};
use crate::{Figures, Held, ITEMS, Pair};

/// The pairs that the aims are ratios of.
const OURS: Pair = [Maker::Tapeline; 2];
const ETA: Pair = [Maker::Eta; 2];

pub(crate) fn page(figures: &Figures, turns: usize, environment: &str) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut page, figures, turns, environment);
    page
}

fn write(page: &mut String, figures: &Figures, turns: usize, environment: &str) -> fmt::Result {
    writeln!(
        page,
        "# The performance tools: Tapeline's compared with LSEG's\n\n\
         Written by `make bench-omm RTSDK=FOLDER DOC=1`. Figures are min / **median** / max of {turns} turns; in a turn every pair runs once, one \
         after the other, and ratios are taken within a turn. Another machine, or this one at another hour, has other figures.\n\n\
         ```text\n{}\n```\n\n\
         A *pair* is a sender on one core and a receiver on another, over loopback. All use {} items, LSEG's `MsgData.xml` (updates \
         of 13 fields) and LSEG's dictionary, 1,000 slices a second, 1,000 of the updates a second carry a time stamp; the tools pack no messages and encode every \
         update. Processor time is the scheduler's account over three seconds of steady state, in % of a core; memory is resident memory. \
         LSEG's tools are those of its Real-Time SDK 2.0.2.L1 (ETA C, EMA C++ 3.6.2). All latencies here are service times, from the start \
         of encoding, because LSEG's tools report no others; Tapeline's own reports also have the time from when an update was due. \
         –: a tool gave no figure; `make bench-omm` prints the reason while it runs.\n",
        environment.trim_end(),
        thousands(ITEMS as u64)
    )?;
    images(page, figures)?;
    latency(page, figures)?;
    rate(page, figures)?;
    own(page, figures)?;
    transport(page, figures)?;
    ni(page, figures)
}

fn images(page: &mut String, figures: &Figures) -> fmt::Result {
    let Some(of_eta) = took(figures, ETA).or(took(figures, OURS)) else { return Ok(()) };
    writeln!(
        page,
        "## Images\n\n{} requests at full speed, no updates: seconds from the first request to the last image. Aim: not above ETA C's \
         pair.\n\n| provider | consumer | s | ratio to ETA C's pair |\n|---|---|---:|---:|",
        thousands(ITEMS as u64)
    )?;
    for (pair, took) in &figures.images {
        writeln!(page, "| {} | {} | {} |", names(*pair), spread(took, 3), spread(&ratios(took, of_eta), 2))?;
    }
    writeln!(page)
}

fn took(figures: &Figures, of: Pair) -> Option<&Vec<f64>> {
    figures.images.iter().find(|(pair, _)| *pair == of).map(|(_, took)| took)
}

fn latency(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.latency.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Latency, processor time, memory\n\nAim: at 100,000 updates/s, mean latency, processor time and memory not above ETA C's \
         pair; while images are sent too.\n\n| updates/s | provider | consumer | received/s | mean µs | max µs | provider % | consumer % | provider MB | \
         consumer MB | mean µs until the last image |\n|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    let mut rows: Vec<_> = figures.latency.iter().collect();
    rows.sort_by_key(|(_, rate, _)| *rate);
    for (pair, asked, held) in rows {
        let startup = spread(&all(held, |held| held.startup_us), 1);
        writeln!(page, "| {} | {} | {} | {startup} |", thousands(*asked), names(*pair), measured(held))?;
    }
    let of = |pair: Pair| figures.latency.iter().find(|row| (row.0, row.1) == (pair, 100_000));
    if let (Some((.., ours)), Some((.., theirs))) = (of(OURS), of(ETA)) {
        let by = |what: fn(&Held) -> f64| spread(&ratios(&all(ours, what), &all(theirs, what)), 2);
        writeln!(
            page,
            "\nRatio of Tapeline's pair to ETA C's at 100,000 updates/s: mean latency {}; processor time of the provider {}, of the consumer {}; \
             memory of the provider {}, of the consumer {}.",
            by(|held| held.mean_us),
            by(|held| held.cost[0].cores),
            by(|held| held.cost[1].cores),
            by(|held| held.cost[0].megabytes),
            by(|held| held.cost[1].megabytes),
        )?;
    }
    writeln!(page)
}

/// The cells of a row: what came, latency, and what it cost.
fn measured(held: &[Held]) -> String {
    let cell = |what: fn(&Held) -> f64, decimals| spread(&all(held, what), decimals);
    [
        cell(|held| held.received_per_s, 0),
        cell(|held| held.mean_us, 1),
        cell(|held| held.max_us, 0),
        cell(|held| held.cost[0].cores * 100.0, 1),
        cell(|held| held.cost[1].cores * 100.0, 1),
        cell(|held| held.cost[0].megabytes, 0),
        cell(|held| held.cost[1].megabytes, 0),
    ]
    .join(" | ")
}

fn rate(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.rate.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## The highest rate\n\nThe highest rate of updates that a pair sustains: all images and at least 99 % of the updates are received. Steps are \
         an eighth of a million; the last column has what was received when the next step was requested. Aim: Tapeline's pair at least 1.25 times \
         ETA C's.\n\n\
         | provider | consumer | sustained, millions/s | received at the next step, millions/s |\n|---|---|---:|---:|"
    )?;
    let column = |most: &[[f64; 2]], at: usize| most.iter().map(|most| most[at] / 1e6).collect::<Vec<_>>();
    for (pair, most) in &figures.rate {
        writeln!(
            page,
            "| {} | {} | {} |",
            names(*pair),
            spread(&column(most, 0), 2),
            spread(&column(most, 1), 2)
        )?;
    }
    let of = |pair: Pair| figures.rate.iter().find(|row| row.0 == pair);
    if let (Some((_, ours)), Some((_, theirs))) = (of(OURS), of(ETA)) {
        let by = spread(&ratios(&column(ours, 0), &column(theirs, 0)), 2);
        writeln!(page, "\nRatio of Tapeline's pair to ETA C's: {by}.")?;
    }
    writeln!(page)
}

fn own(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.own.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## The tools alone\n\nEach tool at full speed against an end that does nothing: a provider sends to a sink that discards messages, a \
         consumer receives from a source that repeats one encoded update. *ns each* is processor time per update: the tool's own share of \
         every figure above. A provider at full speed may never send every image; the updates are then only for items whose image was sent.\n\n\
         | | items with their image | sent to the sink, millions/s | ns each | received from the source, millions/s | ns each |\n\
         |---|---:|---:|---:|---:|---:|"
    )?;
    for (maker, [sends, takes]) in &figures.own {
        let rate = |held: &[Held]| spread(&all(held, |held| held.received_per_s / 1e6), 2);
        let each = |held: &[Held]| {
            let each = |held: &Held| (held.cost[0].cores + held.cost[1].cores) * 1e9 / held.received_per_s;
            spread(&all(held, each), 0)
        };
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            maker.name(),
            spread(&all(sends, |held| held.items), 0),
            rate(sends),
            each(sends),
            rate(takes),
            each(takes)
        )?;
    }
    writeln!(page)
}

fn transport(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.transport.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Transport alone\n\nOpaque messages of 76 bytes, one way, not packed. Aim: 10 million a second.\n\n\
         | messages/s | server | client | received/s | mean µs | max µs | server % | client % | server MB | client MB |\n\
         |---:|---|---|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    let mut rows: Vec<_> = figures.transport.iter().collect();
    rows.sort_by_key(|(_, rate, _)| *rate);
    for (pair, asked, held) in rows {
        writeln!(page, "| {} | {} | {} |", thousands(*asked), names(*pair), measured(held))?;
    }
    writeln!(page)
}

fn ni(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.ni.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Non-interactive providers\n\n100,000 updates a second to Tapeline's hub. Aim: no more processor time than ETA C's.\n\n\
         | NI provider | % of a core | MB |\n|---|---:|---:|"
    )?;
    for (maker, held) in &figures.ni {
        let cores = spread(&all(held, |held| held.cost[0].cores * 100.0), 1);
        let megabytes = spread(&all(held, |held| held.cost[0].megabytes), 0);
        writeln!(page, "| {} | {cores} | {megabytes} |", maker.name())?;
    }
    writeln!(page)
}

fn names([sender, receiver]: Pair) -> String {
    format!("{} | {}", sender.name(), receiver.name())
}

fn all(held: &[Held], what: fn(&Held) -> f64) -> Vec<f64> {
    held.iter().map(what).collect()
}
