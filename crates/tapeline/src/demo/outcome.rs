//! Converts the results of the demo's parts to one record and one table.

use std::time::Duration;

use serde_json::json;
use tapeline_measure::{Clock, Environment, Evidence, Jitter, Percentiles, Rank, Recorder, Verdict};
use tapeline_node::report::PlantReport;
use tapeline_perf::path::{Hop, PathReport};
use tapeline_perf::run_folder::{self, Process, Run, RunFolder, Step, Throughput};

use super::Said;
use super::clients::Client;

/// The record of the run, with its verdict.
pub(super) fn run_of(said: &Said, jitter: Vec<Jitter>, clock: &Clock) -> anyhow::Result<Run> {
    let sent = said.sent.messages.unwrap_or_else(|| said.plant.messages() + said.plant.missing_messages());
    let over = Duration::from_nanos(said.sent.duration_ns);
    let columns = columns(&said.subscribers)?;
    let fewest = said.subscribers.iter().map(|subscriber| subscriber.last_feed_seq).min().unwrap_or(0);
    let worst = said.subscribers.iter().max_by_key(|subscriber| subscriber.trend.most_ns);
    let evidence = Evidence {
        asked_rate_hz: said.sent.asked_rate_hz,
        sent_rate_hz: sent as f64 * 1e9 / said.sent.duration_ns.max(1) as f64,
        sent,
        received: fewest,
        lost: lost(said)?,
        sender: said.sent.trend,
        system: worst.map_or_else(Default::default, |worst| worst.trend),
        held_back_share: said.sent.back_pressure_ns as f64 / said.sent.duration_ns.max(1) as f64,
        result: columns.last().map(|(_, recorder, _)| recorder.percentiles()),
        floor_p99_ns: None,
    };
    let mut run = Run::new("demo", said.started, over, evidence, jitter, Environment::read(clock));
    run.throughput = Throughput::new(sent, said.plant.message_bytes(), over);
    run.hops = columns
        .iter()
        .map(|(name, recorder, clock_error_ns)| run_folder::HopLatency {
            name: name.clone(),
            percentiles: recorder.percentiles(),
            clock_error_ns: *clock_error_ns,
        })
        .collect();
    run.clients = clients(said)?;
    run.journal = said.replayed.as_ref().map(|replayed| run_folder::Journal {
        replayed: replayed.ticks,
        last_sequence: replayed.last,
        checksum: format!("{:08x}", replayed.checksum),
        missing: missing_in_journal(said).unwrap_or(0),
        replay_seconds: replayed.seconds,
    });
    run.processes =
        said.usage.iter().map(|(name, spent)| Process { name: name.clone(), spent: *spent }).collect();
    Ok(run)
}

/// The receivers: what each subscriber and each client of the hub received and lost, and the age of its data.
fn clients(said: &Said) -> anyhow::Result<Vec<run_folder::Client>> {
    let of = |name: &str, over: &str, received, lost, percentiles| run_folder::Client {
        name: name.to_owned(),
        over: over.to_owned(),
        received,
        lost,
        verdict: if lost == 0 { Verdict::Pass } else { Verdict::Lossy },
        percentiles,
    };
    let mut clients = Vec::new();
    for (number, subscriber) in (1..).zip(&said.subscribers) {
        let due = recorder(Hop::DueToReceived, &subscriber.latencies()?).map(|due| due.percentiles());
        let (name, lost) = (format!("subscriber {number}"), lost_by(said, subscriber));
        clients.push(of(&name, "shared memory", subscriber.received, lost, due.unwrap_or_default()));
    }
    for client in &said.clients {
        let (lost, age) = (lost_by_client(said, client), client.age.percentiles());
        clients.push(of(client.name, client.over, client.received, lost, age));
    }
    if let Some(replayed) = &said.replayed {
        let lost = missing_in_journal(said)?;
        clients.push(of("journal", "disk, replayed", replayed.ticks, lost, Percentiles::default()));
    }
    Ok(clients)
}

/// Published ticks that the replay of the journal did not return; 0 without a journal.
///
/// # Errors
/// The replayed ticks differ from the published ones.
fn missing_in_journal(said: &Said) -> anyhow::Result<u64> {
    let Some(replayed) = &said.replayed else { return Ok(0) };
    // All subscribers should have received the same; one with losses allows no comparison.
    let given = said.subscribers.iter().min_by_key(|subscriber| subscriber.lost);
    given.map_or(Ok(0), |given| replayed.missing_of(said.plant.ticks, given))
}

/// Messages that a client of the hub lost, and those that the hub lost before it.
fn lost_by_client(said: &Said, client: &Client) -> u64 {
    let hub = said.plant.hub.as_ref();
    let before = hub.map_or(0, |hub| said.plant.ticks.saturating_sub(hub.ticks));
    before + client.lost(hub.map(|hub| hub.clients.as_slice()).unwrap_or_default())
}

/// Messages that a subscriber lost after the plant.
fn lost_by(said: &Said, subscriber: &PathReport) -> u64 {
    let behind = last_sequence(&said.plant).saturating_sub(subscriber.last_feed_seq);
    // The subscriber joined before the feed began, so its first tick is the very first one.
    subscriber.lost + subscriber.first_seq.saturating_sub(1) + behind
}

/// Messages that did not reach every receiver: missing on every line, dropped by the kernel, or lost after the
/// plant.
///
/// A message that the kernel dropped on a line counts only if no other line delivered it, and is then included in
/// `missing_messages`. Messages sent after the last one that arrived show by the feed's own sequence.
fn lost(said: &Said) -> anyhow::Result<u64> {
    let in_plant = said.plant.missing_messages();
    let after = said.subscribers.iter().map(|subscriber| lost_by(said, subscriber));
    let after = after.chain(said.clients.iter().map(|client| lost_by_client(said, client)));
    let after = after.chain([missing_in_journal(said)?]);
    // Only a sender that numbers its messages from 1 gives the total.
    let tail = said.sent.messages.map_or(0, |sent| sent.saturating_sub(last_sequence(&said.plant)));
    Ok(in_plant + tail + after.max().unwrap_or(0))
}

/// The table's columns: the hops inside the plant once, the ring's hop for each subscriber, the whole path over all
/// subscribers.
fn columns(subscribers: &[PathReport]) -> anyhow::Result<Vec<(String, Recorder, u64)>> {
    let mut columns = Vec::new();
    let all: Vec<(Vec<(Hop, Recorder)>, u64)> = subscribers
        .iter()
        .map(|subscriber| Ok((subscriber.latencies()?, subscriber.clock_error_ns)))
        .collect::<anyhow::Result<_>>()?;
    for hop in [Hop::WireToDecoded, Hop::DecodedToSequenced] {
        // All subscribers see the same stamps of the plant: one of them is enough.
        if let Some((hops, error)) = all.first() {
            columns.extend(recorder(hop, hops).map(|recorder| (hop.to_string(), recorder, *error)));
        }
    }
    for (number, (hops, error)) in (1..).zip(&all) {
        let received = recorder(Hop::SequencedToReceived, hops);
        columns.extend(received.map(|recorder| (format!("→received {number}"), recorder, *error)));
    }
    for hop in [Hop::WireToReceived, Hop::DueToReceived] {
        let each = all.iter().filter_map(|(hops, error)| Some((recorder(hop, hops)?, *error)));
        let merged = each.reduce(|(mut sum, most), (recorder, error)| {
            sum.merge(&recorder);
            (sum, error.max(most))
        });
        columns.extend(merged.map(|(recorder, error)| (hop.to_string(), recorder, error)));
    }
    Ok(columns)
}

/// The latencies of one of the hops.
fn recorder(hop: Hop, from: &[(Hop, Recorder)]) -> Option<Recorder> {
    from.iter().find(|(found, _)| *found == hop).map(|(_, recorder)| recorder.clone())
}

/// Where the time goes, for all subscribers together, beside a bare relay's.
pub(super) fn steps(plant: &[PathReport], floor: Option<&[PathReport]>) -> anyhow::Result<Vec<Step>> {
    let plant = by_hop(plant)?;
    let floor = floor.map(by_hop).transpose()?.unwrap_or_default();
    let of = |hop: Hop, all: &[(Hop, Percentiles)]| {
        let found = all.iter().find(|(found, _)| *found == hop);
        found.map(|(_, percentiles)| (percentiles.mean_ns, percentiles.at(Rank::MEDIAN)))
    };
    let step = |hop: Hop| {
        let ((mean_ns, median_ns), relay) = (of(hop, &plant)?, of(hop, &floor));
        Some(Step {
            name: hop.to_string(),
            mean_ns,
            median_ns,
            relay_ns: relay.map(|(mean, _)| mean),
            relay_median_ns: relay.and_then(|(_, median)| median),
            is_sum: hop == Hop::WireToReceived,
        })
    };
    let due = of(Hop::DueToReceived, &plant).zip(of(Hop::WireToReceived, &plant));
    let due = due.map(|((due, _), (wire, _))| Step {
        name: "due→wire".to_owned(),
        mean_ns: due.saturating_sub(wire),
        median_ns: None,
        relay_ns: None,
        relay_median_ns: None,
        is_sum: false,
    });
    let hops = [Hop::WireToDecoded, Hop::DecodedToSequenced, Hop::SequencedToReceived, Hop::WireToReceived];
    Ok(due.into_iter().chain(hops.into_iter().filter_map(step)).collect())
}

/// The latency of each hop over all subscribers.
fn by_hop(subscribers: &[PathReport]) -> anyhow::Result<Vec<(Hop, Percentiles)>> {
    let mut all: Vec<(Hop, Recorder)> = Vec::new();
    for subscriber in subscribers {
        for (hop, recorder) in subscriber.latencies()? {
            match all.iter_mut().find(|(known, _)| *known == hop) {
                Some((_, sum)) => sum.merge(&recorder),
                None => all.push((hop, recorder)),
            }
        }
    }
    Ok(all.into_iter().map(|(hop, recorder)| (hop, recorder.percentiles())).collect())
}

pub(super) fn write(folder: &RunFolder, run: &Run, said: &Said) -> anyhow::Result<()> {
    folder.write_run(run)?;
    for (number, subscriber) in (1..).zip(&said.subscribers) {
        folder.write_stats(number, 1_000_000_000, &subscriber.windows)?;
    }
    let columns = columns(&said.subscribers)?;
    let hops: Vec<(&str, &Recorder)> =
        columns.iter().map(|(name, recorder, _)| (name.as_str(), recorder)).collect();
    folder.write_latency(run.started, Duration::from_secs_f64(run.seconds), &hops)
}

/// The parts in the record: the plant's report and the subscribers' counts.
pub(super) fn parts(said: &Said) -> serde_json::Value {
    let subscribers: Vec<_> = said
        .subscribers
        .iter()
        .map(|subscriber| {
            json!({
                "label": subscriber.label,
                "end": subscriber.end,
                "first_seq": subscriber.first_seq,
                "last_seq": subscriber.last_seq,
                "received": subscriber.received,
                "lost": subscriber.lost,
                "last_feed_seq": subscriber.last_feed_seq,
                "checksum": subscriber.checksum,
            })
        })
        .collect();
    json!({ "plant": said.plant, "subscribers": subscribers })
}

/// The sequence of the last feed message: the demo's plant has one feed.
fn last_sequence(plant: &PlantReport) -> u64 {
    plant.feeds.iter().filter_map(|feed| feed.next_sequence).map(|next| next.saturating_sub(1)).sum()
}
