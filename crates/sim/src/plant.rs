//! The plant: takes datagrams, writes ticks to the tape, and requests retransmission of lost messages.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use tapeline_feed::moldudp64::recover::ClientSettings;
use tapeline_feed::{Protocol, book, line};
use tapeline_measure::Nanos;
use tapeline_node::Events;
use tapeline_node::config::{Host, SourcesConfig};
use tapeline_node::sources::{Demanding, RunningSources};
use tapeline_omm::role::consumer::Backoff;
use tapeline_omm::role::{acceptor, consumer};
use tapeline_plant::sources::{self, ProviderSettings, ServiceSettings, Sourcing};
use tapeline_plant::{
    Channel, ChannelSettings, GapRequests, Items, Look, PublishPolicy, Refused, Seq, Sequencer,
};
use tapeline_wire::rssl::{self, FarEnd, Reactor};

use crate::end::{WIDE_BUFFERS, base};
use crate::journal::Keeper;
use crate::network::{self, Network, Port, Side};
use crate::plan::{ASKED, MIDNIGHT, MS, PROVIDED, Plan, SERVICE, ms, provided_id};
use crate::tape::{Clock, Tape};

/// Capacity of a socket's buffer in datagrams; further datagrams are lost.
const SOCKET: usize = 512;
/// Unread ticks at which the plant waits for the hub, the same for a hub in its own process, and the stall limit
/// of the latter.
const RING: usize = 2_000;
const SMALL_RING: usize = 100;
const STALL_LIMIT_NS: u64 = 100 * MS;
/// Limit of queued demands or answers between the plant and its hub.
const DESK: usize = 64;
/// Limit of source connections.
const MOST_SOURCES: usize = 64;
/// Limit of datagrams taken in one turn.
const BATCH: usize = 64;

#[derive(Debug)]
struct Inlet {
    channel: Channel,
    recovery: GapRequests,
    socket: VecDeque<(line::Line, Rc<[u8]>, u64)>,
}

/// A plant, from its start to its crash.
#[derive(Debug)]
pub(crate) struct Plant {
    inlets: Vec<Inlet>,
    sequencer: Sequencer<Tape>,
    clock: Clock,
    sources: RunningSources,
    /// The network's ends of the connections to the sources.
    ports: Vec<Port>,
}

/// A plant's request to the world.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Send a datagram to a feed's retransmission server.
    Ask {
        feed: usize,
        request: Vec<u8>,
    },
    Connect {
        provider: usize,
        far: FarEnd,
    },
}

impl Plant {
    /// `keeper`: its journal; the plant continues after the journal's last tick.
    pub(crate) fn new(
        plan: &Plan,
        clock: Clock,
        keeper: Option<&Keeper>,
    ) -> Result<(Self, Demanding), Refused> {
        let inlets = (0..plan.feeds).map(|number| Inlet::new(plan, number)).collect();
        let tape = if plan.is_apart { Tape::new(SMALL_RING, STALL_LIMIT_NS) } else { Tape::new(RING, 0) };
        let after = keeper.map_or(0, |keeper| keeper.after);
        let mut sequencer = Sequencer::new(SERVICE, items(plan), tape).after(Seq(after));
        let reactor = Reactor::in_memory(MOST_SOURCES).expect("the machine has descriptors");
        let (mut sources, demanding) = RunningSources::on(reactor, config(plan), DESK, &Events::default())
            .expect("the logins are short");
        sources.begin(&clock, &mut sequencer)?;
        Ok((Self { inlets, sequencer, clock, sources, ports: Vec::new() }, demanding))
    }

    pub(crate) fn enter(&mut self, link: network::LinkId, now: u64) {
        let far = self.sources.reactor().accept_in_memory(link.address(), &transport(), Nanos(now));
        self.ports.push(Port::new(link, Side::Server, far));
    }

    /// Takes an established connection to a provider.
    pub(crate) fn connected(&mut self, link: network::LinkId, far: FarEnd) {
        self.ports.push(Port::new(link, Side::Client, far));
    }

    /// Its connections, so that a fault can break them.
    pub(crate) fn links(&self) -> impl Iterator<Item = network::LinkId> + '_ {
        self.ports.iter().map(|port| port.link)
    }

    /// The provider services that are down.
    pub(crate) fn down(&self) -> Vec<String> {
        let services = self.sources.sources.services();
        services.filter(|(_, is_up)| !is_up).map(|(name, _)| name.to_owned()).collect()
    }

    /// Takes a datagram from one of a feed's lines or from its retransmission server.
    pub(crate) fn arrive(&mut self, feed: usize, line: line::Line, datagram: Rc<[u8]>, now: u64) {
        let inlet = &mut self.inlets[feed];
        if inlet.socket.len() < SOCKET {
            inlet.socket.push_back((line, datagram, now));
        }
    }

    /// Processes arrived datagrams, as far as the ring has capacity, and runs due timers.
    pub(crate) fn turn(&mut self, now: u64, network: &mut Network) -> Result<Vec<Wanted>, Refused> {
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
                if line != line::Line::RECOVERY || inlet.recovery.client().answer(0, &datagram).is_ok() {
                    inlet.channel.datagram(line, &datagram, Nanos(wire), clock, sequencer)?;
                }
            }
            inlet.recover(feed, now, clock, sequencer, &mut wanted)?;
            if is_all_read {
                inlet.channel.expire(clock, sequencer)?;
            }
        }
        self.serve(now, network, &mut wanted)?;
        Ok(wanted)
    }

    /// Serves the sources: their connections, demands and answers.
    fn serve(&mut self, now: u64, network: &mut Network, wanted: &mut Vec<Wanted>) -> Result<(), Refused> {
        // The production thread waits in the middle of a source's data until the ring has capacity again.
        if !self.sequencer.publisher().has_room(now) {
            return Ok(());
        }
        self.ports.iter().for_each(|port| port.hear(now, network));
        self.sources.turn(false, &self.clock, &mut self.sequencer)?;
        self.ports.retain_mut(|port| port.speak(now, network));
        while let Some((address, far)) = self.sources.reactor().next_dialed() {
            wanted.push(Wanted::Connect { provider: usize::from(address.port()) - 1, far });
        }
        Ok(())
    }

    pub(crate) fn tape(&mut self) -> &mut Tape {
        self.sequencer.publisher()
    }

    pub(crate) fn channel(&self, feed: usize) -> &Channel {
        &self.inlets[feed].channel
    }
}

/// Numbers for items: enough for all items of feeds, few for those of providers.
fn items(plan: &Plan) -> Items {
    const OF_FEEDS: usize = 500;
    Items::new(OF_FEEDS + plan.numbers).reserve(SERVICE, OF_FEEDS)
}

fn transport() -> Arc<rssl::ConnectionSettings> {
    Arc::new(base(WIDE_BUFFERS))
}

/// The configuration of the sources. A provider's port is its number plus one.
fn config(plan: &Plan) -> SourcesConfig {
    let host = |number: usize| Host { server: format!("10.255.0.1:{}", number + 1), transport: transport() };
    SourcesConfig {
        settings: settings(plan),
        door: None,
        hosts: (0..plan.sources[ASKED]).map(|number| vec![host(number)]).collect(),
        for_clients: Vec::new(),
    }
}

/// The provider services, and the providers that the plant asks.
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
        consumer: consumer::ConsumerSettings {
            reconnect: Backoff { first: ms(50), most: ms(400) },
            login_timeout: ms(1_000),
            directory_timeout: ms(1_000),
            request_timeout: ms(800),
            login_again: ms(100),
            recover: Backoff { first: ms(20), most: ms(300) },
            ..consumer::ConsumerSettings::default()
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
        publishers: acceptor::AcceptorSettings::default(),
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
            arbitration: line::ArbiterSettings {
                window_messages: 4_096,
                window_age_ns: 15 * MS,
                recovery_age_ns: if plan.recovers { 400 * MS } else { 0 },
                start: line::Start::FromOne,
                session_hold_ns: 750 * MS,
                expire_on_packet: false,
                ..line::ArbiterSettings::default()
            },
            books: book::BookSettings::default(),
        });
        if plan.orders.is_some() {
            channel.publish_orders(100_000);
        }
        if number > 0 {
            channel.name_items(&format!(".{number}"));
        }
        let recovery = GapRequests::new(ClientSettings {
            delay_ns: 5 * MS,
            timeout_ns: 40 * MS,
            ..ClientSettings::default()
        });
        Self { channel, recovery, socket: VecDeque::new() }
    }

    /// Requests what is missing, and tells the channel what recovery gives up.
    fn recover(
        &mut self,
        feed: usize,
        now: u64,
        clock: &Clock,
        to: &mut Sequencer<Tape>,
        wanted: &mut Vec<Wanted>,
    ) -> Result<(), Refused> {
        let now = Nanos(now);
        let Self { channel, recovery, .. } = self;
        if recovery.look(channel) == Look::Whole {
            return Ok(());
        }
        recovery.update(channel, now);
        while let Some(ask) = recovery.client().poll(now) {
            wanted.push(Wanted::Ask { feed, request: ask.request.encode().to_vec() });
        }
        while let Some(range) = recovery.client().given_up() {
            channel.give_up(range, clock, to)?;
        }
        Ok(())
    }
}
