//! `tapeline omm watch` with LSEG's providers.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::column::{Column, Outcome, Scenario};
use crate::consuming::server;
use crate::program::{Place, Program, free_port};
use crate::way::{WAYS, Way};

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
    ("reissue", "reissue, and another view"),
    ("pause", "pause and resume"),
    ("reconnect", "provider killed and back"),
];
const LARGEST_BATCH: u32 = 500;
/// Number of orders in this image of EMA's provider.
const BIG_ORDERS: usize = 18_000;

/// All scenarios, with a separate process for each request.
pub(crate) fn tapeline_consumer() -> Column {
    Column {
        title: "Tapeline consumer, EMA and ETA providers",
        scenarios: &SCENARIOS,
        ways: &WAYS,
        explained: |_, _| None,
        session: |place, way| ask(place, way).unwrap_or_else(|why| vec![("login", Outcome::Failed(why))]),
        cells: BTreeMap::new(),
    }
}

fn ask(place: &Place, way: Way) -> Result<Vec<(&'static str, Outcome)>, String> {
    let port = free_port();
    let mut provider = server(place, "EmaProvider", way, port)?;
    let run = |arguments: &[&str]| Told::all_of(start(place, way, port, arguments));
    let mut seen = Vec::new();

    let told = run(&["ONE", "--updates", "1"]);
    let has_login = told.any("login", |event| event["state"]["stream"] == "OPEN");
    let has_service = told.any("directory", |event| event["services"][0] == "DIRECT_FEED");
    seen.push(("login", told.outcome(has_login && has_service && told.well)));

    let told = run(&["ONE", "--updates", "1", "--download-dictionary"]);
    let is_ours =
        told.any("dictionary", |event| event["fields"].as_u64() > Some(20) && event["tables"] == 19);
    seen.push(("dictionary", told.outcome(is_ours && told.well)));

    let list = place.item_file(port);
    let updates = place.updates.to_string();
    let mut many = start_told(place, way, port, &["--item-file", &list, "--updates", &updates, "--quiet"]);
    many.tell("wait");
    many.tell("close *");
    // EMA drops unread input when its peer disconnects: the image shows that it has read all closes.
    many.tell("open LAST");
    many.leave_alone();
    let told = Told::all_of(many);
    let gone = loop {
        let gone = provider.wait_for("gone")?;
        if gone["requests"].as_u64() >= Some(u64::from(place.items)) {
            break gone;
        }
    };
    let unknown = run(&["UNKNOWN", "--updates", "1"]);
    let all = told.at_end("images") == u64::from(place.items) + 1
        && told.at_end("updates") >= u64::from(place.items * place.updates)
        && gone["closes"] == place.items;
    let is_refused = unknown.at_end("closed") == 1 && !unknown.well;
    let ends = format!("{} {gone} {}", told.last(), unknown.last());
    seen.push(("items", Outcome::of(all && told.well && is_refused, ends)));

    let told = run(&["VIEWED", "--view", "BID", "--view", "ASK", "--updates", "2"]);
    let wanted = BTreeSet::from(["BID", "ASK"]);
    let is_view = |event: &Value| fields(event).as_ref() == Some(&wanted);
    let only = told.any("refresh", is_view) && !told.any("update", |event| !is_view(event));
    seen.push(("view", told.outcome(only && told.well)));

    let told = run(&["ONE", "--snapshot"]);
    let is_snapshot = told.any("refresh", |event| event["state"]["stream"] == "NON_STREAMING");
    seen.push(("snapshot", told.outcome(is_snapshot && told.at_end("updates") == 0 && told.well)));

    let post = ["--post", "BID=1.5", "--updates", "1"];
    let taken = run(&[&["POSTED"][..], &post].concat());
    let refused = run(&[&["NAK"][..], &post].concat());
    let off = run(&[&["POSTED", "--off-stream"][..], &post].concat());
    let all = taken.at_end("acks") == 1 && refused.at_end("naks") == 1 && off.at_end("acks") == 1;
    seen.push(("post", Outcome::of(all, [&taken, &refused, &off].map(Told::last).join(" "))));

    let told = run(&["GENERIC", "--generic", "who is there", "--updates", "1"]);
    let is_echo = told.any("generic", |event| event.to_string().contains("who is there"));
    seen.push(("generic", told.outcome(is_echo && told.well)));

    let book = ["--domain", "MarketByOrder", "--updates", "1"];
    let told = run(&[&["BOOK"][..], &book].concat());
    let is_order = |event: &Value| event["entries"][0]["fields"]["ORDER_PRC"].is_number();
    seen.push(("book", told.outcome(told.any("refresh", is_order) && told.well)));

    let told = run(&[&["BIG"][..], &book].concat());
    let is_whole = |event: &Value| event["entries"].as_array().is_some_and(|all| all.len() == BIG_ORDERS);
    seen.push(("big", told.outcome(told.any("refresh", is_whole) && told.well)));

    seen.push(("reissue", reissue(place, way, port).map_or_else(Outcome::Failed, |()| Outcome::Passed)));
    seen.push(("reconnect", reconnect(place, way, port, provider)));

    // EMA passes a batch to its application as one request and cannot open its items.
    let port = free_port();
    let mut provider = server(place, "EtaProvider", way, port)?;
    let size = place.items.min(LARGEST_BATCH);
    let names: Vec<String> = (0..size).map(|number| format!("BATCH{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let told = Told::all_of(start(place, way, port, &[&names[..], &["--batch", "--updates", "1"]].concat()));
    let batch = provider.wait_for("batch")?;
    let all = told.at_end("images") == u64::from(size) && batch["items"] == size;
    seen.push(("batch", told.outcome(all && told.well)));
    let paused = pause(place, way, port, &mut provider);
    seen.push(("pause", paused.map_or_else(Outcome::Failed, |()| Outcome::Passed)));
    Ok(seen)
}

/// Requests an image again, then one with other fields.
fn reissue(place: &Place, way: Way, port: u16) -> Result<(), String> {
    let mut consumer = start_told(place, way, port, &["REISSUED"]);
    consumer.wait_for("refresh")?;
    consumer.tell("refresh REISSUED");
    let whole = consumer.wait_for("refresh")?;
    consumer.tell("view REISSUED BID,ASK");
    let viewed = consumer.wait_for("refresh")?;
    consumer.tell("quit");
    let is_view = fields(&viewed) == Some(BTreeSet::from(["BID", "ASK"]));
    if is_view && fields(&whole).map(|all| all.len()) > Some(2) {
        Ok(())
    } else {
        Err(format!("{whole} {viewed}"))
    }
}

/// Pauses an open item, and opens another one paused.
fn pause(place: &Place, way: Way, port: u16, provider: &mut Program) -> Result<(), String> {
    let mut consumer = start_told(place, way, port, &["PAUSED"]);
    consumer.wait_for("refresh")?;
    consumer.tell("pause PAUSED");
    provider.wait_for("pause")?;
    consumer.tell("resume PAUSED");
    consumer.wait_for("refresh")?;
    consumer.tell("quit");
    let mut sleeper = start(place, way, port, &["SLEEPER", "--pause"]);
    sleeper.wait_for("refresh")?;
    provider.wait_for("pause").map(|_| ())
}

fn reconnect(place: &Place, way: Way, port: u16, mut provider: Program) -> Outcome {
    // More updates than the provider sends: it runs until it is killed.
    let mut consumer = start(place, way, port, &["LASTING", "--updates", "1000000"]);
    if let Err(why) = consumer.wait_for("refresh") {
        return Outcome::Failed(why);
    }
    provider.kill();
    let back = server(place, "EmaProvider", way, port);
    let again = consumer.wait_for("refresh");
    Outcome::of(back.is_ok() && again.is_ok(), consumer.last())
}

fn start(place: &Place, way: Way, port: u16, arguments: &[&str]) -> Program {
    let mut command = place.tapeline_client("watch", way, port);
    // A limit, in case something expected never arrives.
    command.args(arguments).args(["--user", "interop", "--for", "60s"]);
    place.start(command, "consumer.log")
}

/// A consumer that takes commands.
fn start_told(place: &Place, way: Way, port: u16, arguments: &[&str]) -> Program {
    let mut command = place.tapeline_client("watch", way, port);
    command.args(arguments).args(["--commands", "--for", "60s"]);
    place.start_told(command, "consumer.log")
}

/// Names of the fields in a message.
fn fields(event: &Value) -> Option<BTreeSet<&str>> {
    event["fields"].as_object().map(|fields| fields.keys().map(String::as_str).collect())
}

/// A program's output, and whether it succeeded.
pub(crate) struct Told {
    events: Vec<Value>,
    pub(crate) well: bool,
}

impl Told {
    pub(crate) fn all_of(mut program: Program) -> Self {
        let events = std::iter::from_fn(|| program.event()).collect();
        Self { events, well: program.ended_well() }
    }

    pub(crate) fn any(&self, name: &str, is_it: impl Fn(&Value) -> bool) -> bool {
        self.events.iter().any(|event| event["event"] == name && is_it(event))
    }

    pub(crate) fn last(&self) -> String {
        self.events.last().map_or_else(|| "nothing".to_owned(), Value::to_string)
    }

    /// A figure of the last event.
    pub(crate) fn at_end(&self, figure: &str) -> u64 {
        self.events.last().and_then(|event| event[figure].as_u64()).unwrap_or(u64::MAX)
    }

    pub(crate) fn outcome(&self, passed: bool) -> Outcome {
        Outcome::of(passed, self.last())
    }
}
