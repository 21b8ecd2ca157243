//! The fault script: a real plant with scripted faults. Every message of the source is delivered once, in order and
//! unchanged, or lies in a gap that the plant reported in a status tick and in its counters; anything else is a silent
//! loss.
//!
//! `make faults SEEDS=50` tries more seeds than `cargo test`, `FAULT_SEED=N` one of them; both print a table.

#![allow(clippy::print_stdout, reason = "a table for people")]

#[path = "../../../feed/tests/account/mod.rs"]
mod account;
use crate::pages;
use crate::stage;

use std::collections::HashSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use account::script::{Dice, faults};
use account::{Account, Epoch};
use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tapeline_feed::itch::framing::{FileFraming, Frames};
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, end_of_session};
use tapeline_omm::rwf::{Header, MessageView};
use tapeline_plant::tick::{Flags, Kind, Tick};
use tapeline_ring::{Name, Poll, Start, Subscriber, Wait};

/// Messages of a simulated day.
const MESSAGES: u64 = 3_000;
const SESSION: &str = "BADDAY  00";

/// The result of a day.
struct Day {
    account: Account,
    /// Messages lost on line A, on line B, and on both.
    lost: [usize; 3],
    /// Messages that the plant recovered, and messages that it counted as missing.
    recovered: u64,
    missing: u64,
}

/// Runs a command of `tapeline feed` to its end.
fn feed(arguments: &[&str]) {
    let output = tapeline(&[&["feed"], arguments].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A day with faults, for a plant with or without recovery.
fn bad_day(seed: u64, asks: bool) -> Day {
    let mut place = Place::new(2);
    // The ring must hold the whole day: it is read afterwards.
    place.keys = "ring_size = \"8MiB\"";
    let file = |name: &str| place.folder.path().join(name).to_str().unwrap().to_owned();
    let (day, ledger) = (file("day.itch"), file("ledger"));
    let count = MESSAGES.to_string();
    let seed_text = seed.to_string();
    feed(&["simulate", "--write", &day, "--messages", &count, "--symbols", "10", "--seed", &seed_text]);

    let server = asks.then(|| {
        let listen = ["--listen", "127.0.0.1:0", "--session", SESSION, "--format", "json"];
        let mut server = Running::start(&[&["feed", "serve-retransmit", &day], &listen[..]].concat());
        let address = server.says()["ready"].as_str().unwrap().to_owned();
        (server, address)
    });
    let recovery =
        server.as_ref().map(|(_, address)| format!("[feed.recovery]\nservers = [\"{address}\"]\n"));
    let config = place.config(&recovery.unwrap_or_default());
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let mut subscriber = Subscriber::join(&Name::new(&place.ring).unwrap(), Start::Oldest).unwrap();

    let script = script(seed, asks);
    let [a, b] = [0, 1].map(|line| place.lines[line].to_string());
    let mut arguments = vec!["replay", &day, "--to", &a, "--also", &b, "--rate", "30k", "--session", SESSION];
    arguments.extend(["--fault-seed", &seed_text, "--fault-log", &ledger]);
    arguments.extend(script.iter().flat_map(|fault| ["--fault", fault.as_str()]));
    feed(&arguments);

    let ledger: Vec<Value> = match std::fs::read_to_string(&ledger) {
        Ok(text) => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        Err(_) => Vec::new(),
    };
    let mut account = Account::new(epochs(Path::new(&day), &ledger));
    for datagram in damaged(&account.epochs, &ledger) {
        account.lie(&datagram);
    }
    // The source's final end of session, which no fault removes.
    let last = account.epochs.last().unwrap();
    let end = end_of_session(MoldSession::new(&last.session), last.end());
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for line in &place.lines {
        socket.send_to(&end, line).unwrap();
    }
    let last_session = last.session.clone();

    let gaps = follow(&mut subscriber, &mut account, &last_session);
    account.finish();
    plant.ask_to_end();
    let report = plant.says();
    let feed = &report["feeds"][0];
    let missing = feed["missing_messages"].as_u64().unwrap();
    assert_eq!(missing, gaps, "status ticks and counters tell the same");
    let recovered = feed["recovery"]["recovered"].as_u64().unwrap_or(0);
    Day { account, lost: lost(&ledger), recovered, missing }
}

/// The faults of a day. With recovery there is no sequence reset or new session: a server of the original day does not
/// have those sequences.
fn script(seed: u64, asks: bool) -> Vec<String> {
    let mut faults = faults(&mut Dice(seed), MESSAGES);
    faults.retain(|fault| !(asks && (fault.starts_with("roll") || fault.starts_with("reset"))));
    faults
}

/// Reads the ring into the account up to the end of the last session; returns the number of messages reported missing.
fn follow(subscriber: &mut Subscriber, account: &mut Account, last_session: &str) -> u64 {
    let (mut missing, mut session) = (0, String::new());
    loop {
        let frame = match subscriber.next() {
            Poll::Frame(frame) => frame,
            Poll::Empty => {
                if !subscriber.wait(Wait::Park, Duration::from_secs(20)) {
                    // A plant that got corrupted sequences does not accept the end of session before them.
                    if !account.is_lied_to() {
                        account.wrong.push("SILENT: the plant says nothing any more".to_owned());
                    }
                    return missing;
                }
                continue;
            }
            other => panic!("{other:?}"),
        };
        let tick = Tick::parse(&frame).unwrap();
        let (flags, sequence) = (tick.header.flags, tick.header.feed_seq);
        if tick.header.kind != Kind::Status {
            // Images at the beginning of a session are not messages of the feed.
            if flags.contains(Flags::SOURCE) {
                account.message(sequence, tick.source);
            }
        } else if flags.contains(Flags::RESET) {
            let text = text(&tick);
            let name = text.strip_prefix("the feed's session ").and_then(|rest| rest.strip_suffix(" begins"));
            session = name.unwrap_or_else(|| panic!("{text}")).to_owned();
            account.reset(&session);
        } else if flags.contains(Flags::GAP) {
            let text = text(&tick);
            let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
            let (first, last) = (numbers[0], *numbers.last().unwrap());
            assert_eq!(last, sequence, "{text}");
            account.gap(first, last);
            missing += last - first + 1;
        } else if flags.contains(Flags::END_OF_SESSION) {
            account.end_of_session(sequence + 1);
            if session == last_session {
                return missing;
            }
        }
    }
}

fn text(tick: &Tick<'_>) -> String {
    let Header::Status(status) = MessageView::parse(tick.body).unwrap().header().unwrap() else { panic!() };
    String::from_utf8_lossy(status.state.unwrap().text).into_owned()
}

/// The epochs of a day, one for each session or sequence reset, from the ledger.
fn epochs(day: &Path, ledger: &[Value]) -> Vec<Epoch> {
    let file = std::fs::read(day).unwrap();
    let messages: Vec<Vec<u8>> = Frames::with(&file, FileFraming::Length).map(<[u8]>::to_vec).collect();
    let rolled = ledger.iter().filter(|entry| begins(entry) && entry["line"] == "A");
    let mut turns: Vec<(usize, String)> = vec![(1, SESSION.to_owned())];
    turns.extend(rolled.map(|entry| {
        (entry["from"].as_u64().unwrap() as usize, entry["session"].as_str().unwrap().to_owned())
    }));
    let ends = turns.iter().skip(1).map(|(from, _)| *from).chain([messages.len() + 1]);
    let last = turns.len() - 1;
    let goes_on: Vec<bool> = (0..turns.len()).map(|at| at < last && turns[at].1 == turns[at + 1].1).collect();
    turns
        .iter()
        .zip(ends)
        .zip(goes_on)
        .map(|(((from, session), end), goes_on)| {
            let mut epoch = Epoch::new(session.clone());
            epoch.messages = messages[from - 1..end - 1].to_vec();
            epoch.heard_of = true;
            // The end is certain if every line carried it undamaged; that is always so for the last epoch.
            let scratched = ledger.iter().filter(|entry| {
                entry["session"] == json!(session) && entry["messages"] == 0 && !begins(entry)
            });
            let lines: HashSet<&str> = scratched.filter_map(|entry| entry["line"].as_str()).collect();
            // A sequence reset under the same session has no end-of-session packet.
            let told = lines.is_empty() && !goes_on;
            epoch.named_end = if told || end == messages.len() + 1 { epoch.end() } else { 0 };
            epoch
        })
        .collect()
}

/// Whether an entry begins a new epoch.
fn begins(entry: &Value) -> bool {
    entry["did"] == "rolled" || entry["did"] == "reset"
}

/// The number of the epoch that a datagram belongs to.
fn epoch_of(entry: &Value, ledger: &[Value]) -> usize {
    let number = |entry: &Value| entry["datagram"].as_u64().unwrap();
    let here = ledger.iter().filter(|other| begins(other) && other["line"] == entry["line"]);
    here.filter(|other| number(other) <= number(entry)).count()
}

/// The corrupted datagrams, as sent.
fn damaged(epochs: &[Epoch], ledger: &[Value]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for entry in ledger.iter().filter(|entry| entry["did"] == "corrupted") {
        // Nothing can be derived from a datagram that was no valid packet.
        let Some(session) = entry["session"].as_str() else { continue };
        let (first, count) = (entry["sequence"].as_u64().unwrap(), entry["messages"].as_u64().unwrap());
        let mut datagram = vec![0; 1_400];
        if count == 0 {
            datagram = end_of_session(MoldSession::new(session), first).to_vec();
        } else {
            let epoch = &epochs[epoch_of(entry, ledger)];
            let mut packet = PacketBuilder::new(&mut datagram, MoldSession::new(session), first).unwrap();
            for message in first..first + count {
                packet.push(&epoch.messages[message as usize - 1]).unwrap();
            }
            let length = packet.finish();
            datagram.truncate(length);
        }
        for change in entry["bytes"].as_array().unwrap() {
            let at = change[0].as_u64().unwrap() as usize;
            datagram[at] ^= change[1].as_u64().unwrap() as u8;
        }
        found.push(datagram);
    }
    found
}

/// Messages that were not sent, or sent unreadable, on A, on B and on both.
fn lost(ledger: &[Value]) -> [usize; 3] {
    let on = |line: &str| -> HashSet<(usize, u64)> {
        let gone = ledger.iter().filter(|entry| {
            entry["line"] == line && ["lost", "silenced", "truncated"].iter().any(|did| entry["did"] == *did)
        });
        gone.flat_map(|entry| {
            let epoch = epoch_of(entry, ledger);
            let first = entry["sequence"].as_u64().unwrap_or(0);
            let count = entry["messages"].as_u64().unwrap_or(0);
            (first..first + count).map(move |message| (epoch, message))
        })
        .collect()
    };
    let (a, b) = (on("A"), on("B"));
    [a.len(), b.len(), a.intersection(&b).count()]
}

/// Runs a day for each seed and prints a table; returns the number of days with silent loss.
fn days(asks: bool) -> u64 {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("FAULT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("FAULT_PLANT_SEEDS").unwrap_or(3) + 1,
    };
    let headings =
        "  seed    sent  lost A  lost B    both  delivered  recovered  damaged  reported  beyond  silent";
    let mut table = vec![headings.to_owned()];
    let mut failed = 0;
    for seed in seeds {
        let Day { account, lost: [a, b, both], recovered, missing } = bad_day(seed, asks);
        let Account { delivered, lied, reported, beyond, .. } = account;
        let silent = account.wrong.len();
        table.push(format!(
            "{seed:>6} {MESSAGES:>7} {a:>7} {b:>7} {both:>7} {delivered:>10} {recovered:>10} {lied:>8} {reported:>9} \
             {beyond:>7} {silent:>7}"
        ));
        assert!(missing >= reported);
        if silent > 0 {
            failed += 1;
            table.extend(account.wrong.iter().take(5).map(|wrong| format!("       {wrong}")));
            table.push(format!("       {}", script(seed, asks).join(" ")));
        } else {
            let all = delivered + lied + reported + beyond;
            // A corrupted message that was taken for one in an earlier gap counts twice.
            assert!(all == MESSAGES || account.mistaken > 0, "seed {seed}: every message is accounted for");
        }
    }
    println!("{}", table.join("\n"));
    failed
}

#[test]
fn a_plant_loses_nothing_in_silence() {
    assert_eq!(days(false), 0, "days with silent loss");
}

#[test]
fn a_plant_that_asks_loses_nothing_in_silence() {
    assert_eq!(days(true), 0, "days with silent loss");
}

/// Runs `docs/faults.md`; its first block writes the file that the others replay.
#[test]
fn every_command_of_the_page_works() {
    let blocks = pages::commands("faults.md");
    assert!(blocks.len() >= 2, "{blocks:?}");
    let folder = tempfile::tempdir().unwrap();
    for block in blocks {
        pages::run(&block, folder.path());
    }
    let ledger = std::fs::read_to_string(folder.path().join("ledger.jsonl")).unwrap();
    assert!(ledger.contains(r#""did":"lost""#), "{ledger}");
    let begins = std::fs::read_to_string(folder.path().join("begins.jsonl")).unwrap();
    for (line, did) in [("A", "reset"), ("B", "reset"), ("A", "rolled"), ("B", "rolled")] {
        let mut entries = begins.lines().map(|entry| serde_json::from_str::<Value>(entry).unwrap());
        assert!(entries.any(|entry| entry["line"] == line && entry["did"] == did), "{line} {did}: {begins}");
    }
}
