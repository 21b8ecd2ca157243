//! Consumers and interactive providers.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::column::{Column, Outcome, Scenario};
use crate::program::{Place, Program, free_port};
use crate::way::{WAYS, Way};

/// The scenarios of every consumer, in order; the last kills the provider.
const SCENARIOS: [Scenario; 13] = [
    ("login", "login and directory"),
    ("dictionary", "dictionary downloaded"),
    ("items", "items requested, refreshed, updated, closed; one unknown"),
    ("view", "view"),
    ("snapshot", "snapshot"),
    ("post", "posts on and off stream, ack and nak"),
    ("generic", "generic messages both ways"),
    ("book", "MarketByOrder"),
    ("big", "refresh of a megabyte"),
    ("batch", "batch of up to 500 in one message"),
    ("reissue", "reissue"),
    ("pause", "pause and resume"),
    ("reconnect", "provider killed and back"),
];
/// The scenarios that EMA cannot send; ETA does.
const OF_ETA: [&str; 3] = ["batch", "reissue", "pause"];

/// Over all items: a round of all open items takes a second at most.
const UPDATE_RATE: &str = "10000";

/// The library against itself.
pub(crate) fn control() -> Column {
    Column {
        title: "EMA and ETA consumers, EMA and ETA providers",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: lost_by_ema,
        session: |place, way| {
            let mut seen = Vec::new();
            let port = free_port();
            let ema = || server(place, "EmaProvider", way, port);
            match ema() {
                Ok(provider) => {
                    eta_consumer(place, way, port, &["reissue", "pause"], &mut seen);
                    let provider = Killable { running: provider, again: &ema };
                    ema_consumer(place, way, port, provider, lost_by_ema, &mut seen);
                }
                Err(why) => seen.push(("login", Outcome::Failed(why))),
            }
            // EMA hands a batch to its application as one request and has no way to open the items of it.
            let port = free_port();
            match server(place, "EtaProvider", way, port) {
                Ok(_provider) => eta_consumer(place, way, port, &["batch"], &mut seen),
                Err(why) => seen.push(("batch", Outcome::Failed(why))),
            }
            seen
        },
        cells: BTreeMap::new(),
    }
}

/// LSEG's consumers with `tapeline omm serve`.
pub(crate) fn tapeline_provider() -> Column {
    Column {
        title: "EMA and ETA consumers, Tapeline provider",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| {
            let mut seen = Vec::new();
            let port = free_port();
            let tapeline = || {
                let mut command = place.tapeline_server("serve", way, port);
                command.args(["--update-rate", UPDATE_RATE]);
                let mut provider = place.start(command, "provider.log");
                provider.wait_for("listening").map(|_| provider)
            };
            match tapeline() {
                Ok(provider) => {
                    eta_consumer(place, way, port, &OF_ETA, &mut seen);
                    let provider = Killable { running: provider, again: &tapeline };
                    ema_consumer(place, way, port, provider, |_, _| None, &mut seen);
                }
                Err(why) => seen.push(("login", Outcome::Failed(why))),
            }
            seen
        },
        cells: BTreeMap::new(),
    }
}

/// Failures of EMA's clients with EMA's and ETA's servers. With Tapeline's servers they reconnect.
pub(crate) fn lost_by_ema(scenario: &'static str, way: Way) -> Option<&'static str> {
    (scenario == "reconnect" && way.transport.ends_with("ws-rwf")).then_some(
        "EMA's clients come back to EMA's and ETA's servers over this transport, but not always: now and then they \
         connect, and no login arrives",
    )
}

pub(crate) fn server(place: &Place, class: &str, way: Way, port: u16) -> Result<Program, String> {
    let mut server = place.start(place.java_server(class, way, port), &format!("{class}.log"));
    server.wait_for("listening")?;
    Ok(server)
}

fn eta_consumer(place: &Place, way: Way, port: u16, steps: &[&str], seen: &mut Vec<(&'static str, Outcome)>) {
    let mut command = place.java_client("EtaConsumer", way, port);
    command.args(["--dictionary", &place.dictionary()]).args(steps);
    let mut consumer = place.start(command, "EtaConsumer.log");
    while let Some(event) = consumer.event() {
        note(&SCENARIOS, seen, &event);
    }
}

/// A provider that can be restarted.
struct Killable<'a> {
    running: Program,
    again: &'a dyn Fn() -> Result<Program, String>,
}

/// Runs all of EMA's scenarios, except the explained ones.
fn ema_consumer(
    place: &Place,
    way: Way,
    port: u16,
    provider: Killable<'_>,
    explained: fn(&'static str, Way) -> Option<&'static str>,
    seen: &mut Vec<(&'static str, Outcome)>,
) {
    let mut command = place.java_client("EmaConsumer", way, port);
    let steps = SCENARIOS.iter().map(|(name, _)| *name).filter(|name| !OF_ETA.contains(name));
    command.args(steps.filter(|name| explained(name, way).is_none()));
    let consumer = place.start(command, "EmaConsumer.log");
    follow(&SCENARIOS, consumer, provider.running, provider.again, seen);
}

/// Records the steps that a client reports; when it is `ready`, kills the server and restarts it with `again`.
/// Returns the last server.
pub(crate) fn follow(
    scenarios: &[Scenario],
    mut client: Program,
    mut server: Program,
    again: &dyn Fn() -> Result<Program, String>,
    seen: &mut Vec<(&'static str, Outcome)>,
) -> Program {
    while let Some(event) = client.event() {
        if event["event"] == "ready" {
            server.kill();
            match again() {
                Ok(running) => server = running,
                Err(why) => {
                    seen.push(("reconnect", Outcome::Failed(why)));
                    break;
                }
            }
        }
        note(scenarios, seen, &event);
        if event["event"] == "failed" {
            seen.push((scenarios[0].0, Outcome::Failed(event["text"].to_string())));
        }
    }
    server
}

/// Records a client's step as a scenario's outcome.
pub(crate) fn note(scenarios: &[Scenario], seen: &mut Vec<(&'static str, Outcome)>, event: &Value) {
    if let Some((name, _)) = scenarios.iter().find(|(name, _)| event["step"] == *name) {
        seen.push((name, Outcome::of(event["passed"] == true, event)));
    }
}
