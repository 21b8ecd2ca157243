//! The segments of a folder, in order.

use std::io;

use crate::folder::{File, Folder, read_full};
use crate::format::{SEGMENT_BYTES, SegmentHeader, first_of, segment_name};
use crate::{Error, Fault, tail};
use tapeline_nanos::Nanos;

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// As its header has it; where that is damaged, its name's sequence, behind the one before.
    pub(crate) header: SegmentHeader,
    /// What is wrong with its header: an error for who gets there.
    pub(crate) fault: Option<Fault>,
    /// Bytes of its file.
    pub(crate) bytes: u64,
}

impl Segment {
    pub(crate) fn name(&self) -> String {
        segment_name(self.header.first)
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) segments: Vec<Segment>,
    /// Files of segments that have no header yet, and no record.
    pub(crate) begun: Vec<String>,
}

/// Looks at every segment's header.
pub(crate) fn list(folder: &impl Folder) -> Result<Listing, Error> {
    list_behind(folder, None)
}

/// The same, of those behind one only.
pub(crate) fn list_behind(folder: &impl Folder, behind: Option<u64>) -> Result<Listing, Error> {
    let names = folder.names().map_err(Error::io("read", "the journal's folder"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
    firsts.retain(|first| behind.is_none_or(|behind| *first > behind));
    firsts.sort_unstable();
    let mut listing = Listing::default();
    for first in &firsts {
        let name = segment_name(*first);
        let file = match folder.open(&name, false) {
            Ok(file) => file,
            // Its time was over, between the one look and the other.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Error::io("open", &name)(error)),
        };
        let bytes = file.length().map_err(Error::io("look at", &name))?;
        let (header, fault) = match header(&file, &name, *first)? {
            Ok(Some(header)) => (header, None),
            Ok(None) => {
                listing.begun.push(name);
                continue;
            }
            Err(fault) => {
                let before = listing.segments.last().map(|before| before.header);
                let (after, latest) = before.map_or((0, Nanos(0)), |before| (before.first, before.latest));
                (SegmentHeader { first: *first, after, latest }, Some(fault))
            }
        };
        listing.segments.push(Segment { header, fault, bytes });
    }
    Ok(listing)
}

/// A segment's header; `None` where its writer died, or had no room, before it had one, so that no record is in it.
fn header(file: &impl File, name: &str, first: u64) -> Result<Result<Option<SegmentHeader>, Fault>, Error> {
    let parse = || {
        let mut bytes = [0; SEGMENT_BYTES];
        let count = read_full(file, &mut bytes, 0).map_err(Error::io("read", name))?;
        Ok(match SegmentHeader::parse(&bytes[..count]) {
            Ok(header) if header.first != first => Err(Fault::Sequence(header.first)),
            other => other,
        })
    };
    let records = SEGMENT_BYTES as u64;
    if let Ok(header) = parse()? {
        return Ok(Ok(Some(header)));
    }
    if tail::behind(file, name, records, first.saturating_sub(1))?.end <= records {
        return Ok(Ok(None));
    }
    // It may have been made between the one look and the other.
    Ok(parse()?.map(Some))
}
