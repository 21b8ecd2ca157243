//! The hub's loop without its thread: the caller drives each turn and provides the clock.

use std::fmt;

use tapeline_hub::{Coming, Connections, Hub, SessionId, Settings};
use tapeline_measure::Nanos;
use tapeline_measure::figures::thousands;
use tapeline_plant::Time;
use tapeline_plant::demand::Demand;
use tapeline_wire::rssl::Reactor;

use crate::cursor::{Read, RingCursor};
use crate::events::{Event, Events, Severity};
use crate::hub::catching_up::{self, CatchingUp};
use crate::hub::connections::ClientConnections;
use crate::hub::counting::{FigureWriter, HubFigures};
use crate::journal::Gate;
use crate::readers::counting::{SnapshotWriter, snapshots_between};
use crate::sources::Demanding;
use crate::ticks::Position;

/// Ticks taken before the hub looks at the sockets and sends queued output: few, so that a client has the
/// first tick of a burst while the hub processes the next ones.
const BATCH: usize = 32;
/// After this many full batches in a row the batches are larger, for throughput.
const FULL_BATCHES: usize = 8;
pub(super) const LARGE_BATCH: usize = 256;
/// Maximum number of updates that were sent and are not in an image yet: below it, ticks go first.
const MOST_UNFOLDED: usize = 128;
/// Answers of sources taken before the hub looks at ticks again.
const ANSWERS: usize = 256;
/// The consequence of a gap without images.
const STAY_SUSPECT: &str = "the feeds' items stay suspect until their next session";

/// A hub that serves its clients turn by turn: it never blocks, and takes its time from the given clock. A
/// plant drives it on a thread, a simulation in its own environment.
#[derive(Debug)]
pub struct HubTurns<T, C> {
    /// The hub, for its events, its counters and its access rules.
    pub hub: Hub,
    pub(super) connections: ClientConnections,
    pub(super) place: RingCursor<T>,
    pub(super) clock: C,
    pub(super) sources: Option<Demanding>,
    /// A demand for which the queue had no capacity.
    held: Option<Demand>,
    /// Set while the hub resynchronises after it lost its position on the ring, or joined late, with images
    /// from the plant.
    pub(super) late: Option<CatchingUp>,
    /// The hub joined after the plant's first tick, and serves no client before it has the earlier state.
    is_entering: bool,
    /// Full batches in a row.
    full: usize,
    pub(super) figure_writer: FigureWriter,
}

/// The result of a turn.
#[derive(Clone, Copy, Debug)]
pub struct HubTurn {
    /// When the turn began.
    pub now: Nanos,
    /// Ticks taken.
    pub ticks: usize,
    /// A client or a source had input.
    pub is_busy: bool,
    /// The ring has ended, and everything on it was taken.
    pub is_over: bool,
}

impl<T: Position, C: Time> HubTurns<T, C> {
    /// Creates a hub that reads these ticks. `gate` holds ticks back until they are durable; `sources`
    /// connects to the plant's providers and publishers.
    #[must_use]
    pub fn new(
        settings: Settings,
        reactor: Reactor,
        (ticks, gate): (T, Option<Gate>),
        clock: C,
        sources: Option<Demanding>,
        events: &Events,
    ) -> Self {
        let place = RingCursor::new("hub", ticks, gate, events);
        Self::at(settings, reactor, place, clock, sources, snapshots_between(HubFigures::default).0)
    }

    pub(super) fn at(
        settings: Settings,
        reactor: Reactor,
        place: RingCursor<T>,
        clock: C,
        sources: Option<Demanding>,
        snapshots: SnapshotWriter<HubFigures>,
    ) -> Self {
        let dictionary = settings.dictionary.clone();
        let hub = Hub::new(settings);
        let connections =
            ClientConnections::new(reactor, dictionary, hub.directory().clone(), place.events.clone());
        let figure_writer = FigureWriter::new(snapshots);
        Self {
            hub,
            connections,
            place,
            clock,
            sources,
            held: None,
            late: None,
            is_entering: false,
            full: 0,
            figure_writer,
        }
    }

    /// Starts after the plant's first tick: the earlier state comes from the plant's images, if it serves
    /// any. Until then the hub serves no client.
    ///
    /// # Errors
    /// The position on the ring is already lost, or the request for the images fails.
    pub fn enter_late(&mut self) -> crate::Result<()> {
        let late = CatchingUp::begin(&mut self.place)?;
        self.enter(late);
        Ok(())
    }

    pub(super) fn enter(&mut self, late: CatchingUp) {
        (self.late, self.is_entering) = (Some(late), true);
    }

    /// Returns `true` while the hub catches up with a plant that it joined late.
    pub const fn is_entering(&self) -> bool {
        self.is_entering
    }

    /// Takes ticks and input of clients and sources, and does what is due.
    ///
    /// # Errors
    /// Another plant continues with the ring, the ring contains something that is not a tick, or the system
    /// refuses to look at sockets.
    #[inline]
    pub fn turn(&mut self) -> crate::Result<HubTurn> {
        let now = self.clock.now();
        if self.is_entering {
            let ticks = self.take_images(now)?;
            return Ok(HubTurn { now, ticks, is_busy: false, is_over: false });
        }
        self.figure_writer.sent(now);
        self.figure_writer.turn(now, &self.hub, &mut self.connections);
        let most = if self.full < FULL_BATCHES { BATCH } else { LARGE_BATCH };
        let (ticks, is_over) = self.take_ticks(now, most)?;
        self.figure_writer.turned(ticks);
        self.full = if ticks == most { self.full + 1 } else { 0 };
        let is_busy = self.connections.serve(&mut self.hub, now)? | self.hear_sources(now);
        self.fold(now);
        self.hub.turn(now, &mut self.connections);
        self.ask_sources();
        self.connections.close_those_over(&mut self.hub, now);
        Ok(HubTurn { now, ticks, is_busy, is_over })
    }

    /// Returns the connections' reactor, to listen or to accept clients.
    pub const fn reactor(&mut self) -> &mut Reactor {
        self.connections.reactor()
    }

    /// Tries to send the output buffered for a session's connection, and returns `true` if none is left.
    pub fn is_flushed(&mut self, session: SessionId) -> bool {
        self.connections.is_flushed(session)
    }

    /// Folds the updates sent to clients into the images, while no new ticks wait.
    fn fold(&mut self, now: Nanos) {
        let Self { hub, connections, place, .. } = self;
        let has_ticks = || place.ticks.has_next();
        while hub.unfolded() > MOST_UNFOLDED || hub.unfolded() > 0 && !has_ticks() {
            hub.fold(now, connections);
        }
    }

    /// Takes answers of the sources. Returns whether there were any.
    fn hear_sources(&mut self, now: Nanos) -> bool {
        let Some(sources) = &self.sources else { return false };
        let mut is_busy = false;
        for answer in sources.answers.try_iter().take(ANSWERS) {
            is_busy = true;
            self.hub.answer(now, answer, &mut self.connections);
        }
        is_busy
    }

    /// Passes demands to the sources, as far as the queue has capacity.
    fn ask_sources(&mut self) {
        let Self { sources: Some(sources), held, hub, .. } = self else { return };
        if sources.demands.send_all(held, || hub.next_demand())
            && let Some(waker) = &sources.waker
        {
            waker.wake();
        }
    }

    /// Takes up to `most` ticks. Returns their number and whether the ring has ended.
    pub(super) fn take_ticks(&mut self, now: Nanos, most: usize) -> crate::Result<(usize, bool)> {
        if self.late.is_some() {
            return Ok((self.take_images(now)?, false));
        }
        let mut prepared = 0;
        for taken in 0..most {
            if prepared == 0 {
                let ahead = self.place.ticks.ahead(Coming::of);
                prepared = self.hub.expect(ahead.map_while(|coming| coming));
            }
            prepared -= 1;
            match self.place.next(self.hub.next_seq())? {
                Read::Tick(tick) if !self.hub.awaits_images() => {
                    if taken == 0 && self.figure_writer.has_latencies() {
                        self.figure_writer.taken(&tick.header, self.clock.now());
                    }
                    self.hub.tick(now, &tick, &mut self.connections);
                }
                Read::Again => {}
                Read::Tick(tick) | Read::Behind(tick) => {
                    self.hub.begin_anew(now, tick.header.seq, &mut self.connections);
                    let late = CatchingUp::behind(&tick);
                    self.late = Some(self.ask_for_images(late));
                    return Ok((taken + 1, false));
                }
                Read::Nothing => return Ok((taken, false)),
                Read::End => return Ok((taken, true)),
                Read::Lost => return self.place.rejoin().map(|()| (taken, false)),
            }
        }
        Ok((most, false))
    }

    /// Asks the plant for its images after a gap.
    fn ask_for_images(&self, mut late: CatchingUp) -> CatchingUp {
        let why = match late.ask(&self.place.ticks) {
            Ok(true) => return late,
            Ok(false) => Event {
                hint: Some("images = \"1GiB\" in its [plant] keeps them".to_owned()),
                ..no_images(&"the plant keeps none")
            },
            Err(error) => no_images(&format_args!("{error:#}")),
        };
        self.place.events.report(&why);
        late
    }

    /// Takes images, and then the ticks after them: after a gap, or to catch up. Returns roughly how many.
    fn take_images(&mut self, now: Nanos) -> crate::Result<usize> {
        let Some(late) = &mut self.late else { return Ok(0) };
        match late.turn(now, &mut self.place, &mut self.hub, &mut self.connections) {
            Ok(catching_up::Turn::Busy) => return Ok(1),
            Ok(catching_up::Turn::Nothing) => return Ok(0),
            Ok(catching_up::Turn::Done) => {}
            Ok(catching_up::Turn::Lost(lost)) if self.is_entering => return Err(lost.of("this hub")),
            // The buffered ticks precede the next gap; the next images include them.
            Ok(catching_up::Turn::Lost(_)) => {
                self.late = None;
                self.place.rejoin()?;
                return Ok(1);
            }
            Err(error) if late.is_asking() && !self.is_entering => {
                self.place.events.warning(format_args!("{STAY_SUSPECT}: {error:#}"));
                late.give_up();
                return Ok(1);
            }
            Err(error) => return Err(error),
        }
        let images = self.late.take().and_then(|late| late.images());
        let is_entering = std::mem::take(&mut self.is_entering);
        if let Some(images) = images {
            let images = thousands(images as u64);
            let (again, state) =
                if is_entering { ("", "") } else { (" again", "; their state is that of the plant's feeds") };
            self.place
                .events
                .info(format_args!("received the images of {images} items{again} from the plant{state}"));
        }
        if !is_entering {
            self.hub.end_anew(now, images.is_some(), &mut self.connections);
        }
        Ok(1)
    }
}

/// Reports why no images are available.
fn no_images(why: &dyn fmt::Display) -> Event {
    Event::new(Severity::Warning, format_args!("{STAY_SUSPECT}: no images are available: {why}"))
}
