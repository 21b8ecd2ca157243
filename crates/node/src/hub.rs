//! The plant's hub: one more reader of its ring, on a thread of its own, and the connections of its clients.

mod alone;
mod audit;
mod authenticator;
mod catching_up;
pub mod config;
mod connections;
pub(crate) mod counting;
mod turns;

use std::fmt;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_hub::{SessionCounters, Unknown};
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::Seq;
use tapeline_ring::{Name, Start, Subscriber, SubscriberId, Wait};
use tapeline_wire::rssl::Reactor;

use crate::error::Context;
use crate::{Error, Stop};

pub use self::alone::HubAlone;
use self::authenticator::Authenticator;
use self::catching_up::CatchingUp;
pub use self::config::HubConfig;
use self::connections::PARTING_NS;
use self::counting::HubFigures;
use self::turns::LARGE_BATCH;
pub use self::turns::{HubTurn, HubTurns};

use crate::counting::SnapshotWriter;
use crate::cursor::{self, RingCursor};
use crate::events::{Events, Kind, Severity};
use crate::journal::{Gate, WHILE_HELD};
use crate::socket_waker::SocketWaker;
use crate::sources::Demanding;
use crate::ticks::OnRing;

/// How long to sleep at most while neither the ring nor a socket has anything: time-outs are as fine as that.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// The same where sources may answer, images come, or a password is checked: none of them rings, and the answer waits for that long.
const SHORT_SLEEP: Duration = Duration::from_micros(500);
/// For how long a hub that ends goes on sending what its clients are owed.
const LAST_WORDS_NS: i64 = 2_000_000_000;
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
                let mut place = RingCursor::on_ring("hub", ring, subscriber, gate, &events);
                let late = stop.as_ref().map(|_| CatchingUp::begin(&mut place)).transpose()?;
                let mut config = config;
                if late.as_ref().is_some_and(CatchingUp::lacks_images) {
                    // What is not known here may be there.
                    config.settings.unknown = Unknown::Wait;
                }
                let socket_waker = SocketWaker::begin("hub waker", reactor.lookout()?)?;
                let clock = Clock::calibrate();
                let housekept = clock.now();
                let turns = HubTurns::at(config.settings, reactor, place, clock, sources, teller);
                let spin = config.spin;
                let mut program = Program { turns, authenticator, socket_waker, stop, spin, housekept };
                if let Some(after) = after {
                    // A place that is lost before the first tick was read is one behind a gap.
                    program.turns.hub.pass(after);
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

/// All of it.
struct Program {
    turns: HubTurns<OnRing, Clock>,
    authenticator: Authenticator,
    socket_waker: SocketWaker,
    stop: Option<Stop>,
    spin: bool,
    housekept: Nanos,
}

impl Program {
    /// Takes over what was before, where this hub comes late.
    fn catch_up(&mut self, late: Option<CatchingUp>) -> crate::Result<()> {
        let Some(late) = late else { return Ok(()) };
        self.turns.enter(late);
        while self.turns.is_entering() && !self.stop.as_ref().is_some_and(Stop::is_requested) {
            if self.turns.turn()?.ticks == 0 {
                self.turns.place.ticks.subscriber.wait(Wait::Park, SHORT_SLEEP);
            }
        }
        Ok(())
    }

    /// Takes what clients are not to see come, before it serves anybody.
    fn take_past(&mut self, past: Option<&Receiver<()>>) -> crate::Result<()> {
        let Some(past) = past else { return Ok(()) };
        let turns = &mut self.turns;
        loop {
            // Before the look at the ring: what was published until then is there.
            let is_over = past.try_recv() == Err(TryRecvError::Disconnected);
            let (taken, has_ended) = turns.take_ticks(turns.clock.now(), LARGE_BATCH)?;
            if has_ended || is_over && taken == 0 {
                // What comes is known to come: who waits for requests would wait for ever otherwise.
                turns.hub.bring_up(turns.clock.now(), &mut turns.connections);
                return Ok(());
            }
            if taken == 0 {
                turns.place.ticks.subscriber.wait(Wait::Park, LONGEST_SLEEP);
            }
        }
    }

    /// Serves until the ring ends.
    fn run(&mut self) -> crate::Result<()> {
        let mut is_alive = true;
        loop {
            let HubTurn { now, ticks, is_busy, is_over } = self.turns.turn()?;
            let turns = &mut self.turns;
            self.authenticator.turn(now, &mut turns.hub, &mut turns.connections)?;
            if is_over || self.stop.as_ref().is_some_and(Stop::is_requested) {
                return Ok(());
            }
            // Who ends the ring lets go of it too: what is on it, and may wait for the disk, is read first, and then its end.
            if !is_alive && ticks == 0 && !turns.place.is_held {
                let hint = "start the plant again, and then its hub";
                return Err(Error::hinted("the plant has died", hint));
            }
            if now.since(self.housekept) >= HOUSEKEEPING_NS {
                self.housekept = now;
                is_alive = self.keep_house(now)?;
            }
            if ticks == 0 && !is_busy && !self.turns.hub.is_owed_more() && !self.spin {
                self.sleep();
            }
        }
    }

    /// Once a second: whether the plant lives.
    fn keep_house(&mut self, now: Nanos) -> crate::Result<bool> {
        let HubTurns { place, connections, clock, .. } = &mut self.turns;
        clock.recalibrate();
        if let Some(cause) = connections.accept_error() {
            let said = format_args!("the hub cannot accept connections: {cause}");
            place.events.peer(now, Kind::Accept, Severity::Warning, said);
        }
        place.events.left_out(now);
        Ok(place.ticks.subscriber.publisher_alive()?)
    }

    /// Until the ring or a socket has something, or a time-out may be due.
    fn sleep(&mut self) {
        // What the turn had to say behind its look at the sockets.
        self.turns.reactor().flush();
        let HubTurns { place, sources, late, .. } = &mut self.turns;
        let is_answered = sources.is_some() || self.authenticator.is_busy() || late.is_some();
        let sleep = if is_answered { SHORT_SLEEP } else { LONGEST_SLEEP };
        if place.is_held {
            // The ring has something, so that it would not wait.
            std::thread::sleep(WHILE_HELD);
        } else {
            place.ticks.subscriber.wait_or(self.socket_waker.bell(), sleep);
        }
        self.socket_waker.answer();
    }

    /// Tells the clients that it is over, and gives them the time to take what they are owed.
    fn end(self, address: SocketAddr) -> HubReport {
        let HubTurns { mut hub, mut connections, place, clock, mut telling, .. } = self.turns;
        let begun = clock.now();
        // Nobody is held up by this reader any more.
        let RingCursor { ticks, rejoined, .. } = place;
        drop(ticks);
        hub.stop("The plant has ended", &mut connections);
        let mut flushed: Option<Nanos> = None;
        loop {
            let now = clock.now();
            let served = connections.serve(&mut hub, now);
            hub.turn(now, &mut connections);
            connections.close_those_over(&mut hub, now);
            if !(hub.is_settled() && connections.are_flushed()) {
                flushed = None;
            } else if flushed.is_none() {
                flushed = Some(now);
            }
            // Those who were told of the end read that before the connection's.
            let is_read = |flushed: Nanos| now.0.saturating_sub(flushed.0) >= PARTING_NS;
            let is_done = flushed.is_some_and(is_read) || flushed.is_some() && hub.sessions() == 0;
            if is_done || served.is_err() || now.since(begun) >= LAST_WORDS_NS {
                break;
            }
            // Sockets are looked at without sleeping: it is for a moment only.
            std::thread::yield_now();
        }
        let clients = hub.seen().take(MOST_CLIENTS).map(|seen| ClientReport {
            user: seen.user.to_owned(),
            refreshes: seen.counters.refreshes,
            updates: seen.counters.updates,
            conflated: seen.counters.conflated,
            dropped: seen.counters.dropped,
        });
        let clients = clients.collect();
        connections.close_all(&mut hub);
        telling.tell(clock.now(), &hub, &mut connections, true);
        self.authenticator.end(clock.now(), &mut hub, &mut connections);
        let counters = *hub.counters();
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
            never_opened: connections.never_opened(),
        }
    }
}
