//! Journals through the real binary: what is in them, damage, replay and the hand-over to what is live; a plant that keeps one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod stage;

use std::path::Path;
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tapeline_journal::{Directory, Next, Reader, Settings, Writer};
use tapeline_measure::Nanos;
use tapeline_plant::tick::{Flags, Header, Kind, Tick};
use tapeline_plant::{ItemId, Seq, State};
use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber, Wait};

const NOON: u64 = 1_763_726_400_000_000_000;

/// A tick of an item, a millisecond behind the one before.
fn tick(seq: u64) -> (Nanos, Vec<u8>) {
    let time = Nanos(NOON + seq * 1_000_000);
    let header = Header {
        seq: Seq(seq),
        feed_seq: seq,
        event: time,
        wire: time,
        decoded: time,
        sequenced: time,
        item: ItemId(1),
        service: 1,
        channel: 0,
        kind: Kind::Update,
        flags: Flags::default(),
        source_type: 0,
        state: State::Live,
    };
    let mut frame = Vec::new();
    Tick { header, name: "AAPL", body: &[7; 20], source: &[] }.write(&mut frame);
    (time, frame)
}

fn keep(folder: &Path, seqs: impl IntoIterator<Item = u64>) {
    let settings = Settings { segment_bytes: Settings::LEAST_SEGMENT_BYTES, ..Settings::default() };
    let (mut writer, _) = Writer::open(Directory::create(folder).unwrap(), settings).unwrap();
    for seq in seqs {
        let (time, frame) = tick(seq);
        // A write for each, as where little comes.
        assert!(writer.append(seq, time, &frame).is_kept() && writer.flush().is_kept());
    }
    assert!(writer.finish().is_kept());
}

fn run(folder: &Path, command: &str, options: &[&str]) -> Output {
    let fixed = ["journal", command, folder.to_str().unwrap()];
    tapeline(&[&fixed, options].concat()).output().unwrap()
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(output)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_journal_is_verified_and_looked_into() {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), (1..=2_000).chain(2_011..=3_000));
    let output = run(folder.path(), "verify", &["--format", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    let found = report(&output);
    assert_eq!((&found["ticks"], &found["missing"]), (&json!(2_990), &json!(10)));
    assert_eq!(found["holes"], json!([{ "from": 2_001, "to": 2_010 }]));
    assert_eq!(found["last"], json!({ "sequence": 3_000, "time": NOON + 3_000_000_000 }));
    assert_eq!((&found["damage"], &found["torn"]), (&Value::Null, &Value::Null));
    let people = String::from_utf8(run(folder.path(), "verify", &[]).stdout).unwrap();
    assert!(people.contains("2,990 ticks") && people.contains("missing: 2001 to 2010"), "{people}");

    let at = ["--from-time", "2025-11-21T12:00:01.5Z", "--count", "2", "--format", "json"];
    let found = report(&run(folder.path(), "inspect", &at));
    assert_eq!(found["ticks"][0]["sequence"], 1_500, "{found}");
    assert_eq!((&found["ticks"][1]["name"], &found["ticks"][1]["kind"]), (&json!("AAPL"), &json!("update")));
    assert!(found["segments"].as_array().unwrap().len() > 3);
    let at = ["--from-sequence", "2005", "--count", "2"];
    let people = String::from_utf8(run(folder.path(), "inspect", &at).stdout).unwrap();
    assert!(people.contains("2005 to 2010") && people.contains("2011"), "{people}");
}

#[test]
fn damage_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), 1..=2_000);
    let first = folder.path().join("00000000000000000001.journal");
    let mut bytes = std::fs::read(&first).unwrap();
    bytes[1_000] ^= 1;
    std::fs::write(&first, bytes).unwrap();
    let output = run(folder.path(), "verify", &["--format", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let damage = &report(&output)["damage"];
    assert_eq!(damage["segment"], "00000000000000000001.journal");
    let seq = damage["sequence"].as_u64().unwrap();
    assert_eq!(damage["offset"].as_u64().unwrap(), 64 + (seq - 1) * 112, "{damage}");
    assert!(damage["offset"].as_u64().unwrap() <= 1_000, "{damage}");
    let said = said(&output);
    assert!(said.contains("checksum") && said.contains("hint: "), "{said}");
    // Elsewhere it can be read.
    assert!(run(folder.path(), "verify", &["--from-sequence", "1500"]).status.success());
    let nowhere = run(&folder.path().join("none"), "verify", &[]);
    let said = self::said(&nowhere);
    assert!(!nowhere.status.success() && said.contains("is this the journal's folder?"), "{said}");
}

/// Whenever it is told to end: either all was looked at, or it says that not all was, with its own status.
#[test]
fn a_verification_that_is_interrupted_does_not_say_that_all_is_well() {
    const TICKS: u64 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let directory = Directory::create(folder.path()).unwrap();
    let (mut writer, _) = Writer::open(directory, Settings::default()).unwrap();
    for seq in 1..=TICKS {
        let (time, frame) = tick(seq);
        assert!(writer.append(seq, time, &frame).is_kept());
    }
    assert!(writer.finish().is_kept());
    let verify = |format| {
        let path = folder.path().to_str().unwrap();
        let command = &mut tapeline(&["journal", "verify", path, "--format", format]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        end_once_it_listens(&child);
        child.wait_with_output().unwrap()
    };
    let interrupted = |format| {
        loop {
            let output = verify(format);
            match output.status.code() {
                Some(130) => return output,
                // The signal came too late.
                Some(0) if format == "json" => assert_eq!(report(&output)["ticks"], TICKS),
                Some(0) => assert!(String::from_utf8_lossy(&output.stdout).contains("200,000 ticks")),
                code => panic!("{code:?}: {}", said(&output)),
            }
        }
    };
    let found = report(&interrupted("json"));
    assert_eq!(found["interrupted"], true, "{found}");
    assert!(found["ticks"].as_u64().unwrap() < TICKS, "{found}");
    let people = String::from_utf8(interrupted("table").stdout).unwrap();
    assert!(people.contains("interrupted: "), "{people}");
}

/// Asks a process to end, once it does not simply die of that.
fn end_once_it_listens(child: &Child) {
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << (Signal::TERM.as_raw() - 1) != 0
    };
    while !listens() {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

/// History to some tick, and from the next one on what is live: each once, also those that the ring no longer has.
#[test]
fn a_replay_goes_on_with_what_is_live() {
    let folder = tempfile::tempdir().unwrap();
    let pid = std::process::id();
    let live = Name::new(&format!("test-journal-live-{pid}")).unwrap();
    let onto = Name::new(&format!("test-journal-onto-{pid}")).unwrap();
    // A small ring: of 1 to 900 it has the last ones.
    let options = Options { capacity: 16 << 10, ..Options::default() };
    let mut publisher = Publisher::open(&live, &options).unwrap();
    let keeper = {
        let folder = folder.path().to_owned();
        let settings = Settings::default();
        let (mut writer, _) = Writer::open(Directory::create(&folder).unwrap(), settings).unwrap();
        for seq in 1..=900 {
            let (time, frame) = tick(seq);
            publisher.publish(&frame).unwrap();
            // The journal is behind: it has not been given the last ones yet.
            if seq <= 600 {
                assert!(writer.append(seq, time, &frame).is_kept());
            }
        }
        assert!(writer.flush().is_kept());
        writer
    };
    publisher.flush();
    let arguments =
        ["journal", "replay", folder.path().to_str().unwrap(), "--from-sequence", "101", "--speed", "max"];
    let names = [onto.to_string(), live.to_string()];
    let more = ["--onto", &names[0], "--then", &names[1], "--subscribers", "1", "--format", "json"];
    let mut replay = Running::start(&[&arguments[..], &more].concat());
    let mut subscriber = loop {
        match Subscriber::join(&onto, Start::Oldest) {
            Ok(subscriber) => break subscriber,
            Err(_) => std::thread::yield_now(),
        }
    };
    let mut next = 101;
    let mut keeper = Some(keeper);
    let mut publisher = Some(publisher);
    loop {
        match subscriber.next() {
            Poll::Frame(frame) => {
                assert_eq!(Tick::parse(frame.bytes()).unwrap().header.seq, Seq(next), "in order, once");
                assert_eq!(frame.bytes(), tick(next).1);
                next += 1;
            }
            Poll::Ended => break,
            _ => {
                subscriber.wait(Wait::Park, std::time::Duration::from_millis(20));
            }
        }
        if next == 601
            && let (Some(mut writer), Some(mut publisher)) = (keeper.take(), publisher.take())
        {
            // All that the journal had has come: it joins the live ring, from which the next ones are gone.
            while publisher.subscribers() == 0 {
                std::thread::yield_now();
            }
            // Now the journal catches up, and more comes.
            for seq in 601..=900 {
                let (time, frame) = tick(seq);
                assert!(writer.append(seq, time, &frame).is_kept());
            }
            assert!(writer.finish().is_kept());
            for seq in 901..=1_000 {
                while publisher.publish(&tick(seq).1).is_err() {
                    std::thread::yield_now();
                }
            }
            publisher.close().unwrap();
        }
    }
    assert_eq!(next, 1_001);
    let done = replay.says();
    assert_eq!((&done["missing"], &done["last"]), (&json!(0), &json!(1_000)), "{done}");
    assert_eq!(done["history"].as_u64().unwrap() + done["live"].as_u64().unwrap(), 900, "{done}");
}

/// A plant that keeps a journal, ended and started again: one sequence, each tick once, and its hub gives out what is on disk.
#[test]
fn a_plant_goes_on_where_its_journal_ends() {
    for durability in ["written", "synced"] {
        let place = Place::new(1);
        let journal = place.folder.path().join("journal");
        let file = place.folder.path().join("day.itch");
        let write = ["feed", "simulate", "--symbols", "3", "--messages", "2000", "--write"];
        let output = tapeline(&[&write[..], &[file.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let config = place.folder.path().join("plant.toml");
        let text = format!(
            "[plant]\nring = \"{}\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
             file = \"{}\"\npace = \"fast\"\n[hub]\nport = 0\n[journal]\nfolder = \"{}\"\ndurability = \"{durability}\"\n\
             segment_size = \"64KiB\"\n",
            place.ring,
            file.display(),
            journal.display()
        );
        std::fs::write(&config, text).unwrap();
        let arguments =
            ["plant", "--config", config.to_str().unwrap(), "--until-end-of-session", "--format", "json"];
        let mut last = 0;
        for turn in 1..=2 {
            let mut plant = Running::start(&arguments);
            assert_eq!(plant.says()["ready"], json!(place.ring));
            let report = plant.says();
            assert!(plant.child.wait().unwrap().success(), "{report}");
            let kept = &report["journal"];
            let ticks = report["ticks"].as_u64().unwrap();
            assert!(ticks > 500, "{report}");
            assert_eq!((&kept["ticks"], &kept["missing"]), (&json!(ticks), &json!(0)), "{durability} {turn}");
            // All of them went through the gate.
            assert_eq!(report["hub"]["ticks"], ticks, "{durability} {turn}");
            last += ticks;
            assert_eq!(kept["last"], last, "{durability} {turn}");
        }
        let mut reader = Reader::open(Directory::open(&journal).unwrap()).unwrap();
        let mut seen = 0;
        while let Next::Record(record) = reader.next().unwrap() {
            seen += 1;
            assert_eq!(Tick::parse(record.body).unwrap().header.seq, Seq(record.seq));
            assert_eq!(record.seq, seen);
        }
        assert_eq!(seen, last);
        assert_eq!(reader.ending().unwrap(), None);
    }
}

/// Nothing is published by a plant that cannot keep it: it says why, and ends.
#[test]
fn a_plant_whose_journal_is_damaged_does_not_start() {
    let place = Place::new(1);
    let journal = place.folder.path().join("journal");
    keep(&journal, 1..=5);
    let file = journal.join("00000000000000000001.journal");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[64 + 112 + 30] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let config = place.config("");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(&format!("[journal]\nfolder = \"{}\"\n", journal.display()));
    std::fs::write(&config, text).unwrap();
    let output = tapeline(&["plant", "--config", &config]).output().unwrap();
    let said = said(&output);
    assert!(!output.status.success() && said.contains("cannot open the journal"), "{said}");
    assert!(
        said.contains("00000000000000000001.journal, byte 176, where record 2") && said.contains("hint: "),
        "{said}"
    );
}
