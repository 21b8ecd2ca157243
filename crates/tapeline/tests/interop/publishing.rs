//! Non-interactive providers and what they publish to.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::column::{Column, Outcome, Scenario};
use crate::consuming::lost_by_ema;
use crate::program::{Place, free_port};
use crate::way::Way;

const SCENARIOS: [Scenario; 6] = [
    ("login", "login and directory"),
    ("items", "items refreshed, updated, withdrawn"),
    ("book", "MarketByOrder"),
    ("big", "refresh of a megabyte"),
    ("reconnect", "acceptor killed and back, all published again"),
    ("refused", "login refused"),
];
const BIG_BYTES: u64 = 1_000_000;

/// The library against itself.
pub(crate) fn control() -> Column {
    Column {
        title: "EMA non-interactive provider, ETA acceptor",
        scenarios: &SCENARIOS,
        explained: |scenario, way| silent_over_json(way).or_else(|| lost_by_ema(scenario, way)),
        session: |place, way| publish(place, way).unwrap_or_else(|why| vec![("login", Outcome::Failed(why))]),
        cells: BTreeMap::new(),
    }
}

fn silent_over_json(way: Way) -> Option<&'static str> {
    way.is_json().then_some(
        "EMA's non-interactive provider ends with \"The JSON converter library has not been initialized properly\"",
    )
}

fn publish(place: &Place, way: Way) -> Result<Vec<(&'static str, Outcome)>, String> {
    let port = free_port();
    let acceptor = || {
        let mut acceptor = place.start(place.java_server("EtaAcceptor", way, port), "EtaAcceptor.log");
        acceptor.wait_for("listening").map(|_| acceptor)
    };
    let publisher = |more: &[&str]| {
        let mut command = place.java_client("EmaNiProvider", way, port);
        command.args(["--dictionary", &place.dictionary()]).args(more);
        place.start(command, "EmaNiProvider.log")
    };

    let mut taking = acceptor()?;
    let mut provider = if lost_by_ema("reconnect", way).is_none() {
        let mut provider = publisher(&["--reconnect", "1"]);
        provider.wait_for("ready")?;
        taking.kill();
        taking = acceptor()?;
        provider
    } else {
        publisher(&[])
    };
    let published = provider.wait_for("published")?;
    let well = provider.ended_well();
    let gone = taking.wait_for("gone")?;

    let same = |name: &str| gone[name] == published[name];
    let read = gone["malformed"] == 0 && gone["services"] == 1;
    let mut denied = publisher(&["--user", "denied"]);
    let refused = denied.wait_for("failed");
    Ok(vec![
        ("login", Outcome::of(read, &gone)),
        (
            "items",
            Outcome::of(
                same("refreshes") && same("updates") && same("statuses"),
                [&gone, &published].map(Value::to_string).join(" "),
            ),
        ),
        ("book", Outcome::of(gone["orders"].as_u64() > Some(0), &gone)),
        ("big", Outcome::of(gone["largest"].as_u64() >= Some(BIG_BYTES), &gone)),
        ("reconnect", Outcome::of(well, provider.last())),
        ("refused", Outcome::of(refused.is_ok() && !denied.ended_well(), denied.last())),
    ])
}
