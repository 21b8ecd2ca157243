//! What is done before a journal is written again: the torn tail goes.

use tapeline_nanos::Nanos;

use crate::bounds::{self, Bounds, Writing};
use crate::folder::{File, Folder};
use crate::format::index_name;
use crate::reader::{From, Next, Reader};
use crate::segments::{Segment, list};
use crate::{Error, Lost, Tail};

/// The state in which a journal was found, and what was truncated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The last sequence given to the journal, as far as known; 0 if none. The next record must have a later one.
    pub last: u64,
    /// Records lost at the end because the last file is lost. The next segment records the loss too.
    pub lost: Option<Lost>,
    /// The latest time of the journal's records.
    pub latest: Nanos,
    /// Number of segments.
    pub segments: usize,
    /// The torn tail that was truncated behind the last record.
    pub tail: Option<Tail>,
}

/// How a journal is found.
pub(crate) struct Found<F: Folder> {
    pub(crate) folder: F,
    pub(crate) segments: Vec<Segment>,
    /// The last sequence that is in it.
    pub(crate) kept: u64,
    /// What is said of its ends from now on; the journal is not closed any more.
    pub(crate) bounds: Writing<F::File>,
    pub(crate) opened: Opened,
}

/// Cuts what is torn. Only the last segment is read: those before it were whole when it was begun.
pub(crate) fn open<F: Folder>(folder: F) -> Result<Found<F>, Error> {
    let listing = list(&folder)?;
    let said = bounds::read(&folder).map_err(Error::io("read", "the journal's bounds"))?;
    for name in &listing.begun {
        folder.remove(name).map_err(Error::io("remove", name))?;
    }
    let mut segments = listing.segments;
    let Some(last) = segments.last_mut() else {
        let (bounds, last, lost) = bounds_of(&folder, said, &segments, 0);
        let opened = Opened { last, lost, ..Opened::default() };
        return Ok(Found { folder, segments, kept: 0, bounds, opened });
    };
    if let Some(fault) = last.fault {
        return Err(Error::Corrupt { segment: last.name(), offset: 0, seq: last.header.first, fault });
    }
    let mut reader = Reader::open(folder)?;
    reader.seek(From::Seq(last.header.first))?;
    let mut opened = Opened { last: last.header.after, latest: last.header.latest, ..Opened::default() };
    while let Next::Record(record) = reader.next()? {
        (opened.last, opened.latest) = (record.seq, opened.latest.max(record.time));
    }
    opened.tail = reader.ending()?;
    let end = reader.place().map_or(0, |(_, offset)| offset);
    let folder = reader.into_folder();
    let name = last.name();
    let kept = opened.last;
    let (bounds, last_given, lost);
    let first = last.header.first;
    if kept < first {
        // The next one may begin with the same sequence. That it is not missed is said before it is removed.
        let without = said.map(|said| Bounds { newest: said.newest.min(kept), ..said });
        (bounds, last_given, lost) = bounds_of(&folder, without, &segments[..segments.len() - 1], kept);
        folder.remove(&name).map_err(Error::io("remove", &name))?;
        let _ = folder.remove(&index_name(first));
        segments.pop();
    } else {
        if last.bytes != end {
            let file = folder.open(&name, true).map_err(Error::io("open", &name))?;
            file.set_length(end).map_err(Error::io("cut the torn tail of", &name))?;
            last.bytes = end;
        }
        (bounds, last_given, lost) = bounds_of(&folder, said, &segments, kept);
    }
    (opened.last, opened.lost) = (last_given, lost);
    // What a process that was killed had written may be in memory alone, and it counts as synced from here on.
    for segment in &segments {
        let name = segment.name();
        let file = folder.open(&name, true).map_err(Error::io("open", &name))?;
        file.sync().map_err(Error::io("sync", &name))?;
    }
    folder.sync().map_err(Error::io("sync", "the journal's folder"))?;
    opened.segments = segments.len();
    Ok(Found { folder, segments, kept, bounds, opened })
}

/// What is said of the journal's ends while it is written, the last sequence that it was given, and what is lost at that end. What retention has kept stays as it was said,
/// so that a first file that is lost is missed after another start too.
fn bounds_of<F: Folder>(
    folder: &F,
    said: Option<Bounds>,
    segments: &[Segment],
    kept: u64,
) -> (Writing<F::File>, u64, Option<Lost>) {
    let oldest = segments.first().map_or(0, |segment| segment.header.first);
    let newest = segments.last().map_or(0, |segment| segment.header.first);
    let was = said.unwrap_or_default();
    let last = was.closed.unwrap_or(was.newest).max(kept);
    let lost = (last > kept).then_some(Lost { from: kept + 1, to: was.closed });
    let oldest = if was.oldest == 0 { oldest } else { was.oldest };
    // Until a segment follows whose header names what is lost, the file does.
    let newest = if lost.is_some() { last } else { newest };
    let mut bounds = Writing::open(folder, Bounds { oldest, newest, closed: None });
    // On disk before an empty segment goes: a machine that stops then would seem to have lost it.
    bounds.write(folder, true);
    (bounds, last, lost)
}
