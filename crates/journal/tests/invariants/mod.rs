//! The invariants of a journal for arbitrary bytes in its files.

use crate::failing;

use failing::Memory;
use tapeline_journal::{Error, From, MOST_BODY, Next, Reader, Settings, Writer};
use tapeline_nanos::Nanos;

/// Uses arbitrary bytes as two segments and an index; the first byte says where they are split.
///
/// Reading ends; records are whole and in order; every gap is reported; a writer either fails to open, or continues
/// after the last record that a reader finds.
pub(crate) fn journal(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first() else { return };
    let (first, second) = bytes.split_at(bytes.len() * usize::from(*cut) / 255);
    let folder = Memory::new();
    folder.put("00000000000000000001.journal", first);
    if !second.is_empty() {
        folder.put("00000000000000000004.journal", second);
    }
    folder.put("00000000000000000001.index", &bytes[bytes.len() / 2..]);
    let whole = read(&folder, From::Oldest);
    for from in [From::Seq(3), From::Time(Nanos(5))] {
        if let (Some(whole), Some(part)) = (&whole, read(&folder, from)) {
            assert!(part.len() <= whole.len() && whole.ends_with(&part), "{from:?}: {part:?} of {whole:?}");
        }
    }
    let settings = Settings { segment_bytes: Settings::LEAST_SEGMENT_BYTES, ..Settings::default() };
    let Ok((mut writer, opened)) = Writer::open(folder.clone(), settings) else { return };
    if opened.last == u64::MAX {
        return;
    }
    assert!(writer.append(opened.last + 1, opened.latest, b"more").is_kept());
    assert!(writer.flush().is_kept());
    if let Some(whole) = whole {
        let again = read(&folder, From::Oldest).expect("what could be read can be read again");
        assert_eq!(again.split_last(), Some((&(opened.last + 1), &whole[..])));
    }
}

/// Returns the sequences; `None` if there is damage.
fn read(folder: &Memory, from: From) -> Option<Vec<u64>> {
    let mut reader = Reader::open(folder.clone()).ok()?;
    reader.seek(from).ok()?;
    let mut seqs: Vec<u64> = Vec::new();
    let mut hole_to = None;
    loop {
        match reader.next() {
            Ok(Next::Record(record)) => {
                assert!(record.body.len() <= MOST_BODY);
                let last = hole_to.take().or(seqs.last().copied());
                assert!(last.is_none_or(|last| record.seq == last + 1), "{} after {last:?}", record.seq);
                seqs.push(record.seq);
            }
            Ok(Next::Missing { from, to }) => {
                assert!(from <= to && seqs.last().is_none_or(|last| from == last + 1));
                hole_to = Some(to);
            }
            Ok(Next::End) => return reader.ending().is_ok().then_some(seqs),
            Err(Error::Corrupt { .. }) => return None,
            Err(error) => panic!("{error}"),
        }
    }
}
