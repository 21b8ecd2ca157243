//! The production hub, and the network's ends of its connections.

use std::sync::Arc;

use tapeline_hub::{Access, End as Ending, HubEvent, Service, SessionId, Settings, SlowPolicy, Unknown};
use tapeline_measure::Nanos;
use tapeline_node::Events;
use tapeline_node::hub::HubTurns;
use tapeline_node::journal::Gate;
use tapeline_node::sources::Demanding;
use tapeline_omm::role::provider;
use tapeline_plant::Seq;
use tapeline_plant::tick::Tick;
use tapeline_wire::rssl::Reactor;

use crate::client::Client;
use crate::end::{NARROW_BUFFERS, WIDE_BUFFERS, server_settings};
use crate::invariants::{Invariant, Wrong, broken};
use crate::network::{LinkId, Network, Port, Side};
use crate::plan::{ASKED, PROVIDED, Plan, SERVICE, SERVICE_NAME, provided_id};
use crate::record::Record;
use crate::rights::{Rules, access, user};
use crate::tape::{Clock, Reader, Tape};
use crate::trace::{Trace, Who, fnv};

/// Limit of connections.
const MOST: usize = 1_000;

/// The peer at the other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guest {
    /// One of the clients, by number.
    Client(usize),
    Hostile,
}

/// A connection at the hub's end.
#[derive(Debug)]
struct Door {
    port: Port,
    guest: Guest,
    /// The sent byte from which on nothing is from the previous rules; `None` while such data may be queued.
    clean_from: Option<u64>,
    goes_on: bool,
}

fn services(plan: &Plan) -> Vec<Service> {
    let there = (0..PROVIDED.len()).filter(|service| plan.sources[*service] > 0);
    there
        .map(|service| Service {
            on_demand: service == ASKED,
            posts: plan.posts,
            // A source that publishes unasked cannot be asked for an image.
            is_cached: plan.is_cached || service != ASKED,
            request_timeout_ms: 1_000,
            ..Service::new(PROVIDED[service], provided_id(service))
        })
        .collect()
}

#[derive(Debug)]
pub(crate) struct HubSide {
    turns: HubTurns<Reader, Clock>,
    doors: Vec<Door>,
    cache_bytes: usize,
    conflates: bool,
    has_images: bool,
    /// It joined after the plant's first tick.
    is_late: bool,
}

/// An ended session, with the reason.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) guest: Guest,
    pub(crate) link: LinkId,
    pub(crate) end: Ending,
}

/// The parts of the world that a turn of the hub can access.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    pub(crate) now: u64,
    pub(crate) network: &'a mut Network,
    /// The published ticks, up to the hub's read position.
    pub(crate) record: &'a mut Record,
    pub(crate) trace: &'a mut Trace,
}

impl Room<'_> {
    /// Records a tick that the hub has taken.
    fn record(&mut self, tape: &Tape, place: usize, lost: usize) -> Result<(), Wrong> {
        let frame = tape.frame(place);
        let tick = Tick::parse(&frame).map_err(|fault| (Invariant::OneSequence, fault.to_string()))?;
        self.record.add(&tick, lost).map_err(|what| (Invariant::OneSequence, what))?;
        self.record.count = place + 1;
        self.trace.say(self.now, Who::Hub, "reads", fnv(&frame), || {
            let header = &tick.header;
            format!("tick {} {:?} {} {:?}", header.seq.0, header.kind, tick.name, header.flags)
        });
        Ok(())
    }
}

impl HubSide {
    pub(crate) fn new(
        plan: &Plan,
        names: &[String],
        rules: Rules,
        (ticks, gate): (Reader, Option<Gate>),
        clock: &Clock,
        demanding: Option<Demanding>,
    ) -> Self {
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
            session: provider::ProviderSettings {
                login_timeout_ms: 1_000,
                most_streams: 200,
                owed_bytes: 32 << 10,
                refusal_pause_ms: 50,
                round_trip_interval_ms: 500,
                ..provider::ProviderSettings::default()
            },
            ..Settings::default()
        };
        let reactor = Reactor::new(MOST).expect("the machine has descriptors");
        let turns =
            HubTurns::new(settings, reactor, (ticks, gate), clock.clone(), demanding, &Events::default());
        let (conflates, has_images) = (plan.slow == SlowPolicy::Conflate, plan.keeps_images);
        Self { turns, doors: Vec::new(), cache_bytes, conflates, has_images, is_late: false }
    }

    pub(crate) fn enter_late(&mut self) -> Result<(), Wrong> {
        self.is_late = true;
        self.turns.enter_late().map_err(|error| (Invariant::OneSequence, format!("the late hub: {error:#}")))
    }

    pub(crate) fn set_rules(&mut self, all: Arc<Access>) {
        self.turns.hub.set_access(all);
        self.doors.iter_mut().for_each(|door| door.clean_from = None);
    }

    pub(crate) fn enter(&mut self, link: LinkId, guest: Guest, is_wide: bool, now: u64) {
        let settings = server_settings(if is_wide { WIDE_BUFFERS } else { NARROW_BUFFERS });
        let far = self.turns.reactor().accept_in_memory(link.address(), &settings, Nanos(now));
        let port = Port::new(link, Side::Server, far);
        self.doors.push(Door { port, guest, clean_from: Some(0), goes_on: true });
    }

    /// All links, so that a fault can break them.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> + '_ {
        self.doors.iter().map(|door| door.port.link)
    }

    /// The byte of a connection from which on nothing was sent under the previous rules.
    pub(crate) fn clean_from(&self, link: LinkId) -> Option<u64> {
        self.doors.iter().find(|door| door.port.link == link)?.clean_from
    }

    /// Takes a turn. Returns the ended sessions, or `None` if a late hub has to start again.
    pub(crate) fn turn(&mut self, tape: &Tape, room: &mut Room<'_>) -> Result<Option<Vec<Gone>>, Wrong> {
        let now = room.now;
        for door in &self.doors {
            door.port.hear(now, room.network);
        }
        match self.turns.turn() {
            Ok(_) => {}
            Err(_) if self.turns.is_entering() => return Ok(None),
            Err(error) => broken!(OneSequence, "the hub: {error:#}"),
        }
        for (place, lost) in tape.take_log() {
            if !self.has_images {
                room.record(tape, place, lost)?;
                continue;
            }
            // The lost ticks are contained in the images that the hub receives.
            let known = room.record.count;
            if place > known {
                room.record.begin_doubt();
            }
            (known..=place).try_for_each(|place| room.record(tape, place, 0))?;
        }
        if !self.turns.hub.awaits_images() && !self.turns.is_entering() {
            room.record.end_doubt();
        }
        let gone = self.gone(room);
        let clean: Vec<usize> = (0..self.doors.len()).filter(|door| self.becomes_clean(*door)).collect();
        for (number, door) in self.doors.iter_mut().enumerate() {
            door.goes_on = door.port.speak(now, room.network);
            if clean.contains(&number) {
                door.clean_from = Some(door.port.sent);
            }
        }
        self.doors.retain(|door| door.goes_on);
        self.check_limits()?;
        Ok(Some(gone))
    }

    /// The sessions that the hub reports as ended.
    fn gone(&mut self, room: &mut Room<'_>) -> Vec<Gone> {
        let mut gone = Vec::new();
        while let Some(event) = self.turns.hub.next_event() {
            let HubEvent::Gone { session, peer, end, .. } = event else { continue };
            let is_its = |door: &&Door| Some(door.port.link.address()) == peer.address;
            let Some(door) = self.doors.iter().find(is_its) else { continue };
            room.trace.say(room.now, Who::Hub, "ends session", session.index() as u64, || {
                format!("{:?}: {end}", door.guest)
            });
            gone.push(Gone { guest: door.guest, link: door.port.link, end });
        }
        gone
    }

    /// Whether a connection that may have had queued output from the previous rules has none now.
    fn becomes_clean(&mut self, door: usize) -> bool {
        let Door { guest: Guest::Client(number), clean_from: None, .. } = self.doors[door] else {
            return false;
        };
        let name = user(number);
        let its: Vec<_> = self.turns.hub.seen().filter(|seen| seen.user == name).collect();
        let is_queued = its.iter().any(|seen| seen.queued_messages > 0);
        let sessions: Vec<SessionId> = its.iter().map(|seen| seen.session).collect();
        !is_queued && sessions.into_iter().all(|session| self.turns.is_flushed(session))
    }

    fn check_limits(&self) -> Result<(), Wrong> {
        let hub = &self.turns.hub;
        if let Some(over) = hub.seen().find(|seen| seen.queued_bytes > seen.slow.bytes()) {
            broken!(Limits, "more waits than may: {over:?}");
        }
        let memory = hub.memory();
        if memory.bytes > self.cache_bytes {
            broken!(Limits, "images take {memory:?}");
        }
        Ok(())
    }

    /// Checks that the hub's counters match a client's messages, when everything is quiet.
    ///
    /// # Errors
    /// A count does not match.
    pub(crate) fn check_counters(&self, client: &Client) -> Result<(), Wrong> {
        let name = user(client.number);
        // The same user may have another session, which the client has given up.
        let mut its = self.turns.hub.seen().filter(|seen| seen.user == name);
        let (Some(seen), None) = (its.next(), its.next()) else { return Ok(()) };
        let counted = seen.counters;
        let (images, updates) = client.got;
        // A source's messages on a private stream also count as answers, and an answer may wait for capacity
        // under any policy.
        let missing = images.saturating_sub(counted.refreshes) + updates.saturating_sub(counted.updates);
        let more = counted.refreshes.saturating_sub(images) + counted.updates.saturating_sub(updates);
        // If the hub drops or queues, not every counted message was sent.
        let is_more = self.conflates && more > counted.answers;
        if missing > counted.answers || is_more || counted.malformed > 0 {
            broken!(Counters, "{name} got {images} images and {updates} updates: {counted:?}");
        }
        Ok(())
    }

    /// The first tick of the ring follows this one, as for the hub in a plant's process.
    pub(crate) fn follow(&mut self, after: u64) {
        self.turns.hub.pass(Seq(after));
    }

    /// Checks at the end, when everything is quiet.
    ///
    /// # Errors
    /// A count does not match.
    pub(crate) fn check_quiet(&self, tape: &Tape) -> Result<(), Wrong> {
        let hub = &self.turns.hub;
        let counters = *hub.counters();
        let (read, lost) = ((tape.read() - tape.lost()) as u64, tape.lost() as u64);
        // Images count as ticks, and the ticks that they contain are skipped.
        let is_exact = lost == 0 && !self.is_late || !self.has_images;
        let is_so = (counters.ticks, counters.missing) == (read, lost) || !is_exact;
        if !is_so || counters.unusable != 0 {
            broken!(Counters, "{read} ticks were read and {lost} lost: {counters:?}");
        }
        if tape.read() != tape.published() {
            broken!(Liveness, "the hub has read {} of {} ticks", tape.read(), tape.published());
        }
        if let Some(queued) = hub.seen().find(|seen| seen.queued_messages > 0) {
            broken!(Liveness, "something still waits: {queued:?}");
        }
        Ok(())
    }
}
