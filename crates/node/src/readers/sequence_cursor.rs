//! A reader's position in the plant's sequence: on the ring, and in the plant's journal for ticks that the
//! ring no longer has.

use std::path::PathBuf;
use std::sync::Arc;

use tapeline_journal::{Directory, From, Next, Progress, Reader, State};
use tapeline_measure::figures::thousands;
use tapeline_plant::Seq;
use tapeline_plant::tick::Tick;
use tapeline_ring::Subscriber;

use crate::Error;
use crate::cursor::{Read, RingCursor};
use crate::error::Context;
use crate::events::Events;
use crate::journal::Gate;

/// A plant's journal: its folder and its progress.
pub(crate) type Kept = (PathBuf, Arc<Progress>);

/// A reader's position in the plant's sequence.
pub(crate) struct SequenceCursor {
    pub(crate) ring: RingCursor,
    /// The plant's journal.
    journal: Option<Kept>,
    /// Ticks still to be taken from the journal, or lost, before reading from the ring continues.
    behind: Option<Behind>,
    /// The sequence number of the next tick.
    next: Seq,
    /// Where lost ticks are missing, such as `in kdb+'s tables and log`.
    lacking: &'static str,
    events: Events,
}

/// What a reader takes.
pub(crate) enum Taken<'a> {
    Tick(&'a Tick<'a>),
    /// The number of lost ticks before the next one.
    Gone(u64),
}

impl SequenceCursor {
    /// Starts after the tick `after`, at this position on the ring; `journal` is the plant's, if it has one.
    pub(crate) fn new(ring: RingCursor, journal: Option<Kept>, after: Seq, lacking: &'static str) -> Self {
        let events = ring.events.clone();
        Self { ring, journal, behind: None, next: Seq(after.0 + 1), lacking, events }
    }

    /// Takes up to `most` ticks in sequence. Returns their number and whether the ring has ended.
    ///
    /// # Errors
    /// Another plant continues with the ring, the ring or the journal contains something that is not a tick,
    /// or the journal cannot be read.
    pub(crate) fn take(
        &mut self,
        most: usize,
        mut each: impl FnMut(Taken<'_>),
    ) -> crate::Result<(usize, bool)> {
        let mut taken = 0;
        while taken < most {
            if let Some(behind) = &mut self.behind {
                match behind.next(self.ring.gate.as_ref())? {
                    Missed::Tick(tick) => {
                        taken += 1;
                        self.next = Seq(tick.header.seq.0 + 1);
                        each(Taken::Tick(&tick));
                    }
                    Missed::Gone(count) => each(Taken::Gone(count)),
                    Missed::Nothing => break,
                    Missed::Over => self.behind = None,
                }
                continue;
            }
            let who = (self.ring.reader, self.lacking);
            match self.ring.next(self.next)? {
                Read::Tick(tick) => {
                    taken += 1;
                    if !tick.header.seq.is_outside() {
                        self.next = Seq(tick.header.seq.0 + 1);
                    }
                    each(Taken::Tick(&tick));
                }
                Read::Again => {}
                Read::Behind(tick) => {
                    self.behind =
                        Some(Behind::of(self.next, &tick, self.journal.as_ref(), who, &self.events)?);
                }
                Read::Nothing => break,
                Read::End => return Ok((taken, true)),
                Read::Lost => self.ring.rejoin()?,
            }
        }
        Ok((taken, false))
    }

    /// The place on the ring.
    pub(crate) fn subscriber(&mut self) -> &mut Subscriber {
        &mut self.ring.ticks.subscriber
    }

    /// Whether the ring has ticks that cannot be taken yet: they, or ticks before them, wait for the disk.
    pub(crate) fn is_held(&self) -> bool {
        self.ring.is_held || self.behind.is_some()
    }
}

/// The ticks before the first one that the ring still had, and that one.
#[derive(Debug)]
struct Behind {
    /// The journal; `None` if there is none.
    journal: Option<(Reader<Directory>, Arc<Progress>)>,
    /// The sequence number of the next tick to take.
    next: u64,
    /// The sequence number of the first tick that the ring still had, and its frame.
    first: u64,
    frame: Vec<u8>,
}

/// The next of the missed ticks.
enum Missed<'a> {
    Tick(Tick<'a>),
    /// The number of lost ticks.
    Gone(u64),
    /// The journal does not have the next one yet.
    Nothing,
    /// All ticks were taken: reading from the ring continues.
    Over,
}

impl Behind {
    /// Covers the ticks from `next` to `first`, the first tick that the ring still had. `journal` is the
    /// plant's, if it has one. `who` and `lacking` are for reports: the reader, and where ticks are missing.
    ///
    /// # Errors
    /// The journal cannot be read.
    fn of(
        next: Seq,
        first: &Tick<'_>,
        journal: Option<&Kept>,
        (who, lacking): (&str, &str),
        events: &Events,
    ) -> crate::Result<Self> {
        let missing = thousands(first.header.seq.0 - next.0);
        let reader = journal.map(|(folder, progress)| {
            events.info(format_args!("{who} reads the {missing} ticks that it missed from the journal"));
            let opened = Directory::open(folder).and_then(Reader::open).and_then(|mut journal| {
                journal.seek(From::Seq(next.0))?;
                Ok((journal, Arc::clone(progress)))
            });
            opened.map_err(|error| {
                Error::of_journal(format!("cannot read the journal in {}", folder.display()), error)
            })
        });
        let journal = reader.transpose()?;
        if journal.is_none() {
            events.warning_with(
                format_args!("{missing} ticks from {} on are missing {lacking}", next.0),
                "a [journal] in the plant's configuration keeps such ticks",
            );
        }
        let mut frame = Vec::new();
        first.write(&mut frame);
        Ok(Self { journal, next: next.0, first: first.header.seq.0, frame })
    }

    /// Returns the next tick; `gate` holds ticks back until they are on disk.
    ///
    /// # Errors
    /// The journal is damaged.
    fn next(&mut self, gate: Option<&Gate>) -> crate::Result<Missed<'_>> {
        let Self { journal, next, first, frame } = self;
        let first = *first;
        if *next > first {
            return Ok(Missed::Over);
        }
        if *next == first {
            *next += 1;
            return Ok(Missed::Tick(Tick::parse(frame)?));
        }
        // The ticks before `to` are in no place: skips them.
        let mut gone = |to: u64| {
            let count = to - *next;
            *next = to;
            Ok(Missed::Gone(count))
        };
        let Some((journal, progress)) = journal else { return gone(first) };
        // Checked before the journal is read: everything written before a stop is then visible.
        let is_kept = progress.state() == State::Keeping;
        match journal.next().map_err(|error| Error::of_journal("the journal cannot be read on", error))? {
            Next::Record(record) if record.seq < first => {
                *next = record.seq + 1;
                if gate.is_some_and(|gate| !gate.lets_out(Seq(record.seq))) {
                    // The tick will never be on disk: the plant ends.
                    return Ok(Missed::Nothing);
                }
                let tick =
                    Tick::parse(record.body).context("the journal holds something that is not a tick")?;
                Ok(Missed::Tick(tick))
            }
            // The following ticks are on the ring.
            Next::Record(_) => gone(first),
            Next::Missing { to, .. } => gone(first.min(to + 1)),
            // The tick will follow, as the ring waits for the journal, unless the journal cannot be written.
            Next::End if is_kept => Ok(Missed::Nothing),
            Next::End => gone(first),
        }
    }
}
