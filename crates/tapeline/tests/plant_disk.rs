//! A plant under load whose journal's disk takes nothing any more, with clients connected: what was said to happen then does.
//!
//! A limit on the size of files stands for a full disk: it is met by the same calls, needs no rights, and can be lifted again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::ChildStderr;
use std::thread::JoinHandle;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use stage::{Place, Running, tapeline};

mod stage;

/// The busiest stocks of the simulated exchange are always the same.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];

/// A plant with a hub, its page, a synced journal and a day of 10,000 messages a second, at the pace at which it happened.
struct Market {
    place: Place,
    plant: Running,
    hub: String,
    web: String,
    /// All that it says to people, once it has ended.
    talk: Option<JoinHandle<String>>,
}

impl Market {
    fn open(on_failure: &str) -> Self {
        let place = Place::new(0);
        let folder = place.folder.path();
        let day = folder.join("day.itch");
        let write = ["feed", "simulate", "--symbols", "3", "--rate", "10k", "--duration", "60s", "--write"];
        let output = tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let config = folder.join("plant.toml");
        let text = format!(
            "[plant]\nring = \"{}\"\npublish = \"every-message\"\n[[feed]]\nname = \"file\"\n\
             protocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\nfile = \"{}\"\n[hub]\nport = 0\nunknown = \"wait\"\n\
             slow = \"cut\"\nslow_bytes = \"64MiB\"\n[hub.web]\nport = 0\n[journal]\nfolder = \"{}\"\n\
             durability = \"synced\"\non_failure = \"{on_failure}\"\nsegment_size = \"64KiB\"\n",
            place.ring,
            day.display(),
            folder.join("journal").display()
        );
        std::fs::write(&config, text).unwrap();
        let arguments = ["plant", "--config", config.to_str().unwrap(), "--format", "json"];
        let (mut plant, talk) = Running::start_talking(&arguments);
        let talk = Some(listen(talk));
        let ready = plant.says();
        let address = |key: &str| ready[key].as_str().unwrap().to_owned();
        Self { hub: address("hub"), web: address("web"), place, plant, talk }
    }

    /// Ends it; what it did, and what it said to people.
    fn end(&mut self) -> (Value, String) {
        self.plant.ask_to_end();
        let report = self.plant.may_say();
        let status = self.plant.child.wait().unwrap();
        let said = self.talk.take().unwrap().join().unwrap();
        assert!(status.success(), "{said}");
        (report.unwrap(), said)
    }

    fn journal(&self) -> String {
        self.place.folder.path().join("journal").to_str().unwrap().to_owned()
    }

    /// Nothing more goes into files from here on, or anything does.
    fn set_full(&self, is_full: bool) {
        let maximum = getrlimit(Resource::Fsize).maximum;
        let current = if is_full { Some(1) } else { maximum };
        let pid = Pid::from_child(&self.plant.child);
        prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum }).unwrap();
    }

    /// Looks at the counters until they are so.
    fn wait_until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let counters: Value = serde_json::from_str(&self.page("/stat.json")).unwrap();
            if is_so(&counters) {
                return counters;
            }
            std::thread::yield_now();
        }
    }

    /// What the page's server answers, its head left out.
    fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.web).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.web).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// What `/health` says of the journal.
    fn health(&self) -> Value {
        let health: Value = serde_json::from_str(&self.page("/health")).unwrap();
        let mut checks = health["checks"].as_array().unwrap().iter();
        checks.find(|check| check["check"] == "journal").unwrap().clone()
    }

    /// A client of the hub: all that it is given, once that is over.
    fn client(&self) -> JoinHandle<Vec<Value>> {
        let fixed = ["omm", "watch", "--server", &self.hub, "--service", "TAPELINE", "--format", "json"];
        let mut client =
            Running::start(&[&fixed[..], &["--attempts", "1", "--until-closed"], &STOCKS].concat());
        std::thread::spawn(move || std::iter::from_fn(|| client.may_say()).collect())
    }

    /// A subscriber that takes all ticks from the journal.
    fn subscriber(&self) -> JoinHandle<Vec<Value>> {
        let (ring, journal) = (&self.place.ring, self.journal());
        let fixed =
            ["plant", "watch", "--ring", ring, "--format", "json", "--from-sequence", "1", "--journal"];
        let mut subscriber = Running::start(&[&fixed[..], &[&journal]].concat());
        std::thread::spawn(move || std::iter::from_fn(|| subscriber.may_say()).collect())
    }

    fn verify(&self) -> Value {
        let output = tapeline(&["journal", "verify", &self.journal(), "--format", "json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn listen(talk: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        BufReader::new(talk).lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
    })
}

fn updates(lines: &[Value], kind: &str, item: &str) -> Vec<Value> {
    let of = lines.iter().filter(|line| line[kind] == "update" && line["item"] == item);
    of.map(|line| line["fields"].clone()).collect()
}

/// Nothing is given out that is not in the journal, and the plant ends, and says why.
#[test]
fn a_plant_that_may_not_go_on_without_its_journal_ends_when_the_disk_is_full() {
    let mut market = Market::open("stop");
    let (client, subscriber) = (market.client(), market.subscriber());
    market.wait_until(|now| now["hub"]["totals"]["updates"].as_u64() > Some(500));
    market.set_full(true);
    assert!(!market.plant.child.wait().unwrap().success());
    let said = market.talk.take().unwrap().join().unwrap();
    assert!(said.contains("File too large") && said.contains("the plant stops"), "{said}");
    assert!(said.contains("hint: a limit on the size of files"), "{said}");
    let (given, kept) = (client.join().unwrap(), subscriber.join().unwrap());
    let last = kept.last().unwrap()["seq"].as_u64().unwrap();
    assert!(said.contains(&format!("ticks from {} on are missing", last + 1)), "{last}: {said}");
    for stock in STOCKS {
        let (given, kept) = (updates(&given, "event", stock), updates(&kept, "kind", stock));
        assert!(given.len() > 100, "{stock}: {}", given.len());
        assert!(kept.windows(given.len()).any(|kept| kept == given), "{stock}: more than the journal has");
    }
}

/// It goes on, says so everywhere, and keeps its journal again when it can; what is missing is counted.
#[test]
fn a_plant_that_may_go_on_without_its_journal_says_so_until_it_has_one_again() {
    let mut market = Market::open("continue");
    let client = market.client();
    let before = market.wait_until(|now| now["hub"]["totals"]["updates"].as_u64() > Some(500));
    assert_eq!((&before["journal"]["state"], &before["journal"]["missing"]), (&json!("keeping"), &json!(0)));
    assert_eq!(market.health()["ok"], true);

    market.set_full(true);
    let without = market.wait_until(|now| now["journal"]["state"] == "without");
    let health = market.health();
    assert!(health["ok"] == false && health["says"].as_str().unwrap().contains("without, up to"), "{health}");
    let metrics = market.page("/metrics");
    assert!(metrics.contains("tapeline_journal_state{state=\"without\"} 1"), "{metrics}");
    // Clients notice nothing.
    let sent = |now: &Value| now["hub"]["totals"]["updates"].as_u64().unwrap();
    market.wait_until(|now| sent(now) > sent(&without) + 5_000);

    market.set_full(false);
    let again = market.wait_until(|now| now["journal"]["state"] == "keeping");
    assert_eq!(market.health()["ok"], true);
    let kept = |now: &Value| now["journal"]["kept"].as_u64().unwrap();
    market.wait_until(|now| kept(now) > kept(&again));
    let (report, said) = market.end();
    for words in ["File too large", "the plant goes on WITHOUT a journal", "the journal is written again"] {
        assert!(said.contains(words), "{words}: {said}");
    }

    let (ticks, missing) =
        (report["ticks"].as_u64().unwrap(), report["journal"]["missing"].as_u64().unwrap());
    assert!(missing > 5_000, "{report}");
    assert_eq!(report["journal"]["ticks"], json!(ticks - missing), "{report}");
    assert_eq!((&report["hub"]["ticks"], &report["hub"]["cut"]), (&json!(ticks), &json!(0)), "{report}");
    let given = client.join().unwrap().iter().filter(|line| line["event"] == "update").count() as u64;
    assert_eq!(json!(given), report["hub"]["updates"], "{report}");
    // What it does not have the journal says itself.
    let found = market.verify();
    assert_eq!((&found["ticks"], &found["missing"]), (&json!(ticks - missing), &json!(missing)), "{found}");
    assert_eq!(found["last"]["sequence"], json!(ticks), "{found}");
}
