//! The segments of a folder, in order.

use std::io;

use crate::folder::{File, Folder, read_full};
use crate::format::{SEGMENT_BYTES, SegmentHeader, first_of, segment_name};
use crate::{Error, Fault, tail};
use tapeline_nanos::Nanos;

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// The segment's header. If it is damaged: the sequence of the file name, after the previous segment.
    pub(crate) header: SegmentHeader,
    /// The fault of a damaged header: an error when a reader reaches the segment.
    pub(crate) fault: Option<Fault>,
    /// Bytes of the file.
    pub(crate) bytes: u64,
}

impl Segment {
    pub(crate) fn name(&self) -> String {
        segment_name(self.header.first)
    }

    /// Returns an error if the header is damaged.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Some(fault) = self.fault else { return Ok(()) };
        Err(Error::Corrupt { segment: self.name(), offset: 0, seq: self.header.first, fault })
    }
}

/// All segments of a folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) segments: Vec<Segment>,
    /// Files of segments without a header and without records.
    pub(crate) begun: Vec<String>,
}

/// Reads the header of every segment.
pub(crate) fn list(folder: &impl Folder) -> Result<Listing, Error> {
    list_behind(folder, None)
}

/// Reads the headers of the segments after `behind` only.
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
            // Retention deleted the segment meanwhile.
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

/// Reads a segment's header; `None` if its writer died or ran out of disk space before writing it, so that the segment
/// has no record.
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
    // The header may have been written meanwhile.
    Ok(parse()?.map(Some))
}
