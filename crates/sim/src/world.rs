//! A world: its parts and its events.

use std::cell::RefCell;
use std::rc::Rc;

use tapeline_feed::line;
use tapeline_hub::{End as Ending, Settings, SlowPolicy};
use tapeline_measure::Nanos;
use tapeline_node::image_server::{ImageServer, ImageServerConfig};
use tapeline_omm::role::Over;
use tapeline_plant::State;

use crate::agenda::Agenda;
use crate::chance::Chance;
use crate::client::{Client, Sight};
use crate::doors::{Gone, Guest, HubSide, Room};
use crate::end::{End, WIDE_BUFFERS};
use crate::hostile::Hostile;
use crate::image::Fields;
use crate::invariants::{Broken, Invariant, Wrong, broken};
use crate::journal::{Death, Keeper, Shelf};
use crate::network::{LinkId, Network, Path, Side};
use crate::plan::{
    ASKED, BEGIN, Fault, ITEMS, MS, Manner, PROVIDED, Plan, SERVICE, UNASKED, label, of_label, orders,
    provided_id,
};
use crate::plant::{Plant, Wanted};
use crate::record::Record;
use crate::rights::{Rules, access, is_denied};
use crate::source::{Source, fields_of, place};
use crate::tape::{Clock, Pictures, Reader};
use crate::trace::{Trace, Who, mix};
use crate::venue::Venue;

#[derive(Debug)]
enum Event {
    Feed(usize),
    Datagram {
        feed: usize,
        line: line::Line,
        bytes: Rc<[u8]>,
        life: usize,
    },
    Asked {
        feed: usize,
        request: Vec<u8>,
        life: usize,
    },
    Plant,
    Journal,
    Hub,
    Images,
    /// A hub in its own process joins the plant of this life.
    HubComes(usize),
    Client(usize),
    Hostile(usize),
    Source(usize),
    /// An item of a provider service changes.
    Market,
    Fault(usize),
    Rules,
    Restart,
    /// The journal's disk becomes healthy again, unless another fault has hit it since.
    DiskHeals(usize),
    Calm,
    Close,
    End,
}

/// Plant and hub: one process, from its start to its crash.
#[derive(Debug)]
struct Process {
    plant: Plant,
    keeper: Option<Keeper>,
    /// The image store, if there is one.
    images: Option<Pictures>,
    /// `None` while the hub's own process does not run.
    hub: Option<HubSide>,
}

impl Process {
    fn new(
        plan: &Plan,
        names: &[String],
        rules: Rules,
        clock: &Clock,
        keeper: Option<Keeper>,
    ) -> Result<Self, Wrong> {
        let plant = Plant::new(plan, clock.clone(), keeper.as_ref());
        let (mut plant, demanding) = plant.map_err(|refused| (Invariant::Plant, refused.to_string()))?;
        let images = plan.keeps_images.then(|| {
            let services = (0..PROVIDED.len()).map(provided_id).chain([SERVICE]).collect();
            let (bytes, max_items, dictionary) = (16 << 20, 10_000, Settings::default().dictionary);
            let config = ImageServerConfig { bytes, max_items, services, dictionary };
            Rc::new(RefCell::new(ImageServer::new(&config, plant.tape().imager())))
        });
        let gate = keeper.as_ref().and_then(Keeper::gate);
        let reader = Reader::of(plant.tape().clone(), images.clone());
        // A hub in its own process has no connection to the sources.
        let demanding = (!plan.is_apart).then_some(demanding);
        let mut hub = HubSide::new(plan, names, rules, (reader, gate), clock, demanding);
        hub.follow(keeper.as_ref().map_or(0, |keeper| keeper.after));
        Ok(Self { plant, keeper, images, hub: Some(hub) })
    }
}

/// Delay from the end of a plant to its restart.
const AGAIN_NS: u64 = 100 * MS;

/// The network between plant and sources.
const SOURCE_PATH: Path = Path { delay: (20_000, MS), room: 64 << 10 };

/// The outcome of a world.
#[derive(Debug)]
pub struct Outcome {
    /// A hash of everything that happened, in order.
    pub hash: u64,
    /// The trace lines, if requested.
    pub lines: Vec<String>,
    /// The violated invariant, if any.
    pub broken: Option<Broken>,
    /// The totals of the world.
    pub totals: Totals,
}

/// Totals of a world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of events.
    pub events: u64,
    /// Number of messages in the feeds' last sessions.
    pub messages: u64,
    /// Number of ticks of the plant in all its lives.
    pub ticks: u64,
    /// Number of messages of items that clients received, each checked against the record.
    pub checked: u64,
    /// Number of sessions that ended, for any reason.
    pub ended: u64,
    /// Number of items that ended, whose numbers can be reused.
    pub numbers_again: u64,
    /// Number of receipts of posts.
    pub receipts: u64,
    /// Number of messages on private streams.
    pub own: u64,
    /// Number of checked messages in JSON.
    pub texts: u64,
    /// Number of checked messages about orders.
    pub orders: u64,
    /// Number of ticks that hubs have lost.
    pub lost: u64,
    /// Number of ticks in the journal at the end.
    pub kept: u64,
}

impl Totals {
    /// Adds the totals of another world.
    pub const fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.messages += other.messages;
        self.ticks += other.ticks;
        self.checked += other.checked;
        self.ended += other.ended;
        self.numbers_again += other.numbers_again;
        self.receipts += other.receipts;
        self.own += other.own;
        self.texts += other.texts;
        self.orders += other.orders;
        self.lost += other.lost;
        self.kept += other.kept;
    }
}

struct World {
    plan: Plan,
    agenda: Agenda<Event>,
    clock: Clock,
    now: u64,
    trace: Trace,
    network: Network,
    chance: Chance,
    chance_of_disk: Chance,
    venues: Vec<Venue>,
    names: Vec<String>,
    process: Option<Process>,
    /// The journal of the plants, if they have one.
    shelf: Option<Shelf>,
    /// Number of faults of its disk.
    illnesses: usize,
    rules: Rules,
    /// The current life of the plant, counted from 0.
    life: usize,
    clients: Vec<Client>,
    hostile: Vec<Hostile>,
    sources: Vec<Source>,
    /// The values of items by provider service.
    markets: [Vec<u64>; PROVIDED.len()],
    /// Number of items that publishers have invented so far.
    invented: u64,
    /// The record of each life of the plant. A client may still read data from before a crash.
    records: Vec<Record>,
    plant_asleep_until: u64,
    hub_asleep_until: u64,
    is_calm: bool,
    is_over: bool,
    totals: Totals,
}

/// Runs the world of a plan; `is_read` records the trace lines.
pub(crate) fn run(plan: Plan, is_read: bool) -> Outcome {
    let mut world = World::new(plan, is_read);
    let broken = world.run().err().map(|(invariant, what)| {
        let at_ns = world.now - BEGIN;
        world.trace.say(world.now, Who::World, "broke", 0, || format!("{invariant:?}: {what}"));
        Broken { invariant, at_ns, what }
    });
    let totals = world.totals();
    let hash = mix(world.trace.hash, world.network.hash);
    Outcome { hash, lines: world.trace.into_lines(), broken, totals }
}

impl World {
    fn new(plan: Plan, is_read: bool) -> Self {
        let seed = plan.seed;
        let venues: Vec<Venue> = (0..plan.feeds)
            .map(|feed| Venue::new(feed, seed.wrapping_mul(31) + feed as u64, &plan))
            .collect();
        let names = venues.iter().enumerate().flat_map(|(feed, venue)| {
            venue.names().map(move |name| if feed == 0 { name } else { format!("{name}.{feed}") })
        });
        let provided = (0..PROVIDED.len())
            .filter(|service| plan.sources[*service] > 0)
            .flat_map(|service| (0..ITEMS).map(move |item| label(provided_id(service), &format!("P{item}"))));
        let names: Vec<String> = names.collect();
        let of_orders: Vec<String> = match plan.orders {
            Some(_) => names.iter().map(|name| orders(name)).collect(),
            None => Vec::new(),
        };
        let names: Vec<String> = names.into_iter().chain(of_orders).chain(provided).collect();
        let rules = plan.rules.map(|_| 0);
        let client = |(number, manner): (usize, &Manner)| {
            Client::new(number, *manner, plan.speech[number], Chance::of(seed, 1_000 + number as u64))
        };
        let clients = plan.clients.iter().enumerate().map(client).collect();
        let hostile = (0..plan.hostile).map(|number| Hostile::new(Chance::of(seed, 2_000 + number as u64)));
        let hostile = hostile.collect();
        let clock = Clock::at(BEGIN);
        // The simulated ring is never full, so nothing is refused.
        let mut shelf = plan.keeping.map(|keeping| Shelf::new(keeping, Chance::of(seed, 5)));
        let keeper = shelf.as_mut().and_then(|shelf| shelf.open().ok().flatten());
        let process = Process::new(&plan, &names, rules, &clock, keeper).ok();
        // The sources that the plant asks come first: their numbers are their positions.
        let asked = (0..plan.sources[ASKED]).map(|_| Source::provider(ASKED, PROVIDED[ASKED]));
        let others = (0..PROVIDED.len()).filter(|service| *service != ASKED);
        let publishers = others.flat_map(|service| {
            (0..plan.sources[service]).map(move |_| Source::publisher(service, PROVIDED[service]))
        });
        let sources = asked.chain(publishers).collect();
        let mut world = Self {
            agenda: Agenda::new(),
            clock,
            now: BEGIN,
            trace: Trace::new(BEGIN, is_read),
            network: Network::new(Chance::of(seed, 2)),
            chance: Chance::of(seed, 3),
            chance_of_disk: Chance::of(seed, 6),
            venues,
            names,
            process,
            shelf,
            illnesses: 0,
            rules,
            life: 0,
            clients,
            hostile,
            sources,
            markets: [const { Vec::new() }; PROVIDED.len()].map(|_: Vec<u64>| vec![1; ITEMS]),
            invented: 0,
            records: vec![Record::default()],
            plant_asleep_until: 0,
            hub_asleep_until: 0,
            is_calm: false,
            is_over: false,
            totals: Totals::default(),
            plan,
        };
        world.put_all();
        world
    }

    fn put_all(&mut self) {
        for feed in 0..self.venues.len() {
            self.agenda.put(BEGIN + self.chance.below(200 * MS), Event::Feed(feed));
        }
        self.agenda.put(BEGIN, Event::Plant);
        if self.shelf.is_some() {
            self.agenda.put(BEGIN, Event::Journal);
        }
        self.agenda.put(BEGIN, Event::Hub);
        if self.plan.keeps_images {
            self.agenda.put(BEGIN, Event::Images);
        }
        let clients = (0..self.clients.len()).map(Event::Client);
        let hostile = (0..self.hostile.len()).map(Event::Hostile);
        let sources = (0..self.sources.len()).map(Event::Source);
        for event in clients.chain(hostile).chain(sources) {
            self.agenda.put(BEGIN + self.chance.below(300 * MS), event);
        }
        if !self.sources.is_empty() {
            self.agenda.put(BEGIN, Event::Market);
        }
        for (number, (at, _)) in self.plan.faults.iter().enumerate() {
            self.agenda.put(BEGIN + at, Event::Fault(number));
        }
        if let Some(at) = self.plan.rules {
            self.agenda.put(BEGIN + at, Event::Rules);
        }
        let calm = BEGIN + self.plan.trouble_ns;
        self.agenda.put(calm, Event::Calm);
        self.agenda.put(calm + self.plan.calm_ns / 2, Event::Close);
        self.agenda.put(calm + self.plan.calm_ns, Event::End);
    }

    fn run(&mut self) -> Result<(), Wrong> {
        while !self.is_over
            && let Some((at, event)) = self.agenda.next()
        {
            self.now = at;
            self.clock.set(at);
            self.totals.events += 1;
            self.happens(event)?;
        }
        Ok(())
    }

    fn happens(&mut self, event: Event) -> Result<(), Wrong> {
        match event {
            Event::Feed(feed) => self.feed(feed),
            Event::Datagram { feed, line, bytes, life } => {
                if life == self.life
                    && let Some(process) = &mut self.process
                {
                    process.plant.arrive(feed, line, bytes, self.now);
                }
            }
            Event::Asked { feed, request, life } => self.asked(feed, &request, life),
            Event::Plant => return self.plant(),
            Event::Journal => return self.journal(),
            Event::Hub => return self.hub(),
            Event::Client(client) => return self.client(client),
            Event::Hostile(hostile) => self.hostile(hostile),
            Event::Source(source) => {
                self.source(source);
                if let Some((post, part)) = self.sources[source].desk.misplaced {
                    broken!(
                        Posts,
                        "source {source} got part {part} of post {post} twice, or out of its order"
                    );
                }
            }
            Event::Market => self.market(),
            Event::Fault(number) => return self.fault(number),
            Event::Rules => {
                self.rules = self.rules.map(|rules| rules + 1);
                let all = access(self.clients.len(), &self.names, self.rules);
                if let Some(hub) = self.process.as_mut().and_then(|process| process.hub.as_mut()) {
                    hub.set_rules(all);
                }
                self.say(Who::World, "changes the rules", 0, String::new);
            }
            Event::Images => return self.images(),
            Event::HubComes(life) => return self.hub_comes(life),
            Event::Restart => return self.restart(),
            Event::DiskHeals(illness) => self.disk_heals(illness),
            Event::Calm => self.calm(),
            Event::Close => {
                self.venues.iter_mut().for_each(|venue| venue.is_closed = true);
                self.say(Who::World, "closes", 0, String::new);
            }
            Event::End => {
                self.is_over = true;
                return self.check_end();
            }
        }
        Ok(())
    }

    fn say(&mut self, who: Who, what: &str, number: u64, more: impl FnOnce() -> String) {
        self.trace.say(self.now, who, what, number, more);
    }

    /// An exchange sends on both lines.
    fn feed(&mut self, feed: usize) {
        let mut datagrams = Vec::new();
        let next = self.venues[feed].turn(self.now, &mut datagrams);
        self.agenda.put(next, Event::Feed(feed));
        self.send(feed, datagrams);
    }

    fn send(&mut self, feed: usize, datagrams: Vec<Vec<u8>>) {
        for datagram in datagrams {
            let print = crate::trace::fnv(&datagram);
            self.say(Who::Feed(feed), "sends", print, || format!("{} bytes", datagram.len()));
            let bytes: Rc<[u8]> = datagram.into();
            for (line, number) in self.venues[feed].lines.into_iter().zip(0..) {
                let line_is = line::Line::new(number).expect("there are two lines");
                for at in line.arrivals(self.now, &mut self.chance).into_iter().flatten() {
                    let event =
                        Event::Datagram { feed, line: line_is, bytes: bytes.clone(), life: self.life };
                    self.agenda.put(at, event);
                }
            }
        }
    }

    /// A request reaches an exchange's retransmission server.
    fn asked(&mut self, feed: usize, request: &[u8], life: usize) {
        let Some(answer) = self.venues[feed].answer(self.now, request) else { return };
        let bytes: Rc<[u8]> = answer.into();
        for at in self.plan.server_line.arrivals(self.now, &mut self.chance).into_iter().flatten() {
            let event = Event::Datagram { feed, line: line::Line::RECOVERY, bytes: bytes.clone(), life };
            self.agenda.put(at, event);
        }
    }

    fn plant(&mut self) -> Result<(), Wrong> {
        let now = self.now;
        self.agenda.put(now + MS, Event::Plant);
        let Some(process) = self.process.as_mut().filter(|_| now >= self.plant_asleep_until) else {
            return Ok(());
        };
        let before = process.plant.tape().published();
        let turned = process.plant.turn(now, &mut self.network);
        let wanted = turned.map_err(|refused| (Invariant::Plant, refused.to_string()))?;
        self.totals.ticks += (process.plant.tape().published() - before) as u64;
        wanted.into_iter().try_for_each(|wanted| self.want(wanted))
    }

    /// The journal's thread takes a turn. If it cannot store a tick and must not continue, the plant ends.
    fn journal(&mut self) -> Result<(), Wrong> {
        let now = self.now;
        self.agenda.put(now + self.chance_of_disk.within(MS / 4, 2 * MS), Event::Journal);
        let (Some(shelf), Some(process)) = (&mut self.shelf, &mut self.process) else { return Ok(()) };
        let Some(keeper) = &mut process.keeper else { return Ok(()) };
        keeper.turn(process.plant.tape(), shelf, now);
        if keeper.has_stopped() {
            self.say(Who::Plant, "cannot keep what it publishes, and ends", 0, String::new);
            return self.crash(AGAIN_NS, Death::Killed);
        }
        Ok(())
    }

    /// Restarts the plant after the last tick of its journal; retries later if the disk does not allow it.
    fn restart(&mut self) -> Result<(), Wrong> {
        let keeper = self.shelf.as_mut().map(Shelf::open).transpose()?;
        if let Some(None) = keeper {
            self.agenda.put(self.now + AGAIN_NS, Event::Restart);
            return Ok(());
        }
        let keeper = keeper.flatten();
        let after = keeper.as_ref().map_or(0, |keeper| keeper.after);
        self.life += 1;
        self.records.push(Record::behind(after));
        let process = Process::new(&self.plan, &self.names, self.rules, &self.clock, keeper)?;
        self.process = Some(process);
        self.say(Who::Plant, "starts", self.life as u64, || format!("behind tick {after}"));
        Ok(())
    }

    fn disk_heals(&mut self, illness: usize) {
        if illness == self.illnesses
            && let Some(shelf) = &mut self.shelf
        {
            shelf.heals();
            self.say(Who::World, "heals the disk", 0, String::new);
        }
    }

    fn want(&mut self, wanted: Wanted) -> Result<(), Wrong> {
        let now = self.now;
        match wanted {
            Wanted::Ask { feed, request } => {
                self.say(Who::Plant, "asks", feed as u64, String::new);
                for at in self.plan.server_line.arrivals(now, &mut self.chance).into_iter().flatten() {
                    let event = Event::Asked { feed, request: request.clone(), life: self.life };
                    self.agenda.put(at, event);
                }
            }
            Wanted::Connect { provider, far } => {
                let source = &mut self.sources[provider];
                let is_there = now >= source.dead_until;
                self.trace
                    .say(now, Who::Plant, "connects", provider as u64, || format!("is there: {is_there}"));
                if !is_there {
                    far.reset();
                    return Ok(());
                }
                source.lose(now, &mut self.network);
                let link = self.network.open(SOURCE_PATH);
                source.accept(End::server(link, WIDE_BUFFERS, now), now);
                if let Some(process) = &mut self.process {
                    process.plant.connected(link, far);
                }
            }
        }
        Ok(())
    }

    fn source(&mut self, number: usize) {
        let now = self.now;
        self.agenda.put(now + self.chance.within(2 * MS, 10 * MS), Event::Source(number));
        let source = &mut self.sources[number];
        if !source.turn(now, &mut self.network, (&self.markets[source.service], self.invented)) {
            return;
        }
        let link = self.process.as_mut().map(|process| {
            let link = self.network.open(SOURCE_PATH);
            process.plant.enter(link, now);
            link
        });
        self.sources[number].connected(link, now);
        self.say(Who::Source(number), "connects", u64::from(link.is_some()), String::new);
    }

    fn market(&mut self) {
        if self.venues.iter().all(|venue| venue.is_closed) {
            return;
        }
        self.agenda.put(self.now + self.chance.within(2 * MS, 12 * MS), Event::Market);
        let (service, item) = (self.chance.index(PROVIDED.len()), self.chance.index(ITEMS));
        self.markets[service][item] += 1;
        self.invented += u64::from(self.chance.one_in(4));
    }

    fn hub(&mut self) -> Result<(), Wrong> {
        let now = self.now;
        self.agenda.put(now + self.chance.within(MS / 2, 2 * MS), Event::Hub);
        let Some(process) = self.process.as_mut().filter(|_| now >= self.hub_asleep_until) else {
            return Ok(());
        };
        let record = &mut self.records[self.life];
        let mut room = Room { now, network: &mut self.network, record, trace: &mut self.trace };
        let Some(hub) = &mut process.hub else { return Ok(()) };
        let Some(gone) = hub.turn(process.plant.tape(), &mut room)? else {
            self.say(Who::Hub, "lost its place before it knew what was before, and ends", 0, String::new);
            self.hub_ends(AGAIN_NS);
            return Ok(());
        };
        gone.into_iter().try_for_each(|gone| self.gone(&gone))
    }

    /// Checks whether a session had a reason to end.
    fn gone(&mut self, gone: &Gone) -> Result<(), Wrong> {
        self.totals.ended += 1;
        let Guest::Client(number) = gone.guest else { return Ok(()) };
        let is_harmed = self.clients[number].manner != Manner::Prompt;
        let is_slow = matches!(gone.end, Ending::Slow(_) | Ending::Stuck(_) | Ending::Role(Over::Unread));
        let is_silent = matches!(gone.end, Ending::Connection(_) | Ending::Role(Over::NoLogin(_)));
        let has_left = self.clients[number].given_up == Some(gone.link);
        if is_harmed && (is_slow || is_silent) || has_left && is_silent {
            return Ok(());
        }
        broken!(Ends, "client {number}, who did nothing wrong, was made to go: {}", gone.end)
    }

    fn client(&mut self, number: usize) -> Result<(), Wrong> {
        let now = self.now;
        let manner = self.clients[number].manner;
        let next = if manner == Manner::Prompt { MS } else { self.chance.within(MS, 12 * MS) };
        self.agenda.put(now + next, Event::Client(number));
        let (client, mut sight) = self.sight(number);
        let wants = client.turn(&mut sight)?;
        if wants.rebirth {
            if manner == Manner::Prompt {
                broken!(Ends, "client {number}, who did nothing wrong, was logged out");
            }
            self.say(Who::Client(number), "begins anew", 0, String::new);
            if let Some(end) = &self.clients[number].end {
                self.network.close(end.link, Side::Client);
            }
            self.clients[number].restart();
            return Ok(());
        }
        if !wants.connection {
            return Ok(());
        }
        let path = match manner {
            Manner::Prompt => Path { delay: (20_000, 80_000), room: 1 << 20 },
            Manner::Ordinary => Path { delay: (20_000, 3 * MS), room: 64 << 10 },
            Manner::Slow { .. } | Manner::Deaf => Path { delay: (20_000, 3 * MS), room: 2 << 10 },
        };
        match self.connect(path, Guest::Client(number), manner == Manner::Prompt) {
            Some(link) => self.clients[number].connected(link, self.life, &self.records[self.life], now),
            None => {
                let (client, mut sight) = self.sight(number);
                client.refused(&mut sight)?;
            }
        }
        Ok(())
    }

    /// A client, and the parts of the world that it can access.
    fn sight(&mut self, number: usize) -> (&mut Client, Sight<'_>) {
        let client = &mut self.clients[number];
        let hub = self.process.as_ref().and_then(|process| process.hub.as_ref());
        let clean_from = client.end.as_ref().zip(hub).and_then(|(end, hub)| hub.clean_from(end.link));
        let sight = Sight {
            now: self.now,
            network: &mut self.network,
            record: &mut self.records[client.life],
            trace: &mut self.trace,
            names: &self.names,
            has_novelties: self.plan.sources[UNASKED] > 0,
            hub_sleeps: self.now < self.hub_asleep_until,
            rules: self.rules,
            clean_from,
            jumps: matches!(self.plan.slow, SlowPolicy::Conflate | SlowPolicy::DropWithGap { .. }),
        };
        (client, sight)
    }

    /// Connects a guest to the hub, if the hub runs.
    fn connect(&mut self, path: Path, guest: Guest, is_wide: bool) -> Option<LinkId> {
        let hub = self.process.as_mut()?.hub.as_mut()?;
        let link = self.network.open(path);
        hub.enter(link, guest, is_wide, self.now);
        Some(link)
    }

    fn hostile(&mut self, number: usize) {
        let now = self.now;
        self.agenda.put(now + self.chance.within(2 * MS, 20 * MS), Event::Hostile(number));
        if self.is_calm && self.hostile[number].end.is_none() {
            return;
        }
        if self.hostile[number].turn(now, &mut self.network, &self.names) {
            let path = Path { delay: (20_000, 2 * MS), room: 4 << 10 };
            if let Some(link) = self.connect(path, Guest::Hostile, false) {
                self.hostile[number].connected(link, now);
            }
        }
    }

    fn fault(&mut self, number: usize) -> Result<(), Wrong> {
        let (now, (_, fault)) = (self.now, self.plan.faults[number]);
        self.say(Who::World, "fault", number as u64, || format!("{fault:?}"));
        match fault {
            Fault::PlantStalls { ns } => self.plant_asleep_until = now + ns,
            Fault::HubStalls { ns } => self.hub_asleep_until = now + ns,
            Fault::HubRestarts { ns } => self.hub_ends(ns),
            Fault::Crash { ns } => return self.crash(ns, Death::Killed),
            Fault::MachineStops { ns } => return self.crash(ns, Death::MachineStops),
            Fault::DiskFalls { illness, ns } => {
                if let Some(shelf) = &mut self.shelf {
                    shelf.falls_ill(illness);
                    self.illnesses += 1;
                    self.agenda.put(now + ns, Event::DiskHeals(self.illnesses));
                }
            }
            Fault::Break { client }
            | Fault::HalfOpen { client }
            | Fault::Stall { client, .. }
            | Fault::Sleeps { client, .. }
            | Fault::Restarts { client }
                if self.clients[client].manner == Manner::Prompt => {}
            Fault::Break { client } => self.break_client(client),
            Fault::HalfOpen { client } => {
                self.clients[client].end.iter().for_each(|end| self.network.fall_silent(end.link));
            }
            Fault::Stall { client, ns } => {
                let end = self.clients[client].end.iter();
                end.for_each(|end| self.network.stall(end.link, Side::Client, now + ns));
            }
            Fault::Sleeps { client, ns } => self.clients[client].asleep_until = now + ns,
            Fault::Restarts { client } => {
                self.break_client(client);
                self.clients[client].restart();
            }
            Fault::Silence { feed, ns } => self.venues[feed].silent_until = now + ns,
            Fault::Burst { feed, packets } => self.venues[feed].burst += packets,
            Fault::NewSession { feed, says_so } => self.new_session(feed, says_so),
            Fault::LineDies { feed, line, ns } => self.venues[feed].lines[line].dead_until = now + ns,
            Fault::SourceDies { source, ns } => {
                self.sources[source].dead_until = now + ns;
                self.break_source(source);
            }
            Fault::SourceBreaks { source } => self.break_source(source),
            Fault::SourceHalfOpen { source } => {
                self.sources[source].end.iter().for_each(|end| self.network.fall_silent(end.link));
            }
            Fault::ServerDies { feed, ns } => self.venues[feed].server_dead_until = now + ns,
        }
        Ok(())
    }

    fn break_client(&mut self, client: usize) {
        self.clients[client].end.iter().for_each(|end| self.network.break_off(end.link));
    }

    fn break_source(&mut self, source: usize) {
        self.sources[source].end.iter().for_each(|end| self.network.break_off(end.link));
        self.sources[source].lose(self.now, &mut self.network);
    }

    fn new_session(&mut self, feed: usize, says_so: bool) {
        let mut datagrams = Vec::new();
        if says_so {
            self.venues[feed].end_session(self.now, &mut datagrams);
        }
        self.venues[feed].begin_session();
        self.send(feed, datagrams);
    }

    fn hub_ends(&mut self, ns: u64) {
        let Some(process) = &mut self.process else { return };
        let Some(hub) = process.hub.take() else { return };
        process.plant.tape().leave();
        for link in hub.links() {
            self.network.break_off(link);
        }
        self.agenda.put(self.now + ns, Event::HubComes(self.life));
    }

    fn hub_comes(&mut self, life: usize) -> Result<(), Wrong> {
        let Some(process) = self.process.as_mut().filter(|_| life == self.life) else { return Ok(()) };
        let tape = process.plant.tape();
        tape.join();
        let reader = Reader::of(tape.clone(), process.images.clone());
        let mut hub = HubSide::new(&self.plan, &self.names, self.rules, (reader, None), &self.clock, None);
        hub.enter_late()?;
        process.hub = Some(hub);
        self.say(Who::Hub, "comes late", 0, String::new);
        Ok(())
    }

    fn images(&mut self) -> Result<(), Wrong> {
        let now = self.now;
        self.agenda.put(now + MS, Event::Images);
        let Some(images) = self.process.as_ref().and_then(|process| process.images.as_ref()) else {
            return Ok(());
        };
        let turned = images.borrow_mut().turn(Nanos(now));
        turned.map(|_| ()).map_err(|error| (Invariant::OneSequence, format!("the images: {error:#}")))
    }

    /// Ends the process of plant and hub, and its connections.
    fn crash(&mut self, ns: u64, death: Death) -> Result<(), Wrong> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        let given_out = self.records[self.life].seq;
        if let (Some(shelf), Some(keeper)) = (&mut self.shelf, process.keeper.take()) {
            shelf.dies(keeper, process.plant.tape(), death, given_out)?;
        }
        let of_hub = process.hub.iter().flat_map(HubSide::links);
        for link in of_hub.chain(process.plant.links()) {
            self.network.break_off(link);
        }
        // This includes connections that the hub had not accepted yet.
        self.agenda.put(self.now + ns, Event::Restart);
        Ok(())
    }

    fn calm(&mut self) {
        self.is_calm = true;
        self.say(Who::World, "calms down", 0, String::new);
        let now = self.now;
        (self.plant_asleep_until, self.hub_asleep_until) = (0, 0);
        for venue in &mut self.venues {
            (venue.silent_until, venue.server_dead_until) = (0, 0);
            for line in &mut venue.lines {
                (line.loss, line.dead_until) = (0, 0);
            }
        }
        self.plan.server_line.loss = 0;
        self.shelf.iter_mut().for_each(Shelf::heals);
        self.sources.iter_mut().for_each(|source| source.dead_until = 0);
        for client in &mut self.clients {
            client.asleep_until = client.asleep_until.min(now);
            client.is_settled = true;
            if client.manner != Manner::Prompt {
                client.manner = Manner::Ordinary;
            }
        }
    }

    fn check_end(&mut self) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { broken!(Liveness, "the plant is not there") };
        let Some(hub) = &process.hub else { broken!(Liveness, "the hub is not there") };
        hub.check_quiet(process.plant.tape())?;
        if let (Some(shelf), Some(keeper)) = (&mut self.shelf, &mut process.keeper) {
            keeper.check_quiet(process.plant.tape(), shelf)?;
            self.totals.kept +=
                keeper.after + process.plant.tape().published() as u64 - keeper.progress.missing();
        }
        for feed in 0..self.plan.feeds {
            check_feed(feed, &self.venues[feed], &process.plant, &self.records[self.life])?;
        }
        let down = process.plant.down();
        if !down.is_empty() {
            broken!(Liveness, "services are down: {down:?}");
        }
        for client in &self.clients {
            let record = &mut self.records[self.life];
            let may_see = |name: &&String| !is_denied(client.number, name, self.rules);
            let names: Vec<String> = self.names.iter().filter(may_see).cloned().collect();
            client.check_current(record, &names)?;
            hub.check_counters(client)?;
            let mut items = client.items().filter(|item| names.iter().any(|name| name == item));
            items.try_for_each(|item| check_provided(item, &self.markets, record))?;
        }
        Ok(())
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals {
            messages: self.venues.iter().map(Venue::messages).sum(),
            numbers_again: self.records.iter().map(|record| record.ended).sum(),
            receipts: self.clients.iter().map(|client| client.talk.receipts).sum(),
            own: self.clients.iter().map(|client| client.talk.heard).sum(),
            lost: self.records.iter().map(|record| record.lost as u64).sum(),
            ..self.totals
        };
        self.clients.iter().for_each(|client| totals.add(&client.totals));
        totals
    }
}

/// Checks that an item of a provider service has its sources' value.
fn check_provided(item: &str, markets: &[Vec<u64>], record: &Record) -> Result<(), Wrong> {
    let (service, name) = of_label(item);
    let market = PROVIDED.iter().zip(markets).find(|(provided, _)| **provided == service);
    let Some((_, values)) = market else { return Ok(()) };
    let Some(value) = place(name.as_bytes()).map(|place| values[place]) else { return Ok(()) };
    if record.missed.is_some() {
        return Ok(());
    }
    // Clients may have posted additional fields.
    let are_there = |fields: &Fields| fields_of(value).iter().all(|(fid, is)| fields.get(fid) == Some(is));
    if !record.items.get(item).is_some_and(|item| are_there(&item.image.fields)) {
        broken!(Books, "{item}: its sources have {value}, and the plant has not");
    }
    Ok(())
}

/// Checks that a feed is live, and that its books are the exchange's unless it says that they may differ.
fn check_feed(feed: usize, venue: &Venue, plant: &Plant, record: &Record) -> Result<(), Wrong> {
    let channel = plant.channel(feed);
    if channel.state() != State::Live {
        broken!(Liveness, "feed {feed} is {}", channel.state());
    }
    let is_damaged = channel.damaged_from().is_some();
    if !record.is_whole(feed as u16) {
        // The hub has not read the whole session.
        return Ok(());
    }
    if is_damaged != record.is_suspect(feed as u16) {
        broken!(State, "feed {feed}: damaged is {is_damaged}, and its subscribers were told otherwise");
    }
    if is_damaged {
        return Ok(());
    }
    let counters = channel.counters();
    for (locate, name) in (1..).zip(venue.names()) {
        let name = if feed == 0 { name } else { format!("{name}.{feed}") };
        let best = venue.exchange.top(locate);
        let published = record.items.get(&name);
        if !published.is_some_and(|item| crate::books::has(&item.image.fields, best)) {
            broken!(
                Books,
                "feed {feed}, {name}: the exchange has {best:?}, the plant does not; {counters:?}"
            );
        }
        if let Some(all) = &venue.orders {
            let name = orders(&name);
            let wrong =
                |what: String| (Invariant::Books, format!("feed {feed}, {name}: {what}; {counters:?}"));
            let Some(item) = record.items.get(&name) else {
                return Err(wrong("the plant has none".to_owned()));
            };
            all.check(locate, &item.image).map_err(wrong)?;
        }
    }
    Ok(())
}
