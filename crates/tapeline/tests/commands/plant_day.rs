//! A day in operation: logs that machines read, certificates that end and are renewed, and a configuration that is
//! reloaded while clients are connected.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value, json};
use stage::{Place, Running, tapeline};

use crate::stage;

/// A plant with a hub, whose configuration a test changes.
struct Market {
    place: Place,
    plant: Running,
    talk: BufReader<ChildStderr>,
    config: PathBuf,
    ready: Value,
}

impl Market {
    /// `rest`: the tables after the feed. `command`: more arguments and variables.
    fn open(rest: &str, command: impl FnOnce(&mut Command)) -> Self {
        Self::open_at(Place::new(1), rest, command)
    }

    fn open_at(place: Place, rest: &str, more: impl FnOnce(&mut Command)) -> Self {
        let config = PathBuf::from(place.config(""));
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, text + rest).unwrap();
        let mut command = tapeline(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
        more(&mut command);
        let (mut plant, talk) = Running::talking(&mut command);
        let ready = plant.says();
        Self { place, plant, talk: BufReader::new(talk), config, ready }
    }

    fn path(&self, name: &str) -> String {
        self.place.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Sends a heartbeat of the feed: the service is up, without a message yet.
    fn wake(&self) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let heartbeat = [b"TAPELINE  ".as_slice(), &1u64.to_be_bytes(), &[0, 0]].concat();
        socket.send_to(&heartbeat, self.place.lines[0]).unwrap();
    }

    /// Replaces a text of the configuration.
    fn set(&self, from: &str, to: &str) {
        let text = std::fs::read_to_string(&self.config).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&self.config, text.replace(from, to)).unwrap();
    }

    fn reload(&self) {
        kill_process(Pid::from_child(&self.plant.child), Signal::HUP).unwrap();
    }

    /// The lines on standard error, up to a line with this text.
    fn talks_until(&mut self, says: &str) -> String {
        let mut said = String::new();
        while !said.contains(says) {
            assert!(self.talk.read_line(&mut said).unwrap() > 0, "it ended: {said}");
        }
        said
    }

    /// A page of the plant.
    fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.ready["web"].as_str().unwrap()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn server(&self) -> String {
        self.ready["hub"].as_str().unwrap().replace("127.0.0.1", "localhost")
    }

    /// A client of one item, with the hub's first answer for that item. The service may come up only after the login:
    /// a heartbeat of the feed takes its time to the hub.
    fn watch(&self, item: &str) -> (Running, Value) {
        let server = self.server();
        let watch = ["omm", "watch", "--server", &server, "--service", "TAPELINE", item, "--format", "json"];
        let mut client = Running::start(&[&watch[..], &["--attempts", "1"]].concat());
        loop {
            let said = client.says();
            let text = said["state"]["text"].as_str().unwrap_or_default();
            if said["item"] == item && !text.starts_with("The service is down") {
                return (client, said["state"].clone());
            }
        }
    }

    /// Ends the plant; returns the rest of its standard error.
    fn end(mut self) -> String {
        self.plant.ask_to_end();
        while self.plant.may_say().is_some() {}
        let mut rest = String::new();
        self.talk.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// Reads a line of logfmt.
fn pairs(line: &str) -> Map<String, Value> {
    let mut all = Map::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=').unwrap_or_else(|| panic!("no pair: {line}"));
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}: {line}");
        let mut quoted = serde_json::Deserializer::from_str(value).into_iter::<String>();
        let (value, length) = match value.starts_with('"') {
            true => (quoted.next().unwrap().unwrap(), quoted.byte_offset()),
            false => {
                let plain = value.split(' ').next().unwrap();
                (plain.to_owned(), plain.len())
            }
        };
        assert!(all.insert(name.to_owned(), value.into()).is_none(), "{name} twice: {line}");
        let value = rest.split_once('=').unwrap().1;
        rest = value[length..].strip_prefix(' ').unwrap_or_else(|| {
            assert_eq!(value.len(), length, "no space behind {name}: {line}");
            ""
        });
    }
    all
}

/// A plant whose client logs in, is denied an item and goes, and whose reload fails; all lines on standard error.
fn lines_of_a_day(command: impl FnOnce(&mut Command)) -> String {
    let access = "[hub]\nport = 0\nunknown = \"wait\"\n[hub.access]\n[[hub.access.rule]]\nitems = [\"TAPE\"]\naction = \"allow\"\n";
    let mut market = Market::open(access, command);
    market.wake();
    let server = market.server();
    let watch = ["omm", "watch", "--server", &server, "--service", "TAPELINE", "--user", "al\"ice é", "RIMU"];
    let client = tapeline(&[&watch[..], &["--attempts", "1", "--until-closed"]].concat()).output().unwrap();
    let mut said = market.talks_until("gone");
    assert!(said.contains("denied"), "{said} {client:?}");
    market.set("items =", "itmes =");
    market.reload();
    said += &market.talks_until("users and rules stay as they were");
    said + &market.end()
}

/// Checks what every line of a log for machines has, and returns the messages, with the line.
fn checked(lines: Vec<Map<String, Value>>) -> BTreeMap<String, Map<String, Value>> {
    for line in &lines {
        let names: Vec<&str> = line.keys().map(String::as_str).collect();
        assert_eq!(names[..4], ["time", "level", "part", "message"], "{line:?}");
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == "2026-11-21T08:40:05.000Z".len() && time.ends_with('Z'), "{time}");
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
        assert!(
            ["info", "notice", "warning", "error"].contains(&line["level"].as_str().unwrap()),
            "{line:?}"
        );
    }
    lines.into_iter().map(|line| (line["message"].as_str().unwrap().to_owned(), line)).collect()
}

#[test]
fn every_line_of_a_log_for_machines_can_be_read() {
    let json = lines_of_a_day(|command| _ = command.args(["--log", "json"]));
    let json = checked(json.lines().map(|line| serde_json::from_str(line).expect(line)).collect());
    let logfmt = lines_of_a_day(|command| _ = command.env("TAPELINE_LOG", "logfmt"));
    let logfmt = checked(logfmt.lines().map(pairs).collect());
    for (lines, number) in [(&json, json!(0)), (&logfmt, json!("0"))] {
        let is_login = |message: &str| {
            message.starts_with("hub: session 0 (127.0.0.1:") && message.ends_with(" login al\\\"ice é")
        };
        let login = lines.iter().find(|(message, _)| is_login(message)).unwrap().1;
        assert_eq!((&login["part"], &login["level"]), (&json!("hub"), &json!("info")), "{login:?}");
        assert_eq!((&login["user"], &login["session"]), (&json!("al\"ice é"), &number), "{login:?}");
        let denied = lines.iter().find(|(message, _)| message.contains("denied")).unwrap().1;
        assert_eq!((&denied["item"], &denied["service"]), (&json!("RIMU"), &json!("TAPELINE")), "{denied:?}");
        let gone = lines.iter().find(|(message, _)| message.contains("gone")).unwrap().1;
        assert!(gone.contains_key("why") && gone.contains_key("updates"), "{gone:?}");
        let (_, fault) = lines.iter().find(|(message, _)| message.contains("unknown key `itmes`")).unwrap();
        assert_eq!((&fault["level"], &fault["hint"]), (&json!("error"), &json!("did you mean `items`?")));
        let kept = lines.iter().find(|(message, _)| message.starts_with("users and rules stay")).unwrap().1;
        assert_eq!((&kept["level"], &kept["part"]), (&json!("notice"), &json!("plant")));
    }
}

#[test]
fn every_line_of_a_plants_text_begins_with_its_time() {
    // As `tapeline plant` runs at a terminal, from its first line to its last.
    let place = Place::new(1);
    let config = place.config("[hub]\nport = 0\n");
    let (plant, talk) = Running::talking(&mut tapeline(&["plant", "--config", &config]));
    let mut talk = BufReader::new(talk);
    let mut said = String::new();
    while !said.contains("clients connect to") {
        assert!(talk.read_line(&mut said).unwrap() > 0, "{said}");
    }
    plant.ask_to_end();
    talk.read_to_string(&mut said).unwrap();
    assert!(said.contains(" plant ") && said.contains("publishes to ring"), "{said}");
    for line in (said + &lines_of_a_day(|_| {})).lines() {
        let time = line.split(' ').next().unwrap();
        let is_more = line.starts_with("hint: ") || line.starts_with("  because: ");
        let is_time = time.len() == "2026-11-21T08:40:05.000000Z".len();
        assert!(is_more || is_time && time.parse::<jiff::Timestamp>().is_ok(), "{line}");
    }
}

#[test]
fn items_that_a_client_does_not_get_are_named_and_the_others_counted() {
    let mut market = Market::open("[hub]\nport = 0\nunknown = \"closed\"\n", |_| {});
    market.wake();
    // The service is up.
    drop(market.watch("FIRST"));
    let said = market.talks_until("item refused");
    assert!(said.contains(" item refused "), "{said}");
    market.talks_until(" gone ");
    let server = market.server();
    let names: Vec<String> = (0..40).map(|number| format!("NONE{number}")).collect();
    let mut words = vec!["omm", "watch", "--server", &server, "--service", "TAPELINE", "--user", "al ice"];
    words.extend(names.iter().map(String::as_str));
    let client = Running::start(&[&words[..], &["--format", "json", "--attempts", "1"]].concat());
    let said = market.talks_until(" others\n");
    let refused: Vec<&str> =
        said.lines().filter_map(|line| line.split_once("item refused al ice: ")).map(|(_, of)| of).collect();
    let named: Vec<String> =
        names[..5].iter().map(|name| format!("{name} of TAPELINE: There is no such item")).collect();
    assert_eq!(refused[..5], named, "{said}");
    assert_eq!(refused[5..], ["and 35 others"], "{said}");
    drop(client);
    let json = market.end();
    assert!(!json.contains("NONE9"), "{json}");
}

#[test]
fn the_last_error_is_a_line_of_the_log_too() {
    let output = tapeline(&["plant", "--config", "/none/plant.toml", "--log", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let line: Map<String, Value> = serde_json::from_str(&text).expect(&text);
    assert_eq!((&line["level"], &line["message"]), (&json!("error"), &json!("cannot read /none/plant.toml")));
    assert!(line["causes"][0].as_str().unwrap().contains("No such file"), "{text}");
    assert!(line["hint"].as_str().unwrap().contains("tapeline plant sample"), "{text}");
    // A variable that is no format.
    let mut command = tapeline(&["tick", "serve", "--config", "/none/tick.toml"]);
    let output = command.env("TAPELINE_LOG", "xml").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "error: TAPELINE_LOG is \"xml\"\nhint: text, logfmt or json\n");
}

#[test]
fn commands_that_send_and_serve_have_the_same_log() {
    let seconds = ["--duration", "1s", "--rate", "1k"];
    let simulated = ["feed", "simulate", "--to", "127.0.0.1:9", "--symbols", "2000", "--log", "json"];
    let nobody = ["--server", "127.0.0.1:1", "--attempts", "1", "--log", "json"];
    for (words, more, part, level, message) in [
        (&simulated[..], &seconds[..], "simulate", "notice", "trading will not begin"),
        (&["omm", "watch", "A"], &nobody, "watch", "notice", "no connection to 127.0.0.1:1: "),
        (&["omm", "publish", "A"], &nobody, "publish", "notice", "no connection to 127.0.0.1:1: "),
        (
            &["omm", "serve", "--port", "1", "--cert", "/none", "--key", "/none"],
            &nobody[4..],
            "serve",
            "error",
            "cannot read /none",
        ),
        (
            &["feed", "replay", "/none", "--to", "127.0.0.1:9"],
            &nobody[4..],
            "replay",
            "error",
            "cannot open /none",
        ),
    ] {
        let output = tapeline(&[words, more].concat()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<Map<String, Value>> =
            text.lines().map(|line| serde_json::from_str(line).expect(&text)).collect();
        let is_it = |line: &&Map<String, Value>| line["message"].as_str().unwrap().contains(message);
        let line = lines.iter().find(is_it).expect(&text);
        assert_eq!((&line["part"], &line["level"]), (&json!(part), &json!(level)), "{text}");
    }
}

#[test]
fn lines_for_the_journal_of_systemd_have_their_priority() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let file = std::fs::File::create(&path).unwrap();
    let about = file.metadata().unwrap();
    let run = |stream: String| {
        std::fs::write(&path, "").unwrap();
        let mut command = tapeline(&["plant", "--config", "/none/plant.toml"]);
        let appending = std::fs::File::options().append(true).open(&path).unwrap();
        command.env("JOURNAL_STREAM", stream).stdout(Stdio::null()).stderr(appending);
        assert_eq!(command.status().unwrap().code(), Some(1));
        std::fs::read_to_string(&path).unwrap()
    };
    let text = run(format!("{}:{}", about.dev(), about.ino()));
    assert!(text.lines().count() > 2 && text.lines().all(|line| line.starts_with("<3>")), "{text}");
    // The journal of another process.
    let other = run(format!("{}:{}", about.dev(), about.ino() + 1));
    assert_eq!(text.replace("<3>", ""), other);
}

/// Writes an authority (`ca.pem`), and returns it.
fn authority(folder: &Path) -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    std::fs::write(folder.join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    Issuer::new(params, key)
}

/// Writes a certificate for `localhost` and its key, which ends at the beginning of the day so many days from now.
fn certificate(folder: &Path, issuer: &Issuer<'static, KeyPair>, days: i64) {
    let ends = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let ends = ends.checked_add(jiff::Span::new().days(days)).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    server.not_after = date_time_ymd(ends.year().into(), ends.month() as u8, ends.day() as u8);
    std::fs::write(folder.join("server.pem"), server.signed_by(&key, issuer).unwrap().pem()).unwrap();
    std::fs::write(folder.join("server.key"), key.serialize_pem()).unwrap();
}

/// A client of a market over TLS that has logged in, with its output.
fn client(market: &Market, more: &[&str]) -> Running {
    let (server, ca) = (market.server(), market.path("ca.pem"));
    let watch = ["omm", "watch", "--server", &server, "--service", "TAPELINE", "TAPE", "--tls", "--ca", &ca];
    let mut client = Running::start(&[&watch[..], &["--format", "json"], more].concat());
    loop {
        let said = client.says();
        if said["event"] == "ready" {
            return client;
        }
    }
}

#[test]
fn a_certificate_that_ends_soon_is_warned_of_and_renewed_without_dropping_a_client() {
    let place = Place::new(1);
    let folder = place.folder.path().to_owned();
    let issuer = authority(&folder);
    certificate(&folder, &issuer, 4);
    let tls = "cert = \"server.pem\"\nkey = \"server.key\"\n";
    let hub = format!("[hub]\nport = 0\nunknown = \"wait\"\n{tls}[hub.web]\nport = 0\n");
    let mut market = Market::open_at(place, &hub, |_| {});
    let said = market.talks_until("the certificate of [hub] expires in 3 days");
    assert!(!said.contains("error"), "{said}");
    market.talks_until("hint: put the renewed files where cert and key say, and reload the plant");
    let ends = |market: &Market| {
        let metrics = market.page("/metrics");
        let name = "tapeline_certificate_expires_timestamp_seconds{server=\"hub\"} ";
        let line =
            metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{metrics}"));
        line.parse::<f64>().unwrap()
    };
    let first = ends(&market);
    let days = (first - jiff::Timestamp::now().as_second() as f64) / 86_400.0;
    assert!((3.0..4.0).contains(&days), "{days}");
    // A service without data is no fault of the certificate.
    let health = market.page("/health");
    assert!(!health.contains("certificate"), "{health}");
    let check = tapeline(&["plant", "check", market.config.to_str().unwrap()]).output().unwrap();
    let warned = String::from_utf8(check.stderr).unwrap();
    assert!(warned.contains("warning: the certificate of [hub] expires in 3 days"), "{warned}");

    market.wake();
    let mut old = client(&market, &["--attempts", "1"]);
    // A key that does not belong to its certificate changes nothing.
    let sound = std::fs::read(folder.join("server.key")).unwrap();
    std::fs::write(folder.join("server.key"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
    market.reload();
    let said = market.talks_until("and certificates too");
    assert!(said.contains("cannot use this certificate"), "{said}");
    std::fs::write(folder.join("server.key"), sound).unwrap();

    certificate(&folder, &issuer, 400);
    market.reload();
    market.talks_until("[hub] has another certificate for new connections; it expires at ");
    while ends(&market) == first {}
    drop(client(&market, &["--attempts", "1"]));
    // Who has connected before goes on.
    let file = market.path("day.itch");
    let simulate = ["feed", "simulate", "--symbols", "3", "--messages", "1k", "--write", &file];
    assert!(tapeline(&simulate).output().unwrap().status.success());
    market.place.replay(Path::new(&file), 0);
    while old.says()["event"] != "update" {}
    let rest = market.end();
    assert!(!rest.contains("expires in"), "{rest}");
}

#[test]
fn a_reload_applies_what_it_can_and_says_why_the_rest_waits_as_a_check_says_before() {
    let hub = "[hub]\nport = 0\nunknown = \"wait\"\n[hub.access]\n[[hub.access.rule]]\nitems = [\"TAPE\"]\naction = \"allow\"\n";
    let mut market = Market::open(hub, |_| {});
    let ring = market.place.ring.clone();
    let config = market.config.to_str().unwrap().to_owned();
    let check = || {
        let output =
            tapeline(&["plant", "check", &config, "--running", &ring, "--format", "json"]).output().unwrap();
        let checked: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        (output.status.code(), checked["changes"].clone())
    };
    assert_eq!(check(), (Some(0), json!([])));
    market.set("[\"TAPE\"]", "[\"RIMU\"]");
    assert_eq!(check(), (Some(0), json!([{ "key": "hub.access.rule" }])));
    market.set("stale_after = \"0s\"", "stale_after = \"9s\"");
    market.set("unknown = \"wait\"", "unknown = \"closed\"");
    let (status, changes) = check();
    assert_eq!(status, Some(3));
    let keys: Vec<&str> =
        changes.as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["feed.test.stale_after", "hub.access.rule", "hub.unknown"]);
    assert_eq!(changes[0]["refused"], "a feed's sockets, lines and books begin with the plant");
    market.wake();
    let refused = |market: &Market, item: &str| market.watch(item).1["code"] == "NOT_ENTITLED";
    assert!(!refused(&market, "TAPE") && refused(&market, "RIMU"));
    market.reload();
    let said = market.talks_until("read again: 0 users, 1 rules");
    let line = "warning: feed.test.stale_after was not changed: a feed's sockets, lines and books begin with the plant";
    assert!(said.contains(line) && said.contains("warning: hub.unknown was not changed: "), "{said}");
    assert_eq!(said.matches("hint: it takes effect at the plant's next start").count(), 2, "{said}");
    assert!(refused(&market, "TAPE") && !refused(&market, "RIMU"));
    // What was applied is no change any more.
    let (status, changes) = check();
    assert_eq!((status, changes.as_array().unwrap().len()), (Some(3), 2), "{changes}");
    let shown = format!("/dev/shm/tapeline.{ring}.config");
    assert_eq!(std::fs::metadata(&shown).unwrap().mode() & 0o777, 0o600);
    market.end();
    assert!(!Path::new(&shown).exists());
    let output = tapeline(&["plant", "check", &config, "--running", &ring]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_plant_without_a_hub_reloads_too() {
    let mut market = Market::open("", |_| {});
    market.set("stale_after = \"0s\"", "stale_after = \"9s\"");
    market.reload();
    market.talks_until("feed.test.stale_after was not changed");
    market.talks_until("plant.toml read again");
    market.end();
}

#[test]
fn a_plant_goes_on_into_the_next_session_with_its_clients_its_journal_and_a_backup() {
    let mut market =
        Market::open("[hub]\nport = 0\nunknown = \"wait\"\n[journal]\nfolder = \"journal\"\n", |_| {});
    let [file, journal, copy] = ["day.itch", "journal", "copy"].map(|name| market.path(name));
    let simulate = ["feed", "simulate", "--symbols", "3", "--messages", "1k", "--write", &file];
    assert!(tapeline(&simulate).output().unwrap().status.success());
    market.wake();
    let (mut client, _) = market.watch("TAPE");
    let line = market.place.lines[0].to_string();
    for session in ["TAPELINE", "NEXT"] {
        let replay = ["feed", "replay", &file, "--to", &line, "--rate", "20k", "--session", session];
        assert!(tapeline(&replay).output().unwrap().status.success());
        // The item of the client gets an image, then updates, without a status in between.
        let mut events = std::iter::repeat_with(|| client.says()["event"].as_str().unwrap().to_owned())
            .filter(|event| event != "directory");
        assert_eq!(events.find(|event| event != "update").unwrap(), "refresh");
        assert_eq!(events.find(|event| event != "refresh").unwrap(), "update");
        let backup = tapeline(&["journal", "backup", &journal, &copy]).output().unwrap();
        assert!(backup.status.success(), "{backup:?}");
    }
    market.plant.ask_to_end();
    let report = market.plant.says();
    // Whoever has read the report may kill the process: what it showed is gone already.
    assert!(!PathBuf::from(format!("/dev/shm/tapeline.{}.config", market.place.ring)).exists());
    let feed = &report["feeds"][0];
    assert_eq!(
        (&feed["session"], &feed["messages"], &feed["missing_messages"]),
        (&json!("NEXT"), &json!(2_000), &json!(0))
    );
    assert!(market.plant.child.wait().unwrap().success());
    let output = tapeline(&["journal", "verify", &journal, "--format", "json"]).output().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&found["ticks"], &found["missing"], &found["end"]),
        (&report["ticks"], &json!(0), &json!("closed"))
    );
}

/// The sessions that a plant's log says are received, up to this one.
fn wait_for_session(talk: &mut impl BufRead, session: &str) {
    let wanted = format!("session {session} is received");
    assert!(talk.lines().map_while(Result::ok).any(|line| line.contains(&wanted)), "no {wanted}");
}

/// The package's scripts replace the file under a running plant, whose simulated exchange begins a session every six hours.
#[test]
fn a_simulated_exchange_begins_its_next_session_though_the_programs_file_was_replaced() {
    let place = Place::new(1);
    let config = place.config("simulate = \"1k\"");
    let file = place.folder.path().join("tapeline");
    let installed = Path::new(env!("CARGO_BIN_EXE_tapeline"));
    // A link on the same disk, because the program is large.
    std::fs::hard_link(installed, &file).or_else(|_| std::fs::copy(installed, &file).map(drop)).unwrap();
    let (plant, talk) = Running::talking(Command::new(&file).args(["plant", "--config", &config]));
    let mut talk = BufReader::new(talk);
    wait_for_session(&mut talk, "SIM0000001");
    std::fs::remove_file(&file).unwrap();
    let own = plant.child.id();
    let exchange = std::fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap();
    kill_process(Pid::from_raw(exchange.trim().parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    wait_for_session(&mut talk, "SIM0000002");
}
