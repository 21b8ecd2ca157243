//! Records that are written can be read: in order, from any place, across segments, and after a crash.
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapeline_journal::{
    Directory, Durability, Ends, Error, From, Lost, Next, Outcome, Reader, Retention, Settings, State, Writer,
};
use tapeline_nanos::Nanos;

const SMALL: Settings = Settings {
    segment_bytes: Settings::LEAST_SEGMENT_BYTES,
    durability: Durability::Written,
    on_failure: tapeline_journal::OnFailure::Stop,
    retention: Retention { age: None, bytes: None },
};

/// Returns the body of a record; the length depends on the sequence.
fn body(seq: u64) -> Vec<u8> {
    (0..seq * 37 % 300).map(|at| (seq + at) as u8).collect()
}

fn time(seq: u64) -> Nanos {
    Nanos(1_000_000_000 + seq * 1_000)
}

fn open(folder: &Path, settings: Settings) -> (Writer<Directory>, tapeline_journal::Opened) {
    Writer::open(Directory::create(folder).unwrap(), settings).unwrap()
}

fn write(writer: &mut Writer<Directory>, seqs: impl IntoIterator<Item = u64>) {
    for seq in seqs {
        assert_eq!(writer.append(seq, time(seq), &body(seq)), Outcome::Kept, "{seq}: {:?}", writer.fault());
    }
    assert_eq!(writer.flush(), Outcome::Kept);
}

fn reader(folder: &Path) -> Reader<Directory> {
    Reader::open(Directory::open(folder).unwrap()).unwrap()
}

/// Sequences, and missing ranges as (from, to).
type Contents = (Vec<u64>, Vec<(u64, u64)>);

/// Reads up to the end.
fn rest(reader: &mut Reader<Directory>) -> Result<Contents, Error> {
    let (mut seqs, mut holes) = (Vec::new(), Vec::new());
    loop {
        match reader.next()? {
            Next::Record(record) => {
                assert_eq!((record.time, record.body), (time(record.seq), &body(record.seq)[..]));
                seqs.push(record.seq);
            }
            Next::Missing { from, to } => holes.push((from, to)),
            Next::End => return Ok((seqs, holes)),
        }
    }
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<_> = files.filter(|path| path.extension().is_some_and(|is| is == "journal")).collect();
    found.sort();
    found
}

#[test]
fn what_is_written_comes_back_across_segments_and_openings() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, opened) = open(folder.path(), SMALL);
    assert_eq!((opened.last, opened.tail), (0, None));
    write(&mut writer, 1..=700);
    assert_eq!((writer.progress().written_up_to(), writer.progress().synced_up_to()), (700, 0));
    // Ended without `finish`, as by SIGKILL.
    drop(writer);
    let (mut writer, opened) = open(folder.path(), SMALL);
    assert_eq!((opened.last, opened.latest, opened.tail), (700, time(700), None));
    write(&mut writer, 701..=1_500);
    assert_eq!(writer.finish(), Outcome::Kept);
    assert!(segments(folder.path()).len() > 4);

    let mut reader = reader(folder.path());
    assert_eq!(rest(&mut reader).unwrap(), ((1..=1_500).collect(), vec![]));
    assert_eq!(reader.ending().unwrap(), None);
    for from in [1, 2, 699, 700, 701, 1_499, 1_500] {
        reader.seek(From::Seq(from)).unwrap();
        assert_eq!(rest(&mut reader).unwrap().0, (from..=1_500).collect::<Vec<_>>());
        reader.seek(From::Time(time(from))).unwrap();
        assert_eq!(rest(&mut reader).unwrap().0, (from..=1_500).collect::<Vec<_>>());
        reader.seek(From::Time(Nanos(time(from).0 - 999))).unwrap();
        assert_eq!(rest(&mut reader).unwrap().0[0], from);
    }
    reader.seek(From::Seq(1_501)).unwrap();
    assert_eq!(rest(&mut reader).unwrap(), (vec![], vec![]));
    reader.seek(From::Oldest).unwrap();
    assert_eq!(rest(&mut reader).unwrap().0.len(), 1_500);
}

/// A reader at the end gets records that are written later, in this segment and in the next ones.
#[test]
fn a_reader_follows_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    let mut reader = reader(folder.path());
    assert_eq!(rest(&mut reader).unwrap(), (vec![], vec![]));
    let mut written = 0;
    for more in [1, 1, 5, 900, 3, 2_000, 1] {
        write(&mut writer, written + 1..=written + more);
        assert_eq!(rest(&mut reader).unwrap().0, (written + 1..=written + more).collect::<Vec<_>>());
        assert_eq!(rest(&mut reader).unwrap(), (vec![], vec![]));
        written += more;
    }
}

#[test]
fn what_was_left_out_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, (5..=7).chain(10..=12).chain(20..=20));
    let mut reader = reader(folder.path());
    assert_eq!(rest(&mut reader).unwrap(), (vec![5, 6, 7, 10, 11, 12, 20], vec![(1, 4), (8, 9), (13, 19)]));
    reader.seek(From::Seq(2)).unwrap();
    assert_eq!(rest(&mut reader).unwrap().1, [(2, 4), (8, 9), (13, 19)]);
    reader.seek(From::Seq(9)).unwrap();
    assert_eq!(rest(&mut reader).unwrap(), (vec![10, 11, 12, 20], vec![(9, 9), (13, 19)]));
}

#[test]
fn sequences_that_go_back_stop_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, 1..=3);
    assert_eq!(writer.append(3, time(3), &[]), Outcome::Stopped);
    assert!(matches!(writer.fault(), Some(Error::NotLater { last: 3, found: 3 })));
    assert_eq!((writer.append(4, time(4), &[]), writer.flush()), (Outcome::Stopped, Outcome::Stopped));
    assert_eq!((writer.progress().state(), writer.progress().missing()), (State::Stopped, 2));
    assert_eq!(rest(&mut reader(folder.path())).unwrap().0, [1, 2, 3]);
}

#[test]
fn a_day_begins_a_segment() {
    const DAY: u64 = 86_400_000_000_000;
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    for (seq, time) in [(1, DAY - 2), (2, DAY - 1), (3, DAY), (4, DAY - 1), (5, 2 * DAY - 1), (6, 5 * DAY)] {
        assert!(writer.append(seq, Nanos(time), b"tick").is_kept());
    }
    assert!(writer.finish().is_kept());
    let reader = reader(folder.path());
    assert_eq!(reader.segments().map(|segment| segment.first).collect::<Vec<_>>(), [1, 3, 6]);
    assert_eq!(reader.segments().last().unwrap().latest_before, Nanos(2 * DAY - 1));
}

/// Seeking a time finds the first record, in sequence order, at this time or later, also if the clock was set back.
#[test]
fn times_that_go_back_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    let time = |seq: u64| Nanos(1 << 40 | if seq % 100 < 50 { seq * 10 } else { seq * 7 });
    for seq in 1..=3_000 {
        assert!(writer.append(seq, time(seq), &[0; 300]).is_kept());
    }
    assert!(writer.flush().is_kept());
    let mut reader = reader(folder.path());
    for wanted in (0..3_000).step_by(77) {
        let expected = (1..=3_000).find(|seq| time(*seq) >= time(wanted));
        reader.seek(From::Time(time(wanted))).unwrap();
        let Next::Record(record) = reader.next().unwrap() else { panic!("{wanted}") };
        assert_eq!(Some(record.seq), expected, "{wanted}");
    }
}

#[test]
fn old_segments_are_let_go_of() {
    for (age, bytes, most) in [(None, Some(300_000), 6), (Some(Duration::from_micros(900)), None, 6)] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { retention: Retention { age, bytes }, ..SMALL };
        let (mut writer, _) = open(folder.path(), settings);
        write(&mut writer, 1..=2_000);
        let mut follower = reader(folder.path());
        write(&mut writer, 2_001..=4_000);
        drop(writer);
        let (mut writer, _) = open(folder.path(), settings);
        write(&mut writer, 4_001..=6_000);
        let kept = segments(folder.path()).len();
        assert!((2..=most).contains(&kept), "{kept} segments");
        let oldest = reader(folder.path()).segments().next().unwrap().first;
        let mut late = reader(folder.path());
        late.seek(From::Seq(1)).unwrap();
        assert_eq!(rest(&mut late).unwrap(), ((oldest..=6_000).collect(), vec![(1, oldest - 1)]));
        // A reader that was open meanwhile also gets the gap: its open segment is still readable, later ones are not.
        let (seqs, holes) = rest(&mut follower).unwrap();
        assert_eq!(
            seqs.len() as u64 + holes.iter().map(|(from, to)| to - from + 1).sum::<u64>(),
            6_000 - seqs[0] + 1
        );
    }
}

/// At midnight a file begins, and the oldest one goes if its last record is older than the limit, to the nanosecond. The numbers go on.
#[test]
fn at_midnight_the_file_that_became_too_old_is_let_go_of() {
    const DAY: u64 = 86_400_000_000_000;
    // A bit more than two days, so that the last nanosecond of the first day decides.
    let age = Some(Duration::from_nanos(2 * DAY + 10));
    for (midnight, oldest) in [(3 * DAY, 1), (3 * DAY + 9, 1), (3 * DAY + 10, 4), (4 * DAY, 4)] {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings { retention: Retention { age, bytes: None }, ..Settings::default() };
        let (mut writer, _) = open(folder.path(), settings);
        let days = (0..3).flat_map(|day| [day * DAY, day * DAY + 7, (day + 1) * DAY - 1]);
        let times: Vec<u64> = days.chain([midnight, midnight + 1]).collect();
        let mut follower = None;
        for (seq, time) in (1..).zip(&times) {
            assert!(writer.append(seq, Nanos(*time), b"tick").is_kept());
            assert!(writer.flush().is_kept());
            if seq == 1 {
                let mut it = reader(folder.path());
                assert!(matches!(it.next().unwrap(), Next::Record(_)));
                follower = Some(it);
            }
            if seq == 9 {
                assert_eq!(segments(folder.path()).len(), 3, "nothing goes before midnight");
            }
        }
        let firsts: Vec<u64> = reader(folder.path()).segments().map(|segment| segment.first).collect();
        let all = [1, 4, 7, 10];
        assert_eq!(firsts, all[all.iter().position(|first| *first == oldest).unwrap()..], "{midnight}");
        // A reader that has the first file open goes on with what is there.
        let mut follower = follower.unwrap();
        let mut seqs = Vec::new();
        loop {
            match follower.next().unwrap() {
                Next::Record(record) => seqs.push(record.seq),
                Next::Missing { from, to } => panic!("{from} to {to} of {midnight}"),
                Next::End => break,
            }
        }
        assert_eq!(seqs, (2..=11).collect::<Vec<_>>(), "{midnight}");
        // The next process goes on with the next number.
        assert!(writer.finish().is_kept());
        let (mut writer, opened) = open(folder.path(), settings);
        assert_eq!(opened.last, 11);
        assert!(writer.append(12, Nanos(midnight + 2), b"tick").is_kept());
    }
}

/// Retention deletes the segment that a reader has open, and later ones.
#[test]
fn a_reader_that_is_lapped_is_told_what_it_missed() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { retention: Retention { age: None, bytes: Some(200_000) }, ..SMALL };
    let (mut writer, _) = open(folder.path(), settings);
    write(&mut writer, 1..=10);
    let mut follower = reader(folder.path());
    assert_eq!(rest(&mut follower).unwrap().0.len(), 10);
    write(&mut writer, 11..=6_000);
    let (seqs, holes) = rest(&mut follower).unwrap();
    let own =
        seqs.iter().zip(11..).take_while(|(seq, next)| **seq == *next).last().map_or(10, |(seq, _)| *seq);
    let oldest = reader(folder.path()).segments().next().unwrap().first;
    assert_eq!(holes, [(own + 1, oldest - 1)]);
    assert_eq!(seqs.last(), Some(&6_000));
}

/// A failed write is truncated after a reader has seen it: the reader continues.
#[test]
fn a_reader_goes_on_behind_what_was_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, 1..=3);
    assert!(writer.finish().is_kept());
    let path = &segments(folder.path())[0];
    let kept = fs::metadata(path).unwrap().len();
    fs::remove_file(path).unwrap();
    // As if the journal had never been closed.
    fs::remove_file(folder.path().join("bounds")).unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, 1..=5);
    let mut follower = reader(folder.path());
    assert_eq!(rest(&mut follower).unwrap().0, [1, 2, 3, 4, 5]);
    drop(writer);
    fs::File::options().write(true).open(path).unwrap().set_len(kept).unwrap();
    let (mut writer, opened) = open(folder.path(), SMALL);
    assert_eq!(opened.last, 3);
    write(&mut writer, [7, 8]);
    assert_eq!(rest(&mut follower).unwrap(), (vec![7, 8], vec![(6, 6)]));
}

/// A user deletes a segment: retention continues with the next ones.
#[test]
fn a_segment_that_is_gone_is_let_go_of() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { retention: Retention { age: None, bytes: Some(200_000) }, ..SMALL };
    let (mut writer, _) = open(folder.path(), settings);
    write(&mut writer, 1..=500);
    fs::remove_file(&segments(folder.path())[0]).unwrap();
    write(&mut writer, 501..=6_000);
    assert!(segments(folder.path()).len() <= 6, "{}", segments(folder.path()).len());
}

/// Records before a segment with a damaged header can be read.
#[test]
fn a_damaged_header_is_an_error_for_who_gets_there() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, 1..=3_000);
    assert!(writer.finish().is_kept());
    let path = &segments(folder.path())[2];
    let mut bytes = fs::read(path).unwrap();
    bytes[20] ^= 1;
    fs::write(path, bytes).unwrap();
    let first: u64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let mut reader = reader(folder.path());
    for seq in 1..first {
        assert!(matches!(reader.next().unwrap(), Next::Record(record) if record.seq == seq));
    }
    let error = reader.next().unwrap_err();
    assert!(matches!(&error, Error::Corrupt { offset: 0, seq, .. } if *seq == first), "{error}");
    reader.seek(From::Seq(3_000)).unwrap();
    assert_eq!(rest(&mut reader).unwrap().0, [3_000]);
}

/// The last segment is cut at any byte: the records before the cut are there, and the torn tail is reported.
#[test]
fn a_torn_tail_is_cut_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, 1..=3);
    write(&mut writer, 4..=6);
    assert!(writer.finish().is_kept());
    let path = segments(folder.path()).remove(0);
    let whole = fs::read(&path).unwrap();
    let sizes = (1..=6).map(|seq| (24 + body(seq).len()).next_multiple_of(8));
    let ends: Vec<usize> = sizes
        .scan(64, |at, size| {
            *at += size;
            Some(*at)
        })
        .collect();
    assert_eq!(ends[5], whole.len());
    for cut in 0..=whole.len() {
        for zeros in [0, 4_096] {
            fs::write(&path, [&whole[..cut], &vec![0; zeros]].concat()).unwrap();
            // After a crash the journal is not marked closed.
            let _ = fs::remove_file(folder.path().join("bounds"));
            let (mut writer, opened) = open(folder.path(), SMALL);
            // Zeros after the record can be its padding.
            let padding = |seq: u64| if zeros > 0 { 7 - (23 + body(seq).len()) % 8 } else { 0 };
            let last = (1..).zip(&ends).filter(|(seq, end)| **end - padding(*seq) <= cut).count() as u64;
            let end = if last == 0 { 64 } else { ends[last as usize - 1] };
            assert_eq!(opened.last, last, "cut to {cut}");
            if cut > 64 {
                let torn = whole
                    .get(end..cut)
                    .unwrap_or_default()
                    .iter()
                    .rposition(|byte| *byte != 0)
                    .map_or(0, |at| at + 1);
                let tail = opened.tail.map_or((end, 0), |tail| (tail.offset as usize, tail.bytes as usize));
                assert_eq!(tail, (end, torn), "cut to {cut}");
            }
            write(&mut writer, last + 1..=9);
            drop(writer);
            assert_eq!(rest(&mut reader(folder.path())).unwrap().0, (1..=9).collect::<Vec<_>>());
            for path in segments(folder.path()) {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

/// A bit flip before the last write is damage with a place, in any segment, for readers and for writers.
#[test]
fn damage_in_the_middle_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    write(&mut writer, 1..=3);
    write(&mut writer, 4..=900);
    write(&mut writer, 901..=903);
    assert!(writer.finish().is_kept());
    let paths = segments(folder.path());
    for (path, is_last) in [(&paths[0], false), (paths.last().unwrap(), true)] {
        let whole = fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        // In each byte of the first record, without its padding.
        let first: u64 = name[..20].parse().unwrap();
        for at in 64..64 + 24 + body(first).len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            fs::write(path, damaged).unwrap();
            let error = rest(&mut reader(folder.path())).unwrap_err();
            let Error::Corrupt { segment, offset, seq, .. } = &error else { panic!("{error}") };
            assert_eq!((segment.as_str(), *offset, *seq), (name, 64, first));
            if is_last {
                let opened = Writer::open(Directory::create(folder.path()).unwrap(), SMALL);
                assert!(matches!(opened, Err(Error::Corrupt { offset: 64, .. })), "byte {at}");
            }
        }
        // A page of zeros, as left by a disk that wrote later bytes first.
        let mut damaged = whole.clone();
        damaged[64..64 + 512].fill(0);
        fs::write(path, damaged).unwrap();
        let mut reader = reader(folder.path());
        let error = rest(&mut reader).and_then(|_| reader.ending()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { offset: 64, .. }), "{error}");
        fs::write(path, whole).unwrap();
    }
    // A missing segment is an error too.
    fs::remove_file(&paths[1]).unwrap();
    let error = rest(&mut reader(folder.path())).unwrap_err();
    assert!(error.to_string().starts_with(paths[0].file_name().unwrap().to_str().unwrap()), "{error}");
}

/// The index is a hint: without it, or with a wrong one, the result is the same.
#[test]
fn a_wrong_index_leads_nobody_astray() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { segment_bytes: 8 << 20, ..SMALL };
    let (mut writer, _) = open(folder.path(), settings);
    write(&mut writer, 1..=20_000);
    assert!(writer.finish().is_kept());
    let index = segments(folder.path())[0].with_extension("index");
    let whole = fs::read(&index).unwrap();
    assert!(whole.len() / 32 > 8, "{} bytes", whole.len());
    let mut shifted = whole.clone();
    shifted[32 + 16] ^= 8;
    let mut earlier = whole.clone();
    // The latest time of the last mark: a search would begin too late.
    let last = earlier.len() - 32;
    earlier[last + 8..last + 16].fill(0);
    for bytes in
        [None, Some(shifted), Some(earlier), Some(vec![0xFF; 100]), Some(whole[..30].to_vec()), Some(whole)]
    {
        match bytes {
            Some(bytes) => fs::write(&index, bytes).unwrap(),
            None => fs::remove_file(&index).unwrap(),
        }
        for from in [1, 1_700, 3_400, 12_345, 20_000] {
            let mut reader = reader(folder.path());
            reader.seek(From::Seq(from)).unwrap();
            assert_eq!(rest(&mut reader).unwrap().0, (from..=20_000).collect::<Vec<_>>());
            reader.seek(From::Time(time(from))).unwrap();
            assert_eq!(rest(&mut reader).unwrap().0[0], from);
        }
    }
}

#[test]
fn a_journal_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, _) = open(folder.path(), SMALL);
    assert!(matches!(Directory::create(folder.path()), Err(Error::InUse { .. })));
    drop(writer);
    assert!(Directory::create(folder.path()).is_ok());
}

#[test]
fn long_records_have_segments_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) = open(folder.path(), SMALL);
    let long = vec![7; 3 << 20];
    for (seq, body) in [(1, &b"short"[..]), (2, &long), (3, b"short"), (4, &long), (5, &long)] {
        assert!(writer.append(seq, time(seq), body).is_kept());
    }
    assert!(writer.append(6, time(6), &vec![0; tapeline_journal::MOST_BODY + 1]) == Outcome::Stopped);
    drop(writer);
    let mut reader = reader(folder.path());
    for expected in [5, 3 << 20, 5, 3 << 20, 3 << 20] {
        let Next::Record(record) = reader.next().unwrap() else { panic!() };
        assert_eq!(record.body.len(), expected);
    }
    assert_eq!(reader.next().unwrap(), Next::End);
}

/// Writes records and closes the journal; each day has a segment.
fn close_days(folder: &Path, retention: Retention, seqs: std::ops::RangeInclusive<u64>) {
    let settings = Settings { retention, ..Settings::default() };
    let (mut writer, _) = Writer::open(Directory::create(folder).unwrap(), settings).unwrap();
    for seq in seqs {
        assert!(writer.append(seq, Nanos(seq / 10 * 86_400_000_000_000), b"a tick").is_kept());
    }
    assert!(writer.finish().is_kept());
}

fn ends(folder: &Path) -> Ends {
    let mut reader = Reader::open(Directory::open(folder).unwrap()).unwrap();
    while reader.next().unwrap() != Next::End {}
    reader.ends().unwrap()
}

fn segment(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.journal"))
}

#[test]
fn a_journal_that_was_closed_says_so_until_it_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    close_days(folder.path(), Retention::default(), 1..=25);
    assert_eq!(ends(folder.path()), Ends { is_known: true, closed: Some(25), ..Ends::default() });
    let directory = Directory::open(folder.path()).unwrap();
    assert!(!directory.is_being_written().unwrap());
    let (mut writer, _) =
        Writer::open(Directory::create(folder.path()).unwrap(), Settings::default()).unwrap();
    assert!(directory.is_being_written().unwrap());
    assert_eq!(ends(folder.path()).closed, None);
    assert!(writer.append(26, Nanos(0), b"a tick").is_kept() && writer.flush().is_kept());
    // Killed.
    drop(writer);
    assert_eq!(ends(folder.path()), Ends { is_known: true, ..Ends::default() });
    close_days(folder.path(), Retention::default(), 27..=30);
    assert_eq!(ends(folder.path()).closed, Some(30));
    // As a journal of an earlier version.
    fs::remove_file(folder.path().join("bounds")).unwrap();
    assert_eq!(ends(folder.path()), Ends::default());
}

#[test]
fn a_last_file_that_is_lost_is_missed_and_its_numbers_are_not_given_again() {
    let folder = tempfile::tempdir().unwrap();
    close_days(folder.path(), Retention::default(), 1..=25);
    fs::remove_file(segment(folder.path(), 20)).unwrap();
    let lost = Some(Lost { from: 20, to: Some(25) });
    assert_eq!(ends(folder.path()), Ends { is_known: true, lost_behind: lost, ..Ends::default() });
    let open = || Writer::open(Directory::create(folder.path()).unwrap(), Settings::default()).unwrap();
    // Also after a start that wrote nothing.
    drop(open());
    assert_eq!(ends(folder.path()).lost_behind.map(|lost| lost.from), Some(20));
    let (mut writer, opened) = open();
    assert_eq!((opened.last, opened.lost.map(|lost| lost.from)), (25, Some(20)));
    assert!(writer.append(26, Nanos(0), b"a tick").is_kept() && writer.finish().is_kept());
    assert_eq!(ends(folder.path()), Ends { is_known: true, closed: Some(26), ..Ends::default() });
    let mut reader = Reader::open(Directory::open(folder.path()).unwrap()).unwrap();
    reader.seek(From::Seq(20)).unwrap();
    assert_eq!(reader.next().unwrap(), Next::Missing { from: 20, to: 25 });
}

#[test]
fn a_last_file_of_a_killed_writer_is_missed_too() {
    let folder = tempfile::tempdir().unwrap();
    let (mut writer, _) =
        Writer::open(Directory::create(folder.path()).unwrap(), Settings::default()).unwrap();
    for seq in 1..=25 {
        assert!(writer.append(seq, Nanos(seq / 10 * 86_400_000_000_000), b"a tick").is_kept());
    }
    assert!(writer.flush().is_kept());
    drop(writer);
    assert_eq!(ends(folder.path()).lost_behind, None);
    fs::remove_file(segment(folder.path(), 20)).unwrap();
    assert_eq!(ends(folder.path()).lost_behind, Some(Lost { from: 20, to: None }));
}

#[test]
fn a_first_file_that_is_lost_is_told_from_one_that_was_let_go_of() {
    let folder = tempfile::tempdir().unwrap();
    let a_day = Some(Duration::from_secs(86_400));
    close_days(folder.path(), Retention { age: a_day, bytes: None }, 1..=49);
    assert!(!segment(folder.path(), 1).exists());
    assert_eq!(ends(folder.path()), Ends { is_known: true, closed: Some(49), ..Ends::default() });
    let first = (1..50).find(|first| segment(folder.path(), *first).exists()).unwrap();
    fs::remove_file(segment(folder.path(), first)).unwrap();
    let lost = Some(Lost { from: first, to: Some(first + 9) });
    assert_eq!(ends(folder.path()).lost_before, lost);
    // Another start, which deletes nothing, does not clear the loss.
    close_days(folder.path(), Retention::default(), 50..=55);
    assert_eq!(
        ends(folder.path()),
        Ends { is_known: true, closed: Some(55), lost_before: lost, ..Ends::default() }
    );
}
