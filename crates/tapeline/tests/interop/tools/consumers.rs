//! ConsPerf and EmaCppConsPerf with `tapeline omm serve`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Told, Tool};
use crate::column::{Column, Outcome, Scenario};
use crate::program::{Place, free_port};
use crate::way::{WAYS, Way};

const SCENARIOS: [Scenario; 8] = [
    ("cons", "`ConsPerf`: images, updates"),
    ("cons-reactor", "`ConsPerf -reactor`"),
    ("cons-watchlist", "`ConsPerf -watchlist`"),
    ("cons-snapshot", "`ConsPerf -snapshot`"),
    ("cons-posts", "`ConsPerf`: posts, and back as updates"),
    ("cons-generic", "`ConsPerf`: generic messages, and back"),
    ("ema-cons", "`EmaCppConsPerf`: images, updates"),
    ("ema-cons-snapshot", "`EmaCppConsPerf -snapshot`"),
];

pub(crate) fn column() -> Column {
    Column {
        title: "ConsPerf and EmaCppConsPerf, Tapeline provider",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |scenario, way| {
            (!scenario.starts_with("ema")).then(|| super::no_compression(way)).flatten()
        },
        session: |place, way| {
            SCENARIOS
                .into_iter()
                .filter(|(name, _)| name.starts_with("ema") || super::no_compression(way).is_none())
                .map(|(name, _)| {
                    let tries = if name == "ema-cons-snapshot" { 3 } else { 1 };
                    (name, super::tried(tries, || one(place, way, name).unwrap_or_else(Outcome::Failed)))
                })
                .collect()
        },
        cells: BTreeMap::new(),
    }
}

fn one(place: &Place, way: Way, name: &'static str) -> Result<Outcome, String> {
    let port = free_port();
    let mut command = place.tapeline_server("serve", way, port);
    command.args(["--update-rate", "1000"]);
    if way.is_json() {
        // JSON has field names: the dictionary must know the posted fields.
        command.args(place.tool_dictionary());
    }
    let mut provider = place.start(command, "provider.log");
    provider.wait_for("listening")?;

    let items = place.items.to_string();
    let told = if name.starts_with("ema") {
        // The steady-state time counts from the start, images included.
        let tool = Tool::ending(place, "EmaCppConsPerf", name, way).with_ema(port);
        tool.with(&["-itemCount", &items, "-requestRate", "100000", "-steadyStateTime", "5"])
    } else {
        let tool = Tool::ending(place, "ConsPerf", name, way).to(port);
        tool.with(&["-serviceName", "DIRECT_FEED", "-itemCount", &items, "-steadyStateTime", "3"])
    };
    let more: &[&str] = match name {
        "cons-reactor" => &["-reactor"],
        "cons-watchlist" => &["-watchlist"],
        "cons-snapshot" | "ema-cons-snapshot" => &["-snapshot"],
        "cons-posts" => &["-postingRate", "1000", "-postingLatencyRate", "100"],
        "cons-generic" => &["-genericMsgRate", "1000", "-genericMsgLatencyRate", "100"],
        _ => &[],
    };
    let told = told.with(more).run();
    let gone = provider.wait_for("gone")?;
    let passed = is_well(place, name, &told, &gone);
    if !passed && name == "ema-cons-snapshot" && gone["refreshes"] == place.items {
        return Ok(Outcome::Explained(
            "`EmaCppConsPerf` overlooks answers to snapshots now and then, here in each of three runs; \
             all of them are in a recording of such a connection",
        ));
    }
    Ok(Outcome::of(passed, format!("{} / {gone}", told.summary())))
}

fn is_well(place: &Place, name: &str, told: &Told, gone: &Value) -> bool {
    let items = u64::from(place.items);
    let images = told.count("Refreshes received") == items && gone["malformed"] == 0;
    let updates = told.count("Updates received");
    let rest = match name {
        "cons-snapshot" | "ema-cons-snapshot" => updates == 0,
        // The last posts may be in flight at the end; reflected posts carried their time.
        "cons-posts" => {
            let posts = told.count("Posts sent");
            let taken = gone["posts"].as_u64().unwrap_or(0);
            posts > 1000 && taken + 100 > posts && updates > taken && told.says("Posting latency avg")
        }
        "cons-generic" => {
            let sent = told.count("GenMsg latencies sent");
            // The last messages may be in flight at the end.
            let back = told.count("GenMsg latencies received");
            sent > 100 && back + 10 > sent && told.count("GenMsgs received") > 1000
        }
        _ => updates > 1000,
    };
    images && rest
}
