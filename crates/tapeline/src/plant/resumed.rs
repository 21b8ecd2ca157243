//! Resumes reading at a sequence: the plant's journal from that sequence on, then the ticks that it adds.
//!
//! Every tick is read from the journal, the newest too. A tick in the journal outlives the plant; a tick that is
//! only on the ring when the plant is killed does not, and the plant that continues gives its number to another
//! tick. So each tick is seen once, however often the plant ends. The ring only wakes the reader, and shows which
//! ticks are still to come and whether the plant has ended.

use std::path::Path;

use anyhow::Context;
use tapeline_journal::{Directory, From, Next as Kept, Reader};
use tapeline_node::journal_follower::{Expect, JournalFollower};
use tapeline_node::ticks::Next;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Subscriber};

use crate::events;
use crate::journal::{broken, hinted, warn_of_missing};

/// Records of the journal between two passes over the ring while reading is behind: a ring of the usual size has a
/// thousand times as many ticks.
const PASS_EVERY: u64 = 64;

/// A reader of the journal that also follows the ring.
#[derive(Debug)]
pub(super) struct Resumed {
    journal: Reader<Directory>,
    pub(super) place: JournalPosition,
}

#[derive(Debug)]
pub(super) struct JournalPosition {
    beside: JournalFollower,
    /// The last sequence that was returned or skipped.
    last: u64,
    /// Ticks that are missing in the journal.
    pub(super) missing: u64,
    /// Every record that the journal has so far was read.
    pub(super) is_at_end: bool,
    /// The journal will have more records at once, although the ring has nothing new.
    pub(super) is_behind: bool,
}

impl Resumed {
    /// Reads from this sequence on, in the journal of the plant whose ring has already been joined.
    pub(super) fn open(folder: &Path, from: u64, ring: Name, label: &str) -> anyhow::Result<Self> {
        let opened = Directory::open(folder).and_then(Reader::open).and_then(|mut journal| {
            journal.seek(From::Seq(from))?;
            Ok(journal)
        });
        let what = || format!("cannot read the journal in {}", folder.display());
        let journal = opened.map_err(|error| hinted(&what(), error))?;
        let (beside, last) = (JournalFollower::of(ring, label, &events::printed()), from.saturating_sub(1));
        let place = JournalPosition { beside, last, missing: 0, is_at_end: false, is_behind: true };
        Ok(Self { journal, place })
    }

    /// Takes the next tick. Ticks on the ring are skipped, so that a long history blocks nobody.
    ///
    /// # Errors
    /// The journal is damaged or contains something other than ticks.
    pub(super) fn next(&mut self, ring: &mut Subscriber) -> anyhow::Result<Next<'_>> {
        (self.place.is_at_end, self.place.is_behind) = (false, true);
        if self.place.last.is_multiple_of(PASS_EVERY) {
            self.place.beside.pass(ring)?;
        }
        match self.journal.next().map_err(broken)? {
            Kept::Record(record) => {
                self.place.last = record.seq;
                let tick =
                    Tick::parse(record.body).context("the journal holds something that is not a tick")?;
                Ok(Next::Tick(tick))
            }
            Kept::Missing { from, to } => {
                self.place.miss(from, to);
                Ok(Next::Nothing)
            }
            Kept::End => self.place.look(ring),
        }
    }
}

impl JournalPosition {
    fn miss(&mut self, from: u64, to: u64) {
        self.missing += warn_of_missing(from, to);
        self.last = to;
    }

    /// The journal has no more records for now: the ring shows whether more will follow.
    fn look(&mut self, ring: &mut Subscriber) -> anyhow::Result<Next<'static>> {
        let expect = self.beside.look(ring, self.last)?;
        (self.is_at_end, self.is_behind) = (true, expect == Expect::More);
        if expect != Expect::End {
            return Ok(Next::Nothing);
        }
        if self.beside.newest > self.last {
            self.miss(self.last + 1, self.beside.newest);
        }
        Ok(Next::End)
    }
}
