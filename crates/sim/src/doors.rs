//! The hub with its connections: what the hub's loop does in a real plant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tapeline_hub::{
    Access, Connections, End as Ending, Hub, HubEvent, Peer, Service, SessionCounters, SessionId, Settings,
    Unknown,
};
use tapeline_measure::Nanos;
use tapeline_omm::role::{Outbox, provider};
use tapeline_omm::rwf::{Domain, Key, MessageClass, MessageView};
use tapeline_plant::tick::Tick;

use crate::client::MOST_OPEN;
use crate::desk::{DESK, Desk};
use crate::end::{Came, End, NARROW_BUFFERS, WIDE_BUFFERS};
use crate::network::{LinkId, Network, Side};
use crate::plan::{ASKED, PROVIDED, Plan, SERVICE, SERVICE_NAME, called, provided_id};
use crate::record::Record;
use crate::rights::{Rules, access, is_denied};
use crate::tape::Tape;
use crate::trace::{Trace, Who, fnv};
use crate::verdict::{Invariant, Wrong};

/// Ticks taken before the connections are looked at.
const BATCH: usize = 64;

/// Who is at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// One of the clients, by its number; whether anything was done to it that a hub may take amiss.
    Client(usize),
    /// One that says anything.
    Hostile,
}

/// A connection at the hub's end.
#[derive(Debug)]
struct Door {
    end: End,
    guest: Guest,
    /// From its handshake on.
    session: Option<SessionId>,
    sent: Sent,
}

/// What an item's clients were sent on one connection.
#[derive(Debug, Default)]
struct Sent {
    refreshes: u64,
    updates: u64,
    /// Streams that have had an image.
    begun: BTreeSet<i32>,
    /// One that was sent an update before.
    early: Option<i32>,
    /// What each is of.
    names: BTreeMap<i32, String>,
    /// Something of an item that the client may not see.
    leak: Option<String>,
    /// What waits was there before the rules were others: it is not held against them.
    is_behind: bool,
}

/// The services of providers.
fn services(plan: &Plan) -> Vec<Service> {
    let there = (0..PROVIDED.len()).filter(|service| plan.sources[*service] > 0);
    there
        .map(|service| Service {
            on_demand: service == ASKED,
            posts: plan.posts,
            // Who publishes unasked cannot be asked for an image.
            is_cached: plan.is_cached || service != ASKED,
            request_timeout_ms: 1_000,
            ..Service::new(PROVIDED[service], provided_id(service))
        })
        .collect()
}

/// A hub and its doors.
#[derive(Debug)]
pub(crate) struct HubSide {
    hub: Hub,
    doors: Doors,
    /// Before their handshake is done.
    entering: Vec<Door>,
    cache_bytes: usize,
    conflates: bool,
    is_apart: bool,
    rules: Rules,
}

/// By session.
#[derive(Debug, Default)]
struct Doors(Vec<Option<Door>>);

/// A session is over, and why.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) guest: Guest,
    pub(crate) link: LinkId,
    pub(crate) end: Ending,
}

/// The ways out, at a time.
struct Ways<'a> {
    doors: &'a mut Doors,
    network: &'a mut Network,
    now: u64,
    rules: Rules,
}

impl Connections for Ways<'_> {
    fn with<R>(&mut self, session: SessionId, send: impl FnOnce(&mut dyn Outbox) -> R) -> Option<R> {
        let door = self.doors.0.get_mut(session.index())?.as_mut()?;
        let guest = match door.guest {
            Guest::Client(number) => Some(number),
            Guest::Hostile => None,
        };
        let out = door.end.out(self.now, self.network);
        Some(send(&mut Counted { out, sent: &mut door.sent, guest, rules: self.rules }))
    }

    fn is_flushed(&mut self, session: SessionId) -> bool {
        let Some(Some(door)) = self.doors.0.get_mut(session.index()) else { return true };
        door.end.flush(self.now, self.network);
        door.end.is_flushed()
    }
}

/// A way out that counts images and updates.
struct Counted<'a> {
    out: crate::end::Out<'a>,
    sent: &'a mut Sent,
    guest: Option<usize>,
    rules: Rules,
}

impl Counted<'_> {
    /// A message of an item goes out on a stream.
    fn look(&mut self, stream: i32, len: usize) {
        let Some(client) = self.guest.filter(|_| self.rules.is_some()) else { return };
        if let Ok(message) = MessageView::parse(self.out.claimed(len))
            && message.class() == MessageClass::REFRESH
            && let Ok(Some(Key { service_id: Some(service), name: Some(name), .. })) = message.key()
        {
            let name = called(service, message.domain(), &String::from_utf8_lossy(name));
            self.sent.names.insert(stream, name);
        }
        let Some(name) = self.sent.names.get(&stream) else { return };
        if !self.sent.is_behind && is_denied(client, name, self.rules) {
            self.sent.leak = Some(format!("client {client} was sent something of {name}"));
        }
    }
}

impl Outbox for Counted<'_> {
    fn most(&self) -> usize {
        self.out.most()
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.out.claim(len)
    }

    fn commit(&mut self, len: usize) {
        // Class, domain and stream are at the same place in every message.
        if let [_, _, class, domain, a, b, c, d, ..] = *self.out.claimed(len)
            && [Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER].contains(&Domain(domain))
        {
            let stream = i32::from_be_bytes([a, b, c, d]);
            match MessageClass(class & 0x1F) {
                MessageClass::REFRESH => {
                    self.look(stream, len);
                    self.sent.refreshes += 1;
                    self.sent.begun.insert(stream);
                }
                MessageClass::UPDATE => {
                    self.look(stream, len);
                    self.sent.updates += 1;
                    if !self.sent.begun.contains(&stream) {
                        self.sent.early = Some(stream);
                    }
                }
                _ => {}
            }
        }
        self.out.commit(len);
    }
}

/// What a turn of the hub can see of the world.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    pub(crate) now: u64,
    pub(crate) network: &'a mut Network,
    /// What the plant said, as far as the hub has read.
    pub(crate) record: &'a mut Record,
    pub(crate) trace: &'a mut Trace,
}

impl HubSide {
    pub(crate) fn new(plan: &Plan, names: &[String], rules: Rules) -> Self {
        let cache_bytes = 4 << 20;
        let settings = Settings {
            service: SERVICE_NAME.to_owned(),
            service_id: SERVICE,
            services: services(plan),
            access: access(plan.clients.len(), names, rules),
            slow: plan.slow,
            slow_age_ms: plan.slow_age_ms,
            stuck_ms: 1_200,
            unknown: if plan.waits_for_unknown { Unknown::Wait } else { Unknown::Closed },
            max_items: 200,
            cache_bytes,
            max_views: 10,
            max_malformed: 20,
            session: provider::Settings {
                login_timeout_ms: 1_000,
                most_streams: 200,
                owed_bytes: 32 << 10,
                refusal_pause_ms: 50,
                round_trip_interval_ms: 500,
                ..provider::Settings::default()
            },
            ..Settings::default()
        };
        Self {
            hub: Hub::new(settings),
            doors: Doors::default(),
            entering: Vec::new(),
            cache_bytes,
            is_apart: plan.is_apart,
            conflates: plan.slow == tapeline_hub::SlowPolicy::Conflate,
            rules,
        }
    }

    /// From now on other items are kept from other clients.
    pub(crate) fn set_rules(&mut self, all: Arc<Access>, rules: Rules, network: &mut Network, now: u64) {
        self.rules = rules;
        self.hub.set_access(all);
        for seen in self.hub.seen() {
            if let Some(Some(door)) = self.doors.0.get_mut(seen.session.index()) {
                door.sent.is_behind |= seen.queued_messages > 0;
            }
        }
        let ways = &mut Ways { doors: &mut self.doors, network, now, rules };
        self.hub.turn(Nanos(now), ways);
    }

    /// No client was sent what it may not see.
    fn check_rights(&mut self) -> Result<(), Wrong> {
        if self.rules.is_none() {
            return Ok(());
        }
        for seen in self.hub.seen().filter(|seen| seen.queued_messages == 0) {
            if let Some(Some(door)) = self.doors.0.get_mut(seen.session.index()) {
                door.sent.is_behind = false;
            }
        }
        let leak = self.doors.0.iter_mut().flatten().find_map(|door| door.sent.leak.take());
        leak.map_or(Ok(()), |leak| Err((Invariant::Access, leak)))
    }

    /// Somebody connects.
    pub(crate) fn enter(&mut self, link: LinkId, guest: Guest, is_wide: bool, now: u64) {
        let buffers = if is_wide { WIDE_BUFFERS } else { NARROW_BUFFERS };
        self.entering.push(Door {
            end: End::server(link, buffers, now),
            guest,
            session: None,
            sent: Sent::default(),
        });
    }

    /// All links, for whoever breaks them.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.doors.0.iter().flatten().chain(&self.entering).map(|door| door.end.link)
    }

    /// Its turn: ticks, connections, what is due. The sessions that are over.
    pub(crate) fn turn(
        &mut self,
        tape: &mut Tape,
        desk: &mut Desk,
        room: &mut Room<'_>,
    ) -> Result<Vec<Gone>, Wrong> {
        let now = room.now;
        for _ in 0..BATCH {
            let Some((frame, lost)) = tape.next() else { break };
            let tick = Tick::parse(frame).map_err(|fault| (Invariant::OneSequence, fault.to_string()))?;
            room.record.add(&tick, lost).map_err(|what| (Invariant::OneSequence, what))?;
            room.trace.say(now, Who::Hub, "reads", fnv(frame), || {
                format!(
                    "tick {} {:?} {} {:?}",
                    tick.header.seq.0, tick.header.kind, tick.name, tick.header.flags
                )
            });
            let ways = &mut Ways { doors: &mut self.doors, network: room.network, now, rules: self.rules };
            self.hub.tick(Nanos(now), &tick, ways);
        }
        // A few: what is left is folded when something looks at it.
        let ways = &mut Ways { doors: &mut self.doors, network: room.network, now, rules: self.rules };
        self.hub.fold(Nanos(now), ways);
        for answer in desk.answers.drain(..) {
            let ways = &mut Ways { doors: &mut self.doors, network: room.network, now, rules: self.rules };
            self.hub.answer(Nanos(now), answer, ways);
        }
        let mut gone = Vec::new();
        self.let_in(room, &mut gone)?;
        for number in 0..self.doors.0.len() {
            self.serve(number, room, &mut gone)?;
        }
        let ways = &mut Ways { doors: &mut self.doors, network: room.network, now, rules: self.rules };
        self.hub.turn(Nanos(now), ways);
        self.close_those_over(room, &mut gone)?;
        for door in self.doors.0.iter_mut().flatten().chain(&mut self.entering) {
            door.end.flush(now, room.network);
        }
        // A hub in a process of its own has no way to the sources.
        while !self.is_apart
            && desk.demands.len() < DESK
            && let Some(demand) = self.hub.next_demand()
        {
            room.trace.say(now, Who::Hub, "demands", 0, || format!("{demand:?}"));
            desk.demands.push_back(demand);
        }
        self.check_rights()?;
        let over = self.hub.seen().find(|seen| seen.queued_bytes > seen.slow.bytes());
        if let Some(over) = over {
            return Err((Invariant::Limits, format!("more waits than may: {over:?}")));
        }
        let memory = self.hub.memory();
        if memory.bytes > self.cache_bytes {
            return Err((Invariant::Limits, format!("images take {memory:?}")));
        }
        Ok(gone)
    }

    /// Handshakes.
    fn let_in(&mut self, room: &mut Room<'_>, gone: &mut Vec<Gone>) -> Result<(), Wrong> {
        let now = room.now;
        for mut door in std::mem::take(&mut self.entering) {
            let came = door.end.receive(now, room.network, usize::MAX);
            let is_over = |came: &Came| matches!(came, Came::Over(_));
            if came.iter().any(is_over) || door.end.turn(now).is_some() {
                door.end.flush(now, room.network);
                room.network.close(door.end.link, Side::Server);
            } else if door.end.is_open() {
                let peer = Peer { is_json: door.end.is_json(), ..Peer::default() };
                let session = self.hub.open_from(Nanos(now), peer);
                room.trace.say(now, Who::Hub, "opens session", session.index() as u64, || {
                    format!("{:?}", door.guest)
                });
                if self.doors.0.len() <= session.index() {
                    self.doors.0.resize_with(session.index() + 1, || None);
                }
                let place = &mut self.doors.0[session.index()];
                door.session = Some(session);
                *place = Some(door);
                // A client may have said something with the end of its handshake.
                self.take(session, came, room, gone)?;
            } else {
                self.entering.push(door);
            }
        }
        Ok(())
    }

    /// A connection's turn: what came, pings, room.
    fn serve(&mut self, number: usize, room: &mut Room<'_>, gone: &mut Vec<Gone>) -> Result<(), Wrong> {
        let now = room.now;
        let Some(door) = &mut self.doors.0[number] else { return Ok(()) };
        let Some(session) = door.session else { return Ok(()) };
        let mut came = door.end.receive(now, room.network, usize::MAX);
        came.extend(door.end.turn(now));
        door.end.flush(now, room.network);
        let has_room = door.end.has_room_again();
        self.take(session, came, room, gone)?;
        if has_room {
            let Self { hub, doors, rules, .. } = self;
            let ways = &mut Ways { doors, network: room.network, now, rules: *rules };
            ways.with(session, |out| hub.room(Nanos(now), session, out));
        }
        Ok(())
    }

    /// Messages of a session.
    fn take(
        &mut self,
        session: SessionId,
        came: Vec<Came>,
        room: &mut Room<'_>,
        gone: &mut Vec<Gone>,
    ) -> Result<(), Wrong> {
        let now = room.now;
        for came in came {
            let Some(door) = &self.doors.0[session.index()] else { return Ok(()) };
            match came {
                Came::Connected => {}
                Came::Over(why) => {
                    self.hub.close(session, Ending::Connection(why));
                    self.depart(session, room, gone)?;
                }
                // A hostile client may say what cannot be read: the loop answers it, and the hub never hears of it.
                Came::Garbled(_) if door.guest == Guest::Hostile => {}
                Came::Garbled(why) => return Err((Invariant::Text, format!("the hub: {why}"))),
                Came::Message(message, print) => {
                    let number = session.index();
                    room.trace.say(now, Who::Hub, "takes", fnv(&message), || format!("of session {number}"));
                    let link = door.end.link;
                    let is_next = |print| room.network.note_received(link, Side::Server, print);
                    if door.guest != Guest::Hostile && !print.is_none_or(is_next) {
                        let what = format!("session {number} said what its client did not");
                        return Err((Invariant::Transport, what));
                    }
                    let Self { hub, doors, rules, .. } = self;
                    let ways = &mut Ways { doors, network: room.network, now, rules: *rules };
                    ways.with(session, |out| hub.message(Nanos(now), session, &message, out));
                    self.close_those_over(room, gone)?;
                }
            }
        }
        Ok(())
    }

    /// Closes the connections of the sessions that the hub has ended.
    fn close_those_over(&mut self, room: &mut Room<'_>, gone: &mut Vec<Gone>) -> Result<(), Wrong> {
        while let Some(session) = self.hub.next_over() {
            self.depart(session, room, gone)?;
        }
        Ok(())
    }

    /// A session is over: the hub has said why, and what it was sent.
    fn depart(&mut self, session: SessionId, room: &mut Room<'_>, gone: &mut Vec<Gone>) -> Result<(), Wrong> {
        let number = session.index();
        let Some(mut door) = self.doors.0[number].take() else {
            return Err((Invariant::Ends, format!("session {number} ends, which there is not")));
        };
        door.end.flush(room.now, room.network);
        room.network.close(door.end.link, Side::Server);
        let mut reason = None;
        while let Some(note) = self.hub.next_event() {
            if let HubEvent::Gone { session: over, end, counters, .. } = note
                && over == session
            {
                room.trace.say(room.now, Who::Hub, "ends session", number as u64, || {
                    format!("{:?}: {end}", door.guest)
                });
                self.check_counters(&door, &counters)?;
                reason = Some(end);
            }
        }
        let Some(end) = reason else {
            return Err((Invariant::Ends, format!("session {number} ends without a reason")));
        };
        gone.push(Gone { guest: door.guest, link: door.end.link, end });
        Ok(())
    }

    /// What the hub counts is what it sent. Where it queues, some of that may still be there.
    fn check_counters(&self, door: &Door, counted: &SessionCounters) -> Result<(), Wrong> {
        let Sent { refreshes, updates, .. } = door.sent;
        check_begun(door)?;
        // What a source says on a private stream, which hostile clients may ask for, is counted as an answer too: it may be of another
        // domain, or wait for room whatever the policy is.
        let missing = refreshes.saturating_sub(counted.refreshes) + updates.saturating_sub(counted.updates);
        let more = counted.refreshes.saturating_sub(refreshes) + counted.updates.saturating_sub(updates);
        let is_more = more > counted.answers;
        if missing <= counted.answers && !(self.conflates && is_more) {
            return Ok(());
        }
        let what = format!("{refreshes} images and {updates} updates were sent, and counted: {counted:?}");
        Err((Invariant::Counters, what))
    }

    /// At the end, when everything is quiet.
    ///
    /// # Errors
    /// What does not add up.
    pub(crate) fn check_quiet(&self, tape: &Tape, network: &Network) -> Result<(), Wrong> {
        let counters = self.hub.counters();
        let wrong = |what: String| Err((Invariant::Counters, what));
        let (read, lost) = ((tape.read() - tape.lost()) as u64, tape.lost() as u64);
        if (counters.ticks, counters.missing, counters.unusable) != (read, lost, 0) {
            return wrong(format!("{read} ticks were read and {lost} lost: {counters:?}"));
        }
        if tape.read() != tape.published() {
            let what = format!("the hub has read {} of {} ticks", tape.read(), tape.published());
            return Err((Invariant::Liveness, what));
        }
        let doors = || self.doors.0.iter().flatten();
        if self.hub.sessions() != doors().count() {
            return wrong(format!("{} sessions on {} connections", self.hub.sessions(), doors().count()));
        }
        for door in doors() {
            check_begun(door)?;
            if let Guest::Client(number) = door.guest {
                let waiting = network.in_flight(door.end.link, Side::Client);
                // Who is kept from items asks for them again, each once in a while.
                let most = if self.rules.is_some() { 3 + MOST_OPEN } else { 3 };
                if waiting > most {
                    let what = format!("client {number} still has {waiting} messages to read");
                    return Err((Invariant::Liveness, what));
                }
            }
        }
        Ok(())
    }
}

/// Each stream begins with an image.
fn check_begun(door: &Door) -> Result<(), Wrong> {
    door.sent.early.map_or(Ok(()), |stream| {
        Err((Invariant::Image, format!("stream {stream} was sent an update before its image")))
    })
}
