//! The summary of a plant's run, for people.

use tapeline_console::output;
use tapeline_measure::figures::{duration, thousands};
use tapeline_node::cursor;
use tapeline_node::journal::JournalReport;
use tapeline_node::report::{FeedReport, PlantReport};

/// Prints the report: a row for each line, then a paragraph for each feed, then the figures of the plant's clients.
pub(crate) fn print(report: &PlantReport) -> anyhow::Result<()> {
    let mut text = format!("{}\n", table(report));
    for feed in &report.feeds {
        describe(feed, &mut text);
    }
    describe_clients(report, &mut text);
    let [ticks, items, stalls] = [report.ticks, report.items as u64, report.ring_stalls].map(thousands);
    let (ring, stalled) = (&report.ring, duration(report.ring_stalled_ns));
    text.push_str(&format!(
        "\n\nring {ring}: {ticks} ticks of {items} items; waited {stalls} times for a slow subscriber, {stalled} in all"
    ));
    if let Some(refused) = &report.refused {
        text.push_str(&format!("\nended early: {refused}"));
    }
    output::print(&text)
}

fn table(report: &PlantReport) -> output::Table {
    let headings =
        "line, state, datagrams, messages first, duplicates, missing here, late, malformed, kernel drops";
    let mut table = output::table(headings.split(", "));
    for feed in &report.feeds {
        for line in &feed.lines {
            let malformed: u64 = line.malformed.values().sum();
            let counts = [
                line.datagrams,
                line.first,
                line.duplicates,
                line.missing,
                line.late,
                malformed,
                line.kernel_drops,
            ];
            let name = format!("{} {} ({})", feed.name, line.name, line.address);
            table.add_row([name, line.state.clone()].into_iter().chain(counts.map(thousands)));
        }
    }
    table
}

/// Describes the providers, and the output to clients, journal and ring.
fn describe_clients(report: &PlantReport, text: &mut String) {
    if let Some(sources) = &report.sources {
        text.push_str(&format!(
            "\nsources: {} images, {} updates and {} statuses, {} take-overs, {} posts taken and {} refused, {} messages \
             passed over, {} of items without a place, {} too long for the ring, {} items ended whose place another has",
            thousands(sources.refreshes),
            thousands(sources.updates),
            thousands(sources.statuses),
            thousands(sources.taken_over),
            thousands(sources.posts),
            thousands(sources.posts_refused),
            thousands(sources.passed_over),
            thousands(sources.no_place),
            thousands(sources.too_long),
            thousands(sources.ended),
        ));
    }
    if let Some(hub) = &report.hub {
        text.push_str(&format!("\n{hub}"));
    }
    if let Some(JournalReport { folder, ticks, missing, last }) = &report.journal {
        let [ticks, missing] = [*ticks, *missing].map(thousands);
        text.push_str(&format!(
            "\njournal in {folder}: {ticks} ticks kept, {missing} missing, the last is {last}"
        ));
    }
    if let Some(zeromq) = &report.zeromq {
        let [subscribers, let_go, sent, dropped] =
            [zeromq.subscribers, zeromq.let_go, zeromq.sent, zeromq.dropped].map(thousands);
        text.push_str(&format!(
            "\nZeroMQ at {}: {subscribers} subscribers, {let_go} disconnected; {sent} messages sent, {dropped} dropped",
            zeromq.address
        ));
        text.push_str(&cursor::losses(zeromq.rejoined, zeromq.missing));
    }
    if let Some(kdb) = &report.kdb {
        text.push_str(&format!("\nkdb+: {kdb}"));
    }
    if let Some(bridge) = &report.bridge {
        let [ticks, datagrams, again, caught_up] =
            [bridge.ticks, bridge.datagrams, bridge.sent_again, bridge.caught_up].map(thousands);
        text.push_str(&format!(
            "\nbridge, session {}: {ticks} ticks in {datagrams} datagrams, {again} sent again; plants caught up {caught_up} times",
            bridge.session
        ));
    }
    if let Some(upstream) = &report.upstream {
        let [ticks, recovered, caught_up, missing] =
            [upstream.ticks, upstream.recovered, upstream.caught_up, upstream.missing].map(thousands);
        text.push_str(&format!(
            "\nupstream {}: {}, session {}; {ticks} ticks from the lines, {recovered} of them requested again, {caught_up} from the catch-up \
             server, {missing} nowhere",
            upstream.name,
            upstream.state,
            upstream.session.as_deref().unwrap_or("none seen")
        ));
    }
    if let Some(nbbo) = &report.nbbo {
        let [ticks, locked, crossed, refused] =
            [nbbo.ticks, nbbo.locked, nbbo.crossed, nbbo.items_refused].map(thousands);
        text.push_str(&format!(
            "\nbest bid and offer: {ticks} ticks, {locked} of them locked and {crossed} crossed; {refused} refused"
        ));
    }
}

fn describe(feed: &FeedReport, text: &mut String) {
    let session = feed.session.as_deref().or(feed.file.as_deref()).unwrap_or("none seen");
    let over = if feed.ended { ", over" } else { "" };
    text.push_str(&format!(
        "\n{}: {}, session {session}{over}; {} messages, {} missing in {} gaps; {} malformed; {} live orders",
        feed.name,
        feed.state,
        thousands(feed.messages),
        thousands(feed.missing_messages),
        thousands(feed.gaps),
        thousands(feed.malformed_messages),
        thousands(feed.live_orders as u64),
    ));
    let after_end = feed.lines.iter().map(|line| line.after_end).sum();
    for (count, what) in [
        (feed.passed_over, "messages passed over: their symbols are not wanted"),
        (feed.false_ends, "announced ends taken back: the session went on"),
        (after_end, "messages from behind the session's end left out: nothing confirmed them"),
        (
            feed.absurd_gaps,
            "of the gaps are larger than any feed: sequences were wrong or forged, and nothing of them is counted as missing",
        ),
        (feed.unknown_orders, "messages about orders that were not on the books"),
    ] {
        if count > 0 {
            text.push_str(&format!("\n  {} {what}", thousands(count)));
        }
    }
    if let Some(first) = feed.begun_late_at {
        text.push_str(&format!(
            "\n  suspect: message {} of the session was the first received, and books lack the earlier messages; \
             start = \"from-one\" with [feed.recovery] asks for them",
            thousands(first)
        ));
    } else if let Some(lost) = feed.damaged_from {
        let lost = thousands(lost);
        text.push_str(&format!("\n  suspect since message {lost}, which was lost, until the next session"));
    }
    if let Some(damage) = &feed.damage {
        text.push_str(&format!("\n  the file is damaged, and was read up to there: {damage}"));
    }
    for (reason, count) in feed.lines.iter().flat_map(|line| &line.malformed) {
        text.push_str(&format!("\n  {} datagrams refused: {reason}", thousands(*count)));
    }
    if let Some(pool) = &feed.pool {
        text.push_str(&format!(
            "\n  pool: at most {} datagrams at once; {} times without a free slot, {} slots from elsewhere, \
             {} datagrams thrown away",
            thousands(pool.high_water),
            thousands(pool.exhaustions),
            thousands(pool.misses - pool.dropped.min(pool.misses)),
            thousands(pool.dropped)
        ));
    }
    if let Some(recovery) = &feed.recovery {
        text.push_str(&format!(
            "\n  recovery: {} messages in {} answers to {} requests; {} timeouts, {} given up, {} answers not taken",
            thousands(recovery.recovered),
            thousands(recovery.answers),
            thousands(recovery.requests),
            thousands(recovery.timeouts),
            thousands(recovery.given_up),
            thousands(recovery.rejected.values().sum()),
        ));
    }
    if feed.items_refused > 0 {
        let count = thousands(feed.items_refused);
        text.push_str(&format!("\n  {count} ticks went out without an item: max_items is reached"));
    }
}
