//! What is done before a journal is written again: the torn tail goes.

use tapeline_measure::Nanos;

use crate::folder::{File, Folder};
use crate::format::index_name;
use crate::reader::{From, Next, Reader};
use crate::segments::{Segment, list};
use crate::{Error, Tail};

/// How a journal was found, and what was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The last sequence that is in it; 0 if there is none. The next record has a later one.
    pub last: u64,
    /// The latest time of its records.
    pub latest: Nanos,
    /// Its segments.
    pub segments: usize,
    /// What was cut behind the last record.
    pub tail: Option<Tail>,
}

/// Cuts what is torn. Only the last segment is read: those before it were whole when it was begun.
pub(crate) fn open<F: Folder>(folder: F) -> Result<(F, Vec<Segment>, Opened), Error> {
    let listing = list(&folder)?;
    for name in &listing.begun {
        folder.remove(name).map_err(Error::io("remove", name))?;
    }
    let mut segments = listing.segments;
    let Some(last) = segments.last_mut() else { return Ok((folder, segments, Opened::default())) };
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
    if opened.last < last.header.first {
        // The next one may begin with the same sequence.
        folder.remove(&name).map_err(Error::io("remove", &name))?;
        let _ = folder.remove(&index_name(last.header.first));
        segments.pop();
    } else if last.bytes != end {
        let file = folder.open(&name, true).map_err(Error::io("open", &name))?;
        file.set_length(end).map_err(Error::io("cut the torn tail of", &name))?;
        last.bytes = end;
    }
    // What a process that was killed had written may be in memory alone, and it counts as synced from here on.
    for segment in &segments {
        let name = segment.name();
        let file = folder.open(&name, true).map_err(Error::io("open", &name))?;
        file.sync().map_err(Error::io("sync", &name))?;
    }
    folder.sync().map_err(Error::io("sync", "the journal's folder"))?;
    opened.segments = segments.len();
    Ok((folder, segments, opened))
}
