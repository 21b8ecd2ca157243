//! The plant's OMM sources, on the plant's own thread: their connections, and the demands on them.

pub(crate) mod far;
mod hosts;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use far::FarDemands;
pub(crate) use far::FarLink;
use hosts::{Hosts, Resolved};
use serde::{Deserialize, Serialize};
use tapeline_client::connection::{JsonSettings, MOST_MALFORMED, RoleConnection, Side};
use tapeline_measure::Nanos;
use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::{Nowhere, Outbox};
use tapeline_plant::demand::{Answer, Demand, DemanderId, FarDemand, SharedLimits};
use tapeline_plant::sources::{LinkId, Outlets, SourceNote, Sources, Wish};
use tapeline_plant::{Publish, Refused, Sequencer, Time};
use tapeline_wire::rssl::{ConnectionId, Delivery, Event, Handler, Reactor, Waker};
use tapeline_wire::tcp::Wakeup;

use crate::Error;
use crate::config::SourcesConfig;
use crate::error::Context;
use crate::events::{Events, Kind, Severity};
use crate::queue::{Bytes, Entry, Exit, bytes, queue};
use crate::readers::counting::SourceFigures;

/// While feeds keep the plant busy, sources are looked at once per this interval: a look costs a system call.
const WHILE_BUSY_NS: i64 = 50_000;
/// Demands taken at a time, before the sources have their turn.
const DEMANDS: usize = 1_024;
/// Maximum number of demands, and of answers, queued between two threads.
pub(crate) const QUEUE: usize = 16_384;
/// Maximum bytes of each queue; what does not fit waits with its sender, within the sender's own limits.
const QUEUE_BYTES: usize = 64 << 20;
/// Maximum bytes of both queues: each may exceed its limit by one message, and has a slot for each entry.
pub(crate) const BETWEEN: usize = 2 * (QUEUE_BYTES + (16 << 20) + QUEUE * 256);

bytes! { Demand Answer FarDemand }

/// Wakes the thread that takes demands, if it sleeps.
#[derive(Clone, Debug)]
pub(crate) enum DemandWaker {
    /// The plant's own thread, which owns the sources.
    Sources(Arc<Waker>),
    /// The thread that passes demands on to the plant above.
    Upstream(Wakeup),
}

impl DemandWaker {
    pub(crate) fn wake(&self) {
        match self {
            // If this fails, the plant looks a few milliseconds later.
            Self::Sources(waker) => _ = waker.wake(),
            Self::Upstream(wakeup) => wakeup.wake(),
        }
    }
}

/// A hub's end of the two queues between it and the plant's sources: demands one way, answers the other.
#[derive(Debug)]
pub struct Demanding {
    /// Demands for the plant's sources.
    pub(crate) demands: Entry<Demand>,
    pub(crate) answers: Exit<Answer>,
    /// Wakes the thread that takes them after a demand, if it is another.
    pub(crate) waker: Option<DemandWaker>,
}

impl Demanding {
    /// Creates both queues, each for at most `most` entries, and returns the hub's end and the plant's ends of them.
    #[must_use]
    pub fn queues(most: usize) -> (Self, Exit<Demand>, Entry<Answer>) {
        let (to_plant, demands) = queue(most, QUEUE_BYTES);
        let (answers, from_plant) = queue(most, QUEUE_BYTES);
        (Self { demands: to_plant, answers: from_plant, waker: None }, demands, answers)
    }
}

/// Totals of the sources.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct SourcesReport {
    /// Images, or parts of them, that became ticks.
    pub refreshes: u64,
    /// Updates that became ticks.
    pub updates: u64,
    /// Statuses of items and services that became ticks.
    pub statuses: u64,
    /// Messages longer than the ring accepts.
    pub too_long: u64,
    /// Messages of items beyond the item limit.
    pub no_place: u64,
    /// Items without a client whose place was given to another item.
    #[serde(default)]
    pub ended: u64,
    /// Messages of services that are not accepted, and of items without an image.
    pub passed_over: u64,
    /// Posts accepted: passed to a source, or published by the plant itself.
    pub posts: u64,
    /// Posts refused, or not answered by the source in time.
    pub posts_refused: u64,
    /// Answers dropped because too many were queued.
    pub answers_dropped: u64,
    /// Times that a service failed over to another source.
    pub taken_over: u64,
}

/// Running providers and publishers: their connections, and the demands on them. It never blocks, and works
/// in turns.
pub struct RunningSources {
    /// The state of the sources and their services.
    pub sources: Sources,
    lines: Lines,
    hosts: Hosts,
    demands: Exit<Demand>,
    /// The hubs of plants below, if there is a bridge.
    far: Option<FarDemands>,
    waker: Arc<Waker>,
    /// A hub serves clients, or may still do so.
    has_clients: bool,
    answers: Entry<Answer>,
    /// An answer for which the queue had no capacity.
    held: Option<Answer>,
    due: Option<Nanos>,
    looked: Nanos,
    /// The address at which non-interactive providers connect.
    pub(crate) address: Option<SocketAddr>,
    events: Events,
}

/// All connections.
struct Lines {
    reactor: Reactor,
    links: HashMap<ConnectionId, LinkId>,
    lines: BTreeMap<LinkId, Line>,
    dictionary: Arc<Dictionary>,
}

/// One connection.
struct Line {
    connection: ConnectionId,
    room: RoleConnection,
    /// The names of services in JSON; `None` for RWF connections.
    services: Option<Directory>,
    is_open: bool,
}

impl Outlets for Lines {
    fn with(&mut self, link: LinkId, send: &mut dyn FnMut(&mut dyn Outbox)) {
        if let Some(line) = self.lines.get_mut(&link).filter(|line| line.is_open)
            && let Some(mut sender) = self.reactor.sender(line.connection)
        {
            return send(&mut line.room.outbox(&mut sender));
        }
        send(&mut Nowhere);
    }
}

impl fmt::Debug for RunningSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunningSources").field("connections", &self.lines.lines.len()).finish_non_exhaustive()
    }
}

impl AsFd for RunningSources {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.lines.reactor.as_fd()
    }
}

impl RunningSources {
    /// Opens the port for publishers.
    pub(crate) fn open(config: SourcesConfig, events: &Events) -> crate::Result<(Self, Demanding)> {
        let limit = config.hosts.len() + config.door.as_ref().map_or(0, |door| door.max_connections);
        Self::on(Reactor::new(limit)?, config, QUEUE, events)
    }

    /// Starts on a reactor; at most `most` demands and `most` answers are queued between the sources and
    /// their hub.
    ///
    /// # Errors
    /// The port for publishers cannot be opened, or a login is too long.
    pub fn on(
        mut reactor: Reactor,
        config: SourcesConfig,
        most: usize,
        events: &Events,
    ) -> crate::Result<(Self, Demanding)> {
        let SourcesConfig { settings, door, hosts, .. } = config;
        let mut address = None;
        if let Some(door) = &door {
            address = Some(reactor.listen(door.address, &door.transport).map_err(|error| {
                let what = format!("providers cannot connect to {}", door.address);
                Error::of_port(what, "[publishers]", error)
            })?);
        }
        let (mut demanding, demands, answers) = Demanding::queues(most);
        let waker = Arc::new(reactor.waker()?);
        let hosts = Hosts::new(hosts, waker.clone());
        let dictionary = settings.dictionary.clone();
        let sources = Sources::new(settings).context("cannot encode a login to a provider")?;
        let lines = Lines { reactor, links: HashMap::new(), lines: BTreeMap::new(), dictionary };
        let (due, looked, held) = (Some(Nanos(0)), Nanos(0), None);
        let (has_clients, events) = (true, events.clone());
        demanding.waker = Some(DemandWaker::Sources(waker.clone()));
        let far = None;
        let running = Self {
            sources,
            lines,
            hosts,
            demands,
            far,
            waker,
            has_clients,
            answers,
            held,
            due,
            looked,
            address,
            events,
        };
        Ok((running, demanding))
    }

    /// Takes demands of plants below too. Returns the bridge's end.
    pub(crate) fn serve_far(&mut self, limits: SharedLimits) -> crate::Result<FarLink> {
        let (far, link) = FarDemands::new(limits, Arc::clone(&self.waker), QUEUE, QUEUE_BYTES)?;
        self.far = Some(far);
        Ok(link)
    }

    /// Returns the connections' reactor, to accept publishers.
    pub const fn reactor(&mut self) -> &mut Reactor {
        &mut self.lines.reactor
    }

    /// Publishes the services.
    ///
    /// # Errors
    /// The ring refuses a tick.
    pub fn begin(&mut self, clock: &impl Time, to: &mut Sequencer<impl Publish>) -> Result<(), Refused> {
        self.sources.begin(to, clock)
    }

    /// Takes input from the sources and demands on them, and does what is due. Returns whether there was any
    /// work. With `is_busy` the thread has other work, and the sources are looked at less often.
    ///
    /// # Errors
    /// The ring refuses a tick.
    pub fn turn(
        &mut self,
        is_busy: bool,
        clock: &impl Time,
        to: &mut Sequencer<impl Publish>,
    ) -> Result<bool, Refused> {
        let now = clock.now();
        if is_busy && now.since(self.looked) < WHILE_BUSY_NS {
            return Ok(false);
        }
        self.looked = now;
        let mut has_come = self.take(now, clock, to)?;
        while let Some(found) = self.hosts.next() {
            has_come = true;
            let (reactor, mut turn) = self.parts(clock, to);
            turn.connect(reactor, found, now)?;
        }
        has_come |= self.take_demands(now, clock, to)?;
        if has_come || self.due.is_some_and(|due| due <= now) {
            self.due = self.sources.turn(now, &mut self.lines, to, clock)?;
            let (reactor, mut turn) = self.parts(clock, to);
            turn.do_wishes(reactor, now)?;
            reactor.flush();
            to.publisher().flush();
        }
        let Self { sources, answers, held, far, .. } = self;
        has_come |= match far {
            Some(far) => far.send_answers(sources, answers),
            None => answers.send_all(held, || sources.next_answer()),
        };
        self.say(now);
        Ok(has_come)
    }

    /// Takes the demands of the hub, and those of plants below. Returns whether there were any.
    fn take_demands(
        &mut self,
        now: Nanos,
        clock: &impl Time,
        to: &mut Sequencer<impl Publish>,
    ) -> Result<bool, Refused> {
        let Self { sources, lines, demands, far, has_clients, .. } = self;
        let Some(far) = far else {
            let (taken, is_over) =
                demands.take(DEMANDS, |demand| sources.demand(now, demand, lines, to, clock))?;
            if *has_clients && is_over {
                // The hub does not come back in this process: providers need not send data without a receiver.
                *has_clients = false;
                sources.nobody_demands(now, to.items());
                return Ok(true);
            }
            return Ok(taken > 0);
        };
        let mut is_busy = far.take(DEMANDS);
        let (taken, is_over) = demands.take(DEMANDS, |demand| {
            far.shared.demand(DemanderId::OWN, demand);
            Ok::<_, Refused>(())
        })?;
        if *has_clients && is_over {
            *has_clients = false;
            far.shared.gone(DemanderId::OWN);
        }
        while let Some(demand) = far.shared.next_demand() {
            is_busy = true;
            sources.demand(now, demand, lines, to, clock)?;
        }
        if is_busy {
            far.count();
        }
        Ok(is_busy || taken > 0)
    }

    /// Time until something is due.
    pub(crate) fn until_due(&self, now: Nanos) -> Duration {
        match self.due {
            Some(due) => Duration::from_nanos(due.0.saturating_sub(now.0)),
            None => Duration::MAX,
        }
    }

    /// Fills in the state of each source, and the services with items that no source serves any more.
    pub(crate) fn put_figures(&self, figures: &mut Vec<SourceFigures>, unserved: &mut Vec<(String, usize)>) {
        unserved.clear();
        unserved.extend(self.sources.unserved().map(|(service, items)| (service.to_owned(), items)));
        figures.clear();
        figures.extend(self.sources.seen().map(|source| SourceFigures {
            name: source.name().to_owned(),
            is_publisher: source.is_publisher(),
            standing: source.standing(),
            items: source.items(),
            serves: source.serves(),
            stands_by: source.stands_by(),
            services: source.services().map(|(name, part)| (name.to_owned(), part)).collect(),
        }));
    }

    pub(crate) fn report(&self) -> SourcesReport {
        let counters = *self.sources.counters();
        SourcesReport {
            refreshes: counters.refreshes,
            updates: counters.updates,
            statuses: counters.statuses,
            too_long: counters.too_long,
            no_place: counters.no_place,
            ended: counters.ended,
            passed_over: counters.passed_over,
            posts: counters.posts,
            posts_refused: counters.posts_refused,
            answers_dropped: counters.answers_dropped,
            taken_over: counters.taken_over,
        }
    }

    fn take(
        &mut self,
        now: Nanos,
        clock: &impl Time,
        to: &mut Sequencer<impl Publish>,
    ) -> Result<bool, Refused> {
        let (reactor, mut turn) = self.parts(clock, to);
        // An error here occurs again at the next look, and the feeds continue.
        if reactor.wait(Duration::ZERO).is_err() {
            return Ok(false);
        }
        let has_come = reactor.handle(&mut turn, now)?;
        if let Some(cause) = reactor.accept_error() {
            let said = format_args!("cannot accept connections of providers: {cause}");
            self.events.peer(now, Kind::Accept, Severity::Warning, said);
        }
        Ok(has_come)
    }

    /// Returns the reactor, and what acts on its events.
    fn parts<'a, T, P>(
        &'a mut self,
        clock: &'a T,
        to: &'a mut Sequencer<P>,
    ) -> (&'a mut Reactor, SourcesTurn<'a, T, P>) {
        let Self { sources, lines: Lines { reactor, links, lines, dictionary }, hosts, events, .. } = self;
        let unreadable = None;
        (reactor, SourcesTurn { sources, links, lines, dictionary, hosts, events, clock, to, unreadable })
    }

    /// Logs out of the providers as the plant ends.
    pub(crate) fn end(mut self) {
        self.sources.end(&mut self.lines);
        let Lines { reactor, lines, .. } = &mut self.lines;
        lines.values().for_each(|line| reactor.close(line.connection));
    }

    fn say(&mut self, now: Nanos) {
        while let Some(note) = self.sources.next_note() {
            let is_good =
                matches!(note, SourceNote::LoggedIn(_) | SourceNote::Serves { source: Some(_), .. });
            let severity = if is_good { Severity::Info } else { Severity::Warning };
            self.events.peer(now, Kind::Source, severity, format_args!("sources: {note}"));
        }
    }
}

/// The sources and their connections, without the reactor, for a part of a turn.
struct SourcesTurn<'a, T, P> {
    sources: &'a mut Sources,
    links: &'a mut HashMap<ConnectionId, LinkId>,
    lines: &'a mut BTreeMap<LinkId, Line>,
    dictionary: &'a Arc<Dictionary>,
    hosts: &'a mut Hosts,
    events: &'a Events,
    clock: &'a T,
    to: &'a mut Sequencer<P>,
    /// The source of the last event, if too many of its messages could not be read.
    unreadable: Option<LinkId>,
}

impl<T: Time, P: Publish> Handler for SourcesTurn<'_, T, P> {
    type Error = Refused;

    fn event(&mut self, Delivery { id, event, sender, now, .. }: Delivery<'_, '_>) -> Result<(), Refused> {
        let Self { sources, links, lines, clock, to, .. } = self;
        match event {
            Event::Connected(agreed) => {
                let known = links.get(&id).copied();
                let side = if known.is_some() { Side::Client } else { Side::Server };
                let link = known.unwrap_or_else(|| sources.open(now));
                let mut room = RoleConnection::new(side, agreed, self.dictionary, JsonSettings::default());
                if known.is_some() {
                    sources.connected(now, link, &mut room.outbox(sender));
                }
                let services = agreed.is_json().then(Directory::new);
                lines.insert(link, Line { connection: id, room, services, is_open: true });
                links.insert(id, link);
            }
            Event::Message(received) => {
                let Some(link) = links.get(&id).copied() else { return Ok(()) };
                let Some(line) = lines.get_mut(&link) else { return Ok(()) };
                line.room.receive(received, sender, |message, out| {
                    sources.message(now, link, message, out, to, *clock)
                })?;
                while let Some(note) = line.room.next_note() {
                    let said = format_args!("sources: {note}");
                    self.events.peer(now, Kind::Source, Severity::Warning, said);
                }
                if let (Some(known), Some(directory)) = (&mut line.services, sources.directory(link))
                    && known != directory
                {
                    known.clone_from(directory);
                    line.room.set_services(directory);
                }
                self.unreadable = (line.room.unreadable() >= MOST_MALFORMED).then_some(link);
            }
            Event::Room => {
                if let Some(link) = links.get(&id) {
                    sources.room(*link);
                }
            }
            Event::Closed(reason) => {
                let Some(link) = links.remove(&id) else { return Ok(()) };
                lines.remove(&link);
                sources.closed(now, link, &reason.to_string(), to, *clock)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn after(&mut self, reactor: &mut Reactor, _: ConnectionId, now: Nanos) -> Result<bool, Refused> {
        if let Some(link) = self.unreadable.take() {
            self.disconnect(reactor, link);
            let why = "too many of its messages could not be read";
            self.sources.closed(now, link, why, self.to, self.clock)?;
        }
        // After an event of an unknown connection there is no wish: all earlier ones are done.
        self.do_wishes(reactor, now)?;
        Ok(true)
    }
}

impl<T: Time, P: Publish> SourcesTurn<'_, T, P> {
    fn do_wishes(&mut self, reactor: &mut Reactor, now: Nanos) -> Result<(), Refused> {
        while let Some(wish) = self.sources.next_wish() {
            match wish {
                Wish::Disconnect(link) => {
                    self.hosts.forget(link);
                    self.disconnect(reactor, link);
                }
                Wish::Connect { link, attempt } => {
                    if let Some(found) = self.hosts.look_up(link, attempt) {
                        self.connect(reactor, found, now)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Starts to connect to a provider, at any of its addresses that can be reached.
    fn connect(
        &mut self,
        reactor: &mut Reactor,
        Resolved { link, host, addresses }: Resolved,
        now: Nanos,
    ) -> Result<(), Refused> {
        let connection = addresses.and_then(|addresses| {
            let connecting = reactor.connect_to_any(&addresses, &host.transport, now);
            connecting.map_err(|cause| format!("{}: {cause}", host.server))
        });
        match connection {
            Ok(connection) => {
                let (room, services) = (RoleConnection::default(), None);
                self.links.insert(connection, link);
                self.lines.insert(link, Line { connection, room, services, is_open: false });
                Ok(())
            }
            Err(why) => self.sources.closed(now, link, &why, self.to, self.clock),
        }
    }

    fn disconnect(&mut self, reactor: &mut Reactor, link: LinkId) {
        if let Some(line) = self.lines.remove(&link) {
            self.links.remove(&line.connection);
            reactor.close(line.connection);
        }
    }
}
