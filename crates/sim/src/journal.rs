//! The plant's journal on a simulated disk that fills up, breaks, is slow, and loses data that was not synced;
//! and the check of its contents.

use std::sync::Arc;

use tapeline_journal::{Durability, Error, Next, OnFailure, Progress, Reader, Settings, State, Writer};

use crate::chance::Chance;
use crate::failing::{Fails, Memory};
use crate::invariants::{Invariant, Wrong, broken};
use crate::plan::{Illness, Keeping, MS};
use crate::tape::Tape;
use crate::trace::fnv;
use tapeline_node::Events;
use tapeline_node::journal::{Gate, JournalTurns};

/// Limit of ticks taken in one turn.
const BATCH: usize = 64;
/// Limit of bytes that a killed process completes of a write.
const MOST_TORN: u64 = 8_000;

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    /// The process is killed: written data survives.
    Killed,
    /// The machine stops: synced data survives, and any part of the rest.
    MachineStops,
}

/// The disk, and the ticks that successive plants have published. It outlives the plants.
#[derive(Debug)]
pub(crate) struct Shelf {
    disk: Memory,
    settings: Settings,
    /// The state of the disk while no process dies.
    fails: Fails,
    slow_ns: u64,
    /// Hashes of the published ticks by sequence, from 1 on.
    ticks: Vec<u64>,
    /// The last tick that the previous plant reported as durable.
    promised: u64,
    chance: Chance,
}

#[derive(Debug)]
pub(crate) struct Keeper {
    turns: JournalTurns<Memory>,
    pub(crate) progress: Arc<Progress>,
    is_synced: bool,
    /// Sequence of the last tick before this plant.
    pub(crate) after: u64,
    /// Number of this plant's ticks that were taken.
    taken: usize,
    /// The end of the current sync: the taken ticks are written then.
    busy_until: u64,
}

impl Shelf {
    pub(crate) fn new(keeping: Keeping, chance: Chance) -> Self {
        let settings = Settings {
            durability: keeping.durability,
            on_failure: keeping.on_failure,
            segment_bytes: Settings::LEAST_SEGMENT_BYTES,
            ..Settings::default()
        };
        let (disk, fails) = (Memory::new(), Fails::Nothing);
        Self { disk, settings, fails, slow_ns: 0, ticks: Vec::new(), promised: 0, chance }
    }

    /// Puts the disk into this state.
    pub(crate) fn falls_ill(&mut self, illness: Illness) {
        match illness {
            Illness::Full { bytes } => self.fails = Fails::Full(bytes),
            Illness::ReadOnly => self.fails = Fails::ReadOnly,
            Illness::Broken => self.fails = Fails::Sync,
            Illness::Slow { sync_ns } => self.slow_ns = sync_ns,
        }
        self.disk.fail(self.fails);
    }

    pub(crate) fn heals(&mut self) {
        (self.fails, self.slow_ns) = (Fails::Nothing, 0);
        self.disk.fail(self.fails);
    }

    /// Opens the journal for a plant and checks it: all durable ticks are present, and nothing that was never
    /// published. `None` if the disk does not allow it.
    pub(crate) fn open(&mut self) -> Result<Option<Keeper>, Wrong> {
        let (writer, opened) = match Writer::open(self.disk.clone(), self.settings) {
            Ok(opened) => opened,
            Err(Error::Io { .. }) if self.fails != Fails::Nothing => return Ok(None),
            Err(error) => broken!(Kept, "the journal cannot be opened: {error}"),
        };
        let last = opened.last;
        if last < self.promised {
            broken!(Kept, "tick {} was said to be kept, and {last} is the last", self.promised);
        }
        self.check(0, last)?;
        self.ticks.truncate(last as usize);
        self.promised = last;
        let progress = writer.progress();
        let turns = JournalTurns::new(writer, Events::default());
        let is_synced = self.settings.durability == Durability::Synced;
        Ok(Some(Keeper { turns, progress, is_synced, after: last, taken: 0, busy_until: 0 }))
    }

    /// Reads the whole journal up to `last` and checks that the ticks are in order and as published, without a
    /// gap except permitted ones. Returns the number of ticks after `after`.
    fn check(&self, after: u64, last: u64) -> Result<u64, Wrong> {
        let fault = |error: Error| (Invariant::Kept, format!("the journal cannot be read: {error}"));
        let mut reader = Reader::open(self.disk.clone()).map_err(fault)?;
        let (mut end, mut count) = (0, 0);
        loop {
            match reader.next().map_err(fault)? {
                Next::Record(record) => {
                    end += 1;
                    let published = self.ticks.get(end as usize - 1);
                    if record.seq != end || published != Some(&fnv(record.body)) {
                        broken!(Kept, "tick {end} is not what was published: {}", record.seq);
                    }
                    count += u64::from(end > after);
                }
                Next::Missing { from, to } => {
                    if self.settings.on_failure == OnFailure::Stop || from != end + 1 {
                        broken!(Kept, "ticks {from} to {to} are missing behind {end}");
                    }
                    end = to;
                }
                Next::End => break,
            }
        }
        reader.ending().map_err(fault)?;
        if end != last {
            broken!(Kept, "{end} is the last, and not {last}");
        }
        Ok(count)
    }

    /// Ends a process in the middle of a write. `given_out`: the last tick that its hub has read.
    pub(crate) fn dies(
        &mut self,
        mut keeper: Keeper,
        tape: &Tape,
        death: Death,
        given_out: u64,
    ) -> Result<(), Wrong> {
        let is_synced = self.settings.durability == Durability::Synced;
        let progress = &keeper.progress;
        self.promised = if is_synced { progress.synced_up_to() } else { progress.written_up_to() };
        if is_synced && self.settings.on_failure == OnFailure::Stop && given_out > self.promised {
            broken!(Kept, "tick {given_out} was given out, and {} is the last on disk", self.promised);
        }
        // A machine that stops may lose any part of the data that is only written. The journal then needs a
        // manual decision about the rest, so only a synced journal is tested with it.
        let stops = death == Death::MachineStops && is_synced;
        let bytes = if stops { u64::MAX } else { self.chance.below(MOST_TORN) };
        self.disk.fail(Fails::Dying(bytes));
        keeper.take(tape, self);
        keeper.turns.flush();
        drop(keeper);
        if stops {
            let (disk, chance) = (&self.disk, &mut self.chance);
            let share = chance.within(0, 4);
            self.disk = disk.stop(|| chance.below(4) < share);
        }
        self.disk.fail(self.fails);
        Ok(())
    }
}

impl Keeper {
    /// The gate that holds the hub back until ticks are on disk.
    pub(crate) fn gate(&self) -> Option<Gate> {
        self.is_synced.then(|| Gate::of(Arc::clone(&self.progress)))
    }

    /// Takes ticks from the ring and writes them: at once, or when a slow disk has finished.
    pub(crate) fn turn(&mut self, tape: &Tape, shelf: &mut Shelf, now: u64) {
        if now < self.busy_until {
            return;
        }
        self.turns.flush();
        self.take(tape, shelf);
        if shelf.slow_ns > 0 {
            self.busy_until = now + shelf.slow_ns;
        } else {
            self.turns.flush();
        }
    }

    fn take(&mut self, tape: &Tape, shelf: &mut Shelf) {
        for frame in tape.frames_from(self.taken, BATCH) {
            self.taken += 1;
            shelf.ticks.push(fnv(&frame));
            // A frame that is no tick is missing from the journal in the end.
            let _ = self.turns.take(&frame);
        }
        tape.keep(self.taken);
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.progress.state() == State::Stopped
    }

    /// Checks, when all faults are over, that each of this plant's ticks is in the journal or counted as missing.
    pub(crate) fn check_quiet(&mut self, tape: &Tape, shelf: &mut Shelf) -> Result<(), Wrong> {
        while self.taken < tape.published() {
            self.turn(tape, shelf, u64::MAX - MS);
        }
        self.turns.flush();
        let present = shelf.check(self.after, self.progress.written_up_to())?;
        let (missing, published) = (self.progress.missing(), tape.published() as u64);
        if present + missing != published {
            broken!(
                Kept,
                "{published} ticks were published, {present} are in the journal, {missing} missing"
            );
        }
        Ok(())
    }
}
