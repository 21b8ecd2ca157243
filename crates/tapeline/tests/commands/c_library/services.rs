//! The examples in C and C++ with plants, hubs and journals, as separate processes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::thread;

use serde_json::{Value, json};

use super::workshop::Example;
use crate::certificates;
use crate::stage::{Nobody, Place, Running, tapeline};

/// All stocks of the simulated exchange.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];

/// A plant of a file, which has run to its end, and its journal.
struct Past {
    place: Place,
    config: String,
    /// The last sequence.
    last: u64,
}

/// Writes the configuration of a plant of a file of the simulated exchange, with more tables at its end.
fn configure(place: &Place, tables: &str) -> String {
    let folder = place.folder.path();
    let day = folder.join("day.itch");
    let write = ["feed", "simulate", "--symbols", "3", "--messages", "3000", "--write"];
    assert!(tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap().status.success());
    let text = format!(
        "[plant]\nring = \"{}\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
         file = \"{}\"\npace = \"fast\"\n{tables}",
        place.ring,
        day.display(),
    );
    let config = folder.join("plant.toml");
    std::fs::write(&config, text).unwrap();
    config.to_str().unwrap().to_owned()
}

impl Past {
    fn new() -> Self {
        let place = Place::new(0);
        let journal = place.folder.path().join("journal");
        let hub = "[hub]\nport = 0\nslow = \"cut\"\nslow_bytes = \"64MiB\"\nunknown = \"closed\"\n";
        let config = configure(&place, &format!("{hub}[journal]\nfolder = \"{}\"\n", journal.display()));
        let arguments = ["plant", "--config", &config, "--until-end-of-session", "--format", "json"];
        let mut plant = Running::start(&arguments);
        assert_eq!(plant.says()["ready"], json!(place.ring));
        let report = plant.says();
        assert!(plant.child.wait().unwrap().success(), "{report}");
        Self { place, config, last: report["journal"]["last"].as_u64().unwrap() }
    }

    fn journal(&self) -> String {
        self.place.folder.path().join("journal").to_str().unwrap().to_owned()
    }

    /// The journal as a live plant, which begins once so many items are requested and so many subscribers read its ring, and its hub.
    fn replay(&self, requests: usize, subscribers: usize) -> (Running, String) {
        let (requests, subscribers) = (requests.to_string(), subscribers.to_string());
        let journal = self.journal();
        let what =
            ["journal", "replay", &journal, "--serve", &self.config, "--speed", "max", "--format", "json"];
        let waits = ["--requests", &requests, "--subscribers", &subscribers];
        let mut replay = Running::start(&[&what[..], &waits].concat());
        let ready = replay.says();
        (replay, ready["hub"].as_str().unwrap().to_owned())
    }
}

/// A program whose output is read as it comes; it ends with the test.
struct Reading {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Reading {
    fn start(command: &mut std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let line = self.lines.next();
        line.unwrap_or_else(|| panic!("it has ended: {:?}", self.child.wait())).unwrap()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The images and updates of a stock, from lines of a consumer, or of a reader of ticks, which begin with the sequence.
fn of<'a>(lines: impl IntoIterator<Item = &'a str>, stock: &str) -> Vec<&'a str> {
    let without_sequence = |line: &'a str| line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let is =
        |line: &&str| ["image", "update"].iter().any(|kind| line.starts_with(&format!("{kind} {stock} ")));
    lines.into_iter().map(without_sequence).filter(is).collect()
}

#[test]
fn a_journal_its_ring_and_a_consumer_have_the_same_ticks() {
    let past = Past::new();
    let journal = past.journal();
    let readers = Example::all("ticks");
    let mut read = readers.iter().map(|reader| {
        let (status, said, errors) = reader.run(&["journal", &journal, "1"]);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{}", reader.name);
        said
    });
    let Some(journal) = read.next() else { return };
    assert!(read.all(|other| other == journal));
    assert!(journal.ends_with(&format!("\nread {}, missing 0\n", past.last)), "{journal}");
    // From a sequence on, there are only the ticks from it.
    let (_, tail, _) = readers[0].run(&["journal", &past.journal(), &past.last.to_string()]);
    assert!(tail.starts_with(&format!("{} ", past.last)) && tail.ends_with("read 1, missing 0\n"), "{tail}");

    let consumers = Example::all("consumer");
    let (mut replay, hub) = past.replay(consumers.len() * STOCKS.len(), readers.len());
    let rings: Vec<_> = readers.iter().map(|reader| reader.start(&["ring", &past.place.ring])).collect();
    let consumed: Vec<_> = consumers
        .iter()
        .enumerate()
        .map(|(at, consumer)| {
            let mut command = consumer.command(&[&[&hub, "TAPELINE", "0"], &STOCKS[..]].concat());
            // Half of them use JSON.
            if at % 2 == 1 {
                command.env("TAPELINE_JSON", "1");
            }
            let mut reading = Reading::start(&mut command);
            thread::spawn(move || {
                let (mut lines, mut ended) = (Vec::new(), 0);
                // Each item gets a status at the end of the plant.
                while ended < STOCKS.len() {
                    let line = reading.line();
                    ended += usize::from(line.contains("The plant has ended"));
                    lines.push(line);
                }
                lines
            })
        })
        .collect();
    let rings =
        thread::spawn(move || rings.into_iter().map(super::workshop::Running::end).collect::<Vec<_>>());
    let consumed: Vec<_> = consumed.into_iter().map(|thread| thread.join().unwrap()).collect();
    let report = replay.says();
    assert!(replay.child.wait().unwrap().success(), "{report}");
    for (ring, reader) in rings.join().unwrap().iter().zip(&readers) {
        assert!(ring.ends_with(", missing 0\n"), "{}", reader.name);
        for stock in STOCKS {
            assert_eq!(of(ring.lines(), stock), of(journal.lines(), stock), "{}, {stock}", reader.name);
        }
    }
    for (lines, consumer) in consumed.iter().zip(&consumers) {
        for stock in STOCKS {
            let (given, kept) = (of(lines.iter().map(String::as_str), stock), of(journal.lines(), stock));
            assert!(given.len() > 100, "{}, {stock}: {}", consumer.name, given.len());
            assert_eq!(given, kept, "{}, {stock}", consumer.name);
        }
    }
}

#[test]
fn a_damaged_journal_is_read_up_to_the_damage_and_told_with_its_place() {
    let past = Past::new();
    let folder = PathBuf::from(past.journal());
    let is_segment = |path: &Path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"TAPEJRN1"));
    let mut files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let segment = files.find(|path| is_segment(path)).unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&segment, bytes).unwrap();
    for reader in Example::all("ticks") {
        let (status, said, errors) = reader.run(&["journal", &past.journal(), "1"]);
        assert_eq!(status, Some(1), "{}: {errors}", reader.name);
        assert!(said.lines().count() > 100, "{}", reader.name);
        let name = segment.file_name().unwrap().to_str().unwrap();
        for part in [
            &past.journal(),
            name,
            ", byte ",
            "is expected: expected the checksum",
            "; hint: `tapeline journal verify`",
        ] {
            assert!(errors.contains(part), "{}: {errors}", reader.name);
        }
    }
}

#[test]
fn what_is_not_there_is_told_with_a_hint() {
    for reader in Example::all("ticks") {
        let (status, _, errors) = reader.run(&["ring", "test-c-there-is-none"]);
        assert_eq!(status, Some(1), "{}", reader.name);
        assert!(errors.contains("error: there is no ring at") && errors.contains("hint: start"), "{errors}");
        let (status, _, errors) = reader.run(&["journal", "there/is/none", "1"]);
        assert_eq!(status, Some(1), "{}", reader.name);
        assert!(errors.contains("error: there/is/none: ") && errors.contains("hint: is this"), "{errors}");
    }
    // Nobody listens: a consumer says so, and tries again until it is stopped.
    let nobody = Nobody::new();
    let server = format!("127.0.0.1:{}", nobody.port);
    let tried = Example::all("consumer").into_iter().map(|consumer| {
        let mut command = consumer.command(&[&server, "TAPELINE", "1", "TAPE"]);
        (consumer, command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    });
    // All of them wait between two attempts.
    for (consumer, mut child) in tried.collect::<Vec<_>>() {
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        for _ in 0..2 {
            let line = said.next().unwrap().unwrap();
            let expected = format!("note: {server} ");
            assert!(line.starts_with(&expected) && line.contains("refused"), "{}: {line}", consumer.name);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn who_has_the_password_is_let_in_and_an_unknown_item_or_service_is_told() {
    let place = Place::new(0);
    let folder = place.folder.path();
    certificates::write(folder);
    let users = folder.join("users.txt");
    let passwd = ["plant", "passwd", "alice", "--users", users.to_str().unwrap()];
    let mut passwd = tapeline(&passwd).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    passwd.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(passwd.wait().unwrap().success());
    let config = configure(
        &place,
        "[hub]\nport = 0\nunknown = \"closed\"\ncert = \"server.pem\"\nkey = \"server.key\"\n\
         [hub.access]\nlogin = \"password\"\nusers = \"users.txt\"\n",
    );
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    let ready = plant.says();
    let port = ready["hub"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let server = format!("localhost:{port}");
    thread::scope(|scope| {
        for consumer in Example::all("consumer") {
            let (server, folder) = (&server, &folder);
            scope.spawn(move || logs_in(&consumer, server, folder));
        }
    });
}

/// Logs in with right and wrong passwords and certificates.
fn logs_in(consumer: &Example, server: &str, folder: &Path) {
    // Without a limit of messages, it ends with its session alone.
    let command = |password: &str, certificates: &str, service: &str| {
        let mut command = consumer.command(&[server, service, "0", "NO_SUCH_ITEM"]);
        command.env("TAPELINE_USER", "alice").env("TAPELINE_PASSWORD", password);
        command.env("TAPELINE_CA", folder.join(certificates));
        command
    };
    for (service, expected) in [
        ("TAPELINE", "status NO_SUCH_ITEM closed: There is no such item"),
        ("NO_SUCH_SERVICE", "The service is not in the directory."),
    ] {
        let mut reading = Reading::start(&mut command("correct horse", "ca.pem", service));
        // The service may be down at first.
        while !reading.line().contains(expected) {}
    }
    for (password, certificates, expected) in [
        ("wrong horse", "ca.pem", "The name or the password is wrong"),
        ("correct horse", "no-such-file.pem", "no-such-file.pem"),
    ] {
        let said = command(password, certificates, "TAPELINE").output().unwrap();
        let errors = String::from_utf8(said.stderr).unwrap();
        assert_eq!(said.status.code(), Some(1), "{}: {errors}", consumer.name);
        assert!(errors.contains(&format!("error: {server}: ")), "{}: {errors}", consumer.name);
        assert!(errors.contains(expected), "{}: {errors}", consumer.name);
    }
}

#[test]
fn a_hub_gets_an_image_and_every_update_of_a_publisher() {
    let mut hub = Running::start(&["omm", "accept", "--port", "0"]);
    let listening = hub.says();
    let server = format!("localhost:{}", listening["port"]);
    for (at, publisher) in Example::all("publisher").iter().enumerate() {
        let item = format!("ITEM{at}");
        let (status, said, errors) = publisher.run(&[&server, "NI_PUB", &item, "5"]);
        assert_eq!((status, said.as_str()), (Some(0), "published 5\n"), "{}: {errors}", publisher.name);
        let (mut received, mut last) = (Vec::new(), Value::Null);
        while received.len() < 6 {
            let event = hub.says();
            if event["item"] == json!(item) {
                received.push(event["event"].clone());
                last = event;
            }
        }
        let expected: Vec<_> = std::iter::once("refresh").chain(["update"; 5]).map(Value::from).collect();
        assert_eq!(received, expected, "{}", publisher.name);
        let fields = json!({"BID": "39.96", "ASK": "40.05", "BIDSIZE": "5"});
        let texts = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(Value::from(texts(&last["fields"][name])), *value, "{}: {last}", publisher.name);
        }
    }
}
