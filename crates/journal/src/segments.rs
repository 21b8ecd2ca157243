//! The segments of a folder, in order.

use std::io;

use crate::folder::{File, Folder, read_full};
use crate::format::{SEGMENT_BYTES, SegmentHeader, first_of, segment_name};
use crate::{Error, Fault, tail};

/// A segment whose header is sound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
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
    let names = folder.names().map_err(Error::io("read", "the journal's folder"))?;
    let mut firsts: Vec<u64> = names.iter().filter_map(|name| first_of(name)).collect();
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
        let mut bytes = [0; SEGMENT_BYTES];
        let count = read_full(&file, &mut bytes, 0).map_err(Error::io("read", &name))?;
        let length = file.length().map_err(Error::io("look at", &name))?;
        let corrupt = |fault| Error::Corrupt { segment: name.clone(), offset: 0, seq: *first, fault };
        match SegmentHeader::parse(&bytes[..count]) {
            Ok(header) if header.first == *first => listing.segments.push(Segment { header, bytes: length }),
            Ok(header) => return Err(corrupt(Fault::Sequence(header.first))),
            Err(fault) => {
                let records = SEGMENT_BYTES as u64;
                if tail::behind(&file, &name, records, first.saturating_sub(1))?.end > records {
                    return Err(corrupt(fault));
                }
                // Its writer died, or had no room, before it had a header, so that no record is in it.
                listing.begun.push(name);
            }
        }
    }
    Ok(listing)
}
