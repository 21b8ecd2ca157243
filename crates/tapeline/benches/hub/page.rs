//! The figures as a page.

use std::fmt::{self, Write};

use tapeline_measure::Usage;
use tapeline_measure::figures::thousands;

use crate::feed::Carried;
use crate::publisher::AHEAD;
use crate::stages::Alone;
use crate::turns::{ratios, spread};
use crate::{CLIENTS, Figures, ITEMS, ITEMS_EACH, Rate, USUAL_RATE};

pub(crate) fn page(figures: &Figures, turns: usize, environment: &str) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut page, figures, turns, environment);
    page
}

fn write(page: &mut String, figures: &Figures, turns: usize, environment: &str) -> fmt::Result {
    writeln!(
        page,
        "# The hub: images, updates, response time\n\n\
         Written by `make bench-hub RTSDK=FOLDER DOC=1`. Figures are min / **median** / max of {turns} turns; in a turn every system runs once, \
         one after the other, and ratios are taken within a turn. Another machine, or this one at another hour, has other figures.\n\n\
         ```text\n{}\n```\n\n\
         The hub is the part of a plant that serves items to OMM clients; here it runs as a process of its own (`tapeline plant serve`), on \
         one core. The other core is shared by a publisher of synthetic ticks and by all clients (Tapeline's consumers, in one thread). The messages are those of LSEG's `MsgData.xml`: images of 73 fields, updates of 13 \
         fields and a time stamp, in 1,000 bursts a second. For comparison, a *pair* is LSEG's provider and consumer (its performance \
         tools in C or C++) on the same two cores, connected directly, with no server in between.\n",
        environment.trim_end()
    )?;
    images(page, figures)?;
    rates(page, figures)?;
    alone(page, figures)?;
    feed(page, figures)?;
    latency(page, figures)?;
    neighbour(page, figures)?;
    if let Some(held) = &figures.clients {
        writeln!(
            page,
            "## Many clients\n\n{} clients with {ITEMS_EACH} items each, {} updates a second in total: {}.\n",
            thousands(CLIENTS as u64),
            thousands(USUAL_RATE),
            told(held)
        )?;
    }
    if let Some([images, client]) = &figures.memory {
        let own = |usage: &Usage| usage.resident_bytes - usage.shared_bytes;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        writeln!(
            page,
            "## Memory\n\nThe hub's process with {} images: {:.1} MB of its own, {} bytes for each image; with one client that has all items \
             open: {:.1} MB, {} bytes more for each item. Beside that the hub maps the ring, which all readers share; resident memory counts it \
             with {:.1} MB, as the frames are mapped twice in a row.",
            thousands(ITEMS as u64),
            mb(own(images)),
            own(images) / ITEMS as u64,
            mb(own(client)),
            own(client).saturating_sub(own(images)) / ITEMS as u64,
            mb(images.shared_bytes),
        )?;
        if let Some(provider) = &figures.eta_provider {
            writeln!(
                page,
                "\nETA C's provider, whose consumer has as many items open: {:.1} MB. It holds no image for each item: all are encoded from the messages of `MsgData.xml`.",
                mb(own(provider)),
            )?;
        }
    }
    Ok(())
}

fn images(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.images_hub_s.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Images\n\nOne client requests {} items, each with a request of its own, and the hub answers from its cache. The table has the \
         seconds from the first request to the last image.\n\n| | s | ratio to ETA C's pair |\n|---|---:|---:|",
        thousands(ITEMS as u64)
    )?;
    let eta = &figures.images_eta_s;
    for (who, took) in [
        ("ETA C's provider and consumer, direct", eta),
        ("the hub and ETA C's consumer (aim: at most 1.5)", &figures.images_hub_eta_s),
        ("the hub and Tapeline's consumer", &figures.images_hub_s),
    ] {
        writeln!(page, "| {who} | {} | {} |", spread(took, 3), spread(&ratios(took, eta), 2))?;
    }
    writeln!(page)
}

fn rates(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.rates.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Updates\n\nThe hub sends updates to one client over TCP that has all {} items open. The aim is 2,000,000 updates a second; EMA \
         C++'s pair reaches 1.1 million.\n\n\
         | requested/s | verdict | received/s | median µs | p99 µs | the hub's cores | processor time per update, ns: publisher | hub | client |\n\
         |---:|---|---:|---:|---:|---:|---:|---:|---:|",
        thousands(ITEMS as u64)
    )?;
    for held in &figures.rates {
        let Rate { asked, received_per_s, verdict, median_us, p99_us, hub_cores, why, cpu_ns, .. } = held;
        let why = if verdict.word() == "PASS" { String::new() } else { format!(": {why}") };
        let [publisher, hub, client] = cpu_ns;
        writeln!(
            page,
            "| {} | {verdict}{why} | {} | {median_us:.0} | {p99_us:.0} | {hub_cores:.2} | {publisher:.0} | {hub:.0} | {client:.0} |",
            thousands(*asked),
            thousands(*received_per_s as u64),
        )?;
    }
    writeln!(
        page,
        "\nPublisher and client share a core, the hub has the other one. The kernel's time for a socket counts for the process that sent \
         or read.\n"
    )
}

/// What each stage carries on a core of its own.
fn alone(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.alone.is_empty() {
        return Ok(());
    }
    let all = |figure: fn(&Alone) -> f64| figures.alone.iter().map(figure).collect::<Vec<_>>();
    writeln!(
        page,
        "## Each stage alone\n\nThe same updates of {} items go to one client over TCP, at full speed. In the row *the hub*, the hub has a \
         core to itself; publisher and client share the other core, and the publisher pauses while {} updates are in flight. Publisher and \
         client use less than their core, so the figure is the hub's limit. In the row *Tapeline's consumer*, the consumer has a core to \
         itself and always finds data in its socket: the other core sends it a recording of the hub's output again and again.\n\n\
         | | million updates/s | its cores | cores of publisher and client |\n|---|---:|---:|---:|\n\
         | the hub | {} | {} | {} |\n| Tapeline's consumer | {} | {} | – |\n",
        thousands(ITEMS as u64),
        thousands(AHEAD),
        spread(&all(|alone| alone.hub_per_s / 1e6), 2),
        spread(&all(|alone| alone.hub_cores), 2),
        spread(&all(|alone| alone.beside_cores), 2),
        spread(&all(|alone| alone.client_per_s / 1e6), 2),
        spread(&all(|alone| alone.client_cores), 2),
    )
}

/// The whole way.
fn feed(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.quotes.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## A feed, end to end\n\nDatagrams (ITCH in MoldUDP64, 500 stocks, up to 1,400 bytes) go into `tapeline plant`, with the hub in \
         the same process, and to one client over TCP that has all stocks open. The client gets every tick that the plant publishes. The \
         plant's thread and the client share one core; the hub's thread has the other, and shares it with the sender if the datagrams \
         come over UDP (loopback). The sender's datagrams were encoded before the run; 1,000 times a second the sender sends all that are due.\n\n\
         Each rate lasts until 6,000,000 messages are sent, but at most three seconds. The rates rise until one fails three times in a row; a \
         single failure may be the host's, because a virtual machine loses its cores now and then. *Behind* is the time from the last \
         datagram until the client has the last update. The plant's processor time includes its wait for capacity on the ring.\n"
    )?;
    writeln!(
        page,
        "In the first table a simulated exchange sends all kinds of messages; four in ten change a published field, and become ticks:\n"
    )?;
    carried(page, &figures.simulated)?;
    writeln!(
        page,
        "In the second table all messages are quotes: each replaces the only bid or the only ask of a stock by one at another price, and \
         becomes a tick. The last row \
         is the floor: the same datagrams from the same sender to a socket whose reader only counts them; the reader's processor time is in \
         the plant's column.\n"
    )?;
    carried(page, &figures.quotes)
}

fn carried(page: &mut String, rows: &[Carried]) -> fmt::Result {
    writeln!(
        page,
        "| what | verdict | messages/s | ticks/s | behind, ms | processor time per tick, ns: plant | hub | client | sender |\n\
         |---|---|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    let or_dash = |there: bool, figure: String| if there { figure } else { "–".to_owned() };
    for Carried { what, verdict, messages_per_s, ticks_per_s, behind_ms, cpu_ns } in rows {
        let verdict = match verdict {
            Some((verdict, why)) if verdict.word() != "PASS" => format!("{verdict}: {why}"),
            Some((verdict, _)) => verdict.to_string(),
            None => "–".to_owned(),
        };
        let [plant, hub, client, sender] = cpu_ns.map(|ns| or_dash(ns > 0.0, format!("{ns:.0}")));
        writeln!(
            page,
            "| {what} | {verdict} | {} | {} | {} | {plant} | {hub} | {client} | {sender} |",
            thousands(*messages_per_s as u64),
            thousands(*ticks_per_s as u64),
            or_dash(behind_ms.is_some(), format!("{:.1}", behind_ms.unwrap_or(0.0))),
        )?;
    }
    writeln!(page)
}

fn latency(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.latency_hub_us.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Response time\n\nThe response time is the time from when an update is due until the client has it, here at {} updates a second \
         of {} items. The bare relay uses the hub's ring, sockets and way of waiting, but forwards each message without looking at it. EMA's tools report only the mean.\n\n| | µs |\n|---|---:|",
        thousands(USUAL_RATE),
        thousands(ITEMS as u64)
    )?;
    let Figures { latency_relay_us, latency_hub_us, latency_hub_mean_us, latency_ema_mean_us, .. } = figures;
    for (who, took) in [
        ("bare relay, median", latency_relay_us),
        ("hub, median", latency_hub_us),
        ("hub, mean", latency_hub_mean_us),
        ("EMA C++'s pair, mean", latency_ema_mean_us),
    ] {
        writeln!(page, "| {who} | {} |", spread(took, 1))?;
    }
    writeln!(
        page,
        "\nRatios: hub to relay, medians (aim: at most 1.5): {}; the hub's median to the mean of EMA C++'s pair (aim: below 1): {}; \
         mean to mean: {}.\n",
        spread(&ratios(latency_hub_us, latency_relay_us), 2),
        spread(&ratios(latency_hub_us, latency_ema_mean_us), 2),
        spread(&ratios(latency_hub_mean_us, latency_ema_mean_us), 2)
    )
}

fn neighbour(page: &mut String, figures: &Figures) -> fmt::Result {
    let column = |of: &[[f64; 2]], which: usize| of.iter().map(|turn| turn[which]).collect::<Vec<_>>();
    let (medians, p99s) = (&figures.witness_median_us, &figures.witness_p99_us);
    if p99s.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## A stalled neighbour\n\nThe table has the response time, in µs, of a client with 1,000 items at {} updates a second: alone, and \
         next to a second client that has the same items open and reads nothing (under the default policy for slow clients, conflation).\n\n\
         | | median | p99 |\n|---|---:|---:|\n| alone | {} | {} |\n| with the stalled one | {} | {} |\n| ratio | {} | {} |\n",
        thousands(USUAL_RATE),
        spread(&column(medians, 0), 1),
        spread(&column(p99s, 0), 1),
        spread(&column(medians, 1), 1),
        spread(&column(p99s, 1), 1),
        spread(&ratios(&column(medians, 1), &column(medians, 0)), 2),
        spread(&ratios(&column(p99s, 1), &column(p99s, 0)), 2),
    )
}

fn told(held: &Rate) -> String {
    let Rate {
        received_per_s,
        verdict,
        why,
        median_us,
        p99_us,
        hub_cores,
        cut,
        cpu_ns: [_, hub, client],
        ..
    } = held;
    format!(
        "**{verdict}** ({why}); {} received a second, {cut} clients disconnected, response time p50 {median_us:.0} µs, p99 {p99_us:.0} µs, \
         {hub_cores:.2} of the hub's core; processor time per update: hub {hub:.0} ns, clients {client:.0} ns",
        thousands(*received_per_s as u64)
    )
}
