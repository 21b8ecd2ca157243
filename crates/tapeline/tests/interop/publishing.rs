//! Non-interactive providers and their acceptors.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::column::{Column, Outcome, Scenario};
use crate::consuming::lost_by_ema;
use crate::program::{Place, Program, free_port};
use crate::way::{WAYS, Way};

const SCENARIOS: [Scenario; 6] = [
    ("login", "login and directory"),
    ("items", "items refreshed, updated, withdrawn"),
    ("book", "MarketByOrder"),
    ("big", "refresh of a megabyte"),
    ("reconnect", "acceptor killed and back, all published again"),
    ("refused", "login refused"),
];
const BIG_BYTES: u64 = 1_000_000;
/// A user whom every acceptor refuses.
const DENIED: &str = "denied";

/// Starts an acceptor that refuses the user [`DENIED`].
type Acceptor = fn(&Place, Way, u16) -> Result<Program, String>;
type Seen = Vec<(&'static str, Outcome)>;

/// The library against itself.
pub(crate) fn control() -> Column {
    Column {
        title: "EMA non-interactive provider, ETA acceptor",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |scenario, way| silent_over_json(way).or_else(|| lost_by_ema(scenario, way)),
        session: |place, way| {
            let comes_back = lost_by_ema("reconnect", way).is_none();
            told(ema_publishes(place, way, eta_acceptor, comes_back))
        },
        cells: BTreeMap::new(),
    }
}

/// EMA's non-interactive provider with `tapeline omm accept`.
pub(crate) fn tapeline_acceptor() -> Column {
    Column {
        title: "EMA non-interactive provider, Tapeline acceptor",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |_, way| silent_over_json(way),
        session: |place, way| told(ema_publishes(place, way, acceptor, true)),
        cells: BTreeMap::new(),
    }
}

fn acceptor(place: &Place, way: Way, port: u16) -> Result<Program, String> {
    let mut command = place.tapeline_server("accept", way, port);
    command.args(["--deny", DENIED, "--quiet"]);
    let mut acceptor = place.start(command, "acceptor.log");
    acceptor.wait_for("listening").map(|_| acceptor)
}

/// `tapeline omm publish` with ETA's transport and codec.
pub(crate) fn tapeline_ni_provider() -> Column {
    Column {
        title: "Tapeline non-interactive provider, ETA acceptor",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| told(tapeline_publishes(place, way)),
        cells: BTreeMap::new(),
    }
}

/// The outcomes, or a failed login if the session broke off.
fn told(seen: Result<Seen, String>) -> Seen {
    seen.unwrap_or_else(|why| vec![("login", Outcome::Failed(why))])
}

fn silent_over_json(way: Way) -> Option<&'static str> {
    way.is_json().then_some(
        "EMA's non-interactive provider ends with \"The JSON converter library has not been initialized properly\"",
    )
}

fn eta_acceptor(place: &Place, way: Way, port: u16) -> Result<Program, String> {
    let mut acceptor = place.start(place.java_server("EtaAcceptor", way, port), "EtaAcceptor.log");
    acceptor.wait_for("listening").map(|_| acceptor)
}

/// One provider for all scenarios: it publishes again to the second acceptor, and updates and withdraws its items
/// there.
fn ema_publishes(place: &Place, way: Way, acceptor: Acceptor, comes_back: bool) -> Result<Seen, String> {
    let port = free_port();
    let publisher = |more: &[&str]| {
        let mut command = place.java_client("EmaNiProvider", way, port);
        command.args(["--dictionary", &place.dictionary()]).args(more);
        place.start(command, "EmaNiProvider.log")
    };
    let mut taking = acceptor(place, way, port)?;
    let mut provider = if comes_back {
        let mut provider = publisher(&["--reconnect", "1"]);
        provider.wait_for("ready")?;
        taking.kill();
        taking = acceptor(place, way, port)?;
        provider
    } else {
        publisher(&[])
    };
    let published = provider.wait_for("published")?;
    let well = provider.ended_well();
    let gone = taking.wait_for("gone")?;
    let mut denied = publisher(&["--user", DENIED]);
    let refused = denied.wait_for("failed").is_ok() && !denied.ended_well();

    let mut seen = taken(&gone, &published);
    seen.push(("reconnect", Outcome::of(well, provider.last())));
    seen.push(("refused", Outcome::of(refused, denied.last())));
    Ok(seen)
}

/// One provider that ends by itself, and another that keeps running while the acceptor is killed.
fn tapeline_publishes(place: &Place, way: Way) -> Result<Seen, String> {
    let port = free_port();
    let list = place.item_file(port);
    let updates = place.updates.to_string();
    let publisher = |more: &[&str]| {
        let mut command = place.tapeline_client("publish", way, port);
        command.args(["--item-file", &list, "--book", "BOOK", "--book", "BIG", "--update-rate", "10000"]);
        command.args(more);
        place.start(command, "ni-provider.log")
    };
    let mut taking = eta_acceptor(place, way, port)?;
    let mut provider = publisher(&["--updates", &updates]);
    let end = provider.wait_for("end")?;
    let well = provider.ended_well();
    let gone = taking.wait_for("gone")?;
    let mut denied = publisher(&["--updates", &updates, "--user", DENIED]);
    let refused = denied.wait_for("end").is_ok() && !denied.ended_well();

    let mut lasting = publisher(&[]);
    lasting.wait_for("published")?;
    taking.kill();
    let mut taking = eta_acceptor(place, way, port)?;
    let again = lasting.wait_for("published");
    lasting.ask_to_end();
    let left = taking.wait_for("gone")?;
    let is_all = left["refreshes"] == gone["refreshes"] && left["malformed"] == 0;

    let mut seen = taken(&gone, &end);
    seen.push(("reconnect", Outcome::of(well && again.is_ok() && is_all, &left)));
    seen.push(("refused", Outcome::of(refused, denied.last())));
    Ok(seen)
}

/// Compares an acceptor's counts with the provider's: an image, an update and the end of each item.
fn taken(gone: &Value, published: &Value) -> Seen {
    let same = |name: &str| gone[name] == published[name];
    let read = gone["malformed"] == 0 && gone["services"] == 1;
    let all = same("refreshes") && same("updates") && same("statuses");
    vec![
        ("login", Outcome::of(read, gone)),
        ("items", Outcome::of(all, [gone, published].map(Value::to_string).join(" "))),
        ("book", Outcome::of(gone["orders"].as_u64() > Some(0), gone)),
        ("big", Outcome::of(gone["largest"].as_u64() >= Some(BIG_BYTES), gone)),
    ]
}
