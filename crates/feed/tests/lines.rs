//! Two recorded lines of one feed: each alone, and both arbitrated, against `expected.json` beside the captures.

use crate::shared_data;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared_data::{bytes, expected};
use tapeline_feed::capture::{self, Recording};
use tapeline_feed::line::{Arbiter, ArbiterSettings, Line, Session, Sink, Start};
use tapeline_feed::summary::Summary;
use tapeline_feed::{Protocol, book};
use tapeline_nanos::Nanos;

/// A recorded datagram.
struct Datagram {
    line: Line,
    time: Nanos,
    payload: Vec<u8>,
}

fn recorded(file: &str, line: Line) -> Vec<Datagram> {
    let file = bytes(&format!("data/moldudp64-derived/{file}")).unwrap();
    let Recording::Datagrams(mut capture) = capture::open(&file[..]).unwrap() else {
        panic!("a capture of packets")
    };
    let mut datagrams = Vec::new();
    while let Some(datagram) = capture.next().unwrap() {
        datagrams.push(Datagram { line, time: datagram.time, payload: datagram.payload.to_vec() });
    }
    datagrams
}

/// Rejoins the messages in the files' framing, and adds them up.
struct Joined {
    summary: Summary,
    file: Vec<u8>,
    next: u64,
}

impl Sink for Joined {
    fn message(&mut self, sequence: u64, bytes: &[u8], received: Nanos) {
        assert_eq!(sequence, self.next, "each message once and in order");
        self.next = sequence + 1;
        self.file.extend(u16::try_from(bytes.len()).unwrap().to_be_bytes());
        self.file.extend(bytes);
        Sink::message(&mut self.summary, sequence, bytes, received);
    }

    fn gap(&mut self, first: u64, last: u64) {
        assert_eq!(first, self.next);
        self.next = last + 1;
        self.summary.gap(first, last);
    }

    fn end_of_session(&mut self, next: u64) {
        assert_eq!(next, self.next);
        assert_eq!(self.summary.end_of_session_sequence, None, "the end comes once");
        self.summary.end_of_session(next);
    }

    fn reset(&mut self, session: Session) {
        self.summary.reset(session);
    }
}

/// Runs datagrams through an arbiter in the order of their times, and tells what came of it in the file's words.
fn run(mut datagrams: Vec<Datagram>, wanted: &Value) -> (Joined, Arbiter, Value) {
    datagrams.sort_by_key(|datagram| datagram.time);
    // The recorded lines are quiet before the market opens: seconds pass between neighbours that were swapped.
    let settings = ArbiterSettings {
        start: Start::FromOne,
        window_age_ns: 60_000_000_000,
        ..ArbiterSettings::default()
    };
    let mut arbiter = Arbiter::new(settings);
    let summary = Summary::new(book::BookSettings::default());
    let mut joined = Joined { summary, file: Vec::new(), next: 1 };
    for datagram in &datagrams {
        arbiter.datagram(datagram.line, &datagram.payload, datagram.time, &mut joined).unwrap();
    }
    arbiter.flush(&mut joined);
    assert!(arbiter.is_ended());
    let lines = [Line::A, Line::B].map(|line| (line.letter(), arbiter.line(line)));
    let mut counts = json!({});
    let mut first = json!({});
    for (letter, line) in lines.iter().filter(|(_, line)| line.datagrams > 0) {
        counts[format!("{letter}_data_packets")] = json!(line.data_packets);
        counts[format!("{letter}_heartbeats")] = json!(line.heartbeats);
        counts[format!("{letter}_end_of_session")] = json!(line.ends_of_session);
        first[letter.to_string()] = json!(line.first);
        assert_eq!(line.messages, line.first + line.duplicates + line.late);
        assert_eq!(line.datagrams, line.data_packets + line.heartbeats + line.ends_of_session);
        assert_eq!(line.malformed.iter().sum::<u64>() + line.absurd + line.stale_session, 0);
    }
    // The file's own parser waits for ever, so for it what is late is not missing; nothing is late here.
    assert_eq!(arbiter.statistics().late, 0);
    let duplicates: u64 = lines.iter().map(|(_, line)| line.duplicates).sum();
    if duplicates > 0 {
        counts["duplicate_messages"] = json!(duplicates);
    }
    let summary = &joined.summary;
    let mut found = json!({
        "sessions": summary.sessions.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "counts": counts,
        "first_delivery_by_feed": first,
        "unique_messages": summary.messages,
        "next_sequence": arbiter.next_sequence(),
        "end_of_session_sequence": summary.end_of_session_sequence,
        "missing_ranges": summary.gaps,
        "missing_messages": summary.missing_messages,
    });
    // Not counted here: packets of which a part or all had come before.
    if !wanted["late_or_duplicate_packets"].is_null() {
        found["late_or_duplicate_packets"] = wanted["late_or_duplicate_packets"].clone();
    }
    (joined, arbiter, found)
}

#[test]
fn a_line_without_loss_is_the_whole_feed() {
    let Some(wanted) = expected("moldudp64-derived") else { return };
    let (joined, arbiter, found) = run(recorded("aapl5000-clean.pcap", Line::A), &wanted["clean"]);
    assert_eq!(found, wanted["clean"]);
    assert_eq!(
        json!(format!("{:x}", Sha256::digest(&joined.file))),
        wanted["clean_messages_rejoined_sha256"]
    );
    assert_eq!(arbiter.line(Line::A).missing(), 0);
    assert_eq!(arbiter.statistics().held, 0);
}

#[test]
fn each_line_alone_has_its_gaps() {
    let Some(wanted) = expected("moldudp64-derived") else { return };
    for (file, line, key) in [
        ("aapl5000-A.pcap", Line::A, "feed_A_alone"),
        // Alone, B is the first line that a plant has; its counts are named after it all the same.
        ("aapl5000-B.pcap", Line::B, "feed_B_alone"),
    ] {
        let (_, arbiter, found) = run(recorded(file, line), &wanted[key]);
        assert_eq!(found, wanted[key]);
        assert_eq!(json!(arbiter.line(line).missing()), wanted[key]["missing_messages"]);
    }
}

#[test]
fn two_lines_make_up_for_each_other() {
    let Some(wanted) = expected("moldudp64-derived") else { return };
    let mut datagrams = recorded("aapl5000-A.pcap", Line::A);
    datagrams.extend(recorded("aapl5000-B.pcap", Line::B));
    let (_, arbiter, found) = run(datagrams, &wanted["A_and_B_arbitrated_without_recovery"]);
    assert_eq!(found, wanted["A_and_B_arbitrated_without_recovery"]);
    // Each line's own loss is the same as when it is alone.
    for (line, key) in [(Line::A, "feed_A_alone"), (Line::B, "feed_B_alone")] {
        assert_eq!(json!(arbiter.line(line).missing()), wanted[key]["missing_messages"]);
    }
    // B is 20 to 200 µs behind A, recorded in whole µs; where neighbours were swapped on A it may be anything more.
    let skew = arbiter.line(Line::B).skew;
    assert!(skew.samples > 3_000, "{skew:?}");
    assert!((10_000..100_000).contains(&skew.min_ns), "{skew:?}");
}

/// Counts what is delivered in each session.
#[derive(Default)]
struct Epochs(Vec<u64>);

impl Sink for Epochs {
    fn message(&mut self, sequence: u64, _bytes: &[u8], _received: Nanos) {
        let count = self.0.last_mut().unwrap();
        *count += 1;
        assert_eq!(sequence, *count);
    }

    fn gap(&mut self, first: u64, last: u64) {
        panic!("{first} to {last}");
    }

    fn end_of_session(&mut self, _next: u64) {}

    fn reset(&mut self, _session: Session) {
        self.0.push(0);
    }
}

#[test]
fn a_sender_that_starts_again_under_one_session_loses_nothing() {
    let Some(wanted) = expected("iex-deep-20170425") else { return };
    let file = bytes("data/iex-deep-20170425/DEEP10.pcap.gz").unwrap();
    let Recording::Datagrams(mut capture) = capture::open(&file[..]).unwrap() else {
        panic!("a capture of packets")
    };
    let protocol = Protocol::IexDeep;
    let mut arbiter = Arbiter::new(ArbiterSettings {
        framing: protocol.framing().unwrap(),
        restart: protocol.restart(),
        ..ArbiterSettings::default()
    });
    let mut epochs = Epochs::default();
    while let Some(datagram) = capture.next().unwrap() {
        // The second line, a little later, is still in what was when the first starts again.
        for line in [Line::A, Line::B] {
            arbiter.datagram(line, datagram.payload, datagram.time, &mut epochs).unwrap();
        }
    }
    arbiter.flush(&mut epochs);
    let counts: Vec<_> =
        wanted["restarts"].as_array().unwrap().iter().map(|epoch| &epoch["messages"]).collect();
    assert_eq!(json!(epochs.0), json!(counts));
    assert_eq!(json!(arbiter.statistics().restarts), wanted["seq_gap_count"]);
    assert_eq!(json!(arbiter.statistics().delivered), wanted["messages"]);
    assert_eq!(arbiter.line(Line::A).strays + arbiter.line(Line::B).strays, 0);
}
