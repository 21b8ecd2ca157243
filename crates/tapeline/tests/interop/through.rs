//! LSEG's providers on one side of a plant, its consumers on the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::column::{Column, Scenario};
use crate::consuming::{follow, note, server};
use crate::hub::{Seen, configure, start, told};
use crate::program::{Place, Program, free_port};
use crate::way::Way;

/// Transports of both sides, one of each kind.
const WAYS: [Way; 3] = [Way::new("tcp", "none"), Way::new("ws-json", "none"), Way::new("tls", "none")];

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
const PUBLISHED: [Scenario; 12] = [
    ("login", "login and directory"),
    ("dictionary", "dictionary downloaded"),
    ("batch", "batch in one message"),
    ("reissue", "reissue"),
    ("pause", "pause and resume"),
    ("items", "items that were published, refreshed, updated, closed; one unknown"),
    ("view", "view"),
    ("snapshot", "snapshot"),
    ("book", "MarketByOrder"),
    ("big", "refresh of a megabyte"),
    ("reconnect", "plant killed and back, all published again"),
    ("provider", "provider killed and back, all published again"),
];
/// The scenarios of ETA's consumer; EMA's has the others.
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

/// A provider that publishes to the plant.
pub(crate) fn published() -> Column {
    Column {
        title: "EMA and ETA consumers, Tapeline hub, EMA non-interactive provider (over `rssl.rwf` where they speak JSON)",
        scenarios: &PUBLISHED,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| told(&PUBLISHED, taken(place, way)),
        cells: BTreeMap::new(),
    }
}

fn asked(place: &Place, way: Way) -> Result<Seen, String> {
    let (port, behind) = (free_port(), free_port());
    let provide = || server(place, "EmaProvider", way, behind);
    let provider = provide()?;
    let mut keys = format!(
        "[[service]]\nname = \"DIRECT_FEED\"\nid = 1\nproviders = [\"ema\"]\nposts = \"forward\"\n\
         [[provider]]\nname = \"ema\"\nservers = [\"localhost:{behind}\"]\n"
    );
    if way.is_encrypted() {
        let _ = writeln!(keys, "tls = true\nca = \"{}\"", place.certificate("ca.pem"));
    }
    if way.is_json() {
        keys.push_str("websocket = \"json\"\n");
    }
    let config = configure(place, way, port, &keys);
    let again = || start(place, &config, port);
    let clients = Clients { place, way, port, scenarios: &INTERACTIVE, names: None };
    through(&clients, again()?, (provider, &provide), &again)
}

fn taken(place: &Place, way: Way) -> Result<Seen, String> {
    let (port, behind) = (free_port(), free_port());
    let configured = |unknown: &str| {
        let mut keys = format!(
            "[[service]]\nname = \"DIRECT_FEED\"\nid = 1\nunknown = \"{unknown}\"\n[publishers]\nport = {behind}\n"
        );
        if way.is_encrypted() {
            let (cert, key) = (place.certificate("server.pem"), place.certificate("server.key"));
            let _ = writeln!(keys, "cert = \"{cert}\"\nkey = \"{key}\"");
        }
        configure(place, way, port, &keys)
    };
    // The first plant closes unknown items, since the provider has published. The restarted plant waits for images.
    let plant = start(place, &configured("closed"), port)?;
    let again = || start(place, &configured("wait"), port);
    // EMA's non-interactive provider does not support JSON.
    let carried = if way.is_json() { Way::new("ws-rwf", "none") } else { way };
    let publish = || {
        let mut command = place.java_client("EmaNiProvider", carried, behind);
        command.args(["--dictionary", &place.dictionary(), "--items", &ITEMS.to_string(), "--lasting", "1"]);
        let mut provider = place.start(command, "EmaNiProvider.log");
        provider.wait_for("publishing").map(|_| provider)
    };
    let provider = publish()?;
    let names = place.item_file(port);
    let clients = Clients { place, way, port, scenarios: &PUBLISHED, names: Some(&names) };
    through(&clients, plant, (provider, &publish), &again)
}

/// Clients of a plant, and their scenarios.
struct Clients<'a> {
    place: &'a Place,
    way: Way,
    port: u16,
    scenarios: &'static [Scenario],
    /// A file with the names of the items, if only certain items exist.
    names: Option<&'a str>,
}

/// Restarts a killed program.
type Again<'a> = &'a dyn Fn() -> Result<Program, String>;

/// Runs all scenarios of the consumers, then kills and restarts the provider.
fn through(
    clients: &Clients<'_>,
    plant: Program,
    (provider, provide): (Program, Again<'_>),
    again: Again<'_>,
) -> Result<Seen, String> {
    let scenarios = clients.scenarios;
    let mut seen = Seen::new();
    clients.eta_consumer(&mut seen);
    let steps = scenarios.iter().map(|(name, _)| *name);
    let steps = steps.filter(|name| !OF_ETA.contains(name) && *name != "provider");
    let consumer = clients.ema_consumer(steps);
    // The last plant serves the next consumer.
    let plant = follow(scenarios, consumer, plant, again, &mut seen);
    let mut other = Seen::new();
    let consumer = clients.ema_consumer(["reconnect"].into_iter());
    follow(scenarios, consumer, provider, provide, &mut other);
    drop(plant);
    seen.extend(other.into_iter().map(|(_, outcome)| ("provider", outcome)));
    Ok(seen)
}

impl Clients<'_> {
    fn eta_consumer(&self, seen: &mut Seen) {
        let mut command = self.place.java_client("EtaConsumer", self.way, self.port);
        command.args(["--items", &ITEMS.to_string(), "--dictionary", &self.place.dictionary()]);
        command.args(self.names.into_iter().flat_map(|names| ["--names", names])).args(OF_ETA);
        let mut consumer = self.place.start(command, "EtaConsumer.log");
        while let Some(event) = consumer.event() {
            note(self.scenarios, seen, &event);
        }
    }

    fn ema_consumer(&self, steps: impl Iterator<Item = &'static str>) -> Program {
        let mut command = self.place.java_client("EmaConsumer", self.way, self.port);
        command.args(["--items", &ITEMS.to_string()]);
        command.args(self.names.into_iter().flat_map(|names| ["--names", names])).args(steps);
        self.place.start(command, "EmaConsumer.log")
    }
}
