//! LSEG's providers in C and C++ at one side of a plant, ConsPerf and EmaCppConsPerf at the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Tool, tried};
use crate::column::{Column, Outcome, Scenario};
use crate::hub::{configure, start};
use crate::program::{Place, free_port};
use crate::way::Way;

/// How the consumers come. The providers come over TCP, which all of them speak.
const WAYS: [Way; 3] = [Way::new("tcp", "none"), Way::new("ws-json", "none"), Way::new("tls", "none")];
const BEHIND: Way = Way::new("tcp", "none");

/// By provider and consumer.
const SCENARIOS: [Scenario; 8] = [
    ("through-prov-cons", "`ProvPerf` to `ConsPerf`"),
    ("through-prov-ema_cons", "`ProvPerf` to `EmaCppConsPerf`"),
    ("through-ema_prov-cons", "`EmaCppIProvPerf` to `ConsPerf`"),
    ("through-ema_prov-ema_cons", "`EmaCppIProvPerf` to `EmaCppConsPerf`"),
    ("through-ni_prov-cons", "`NIProvPerf` to `ConsPerf`"),
    ("through-ni_prov-ema_cons", "`NIProvPerf` to `EmaCppConsPerf`"),
    ("through-ema_ni_prov-cons", "`EmaCppNIProvPerf` to `ConsPerf`"),
    ("through-ema_ni_prov-ema_cons", "`EmaCppNIProvPerf` to `EmaCppConsPerf`"),
];
/// Of all items together; for longer than a consumer takes.
const LOAD: [&str; 8] =
    ["-updateRate", "1000", "-tickRate", "100", "-latencyUpdateRate", "100", "-runTime", "60"];

/// The first item that all tools have (350k.xml).
const FIRST: &str = "RDT1";

pub(crate) fn column() -> Column {
    Column {
        title: "ConsPerf and EmaCppConsPerf, Tapeline hub, LSEG's providers in C and C++",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| {
            SCENARIOS
                .into_iter()
                // The port that was free may be another's by the time that a tool takes it.
                .map(|(name, _)| (name, tried(2, || one(place, way, name).unwrap_or_else(Outcome::Failed))))
                .collect()
        },
        cells: BTreeMap::new(),
    }
}

fn one(place: &Place, way: Way, name: &'static str) -> Result<Outcome, String> {
    let (_, pair) = name.split_once('-').unwrap_or_default();
    let (provider, consumer) = pair.split_once('-').unwrap_or_default();
    let (port, behind) = (free_port(), free_port());
    let is_published = provider.ends_with("ni_prov");
    // EmaCppNIProvPerf has a name of its own for it.
    let name_of_service = if provider == "ema_ni_prov" { "NI_PUB" } else { "DIRECT_FEED" };

    let [_, dictionary, _, enums] = place.tool_dictionary();
    let mut keys = format!("dictionary = \"{dictionary}\"\nenums = \"{enums}\"\n");
    let _ = writeln!(keys, "[[service]]\nname = \"{name_of_service}\"\nid = 1");
    let _ = if is_published {
        writeln!(keys, "[publishers]\nport = {behind}")
    } else {
        let server = format!("servers = [\"127.0.0.1:{behind}\"]");
        writeln!(keys, "providers = [\"perf\"]\n[[provider]]\nname = \"perf\"\n{server}")
    };
    let config = configure(place, way, port, &keys);
    let begin = || start(place, &config, port);
    // Who connects finds a plant; whom the plant connects to is there before.
    let plant = if is_published { Some(begin()?) } else { None };
    let items = place.items.to_string();
    let at = behind.to_string();
    let folder = format!("{name}-{}-provider", way.transport);
    let tool = |program| Tool::lasting(place, program, &folder, BEHIND).with(&LOAD);
    let service = ["-serviceName", name_of_service];
    let publishes = ["-serviceName", name_of_service, "-itemCount", &items];
    let _provider = match provider {
        "prov" => tool("ProvPerf").at(behind).with(&service),
        "ema_prov" => tool("EmaCppIProvPerf").with_ema(behind),
        "ni_prov" => tool("NIProvPerf").with(&["-h", "localhost", "-p", &at]).with(&publishes),
        // The service's number is EMA's own.
        _ => tool("EmaCppNIProvPerf").with_ema(behind).with(&["-serviceId", "0"]).with(&publishes),
    }
    .start();
    let _plant = plant.map_or_else(begin, Ok)?;

    // The tools' time counts from their start, and a provider has its own until it is there.
    let mut command = place.tapeline_client("watch", way, port);
    command.args(["--service", name_of_service, FIRST]).args(place.tool_dictionary());
    let mut scout = place.start(command, "consumer.log");
    while scout.wait_for("refresh")?["item"] != FIRST {}

    let told = if consumer == "cons" {
        Tool::ending(place, "ConsPerf", name, way).to(port).with(&["-steadyStateTime", "3"])
    } else {
        // Its time counts from the start, images included.
        let tool = Tool::ending(place, "EmaCppConsPerf", name, way).with_ema(port);
        tool.with(&["-requestRate", "100000", "-steadyStateTime", "8"])
    };
    let told = told.with(&service).with(&["-itemCount", &items]).run();
    let (images, updates) = (told.count("Refreshes received"), told.count("Updates received"));
    // Who is quicker than the providers has the image that was there, and one more where that comes anew.
    Ok(Outcome::of(images >= u64::from(place.items) && updates > 1000, told.summary()))
}
