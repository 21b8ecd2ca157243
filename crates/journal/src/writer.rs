//! The writer of a journal.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tapeline_nanos::Nanos;

use crate::bounds::Writing;
use crate::folder::{File, Folder, write_full};
use crate::format::{
    MOST_BODY, SEGMENT_BYTES, SegmentHeader, index_name, put_record, record_size, segment_name,
};
use crate::index::{EVERY_BYTES, Index, Mark};
use crate::opening::{self, Found, Opened};
use crate::segments::Segment;
use crate::{Durability, Error, OnFailure, Progress, Retention, Settings, State};

/// Bytes per write under load: few enough to stay in a core's own cache until the kernel copies them. Writes end at
/// multiples of this size in the file, so that the page cache uses pieces of this size. Other ends cost a quarter of
/// the throughput of bare writes, because each piece then consists of six smaller ones (5.0 and 3.7 GB/s on ext4).
const GROUP_BYTES: u64 = 128 << 10;
/// Bytes per write if each write is synced; the sync costs more than small pieces of memory.
const SYNCED_BYTES: u64 = 256 << 10;
/// The capacity for a group and the record that crosses its end.
const GROUP_ROOM: usize = 2 * SYNCED_BYTES as usize;
const DAY_NS: u64 = 86_400_000_000_000;

/// The result of an append or a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The record is in the journal or in the next write.
    Kept,
    /// The journal could not be written and has stopped; the publisher must stop too. [`Writer::fault`] gives the
    /// reason.
    Stopped,
    /// The journal could not be written, and publishing continues without it. [`Writer::fault`] gives the reason,
    /// [`Progress::missing`] the number of missing records.
    Missing,
}

impl Outcome {
    /// Returns `true` if the record is in the journal or in the next write.
    #[must_use]
    pub fn is_kept(self) -> bool {
        self == Self::Kept
    }
}

/// The single writer of a journal.
///
/// Appending costs a copy of the record and its checksum. A system call happens when [`flush`](Self::flush) is called
/// or 128 KiB are pending (256 KiB in [`Durability::Synced`]).
#[derive(Debug)]
pub struct Writer<F: Folder> {
    folder: F,
    settings: Settings,
    progress: Arc<Progress>,
    /// The segments before the current one.
    older: VecDeque<Older>,
    older_bytes: u64,
    current: Option<Current<F::File>>,
    /// The bytes to write next, at the current segment's end. May begin with the rest of a record.
    group: Vec<u8>,
    /// Records that end in the group.
    grouped: u64,
    /// A record has begun in the group.
    is_begun: bool,
    /// The last sequence that was appended.
    last: u64,
    /// The last sequence in the journal.
    kept: u64,
    latest: Nanos,
    /// The end of the current segment including the group, and the limit for it. Zeros without a segment.
    end: u64,
    limit: u64,
    /// The offset of the last record.
    last_begin: u64,
    /// The group is written when `end` reaches this offset.
    next_write: u64,
    /// The offset at which the next mark of the index is due.
    next_mark: u64,
    day_end: u64,
    bounds: Writing<F::File>,
    fault: Option<Error>,
    retry_at: u64,
    is_finished: bool,
}

/// A finished segment.
#[derive(Debug)]
struct Older {
    first: u64,
    bytes: u64,
    /// The latest time of its records and of earlier records.
    latest: Nanos,
    /// The segment is synced to disk.
    is_synced: bool,
}

/// The segment that is being written.
#[derive(Debug)]
struct Current<File> {
    file: File,
    first: u64,
    /// Bytes that are written, and the part of them that ends with a whole record.
    written: u64,
    whole: u64,
    index: Option<Index<File>>,
}

impl<F: Folder> Writer<F> {
    /// Opens a journal or creates one. Truncates what a crash tore off and reports it in [`Opened`].
    ///
    /// # Errors
    /// Damage in the last segment, which is then left unchanged; a folder that cannot be read or written; invalid
    /// settings.
    pub fn open(folder: F, settings: Settings) -> Result<(Self, Opened), Error> {
        settings.check()?;
        let Found { folder, segments, kept, bounds, opened } = opening::open(folder)?;
        let latest = segments.iter().skip(1).map(|segment| segment.header.latest).chain([opened.latest]);
        let older = |(segment, latest): (&Segment, Nanos)| {
            let (first, bytes) = (segment.header.first, segment.bytes);
            Older { first, bytes, latest, is_synced: true }
        };
        let older: VecDeque<_> = segments.iter().zip(latest).map(older).collect();
        let writer = Self {
            folder,
            settings,
            progress: Arc::new(Progress::new(settings.durability, kept)),
            older_bytes: older.iter().map(|older| older.bytes).sum(),
            older,
            current: None,
            group: Vec::with_capacity(GROUP_ROOM),
            grouped: 0,
            is_begun: false,
            last: opened.last,
            kept,
            latest: opened.latest,
            end: 0,
            limit: 0,
            last_begin: 0,
            next_write: 0,
            next_mark: 0,
            day_end: 0,
            bounds,
            fault: None,
            retry_at: 0,
            is_finished: false,
        };
        Ok((writer, opened))
    }

    /// Has an empty journal begin behind a sequence, as a copy of a journal whose first records were deleted by retention:
    /// earlier sequences do not count as missing. Does nothing if the journal has records.
    pub fn begin_behind(&mut self, seq: u64) {
        if self.last == 0 && self.older.is_empty() {
            (self.last, self.kept) = (seq, seq);
        }
    }

    /// Returns the journal's progress, for other threads.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Returns the reason while the journal cannot be written.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// Returns the last sequence that is certain to be in the journal, as [`Durability`] defines it.
    #[must_use]
    pub fn kept_up_to(&self) -> u64 {
        self.kept
    }

    /// Appends a record, to be written by the next [`flush`](Self::flush) at the latest. Sequences skipped before it
    /// are missing in the journal and reported as missing.
    #[inline]
    pub fn append(&mut self, seq: u64, time: Nanos, body: &[u8]) -> Outcome {
        let end = self.end + record_size(body.len()) as u64;
        let is_next = seq.checked_sub(1) == Some(self.last) && time.0 < self.day_end;
        // `limit` is 0 without a segment, so nothing fits. A record that is too long does not fit either.
        if !is_next || end > self.limit {
            return self.append_rarely(seq, time, body);
        }
        self.put(seq, time, body);
        if end >= self.next_write { self.write_group() } else { Outcome::Kept }
    }

    /// Writes the appended records, and syncs them if the durability requires it.
    pub fn flush(&mut self) -> Outcome {
        if self.fault.is_some() {
            return self.without();
        }
        self.write_up_to(self.end)
    }

    /// Writes the group when it is full.
    #[inline(never)]
    fn write_group(&mut self) -> Outcome {
        let up_to = match self.settings.durability {
            // To the end of a record: after the rest of a record, the next record of the same write would be marked as
            // the begin of a write, and a torn tail would be taken for damage.
            Durability::Synced => self.end,
            Durability::Written => self.end / GROUP_BYTES * GROUP_BYTES,
        };
        self.write_up_to(up_to)
    }

    /// Writes the group up to this offset in the file, and syncs it if the durability requires it. The rest, the end of
    /// the last record, stays in the group.
    fn write_up_to(&mut self, up_to: u64) -> Outcome {
        let Some(current) = self.current.as_mut().filter(|_| !self.group.is_empty()) else {
            return Outcome::Kept;
        };
        let bytes = (up_to - current.written) as usize;
        if let Err(error) = write_full(&current.file, &self.group[..bytes], current.written) {
            let name = segment_name(current.first);
            return self.fail(Error::io("write", &name)(error));
        }
        let is_synced = self.settings.durability == Durability::Synced;
        if is_synced && let Err(error) = current.file.sync() {
            let name = segment_name(current.first);
            return self.fail(Error::io("sync", &name)(error));
        }
        current.written = up_to;
        self.group.drain(..bytes);
        self.group.shrink_to(GROUP_ROOM);
        (self.is_begun, self.next_write) = (false, next_write(self.settings.durability, up_to));
        let is_whole = self.group.is_empty();
        // All but the last record if a part of it is left: sequences are consecutive, as a segment has no holes.
        let kept = if is_whole { self.grouped } else { self.grouped - 1 };
        self.grouped -= kept;
        if kept > 0 {
            (current.whole, self.kept) =
                if is_whole { (up_to, self.last) } else { (self.last_begin, self.last - 1) };
        }
        if let Some(index) = &mut current.index
            && !index.write()
        {
            current.index = None;
        }
        self.progress.set_written(self.kept);
        if is_synced {
            self.progress.set_synced(self.kept);
        }
        Outcome::Kept
    }

    /// Writes and syncs all pending records, whatever the durability, releases unused disk space, and marks the journal
    /// as closed.
    pub fn finish(mut self) -> Outcome {
        self.is_finished = true;
        let outcome = self.flush();
        if !outcome.is_kept() {
            return outcome;
        }
        if let Some(current) = self.current.take() {
            let _ = current.file.set_length(current.whole);
            let synced = current.file.sync().and_then(|()| self.folder.sync());
            if let Err(error) = synced {
                return self.fail(Error::io("sync", &segment_name(current.first))(error));
            }
        }
        // Earlier segments, which were not synced while the journal was written.
        for older in self.older.iter().filter(|older| !older.is_synced) {
            let name = segment_name(older.first);
            // The file may have been removed by someone else.
            if let Err(error) = self.folder.open(&name, true).and_then(|file| file.sync())
                && error.kind() != io::ErrorKind::NotFound
            {
                return self.fail(Error::io("sync", &name)(error));
            }
        }
        self.progress.set_synced(self.kept);
        // The records are on disk by now. If the bounds cannot be written, the journal is whole but not marked closed.
        self.bounds.bounds.closed = Some(self.last);
        if self.bounds.write(&self.folder, true) {
            let _ = self.folder.sync();
        }
        Outcome::Kept
    }

    /// Finishes the current segment and adds it to the older ones.
    fn end_segment(&mut self) {
        if let Some(current) = self.current.take() {
            // A failure only wastes disk space.
            let _ = current.file.set_length(current.whole);
            let is_synced = self.settings.durability == Durability::Synced;
            let (first, bytes, latest) = (current.first, current.whole, self.latest);
            self.older.push_back(Older { first, bytes, latest, is_synced });
            self.older_bytes += bytes;
        }
    }

    /// Adds a record that fits to the group.
    #[inline]
    fn put(&mut self, seq: u64, time: Nanos, body: &[u8]) {
        if self.end >= self.next_mark {
            self.mark(seq);
        }
        put_record(&mut self.group, !self.is_begun, seq, time, body);
        self.is_begun = true;
        self.grouped += 1;
        self.last_begin = self.end;
        self.end += record_size(body.len()) as u64;
        self.last = seq;
        self.latest = self.latest.max(time);
    }

    #[cold]
    fn mark(&mut self, seq: u64) {
        self.next_mark = self.end + EVERY_BYTES;
        if let Some(Current { index: Some(index), .. }) = &mut self.current {
            index.put(Mark { seq, latest: self.latest, offset: self.end });
        }
    }

    #[inline(never)]
    fn append_rarely(&mut self, seq: u64, time: Nanos, body: &[u8]) -> Outcome {
        if self.fault.is_some() && !self.try_again(seq, time, body) {
            self.progress.add_missing(1);
            self.last = self.last.max(seq);
            return self.without();
        }
        if seq <= self.last {
            return self.refuse(Error::NotLater { last: self.last, found: seq });
        }
        if body.len() > MOST_BODY {
            return self.refuse(Error::TooLong { seq, found: body.len() });
        }
        let size = record_size(body.len());
        let is_full = self.end + size as u64 > self.limit;
        let is_behind_hole = seq - 1 != self.last;
        if self.current.is_none() || is_full || is_behind_hole || time.0 >= self.day_end {
            if !self.flush().is_kept() {
                return self.count_missing(seq);
            }
            if let Err(error) = self.begin(seq, time, size) {
                let _ = self.fail(error);
                return self.count_missing(seq);
            }
        }
        self.put(seq, time, body);
        if self.end >= self.next_write { self.write_group() } else { Outcome::Kept }
    }

    fn count_missing(&mut self, seq: u64) -> Outcome {
        self.progress.add_missing(1);
        self.last = seq;
        self.without()
    }

    /// Refuses a record that cannot be in the journal. Earlier records are still written.
    fn refuse(&mut self, error: Error) -> Outcome {
        let seq = if let Error::TooLong { seq, .. } = error { seq } else { self.last };
        if self.flush().is_kept() {
            let _ = self.fail(error);
            // The disk works: the next record may succeed.
            self.retry_at = 0;
        }
        self.count_missing(seq)
    }

    /// Ends the current segment and begins one with this record.
    fn begin(&mut self, first: u64, time: Nanos, size: usize) -> Result<(), Error> {
        self.end_segment();
        (self.end, self.limit) = (0, 0);
        self.let_go(time);
        let bytes = self.settings.segment_bytes.max((SEGMENT_BYTES + size) as u64);
        let name = segment_name(first);
        let file = self.folder.create(&name).map_err(Error::io("make", &name))?;
        let header = SegmentHeader { first, after: self.kept, latest: self.latest };
        let is_synced = self.settings.durability == Durability::Synced;
        let sync = || if is_synced { file.sync().and_then(|()| self.folder.sync()) } else { Ok(()) };
        let begun =
            write_full(&file, &header.bytes(), 0).and_then(|()| file.allocate(bytes)).and_then(|()| sync());
        if let Err(error) = begun {
            // A segment without a record does no harm if it stays.
            let _ = self.folder.remove(&name);
            return Err(Error::io("make", &name)(error));
        }
        // After the segment, so that the bounds never name a segment that does not exist.
        if self.older.is_empty() {
            self.bounds.bounds.oldest = first;
        }
        self.bounds.bounds.newest = first;
        self.bounds.write(&self.folder, false);
        let index = Index::create(&self.folder, first);
        let written = SEGMENT_BYTES as u64;
        self.current = Some(Current { file, first, written, whole: written, index });
        (self.end, self.limit, self.next_mark) = (written, bytes, 0);
        self.next_write = next_write(self.settings.durability, written);
        self.day_end = (time.0 / DAY_NS + 1).saturating_mul(DAY_NS);
        Ok(())
    }

    /// Deletes segments that exceed the retention limits, except the last one: the next segment may never get a record,
    /// and then the last sequence would be unknown. A segment that cannot be deleted is retried with the next segment.
    /// The bounds are written first, so that a lost first file can be distinguished from a deleted one.
    fn let_go(&mut self, now: Nanos) {
        let Retention { age, bytes } = self.settings.retention;
        while self.older.len() > 1
            && let Some(oldest) = self.older.front()
        {
            let is_old = age.is_some_and(|age| {
                now.since(oldest.latest) > i64::try_from(age.as_nanos()).unwrap_or(i64::MAX)
            });
            let is_much = bytes.is_some_and(|most| self.older_bytes > most);
            if !is_old && !is_much {
                return;
            }
            let first = oldest.first;
            self.bounds.bounds.oldest = self.older[1].first;
            self.bounds.write(&self.folder, self.settings.durability == Durability::Synced);
            // The file may have been removed by someone else.
            let removed = self.folder.remove(&segment_name(first));
            if removed.is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
                return;
            }
            let _ = self.folder.remove(&index_name(first));
            self.older_bytes -= self.older.pop_front().map_or(0, |oldest| oldest.bytes);
        }
    }

    /// Handles a failure: the group is lost, and the current segment ends.
    #[cold]
    fn fail(&mut self, error: Error) -> Outcome {
        self.progress.add_missing(self.grouped);
        (self.grouped, self.is_begun, self.end, self.limit) = (0, false, 0, 0);
        self.group.clear();
        self.end_segment();
        self.retry_at = self.latest.0.saturating_add(Settings::RETRY_NS);
        self.progress.set_state(match self.settings.on_failure {
            OnFailure::Stop => State::Stopped,
            OnFailure::Continue => State::Without,
        });
        self.fault = Some(error);
        self.without()
    }

    fn without(&self) -> Outcome {
        match self.settings.on_failure {
            OnFailure::Stop => Outcome::Stopped,
            OnFailure::Continue => Outcome::Missing,
        }
    }

    /// Retries after a failure. Returns `true` if the journal can be written again, from this record on.
    fn try_again(&mut self, seq: u64, time: Nanos, body: &[u8]) -> bool {
        // A retry time more than one interval ahead, because the clock was set back, is ignored.
        let is_early = time.0 < self.retry_at && self.retry_at - time.0 <= Settings::RETRY_NS;
        if is_early
            || self.settings.on_failure == OnFailure::Stop
            || seq <= self.last
            || body.len() > MOST_BODY
        {
            return false;
        }
        self.retry_at = time.0.saturating_add(Settings::RETRY_NS);
        match self.begin(seq, time, record_size(body.len())) {
            Ok(()) => {
                self.fault = None;
                // The new segment begins with this record.
                self.last = seq - 1;
                self.progress.set_state(State::Keeping);
                true
            }
            Err(error) => {
                self.fault = Some(error);
                false
            }
        }
    }
}

impl<F: Folder> Drop for Writer<F> {
    /// A writer that is dropped without `finish` counts as stopped, so that nobody waits for its records.
    fn drop(&mut self) {
        if !self.is_finished {
            self.progress.set_state(State::Stopped);
        }
    }
}

/// Returns the offset at which a group that begins at `begin` is written.
fn next_write(durability: Durability, begin: u64) -> u64 {
    match durability {
        Durability::Written => (begin / GROUP_BYTES + 1) * GROUP_BYTES,
        Durability::Synced => begin + SYNCED_BYTES,
    }
}
