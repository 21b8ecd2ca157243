//! The plant's hub: one more reader of its ring, on its own thread, and the connections of its clients.

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
use tapeline_plant::{Note, Seq};
use tapeline_ring::{Name, Start, Subscriber, SubscriberId, Wait};
use tapeline_wire::rssl::Reactor;

use crate::error::Context;
use crate::{Error, Stop};

use self::authenticator::Authenticator;
use self::catching_up::CatchingUp;
pub use self::config::HubConfig;
use self::connections::PARTING_NS;
use self::counting::HubFigures;
use self::turns::LARGE_BATCH;
pub use self::turns::{HubTurn, HubTurns};

use crate::certificates::CertificateWatch;
use crate::cursor::{self, RingCursor};
use crate::events::{Events, Kind, Severity};
use crate::journal::{Gate, WHILE_HELD};
use crate::readers::counting::{SnapshotReader, SnapshotWriter, snapshots_between};
use crate::socket_waker::SocketWaker;
use crate::sources::Demanding;
use crate::ticks::OnRing;

/// The longest sleep while neither the ring nor a socket has input; this is the resolution of time-outs.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);
/// The same while answers of sources, images, or a password check are pending: none of them wakes the thread,
/// so the result may wait this long.
const SHORT_SLEEP: Duration = Duration::from_micros(500);
/// How long a hub that ends still sends its clients' queued output.
const LAST_WORDS_NS: i64 = 2_000_000_000;
/// How often the clock is compared with the kernel's.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

/// A hub on its own thread: a plant's, or one without a plant around it, on the ring of another process or on a ring
/// that this process fills.
#[derive(Debug)]
pub struct RunningHub {
    /// The address at which clients connect.
    pub address: SocketAddr,
    /// The hub's memory bound by its settings, in bytes.
    pub memory_bytes: usize,
    /// The hub's figures, unless the plant's counters take them.
    figures: Option<SnapshotReader<HubFigures>>,
    /// Sends the ring's name to the thread; if dropped without a message, the thread ends.
    ring: SyncSender<(Name, Joining)>,
    joined: Receiver<SubscriberId>,
    thread: JoinHandle<crate::Result<HubReport>>,
}

/// What a hub sent to a client that was still connected at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientReport {
    /// User name of the login; empty if the client has not logged in.
    pub user: String,
    /// Images sent; each part of an image counts.
    pub refreshes: u64,
    /// Updates sent or queued.
    pub updates: u64,
    /// Updates that were conflated into a later image.
    pub conflated: u64,
    /// Updates dropped because the connection had no capacity; the client was notified.
    pub dropped: u64,
}

/// Maximum number of clients in a hub's report.
const MOST_CLIENTS: usize = 100;

/// Where a hub starts on its ring, and what ends it.
#[derive(Debug)]
pub enum Joining {
    /// In the plant's process, before the first tick, which follows this one: the hub starts with the next
    /// tick and ends with the ring.
    First(Seq),
    /// Outside the plant's process: the hub starts with the oldest tick on the ring, and also ends when it is
    /// asked to stop.
    Later(Stop),
    /// As [`First`](Self::First), but the hub admits no client until this channel is closed and the ticks
    /// published by then are taken.
    Past(Receiver<()>),
}

/// Totals of a hub.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HubReport {
    /// The address at which clients connected.
    pub address: String,
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Clients that connected.
    pub sessions: u64,
    /// Clients disconnected for being slow.
    pub cut: u64,
    /// Items requested.
    pub requests: u64,
    /// Item requests that were refused.
    pub refused: u64,
    /// Images sent.
    pub refreshes: u64,
    /// Updates sent or queued.
    pub updates: u64,
    /// Updates that were conflated into a later image, because the client had no capacity.
    pub conflated: u64,
    /// Updates that were dropped, with a notification to the client.
    #[serde(default)]
    pub dropped: u64,
    /// Times that the hub lost its position on the ring of a plant in another process and resynchronised.
    #[serde(default)]
    pub rejoined: u64,
    /// Ticks that the hub missed by that.
    #[serde(default)]
    pub missing: u64,
    /// Clients disconnected for being slow that had taken nothing at all.
    #[serde(default)]
    pub stuck: u64,
    /// Connections that never became sessions: refused, broken, or silent for too long in the handshake.
    #[serde(default)]
    pub never_opened: u64,
    /// What each client that was connected at the end was sent.
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
    /// Starts a hub without a plant: opens the port and starts the thread, which waits for the ring.
    ///
    /// # Errors
    /// The port, or a file of the configuration, cannot be used.
    pub fn alone(config: HubConfig, events: &Events) -> crate::Result<Self> {
        let (snapshots, figures) = snapshots_between(HubFigures::default);
        Ok(Self { figures: Some(figures), ..Self::start(config, None, snapshots, None, events)? })
    }

    /// Opens the port and starts the thread, which waits for the ring. Call before this thread is pinned.
    /// `sources` leads to the plant's sources, if it has any; `gate` holds ticks back until they are durable.
    pub(crate) fn start(
        config: HubConfig,
        sources: Option<Demanding>,
        snapshots: SnapshotWriter<HubFigures>,
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
        let certificate = CertificateWatch::of_hub(&config);
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
                let subscriber = Subscriber::join_as(&ring, start, "hub")
                    .map_err(|error| Error::of_ring("the hub cannot join the plant's ring", error))?;
                let _ = tell.send(subscriber.seat());
                let mut place = RingCursor::new("hub", OnRing { ring, subscriber }, gate, &events);
                let late = stop.as_ref().map(|_| CatchingUp::begin(&mut place)).transpose()?;
                let mut config = config;
                if late.as_ref().is_some_and(CatchingUp::lacks_images) {
                    // An item unknown here may exist at the plant.
                    config.settings.unknown = Unknown::Wait;
                }
                let socket_waker = SocketWaker::begin("hub waker", reactor.lookout()?)?;
                let clock = Clock::calibrate();
                // The first turn keeps house: it reads the note of the ring before the first tick.
                let housekept = Nanos(0);
                let turns = HubTurns::at(config.settings, reactor, place, clock, sources, snapshots);
                let spin = config.spin;
                let mut program =
                    Program { turns, authenticator, socket_waker, stop, spin, certificate, housekept };
                if let Some(after) = after {
                    // Ticks between the last plant's and the first on the ring count as missing.
                    program.turns.hub.pass(after);
                }
                let ended = program.catch_up(late).and_then(|()| program.take_past(past.as_ref()));
                let ended = ended.and_then(|()| program.run());
                if let Err(error) = &ended {
                    // The plant continues without its hub; a report at the plant's end would be too late.
                    let hint = error.hint().map(str::to_owned);
                    events.error(format_args!("the hub has ended early: {error:#}"), hint);
                }
                let report = program.end(address);
                ended.map(|()| report)
            })
            .context("cannot start the hub's thread")?;
        Ok(Self { address, memory_bytes, figures: None, ring, joined, thread })
    }

    /// The ring exists: returns when the hub reads it, with the hub's place on the ring.
    ///
    /// # Errors
    /// The hub cannot join the ring.
    pub fn join(self, ring: &Name, from: Joining) -> crate::Result<(Self, SubscriberId)> {
        if self.ring.send((ring.clone(), from)).is_ok()
            && let Ok(seat) = self.joined.recv()
        {
            return Ok((self, seat));
        }
        self.end()?;
        crate::error::bail!("the hub has ended before it began")
    }

    /// Returns the number of items requested by the connected clients of a hub without a plant, at most one second
    /// old.
    pub fn requests(&mut self) -> u64 {
        self.figures.as_mut().map_or(0, |figures| {
            figures.refresh();
            figures.figures.requests()
        })
    }

    /// Returns `true` if the hub's thread has ended, whatever the state of the ring.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// The ring has ended: waits until the clients have received their queued output, or the time limit has
    /// passed.
    ///
    /// # Errors
    /// The hub ended early, with the reason.
    pub fn end(self) -> crate::Result<HubReport> {
        drop(self.ring);
        match self.thread.join() {
            Ok(report) => report.context("the hub has ended early"),
            Err(_) => crate::error::bail!("the hub's thread has panicked"),
        }
    }
}

struct Program {
    turns: HubTurns<OnRing, Clock>,
    authenticator: Authenticator,
    socket_waker: SocketWaker,
    stop: Option<Stop>,
    spin: bool,
    certificate: Option<CertificateWatch>,
    housekept: Nanos,
}

impl Program {
    /// Takes over the earlier state if this hub starts late.
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

    /// Takes ticks that clients must not receive, before the hub serves any client.
    fn take_past(&mut self, past: Option<&Receiver<()>>) -> crate::Result<()> {
        let Some(past) = past else { return Ok(()) };
        let turns = &mut self.turns;
        loop {
            // Checked before the ring: everything published until then is on the ring.
            let is_over = past.try_recv() == Err(TryRecvError::Disconnected);
            let (taken, has_ended) = turns.take_ticks(turns.clock.now(), LARGE_BATCH)?;
            if has_ended || is_over && taken == 0 {
                // The feeds' items are known to follow: without this, a source that waits for requests would
                // wait for ever.
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
            // A publisher releases the ring when it ends it: the remaining ticks, which may wait for the
            // disk, are read first, then the end.
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

    /// The work done once a second. Returns whether the plant is alive.
    fn keep_house(&mut self, now: Nanos) -> crate::Result<bool> {
        let HubTurns { place, connections, clock, figure_writer, .. } = &mut self.turns;
        clock.recalibrate();
        if let Some(cause) = connections.reactor().accept_error() {
            let said = format_args!("the hub cannot accept connections: {cause}");
            place.events.peer(now, Kind::Accept, Severity::Warning, said);
        }
        place.events.left_out(now);
        if let Some(certificate) = &mut self.certificate {
            certificate.look(now, &place.events);
        }
        if let Some(note) = place.ticks.subscriber.note().and_then(Note::from_words) {
            figure_writer.stamped_by(note.stamped_by);
        }
        Ok(place.ticks.subscriber.publisher_alive()?)
    }

    /// Sleeps until the ring or a socket has input, or a time-out may be due.
    fn sleep(&mut self) {
        // Output that the turn produced after it handled the sockets.
        self.turns.reactor().flush();
        let HubTurns { place, sources, late, .. } = &mut self.turns;
        let is_answered = sources.is_some() || self.authenticator.is_busy() || late.is_some();
        let sleep = if is_answered { SHORT_SLEEP } else { LONGEST_SLEEP };
        if place.is_held {
            // The ring has ticks, so waiting on it would return at once.
            std::thread::sleep(WHILE_HELD);
        } else {
            place.ticks.subscriber.wait_or(&self.socket_waker.bell, sleep);
        }
        self.socket_waker.answer();
    }

    /// Tells the clients that the service has ended, and gives them time to take their queued output.
    fn end(self, address: SocketAddr) -> HubReport {
        let HubTurns { mut hub, mut connections, place, clock, mut figure_writer, .. } = self.turns;
        let begun = clock.now();
        // This reader no longer blocks the ring.
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
            // Clients notified of the end read that notice before the end of the connection.
            let is_read = |flushed: Nanos| now.0.saturating_sub(flushed.0) >= PARTING_NS;
            let is_done = flushed.is_some_and(is_read) || flushed.is_some() && hub.sessions() == 0;
            if is_done || served.is_err() || now.since(begun) >= LAST_WORDS_NS {
                break;
            }
            // Sockets are polled without sleeping, for a short time only.
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
        figure_writer.publish(clock.now(), &hub, &mut connections, true);
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
