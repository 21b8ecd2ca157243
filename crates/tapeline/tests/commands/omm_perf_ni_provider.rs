//! `tapeline omm ni-provider`: the messages that a hub gets.
use crate::perf_peer;

use std::collections::BTreeSet;

use perf_peer::{Heard, Hub, Tool};
use tapeline_omm::rwf::Domain;

/// A provider of this many items at this update rate, in 100 slices a second.
fn provider(hub: &Hub, items: &str, rate: &str, more: &[&str]) -> Tool {
    let server = format!("localhost:{}", hub.port);
    let usual = ["omm", "ni-provider", "--server", &server, "--item-count", items, "--no-display-stats"];
    let pace = ["--tick-rate", "100", "--update-rate", rate, "--nano-time"];
    // The rate of stamped updates must not exceed the update rate.
    let none: &[&str] = if rate == "0" { &["--latency-update-rate", "0"] } else { &[] };
    Tool::start(&[&usual[..], &pace, none, more].concat())
}

/// A slice of [`provider`], in nanoseconds.
const SLICE: u64 = 10_000_000;

fn updates(heard: &[Heard]) -> Vec<&Heard> {
    heard.iter().filter(|heard| heard.is_update()).collect()
}

/// The names of the items with images, in order.
fn images(heard: &[Heard]) -> Vec<&str> {
    heard.iter().filter(|heard| heard.is_image()).map(|heard| heard.name.as_deref().unwrap()).collect()
}

#[test]
fn images_come_first_and_then_each_slice_has_its_share() {
    let mut hub = Hub::open();
    let mut provider = provider(&hub, "3", "250", &["--latency-update-rate", "all"]);
    hub.until(|hub| updates(hub.heard(0)).len() >= 200);
    let heard = hub.heard(0);
    assert_eq!(images(heard), ["RDT1", "RDT2", "RDT3"]);
    let directory = heard.iter().position(|heard| heard.domain == Domain::SOURCE).unwrap();
    assert!(heard.iter().position(Heard::is_image).unwrap() > directory);
    // No slice of the time grid is missing; two and three updates in turn.
    let mut slices: Vec<(u64, usize)> = Vec::new();
    for update in updates(heard) {
        let due = update.due.unwrap();
        assert!(update.sent.unwrap() >= due && update.name.is_none());
        match slices.last_mut() {
            Some((of, count)) if *of == due => *count += 1,
            _ => slices.push((due, 1)),
        }
    }
    let whole = &slices[1..slices.len() - 1];
    for pair in whole.windows(2) {
        assert_eq!((pair[1].0 - pair[0].0, pair[0].1 + pair[1].1), (SLICE, 5), "{whole:?}");
    }
    // The items in turn, and their contents in turn.
    let updates = updates(heard);
    let last: Vec<_> =
        updates[updates.len() - 90..].iter().map(|update| (update.stream, update.bid)).collect();
    for window in last.windows(4) {
        assert_eq!(window[0].0, window[3].0);
        assert_eq!(window[3].1, [102, 103, 101][(window[0].1 - 101) as usize]);
    }
    // It logs out.
    assert!(provider.end().code().is_some());
    hub.until(|hub| hub.published[0].2);
    assert!(hub.heard(0).last().unwrap().is_goodbye());
}

#[test]
fn items_are_divided_among_threads() {
    let mut hub = Hub::open();
    let more = ["--threads=-1,-1", "--common-item-count", "1"];
    let _provider = provider(&hub, "5", "0", &more);
    let count = |hub: &Hub| images(hub.heard(0)).len() + images(hub.heard(1)).len();
    hub.until(|hub| count(hub) == 5);
    let of = |number: usize| images(hub.heard(number)).into_iter().collect::<BTreeSet<_>>();
    let common: Vec<_> = of(0).intersection(&of(1)).copied().collect();
    assert_eq!(common, ["RDT1"]);
    assert_eq!(of(0).union(&of(1)).count(), 4);
}

#[test]
fn the_service_is_the_one_that_is_named() {
    let mut hub = Hub::open();
    let _provider = provider(&hub, "1", "0", &["--service-name", "NI_PUB", "--service-id", "77"]);
    hub.until(|hub| !images(hub.heard(0)).is_empty());
    let directory = hub.heard(0).iter().find(|heard| heard.domain == Domain::SOURCE).unwrap();
    assert_eq!(directory.services(), [(77, "NI_PUB".to_owned())]);
}

#[test]
fn books_are_published_with_their_own_messages() {
    let mut hub = Hub::open();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("items.xml");
    std::fs::write(&path, r#"<itemList><item domain="MarketByOrder" name="BOOK"/></itemList>"#).unwrap();
    let more = ["--item-file", path.to_str().unwrap(), "--latency-update-rate", "all"];
    let _provider = provider(&hub, "1", "100", &more);
    hub.until(|hub| updates(hub.heard(0)).len() >= 5);
    assert_eq!(images(hub.heard(0)), ["BOOK"]);
    assert!(
        updates(hub.heard(0))
            .iter()
            .all(|heard| heard.domain == Domain::MARKET_BY_ORDER && heard.sent.is_some())
    );
}

#[test]
fn what_is_encoded_once_is_what_is_encoded_each_time() {
    let bytes = |more: &[&str]| {
        let mut hub = Hub::open();
        let _provider = provider(&hub, "1", "1000", &[&["--latency-update-rate", "0"], more].concat());
        hub.until(|hub| updates(hub.heard(0)).len() >= 6);
        updates(hub.heard(0)).iter().take(6).map(|heard| heard.bytes.clone()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(&[]), bytes(&["--pre-enc"]));
}

#[test]
fn a_lost_connection_ends_the_test() {
    let mut hub = Hub::open();
    let provider = provider(&hub, "2", "100", &[]);
    hub.until(|hub| !updates(hub.heard(0)).is_empty());
    hub.hang_up();
    // It neither reconnects nor waits for its run time.
    assert!(!provider.ended().success());
    assert_eq!(hub.published.len(), 1);
}

#[test]
fn it_ends_when_its_time_is_over() {
    let mut hub = Hub::open();
    let provider = provider(&hub, "1", "0", &["--run-time", "1"]);
    hub.until(|hub| hub.published.first().is_some_and(|(.., is_over)| *is_over));
    assert!(hub.heard(0).last().unwrap().is_goodbye());
    assert!(provider.ended().code().is_some());
}
