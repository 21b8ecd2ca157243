//! A writer is killed at any moment: every record that it reported as synced is there, without a hole, and another
//! writer continues after it.
//!
//! `JOURNAL_KILLS` sets the number of kills; the default is 20 (`make journal-kills`: 200).
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use tapeline_journal::{Directory, Durability, Next, Reader, Settings, Writer};
use tapeline_nanos::Nanos;

/// Returns the body of a record; the length depends on the sequence.
fn body(seq: u64) -> Vec<u8> {
    seq.to_le_bytes().repeat(1 + (seq % 41) as usize)
}

fn settings() -> Settings {
    let segment_bytes = Settings::LEAST_SEGMENT_BYTES;
    Settings { durability: Durability::Synced, segment_bytes, ..Settings::default() }
}

#[test]
fn nothing_that_was_synced_is_lost_to_a_kill() {
    let kills = std::env::var("JOURNAL_KILLS").map_or(20, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    let mut dice = 0x9E37_79B9_u64;
    let mut torn = 0;
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "killed::the_part_that_is_killed", "--ignored", "--nocapture"])
            .env("JOURNAL", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Killed after a random number of acknowledgements, at any point of its work.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let after = 1 + (dice >> 33) % 40;
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = 0;
        let mut take = |line: String, said: &mut u64| {
            if let Some(seq) = line.strip_prefix("synced ").and_then(|seq| seq.parse().ok()) {
                (acknowledged, *said) = (seq, *said + 1);
            }
        };
        while said < after {
            take(lines.next().expect("it goes on until it is killed").unwrap(), &mut said);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // The rest of its output; the last line may be cut.
        for line in lines.map_while(Result::ok) {
            take(line, &mut said);
        }
        let last = whole(folder.path(), kill);
        assert!(last >= acknowledged, "kill {kill}: {acknowledged} was synced, and {last} is the last");
        torn += u64::from(has_tail(folder.path()));
    }
    println!("{kills} kills, {acknowledged} records acknowledged, {torn} torn tails");
}

/// Checks that every record is there once, with its bytes. Returns the last sequence.
fn whole(folder: &Path, kill: u32) -> u64 {
    let mut reader = Reader::open(Directory::open(folder).unwrap()).unwrap();
    let mut last = 0;
    loop {
        match reader.next().unwrap() {
            Next::Record(record) => {
                assert_eq!((record.seq, record.body), (last + 1, &body(record.seq)[..]), "kill {kill}");
                last = record.seq;
            }
            Next::Missing { from, to } => panic!("kill {kill}: {from} to {to} are missing"),
            Next::End => return last,
        }
    }
}

fn has_tail(folder: &Path) -> bool {
    let mut reader = Reader::open(Directory::open(folder).unwrap()).unwrap();
    while reader.next().unwrap() != Next::End {}
    reader.ending().unwrap().is_some()
}

#[test]
#[ignore = "a role that the other tests start"]
fn the_part_that_is_killed() {
    let folder = std::env::var_os("JOURNAL").unwrap();
    let (mut writer, opened) = Writer::open(Directory::create(folder.as_ref()).unwrap(), settings()).unwrap();
    let mut out = std::io::stdout().lock();
    let mut seq = opened.last;
    loop {
        for _ in 0..1 + seq % 50 {
            seq += 1;
            assert!(writer.append(seq, Nanos(seq), &body(seq)).is_kept(), "{:?}", writer.fault());
        }
        assert!(writer.flush().is_kept(), "{:?}", writer.fault());
        let written = writeln!(out, "synced {}", writer.progress().synced_up_to()).and_then(|()| out.flush());
        if written.is_err() {
            // The parent process has ended.
            return;
        }
    }
}
