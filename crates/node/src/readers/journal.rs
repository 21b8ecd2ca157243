//! The plant's journal: one more reader of its ring, which writes every tick to disk. `[journal]` in the
//! configuration.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_journal::{Directory, Durability, Folder, Outcome, Progress, Settings, State, Writer};
use tapeline_measure::figures::thousands;
use tapeline_plant::Seq;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Poll, Subscriber, SubscriberId, Wait};

use crate::Error;
use crate::error::Context;
use crate::events::Events;
use crate::readers::reader::Reader;
use crate::ticks::{Next, Position};

/// Maximum number of ticks taken from a busy ring before they are written.
const BATCH: usize = 4_096;
/// The longest sleep while the ring is quiet.
const SLEEP: Duration = Duration::from_millis(10);
/// The sleep between two looks at a ring whose ticks nobody waits for, and the number of looks without a tick before the
/// thread sleeps until the next one.
const NAP: Duration = Duration::from_micros(100);
const NAPS: u32 = 10;
/// How long to sleep while the next tick is being written to disk: short compared with a disk write.
pub(crate) const WHILE_HELD: Duration = Duration::from_micros(20);

/// The settings of the journal.
#[derive(Clone, Debug)]
pub struct JournalConfig {
    /// Folder of the journal's segments.
    pub folder: PathBuf,
    /// Durability, policy when the journal cannot be written, segment size and retention.
    pub settings: Settings,
}

impl JournalConfig {
    /// Creates the configuration of a journal in a folder, with the defaults of a configuration file.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), settings: Settings::default() }
    }
}

/// Totals of a journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JournalReport {
    /// Folder of the journal.
    pub folder: String,
    /// Ticks of this plant in the journal.
    pub ticks: u64,
    /// Ticks missing in the journal, because it could not be written.
    pub missing: u64,
    /// The last sequence number in the journal.
    pub last: u64,
}

#[derive(Debug)]
pub(crate) struct RunningJournal {
    /// Its place on the ring must be [exempt](tapeline_ring::Publisher) from the stall limit.
    pub(crate) reader: Reader<JournalReport>,
    progress: Arc<Progress>,
    durability: Durability,
    /// The last tick of the plants before this one; this plant's sequence continues after it.
    pub(crate) after: Seq,
}

/// Holds ticks back from one reader until they are durable.
#[derive(Debug)]
pub struct Gate {
    progress: Arc<Progress>,
    held: Arc<Holding>,
}

/// The tick that a gate holds back, for the publisher that waits for the gate's reader.
#[derive(Debug, Default)]
struct Holding {
    /// The tick that the gate holds back, or held back last; 0 for none.
    seq: AtomicU64,
    /// The reader's place on the ring.
    seat: Mutex<Option<SubscriberId>>,
}

impl RunningJournal {
    /// Opens the journal, cuts off what a crash left incomplete, and starts the thread, which waits for the
    /// ring. Call before this thread is pinned. `is_awaited`: a reader waits for each tick to be written.
    pub(crate) fn start(config: &JournalConfig, is_awaited: bool, events: &Events) -> crate::Result<Self> {
        let folder = config.folder.display().to_string();
        let opened = Directory::create(&config.folder).and_then(|open| Writer::open(open, config.settings));
        let (writer, opened) = opened
            .map_err(|error| Error::of_journal(format!("cannot open the journal in {folder}"), error))?;
        if let Some(lost) = &opened.lost {
            events.warning(format_args!(
                "the last file of the journal in {folder} is lost, with all ticks from {} on; the journal continues after tick {}",
                lost.from, opened.last
            ));
        }
        if let Some(tail) = &opened.tail {
            events.info(format_args!(
                "the journal in {folder} had an incomplete end: {} bytes after tick {} were cut off {}",
                thousands(tail.bytes),
                tail.after,
                tail.segment
            ));
        }
        let (progress, durability) = (writer.progress(), config.settings.durability);
        let of_thread = events.clone();
        let keep = move |_, subscriber, _| {
            let naps = durability == Durability::Written && !is_awaited;
            Keeping { turns: JournalTurns::new(writer, of_thread), subscriber, naps }.run(folder)
        };
        Ok(Self {
            reader: Reader::start("journal", events, keep)?,
            progress,
            durability,
            after: Seq(opened.last),
        })
    }

    /// The journal's progress, for the counters.
    pub(crate) fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// A gate for one reader that passes ticks on; `None` unless ticks must be on disk first.
    pub(crate) fn gate(&self) -> Option<Gate> {
        (self.durability == Durability::Synced).then(|| Gate::of(Arc::clone(&self.progress)))
    }

    /// A gate for a reader whose ticks must be in the journal first, whatever its durability.
    pub(crate) fn gate_of_bridge(&self) -> Gate {
        Gate::of(Arc::clone(&self.progress))
    }

    /// Whether the plant must stop because nothing more can be written.
    pub(crate) fn has_stopped(&self) -> bool {
        self.progress.state() == State::Stopped
    }
}

/// Whether the next tick is held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The tick may go out, or there is none.
    No,
    /// The tick is not on disk yet.
    Yes,
    /// The tick will never be on disk: the plant stops.
    ForEver,
}

impl Gate {
    /// Creates the gate of one reader: a tick passes once it has the journal's durability.
    #[must_use]
    pub fn of(progress: Arc<Progress>) -> Self {
        Self { progress, held: Arc::default() }
    }

    /// Sets the reader's place on the ring.
    pub(crate) fn holds_back(&self, seat: SubscriberId) {
        *self.held.seat.lock().unwrap_or_else(PoisonError::into_inner) = Some(seat);
    }

    /// Returns a function that tells whether this gate holds back the reader at a place. The publisher calls
    /// it while it waits for that reader: see [`excuse_while`](tapeline_ring::PublisherOf::excuse_while).
    pub(crate) fn excuse(&self) -> Box<dyn Fn(SubscriberId) -> bool + Send> {
        let (progress, held) = (Arc::clone(&self.progress), Arc::clone(&self.held));
        Box::new(move |seat| {
            let seq = held.seq.load(Ordering::Relaxed);
            let its = *held.seat.lock().unwrap_or_else(PoisonError::into_inner);
            its == Some(seat) && seq > 0 && !progress.lets_go(seq)
        })
    }

    /// Takes the next tick of a ring once it may go out; `None` while it is held back. A tick that will never
    /// be on disk is the end.
    ///
    /// # Errors
    /// As [`Ticks::next`](crate::ticks::Ticks::next).
    pub(crate) fn next<'a>(&self, ticks: &'a mut impl Position) -> crate::Result<Option<Next<'a>>> {
        match self.holds(ticks) {
            Held::No => {}
            Held::Yes => return Ok(None),
            Held::ForEver => return Ok(Some(Next::End)),
        }
        between_looks();
        Ok(Some(match ticks.next()? {
            Next::Tick(tick) if !self.lets_out(tick.header.seq) => Next::End,
            next => next,
        }))
    }

    /// Whether the next tick of a ring may go out.
    fn holds(&self, ticks: &mut impl Position) -> Held {
        let next = ticks.ahead(|frame| Tick::parse(frame).ok().map(|tick| tick.header.seq)).next();
        let Some(seq) = next.flatten() else {
            return Held::No;
        };
        if self.progress.lets_go(seq.0) {
            return Held::No;
        }
        self.held.seq.store(seq.0, Ordering::Relaxed);
        if self.progress.state() == State::Stopped { Held::ForEver } else { Held::Yes }
    }

    /// Returns once a taken tick may go out: a tick that arrived after the gate saw an empty ring was never
    /// held back. `false` means that the tick will never be on disk.
    pub(crate) fn lets_out(&self, seq: Seq) -> bool {
        while !self.progress.lets_go(seq.0) {
            self.held.seq.store(seq.0, Ordering::Relaxed);
            if self.progress.state() == State::Stopped {
                return false;
            }
            std::thread::sleep(WHILE_HELD);
        }
        true
    }
}

/// The ticks of a plant on their way into its journal, whatever they are read from and wherever its folder is. Reports that the journal
/// fails, and that it is written again.
pub struct JournalTurns<F: Folder> {
    writer: Writer<F>,
    /// Ticks of this plant that were taken.
    given: u64,
    /// The condition last reported to the user.
    is_well: bool,
    events: Events,
}

impl<F: Folder> JournalTurns<F> {
    /// Starts with a writer whose journal is open.
    pub const fn new(writer: Writer<F>, events: Events) -> Self {
        Self { writer, given: 0, is_well: true, events }
    }

    /// Takes the next tick, as it stands on the ring.
    ///
    /// # Errors
    /// The bytes are not a tick.
    pub fn take(&mut self, frame: &[u8]) -> crate::Result<()> {
        let tick = Tick::parse(frame).context("the ring holds something that is not a tick")?;
        let seq = tick.header.seq.0;
        if tick.header.seq.is_outside() {
            // Outside the sequence: it is about this plant's connection to another, and over when the plant is.
            return Ok(());
        }
        self.given += 1;
        let outcome = self.writer.append(seq, tick.header.sequenced, frame);
        if outcome.is_kept() != self.is_well {
            self.is_well = !self.is_well;
            say(&self.writer, outcome, seq, &self.events);
        }
        Ok(())
    }

    /// Writes the ticks that were taken. Its result is in the writer's [progress](Writer::progress).
    pub fn flush(&mut self) {
        let outcome = self.writer.flush();
        if self.is_well && !outcome.is_kept() {
            self.is_well = false;
            say(&self.writer, outcome, self.writer.kept_up_to() + 1, &self.events);
        }
    }
}

impl<F: Folder> fmt::Debug for JournalTurns<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalTurns").field("given", &self.given).finish_non_exhaustive()
    }
}

struct Keeping {
    turns: JournalTurns<Directory>,
    subscriber: Subscriber,
    /// Sleeps for a fixed time while ticks keep coming, instead of until the next one: nobody waits for a write, and the
    /// publisher need not wake this thread for each tick.
    naps: bool,
}

impl Keeping {
    /// Writes ticks until the ring ends. Returns the totals.
    fn run(mut self, folder: String) -> crate::Result<JournalReport> {
        let kept = self.keep();
        let JournalTurns { mut writer, given, .. } = self.turns;
        if kept.is_err() {
            // The ticks taken so far are still written. The writer reports that it has stopped when it is
            // dropped.
            let _ = writer.flush();
        }
        kept?;
        let progress = writer.progress();
        let outcome = writer.finish();
        let (last, missing) = (progress.written_up_to(), progress.missing());
        // Each tick is either in the journal or missing, wherever the missing ones are.
        let report = JournalReport { folder, ticks: given.saturating_sub(missing), missing, last };
        crate::error::ensure!(
            outcome != Outcome::Stopped,
            "ticks from {} on are not in the journal",
            last + 1
        );
        Ok(report)
    }

    /// Writes ticks until the ring ends. A journal that has stopped still reads: it does not block the ring.
    fn keep(&mut self) -> crate::Result<()> {
        let mut is_alive = true;
        let mut naps_left = 0;
        loop {
            let mut taken = 0;
            let mut is_over = false;
            while taken < BATCH {
                match self.subscriber.next() {
                    Poll::Frame(frame) => {
                        self.turns.take(frame.bytes())?;
                        taken += 1;
                    }
                    Poll::Ended => {
                        is_over = true;
                        break;
                    }
                    Poll::Empty => break,
                    Poll::Evicted { .. } => crate::error::bail!("the plant continued without its journal"),
                    _ => crate::error::bail!("the plant's ring is damaged"),
                }
            }
            self.turns.flush();
            if is_over {
                return Ok(());
            }
            if taken > 0 {
                naps_left = NAPS;
            } else {
                crate::error::ensure!(is_alive, "the plant has died");
                if self.naps && naps_left > 0 {
                    naps_left -= 1;
                    std::thread::sleep(NAP);
                    continue;
                }
                self.subscriber.wait(Wait::Park, SLEEP);
                // A publisher releases the ring when it ends it: one more look distinguishes that from its
                // death.
                is_alive = self.subscriber.publisher_alive()?;
            }
        }
    }
}

/// Reports that the journal fails, or is written again.
fn say(writer: &Writer<impl Folder>, outcome: Outcome, seq: u64, events: &Events) {
    let Some(fault) = writer.fault() else {
        events.info(format_args!("the journal is written again, from tick {seq} on"));
        return;
    };
    let cause = std::error::Error::source(fault).map(|cause| format!(": {cause}")).unwrap_or_default();
    let then = match outcome {
        Outcome::Stopped => "the plant stops",
        _ => "the plant continues WITHOUT a journal",
    };
    let from = writer.kept_up_to() + 1;
    let said = format_args!("{fault}{cause}; ticks from {from} on are missing, {then}");
    events.error(said, fault.hint().map(Into::into));
}

/// Between a gate's look at the ring and the take: a test publishes a tick here.
#[cfg(not(test))]
const fn between_looks() {}
#[cfg(test)]
use self::tests::between_looks;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tapeline_journal::OnFailure;
    use tapeline_measure::Nanos;
    use tapeline_ring::{Name, Options, Publisher, Start};

    use super::*;
    use crate::ticks::OnRing;
    use crate::ticks::frame;

    thread_local! {
        /// What happens between a gate's look at the ring and the take.
        static BETWEEN: RefCell<Option<Box<dyn FnOnce()>>> = RefCell::default();
    }

    pub(super) fn between_looks() {
        if let Some(happens) = BETWEEN.take() {
            happens();
        }
    }

    /// A synced journal, and a ring with a reader.
    fn scene(name: &str, folder: &std::path::Path) -> (Writer<Directory>, Publisher, OnRing) {
        let settings = Settings { durability: Durability::Synced, ..Settings::default() };
        let (writer, _) = Writer::open(Directory::create(folder).unwrap(), settings).unwrap();
        let name: Name = format!("test-gate-{name}-{}", std::process::id()).parse().unwrap();
        let publisher = Publisher::open(&name, &Options { capacity: 1 << 16, ..Options::default() }).unwrap();
        let subscriber = Subscriber::join(&name, Start::Newest).unwrap();
        (writer, publisher, OnRing { ring: name, subscriber })
    }

    fn taken(next: Option<Next<'_>>) -> Option<u64> {
        match next {
            Some(Next::Tick(tick)) => Some(tick.header.seq.0),
            _ => None,
        }
    }

    #[test]
    fn a_tick_goes_out_once_it_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, mut publisher, mut reader) = scene("held", folder.path());
        let gate = Gate::of(writer.progress());
        assert!(matches!(gate.next(&mut reader).unwrap(), Some(Next::Nothing)));
        publisher.publish(&frame(1)).unwrap();
        assert!(gate.next(&mut reader).unwrap().is_none());
        assert!(writer.append(1, Nanos(0), &frame(1)).is_kept());
        assert!(gate.next(&mut reader).unwrap().is_none(), "it is not written yet");
        assert!(writer.flush().is_kept());
        assert_eq!(taken(gate.next(&mut reader).unwrap()), Some(1));
        publisher.close().unwrap();
    }

    /// At some point the folder takes no more segments: the missing ticks are at the end.
    #[test]
    fn what_is_missing_at_the_end_is_not_taken_from_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            segment_bytes: Settings::LEAST_SEGMENT_BYTES,
            on_failure: OnFailure::Continue,
            ..Settings::default()
        };
        let (writer, _) = Writer::open(Directory::create(folder.path()).unwrap(), settings).unwrap();
        let progress = writer.progress();
        let (_, mut publisher, OnRing { subscriber, .. }) = scene("end", tempfile::tempdir().unwrap().path());
        let turns = JournalTurns::new(writer, Events::default());
        let keeping = Keeping { turns, subscriber, naps: false };
        let keeping = std::thread::spawn(move || keeping.run(String::new()));
        let (mut given, mut enough) = (0, None);
        while enough != Some(given) {
            given += 1;
            while publisher.publish(&frame(given)).is_err() {
                assert!(!keeping.is_finished());
                std::thread::yield_now();
            }
            if given == 10 {
                while progress.written_up_to() < given {
                    std::thread::yield_now();
                }
                std::fs::remove_dir_all(folder.path()).unwrap();
            }
            if enough.is_none() && progress.state() == State::Without {
                enough = Some(given + 10);
            }
        }
        publisher.close().unwrap();
        let report = keeping.join().unwrap().unwrap();
        assert!(report.missing >= 10, "{report:?}");
        assert_eq!((report.ticks, report.ticks + report.missing), (report.last, given), "{report:?}");
    }

    /// Held back until it is on disk, which it never is, it would look like the end of the ring.
    #[test]
    fn a_frame_that_is_no_tick_is_not_held_back() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, mut publisher, mut reader) = scene("no-tick", folder.path());
        let gate = Gate::of(writer.progress());
        let mut unknown = frame(u64::MAX);
        unknown[58] = 99;
        publisher.publish(&unknown).unwrap();
        let error = gate.next(&mut reader).map(taken).unwrap_err();
        assert!(format!("{error:#}").contains("kind 99"), "{error:#}");
    }

    /// The tick arrives after the gate saw an empty ring and before the reader takes what is there.
    #[test]
    fn a_tick_that_comes_behind_the_look_at_an_empty_ring_waits_for_the_disk_too() {
        let folder = tempfile::tempdir().unwrap();
        let (mut writer, publisher, mut reader) = scene("between", folder.path());
        let gate = Gate::of(writer.progress());
        // The tick never reaches the disk. A reader that waits gets the end; without the wait it would get
        // the tick.
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(writer.append(1, Nanos(0), &frame(1)), Outcome::Stopped);
        let publisher = Rc::new(RefCell::new(publisher));
        let comes = Rc::clone(&publisher);
        BETWEEN.set(Some(Box::new(move || {
            comes.borrow_mut().publish(&frame(1)).unwrap();
        })));
        let next = gate.next(&mut reader).unwrap();
        assert!(matches!(next, Some(Next::End)), "{:?} was given out", taken(next));
        assert!(BETWEEN.take().is_none(), "nothing came between");
    }
}
