//! Reading on where one stopped: what a plant's journal has from a sequence on, and on with what it keeps now.
//!
//! Every tick comes from the journal, the newest too. What is there outlives the plant; what is only on the ring when the plant is killed does
//! not, and the plant that goes on gives those numbers to other ticks. So each tick is seen once, however often the plant ends.
//! The ring is the bell, says what is still to come, and when the plant has ended.

use std::path::Path;

use anyhow::Context;
use tapeline_journal::{Directory, From, Next as Kept, Reader};
use tapeline_node::journal_follower::{Expect, JournalFollower};
use tapeline_node::ticks::Next;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Subscriber};

use crate::events;
use crate::journal::hinted;

/// Records of the journal between two passes over the ring while it is behind: a ring of the usual size holds a thousand times as many ticks.
const PASS_EVERY: u64 = 64;

/// A reader of the journal, beside one of the ring.
#[derive(Debug)]
pub(super) struct Resumed {
    journal: Reader<Directory>,
    place: Place,
}

/// How far it is.
#[derive(Debug)]
struct Place {
    beside: JournalFollower,
    /// The last sequence that was given out, or passed by.
    last: u64,
    /// Ticks that the journal does not have.
    missing: u64,
    /// The journal has given all that it has, so far.
    is_at_end: bool,
    /// It will have more at once.
    is_behind: bool,
}

impl Resumed {
    /// From this sequence on, in the journal of the plant whose ring has been joined already.
    pub(super) fn open(folder: &Path, from: u64, ring: Name, label: &str) -> anyhow::Result<Self> {
        let opened = Directory::open(folder).and_then(Reader::open).and_then(|mut journal| {
            journal.seek(From::Seq(from))?;
            Ok(journal)
        });
        let what = || format!("cannot read the journal in {}", folder.display());
        let journal = opened.map_err(|error| hinted(&what(), error))?;
        let (beside, last) = (JournalFollower::of(ring, label, &events::printed()), from.saturating_sub(1));
        let place = Place { beside, last, missing: 0, is_at_end: false, is_behind: true };
        Ok(Self { journal, place })
    }

    /// Takes the next tick. What is on the ring is passed by, so that a long history holds up nobody.
    ///
    /// # Errors
    /// The journal is damaged; there is something else than ticks.
    pub(super) fn next(&mut self, ring: &mut Subscriber) -> anyhow::Result<Next<'_>> {
        (self.place.is_at_end, self.place.is_behind) = (false, true);
        if self.place.last.is_multiple_of(PASS_EVERY) {
            self.place.beside.pass(ring)?;
        }
        match self.journal.next().map_err(|error| hinted("the journal cannot be read on", error))? {
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

    /// Whether more is to be expected of the journal at once, though the ring has nothing new.
    pub(super) fn is_behind(&self) -> bool {
        self.place.is_behind
    }

    /// Whether all that was there when it was last asked has been taken.
    pub(super) fn is_at_end(&self) -> bool {
        self.place.is_at_end
    }

    /// Ticks that the journal does not have.
    pub(super) fn missing(&self) -> u64 {
        self.place.missing
    }
}

impl Place {
    fn miss(&mut self, from: u64, to: u64) {
        anstream::eprintln!("warning: ticks {from} to {to} are missing in the journal");
        self.missing += to - from + 1;
        self.last = to;
    }

    /// The journal has no more for now: whether it will, by what is on the ring.
    fn look(&mut self, ring: &mut Subscriber) -> anyhow::Result<Next<'static>> {
        let expect = self.beside.look(ring, self.last)?;
        (self.is_at_end, self.is_behind) = (true, expect == Expect::More);
        if expect != Expect::End {
            return Ok(Next::Nothing);
        }
        if self.beside.newest() > self.last {
            self.miss(self.last + 1, self.beside.newest());
        }
        Ok(Next::End)
    }
}
