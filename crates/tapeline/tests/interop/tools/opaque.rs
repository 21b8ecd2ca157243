//! TransportPerf and `tapeline omm transport`, each as the other's client and server.

use std::collections::BTreeMap;
use std::process::Command;

use crate::column::{Column, Outcome, Scenario};
use crate::program::{Place, free_port};
use crate::tools::Tool;
use crate::way::{WAYS, Way};

const SCENARIOS: [Scenario; 6] = [
    ("transport-client", "`TransportPerf` as client"),
    ("transport-client-packed", "`TransportPerf -pack 10` as client, packed frames"),
    ("transport-client-large", "`TransportPerf` as client, messages of 20,000 bytes"),
    ("transport-server", "`TransportPerf` as server"),
    ("transport-server-packed", "`TransportPerf -pack 10` as server, packed frames"),
    ("transport-server-large", "`TransportPerf` as server, messages of 20,000 bytes"),
];
pub(crate) fn column() -> Column {
    Column {
        title: "TransportPerf, Tapeline transport",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| {
            let one = |name| {
                let is_client = str::contains(name, "client");
                let run = if is_client { as_client } else { as_server };
                run(place, way, name).unwrap_or_else(Outcome::Failed)
            };
            SCENARIOS.into_iter().map(|(name, _)| (name, one(name))).collect()
        },
        cells: BTreeMap::new(),
    }
}

/// What both ends are told beside where they are.
fn loads<'a>(mut tool: Tool<'a>, name: &str, way: Way, ours: &mut Command) -> Tool<'a> {
    let (rate, size) = if name.ends_with("large") { ("1000", "20000") } else { ("10000", "76") };
    ours.args(["--msg-rate", rate, "--msg-size", size, "--latency-msg-rate", "1000"]);
    tool = tool.with(&["-msgRate", rate, "-msgSize", size, "-latencyMsgRate", "100"]);
    if name.ends_with("packed") {
        ours.args(["--pack", "10"]);
        tool = tool.with(&["-pack", "10"]);
    }
    if way.compression != "none" {
        tool = tool.with(&["-compressionType", way.compression]);
    }
    tool
}

fn as_client(place: &Place, way: Way, name: &'static str) -> Result<Outcome, String> {
    let port = free_port();
    let mut command = place.tapeline_server("transport server", way, port);
    let tool = Tool::ending(place, "TransportPerf", name, way).to(port);
    let tool = loads(tool, name, way, &mut command).with(&["-appType", "client", "-runTime", "3"]);
    let mut server = place.start(command, "transport.log");
    server.wait_for("listening")?;
    let told = tool.run();
    let gone = server.wait_for("disconnected")?;
    let (sent, received) = (told.count("Msgs Sent"), told.count("Msgs Received"));
    // It ends in the middle of what it sends and receives.
    let passed = gone["received"].as_u64() > Some(sent / 2)
        && sent > 1000
        && received > 1000
        && clean(&gone)
        && !told.says("out-of-order");
    Ok(Outcome::of(passed, format!("{} / {gone}", told.summary())))
}

fn as_server(place: &Place, way: Way, name: &'static str) -> Result<Outcome, String> {
    let port = free_port();
    let mut command = place.tapeline_client("transport client", way, port);
    command.args(["--run-time", "3s"]);
    let tool = Tool::ending(place, "TransportPerf", name, way).at(port);
    let tool = loads(tool, name, way, &mut command).with(&["-appType", "server", "-runTime", "7"]);
    let mut client = place.start(command, "transport.log");
    let told = tool.run();
    let gone = client.wait_for("disconnected")?;
    let end = client.wait_for("end")?;
    let (sent, received) = (gone["sent"].as_u64().unwrap_or(0), told.count("Msgs Received"));
    let passed = client.ended_well()
        && clean(&gone)
        && end["latency"]["samples"].as_u64() > Some(0)
        && received > sent / 2
        && sent > 1000
        && !told.says("out-of-order");
    Ok(Outcome::of(passed, format!("{} / {end}", told.summary())))
}

fn clean(gone: &serde_json::Value) -> bool {
    gone["received"].as_u64() > Some(1000)
        && ["lost", "out_of_order", "malformed"].iter().all(|count| gone[*count] == 0)
}
