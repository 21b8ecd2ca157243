//! The plant's hub: one more reader of its ring, on a thread of its own, and the connections of its clients.

mod alone;
mod audit;
mod authenticator;
mod catching_up;
pub mod config;
mod connections;
pub(crate) mod counting;

use std::fmt;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_hub::{Coming, Hub, SessionCounters, Unknown};
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::Seq;
use tapeline_plant::demand::Demand;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Start, Subscriber, SubscriberId, Wait};
use tapeline_wire::rssl::Reactor;

use crate::error::Context;
use crate::{Error, Stop};

pub use self::alone::HubAlone;
use self::authenticator::Authenticator;
use self::catching_up::{CatchingUp, Turn};
pub use self::config::HubConfig;
use self::connections::{ClientConnections, PARTING_NS};
use self::counting::{HubFigures, Telling};

use crate::counting::SnapshotWriter;
use crate::cursor::{self, Read, RingCursor};
use crate::events::{Event, Events, Kind, Severity};
use crate::journal::{Gate, WHILE_HELD};
use crate::socket_waker::SocketWaker;
use crate::sources::Demanding;

/// Ticks that are taken before the sockets are looked at again, and what waits there is sent: few, so that a client has the first of
/// a burst while the hub is at the next ones.
const BATCH: usize = 32;
/// After so many full batches in a row, more of them: then it is the number that counts.
const FULL_BATCHES: usize = 8;
const LARGE_BATCH: usize = 256;
/// Updates that clients have been sent and that are in no image yet: while there are no more, the next ticks go first.
const MOST_UNFOLDED: usize = 128;
/// Answers of sources that are taken before ticks are looked at again.
const ANSWERS: usize = 256;
/// How long to sleep at most while neither the ring nor a socket has anything: time-outs are as fine as that.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// The same where sources may answer, images come, or a password is checked: none of them rings, and the answer waits for that long.
const SHORT_SLEEP: Duration = Duration::from_micros(500);
/// For how long a hub that ends goes on sending what its clients are owed.
const LAST_WORDS_NS: i64 = 2_000_000_000;
/// What becomes of what was missed without images.
const STAY_SUSPECT: &str = "the feeds' items stay suspect until their next session";
/// How often the clock is compared with the kernel's.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

/// A hub on its thread.
#[derive(Debug)]
pub(crate) struct RunningHub {
    /// Where clients connect.
    pub(crate) address: SocketAddr,
    /// The most memory that it takes by its settings, bytes.
    pub(crate) memory_bytes: usize,
    /// Tells the thread which ring it is; dropped without a word, the thread ends.
    ring: SyncSender<(Name, Joining)>,
    joined: Receiver<SubscriberId>,
    thread: JoinHandle<crate::Result<HubReport>>,
}

/// What a hub sent to a client that was there to the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientReport {
    /// User name of the login; empty if the client has not logged in.
    pub user: String,
    /// Images sent; each part of an image counts.
    pub refreshes: u64,
    /// Updates sent or queued.
    pub updates: u64,
    /// Updates that are in a later image instead.
    pub conflated: u64,
    /// Updates dropped because the connection had no capacity; the client was told.
    pub dropped: u64,
}

/// Clients in a hub's report, at most.
const MOST_CLIENTS: usize = 100;

/// Where a hub begins in its ring, and what ends it.
#[derive(Debug)]
pub enum Joining {
    /// Before the plant's first tick, which comes behind this one: it begins with what comes, and ends with the ring.
    First(Seq),
    /// Elsewhere than in the plant's process: it begins with the oldest tick that is still there, and ends also when it is told to.
    Later(Stop),
    /// As [`First`](Self::First), and lets nobody in until this channel is closed and it has taken what was published by then.
    Past(Receiver<()>),
}

/// What a hub did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HubReport {
    /// Where clients connected.
    pub address: String,
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Clients that connected.
    pub sessions: u64,
    /// Of them, those that were cut because they were too slow.
    pub cut: u64,
    /// Items that were asked for.
    pub requests: u64,
    /// Of them, those that were refused.
    pub refused: u64,
    /// Images sent.
    pub refreshes: u64,
    /// Updates sent or queued.
    pub updates: u64,
    /// Updates that are in a later image instead, as their client had no room.
    pub conflated: u64,
    /// Updates that were dropped, and their clients told.
    #[serde(default)]
    pub dropped: u64,
    /// Times that it lost its place on the ring of a plant in another process, and began anew.
    #[serde(default)]
    pub rejoined: u64,
    /// Ticks that it missed by that.
    #[serde(default)]
    pub missing: u64,
    /// Of the clients that were cut, those that took nothing at all.
    #[serde(default)]
    pub stuck: u64,
    /// Connections that never opened: refused, broken, or silent for too long in the handshake.
    #[serde(default)]
    pub never_opened: u64,
    /// Of those who were there when it ended: what each was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<ClientReport>,
}

impl fmt::Display for HubReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "hub at {}: {} clients, {} images and {} updates sent, {} conflated, {} dropped, {} requests refused, {} clients cut",
            self.address,
            thousands(self.sessions),
            thousands(self.refreshes),
            thousands(self.updates),
            thousands(self.conflated),
            thousands(self.dropped),
            thousands(self.refused),
            thousands(self.cut),
        )?;
        f.write_str(&cursor::losses(self.rejoined, self.missing))
    }
}

impl RunningHub {
    /// Opens the port and makes the thread, which waits for the ring. To be called before this thread is pinned: the other
    /// one inherits where it may run. `sources`: the way to those of the plant that can be asked, if there are any; `gate`: what keeps
    /// ticks back until they are on disk.
    pub(crate) fn start(
        config: HubConfig,
        sources: Option<Demanding>,
        teller: SnapshotWriter<HubFigures>,
        gate: Option<Gate>,
        events: &Events,
    ) -> crate::Result<Self> {
        let mut reactor = Reactor::new(config.max_connections)?;
        reactor.limit_held(config.incoming_bytes);
        reactor.limit_address(config.max_connections_per_address);
        let bound = config.memory_bound();
        let memory_bytes = bound.iter().fold(0, |sum: usize, (_, bytes)| sum.saturating_add(*bytes));
        let address = reactor.listen(config.address, &config.transport).map_err(|error| {
            Error::of_port(format!("the hub cannot listen at {}", config.address), "[hub]", error)
        })?;
        let authenticator = Authenticator::start(&config.access, events)?;
        let events = events.clone();
        let (ring, which) = sync_channel(1);
        let (tell, joined) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("hub".to_owned())
            .spawn(move || {
                if let Some(cpu) = config.cpu {
                    tapeline_measure::pin(cpu)?;
                }
                let Ok((ring, from)) = which.recv() else { return Ok(HubReport::default()) };
                let (start, after, stop, past) = match from {
                    Joining::First(after) => (Start::Newest, Some(after), None, None),
                    Joining::Later(stop) => (Start::Oldest, None, Some(stop), None),
                    Joining::Past(past) => (Start::Newest, None, None, Some(past)),
                };
                let subscriber = Subscriber::join_as(&ring, start, "hub");
                let subscriber = subscriber.map_err(|error| {
                    let hint = error.hint().unwrap_or_default();
                    Error::hinted("the hub cannot join the plant's ring", hint).because(error)
                })?;
                let _ = tell.send(subscriber.seat());
                let mut place = RingCursor::new("hub", ring, subscriber, gate, &events);
                let late = stop.as_ref().map(|_| CatchingUp::begin(&mut place)).transpose()?;
                let mut config = config;
                if late.as_ref().is_some_and(CatchingUp::lacks_images) {
                    // What is not known here may be there.
                    config.settings.unknown = Unknown::Wait;
                }
                let (entrances, telling) = ((sources, authenticator), Telling::new(teller));
                let mut program = Program::new(config, reactor, place, entrances, telling, stop)?;
                if let Some(after) = after {
                    // A place that is lost before the first tick was read is one behind a gap.
                    program.hub.pass(after);
                }
                let ended = program.catch_up(late).and_then(|()| program.take_past(past.as_ref()));
                let ended = ended.and_then(|()| program.run());
                if let Err(error) = &ended {
                    // The plant goes on without it; who waits for its end would hear of it too late.
                    events.warning(format_args!("the hub has ended early: {error:#}"));
                }
                let report = program.end(address);
                ended.map(|()| report)
            })
            .context("cannot start the hub's thread")?;
        Ok(Self { address, memory_bytes, ring, joined, thread })
    }

    /// The ring is there: returns when the hub reads it, and its place there.
    pub(crate) fn join(self, ring: &Name, from: Joining) -> crate::Result<(Self, SubscriberId)> {
        if self.ring.send((ring.clone(), from)).is_ok()
            && let Ok(seat) = self.joined.recv()
        {
            return Ok((self, seat));
        }
        self.end()?;
        crate::error::bail!("the hub has ended before it began")
    }

    /// Whether its thread is over, whatever the ring does.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// The ring has ended: waits until the clients have what they are owed, or the time for that is over.
    pub(crate) fn end(self) -> crate::Result<HubReport> {
        drop(self.ring);
        match self.thread.join() {
            Ok(report) => report.context("the hub has ended early"),
            Err(_) => crate::error::bail!("the hub's thread has panicked"),
        }
    }
}

/// Why no images come.
fn no_images(why: &dyn fmt::Display) -> Event {
    Event::new(Severity::Warning, format_args!("{STAY_SUSPECT}: no images are available: {why}"))
}

/// All of it.
struct Program {
    hub: Hub,
    connections: ClientConnections,
    authenticator: Authenticator,
    place: RingCursor,
    clock: Clock,
    sources: Option<Demanding>,
    /// A demand for which there was no room.
    held: Option<Demand>,
    socket_waker: SocketWaker,
    stop: Option<Stop>,
    /// It lost its place on the ring, and what it missed comes from who keeps the images.
    late: Option<CatchingUp>,
    spin: bool,
    housekept: Nanos,
    telling: Telling,
}

impl Program {
    fn new(
        config: HubConfig,
        reactor: Reactor,
        place: RingCursor,
        (sources, authenticator): (Option<Demanding>, Authenticator),
        telling: Telling,
        stop: Option<Stop>,
    ) -> crate::Result<Self> {
        let clock = Clock::calibrate();
        let dictionary = config.settings.dictionary.clone();
        let hub = Hub::new(config.settings);
        let socket_waker = SocketWaker::begin("hub waker", reactor.lookout()?)?;
        let connections =
            ClientConnections::new(reactor, dictionary, hub.directory().clone(), place.events.clone());
        let (housekept, spin, held, late) = (clock.now(), config.spin, None, None);
        Ok(Self {
            hub,
            connections,
            authenticator,
            place,
            clock,
            sources,
            held,
            socket_waker,
            stop,
            late,
            spin,
            housekept,
            telling,
        })
    }

    /// Takes over what was before, where this hub comes late.
    fn catch_up(&mut self, late: Option<CatchingUp>) -> crate::Result<()> {
        let Some(mut late) = late else { return Ok(()) };
        let Some(stop) = &self.stop else { return Ok(()) };
        let (place, hub, connections) = (&mut self.place, &mut self.hub, &mut self.connections);
        late.finish(place, hub, connections, (&self.clock, stop))?;
        if let Some(images) = late.images() {
            let images = thousands(images as u64);
            self.place.events.info(format_args!("received the images of {images} items from the plant"));
        }
        Ok(())
    }

    /// Takes what clients are not to see come, before it serves anybody.
    fn take_past(&mut self, past: Option<&Receiver<()>>) -> crate::Result<()> {
        let Some(past) = past else { return Ok(()) };
        loop {
            // Before the look at the ring: what was published until then is there.
            let is_over = past.try_recv() == Err(TryRecvError::Disconnected);
            let (taken, has_ended) = self.take_ticks(self.clock.now(), LARGE_BATCH)?;
            if has_ended || is_over && taken == 0 {
                // What comes is known to come: who waits for requests would wait for ever otherwise.
                self.hub.bring_up(self.clock.now(), &mut self.connections);
                return Ok(());
            }
            if taken == 0 {
                self.place.subscriber.wait(Wait::Park, LONGEST_SLEEP);
            }
        }
    }

    /// Serves until the ring ends.
    fn run(&mut self) -> crate::Result<()> {
        let (mut full, mut is_alive) = (0, true);
        loop {
            let now = self.clock.now();
            self.telling.sent(now);
            self.telling.turn(now, &self.hub, &mut self.connections);
            let most = if full < FULL_BATCHES { BATCH } else { LARGE_BATCH };
            let (taken, is_over) = self.take_ticks(now, most)?;
            full = if taken == most { full + 1 } else { 0 };
            let is_busy = self.connections.serve(&mut self.hub, now)? | self.hear_sources(now);
            self.fold(now);
            self.hub.turn(now, &mut self.connections);
            self.ask_sources();
            self.connections.close_those_over(&mut self.hub, now);
            self.authenticator.turn(now, &mut self.hub, &mut self.connections)?;
            if is_over || self.stop.as_ref().is_some_and(Stop::is_requested) {
                return Ok(());
            }
            // Who ends the ring lets go of it too: what is on it, and may wait for the disk, is read first, and then its end.
            if !is_alive && taken == 0 && !self.place.is_held {
                let hint = "start the plant again, and then its hub";
                return Err(Error::hinted("the plant has died", hint));
            }
            if now.since(self.housekept) >= HOUSEKEEPING_NS {
                self.housekept = now;
                self.clock.recalibrate();
                if let Some(cause) = self.connections.accept_error() {
                    let said = format_args!("the hub cannot accept connections: {cause}");
                    self.place.events.peer(now, Kind::Accept, Severity::Warning, said);
                }
                self.place.events.left_out(now);
                is_alive = self.place.subscriber.publisher_alive()?;
            }
            if taken == 0 && !is_busy && !self.hub.is_owed_more() && !self.spin {
                let is_answered =
                    self.sources.is_some() || self.authenticator.is_busy() || self.late.is_some();
                let sleep = if is_answered { SHORT_SLEEP } else { LONGEST_SLEEP };
                if self.place.is_held {
                    // The ring has something, so that it would not wait.
                    std::thread::sleep(WHILE_HELD);
                } else {
                    self.place.subscriber.wait_or(self.socket_waker.bell(), sleep);
                }
                self.socket_waker.answer();
            }
        }
    }

    /// Brings the images up to what is on its way to the clients, as long as nothing comes that they wait for.
    fn fold(&mut self, now: Nanos) {
        let Self { hub, connections, place, .. } = self;
        let has_ticks = || place.subscriber.has_next();
        while hub.unfolded() > MOST_UNFOLDED || hub.unfolded() > 0 && !has_ticks() {
            hub.fold(now, connections);
        }
    }

    /// Takes what the sources have answered: whether there was anything.
    fn hear_sources(&mut self, now: Nanos) -> bool {
        let Some(sources) = &self.sources else { return false };
        let mut is_busy = false;
        for answer in sources.answers.try_iter().take(ANSWERS) {
            is_busy = true;
            self.hub.answer(now, answer, &mut self.connections);
        }
        is_busy
    }

    /// Passes on what is wanted of the sources, as much as there is room for.
    fn ask_sources(&mut self) {
        let Some(sources) = &self.sources else { return };
        let mut has_asked = false;
        while let Some(demand) = self.held.take().or_else(|| self.hub.next_demand()) {
            match sources.demands.try_send(demand) {
                Ok(()) => has_asked = true,
                Err(TrySendError::Full(demand)) => {
                    self.held = Some(demand);
                    break;
                }
                // The plant is ending.
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        if has_asked {
            // Without it the plant looks a few milliseconds later.
            let _ = sources.waker.wake();
        }
    }

    /// Takes ticks, as many as are there: how many, and whether there will be no more.
    fn take_ticks(&mut self, now: Nanos, most: usize) -> crate::Result<(usize, bool)> {
        if self.late.is_some() {
            return Ok((self.take_images(now)?, false));
        }
        let mut prepared = 0;
        for taken in 0..most {
            if prepared == 0 {
                let ahead = self
                    .place
                    .subscriber
                    .ahead(|frame| Tick::parse(frame).ok().map(|tick| Coming::from(&tick)));
                prepared = self.hub.expect(ahead.map_while(|coming| coming));
            }
            prepared -= 1;
            match self.place.next(self.hub.next_seq())? {
                Read::Tick(tick) if !self.hub.awaits_images() => {
                    if taken == 0 {
                        self.telling.taken(&tick.header, self.clock.now());
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
                Read::Lost(lost) => return self.place.rejoin(&lost).map(|()| (taken, false)),
            }
        }
        Ok((most, false))
    }

    /// Asks who keeps the plant's images, behind a gap.
    fn ask_for_images(&self, mut late: CatchingUp) -> CatchingUp {
        let why = match late.ask(&self.place.ring) {
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

    /// Takes images that the plant keeps, and then the ticks behind them: how many there were, or about.
    fn take_images(&mut self, now: Nanos) -> crate::Result<usize> {
        let Some(late) = &mut self.late else { return Ok(0) };
        match late.turn(now, &mut self.place, &mut self.hub, &mut self.connections) {
            Ok(Turn::Busy) => return Ok(1),
            Ok(Turn::Nothing) => return Ok(0),
            Ok(Turn::Done) => {}
            // What waits is of before the next gap, and the images that come then have it.
            Ok(Turn::Lost(lost)) => {
                self.late = None;
                self.place.rejoin(&lost)?;
                return Ok(1);
            }
            Err(error) if late.is_asking() => {
                self.place.events.warning(format_args!("{STAY_SUSPECT}: {error:#}"));
                late.give_up();
                return Ok(1);
            }
            Err(error) => return Err(error),
        }
        let images = self.late.take().and_then(|late| late.images());
        if let Some(images) = images {
            let images = thousands(images as u64);
            self.place.events.info(format_args!(
                "received the images of {images} items again from the plant; their state is that of the plant's feeds"
            ));
        }
        self.hub.end_anew(now, images.is_some(), &mut self.connections);
        Ok(1)
    }

    /// Tells the clients that it is over, and gives them the time to take what they are owed.
    fn end(mut self, address: SocketAddr) -> HubReport {
        let begun = self.clock.now();
        // Nobody is held up by this reader any more.
        let RingCursor { subscriber, rejoined, .. } = self.place;
        drop(subscriber);
        self.hub.stop("The plant has ended", &mut self.connections);
        let mut flushed: Option<Nanos> = None;
        loop {
            let now = self.clock.now();
            let served = self.connections.serve(&mut self.hub, now);
            self.hub.turn(now, &mut self.connections);
            self.connections.close_those_over(&mut self.hub, now);
            if !(self.hub.is_settled() && self.connections.are_flushed()) {
                flushed = None;
            } else if flushed.is_none() {
                flushed = Some(now);
            }
            // Those who were told of the end read that before the connection's.
            let is_read = |flushed: Nanos| now.0.saturating_sub(flushed.0) >= PARTING_NS;
            let is_done = flushed.is_some_and(is_read) || flushed.is_some() && self.hub.sessions() == 0;
            if is_done || served.is_err() || now.since(begun) >= LAST_WORDS_NS {
                break;
            }
            // Sockets are looked at without sleeping: it is for a moment only.
            std::thread::yield_now();
        }
        let clients = self.hub.seen().take(MOST_CLIENTS).map(|seen| ClientReport {
            user: seen.user.to_owned(),
            refreshes: seen.counters.refreshes,
            updates: seen.counters.updates,
            conflated: seen.counters.conflated,
            dropped: seen.counters.dropped,
        });
        let clients = clients.collect();
        self.connections.close_all(&mut self.hub);
        self.telling.tell(self.clock.now(), &self.hub, &mut self.connections, true);
        self.authenticator.end(self.clock.now(), &mut self.hub, &mut self.connections);
        let counters = *self.hub.counters();
        let SessionCounters { requests, refused, refreshes, updates, conflated, dropped, .. } = counters.past;
        HubReport {
            clients,
            address: address.to_string(),
            ticks: counters.ticks,
            sessions: counters.sessions,
            cut: counters.cut,
            requests,
            refused,
            refreshes,
            updates,
            conflated,
            dropped,
            rejoined,
            missing: counters.missing,
            stuck: counters.stuck,
            never_opened: self.connections.never_opened(),
        }
    }
}
