//! LSEG's providers in C and C++ on one side of a plant, ConsPerf and EmaCppConsPerf on the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Tool, tried};
use crate::column::{Column, Outcome, Scenario};
use crate::hub::{configure, start};
use crate::program::{Place, free_port};
use crate::way::Way;

/// Transports of the consumers. The providers use TCP, which all of them support.
const WAYS: [Way; 3] = [Way::new("tcp", "none"), Way::new("ws-json", "none"), Way::new("tls", "none")];
const BEHIND: Way = Way::new("tcp", "none");

/// Pairs of provider and consumer.
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
/// Over all items, and for longer than a consumer runs.
const LOAD: [&str; 8] =
    ["-updateRate", "1000", "-tickRate", "100", "-latencyUpdateRate", "100", "-runTime", "60"];

/// The first item of all tools (350k.xml).
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
                // Another process may take the free port first.
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
    // EmaCppNIProvPerf uses another service name.
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
    // A non-interactive provider needs a running plant; an interactive one is started before the plant.
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
        // The service number is EMA's default.
        _ => tool("EmaCppNIProvPerf").with_ema(behind).with(&["-serviceId", "0"]).with(&publishes),
    }
    .start();
    let _plant = plant.map_or_else(begin, Ok)?;

    // The consumers' time counts from their start, so wait until the provider's items have arrived.
    let mut command = place.tapeline_client("watch", way, port);
    command.args(["--service", name_of_service, FIRST]).args(place.tool_dictionary());
    let mut scout = place.start(command, "consumer.log");
    while scout.wait_for("refresh")?["item"] != FIRST {}

    let told = if consumer == "cons" {
        Tool::ending(place, "ConsPerf", name, way).to(port).with(&["-steadyStateTime", "3"])
    } else {
        // The steady-state time counts from the start, images included.
        let tool = Tool::ending(place, "EmaCppConsPerf", name, way).with_ema(port);
        tool.with(&["-requestRate", "100000", "-steadyStateTime", "8"])
    };
    let told = told.with(&service).with(&["-itemCount", &items]).run();
    let (images, updates) = (told.count("Refreshes received"), told.count("Updates received"));
    // A consumer that is faster than the providers gets the image at open, and another one if it is published again.
    Ok(Outcome::of(images >= u64::from(place.items) && updates > 1000, told.summary()))
}
