//! TransportPerf and `tapeline omm transport`, each as the other's client and server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

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

/// Options of both ends, except the address.
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
    command.args(["--end-with-clients", "--run-time", "60"]);
    let folder = files(place, port, &mut command);
    let tool = Tool::ending(place, "TransportPerf", name, way).to(port);
    let tool = loads(tool, name, way, &mut command).with(&["-appType", "client", "-runTime", "3"]);
    let mut server = place.start(command, "transport.log");
    server.wait_for_line("listening at ")?;
    let told = tool.run();
    server.ended_well();
    let record = record(&folder)?;
    let (sent, received) = (told.count("Msgs Sent"), told.count("Msgs Received"));
    // The tool ends while it sends and receives.
    let passed = record["counts"]["received"].as_u64() > Some(sent / 2)
        && sent > 1000
        && received > 1000
        && clean(&record)
        && !told.says("out-of-order");
    Ok(Outcome::of(passed, format!("{} / {}", told.summary(), record["counts"])))
}

fn as_server(place: &Place, way: Way, name: &'static str) -> Result<Outcome, String> {
    let port = free_port();
    let mut command = place.tapeline_client("transport client", way, port);
    command.args(["--run-time", "4s"]);
    let folder = files(place, port, &mut command);
    let tool = Tool::ending(place, "TransportPerf", name, way).at(port);
    let tool = loads(tool, name, way, &mut command).with(&["-appType", "server", "-runTime", "7"]);
    let mut client = place.start(command, "transport.log");
    let told = tool.run();
    client.ended_well();
    let record = record(&folder)?;
    let (sent, received) = (record["counts"]["sent"].as_u64().unwrap_or(0), told.count("Msgs Received"));
    let hops = record["hops"].as_array().is_some_and(|hops| hops.iter().any(|hop| hop["name"] == "service"));
    let passed = clean(&record) && hops && received > sent / 2 && sent > 1000 && !told.says("out-of-order");
    Ok(Outcome::of(passed, format!("{} / {}", told.summary(), record["counts"])))
}

/// Sets the folder for the files of Tapeline's end, and returns it: it contains the record.
fn files(place: &Place, port: u16, ours: &mut Command) -> PathBuf {
    let folder = place.logs().join(format!("transport-{port}"));
    ours.arg("--run-folder").arg(&folder);
    ours.arg("--summary-file").arg(place.logs().join("transport-summary.out"));
    ours.arg("--stats-file").arg(place.logs().join("transport-stats"));
    folder
}

fn record(folder: &Path) -> Result<Value, String> {
    let text = std::fs::read(folder.join("run.json")).map_err(|error| format!("no run.json: {error}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("run.json: {error}"))
}

fn clean(record: &Value) -> bool {
    let counts = &record["counts"];
    counts["received"].as_u64() > Some(1000)
        && ["lost", "out_of_order", "malformed"].iter().all(|count| counts[*count] == 0)
}
