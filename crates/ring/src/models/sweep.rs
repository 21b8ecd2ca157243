//! Every ordering of the crate, weakened one at a time.
//!
//! Takes minutes, so it runs where `LOOM_SWEEP` is set (`make loom`).

use std::collections::BTreeMap;

use super::atomics::{self, Fault, Site};
use super::checks::MODELS;
use super::explore::{Model, line};

/// Orderings whose weakening no model detects, and why.
const NOT_MISSED: [(&str, &str, &str); 15] = [
    ("gate.rs", "table.members.slots.load(", "F1 acquires too, before the limit rises"),
    ("gate.rs", "progress.position.load(", "F1 acquires too, before the limit rises"),
    ("publisher.rs", "status.state.store(ENDED", "the cursor's fence is behind the last frame"),
    ("publisher.rs", "status.state.store(ENDED … fence(", "sleepers: not modelled"),
    ("publisher/opening.rs", "gate.position.load(", "the publisher's lock orders"),
    ("publisher/opening.rs", "cursor.position.load(", "the publisher's lock orders"),
    ("publisher/opening.rs", "status.state.store(LIVE", "for who looks from outside"),
    ("publisher/room.rs", "table.members.slots.load(", "the slot's lock orders"),
    ("publisher/room.rs", "table.members.slots.fetch_and(", "the slot's lock orders, and F1"),
    ("subscriber.rs", "fn has_frame( … .load(", "only says whether to look; the look acquires"),
    ("subscriber/joining.rs", "members.slots.fetch_or(", "F2 is behind it"),
    ("subscriber/joining.rs", "table.members.slots.load(", "the slot's lock orders"),
    ("subscriber/joining.rs", "table.members.slots.fetch_and(", "the slot's lock orders"),
    ("waiting.rs", "fn wake_all( … swap(", "sleepers: not modelled"),
    ("waiting.rs", "fn wake_all( … fetch_add(", "sleepers: not modelled"),
];

#[test]
fn an_ordering_that_is_weakened_is_found() {
    if std::env::var_os("LOOM_SWEEP").is_none() {
        println!("skipped: LOOM_SWEEP is not set");
        return;
    }
    let mut on_the_way: BTreeMap<(Site, &str), Vec<&Model>> = BTreeMap::new();
    for model in MODELS {
        let (_, outcome) = model.explore(&[]);
        assert_eq!(outcome, Ok(()), "{}", model.name);
        for site in atomics::ordered_sites() {
            on_the_way.entry(site).or_default().push(model);
        }
    }
    let mut not_missed = Vec::new();
    for ((site, what), models) in &on_the_way {
        let found = models.iter().find(|model| model.explore(&[Fault::Weak(*site)]).1.is_err());
        let by = found.map_or("nothing", |model| model.name);
        println!("{}:{} {what}: found by {by}", site.file, site.line);
        if found.is_none() {
            not_missed.push(*site);
        }
    }
    let mut expected: Vec<_> = NOT_MISSED.iter().map(|(file, text, _)| line(file, text)).collect();
    expected.sort();
    assert_eq!(not_missed, expected, "orderings that no model misses");
}
