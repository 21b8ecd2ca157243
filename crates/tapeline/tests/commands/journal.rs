//! Journals through the real binary: content, damage, replay and the transition to live data; a plant with a journal.

use crate::stage;

use std::io::{BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, ChildStderr, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tapeline_journal::{Directory, Next, Reader, Settings, Writer};
use tapeline_measure::Nanos;
use tapeline_plant::tick::{Flags, Header, Kind, Tick};
use tapeline_plant::{ItemId, Seq, State};
use tapeline_ring::{Name, Options, Poll, Publisher, Start, Subscriber, Wait};
use tempfile::TempDir;

const NOON: u64 = 1_763_726_400_000_000_000;

/// A tick of an item, one millisecond after the previous one.
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
        // One write a tick, as at a low rate.
        assert!(writer.append(seq, time, &frame).is_kept() && writer.flush().is_kept());
    }
    assert!(writer.finish().is_kept());
}

/// As [`keep`], in one segment, and quickly.
fn keep_many(folder: &Path, ticks: u64) {
    let (mut writer, _) = Writer::open(Directory::create(folder).unwrap(), Settings::default()).unwrap();
    for seq in 1..=ticks {
        let (time, frame) = tick(seq);
        assert!(writer.append(seq, time, &frame).is_kept());
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

/// Journals in which the same ticks are cut into other segments have the same digest; one tick more, or one that is missing, makes another.
#[test]
fn the_digest_is_that_of_the_ticks() {
    let digest = |ticks: &[u64], options: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        // Each start of a writer begins a segment.
        for ticks in ticks.chunk_by(|before, next| before + 1 == *next) {
            keep(folder.path(), ticks.iter().copied());
        }
        let options = [options, &["--digest", "--format", "json"]].concat();
        let found = report(&run(folder.path(), "verify", &options));
        (found["ticks"].clone(), found["digest"].as_str().unwrap().to_owned())
    };
    let range = |from, to| (from..=to).collect::<Vec<u64>>();
    let whole = digest(&range(1, 30), &[]);
    assert_eq!((whole.0.as_u64(), whole.1.len()), (Some(30), 64));
    assert_eq!(digest(&range(1, 40), &["--to-sequence", "30"]), whole);
    assert_ne!(digest(&range(1, 40), &[]).1, whole.1);
    let holed = [range(1, 20), range(22, 40)].concat();
    assert_ne!(digest(&holed, &["--to-sequence", "30"]).1, whole.1);
    let common = ["--from-sequence", "22", "--to-sequence", "30"];
    assert_eq!(digest(&holed, &common), digest(&range(1, 30), &common));
    // Nothing has no digest, which would be alike everywhere.
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), 1..=10);
    for (range, says) in [
        (["--from-sequence", "9", "--to-sequence", "5"], "--to-sequence 5 is before --from-sequence 9"),
        (["--from-sequence", "11", "--to-sequence", "20"], "there is no tick, so there is no digest"),
    ] {
        let output = run(folder.path(), "verify", &[&range[..], &["--digest"]].concat());
        assert_eq!(output.status.code(), Some(1));
        let shown = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(said(&output).contains(says) && !shown.contains("SHA-256"), "{shown}{}", said(&output));
    }
    // The hole is behind the last tick that is read.
    assert_eq!(digest(&holed, &["--to-sequence", "20"]), digest(&range(1, 20), &[]));
}

/// 50,000 ticks as JSON values take 200 MB, as text 15.
#[test]
fn ticks_are_written_while_they_are_read() {
    const TICKS: u64 = 50_000;
    let folder = tempfile::tempdir().unwrap();
    keep_many(folder.path(), TICKS);
    let path = folder.path().to_str().unwrap();
    let count = TICKS.to_string();
    let command = &mut tapeline(&["journal", "inspect", path, "--count", &count, "--format", "json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let (mut text, mut ticks) = (String::new(), 0);
    // Behind that tick is more than a pipe holds: the process waits for this reader.
    while ticks < TICKS * 9 / 10 {
        let start = text.len();
        assert!(out.read_line(&mut text).unwrap() > 0, "{ticks}");
        ticks += u64::from(text[start..].contains("\"sequence\":"));
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most_kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(most_kib < 100_000, "{most_kib} KiB");
    out.read_to_string(&mut text).unwrap();
    assert!(child.wait().unwrap().success());
    let whole: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(whole["ticks"].as_array().unwrap().len() as u64, TICKS);
    assert_eq!(text, serde_json::to_string_pretty(&whole).unwrap() + "\n");
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
    // Other parts can still be read.
    assert!(run(folder.path(), "verify", &["--from-sequence", "1500"]).status.success());
    let nowhere = run(&folder.path().join("none"), "verify", &[]);
    let said = self::said(&nowhere);
    assert!(!nowhere.status.success() && said.contains("is this the journal's folder?"), "{said}");
}

#[test]
fn verify_says_how_a_journal_ends_and_what_is_lost_at_its_ends() {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), 1..=2_000);
    let verify = || {
        let output = run(folder.path(), "verify", &["--format", "json"]);
        let found = report(&output);
        (output.status.code(), found["end"].clone(), found["lost"].clone(), said(&output))
    };
    let closed = (Some(0), json!("closed"), json!([]), String::new());
    assert_eq!(verify(), closed);
    let writer = Directory::create(folder.path()).unwrap();
    assert_eq!(verify().1, "being written");
    drop(writer);
    assert_eq!(verify(), closed);
    drop(Writer::open(Directory::create(folder.path()).unwrap(), Settings::default()).unwrap());
    assert_eq!(verify().1, "not closed");
    keep(folder.path(), 2_001..=2_010);

    let away = tempfile::tempdir().unwrap();
    let (name, moved) = (folder.path().join("00000000000000002001.journal"), away.path().join("last"));
    std::fs::copy(&name, &moved).unwrap();
    std::fs::remove_file(&name).unwrap();
    let (status, end, lost, said) = verify();
    assert_eq!((status, end), (Some(3), json!("not closed")), "{said}");
    assert_eq!(lost, json!([{ "file": "last", "from": 2_001, "to": 2_010 }]));
    assert!(said.contains("last file is lost, with ticks 2001 to 2010") && said.contains("hint: "), "{said}");
    std::fs::copy(&moved, &name).unwrap();
    assert_eq!(verify(), closed);

    std::fs::remove_file(folder.path().join("00000000000000000001.journal")).unwrap();
    let (status, end, lost, said) = verify();
    assert_eq!((status, end), (Some(3), json!("closed")), "{said}");
    assert_eq!((&lost[0]["file"], &lost[0]["from"]), (&json!("first"), &json!(1)), "{lost}");
    assert!(said.contains("first file is lost, with ticks 1 to "), "{said}");
    let people = String::from_utf8(run(folder.path(), "verify", &[]).stdout).unwrap();
    assert!(people.contains("the journal was closed"), "{people}");
}

#[test]
fn a_folder_that_is_no_journal_is_no_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("plant.toml"), "").unwrap();
    let into = folder.path().join("parquet");
    for (command, options) in [
        ("inspect", &["--format", "json"][..]),
        ("verify", &[]),
        ("replay", &["--onto", "test-journal-no-journal"]),
        ("export", &[into.to_str().unwrap(), "--to", "parquet"]),
    ] {
        let output = run(folder.path(), command, options);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("expected segments") && said.contains("hint: `folder`"), "{command}: {said}");
        assert!(output.stdout.is_empty() && !into.exists(), "{command}");
    }
    // A new journal without ticks is valid, and so is a copy without its lock.
    let journal = folder.path().join("journal");
    drop(Directory::create(&journal).unwrap());
    let begun = run(&journal, "verify", &["--from-sequence", "5", "--format", "json"]);
    assert_eq!((begun.status.code(), &report(&begun)["ticks"]), (Some(0), &json!(0)));
    assert!(said(&begun).contains("note: the journal is empty"), "{}", said(&begun));
    keep(&journal, 1..=5);
    std::fs::remove_file(journal.join("lock")).unwrap();
    assert_eq!(report(&run(&journal, "verify", &["--format", "json"]))["ticks"], 5);
}

#[test]
fn that_a_place_is_behind_the_journals_end_is_said() {
    let folder = tempfile::tempdir().unwrap();
    keep(folder.path(), 1..=2_000);
    for command in ["verify", "inspect"] {
        for (place, is) in [
            (["--from-sequence", "99999999"], "sequence 99999999"),
            (["--from-sequence", "2001"], "sequence 2001"),
            (["--from-time", "2025-11-21T13:00:00Z"], "2025-11-21T13:00:00"),
        ] {
            let output = run(folder.path(), command, &place);
            let (said, expected) =
                (said(&output), format!("note: the journal ends with tick 2000, before {is}"));
            assert!(output.status.success() && said.contains(&expected), "{command} {place:?}: {said}");
        }
        let last = run(folder.path(), command, &["--from-sequence", "2000"]);
        assert!(last.status.success() && !said(&last).contains("note: "), "{command}: {}", said(&last));
    }
    let none = run(folder.path(), "inspect", &["--count", "0", "--from-sequence", "1"]);
    assert!(none.status.success() && said(&none).is_empty(), "{}", said(&none));
}

/// Stopped at any moment, it either has verified everything or reports that it has not, with a separate exit status.
#[test]
fn a_verification_that_is_interrupted_does_not_say_that_all_is_well() {
    const TICKS: u64 = 200_000;
    let folder = tempfile::tempdir().unwrap();
    keep_many(folder.path(), TICKS);
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
                // The signal came after the end.
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

/// Sends SIGTERM to a process after it has installed its signal handler.
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

/// History up to some tick, then live ticks: each once, including those that the ring no longer has.
#[test]
fn a_replay_goes_on_with_what_is_live() {
    let folder = tempfile::tempdir().unwrap();
    let pid = std::process::id();
    let live = Name::new(&format!("test-journal-live-{pid}")).unwrap();
    let onto = Name::new(&format!("test-journal-onto-{pid}")).unwrap();
    // A small ring: of ticks 1 to 900 it has only the last.
    let options = Options { capacity: 16 << 10, ..Options::default() };
    let mut publisher = Publisher::open(&live, &options).unwrap();
    let keeper = {
        let folder = folder.path().to_owned();
        let settings = Settings::default();
        let (mut writer, _) = Writer::open(Directory::create(&folder).unwrap(), settings).unwrap();
        for seq in 1..=900 {
            let (time, frame) = tick(seq);
            publisher.publish(&frame).unwrap();
            // The journal lags: it does not have the last ticks yet.
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
                subscriber.wait(Wait::Park, Duration::from_millis(20));
            }
        }
        if next == 601
            && let (Some(mut writer), Some(mut publisher)) = (keeper.take(), publisher.take())
        {
            // The journal's ticks are sent: the replay joins the live ring, which no longer has the next ticks.
            while publisher.subscribers() == 0 {
                std::thread::yield_now();
            }
            // Now the journal catches up. Later ticks reach it a little after the ring.
            let mut keep = |seqs: RangeInclusive<u64>| {
                for (seq, (time, frame)) in seqs.map(|seq| (seq, tick(seq))) {
                    assert!(writer.append(seq, time, &frame).is_kept());
                }
                assert!(writer.flush().is_kept());
            };
            keep(601..=900);
            for seq in 901..=1_000 {
                while publisher.publish(&tick(seq).1).is_err() {
                    std::thread::yield_now();
                }
            }
            // A replay that was too slow for the ring takes the last ticks from the journal, and waits for them.
            keep(901..=1_000);
            assert!(writer.finish().is_kept());
            publisher.close().unwrap();
        }
    }
    assert_eq!(next, 1_001);
    let done = replay.says();
    assert_eq!((&done["missing"], &done["last"]), (&json!(0), &json!(1_000)), "{done}");
    assert_eq!(done["history"].as_u64().unwrap() + done["live"].as_u64().unwrap(), 900, "{done}");
}

/// A plant that runs without its journal for a time, as its readers see it: the journal has ticks 1 to 600, and the
/// small ring only the latest ones.
struct Without {
    folder: TempDir,
    live: Name,
    onto: Name,
    publisher: Publisher,
    writer: Writer<Directory>,
}

impl Without {
    /// A plant that waits for its readers up to the stall limit.
    fn new(test: &str, stall_limit: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let name = |what| Name::new(&format!("test-{test}-{what}-{}", std::process::id())).unwrap();
        let (live, onto) = (name("live"), name("onto"));
        let options = Options { capacity: 16 << 10, stall_limit, ..Options::default() };
        let publisher = Publisher::open(&live, &options).unwrap();
        let directory = Directory::create(folder.path()).unwrap();
        let (writer, _) = Writer::open(directory, Settings::default()).unwrap();
        let mut plant = Self { folder, live, onto, publisher, writer };
        plant.keep(1..=600);
        plant
    }

    fn keep(&mut self, seqs: RangeInclusive<u64>) {
        for seq in seqs {
            let (time, frame) = tick(seq);
            assert!(self.writer.append(seq, time, &frame).is_kept());
        }
        assert!(self.writer.flush().is_kept());
    }

    fn publish(&mut self, seqs: RangeInclusive<u64>) {
        for seq in seqs {
            while self.publisher.publish(&tick(seq).1).is_err() {
                std::thread::yield_now();
            }
        }
        self.publisher.flush();
    }

    /// Starts a replay onto a ring that continues with the plant's ring, and waits until it has joined that ring.
    /// Returns it with a reader of its output.
    fn replay(&self, more: &[&str]) -> (Running, ChildStderr, Subscriber) {
        let folder = self.folder.path().to_str().unwrap();
        let names = [self.onto.to_string(), self.live.to_string()];
        let arguments = ["journal", "replay", folder, "--speed", "max", "--format", "json"];
        let onto = ["--onto", &names[0], "--then", &names[1], "--subscribers", "1"];
        let (replay, talk) = Running::start_talking(&[&arguments[..], &onto, more].concat());
        let reader = loop {
            match Subscriber::join(&self.onto, Start::Oldest) {
                Ok(reader) => break reader,
                Err(_) => std::thread::yield_now(),
            }
        };
        while self.publisher.subscribers() == 0 {
            std::thread::yield_now();
        }
        (replay, talk, reader)
    }
}

/// The next sequences of a ring, up to `up_to` or the end.
fn sequences(ring: &mut Subscriber, up_to: u64) -> Vec<u64> {
    let mut seqs = Vec::new();
    while seqs.last() != Some(&up_to) {
        match ring.next() {
            Poll::Frame(frame) => seqs.push(Tick::parse(frame.bytes()).unwrap().header.seq.0),
            Poll::Ended => break,
            _ => _ = ring.wait(Wait::Park, Duration::from_millis(20)),
        }
    }
    seqs
}

/// Reads standard error up to a line with these words.
fn hears(talk: &mut BufReader<ChildStderr>, words: &str) {
    let mut line = String::new();
    while !line.contains(words) {
        line.clear();
        assert_ne!(talk.read_line(&mut line).unwrap(), 0, "it never said: {words}");
    }
}

/// It reports that it waits, keeps reading the ring, continues when the journal does, and counts lost ticks.
#[test]
fn a_replay_waits_for_a_plant_without_its_journal_and_holds_up_nobody() {
    let mut plant = Without::new("without", Duration::ZERO);
    plant.publish(1..=900);
    let (mut replay, talk, mut reader) = plant.replay(&[]);
    let mut talk = BufReader::new(talk);
    hears(&mut talk, "the journal has nothing behind tick 600");
    // Far more than the ring's capacity.
    plant.publish(901..=5_000);
    plant.keep(4_001..=5_100);
    plant.publish(5_001..=5_100);
    plant.publisher.close().unwrap();
    let expected: Vec<u64> = (1..=600).chain(4_001..=5_100).collect();
    assert_eq!(sequences(&mut reader, 0), expected);
    let done = replay.says();
    assert_eq!((&done["missing"], &done["last"]), (&json!(3_400), &json!(5_100)), "{done}");
    assert_eq!(replay.child.wait().unwrap().code(), Some(3), "not all of it was there");
    hears(&mut talk, "ticks 601 to 4000 are missing");
}

/// It publishes nothing from after the gap, and its exit status shows that the replay is incomplete.
#[test]
fn a_replay_that_ends_while_it_waits_says_so() {
    let mut plant = Without::new("waiting", Duration::ZERO);
    plant.publish(1..=900);
    let (mut replay, talk, mut reader) = plant.replay(&[]);
    let mut talk = BufReader::new(talk);
    hears(&mut talk, "the journal has nothing behind tick 600");
    replay.ask_to_end();
    let done = replay.says();
    let counts = (&done["history"], &done["live"], &done["last"], &done["interrupted"]);
    assert_eq!(counts, (&json!(600), &json!(0), &json!(600), &json!(true)), "{done}");
    assert_eq!(replay.child.wait().unwrap().code(), Some(130));
    assert_eq!(sequences(&mut reader, 0), (1..=600).collect::<Vec<_>>());
}

/// A gap that ends after the oldest tick on the ring: only ticks that neither has are missing.
#[test]
fn a_replay_takes_from_the_ring_what_the_journal_lacks() {
    let mut plant = Without::new("lacks", Duration::from_millis(1));
    plant.publish(1..=600);
    let (mut replay, _talk, mut reader) = plant.replay(&[]);
    assert_eq!(sequences(&mut reader, 600).len(), 600);
    // While it is stopped it loses its position, and the journal gets a gap.
    stop(&replay);
    plant.publish(601..=900);
    plant.keep(851..=900);
    go_on(&replay);
    let seqs = sequences(&mut reader, 900);
    let first = seqs[0];
    assert!((602..=850).contains(&first), "{first}");
    assert_eq!(seqs, (first..=900).collect::<Vec<_>>());
    plant.publisher.close().unwrap();
    let done = replay.says();
    assert_eq!((&done["missing"], &done["last"]), (&json!(first - 601), &json!(900)), "{done}");
}

/// A reader that takes everything from the journal reports that it waits.
#[test]
fn a_reader_of_the_journal_says_that_the_plant_is_without() {
    let mut plant = Without::new("reader", Duration::ZERO);
    let folder = plant.folder.path().to_str().unwrap().to_owned();
    let ring = plant.live.to_string();
    // A name without an item: the content of these ticks does not matter.
    let watch = ["plant", "watch", "NONE", "--ring", &ring, "--format", "json", "--journal", &folder];
    let (watch, talk) = Running::start_talking(&[&watch[..], &["--from-sequence", "1"]].concat());
    while plant.publisher.subscribers() == 0 {
        std::thread::yield_now();
    }
    plant.publish(601..=2_000);
    let mut talk = BufReader::new(talk);
    hears(&mut talk, "the journal has nothing behind tick 600");
    watch.ask_to_end();
    let mut rest = String::new();
    talk.read_to_string(&mut rest).unwrap();
    assert!(!rest.contains("has nothing behind"), "once: {rest}");
}

/// A plant with a journal, stopped and restarted: one sequence, each tick once, and its hub sends only ticks on disk.
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
            // All of them were released to the hub.
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

/// A plant that cannot use its journal publishes nothing: it reports why, and ends.
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

/// The journal's folder is renamed while the plant runs, so that it can make no further segment.
#[test]
fn a_plant_that_its_journal_stops_says_so_in_its_report() {
    let place = Place::new(0);
    let folder = place.folder.path();
    let (day, journal) = (folder.join("day.itch"), folder.join("journal"));
    let write = ["feed", "simulate", "--symbols", "3", "--rate", "10k", "--duration", "60s", "--write"];
    let output = tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let config = folder.join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\npublish = \"every-message\"\n[[feed]]\nname = \"file\"\n\
         protocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\nfile = \"{}\"\n[journal]\nfolder = \"journal\"\n\
         segment_size = \"64KiB\"\n",
        place.ring,
        day.display()
    );
    std::fs::write(&config, text).unwrap();
    let arguments = ["plant", "--config", config.to_str().unwrap(), "--format", "json"];
    let (mut plant, mut talk) = Running::start_talking(&arguments);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    while !journal.join("00000000000000000001.journal").exists() {
        std::thread::yield_now();
    }
    std::fs::rename(&journal, folder.join("aside")).unwrap();
    let report = plant.says();
    assert_eq!(
        report["refused"], "the journal could not be written, and the plant does not go on without it",
        "{report}"
    );
    assert_eq!(plant.child.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    talk.read_to_string(&mut said).unwrap();
    assert!(said.contains("the plant stops") && !said.contains("held the ring full"), "{said}");
}

/// Stops a process with SIGSTOP, and waits until it is stopped.
fn stop(running: &Running) {
    kill_process(Pid::from_child(&running.child), Signal::STOP).unwrap();
    let is_stopped = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", running.child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    };
    while !is_stopped() {
        std::thread::yield_now();
    }
}

fn go_on(running: &Running) {
    kill_process(Pid::from_child(&running.child), Signal::CONT).unwrap();
}

/// The journal does not have the requested ticks yet, and the ring has earlier ticks too.
#[test]
fn a_replay_begins_where_it_is_told_to_where_only_the_ring_has_that() {
    for (case, from) in [
        ["--from-sequence", "651"],
        ["--from-sequence", "601"],
        // The time of tick 651, and a time before tick 601 that no tick has.
        ["--from-time", "2025-11-21T12:00:00.651Z"],
        ["--from-time", "2025-11-21T12:00:00.6005Z"],
    ]
    .into_iter()
    .enumerate()
    {
        let mut plant = Without::new(&format!("begins-{case}"), Duration::ZERO);
        plant.publish(1..=600);
        let (mut replay, _talk, mut reader) = plant.replay(&from);
        plant.publish(601..=700);
        plant.keep(601..=700);
        plant.publisher.close().unwrap();
        let first = if case % 2 == 0 { 651 } else { 601 };
        assert_eq!(sequences(&mut reader, 0), (first..=700).collect::<Vec<_>>(), "{from:?}");
        let done = replay.says();
        assert_eq!((&done["missing"], &done["last"]), (&json!(0), &json!(700)), "{from:?}: {done}");
        assert!(replay.child.wait().unwrap().success());
    }
}

#[test]
fn a_replay_goes_on_with_no_ring_but_that_of_its_journal() {
    let mut plant = Without::new("another", Duration::ZERO);
    // Another plant's ticks, with the same sequences.
    for seq in 1..=900 {
        let mut frame = tick(seq).1;
        *frame.last_mut().unwrap() ^= 1;
        while plant.publisher.publish(&frame).is_err() {}
    }
    plant.publisher.flush();
    plant.keep(601..=900);
    let folder = plant.folder.path();
    let (live, onto) = (plant.live.to_string(), plant.onto.to_string());
    for (then, says) in [
        (live.as_str(), "differs from the journal's"),
        (&onto, "read and written"),
        ("test-no-such-ring", "cannot join the ring"),
    ] {
        let output = run(folder, "replay", &["--onto", &onto, "--then", then, "--speed", "max"]);
        let said = said(&output);
        assert!(!output.status.success() && said.contains(says) && said.contains("hint: "), "{said}");
    }
}

/// Both are stopped until the plant and its ring have ended, and lose their positions: the journal has everything.
#[test]
fn who_loses_his_place_on_the_ring_of_a_plant_that_ends_has_all_of_its_journal() {
    let mut place = Place::new(1);
    place.keys = "ring_size = \"64KiB\"\nstall_limit = \"1ms\"\n";
    let config = place.config("");
    let journal = place.folder.path().join("journal");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str(&format!("[journal]\nfolder = \"{}\"\n", journal.display()));
    std::fs::write(&config, text).unwrap();
    let mut plant =
        Running::start(&["plant", "--config", &config, "--until-end-of-session", "--format", "json"]);
    assert_eq!(plant.says()["ready"], json!(place.ring));
    let folder = journal.to_str().unwrap();
    let onto = format!("{}-onto", place.ring);
    let fixed = ["journal", "replay", folder, "--onto", &onto, "--then", &place.ring, "--format", "json"];
    let mut replay = Running::start(&[&fixed[..], &["--speed", "max"]].concat());
    let fixed = ["plant", "watch", "--ring", &place.ring, "--format", "json", "--journal", folder];
    let mut watch = Running::start(&[&fixed[..], &["--from-sequence", "1"]].concat());
    let name = Name::new(&place.ring).unwrap();
    // These two and the journal's own reader.
    while tapeline_ring::inspect(&name).unwrap().subscribers.len() < 3 {
        std::thread::yield_now();
    }
    [&replay, &watch].into_iter().for_each(stop);
    let to = place.lines[0].to_string();
    let exchange = ["feed", "simulate", "--to", &to, "--symbols", "3", "--messages", "5000", "--rate", "20k"];
    // 4: a busy machine may miss the schedule, which does not matter here.
    assert!(matches!(tapeline(&exchange).output().unwrap().status.code(), Some(0 | 4)));
    let report = plant.says();
    assert!(plant.child.wait().unwrap().success(), "{report}");
    let last = report["ticks"].as_u64().unwrap();
    assert!(last > 2_000 && report["journal"]["last"] == last, "{report}");
    [&replay, &watch].into_iter().for_each(go_on);
    let done = replay.says();
    let given = done["history"].as_u64().unwrap() + done["live"].as_u64().unwrap();
    assert_eq!((&done["last"], &done["missing"], given), (&json!(last), &json!(0), last), "{done}");
    assert!(replay.child.wait().unwrap().success());
    let seqs: Vec<_> =
        std::iter::from_fn(|| watch.may_say()).filter_map(|said| said["seq"].as_u64()).collect();
    assert_eq!(seqs.last(), Some(&last));
    assert!(watch.child.wait().unwrap().success());
}
