//! A feed's state as published to a subscriber in another process: false ends, silence, gaps, other sessions.

use crate::stage;

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use stage::{Place, Running};
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, Request, end_of_session, heartbeat};

/// Interval of the feed's heartbeats while the test waits, where the feed must not fall silent.
const HEARTBEAT: Duration = Duration::from_millis(50);

/// The lines of `tapeline plant watch`, as they are printed.
struct Watch(Receiver<Value>);

impl Watch {
    fn of(place: &Place) -> Self {
        let mut watch = Running::start(&["plant", "watch", "--ring", &place.ring, "--from", "oldest"]);
        let (says, said) = channel();
        thread::spawn(move || while watch.may_say().is_some_and(|tick| says.send(tick).is_ok()) {});
        Self(said)
    }

    /// Waits for the next tick for which `is` returns true; calls `meanwhile` during silence.
    #[track_caller]
    fn until(&self, is: impl Fn(&Value) -> bool, mut meanwhile: impl FnMut()) -> Value {
        let mut others = Vec::new();
        loop {
            match self.0.recv_timeout(HEARTBEAT) {
                Ok(tick) if is(&tick) => return tick,
                Ok(tick) => others.push(tick),
                Err(RecvTimeoutError::Timeout) => meanwhile(),
                Err(RecvTimeoutError::Disconnected) => panic!("the plant has ended: {others:#?}"),
            }
        }
    }

    #[track_caller]
    fn text(&self, text: &str, meanwhile: impl FnMut()) -> Value {
        self.until(|tick| tick["text"] == text, meanwhile)
    }

    #[track_caller]
    fn message(&self, sequence: u64) -> Value {
        self.until(|tick| tick["kind"] == "update" && tick["feed_seq"] == json!(sequence), || ())
    }
}

/// An exchange that the test controls.
struct Exchange(UdpSocket);

impl Exchange {
    fn new() -> Self {
        Self(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
    }

    fn says(&self, line: SocketAddrV4, datagram: &[u8]) {
        self.0.send_to(datagram, line).unwrap();
    }
}

/// A datagram of one message: a system event in the day's seventh nanosecond.
fn packet(session: MoldSession, sequence: u64) -> Vec<u8> {
    let mut buffer = [0; 64];
    let mut packet = PacketBuilder::new(&mut buffer, session, sequence).unwrap();
    packet.push(b"S\0\0\0\0\0\0\0\0\0\x07O").unwrap();
    let length = packet.finish();
    buffer[..length].to_vec()
}

#[test]
fn a_plant_that_ends_with_the_session_outlives_an_end_that_is_none() {
    let (place, session, exchange) = (Place::new(1), MoldSession::new("DAY1"), Exchange::new());
    let mut plant = place.plant("stale_after = \"5s\"");
    let (watch, line) = (Watch::of(&place), place.lines[0]);
    exchange.says(line, &packet(session, 1));
    exchange.says(line, &end_of_session(session, 2));
    watch.text("the feed's session ended with message 1", || ());
    // The plant could end now, but the feed continues.
    exchange.says(line, &packet(session, 2));
    exchange.says(line, &packet(session, 3));
    watch.text("the feed's session goes on after message 1: its end was announced in error", || ());
    watch.message(3);
    exchange.says(line, &end_of_session(session, 4));
    watch.text("the feed's session ended with message 3", || ());
    let report = plant.says();
    let feed = &report["feeds"][0];
    assert_eq!((&feed["messages"], &feed["missing_messages"]), (&json!(3), &json!(0)), "{feed}");
    assert_eq!(feed["false_ends"], json!(1), "{feed}");
}

#[test]
fn silence_and_holes_are_told_as_they_come_and_go() {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (place, session, exchange) = (Place::new(2), MoldSession::new("DAY1"), Exchange::new());
    let address = server.local_addr().unwrap();
    let mut plant = place.plant(&format!(
        "stale_after = \"500ms\"\nreorder_time = \"5ms\"\n[feed.recovery]\ntimeout = \"20s\"\ntime = \"60s\"\n\
         servers = [\"{address}\"]"
    ));
    let (watch, a, b) = (Watch::of(&place), place.lines[0], place.lines[1]);
    let is = |state: &'static str| move |tick: &Value| tick["kind"] == "status" && tick["state"] == state;
    for line in [a, b] {
        exchange.says(line, &packet(session, 1));
    }
    let live = watch.until(is("live"), || ());
    assert_eq!(live["suspect"], Value::Null, "{live}");

    let silent = watch.text("line B is silent, others go on", || exchange.says(a, &heartbeat(session, 2)));
    assert_eq!((&silent["state"], &silent["suspect"]), (&json!("live"), &Value::Null), "{silent}");

    let stale = watch.until(is("stale"), || ());
    let said = (&stale["text"], &stale["suspect"]);
    assert_eq!(said, (&json!("stale: no line is heard of"), &json!(true)), "{stale}");

    // The feed is back, after a lost message.
    exchange.says(a, &packet(session, 3));
    let alive = || exchange.says(a, &heartbeat(session, 4));
    let back = watch.until(is("live"), alive);
    assert_eq!(
        (&back["text"], &back["suspect"]),
        (&json!("live: the feed is heard of"), &Value::Null),
        "{back}"
    );
    let asks = watch.text("recovering: messages from 2 on are missing and asked for", alive);
    assert_eq!((&asks["state"], &asks["suspect"]), (&json!("recovering"), &json!(true)), "{asks}");
    let mut request = [0; 64];
    let (length, plant_address) = server.recv_from(&mut request).unwrap();
    assert_eq!(Request::decode(&request[..length]), Ok(Request::for_gap(session, 2, 2)));
    server.send_to(&packet(session, 2), plant_address).unwrap();
    let live = watch.until(is("live"), alive);
    assert_eq!(live["suspect"], Value::Null, "{live}");

    let both = || [a, b].into_iter().for_each(|line| exchange.says(line, &heartbeat(session, 4)));
    watch.text("line B is heard of again", both);
    for line in [a, b] {
        exchange.says(line, &end_of_session(session, 4));
    }
    let report = plant.says();
    let feed = &report["feeds"][0];
    assert_eq!((&feed["messages"], &feed["missing_messages"]), (&json!(3), &json!(0)), "{feed}");
    assert_eq!((&feed["state"], &feed["recovery"]["recovered"]), (&json!("live"), &json!(1)), "{feed}");
}

#[test]
fn without_a_date_each_session_begins_the_day_on_which_it_comes() {
    let (place, exchange) = (Place::new(1), Exchange::new());
    let config = place.config("stale_after = \"5s\"");
    let text = std::fs::read_to_string(&config).unwrap().replace("date = \"2020-01-30\"\n", "");
    std::fs::write(&config, text).unwrap();
    let mut plant =
        Running::start(&["plant", "--config", &config, "--until-end-of-session", "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let (watch, line) = (Watch::of(&place), place.lines[0]);
    for (day, session) in ["DAY1", "DAY2"].map(MoldSession::new).into_iter().enumerate() {
        exchange.says(line, &packet(session, 1));
        let tick = watch.message(1);
        let time = |member: &str| Timestamp::from_nanosecond(tick[member].as_i64().unwrap().into()).unwrap();
        let there = time("wire_ns").to_zoned(TimeZone::get("America/New_York").unwrap());
        let midnight = there.start_of_day().unwrap().timestamp();
        assert_eq!(time("event_ns").duration_since(midnight).as_nanos(), 7, "day {day}: {tick}");
        exchange.says(line, &end_of_session(session, 2));
        watch.text("the feed's session ended with message 1", || ());
    }
    assert_eq!(plant.says()["feeds"][0]["messages"], json!(2));
}

/// What an operator reads in the log of a feed that is silent, then loses messages, then has a line that others replace.
#[test]
fn the_log_has_the_states_and_the_losses_of_a_feed() {
    let (place, session, exchange) = (Place::new(2), MoldSession::new("DAY1"), Exchange::new());
    let config = place.config("stale_after = \"500ms\"");
    let (mut plant, talk) = Running::start_talking(&["plant", "--config", &config, "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(talk)).map(Result::unwrap);
    let mut told =
        |part: &str| lines.find(|line| line.contains(part)).unwrap_or_else(|| panic!("without {part}"));
    told("warning: feed test: nothing has arrived on any line since the start");
    exchange.says(place.lines[0], &packet(session, 1));
    told("feed test: session DAY1 is received");
    // Nothing follows.
    told("warning: feed test: stale: nothing has arrived on any line for 500ms; its items are suspect");
    exchange.says(place.lines[0], &packet(session, 10));
    told("warning: feed test: 8 messages are lost on every line: 2 to 9");
    told("hint: items are suspect until the next session");
    exchange.says(place.lines[0], &end_of_session(session, 11));
    told("feed test: the session is over, with message 10");
    plant.ask_to_end();
    assert_eq!(plant.says()["feeds"][0]["missing_messages"], json!(8));
}

/// The plant starts in the middle of a session: nothing is missing, but items are suspect; a warning has the reason
/// and a remedy.
#[test]
fn a_plant_that_comes_late_says_what_it_lacks() {
    let (place, session, exchange) = (Place::new(1), MoldSession::new("DAY1"), Exchange::new());
    let config = place.config("");
    let text = std::fs::read_to_string(&config).unwrap().replace("start = \"from-one\"\n", "");
    std::fs::write(&config, text).unwrap();
    let (mut plant, mut talk) = Running::start_talking(&["plant", "--config", &config, "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let watch = Watch::of(&place);
    let late = "heard from message 500 on: books without those before it may be wrong until the next session";
    let told = watch.text(late, || exchange.says(place.lines[0], &packet(session, 500)));
    assert_eq!(told["suspect"], json!(true), "{told}");
    let mut looking = Running::start(&["stat", &place.ring, "--every", "50ms", "--format", "json"]);
    loop {
        let feed = looking.says()["feeds"][0].clone();
        if feed["suspect"] == json!(true) {
            assert_eq!(feed["missing"], json!(0));
            break;
        }
    }
    plant.ask_to_end();
    let report = plant.says();
    assert_eq!(report["feeds"][0]["begun_late_at"], json!(500), "{report}");
    let mut said = String::new();
    std::io::Read::read_to_string(&mut talk, &mut said).unwrap();
    let warning = "warning: feed test: message 500 of the session was the first received: items are suspect until the next session";
    assert!(
        said.contains(warning)
            && said.contains("hint: start = \"from-one\" in [[feed]] with [feed.recovery]"),
        "{said}"
    );
}
