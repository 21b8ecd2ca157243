//! `tapeline journal replay --serve`: a plant's journal as a live service.

use crate::stage;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;
use std::thread::JoinHandle;

use serde_json::{Map, Value, json};
use stage::{Place, Running, tapeline};
use tapeline_ring::{Name, Options, Publisher};

/// All stocks of the simulated exchange.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];

/// The journal of a plant that ran twice, and its configuration.
struct Past {
    place: Place,
    config: PathBuf,
    ticks: u64,
}

impl Past {
    /// The second run has fewer stocks, with other item numbers.
    fn keep() -> Self {
        let place = Place::new(0);
        let folder = place.folder.path();
        let day = folder.join("day.itch");
        let write = ["feed", "simulate", "--symbols", "3", "--messages", "3000", "--write"];
        let output = tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let config = folder.join("plant.toml");
        let mut ticks = 0;
        for symbols in ["", "symbols = [\"SENA\", \"RIMU\"]\n"] {
            let text = format!(
                "[plant]\nring = \"{}\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
                 file = \"{}\"\npace = \"fast\"\n{symbols}[hub]\nport = 0\nslow = \"cut\"\nslow_bytes = \"64MiB\"\n\
                 unknown = \"closed\"\n[journal]\nfolder = \"{}\"\n",
                place.ring,
                day.display(),
                folder.join("journal").display()
            );
            std::fs::write(&config, text).unwrap();
            let arguments =
                ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
            let mut plant = Running::start(&arguments);
            assert_eq!(plant.says()["ready"], json!(place.ring));
            let report = plant.says();
            assert!(plant.child.wait().unwrap().success(), "{report}");
            ticks = report["journal"]["last"].as_u64().unwrap();
        }
        Self { place, config, ticks }
    }

    fn arguments<'a>(&'a self, journal: &'a str, options: &[&'a str]) -> Vec<&'a str> {
        let fixed =
            ["journal", "replay", journal, "--serve", self.config.to_str().unwrap(), "--format", "json"];
        [&fixed, options].concat()
    }

    fn journal(&self) -> String {
        self.place.folder.path().join("journal").to_str().unwrap().to_owned()
    }

    /// Replays the journal; returns the ticks on the ring, the messages to a client of all stocks, and the report.
    fn replay(&self, options: &[&str]) -> (Vec<Value>, Vec<Value>, Value) {
        let journal = self.journal();
        let waits = ["--speed", "max", "--requests", "3", "--subscribers", "2"];
        let mut replay = Running::start(&self.arguments(&journal, &[&waits, options].concat()));
        let ready = replay.says();
        assert_eq!(ready["ready"], json!(self.place.ring), "{ready}");
        let watch = ["plant", "watch", "--ring", &self.place.ring, "--from", "oldest", "--format", "json"];
        let watch = lines(Running::start(&watch));
        let server = ready["hub"].as_str().unwrap();
        let fixed = ["omm", "watch", "--server", server, "--service", "TAPELINE", "--format", "json"];
        let client = Running::start(&[&fixed[..], &["--attempts", "1", "--until-closed"], &STOCKS].concat());
        let (client, watch) = (lines(client), watch);
        let report = replay.says();
        assert!(replay.child.wait().unwrap().success(), "{report}");
        (watch.join().unwrap(), client.join().unwrap(), report)
    }
}

fn lines(mut of: Running) -> JoinHandle<Vec<Value>> {
    std::thread::spawn(move || std::iter::from_fn(|| of.may_say()).collect())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The images and updates of an item.
fn of<'a>(lines: &'a [Value], kind: &str, item: &str) -> Vec<(&'a Value, &'a Map<String, Value>)> {
    let is =
        |line: &&Value| line["item"] == item && matches!(line[kind].as_str(), Some("refresh" | "update"));
    lines.iter().filter(is).map(|line| (&line[kind], line["fields"].as_object().unwrap())).collect()
}

#[test]
fn a_client_is_given_every_update_that_the_journal_has() {
    let past = Past::keep();
    let (watch, client, report) = past.replay(&[]);
    for stock in STOCKS {
        let (kept, given) = (of(&watch, "kind", stock), of(&client, "event", stock));
        assert!(kept.len() > 100, "{stock}: {}", kept.len());
        assert_eq!(given, kept, "{stock}");
    }
    let told = (&report["history"], &report["before"], &report["missing"], &report["last"]);
    assert_eq!(told, (&json!(past.ticks), &json!(0), &json!(0), &json!(past.ticks)), "{report}");
    // Each stream gets a status at the end.
    let told = |line: &&Value| line["event"] == "state" && line["state"]["text"] == "The plant has ended";
    assert_eq!(client.iter().filter(told).count(), STOCKS.len());
    let updates = client.iter().filter(|line| line["event"] == "update").count();
    let hub = &report["hub"];
    assert_eq!((&hub["ticks"], &hub["updates"]), (&json!(past.ticks), &json!(updates)), "{report}");
}

#[test]
fn from_a_sequence_on_a_client_begins_with_images_of_all_before() {
    let past = Past::keep();
    let from = past.ticks / 2;
    let (watch, client, report) = past.replay(&["--from-sequence", &from.to_string()]);
    let (before, after): (Vec<_>, Vec<_>) =
        watch.into_iter().partition(|line| line["seq"].as_u64() < Some(from));
    for stock in STOCKS {
        let mut image: BTreeMap<&String, &Value> = BTreeMap::new();
        for (kind, fields) in of(&before, "kind", stock) {
            if kind == "refresh" {
                image.clear();
            }
            image.extend(fields);
        }
        let given = of(&client, "event", stock);
        let ((kind, first), given) = given.split_first().unwrap();
        assert_eq!(
            (*kind, &first.iter().collect::<BTreeMap<_, _>>()),
            (&json!("refresh"), &image),
            "{stock}"
        );
        assert_eq!(given, of(&after, "kind", stock), "{stock}");
    }
    let told = (&report["before"], &report["history"], &report["last"]);
    assert_eq!(told, (&json!(from - 1), &json!(past.ticks + 1 - from), &json!(past.ticks)), "{report}");
}

#[test]
fn it_ends_when_it_is_told_to_and_says_what_is_wrong() {
    let past = Past::keep();
    let journal = past.journal();
    let mut replay = Running::start(&past.arguments(&journal, &["--requests", "1"]));
    assert!(replay.says()["hub"].is_string());
    replay.ask_to_end();
    let report = replay.says();
    assert_eq!((&report["history"], &report["last"]), (&json!(0), &Value::Null), "{report}");
    assert_eq!(replay.child.wait().unwrap().code(), Some(130));

    let name = Name::new(&past.place.ring).unwrap();
    let plant = Publisher::open(&name, &Options::default()).unwrap();
    let output = tapeline(&past.arguments(&journal, &[])).output().unwrap();
    let words = said(&output);
    assert!(words.contains("cannot make the ring") && words.contains("--onto overrides"), "{words}");
    assert_eq!(output.status.code(), Some(1));
    drop(plant);

    let text = std::fs::read_to_string(&past.config).unwrap();
    std::fs::write(&past.config, text.replace("[hub]", "[hub.web]")).unwrap();
    let words = said(&tapeline(&past.arguments(&journal, &[])).output().unwrap());
    assert!(words.contains("hint: "), "{words}");
    let (before, _) = text.split_once("[hub]").unwrap();
    std::fs::write(&past.config, before).unwrap();
    let words = said(&tapeline(&past.arguments(&journal, &[])).output().unwrap());
    assert!(words.contains("has no [hub]") && words.contains("an empty [hub] serves"), "{words}");
    let to = past.arguments(&journal, &["--to", "239.255.0.1:9"]);
    assert_eq!(tapeline(&to).output().unwrap().status.code(), Some(2));
}
