//! LSEG's providers at one side of a plant, its consumers at the other.

use std::collections::BTreeMap;

use crate::column::{Column, Scenario};
use crate::consuming::{follow, note, server};
use crate::hub::{Seen, configure, start, told};
use crate::program::{Place, Program, free_port};
use crate::way::Way;

/// How the consumers come. The providers come over TCP, or are reached by it: they have met Tapeline every other way.
const WAYS: [Way; 3] = [Way::new("tcp", "none"), Way::new("ws-json", "none"), Way::new("tls", "none")];
const BEHIND: Way = Way::new("tcp", "none");

const INTERACTIVE: [Scenario; 14] = [
    ("login", "login and directory"),
    ("dictionary", "dictionary downloaded"),
    ("batch", "batch in one message"),
    ("reissue", "reissue"),
    ("pause", "pause and resume"),
    ("items", "items requested of the provider, refreshed, updated, closed; one unknown"),
    ("view", "view"),
    ("snapshot", "snapshot"),
    ("post", "posts on and off stream forwarded, ack and nak"),
    ("generic", "generic messages both ways"),
    ("book", "MarketByOrder"),
    ("big", "refresh of a megabyte"),
    ("reconnect", "plant killed and back"),
    ("provider", "provider killed and back"),
];
/// Those that ETA's consumer goes through; the provider has its own.
const OF_ETA: [&str; 3] = ["batch", "reissue", "pause"];
const ITEMS: u32 = 100;

/// An interactive provider behind the hub.
pub(crate) fn interactive() -> Column {
    Column {
        title: "EMA and ETA consumers, Tapeline hub, EMA interactive provider",
        scenarios: &INTERACTIVE,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| told(&INTERACTIVE, asked(place, way)),
        cells: BTreeMap::new(),
    }
}

fn asked(place: &Place, way: Way) -> Result<Seen, String> {
    let (port, behind) = (free_port(), free_port());
    let provide = || server(place, "EmaProvider", BEHIND, behind);
    let provider = provide()?;
    let config = configure(
        place,
        way,
        port,
        &format!(
            "[[service]]\nname = \"DIRECT_FEED\"\nid = 1\nproviders = [\"ema\"]\nposts = \"forward\"\n\
             [[provider]]\nname = \"ema\"\nservers = [\"127.0.0.1:{behind}\"]\n"
        ),
    );
    let again = || start(place, &config, port);
    let plant = again()?;
    let mut seen = Seen::new();
    eta_consumer(place, way, port, &mut seen);
    let steps = INTERACTIVE
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !OF_ETA.contains(name) && *name != "provider");
    let consumer = ema_consumer(place, way, port, steps);
    // The plant that is there at the end serves the next one.
    let plant = follow(&INTERACTIVE, consumer, plant, &again, &mut seen);
    let mut other = Seen::new();
    let consumer = ema_consumer(place, way, port, ["reconnect"].into_iter());
    follow(&INTERACTIVE, consumer, provider, &provide, &mut other);
    drop(plant);
    seen.extend(other.into_iter().map(|(_, outcome)| ("provider", outcome)));
    Ok(seen)
}

fn eta_consumer(place: &Place, way: Way, port: u16, seen: &mut Seen) {
    let mut command = place.java_client("EtaConsumer", way, port);
    command.args(["--items", &ITEMS.to_string(), "--dictionary", &place.dictionary()]).args(OF_ETA);
    let mut consumer = place.start(command, "EtaConsumer.log");
    while let Some(event) = consumer.event() {
        note(&INTERACTIVE, seen, &event);
    }
}

fn ema_consumer(place: &Place, way: Way, port: u16, steps: impl Iterator<Item = &'static str>) -> Program {
    let mut command = place.java_client("EmaConsumer", way, port);
    command.args(["--items", &ITEMS.to_string()]).args(steps);
    place.start(command, "EmaConsumer.log")
}
