//! The reader of a journal, also while it is being written.

use std::io;

use tapeline_nanos::Nanos;

use crate::bounds;
use crate::folder::{File, Folder, read_full};
use crate::format::{RECORD_BYTES, RecordHeader, SEGMENT_BYTES};
use crate::index;
use crate::segments::{Segment, list, list_behind};
use crate::tail::{self, Tail};
use crate::{Error, Fault};

/// Bytes per read: as many as stay in a core's cache until they are parsed. A longer record is read whole.
const BUFFER: usize = 256 << 10;
/// Bytes per read at the end of the journal, where more may be written.
const GLANCE: usize = 4 << 10;

/// The position at which to start reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    /// The first record available. Earlier records that could not be written are reported as [`Next::Missing`]; records
    /// deleted by retention are not.
    #[default]
    Oldest,
    /// This sequence. If it is no longer available, it is reported as [`Next::Missing`].
    Seq(u64),
    /// The first record, in sequence order, at this time or later.
    Time(Nanos),
}

/// A journal record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The record's sequence.
    pub seq: u64,
    /// The record's time.
    pub time: Nanos,
    /// The bytes that were appended.
    pub body: &'a [u8],
}

/// The next item of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Next<'a> {
    /// A record, valid until the next call.
    Record(Record<'a>),
    /// Sequences that are not in the journal: they could not be written, were deleted by retention, or were never
    /// appended.
    Missing {
        /// The first missing sequence.
        from: u64,
        /// The last missing sequence.
        to: u64,
    },
    /// The end for now; more records may be written. [`Reader::ending`] says whether torn bytes follow.
    End,
}

/// A segment, as its header describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentView {
    /// The segment's file name.
    pub name: String,
    /// Sequence of the segment's first record.
    pub first: u64,
    /// The last sequence of the journal before this segment; sequences in between are missing.
    pub after: u64,
    /// The latest time of any record before this segment.
    pub latest_before: Nanos,
    /// Size of the file in bytes; a segment still being written includes space allocated ahead.
    pub bytes: u64,
}

/// Records at one end of the journal whose file is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The first lost sequence.
    pub from: u64,
    /// The last lost sequence; `None` if unknown because the journal was not closed.
    pub to: Option<u64>,
}

/// The journal's recorded ends, compared with the files that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// `true` if the journal records its ends; a journal of an earlier version does not.
    pub is_known: bool,
    /// The last sequence, if the writer closed the journal. `None` while a writer is running and after one was killed.
    pub closed: Option<u64>,
    /// Records lost before the first segment. Records deleted by retention do not count.
    pub lost_before: Option<Lost>,
    /// Records lost after the last record.
    pub lost_behind: Option<Lost>,
}

/// Reads records in order, as far as they are [written](crate::Progress::written_up_to). If only synced records may be
/// passed on, check [`Progress::lets_go`](crate::Progress::lets_go). Memory: 256 KiB, or the longest record.
#[derive(Debug)]
pub struct Reader<F: Folder> {
    folder: F,
    segments: Vec<Segment>,
    /// The index of the current segment.
    at: usize,
    file: Option<F::File>,
    /// The offset of the next record in the file.
    offset: u64,
    /// The bytes from `begin` to `end` are those at the offset.
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// The last sequence in the journal before the offset.
    passed: u64,
    /// The last sequence reported to the caller; `None` before the first record.
    known: Option<u64>,
    /// Records before this time are skipped.
    earliest: Nanos,
    at_end: bool,
    tail: Option<Tail>,
    /// Up to this sequence only the next record can follow: no other segment, and no record to skip.
    plain_until: u64,
}

/// The contents at the offset.
enum There {
    Record(RecordHeader),
    Not(Fault),
}

/// The next result for the caller. A record ends at `begin` in the buffer.
enum Found {
    Record(RecordHeader),
    Missing { from: u64, to: u64 },
    End,
}

impl<F: Folder> Reader<F> {
    /// Opens the journal at the oldest record. A folder without segments is an empty journal.
    ///
    /// # Errors
    /// The folder cannot be read, or a segment's header is damaged.
    pub fn open(folder: F) -> Result<Self, Error> {
        let segments = list(&folder)?.segments;
        let mut reader = Self {
            folder,
            segments,
            at: 0,
            file: None,
            offset: 0,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            passed: 0,
            known: None,
            earliest: Nanos(0),
            at_end: false,
            tail: None,
            plain_until: 0,
        };
        reader.enter(0)?;
        Ok(reader)
    }

    /// Moves to another position. With the index, reading starts at most a quarter of a megabyte before it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn seek(&mut self, from: From) -> Result<(), Error> {
        self.segments = list(&self.folder)?.segments;
        let (before, known, earliest) = match from {
            From::Oldest => (0, None, Nanos(0)),
            From::Seq(seq) => {
                let before = self.segments.partition_point(|segment| segment.header.first <= seq);
                (before, Some(seq.saturating_sub(1)), Nanos(0))
            }
            From::Time(time) => {
                (self.segments.partition_point(|segment| segment.header.latest < time), None, time)
            }
        };
        (self.known, self.earliest) = (known, earliest);
        self.enter(before.saturating_sub(1))?;
        let Some(segment) = self.segments.get(self.at).copied() else { return Ok(()) };
        let marks = index::read(&self.folder, segment.header.first);
        let before = match from {
            From::Oldest => 0,
            From::Seq(seq) => marks.partition_point(|mark| mark.seq <= seq),
            From::Time(time) => marks.partition_point(|mark| mark.latest < time),
        };
        let Some(mark) = before.checked_sub(1).map(|at| marks[at]) else { return Ok(()) };
        if mark.seq <= segment.header.first || mark.offset < SEGMENT_BYTES as u64 {
            return Ok(());
        }
        self.offset = mark.offset;
        match self.look()? {
            There::Record(header) if header.seq == mark.seq => self.passed = mark.seq - 1,
            // The index is wrong, or belongs to another segment.
            _ => self.enter(self.at)?,
        }
        Ok(())
    }

    /// Returns the next record, or the reason why there is none.
    ///
    /// # Errors
    /// Damage in the middle, with its place; another call returns the same error.
    #[expect(
        clippy::should_implement_trait,
        reason = "a record borrows the reader, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> Result<Next<'_>, Error> {
        Ok(match self.find()? {
            Found::Missing { from, to } => Next::Missing { from, to },
            Found::End => Next::End,
            Found::Record(header) => {
                let at = self.begin - header.size() + RECORD_BYTES;
                let body = &self.buffer[at..at + header.body];
                Next::Record(Record { seq: header.seq, time: header.time, body })
            }
        })
    }

    /// At [`Next::End`]: scans everything after the last record, which [`next`](Self::next) does not do while there
    /// are zeros. Returns the torn tail or, while the journal is being written, a write under way.
    ///
    /// # Errors
    /// Damage: there is a later write after it.
    pub fn ending(&mut self) -> Result<Option<Tail>, Error> {
        self.is_torn()?;
        Ok(self.tail.clone())
    }

    /// At [`Next::End`]: returns whether the journal was closed, and what is lost at its ends. If a writer closes the
    /// journal meanwhile, its last records can appear lost; reading on finds them.
    ///
    /// # Errors
    /// The system's.
    pub fn ends(&self) -> Result<Ends, Error> {
        let read = || bounds::read(&self.folder).map_err(Error::io("read", "the journal's bounds"));
        // A segment is created before the bounds name it, and the bounds exclude it before it is deleted. So the bounds
        // are read once before the list of segments and once after.
        let Some(before) = read()? else { return Ok(Ends::default()) };
        let segments = list(&self.folder)?.segments;
        let behind = read()?.unwrap_or(before);
        let mut ends = Ends { is_known: true, ..Ends::default() };
        if let Some(first) = segments.first().map(|segment| segment.header)
            && behind.oldest != 0
            && first.first > behind.oldest
        {
            ends.lost_before = Some(Lost { from: behind.oldest, to: Some(first.after.max(behind.oldest)) });
        }
        let is_newest_there = segments.last().is_some_and(|last| last.header.first >= before.newest);
        let last = before.closed.unwrap_or(0);
        if (before.newest != 0 && !is_newest_there) || last > self.passed {
            let from = self.passed.saturating_add(1).max(if segments.is_empty() { before.oldest } else { 0 });
            ends.lost_behind = Some(Lost { from, to: before.closed });
        } else if self.tail.is_none() && last == self.passed {
            // If there are more records, a later writer wrote them.
            ends.closed = before.closed;
        }
        Ok(ends)
    }

    /// Returns where the next record is expected: the segment's file name and the offset in bytes.
    pub fn place(&self) -> Option<(String, u64)> {
        Some((self.segments.get(self.at)?.name(), self.offset))
    }

    /// Returns the last sequence of the journal before the next record; at [`Next::End`], the last of all. 0 if none.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns the segments, oldest first, as of the last look at the folder.
    pub fn segments(&self) -> impl Iterator<Item = SegmentView> {
        self.segments.iter().map(|segment| SegmentView {
            name: segment.name(),
            first: segment.header.first,
            after: segment.header.after,
            latest_before: segment.header.latest,
            bytes: segment.bytes,
        })
    }

    /// Returns the folder being read.
    pub fn folder(&self) -> &F {
        &self.folder
    }

    pub(crate) fn into_folder(self) -> F {
        self.folder
    }

    /// Moves to the beginning of a segment.
    fn enter(&mut self, at: usize) -> Result<(), Error> {
        (self.at, self.file, self.at_end, self.tail) = (at, None, false, None);
        self.offset = SEGMENT_BYTES as u64;
        self.forget();
        while let Some(segment) = self.segments.get(self.at).copied() {
            let name = segment.name();
            match self.folder.open(&name, false) {
                Ok(file) => {
                    (self.file, self.passed) = (Some(file), segment.header.after);
                    if self.known.is_none() && self.earliest == Nanos(0) && segment.fault.is_none() {
                        self.known = Some(segment.header.after);
                    }
                    break;
                }
                // Retention deleted the segment meanwhile: continue with the oldest later one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.segments = list(&self.folder)?.segments;
                    self.at =
                        self.segments.partition_point(|other| other.header.first <= segment.header.first);
                }
                Err(error) => return Err(Error::io("open", &name)(error)),
            }
        }
        Ok(())
    }

    fn forget(&mut self) {
        (self.begin, self.end, self.plain_until) = (0, 0, 0);
    }

    /// Returns the next record in the common case: it is whole in the buffer and follows the last one in its segment.
    #[inline]
    fn find_plain(&mut self) -> Option<RecordHeader> {
        let there = self.buffer.get(self.begin..self.end)?;
        let header = RecordHeader::parse(there.first_chunk()?).ok()??;
        let size = header.size();
        let is_next = header.seq == self.passed + 1 && header.seq <= self.plain_until;
        if !is_next || header.check(there.get(..size)?).is_err() {
            return None;
        }
        self.passed = header.seq;
        self.known = Some(header.seq);
        self.offset += size as u64;
        self.begin += size;
        Some(header)
    }

    fn find(&mut self) -> Result<Found, Error> {
        if self.passed < self.plain_until
            && let Some(header) = self.find_plain()
        {
            return Ok(Found::Record(header));
        }
        loop {
            if self.file.is_none() && !self.has_more_segments()? {
                return Ok(Found::End);
            }
            self.segments.get(self.at).map_or(Ok(()), Segment::check)?;
            let next = self.segments.get(self.at + 1).copied();
            if self.moves_on(next)? {
                continue;
            }
            let next = next.filter(|next| next.fault.is_none()).map(|next| next.header);
            let header = match self.look()? {
                There::Record(header) => header,
                There::Not(fault) if self.is_end(fault, next.is_some())? => return Ok(Found::End),
                There::Not(_) => continue,
            };
            if header.seq != self.expected() {
                return Err(self.corrupt(Fault::Sequence(header.seq)));
            }
            let is_wanted = self.known.is_none_or(|known| header.seq > known) && header.time >= self.earliest;
            if let Some(known) = self.known
                && is_wanted
                && header.seq - known > 1
            {
                // The next call finds the record again.
                self.known = Some(header.seq - 1);
                return Ok(Found::Missing { from: known + 1, to: header.seq - 1 });
            }
            self.passed = header.seq;
            self.offset += header.size() as u64;
            self.begin += header.size();
            self.at_end = false;
            if is_wanted {
                (self.known, self.earliest) = (Some(header.seq), Nanos(0));
                // Up to the known end of this segment; `forget` resets it.
                self.plain_until = next.map_or(u64::MAX, |next| next.after);
                return Ok(Found::Record(header));
            }
        }
    }

    /// Enters the next segment if the current one is finished. Returns `true` if it did.
    fn moves_on(&mut self, next: Option<Segment>) -> Result<bool, Error> {
        let Some(next) = next else { return Ok(false) };
        let is_over = if next.fault.is_some() {
            // The last sequence of this segment is unknown: read to its end.
            !matches!(self.look()?, There::Record(_))
        } else {
            let after = next.header.after;
            // Records read past that sequence belong to a failed write, which this reader saw before it was truncated.
            if after < self.passed && !self.is_given_up()? {
                return Err(self.corrupt(Fault::After { expected: self.passed, found: after }));
            }
            after <= self.passed
        };
        if is_over {
            self.enter(self.at + 1)?;
        }
        Ok(is_over)
    }

    /// Returns `true` if a place without a record is the end for now; `false` if reading must continue.
    fn is_end(&mut self, fault: Fault, has_next: bool) -> Result<bool, Error> {
        if has_next {
            if !self.is_gone()? {
                return Err(self.corrupt(fault));
            }
            // The segment was deleted, and any segments between it and the next with it.
            self.enter(self.at + 1)?;
            return Ok(false);
        }
        if self.has_more_segments()? {
            self.forget();
            return Ok(false);
        }
        // A journal that is being written ends with zeros; anything else is checked for a torn tail.
        self.at_end = fault == Fault::Empty || self.is_torn()?;
        if self.at_end {
            self.forget();
        }
        Ok(self.at_end)
    }

    /// Returns the expected sequence of the next record.
    fn expected(&self) -> u64 {
        match self.segments.get(self.at) {
            Some(segment) if segment.header.after == self.passed => segment.header.first,
            _ => self.passed.saturating_add(1),
        }
    }

    /// Adds segments that were created since the last call. Returns `true` if there are any.
    fn has_more_segments(&mut self) -> Result<bool, Error> {
        let current = self.segments.get(self.at).map(|segment| segment.header.first);
        let segments = list_behind(&self.folder, current)?.segments;
        if current.is_none() {
            self.segments.clear();
        }
        if segments.is_empty() {
            return Ok(false);
        }
        // The current segment may have been deleted; its file stays open.
        self.segments.retain(|segment| current.is_none_or(|current| segment.header.first <= current));
        self.segments.extend(segments);
        if current.is_none() {
            self.enter(0)?;
        }
        Ok(true)
    }

    /// Returns `true` if the current segment was deleted.
    fn is_gone(&self) -> Result<bool, Error> {
        let name = self.segments[self.at].name();
        let names = self.folder.names().map_err(Error::io("read", "the journal's folder"))?;
        Ok(!names.contains(&name))
    }

    /// Returns `true` if the current segment ends before the offset, because a failed write was truncated.
    fn is_given_up(&self) -> Result<bool, Error> {
        let Some(file) = &self.file else { return Ok(false) };
        let length = file.length().map_err(Error::io("look at", &self.segments[self.at].name()))?;
        Ok(length < self.offset)
    }

    /// Returns `true` if the bytes at the offset are a torn tail or the end; `false` if they were a write under way
    /// that is now complete.
    fn is_torn(&mut self) -> Result<bool, Error> {
        self.forget();
        if self.tail.as_ref().is_some_and(|tail| tail.offset == self.offset) {
            return Ok(true);
        }
        let Some(file) = &self.file else { return Ok(true) };
        let name = self.segments[self.at].name();
        let behind = tail::behind(file, &name, self.offset, self.passed)?;
        if behind.later_write {
            return match self.look()? {
                There::Record(_) => Ok(false),
                There::Not(fault) => Err(self.corrupt(fault)),
            };
        }
        self.tail = (behind.end > self.offset).then(|| Tail {
            segment: name,
            offset: self.offset,
            bytes: behind.end - self.offset,
            after: self.passed,
            records: behind.records,
        });
        Ok(true)
    }

    /// Returns the contents at the offset, with the bytes of a record in the buffer.
    fn look(&mut self) -> Result<There, Error> {
        let is_fresh = self.begin == self.end;
        match self.parse()? {
            There::Not(_) if !is_fresh => {
                // The record may have been written since the last read.
                self.forget();
                self.parse()
            }
            there => Ok(there),
        }
    }

    fn parse(&mut self) -> Result<There, Error> {
        let have = self.fill(RECORD_BYTES)?;
        let cut = |wanted, left| There::Not(Fault::Cut { wanted: wanted as u64, left: left as u64 });
        let there = &self.buffer[self.begin..self.end];
        let Some(header) = there.first_chunk() else {
            let is_empty = there.iter().all(|byte| *byte == 0);
            return Ok(if is_empty { There::Not(Fault::Empty) } else { cut(RECORD_BYTES, have) });
        };
        let header = match RecordHeader::parse(header) {
            Ok(Some(header)) => header,
            Ok(None) => return Ok(There::Not(Fault::Empty)),
            Err(fault) => return Ok(There::Not(fault)),
        };
        let size = header.size();
        let have = self.fill(size)?;
        if have < size {
            return Ok(cut(size, have));
        }
        let record = &self.buffer[self.begin..self.begin + size];
        Ok(header.check(record).map_or_else(There::Not, |()| There::Record(header)))
    }

    /// Reads until the buffer has `wanted` bytes from the offset on. Returns the number of bytes it has.
    fn fill(&mut self, wanted: usize) -> Result<usize, Error> {
        let have = self.end - self.begin;
        let Some(file) = self.file.as_ref().filter(|_| have < wanted) else { return Ok(have) };
        let name = || self.segments[self.at].name();
        // The length of a record may be wrong; limited by the file's length.
        let left = file.length().map_err(Error::io("look at", &name()))?.saturating_sub(self.offset);
        let most = wanted.max(if self.at_end { GLANCE } else { BUFFER });
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(most);
        if most <= have {
            return Ok(have);
        }
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, have);
        if self.buffer.len() < most {
            self.buffer.resize(most, 0);
        }
        let count = read_full(file, &mut self.buffer[have..most], self.offset + have as u64)
            .map_err(Error::io("read", &name()))?;
        self.end = have + count;
        Ok(have + count)
    }

    fn corrupt(&self, fault: Fault) -> Error {
        let segment = self.segments.get(self.at).map(Segment::name).unwrap_or_default();
        Error::Corrupt { segment, offset: self.offset, seq: self.expected(), fault }
    }
}
