//! Opens a journal for writing, and truncates its torn tail.

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
    /// The torn tail that was truncated after the last record.
    pub tail: Option<Tail>,
}

/// The result of opening a journal.
pub(crate) struct Found<F: Folder> {
    pub(crate) folder: F,
    pub(crate) segments: Vec<Segment>,
    /// The last sequence in the journal.
    pub(crate) kept: u64,
    /// The bounds from now on; the journal no longer counts as closed.
    pub(crate) bounds: Writing<F::File>,
    pub(crate) opened: Opened,
}

/// Truncates the torn tail. Reads only the last segment: earlier segments were complete when it was begun.
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
    last.check()?;
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
        // The next segment may begin with the same sequence. The bounds are written before the removal, so that this
        // segment does not count as lost.
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
    // Writes of a killed process may still be only in the page cache, and count as synced from here on.
    for segment in &segments {
        let name = segment.name();
        let file = folder.open(&name, true).map_err(Error::io("open", &name))?;
        file.sync().map_err(Error::io("sync", &name))?;
    }
    folder.sync().map_err(Error::io("sync", "the journal's folder"))?;
    opened.segments = segments.len();
    Ok(Found { folder, segments, kept, bounds, opened })
}

/// Writes the bounds of a journal that is being written. Returns them, the last sequence given to the journal, and the
/// records lost after its last record. The oldest segment stays as recorded, so that a lost first file is still
/// reported after another start.
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
    // The bounds record the loss until a segment follows whose header records it.
    let newest = if lost.is_some() { last } else { newest };
    let mut bounds = Writing::open(folder, Bounds { oldest, newest, closed: None });
    // Synced before an empty segment is removed: otherwise it would appear lost after a failure of the machine.
    bounds.write(folder, true);
    (bounds, last, lost)
}
