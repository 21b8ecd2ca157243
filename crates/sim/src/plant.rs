//! The plant: datagrams in, ticks on the tape, what is missing asked for.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tapeline_feed::moldudp64::recover::{Client, Settings};
use tapeline_feed::{Protocol, book, line};
use tapeline_measure::Nanos;
use tapeline_omm::role::consumer::Backoff;
use tapeline_omm::role::{Nowhere, Outbox, acceptor, consumer};
use tapeline_plant::sources::{
    self, LinkId, Outlets, ProviderSettings, ServiceSettings, Sources, Sourcing, Wish,
};
use tapeline_plant::{Channel, ChannelSettings, Items, PublishPolicy, Refused, Seq, Sequencer};

use crate::desk::{DESK, Desk};
use crate::end::{Came, End};
use crate::journal::Keeper;
use crate::network::{self, Network, Side};
use crate::plan::{ASKED, MIDNIGHT, MS, PROVIDED, Plan, SERVICE, ms, provided_id};
use crate::tape::{Clock, Tape};

/// Datagrams that a socket's buffer holds; those beyond are lost.
const SOCKET: usize = 512;
/// Unread ticks at which the plant waits for the hub; and for one in a process of its own, and for how long.
const RING: usize = 2_000;
const SMALL_RING: usize = 100;
const STALL_LIMIT_NS: u64 = 100 * MS;
/// Datagrams taken in one turn.
const BATCH: usize = 64;

/// One feed's way into the plant.
#[derive(Debug)]
struct Inlet {
    channel: Channel,
    recovery: Client,
    /// Of the feed's numbers, as recovery was told last.
    restarts: u64,
    socket: VecDeque<(line::Line, Rc<[u8]>, u64)>,
}

/// A plant, from its start to its crash.
#[derive(Debug)]
pub(crate) struct Plant {
    inlets: Vec<Inlet>,
    sequencer: Sequencer<Tape>,
    clock: Clock,
    sources: Sources,
    links: BTreeMap<LinkId, End>,
    /// Publishers, before their handshake is done.
    entering: Vec<End>,
}

/// What a plant wants of the world.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// A datagram to a feed's server.
    Ask { feed: usize, request: Vec<u8> },
    /// A connection to an interactive provider.
    Connect { provider: u32 },
}

/// The ways out to the sources, at a time.
struct Ways<'a> {
    links: &'a mut BTreeMap<LinkId, End>,
    network: &'a mut Network,
    now: u64,
}

impl Outlets for Ways<'_> {
    fn with(&mut self, link: LinkId, send: &mut dyn FnMut(&mut dyn Outbox)) {
        match self.links.get_mut(&link).filter(|end| end.is_open()) {
            Some(end) => send(&mut end.out(self.now, self.network)),
            None => send(&mut Nowhere),
        }
    }
}

impl Plant {
    /// `keeper`: its journal, behind whose last tick it goes on.
    pub(crate) fn new(plan: &Plan, clock: Clock, keeper: Option<&Keeper>) -> Result<Self, Refused> {
        let inlets = (0..plan.feeds).map(|number| Inlet::new(plan, number)).collect();
        let tape = if plan.is_apart { Tape::new(SMALL_RING, STALL_LIMIT_NS) } else { Tape::new(RING, 0) };
        let (tape, after) = match keeper {
            Some(keeper) => (tape.behind(keeper.gate()), keeper.after()),
            None => (tape, 0),
        };
        let mut sequencer = Sequencer::new(SERVICE, items(plan), tape).after(Seq(after));
        let mut sources = Sources::new(settings(plan)).expect("the logins are short");
        sources.begin(&mut sequencer, &clock)?;
        Ok(Self { inlets, sequencer, clock, sources, links: BTreeMap::new(), entering: Vec::new() })
    }

    /// A publisher connects.
    pub(crate) fn enter(&mut self, end: End) {
        self.entering.push(end);
    }

    /// A connection to a provider is there, its handshake aside; or it could not be had.
    pub(crate) fn connected(&mut self, provider: u32, end: Option<End>, now: u64) -> Result<(), Refused> {
        match end {
            Some(end) => _ = self.links.insert(LinkId(provider), end),
            None => {
                let Self { sources, sequencer, clock, .. } = self;
                sources.closed(Nanos(now), LinkId(provider), "nobody is there", sequencer, clock)?;
            }
        }
        Ok(())
    }

    /// Its connections, for whoever breaks them.
    pub(crate) fn links(&self) -> impl Iterator<Item = network::LinkId> + '_ {
        self.links.values().chain(&self.entering).map(|end| end.link)
    }

    /// Whether every service of providers is up.
    pub(crate) fn down(&self) -> Vec<String> {
        self.sources.services().filter(|(_, is_up)| !is_up).map(|(name, _)| name.to_owned()).collect()
    }

    /// A datagram arrives: on one of a feed's lines, or as an answer of its server.
    pub(crate) fn arrive(&mut self, feed: usize, line: line::Line, datagram: Rc<[u8]>, now: u64) {
        let inlet = &mut self.inlets[feed];
        if inlet.socket.len() < SOCKET {
            inlet.socket.push_back((line, datagram, now));
        }
    }

    /// Takes what has arrived, as far as the ring has room, and does what is due.
    pub(crate) fn turn(
        &mut self,
        now: u64,
        network: &mut Network,
        desk: &mut Desk,
    ) -> Result<Vec<Wanted>, Refused> {
        let Self { inlets, sequencer, clock, .. } = self;
        let mut wanted = Vec::new();
        for (inlet, feed) in inlets.iter_mut().zip(0..) {
            let mut is_all_read = false;
            for _ in 0..BATCH {
                if !sequencer.publisher().has_room(now) {
                    break;
                }
                let Some((line, datagram, wire)) = inlet.socket.pop_front() else {
                    is_all_read = true;
                    break;
                };
                if line != line::Line::RECOVERY || inlet.recovery.answer(0, &datagram).is_ok() {
                    inlet.channel.datagram(line, &datagram, Nanos(wire), clock, sequencer)?;
                }
            }
            inlet.recover(feed, now, clock, sequencer, &mut wanted)?;
            if is_all_read {
                inlet.channel.expire(clock, sequencer)?;
            }
        }
        self.serve(now, network, desk, &mut wanted)?;
        Ok(wanted)
    }

    /// The sources: their connections, demands and answers.
    fn serve(
        &mut self,
        now: u64,
        network: &mut Network,
        desk: &mut Desk,
        wanted: &mut Vec<Wanted>,
    ) -> Result<(), Refused> {
        self.let_in(now, network)?;
        let ids: Vec<LinkId> = self.links.keys().copied().collect();
        for id in ids {
            let Some(end) = self.links.get_mut(&id) else { continue };
            if !self.sequencer.publisher().has_room(now) {
                break;
            }
            let mut came = end.receive(now, network, usize::MAX);
            came.extend(end.turn(now));
            if end.has_room_again() {
                self.sources.room(id);
            }
            self.take(id, came, now, network)?;
            self.grant(now, network, wanted);
        }
        let Self { sources, links, sequencer, clock, .. } = self;
        let ways = &mut Ways { links, network, now };
        for demand in desk.demands.drain(..) {
            sources.demand(Nanos(now), demand, ways, sequencer, clock)?;
        }
        sources.turn(Nanos(now), ways, sequencer, clock)?;
        while desk.answers.len() < DESK
            && let Some(answer) = sources.next_answer()
        {
            desk.answers.push_back(answer);
        }
        while sources.next_note().is_some() {}
        self.grant(now, network, wanted);
        for end in self.links.values_mut().chain(&mut self.entering) {
            end.flush(now, network);
        }
        Ok(())
    }

    /// Handshakes of publishers.
    fn let_in(&mut self, now: u64, network: &mut Network) -> Result<(), Refused> {
        for mut end in std::mem::take(&mut self.entering) {
            let came = end.receive(now, network, usize::MAX);
            if came.iter().any(|came| matches!(came, Came::Over(_))) || end.turn(now).is_some() {
                network.close(end.link, Side::Server);
            } else if end.is_open() {
                let id = self.sources.open(Nanos(now));
                self.links.insert(id, end);
                self.take(id, came, now, network)?;
            } else {
                self.entering.push(end);
            }
        }
        Ok(())
    }

    /// What came of a source.
    fn take(&mut self, id: LinkId, came: Vec<Came>, now: u64, network: &mut Network) -> Result<(), Refused> {
        let Self { sources, links, sequencer, clock, .. } = self;
        let at = Nanos(now);
        for came in came {
            let Some(end) = links.get_mut(&id) else { return Ok(()) };
            match came {
                Came::Connected => sources.connected(at, id, &mut end.out(now, network)),
                Came::Message(message, _) => {
                    sources.message(at, id, &message, &mut end.out(now, network), sequencer, clock)?;
                }
                // Sources speak RWF alone.
                Came::Garbled(_) => {}
                Came::Over(why) => {
                    network.close(end.link, end.side());
                    links.remove(&id);
                    sources.closed(at, id, &why, sequencer, clock)?;
                }
            }
        }
        Ok(())
    }

    /// What the sources want of their connections.
    fn grant(&mut self, now: u64, network: &mut Network, wanted: &mut Vec<Wanted>) {
        while let Some(wish) = self.sources.next_wish() {
            match wish {
                Wish::Connect { link, .. } => wanted.push(Wanted::Connect { provider: link.0 }),
                Wish::Disconnect { link } => {
                    if let Some(mut end) = self.links.remove(&link) {
                        end.flush(now, network);
                        network.close(end.link, end.side());
                    }
                }
            }
        }
    }

    pub(crate) fn tape(&mut self) -> &mut Tape {
        self.sequencer.publisher()
    }

    pub(crate) fn channel(&self, feed: usize) -> &Channel {
        &self.inlets[feed].channel
    }
}

/// Numbers for items: of feeds as many as there may be, of providers few.
fn items(plan: &Plan) -> Items {
    const OF_FEEDS: usize = 500;
    Items::new(OF_FEEDS + plan.numbers).reserve(SERVICE, OF_FEEDS)
}

/// The services of providers, and the providers that the plant asks.
fn settings(plan: &Plan) -> sources::Settings {
    let service = |service: usize| ServiceSettings {
        id: provided_id(service),
        name: PROVIDED[service].to_owned(),
        channel: 100 + service as u16,
        sources: if service == ASKED {
            Sourcing::Providers { of: (0..plan.sources[ASKED]).collect(), policy: plan.policy }
        } else {
            Sourcing::Publishers { users: None, sharing: plan.sharing }
        },
        posts: plan.posts,
    };
    let provider = |number: usize| ProviderSettings {
        name: format!("provider {number}"),
        consumer: consumer::Settings {
            reconnect: Backoff { first: ms(50), most: ms(400) },
            login_timeout: ms(1_000),
            directory_timeout: ms(1_000),
            request_timeout: ms(800),
            login_again: ms(100),
            recover: Backoff { first: ms(20), most: ms(300) },
            ..consumer::Settings::default()
        },
        user: "plant".to_owned(),
        password: None,
        application_id: "256".to_owned(),
        position: "sim".to_owned(),
    };
    let there = (0..PROVIDED.len()).filter(|service| plan.sources[*service] > 0);
    sources::Settings {
        services: there.map(service).collect(),
        providers: (0..plan.sources[ASKED]).map(provider).collect(),
        publishers: acceptor::Settings::default(),
        post_timeout_ms: 1_000,
        ..sources::Settings::default()
    }
}

impl Inlet {
    fn new(plan: &Plan, number: usize) -> Self {
        let policy = if plan.every_message { PublishPolicy::EveryMessage } else { PublishPolicy::Changes };
        let mut channel = Channel::new(ChannelSettings {
            number: number as u16,
            protocol: Protocol::ItchMoldUdp64,
            lines: 2,
            stale_after_ns: 800 * MS,
            midnight: Nanos(MIDNIGHT),
            midnight_before: None,
            publish: policy,
            arbitration: line::Settings {
                window_messages: 4_096,
                window_age_ns: 15 * MS,
                recovery_age_ns: if plan.recovers { 400 * MS } else { 0 },
                start: line::Start::FromOne,
                session_hold_ns: 750 * MS,
                expire_on_packet: false,
                ..line::Settings::default()
            },
            books: book::Settings::default(),
        });
        if plan.orders.is_some() {
            channel.publish_orders(100_000);
        }
        if number > 0 {
            channel.name_items(&format!(".{number}"));
        }
        let recovery = Client::new(Settings { delay_ns: 5 * MS, timeout_ns: 40 * MS, ..Settings::default() });
        Self { channel, recovery, restarts: 0, socket: VecDeque::new() }
    }

    /// Tells recovery what is missing, and the channel what it will not bring: as the plant's loop does.
    fn recover(
        &mut self,
        feed: usize,
        now: u64,
        clock: &Clock,
        to: &mut Sequencer<Tape>,
        wanted: &mut Vec<Wanted>,
    ) -> Result<(), Refused> {
        let now = Nanos(now);
        let Self { channel, recovery, restarts, .. } = self;
        let begun = channel.arbiter().statistics().restarts;
        if std::mem::replace(restarts, begun) != begun {
            recovery.begin_again();
        }
        if channel.arbiter().missing().next().is_none() && !recovery.is_busy() {
            return Ok(());
        }
        let Some(line::Session::MoldUdp64(session)) = channel.arbiter().session() else { return Ok(()) };
        recovery.update(session, channel.arbiter().wanted(), now);
        if channel.arbiter().is_left_to_recovery() {
            recovery.hurry();
        }
        while let Some(ask) = recovery.poll(now) {
            wanted.push(Wanted::Ask { feed, request: ask.request.encode().to_vec() });
        }
        while let Some(range) = recovery.given_up() {
            channel.give_up(range, clock, to)?;
        }
        Ok(())
    }
}
