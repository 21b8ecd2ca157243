//! Disks that are full, read-only or broken, and machines that stop: the stated policy applies, and no loss is silent.
use crate::failing;

use std::process::{Command, Stdio};

use failing::{Fails, Memory};
use proptest::prelude::*;
use tapeline_journal::{
    Directory, Durability, Error, Folder, Next, OnFailure, Outcome, Reader, Retention, Settings, State,
    Writer,
};
use tapeline_nanos::Nanos;

const SECOND: u64 = 1_000_000_000;

fn settings(durability: Durability, on_failure: OnFailure) -> Settings {
    Settings { durability, on_failure, segment_bytes: Settings::LEAST_SEGMENT_BYTES, ..Settings::default() }
}

/// Sequences, and missing ranges as (from, to).
type Contents = (Vec<u64>, Vec<(u64, u64)>);

/// Returns all sequences and missing ranges of a journal.
fn contents(folder: &Memory) -> Result<Contents, Error> {
    let mut reader = Reader::open(folder.clone())?;
    let (mut seqs, mut holes) = (Vec::new(), Vec::new());
    loop {
        match reader.next()? {
            Next::Record(record) => {
                assert_eq!(record.body, record.seq.to_le_bytes().repeat(20));
                seqs.push(record.seq);
            }
            Next::Missing { from, to } => holes.push((from, to)),
            Next::End => {
                reader.ending()?;
                return Ok((seqs, holes));
            }
        }
    }
}

fn append(writer: &mut Writer<Memory>, seq: u64, time: Nanos) -> Outcome {
    writer.append(seq, time, &seq.to_le_bytes().repeat(20))
}

/// Retention permits no segment, and the disk is full when the next segment begins: sequences continue after the last
/// record.
#[test]
fn where_sequences_go_on_is_known_whatever_is_let_go_of() {
    let folder = Memory::new();
    let retention = Retention { age: Some(std::time::Duration::from_secs(1)), bytes: Some(1) };
    let settings = Settings { retention, ..settings(Durability::Written, OnFailure::Stop) };
    let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
    for seq in 1..=1_000 {
        assert!(append(&mut writer, seq, Nanos(seq)).is_kept());
    }
    assert!(writer.flush().is_kept());
    folder.fail(Fails::Full(0));
    // The next day.
    assert_eq!(append(&mut writer, 1_001, Nanos(100_000 * SECOND)), Outcome::Stopped);
    drop(writer);
    folder.fail(Fails::Nothing);
    let (mut writer, opened) = Writer::open(folder.clone(), settings).unwrap();
    assert_eq!(opened.last, 1_000);
    assert!(append(&mut writer, 1_001, Nanos(100_000 * SECOND)).is_kept());
    assert!(writer.finish().is_kept());
}

/// The latest record has the time of a clock that was far ahead.
#[test]
fn a_clock_that_was_set_back_does_not_keep_the_journal_from_being_tried_again() {
    let folder = Memory::new();
    let settings = settings(Durability::Written, OnFailure::Continue);
    let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
    assert!(append(&mut writer, 1, Nanos(100_000 * SECOND)).is_kept());
    folder.fail(Fails::Full(0));
    assert!(append(&mut writer, 2, Nanos(10 * SECOND)).is_kept());
    assert_eq!(writer.flush(), Outcome::Missing);
    assert_eq!(append(&mut writer, 3, Nanos(11 * SECOND)), Outcome::Missing);
    folder.fail(Fails::Nothing);
    // No retry within the second; a retry after it.
    assert_eq!(append(&mut writer, 4, Nanos(11 * SECOND + 1)), Outcome::Missing);
    assert!(append(&mut writer, 5, Nanos(12 * SECOND)).is_kept());
    assert!(writer.finish().is_kept());
    assert_eq!(contents(&folder).unwrap().0, [5]);
}

/// The disk fails from the first record on: a reader from the oldest record gets the missing range.
#[test]
fn what_is_missing_before_the_first_record_is_said() {
    let folder = Memory::new();
    let settings = settings(Durability::Written, OnFailure::Continue);
    let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
    let mut follower = Reader::open(folder.clone()).unwrap();
    folder.fail(Fails::Full(0));
    for seq in 1..=3 {
        assert_eq!(append(&mut writer, seq, Nanos(SECOND)), Outcome::Missing);
    }
    assert_eq!(follower.next().unwrap(), Next::End);
    folder.fail(Fails::Nothing);
    assert!(append(&mut writer, 4, Nanos(3 * SECOND)).is_kept());
    assert!(writer.finish().is_kept());
    assert_eq!(contents(&folder).unwrap(), (vec![4], vec![(1, 3)]));
    assert_eq!(follower.next().unwrap(), Next::Missing { from: 1, to: 3 });
    let mut late = Reader::open(folder).unwrap();
    late.seek(tapeline_journal::From::Time(Nanos(SECOND))).unwrap();
    assert!(matches!(late.next().unwrap(), Next::Record(record) if record.seq == 4));
}

#[test]
fn a_segment_that_somebody_removed_is_no_fault_at_the_end() {
    let folder = Memory::new();
    let (mut writer, _) =
        Writer::open(folder.clone(), settings(Durability::Written, OnFailure::Stop)).unwrap();
    for seq in 1..=2_000 {
        assert!(append(&mut writer, seq, Nanos(seq)).is_kept());
    }
    folder.remove("00000000000000000001.journal").unwrap();
    assert!(writer.finish().is_kept());
}

#[test]
fn a_writer_that_is_gone_holds_up_nobody() {
    let open = || Writer::open(Memory::new(), settings(Durability::Synced, OnFailure::Stop)).unwrap().0;
    let writer = open();
    let progress = writer.progress();
    assert!(writer.finish().is_kept());
    assert_eq!(progress.state(), State::Keeping);
    let writer = open();
    let progress = writer.progress();
    drop(writer);
    assert_eq!(progress.state(), State::Stopped);
}

const FAILURES: [Fails; 4] = [Fails::Full(0), Fails::Full(1_000), Fails::ReadOnly, Fails::Sync];

#[test]
fn a_journal_that_stops_has_what_it_said_and_nothing_else() {
    for fails in FAILURES {
        let folder = Memory::new();
        let settings = settings(Durability::Synced, OnFailure::Stop);
        let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
        let progress = writer.progress();
        let mut last_good = 0;
        let mut stopped_at = None;
        for seq in 1..=100 {
            if seq == 50 {
                folder.fail(fails);
            }
            let outcome = append(&mut writer, seq, Nanos(SECOND));
            let outcome = if seq % 3 == 0 { writer.flush() } else { outcome };
            if progress.synced_up_to() == seq {
                last_good = seq;
                assert!(progress.lets_go(seq) && !progress.lets_go(seq + 1));
            }
            if outcome == Outcome::Stopped {
                stopped_at.get_or_insert(seq);
            } else {
                assert_eq!((outcome, stopped_at), (Outcome::Kept, None), "{fails:?}");
            }
        }
        assert!(stopped_at.is_some_and(|seq| seq >= 50) && last_good >= 48, "{fails:?}: {stopped_at:?}");
        assert_eq!((progress.state(), progress.lets_go(last_good + 1)), (State::Stopped, false));
        assert_eq!(progress.missing(), 100 - last_good, "{fails:?}");
        assert!(matches!(writer.fault(), Some(Error::Io { .. })), "{:?}", writer.fault());
        assert_eq!(writer.flush(), Outcome::Stopped);
        // The disk recovers, and so does the journal.
        folder.fail(Fails::Nothing);
        let (mut writer, opened) = Writer::open(folder.clone(), settings).unwrap();
        assert!(opened.last >= last_good, "{fails:?}: {opened:?}");
        assert_eq!(append(&mut writer, opened.last + 1, Nanos(SECOND)), Outcome::Kept);
        assert_eq!(writer.flush(), Outcome::Kept);
        assert_eq!(contents(&folder).unwrap(), ((1..=opened.last + 1).collect(), vec![]), "{fails:?}");
    }
}

/// Under load, writes end within records. Records that count as written are whole, a following reader sees exactly
/// those, and a disk that fills up or a process that dies after any byte leaves no fewer.
#[test]
fn a_write_that_ends_within_a_record_leaves_whole_ones() {
    const RECORDS: u64 = 2_000;
    let around = |end: u64| (end - 200..end + 200).step_by(7);
    let bytes: Vec<_> =
        (0..400_000).step_by(9_973).chain(around(128 << 10)).chain(around(256 << 10)).collect();
    for (left, on_failure) in
        bytes.iter().flat_map(|left| [(left, OnFailure::Stop), (left, OnFailure::Continue)])
    {
        for fails in [Fails::Full(*left), Fails::Dying(*left)] {
            let folder = Memory::new();
            let settings = Settings { segment_bytes: 1 << 20, on_failure, ..Settings::default() };
            let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
            let progress = writer.progress();
            let mut follower = Reader::open(folder.clone()).unwrap();
            let mut followed = 0;
            for seq in 1..=RECORDS {
                if !append(&mut writer, seq, Nanos(seq)).is_kept() && on_failure == OnFailure::Stop {
                    break;
                }
                if seq == 1 {
                    folder.fail(fails);
                }
                while seq % 100 == 0
                    && progress.state() == State::Keeping
                    && let Next::Record(record) = follower.next().unwrap()
                {
                    followed = record.seq;
                }
                if seq % 100 == 0 && progress.state() == State::Keeping {
                    assert_eq!(followed, progress.written_up_to(), "{fails:?}");
                }
            }
            let _ = writer.flush();
            let is_over = progress.state() != State::Keeping;
            let kept = progress.written_up_to();
            assert!(is_over || *left > RECORDS * 184, "{fails:?}: {kept}");
            if is_over && on_failure == OnFailure::Continue {
                assert_eq!(kept + progress.missing(), RECORDS, "{fails:?}");
            }
            drop(writer);
            let there = contents(&folder).unwrap().0;
            assert!(there.iter().copied().eq(1..=there.len() as u64), "{fails:?}");
            // A killed process truncates nothing.
            let is_right = if matches!(fails, Fails::Full(_)) {
                there.len() as u64 == kept
            } else {
                there.len() as u64 >= kept
            };
            assert!(is_right, "{fails:?}: {} of {kept}", there.len());
            folder.fail(Fails::Nothing);
            let (_, opened) = Writer::open(folder, settings).unwrap();
            assert_eq!(opened.last, there.len() as u64, "{fails:?}");
        }
    }
}

#[test]
fn a_journal_that_goes_on_says_what_is_missing() {
    for fails in FAILURES {
        for durability in [Durability::Written, Durability::Synced] {
            let folder = Memory::new();
            let settings = settings(durability, OnFailure::Continue);
            let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
            let progress = writer.progress();
            // The disk fails and recovers three times; ten records a second.
            for seq in 1..=300 {
                match seq % 100 {
                    40 => folder.fail(fails),
                    60 => folder.fail(Fails::Nothing),
                    _ => {}
                }
                let outcome = append(&mut writer, seq, Nanos(seq * SECOND / 10));
                let outcome = if outcome.is_kept() { writer.flush() } else { outcome };
                assert_ne!(outcome, Outcome::Stopped);
                assert_eq!(outcome == Outcome::Missing, progress.state() == State::Without);
                assert_eq!(outcome == Outcome::Missing, writer.fault().is_some());
                assert!(progress.lets_go(seq), "{fails:?}: {seq}");
            }
            let (seqs, holes) = contents(&folder).unwrap();
            let missing: u64 = holes.iter().map(|(from, to)| to - from + 1).sum();
            assert_eq!(
                (seqs.len() as u64 + missing, missing),
                (300, progress.missing()),
                "{fails:?}: {holes:?}"
            );
            if fails != Fails::Sync || durability == Durability::Synced {
                assert_eq!(holes.len(), 3, "{fails:?}: {holes:?}");
                assert!(missing < 3 * 35, "{fails:?}: {holes:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    /// A machine stops in the middle of a write: synced records are there, and the rest is truncated.
    #[test]
    fn what_was_synced_outlives_the_machine(
        writes in proptest::collection::vec(1..200_u64, 1..6),
        unsynced in 0..200_u64,
        kept_pages in proptest::collection::vec(any::<bool>(), 1..40),
    ) {
        let folder = Memory::new();
        let settings = settings(Durability::Synced, OnFailure::Stop);
        let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
        let mut seq = 0;
        for write in writes {
            for _ in 0..write {
                seq += 1;
                prop_assert!(append(&mut writer, seq, Nanos(SECOND)).is_kept());
            }
            prop_assert!(writer.flush().is_kept());
        }
        let synced = writer.progress().synced_up_to();
        prop_assert_eq!(synced, seq);
        // The next write reaches the kernel and is not synced, as if the machine stops before the sync returns.
        folder.fail(Fails::Dying(u64::MAX));
        let last = seq + unsynced;
        // If a new segment begins within this write, the journal stops there.
        let _ = (seq + 1..=last).all(|seq| append(&mut writer, seq, Nanos(SECOND)).is_kept());
        prop_assert!(unsynced == 0 || writer.flush() == Outcome::Stopped);
        let mut pages = kept_pages.iter().cycle();
        let more = folder.stop(|| *pages.next().unwrap());
        let (mut writer, opened) = Writer::open(more.clone(), settings).unwrap();
        prop_assert!(opened.last >= synced && opened.last <= last, "{:?}", opened);
        prop_assert!(append(&mut writer, opened.last + 1, Nanos(SECOND)).is_kept());
        prop_assert!(writer.flush().is_kept());
        prop_assert_eq!(contents(&more).unwrap().0, (1..=opened.last + 1).collect::<Vec<_>>());
    }
}

/// After a clean end, and after a start that follows a kill, everything reported as synced is on disk, including file
/// names.
#[test]
fn what_counts_as_synced_is_on_disk() {
    for is_killed in [false, true] {
        let folder = Memory::new();
        let written = settings(Durability::Written, OnFailure::Stop);
        let (mut writer, _) = Writer::open(folder.clone(), written).unwrap();
        for seq in 1..=2_000 {
            assert!(append(&mut writer, seq, Nanos(SECOND)).is_kept());
        }
        assert!(writer.flush().is_kept());
        let progress = writer.progress();
        let progress = if is_killed {
            drop(writer);
            Writer::open(folder.clone(), written).unwrap().0.progress()
        } else {
            assert!(writer.finish().is_kept());
            progress
        };
        assert_eq!(progress.synced_up_to(), 2_000);
        assert_eq!(contents(&folder.stop(|| false)).unwrap().0, (1..=2_000).collect::<Vec<_>>());
    }
}

/// A record that cannot be journaled is missing; later records are not.
#[test]
fn a_record_that_cannot_be_one_is_missing_alone() {
    let folder = Memory::new();
    let settings = settings(Durability::Written, OnFailure::Continue);
    let (mut writer, _) = Writer::open(folder.clone(), settings).unwrap();
    assert!(append(&mut writer, 1, Nanos(SECOND)).is_kept());
    let long = vec![0; tapeline_journal::MOST_BODY + 1];
    assert_eq!(writer.append(2, Nanos(SECOND), &long), Outcome::Missing);
    assert!(append(&mut writer, 3, Nanos(SECOND)).is_kept() && writer.flush().is_kept());
    assert_eq!(contents(&folder).unwrap(), (vec![1, 3], vec![(2, 2)]));
}

/// The kernel refuses: a limit on the size of files, in a separate process.
#[test]
fn a_limit_on_files_is_a_stated_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    // 512-byte blocks: 20 KiB, enough for a segment's header and too little for its allocation.
    let script = "trap '' XFSZ; ulimit -f 40; exec \"$0\" --exact faults::the_part_under_a_limit --ignored";
    let test = std::env::current_exe().unwrap();
    let child = shell.args(["-c", script]).arg(test).env("JOURNAL", folder.path());
    let output = child.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "a role that the other tests start"]
fn the_part_under_a_limit() {
    let folder = std::env::var_os("JOURNAL").unwrap();
    let settings = settings(Durability::Written, OnFailure::Stop);
    let (mut writer, _) = Writer::open(Directory::create(folder.as_ref()).unwrap(), settings).unwrap();
    // If the file system cannot allocate ahead, a write meets the limit.
    let is_kept = (1..=200)
        .all(|seq| writer.append(seq, Nanos(SECOND), &[0; 200]).is_kept() && writer.flush().is_kept());
    assert!(!is_kept);
    let fault = writer.fault().unwrap();
    let Error::Io { source, .. } = fault else { panic!("{fault}") };
    assert_eq!(source.kind(), std::io::ErrorKind::FileTooLarge);
    assert!(fault.hint().unwrap().contains("ulimit -f"));
    assert_eq!(writer.progress().state(), State::Stopped);
}
