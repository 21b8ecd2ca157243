//! The plan that a seed determines: the size of the world, its clients, and its faults.

use std::time::Duration;

use tapeline_hub::SlowPolicy;
use tapeline_journal::{Durability, OnFailure};
use tapeline_omm::rwf::Domain;
use tapeline_plant::sources::{Policy, Posts, Sharing};

use crate::chance::Chance;
use crate::end::Speech;
use crate::venue::Line;

/// A millisecond in ns.
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
/// Midnight of 30 January 2020 in New York.
pub(crate) const MIDNIGHT: u64 = 1_580_360_400 * SECOND;
/// The start of a world: 09:30.
pub(crate) const BEGIN: u64 = MIDNIGHT + 34_200 * SECOND;
/// The id of the feeds' service, and its name.
pub(crate) const SERVICE: u16 = 1;
pub(crate) const SERVICE_NAME: &str = "TAPELINE";
/// The provider services: of sources that publish unasked, and of those that are asked. See [`provided_id`].
pub(crate) const PROVIDED: [&str; 2] = ["NI", "IDN"];
/// The index of the one that publishes unasked, and of the one that is asked.
pub(crate) const UNASKED: usize = 0;
pub(crate) const ASKED: usize = 1;
/// Number of items of each provider service.
pub(crate) const ITEMS: usize = 6;

/// Number of names for items that publishers invent, one at a time: more than the plant has numbers for.
pub(crate) const NOVELTIES: u64 = 64;

pub(crate) const fn provided_id(service: usize) -> u16 {
    SERVICE + 1 + service as u16
}

/// The prefix of labels for the orders of a feed's instruments.
const ORDERS: &str = "ORDERS";

/// Limit of feeds of a plant.
pub(crate) const FEEDS: usize = 2;

/// The label of an item, unique across services and domains. Prices of the feeds have their name as the label.
pub(crate) fn called(service: u16, domain: Domain, name: &str) -> String {
    if domain == Domain::MARKET_BY_ORDER { orders(name) } else { label(service, name) }
}

/// The label of the orders of a feed's instrument.
pub(crate) fn orders(name: &str) -> String {
    format!("{ORDERS}/{name}")
}

/// The label of an item of prices.
pub(crate) fn label(service: u16, name: &str) -> String {
    let provided = usize::from(service).checked_sub(usize::from(SERVICE) + 1);
    match provided.and_then(|service| PROVIDED.get(service)) {
        Some(service) => format!("{service}/{name}"),
        None => name.to_owned(),
    }
}

/// The service and name of the item with this label.
pub(crate) fn of_label(label: &str) -> (&str, &str) {
    match label.split_once('/') {
        Some((ORDERS, name)) => (SERVICE_NAME, name),
        Some(parts) => parts,
        None => (SERVICE_NAME, label),
    }
}

pub(crate) fn domain_of(label: &str) -> Domain {
    let is_of_orders = label.split_once('/').is_some_and(|(first, _)| first == ORDERS);
    if is_of_orders { Domain::MARKET_BY_ORDER } else { Domain::MARKET_PRICE }
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The behaviour of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It reads everything, over a good network and without faults. Other clients must never harm it.
    Prompt,
    /// It reads everything, and its network has faults.
    Ordinary,
    /// It reads this number of bytes at a time.
    Slow { bytes: usize },
    /// It does not read.
    Deaf,
}

/// The journal settings of a plant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    pub(crate) durability: Durability,
    pub(crate) on_failure: OnFailure,
}

/// A fault of a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Illness {
    /// The disk is full after this number of further bytes.
    Full {
        bytes: u64,
    },
    ReadOnly,
    /// It accepts writes, but a sync fails.
    Broken,
    /// A sync takes this time.
    Slow {
        sync_ns: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The plant's thread does not run.
    PlantStalls { ns: u64 },
    /// The hub's thread does not run.
    HubStalls { ns: u64 },
    /// The hub's own process, if it has one, ends, and another one joins late.
    HubRestarts { ns: u64 },
    /// The process of both crashes and restarts after a while.
    Crash { ns: u64 },
    /// The machine of both stops and restarts after a while: data that was not synced may be lost.
    MachineStops { ns: u64 },
    /// The journal's disk has a fault for a while.
    DiskFalls { illness: Illness, ns: u64 },
    /// A client's connection breaks.
    Break { client: usize },
    /// The connection becomes half-open.
    HalfOpen { client: usize },
    /// Nothing arrives at the client for a while.
    Stall { client: usize, ns: u64 },
    /// A client does nothing for a while.
    Sleeps { client: usize, ns: u64 },
    /// A client ends, and another one takes its place.
    Restarts { client: usize },
    /// An exchange sends nothing for a while.
    Silence { feed: usize, ns: u64 },
    /// An exchange sends many packets at once.
    Burst { feed: usize, packets: u64 },
    /// An exchange begins a new session, with or without an end of the old one.
    NewSession { feed: usize, says_so: bool },
    /// A line is dead for a while.
    LineDies { feed: usize, line: usize, ns: u64 },
    /// An OMM source ends and returns after a while.
    SourceDies { source: usize, ns: u64 },
    /// The source's connection breaks.
    SourceBreaks { source: usize },
    /// The connection becomes half-open.
    SourceHalfOpen { source: usize },
    /// An exchange's retransmission server is dead for a while.
    ServerDies { feed: usize, ns: u64 },
}

impl Fault {
    /// The source that the fault hits.
    const fn source(&self) -> Option<usize> {
        match *self {
            Self::SourceDies { source, .. }
            | Self::SourceBreaks { source }
            | Self::SourceHalfOpen { source } => Some(source),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) feeds: usize,
    pub(crate) symbols: u16,
    pub(crate) lines: Vec<[Line; 2]>,
    /// Faults of retransmitted datagrams.
    pub(crate) server_line: Line,
    pub(crate) every_message: bool,
    /// The approximate limit of live orders, if the feeds' orders are published too.
    pub(crate) orders: Option<u32>,
    pub(crate) recovers: bool,
    pub(crate) slow: SlowPolicy,
    /// How long an update may wait; 0 means as long as the other limits allow.
    pub(crate) slow_age_ms: u64,
    pub(crate) waits_for_unknown: bool,
    pub(crate) clients: Vec<Manner>,
    /// The protocol of each client.
    pub(crate) speech: Vec<Speech>,
    /// Number of sources of each provider service.
    pub(crate) sources: [usize; PROVIDED.len()],
    /// The policy for several interactive sources.
    pub(crate) policy: Policy,
    /// The policy for several publishers.
    pub(crate) sharing: Sharing,
    /// Number of items that the plant has numbers for, in addition to the feeds': more than publishers have and
    /// clients can request at once, and fewer than there are names.
    pub(crate) numbers: usize,
    /// The handling of posts to the provider services.
    pub(crate) posts: Posts,
    /// The time at which the access rules change, in ns since the start; `None` if there are no rules.
    pub(crate) rules: Option<u64>,
    /// Whether images of providers' items are stored.
    pub(crate) is_cached: bool,
    /// The hub runs in its own process: it loses its place on the ring when it stalls for too long, and cannot
    /// ask the sources for anything.
    pub(crate) is_apart: bool,
    /// The plant stores images for a hub that has lost its place or joins late.
    pub(crate) keeps_images: bool,
    /// The journal settings, if there is a journal.
    pub(crate) keeping: Option<Keeping>,
    pub(crate) hostile: usize,
    /// Faults with their times in ns since the start, in order.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Duration of the faults.
    pub(crate) trouble_ns: u64,
    /// Time limit after the faults until everything has recovered.
    pub(crate) calm_ns: u64,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::of(seed, 1);
        let chance = &mut chance;
        let feeds = if chance.one_in(4) { FEEDS } else { 1 };
        let lines = (0..feeds).map(|_| [line(chance), line(chance)]).collect();
        let server_line = line(chance);
        let (bytes, messages) = (chance.within(8, 128) as usize * 1024, chance.within(100, 2_000) as usize);
        let slow = match chance.below(6) {
            0..3 => SlowPolicy::Conflate,
            3 => SlowPolicy::Cut { bytes, messages },
            4 => SlowPolicy::DropWithGap { bytes, messages },
            _ => SlowPolicy::Block { bytes, messages },
        };
        let mut clients = vec![Manner::Prompt; chance.within(1, 2) as usize];
        for _ in 0..chance.within(1, 4) {
            clients.push(match chance.below(6) {
                0 => Manner::Deaf,
                1 | 2 => Manner::Slow { bytes: chance.within(20, 400) as usize },
                _ => Manner::Ordinary,
            });
        }
        let trouble_ns = chance.within(2, 5) * SECOND;
        let mut plan = Self {
            seed,
            feeds,
            symbols: chance.within(2, 10) as u16,
            lines,
            server_line,
            every_message: chance.one_in(4),
            orders: None,
            recovers: !chance.one_in(5),
            slow,
            slow_age_ms: if chance.one_in(3) { chance.within(50, 1_000) } else { 0 },
            waits_for_unknown: chance.one_in(2),
            speech: Vec::new(),
            clients,
            sources: [chance.below(3) as usize, chance.below(3) as usize],
            policy: [Policy::First, Policy::Balance, Policy::Warm][chance.index(3)],
            sharing: Sharing::First,
            numbers: PROVIDED.len() * ITEMS + chance.within(20, 28) as usize,
            posts: [Posts::Refuse, Posts::Forward, Posts::Reflect][chance.index(3)],
            rules: chance.one_in(3).then(|| chance.below(trouble_ns)),
            is_cached: !chance.one_in(3),
            is_apart: false,
            keeps_images: false,
            keeping: None,
            hostile: chance.below(3) as usize,
            faults: Vec::new(),
            trouble_ns,
            calm_ns: 6 * SECOND,
        };
        let faults = chance.below(16);
        plan.faults = (0..faults).map(|_| (chance.below(trouble_ns), plan.fault(chance))).collect();
        plan.set_apart(chance);
        plan.set_images(&mut Chance::of(seed, 8));
        plan.orders = chance.one_in(6).then(|| chance.within(20, 300) as u32);
        plan.speech = plan.clients.iter().map(|_| speech(chance)).collect();
        plan.set_keeping(&mut Chance::of(seed, 4));
        plan.faults.sort_by_key(|(at, _)| *at);
        plan.sharing = if Chance::of(seed, 7).one_in(3) { Sharing::First } else { Sharing::Merge };
        plan
    }

    /// In a third of the worlds there is a journal, with faults of its disk.
    fn set_keeping(&mut self, chance: &mut Chance) {
        // A hub in its own process cannot see which ticks are on disk.
        let may_sync = !self.is_apart;
        self.keeping = chance.one_in(3).then(|| Keeping {
            durability: if may_sync && !chance.one_in(4) { Durability::Synced } else { Durability::Written },
            on_failure: if chance.one_in(2) { OnFailure::Stop } else { OnFailure::Continue },
        });
        if self.keeping.is_none() {
            return;
        }
        for _ in 0..chance.within(1, 4) {
            let ns = chance.within(20, 1_500) * MS;
            let fault = match chance.below(8) {
                0 | 1 => Fault::MachineStops { ns },
                2 => Fault::Crash { ns },
                3 => Fault::DiskFalls { illness: Illness::Full { bytes: chance.below(40_000) }, ns },
                4 => Fault::DiskFalls { illness: Illness::ReadOnly, ns },
                5 => Fault::DiskFalls { illness: Illness::Broken, ns },
                _ => {
                    let sync_ns = chance.within(1, 80) * MS;
                    Fault::DiskFalls { illness: Illness::Slow { sync_ns }, ns }
                }
            };
            self.faults.push((chance.below(self.trouble_ns), fault));
        }
    }

    /// In some worlds the hub has its own process, which stalls occasionally.
    fn set_apart(&mut self, chance: &mut Chance) {
        self.is_apart = chance.one_in(8);
        if self.is_apart {
            (self.sources[ASKED], self.posts) = (0, Posts::Refuse);
            let sources = self.sources[UNASKED];
            // Removes faults of sources that no longer exist.
            self.faults.retain(|(_, fault)| fault.source().is_none_or(|source| source < sources));
            for _ in 0..chance.within(1, 3) {
                let stall = Fault::HubStalls { ns: chance.within(200, 600) * MS };
                self.faults.push((chance.below(self.trouble_ns), stall));
            }
        }
    }

    /// In half of those worlds the plant stores images, and in most of these another hub joins late.
    fn set_images(&mut self, chance: &mut Chance) {
        self.keeps_images = self.is_apart && chance.one_in(2);
        if self.keeps_images {
            for _ in 0..chance.below(3) {
                let restart = Fault::HubRestarts { ns: chance.within(20, 1_500) * MS };
                self.faults.push((chance.below(self.trouble_ns), restart));
            }
        }
    }

    /// A world without faults, for one prompt client of one feed.
    pub(crate) fn calm(seed: u64) -> Self {
        let line = Line { delay: (50_000, 50_000), ..Line::default() };
        Self {
            feeds: 1,
            lines: vec![[line; 2]],
            server_line: line,
            every_message: false,
            recovers: true,
            slow: SlowPolicy::Conflate,
            clients: vec![Manner::Prompt],
            sources: [0; PROVIDED.len()],
            hostile: 0,
            rules: None,
            is_apart: false,
            keeps_images: false,
            faults: Vec::new(),
            trouble_ns: 2 * SECOND,
            ..Self::of(seed)
        }
    }

    fn fault(&self, chance: &mut Chance) -> Fault {
        let feed = chance.index(self.feeds);
        // The first client is prompt and gets no faults.
        let client = chance.index(self.clients.len());
        let some = chance.within(20, 1_500) * MS;
        let sources: usize = self.sources.iter().sum();
        let source = chance.index(sources);
        match chance.below(if sources > 0 { 26 } else { 20 }) {
            20..22 => Fault::SourceDies { source, ns: some },
            22..24 => Fault::SourceBreaks { source },
            24..26 => Fault::SourceHalfOpen { source },
            0 => Fault::PlantStalls { ns: some / 3 },
            1 => Fault::HubStalls { ns: some / 3 },
            2 => Fault::Crash { ns: some },
            3 | 4 => Fault::Break { client },
            5 => Fault::HalfOpen { client },
            6 | 7 => Fault::Stall { client, ns: some },
            8 => Fault::Sleeps { client, ns: some },
            9 => Fault::Restarts { client },
            10 | 11 => Fault::Silence { feed, ns: some },
            12 | 13 => Fault::Burst { feed, packets: chance.within(5, 60) },
            14 => Fault::NewSession { feed, says_so: chance.one_in(2) },
            15..18 => Fault::LineDies { feed, line: chance.index(2), ns: some },
            _ => Fault::ServerDies { feed, ns: some },
        }
    }
}

fn line(chance: &mut Chance) -> Line {
    let least = chance.within(20, 400) * 1_000;
    // On some lines more than the time between packets: then packets overtake one another.
    let spread = if chance.one_in(3) { 12 * MS } else { 100_000 };
    Line {
        loss: if chance.one_in(2) { chance.below(120) } else { 0 },
        twice: if chance.one_in(2) { chance.below(100) } else { 0 },
        delay: (least, least + spread),
        dead_until: 0,
    }
}

/// The protocol of a client; half of the clients use plain RWF.
pub(crate) fn speech(chance: &mut Chance) -> Speech {
    match chance.below(10) {
        0 => Speech::RwfZlib,
        1 => Speech::RwfLz4,
        2 => Speech::WebSocketRwf,
        3 => Speech::Json,
        4 => Speech::JsonDeflated,
        _ => Speech::Rwf,
    }
}
