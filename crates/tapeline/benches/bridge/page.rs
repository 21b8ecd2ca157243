//! The figures as a page.

use std::fmt::{self, Write};

use tapeline_measure::Recorder;
use tapeline_measure::figures::thousands;

use crate::late::{LateJoin, PAST, RATE};
use crate::stalled::{self, Neighbour};
use crate::turns::{ratios, spread};
use crate::{Carrier, LOST_OF, MOST_BARE, OtherTurns, Turn, Turns};

/// The share of a rate from which on a relay keeps up with it.
const KEEPS_UP: f64 = 0.97;

pub(crate) fn page(
    turns: &Turns,
    others: &OtherTurns,
    count: usize,
    seconds: u64,
    environment: &str,
) -> String {
    let mut page = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut page, turns, count, seconds, environment)
        .and_then(|()| joining(&mut page, others))
        .and_then(|()| standing_still(&mut page, &others.stalled));
    page
}

fn name(carrier: Carrier) -> String {
    match carrier {
        Carrier::BareDatagrams => "bare datagrams".to_owned(),
        #[cfg(feature = "aeron")]
        Carrier::BareAeron => "bare Aeron".to_owned(),
        Carrier::Ring => "ring, no bridge".to_owned(),
        Carrier::BareRelay => "bare relay, two lines".to_owned(),
        Carrier::Datagrams => "MoldUDP64, two lines".to_owned(),
        Carrier::LossyLine => format!("one line that loses 1 of {LOST_OF}"),
        Carrier::LossyLines => format!("two lines that lose 1 of {LOST_OF} each"),
        Carrier::Tcp => "TCP".to_owned(),
        Carrier::Tls => "TCP with TLS".to_owned(),
        #[cfg(feature = "aeron")]
        Carrier::BareRelayAeron => "bare relay, Aeron".to_owned(),
        #[cfg(feature = "aeron")]
        Carrier::Aeron => "Aeron".to_owned(),
    }
}

/// The bare relay that a carrier is compared with.
fn relay_of(carrier: Carrier) -> Option<Carrier> {
    match carrier {
        Carrier::BareRelay => None,
        #[cfg(feature = "aeron")]
        Carrier::BareRelayAeron => None,
        #[cfg(feature = "aeron")]
        Carrier::Aeron | Carrier::BareAeron => Some(Carrier::BareRelayAeron),
        _ => Some(Carrier::BareRelay),
    }
}

fn write(page: &mut String, turns: &Turns, count: usize, seconds: u64, environment: &str) -> fmt::Result {
    writeln!(
        page,
        "# The bridge by carrier and rate\n\n\
         Written by `make bench-bridge DOC=1`. Figures are min / **median** / max of {count} turns of {seconds} s each; in a turn every carrier runs once, one \
         after the other, and ratios are taken within a turn. Another machine, or this one at another hour, has other figures.\n\n\
         ```text\n{}\n```\n\n\
         Two plants of the binary on one machine, over loopback, and a reader of the ring below; all of them sleep while there is nothing to do. Every message of a simulated exchange (500 \
         symbols) is a tick, with the message in it. The time is from the tick being written to the ring above until the reader has it: ring, bridge, \
         carrier, plant below, ring. *ring, no bridge* is the same reader at the plant above. *bare relay*: the rings, lines, threads and sleeps of the bridge in one process, \
         and nothing of what plants do: what this machine takes for a bridge whose threads sleep, from turn to turn more or less, as the bridge does. Over Aeron it waits for \
         flow control, where a bridge drops what is not taken. The ratio is to the p50 of the relay over the same lines (Aeron, or else two of datagrams) at rates with which that keeps up. The other *bare* ones: one message of a tick's length after the other, from a thread to \
         a thread; with datagrams up to {} a second, with Aeron, which packs them, as many as its flow control takes.\n\n\
         *Lost*: ticks that the reader did not get, in all turns. *Again*: ticks that came again on request, in all turns; lines with equal loss lose different datagrams.\n\n\
         | ticks/s | carrier | p50, µs | p99, µs | p99.9, µs | p50 by the bare relay's | received, thousand/s | lost | again |\n\
         |---:|---|---|---|---|---|---|---:|---:|",
        environment.trim_end(),
        thousands(MOST_BARE),
    )?;
    for ((rate, carrier), of_carrier) in turns {
        let at = |rank: f64| -> Vec<f64> {
            let us = |turn: &Turn| turn.latency.value_at(rank).map_or(f64::NAN, |ns| ns as f64 / 1e3);
            of_carrier.iter().map(us).collect()
        };
        let relay = relay_of(*carrier).and_then(|relay| turns.get(&(*rate, relay)));
        // One that waits for flow control has a queue of its own.
        let relay = relay.filter(|relay| relay.iter().all(|turn| turn.rate_hz >= KEEPS_UP * *rate as f64));
        let by_relay = relay.map_or_else(String::new, |relay| {
            let relay: Vec<f64> = relay
                .iter()
                .map(|turn| turn.latency.value_at(0.5).map_or(f64::NAN, |ns| ns as f64 / 1e3))
                .collect();
            spread(&ratios(&at(0.5), &relay), 2)
        });
        let kept_up = of_carrier.iter().filter(|turn| turn.latency.value_at(0.5).is_some()).count();
        let received = if kept_up == of_carrier.len() {
            spread(&of_carrier.iter().map(|turn| turn.rate_hz / 1e3).collect::<Vec<_>>(), 1)
        } else {
            format!("kept up in {kept_up} of {} turns", of_carrier.len())
        };
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {by_relay} | {} | {} | {} |",
            thousands(*rate),
            name(*carrier),
            spread(&at(0.5), 1),
            spread(&at(0.99), 1),
            spread(&at(0.999), 1),
            received,
            thousands(of_carrier.iter().map(|turn| turn.lost).sum()),
            thousands(of_carrier.iter().map(|turn| turn.recovered).sum()),
        )?;
    }
    Ok(())
}

/// The part about joining late, if it was measured.
fn joining(page: &mut String, others: &OtherTurns) -> fmt::Result {
    if others.plant.is_empty() {
        return Ok(());
    }
    writeln!(
        page,
        "\n## Joining late\n\n\
         When {} messages are published, at {} a second, somebody joins, and more come at that rate. The times are from then until who joins has all that there were, and until \
         it is level: less than 10 ms behind. *A plant below* has `start = \"epoch\"`: its process starts, takes the ticks from the journal of the plant above over TCP, and goes \
         live. A plant below gets 100 MB a second at most, if `catch_up_rate` does not say otherwise. *Aeron Archive* is an `ArchivingMediaDriver` for Java \
         with its defaults and shared threads; a client in its process, which has published for {} s, connects, and replays the recording over UDP \
         ([its program](../../peers/aeron-archive/LateJoin.java)).\n\n\
         | who joins | has the past, s | is level, s | past, million messages/s |\n|---|---|---|---|",
        thousands(PAST),
        thousands(RATE),
        PAST / RATE,
    )?;
    let ways = [
        ("a plant below", &others.plant),
        ("a plant below with `catch_up_rate = \"1GiB\"`", &others.unlimited),
        ("a subscriber of Aeron Archive", &others.archive),
    ];
    for (name, joins) in ways.into_iter().filter(|(_, joins)| !joins.is_empty()) {
        let of = |figure: fn(&LateJoin) -> f64| joins.iter().map(figure).collect::<Vec<_>>();
        writeln!(
            page,
            "| {name} | {} | {} | {} |",
            spread(&of(|join| join.past_s), 2),
            spread(&of(|join| join.level_s), 2),
            spread(&of(|join| join.past as f64 / join.past_s / 1e6), 2),
        )?;
    }
    Ok(())
}

/// The part about a reader that stands still, if it was measured.
fn standing_still(page: &mut String, turns: &[Neighbour]) -> fmt::Result {
    if turns.is_empty() {
        return Ok(());
    }
    let us = |rank, of: fn(&Neighbour) -> &Recorder| -> Vec<f64> {
        let us = |turn| of(turn).value_at(rank).map_or(f64::NAN, |ns| ns as f64 / 1e3);
        turns.iter().map(us).collect()
    };
    let (reading, stalled) = (us(0.99, |turn| &turn.reading), us(0.99, |turn| &turn.stalled));
    writeln!(
        page,
        "\n## A reader that stands still\n\n\
         Two plants below, {} ticks a second, each over a line of its own. A reader of the second's ring reads, or stands still until the ring of 64 MiB is full and it \
         is evicted. In µs, at a reader of the first:\n\n\
         | the other reader | p50 | p99 | p99 by that beside one that reads |\n|---|---|---|---|\n\
         | reads | {} | {} | |\n| stands still | {} | {} | {} |",
        thousands(stalled::RATE),
        spread(&us(0.5, |turn| &turn.reading), 1),
        spread(&reading, 1),
        spread(&us(0.5, |turn| &turn.stalled), 1),
        spread(&stalled, 1),
        spread(&ratios(&stalled, &reading), 2),
    )
}
