//! NIProvPerf and EmaCppNIProvPerf with `tapeline omm accept`.

use std::collections::BTreeMap;

use crate::column::{Column, Outcome, Scenario};
use crate::program::{Place, free_port};
use crate::tools::Tool;
use crate::way::{WAYS, Way};

const SCENARIOS: [Scenario; 4] = [
    ("ni-prov", "`NIProvPerf`: images, updates"),
    ("ni-prov-packed", "`NIProvPerf -maxPackCount 10`: packed frames"),
    ("ni-prov-reactor", "`NIProvPerf -reactor`"),
    ("ema-ni-prov", "`EmaCppNIProvPerf`: images, updates"),
];

pub(crate) fn column() -> Column {
    Column {
        title: "NIProvPerf and EmaCppNIProvPerf, Tapeline acceptor",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained,
        session: |place, way| {
            SCENARIOS
                .into_iter()
                .filter(|(name, _)| explained(name, way).is_none())
                .map(|(name, _)| (name, one(place, way, name).unwrap_or_else(Outcome::Failed)))
                .collect()
        },
        cells: BTreeMap::new(),
    }
}

fn explained(scenario: &'static str, way: Way) -> Option<&'static str> {
    let is_eta = !scenario.starts_with("ema");
    if is_eta && (way.transport, way.compression) != ("tcp", "none") {
        return Some("`NIProvPerf` speaks TCP alone, and compresses nothing");
    }
    (!is_eta && way.is_json()).then_some(
        "EMA's non-interactive provider opens the WebSocket, sends no login and closes it, again and again",
    )
}

fn one(place: &Place, way: Way, name: &'static str) -> Result<Outcome, String> {
    let port = free_port();
    let mut command = place.tapeline_server("accept", way, port);
    command.arg("--quiet");
    let mut acceptor = place.start(command, "acceptor.log");
    acceptor.wait_for("listening")?;

    let tool = if name.starts_with("ema") {
        // The service number is EMA's default.
        Tool::ending(place, "EmaCppNIProvPerf", name, way).with_ema(port).with(&["-serviceId", "0"])
    } else {
        let port = port.to_string();
        Tool::ending(place, "NIProvPerf", name, way).with(&["-h", "localhost", "-p", &port])
    };
    let more: &[&str] = match name {
        "ni-prov-packed" => &["-maxPackCount", "10"],
        "ni-prov-reactor" => &["-reactor"],
        _ => &[],
    };
    let items = place.items.to_string();
    let load = ["-updateRate", "1000", "-tickRate", "100", "-latencyUpdateRate", "10"];
    let told = tool
        .with(&["-serviceName", "NI_PUB", "-itemCount", &items, "-runTime", "4"])
        .with(&load)
        .with(more)
        .run();
    let gone = acceptor.wait_for("gone")?;
    let (images, updates) = (told.count("Images sent"), told.count("Updates sent"));
    let taken = gone["updates"].as_u64().unwrap_or(0);
    // Messages that it had not written at its end are lost.
    let passed = images == u64::from(place.items)
        && gone["refreshes"] == images
        && updates > 1000
        && (updates - 100..=updates).contains(&taken)
        && gone["malformed"] == 0;
    Ok(Outcome::of(passed, format!("{} / {gone}", told.summary())))
}
