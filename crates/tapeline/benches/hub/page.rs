//! The figures as a page.

use std::fmt::{self, Write};

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
         Written by `make bench-hub RTSDK=FOLDER DOC=1`. min / **median** / max of {turns} turns in which each does its part after \
         the other; ratios are taken within a turn. Another machine, or this one at another hour, has other figures.\n\n\
         ```text\n{}\n```\n\n\
         The hub is the binary's own (`tapeline plant serve`), in a process of its own on one core. A publisher of synthetic ticks \
         and all clients (Tapeline's consumers; one thread) share the other. The messages are LSEG's `MsgData.xml`: images of 73 \
         fields, updates of 13 and a time stamp, in bursts, 1,000 a second. LSEG's pairs (C and C++, their performance tools) run on \
         the same two cores, direct, with no server between.\n",
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
            "## Many clients\n\n{} clients with {ITEMS_EACH} items each, {} updates a second of all together: {}.\n",
            thousands(CLIENTS as u64),
            thousands(USUAL_RATE),
            told(held)
        )?;
    }
    if let Some([images, client]) = figures.memory {
        let each = |bytes: u64| bytes / ITEMS as u64;
        writeln!(
            page,
            "## Memory\n\nThe hub's process with {} images: {} MB, {} bytes an image; with one client that has all of them open: {} MB, \
             {} bytes more an item. (LSEG's pairs hold as many in 98 MB as provider and 103 as consumer in C, in 326 and 252 in C++.)",
            thousands(ITEMS as u64),
            images / 1_000_000,
            each(images),
            client / 1_000_000,
            each(client.saturating_sub(images)),
        )?;
    }
    Ok(())
}

fn images(page: &mut String, figures: &Figures) -> fmt::Result {
    if figures.images_hub_s.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "## Images\n\n{} items are asked for by one client, each with a request of its own, and refreshed from the cache: from the \
         first request to the last image, s.\n\n| | s | by ETA C's pair |\n|---|---:|---:|",
        thousands(ITEMS as u64)
    )?;
    let eta = &figures.images_eta_s;
    for (who, took) in [
        ("ETA C's provider and consumer, direct", eta),
        ("the hub and ETA C's consumer (aim: 1.5)", &figures.images_hub_eta_s),
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
        "## Updates\n\nTo one client over TCP that has all items open. The aim is 2,000,000 a second; EMA C++'s pair does 1.1 million.\n\n\
         | asked a second | verdict | came a second | median µs | p99 µs | the hub's cores | processor time an update, ns: publisher | hub | client |\n\
         |---:|---|---:|---:|---:|---:|---:|---:|---:|"
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
        "\nPublisher and client share a core, the hub has the other one. What a socket costs the kernel is in the time of whoever sent \
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
        "## Each stage alone\n\nThe same updates of {} items, to one client over TCP, as fast as they get through. The hub has a core to \
         itself; publisher and client share the other one, where the publisher stops while {} updates are under way, so that it holds \
         up nobody: who has less than a core there waits for the hub. The client has a core to itself, and a socket that is always full: \
         what the hub has sent once is sent to it over and over, from the other core.\n\n\
         | | million updates/s | its cores | publisher and client |\n|---|---:|---:|---:|\n\
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
        "## A feed, the whole way\n\nDatagrams (ITCH in MoldUDP64, 500 stocks, up to 1,400 bytes) into the binary's own plant, with the \
         hub in it, to one client over TCP that has all stocks open. A tick is what the plant publishes, and the client gets each of them. \
         The plant's thread and the client are on one core, the hub's thread on the other; over UDP (loopback) the sender is there too. It \
         sends what was encoded before, 1,000 times a second what is due. Each rate lasts until 6,000,000 messages are sent, three seconds at \
         most, and the rates rise until one is too much three times (a virtual machine is without its cores now and then). Behind is how \
         long after the last datagram the client has the last update; the plant's time has in it what it waits \
         for room on the ring.\n"
    )?;
    writeln!(page, "The simulated exchange, of whose messages four in ten change a published field:\n")?;
    carried(page, &figures.simulated)?;
    writeln!(
        page,
        "Quotes alone: each message replaces the only bid or the only ask of a stock by one at another price, and is a tick. The floor is the \
         same datagrams from the same sender to a socket whose reader counts them; its processor time is in the plant's column.\n"
    )?;
    carried(page, &figures.quotes)
}

fn carried(page: &mut String, rows: &[Carried]) -> fmt::Result {
    writeln!(
        page,
        "| what | verdict | messages/s | ticks/s | behind, ms | processor time a tick, ns: plant | hub | client | who sends |\n\
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
        "## Response time\n\nFrom when an update is due to when the client has it, at {} a second, {} items. The bare relay has the hub's \
         ring, sockets and waiting, and sends each message on without a look at it.\n\n| | µs |\n|---|---:|",
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
        "\nHub by relay, medians (aim: 1.5): {}. Hub's median by the mean of EMA C++'s pair (aim: below 1): {}; \
         means by each other: {}.\n",
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
        "## A stalled neighbour\n\nA client with 1,000 items at {} updates a second: its response time, µs, alone, and beside a client \
         that has the same items open and reads nothing (the hub's usual policy, conflation).\n\n\
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
        "**{verdict}** ({why}); {} came a second, {cut} clients were cut, response time {median_us:.0} µs in the median and {p99_us:.0} µs \
         at the 99th percentile, {hub_cores:.2} of the hub's core; processor time an update: {hub:.0} ns of the hub, {client:.0} ns of the \
         clients",
        thousands(*received_per_s as u64)
    )
}
