//! The plant's health, for programs such as a load balancer or a supervisor.

use serde_json::{Value, json};
use tapeline_measure::Nanos;

use crate::stat::snapshot::{LATE_NS, Snapshot, ThreadSign};

/// Whether the plant is healthy, and each check with its result.
pub(super) fn of(snapshot: &Snapshot, now: Nanos) -> (bool, Value) {
    let mut checks = of_threads(snapshot, now);
    let holder = holder(snapshot);
    let ring = match holder {
        _ if snapshot.ring_removed => "name removed: nobody can join".to_owned(),
        Some(holder) => format!("full: {holder} holds it"),
        None => "named".to_owned(),
    };
    checks.push(("ring".to_owned(), !snapshot.ring_removed && holder.is_none(), ring));
    if let Some(journal) = &snapshot.journal {
        let says = match journal.missing {
            0 => format!("{}, up to tick {}", journal.state, journal.kept),
            missing => format!("{}, up to tick {}, {missing} missing", journal.state, journal.kept),
        };
        // Missing ticks were reported when they occurred; they do not come back.
        checks.push(("journal".to_owned(), journal.state == "keeping", says));
    }
    for feed in &snapshot.feeds {
        // Messages in recovery are late, not lost; after the end of its session a feed is expected to be
        // silent.
        let is_well = matches!(feed.state.as_str(), "live" | "recovering") || feed.ended;
        let says = if feed.ended { format!("{}, session over", feed.state) } else { feed.state.clone() };
        checks.push((format!("feed {}", feed.name), is_well, says));
    }
    if let Some(lease) = &snapshot.lease {
        let says = match (lease.held, lease.leader.as_str()) {
            (true, _) => format!("leads as session {}", lease.session),
            (false, "") => "nobody is known to lead".to_owned(),
            (false, leader) => format!("follows {leader}, session {}", lease.session),
        };
        let says = if lease.problem.is_empty() { says } else { format!("{says}: {}", lease.problem) };
        // A plant that follows is as well as one that leads; without a leader there are no ticks.
        checks.push(("lease".to_owned(), !lease.leader.is_empty(), says));
    }
    for service in snapshot.hub.iter().flat_map(|hub| &hub.services) {
        let says = if service.up { "up".to_owned() } else { format!("down: {}", service.text) };
        checks.push((format!("service {}", service.name), service.up, says));
    }
    let is_well = checks.iter().all(|(_, is_well, _)| *is_well);
    let checks: Vec<Value> = checks
        .into_iter()
        .map(|(check, is_well, says)| json!({ "check": check, "ok": is_well, "says": says }))
        .collect();
    (
        is_well,
        json!({ "status": if is_well { "ok" } else { "failing" }, "plant": snapshot.plant, "checks": checks }),
    )
}

/// The checks of the plant's threads, each with its result.
fn of_threads(snapshot: &Snapshot, now: Nanos) -> Vec<(String, bool, String)> {
    let check = |ThreadSign { name, heard_ns, ended }: ThreadSign| {
        let silent_ns = now.0.saturating_sub(heard_ns);
        let says = match (heard_ns, ended) {
            (_, true) => "ended".to_owned(),
            (0, _) => "not begun".to_owned(),
            _ => format!("last report {} ms ago", silent_ns / 1_000_000),
        };
        (name.to_owned(), heard_ns > 0 && !ended && silent_ns < LATE_NS, says)
    };
    snapshot.threads().map(check).collect()
}

/// The first thread that has ended or hangs, and since when.
pub(crate) fn failed_thread(snapshot: &Snapshot, now: Nanos) -> Option<String> {
    let failed = of_threads(snapshot, now).into_iter().find(|(_, is_well, _)| !is_well);
    failed.map(|(thread, _, says)| format!("{thread}: {says}"))
}

/// The reader that blocks the plant: the ring has no capacity for a tick until that reader continues.
pub(crate) fn holder(snapshot: &Snapshot) -> Option<&str> {
    let live = snapshot.readers.iter().filter(|reader| reader.alive && !reader.evicted);
    let slowest = live.max_by_key(|reader| reader.lag_bytes)?;
    // A reader reports its position once per eighth of the ring, and more often on request.
    let is_full = slowest.lag_bytes.saturating_mul(8) >= snapshot.backpressure.ring_bytes.saturating_mul(7);
    let is_late = snapshot.written_ns.saturating_sub(snapshot.heard_ns) >= LATE_NS;
    (is_full && is_late).then_some(slowest.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::snapshot::{FeedSnapshot, Hub, Journal, Outlet, ReaderSnapshot, Service};

    const NOW: u64 = 100_000_000_000;

    fn well() -> Snapshot {
        Snapshot {
            written_ns: NOW - 1,
            heard_ns: NOW - 1_000_000_000,
            feeds: vec![FeedSnapshot {
                name: "itch".to_owned(),
                state: "live".to_owned(),
                ..FeedSnapshot::default()
            }],
            journal: Some(Journal { state: "keeping".to_owned(), missing: 7, ..Journal::default() }),
            kdb: Some(Outlet { heard_ns: NOW - 1_000_000_000, ..Outlet::default() }),
            zeromq: Some(Outlet { heard_ns: NOW - 1_000_000_000, ..Outlet::default() }),
            hub: Some(Hub {
                heard_ns: NOW - 1_000_000_000,
                services: vec![Service { name: "TAPELINE".to_owned(), up: true, ..Service::default() }],
                ..Hub::default()
            }),
            ..Snapshot::default()
        }
    }

    #[test]
    fn each_thing_that_fails_fails_the_whole() {
        assert!(of(&well(), Nanos(NOW)).0);
        type Spoil = fn(&mut Snapshot);
        let spoilt: [(&str, Spoil); 14] = [
            ("ring", |plant| plant.ring_removed = true),
            ("feed itch", |plant| plant.feeds[0].state = "stale".to_owned()),
            ("feed itch", |plant| plant.feeds[0].state = "initial".to_owned()),
            ("plant", |plant| plant.heard_ns -= LATE_NS),
            ("counters", |plant| plant.written_ns -= LATE_NS),
            ("hub", |plant| plant.hub.as_mut().unwrap().heard_ns -= LATE_NS),
            ("hub", |plant| plant.hub.as_mut().unwrap().ended = true),
            ("journal", |plant| plant.journal.as_mut().unwrap().state = "without".to_owned()),
            ("journal", |plant| plant.journal.as_mut().unwrap().state = "stopped".to_owned()),
            ("kdb", |plant| plant.kdb.as_mut().unwrap().ended = true),
            ("kdb", |plant| plant.kdb.as_mut().unwrap().heard_ns -= LATE_NS),
            ("zeromq", |plant| plant.zeromq.as_mut().unwrap().ended = true),
            ("zeromq", |plant| plant.zeromq.as_mut().unwrap().heard_ns -= LATE_NS),
            ("service TAPELINE", |plant| plant.hub.as_mut().unwrap().services[0].up = false),
        ];
        for (check, spoil) in spoilt {
            let mut plant = well();
            spoil(&mut plant);
            let (is_well, said) = of(&plant, Nanos(NOW));
            assert!(!is_well, "{check}");
            let failing: Vec<_> =
                said["checks"].as_array().unwrap().iter().filter(|one| one["ok"] == false).collect();
            assert_eq!((failing.len(), &failing[0]["check"]), (1, &json!(check)), "{said}");
        }
    }

    #[test]
    fn a_thread_that_hangs_is_named_and_a_silent_feed_is_not_a_thread() {
        assert_eq!(failed_thread(&well(), Nanos(NOW)), None);
        let mut plant = well();
        plant.feeds[0].state = "stale".to_owned();
        plant.ring_removed = true;
        assert_eq!(failed_thread(&plant, Nanos(NOW)), None, "a restart would not mend these");
        plant.hub.as_mut().unwrap().heard_ns = NOW - LATE_NS;
        assert_eq!(failed_thread(&plant, Nanos(NOW)).unwrap(), "hub: last report 5000 ms ago");
        assert_eq!(failed_thread(&Snapshot::default(), Nanos(NOW)).unwrap(), "counters: not begun");
    }

    #[test]
    fn who_holds_up_the_plant_is_named() {
        let reader = |name: &str, lag_bytes| ReaderSnapshot {
            name: name.to_owned(),
            alive: true,
            lag_bytes,
            ..ReaderSnapshot::default()
        };
        let mut plant = well();
        plant.readers = vec![
            reader("hub", 10_000),
            reader("kdb", 64_000),
            ReaderSnapshot { evicted: true, ..reader("old", 65_536) },
        ];
        plant.backpressure.ring_bytes = 65_536;
        assert!(of(&plant, Nanos(NOW)).0, "a full ring that moves is well");
        plant.heard_ns -= LATE_NS;
        let said = of(&plant, Nanos(NOW)).1.to_string();
        assert!(said.contains("full: kdb holds it"), "{said}");
    }

    #[test]
    fn a_feed_whose_day_is_over_may_be_silent() {
        let mut plant = well();
        plant.feeds[0] = FeedSnapshot { state: "stale".to_owned(), ended: true, ..plant.feeds[0].clone() };
        assert!(of(&plant, Nanos(NOW)).0);
    }
}
