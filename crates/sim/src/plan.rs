//! What a seed decides: how large the world is, who its clients are, and what goes wrong when.

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
/// A second in ns.
pub(crate) const SECOND: u64 = 1_000 * MS;
/// New York's midnight of the 30th of January 2020.
pub(crate) const MIDNIGHT: u64 = 1_580_360_400 * SECOND;
/// When a world begins: at half past nine.
pub(crate) const BEGIN: u64 = MIDNIGHT + 34_200 * SECOND;
/// The number of the feeds' service, and its name.
pub(crate) const SERVICE: u16 = 1;
pub(crate) const SERVICE_NAME: &str = "TAPELINE";
/// The services of providers: of those that publish unasked, and of those that are asked. Their numbers follow the feeds'.
pub(crate) const PROVIDED: [&str; 2] = ["NI", "IDN"];
/// Of those, the one that publishes unasked, and the one that is asked.
pub(crate) const UNASKED: usize = 0;
pub(crate) const ASKED: usize = 1;
/// Items of each of them.
pub(crate) const ITEMS: usize = 6;

/// Names of items that publishers invent and withdraw again, one at a time: more than the plant has numbers for.
pub(crate) const NOVELTIES: u64 = 64;

/// The number of a service of providers.
pub(crate) const fn provided_id(service: usize) -> u16 {
    SERVICE + 1 + service as u16
}

/// What the orders of a feed's instruments stand under where their prices have their names.
const ORDERS: &str = "ORDERS";

/// Feeds of a plant at most.
pub(crate) const FEEDS: usize = 2;

/// What an item is called where services and domains are told apart: prices of the feeds by their names alone.
pub(crate) fn called(service: u16, domain: Domain, name: &str) -> String {
    if domain == Domain::MARKET_BY_ORDER { orders(name) } else { label(service, name) }
}

/// What the orders of a feed's instrument are called.
pub(crate) fn orders(name: &str) -> String {
    format!("{ORDERS}/{name}")
}

/// What an item of prices is called.
pub(crate) fn label(service: u16, name: &str) -> String {
    let provided = usize::from(service).checked_sub(usize::from(SERVICE) + 1);
    match provided.and_then(|service| PROVIDED.get(service)) {
        Some(service) => format!("{service}/{name}"),
        None => name.to_owned(),
    }
}

/// Service and name of an item that is called so.
pub(crate) fn of_label(label: &str) -> (&str, &str) {
    match label.split_once('/') {
        Some((ORDERS, name)) => (SERVICE_NAME, name),
        Some(parts) => parts,
        None => (SERVICE_NAME, label),
    }
}

/// The domain of an item that is called so.
pub(crate) fn domain_of(label: &str) -> Domain {
    let is_of_orders = label.split_once('/').is_some_and(|(first, _)| first == ORDERS);
    if is_of_orders { Domain::MARKET_BY_ORDER } else { Domain::MARKET_PRICE }
}

/// So many milliseconds.
pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// What a client is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It reads what comes, over a good network, and nothing ever happens to it: it is never to be harmed by others.
    Prompt,
    /// It reads what comes, and things happen to its network.
    Ordinary,
    /// It reads so many bytes at a time.
    Slow { bytes: usize },
    /// It does not read.
    Deaf,
}

/// How a plant keeps what it publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    pub(crate) durability: Durability,
    pub(crate) on_failure: OnFailure,
}

/// What is wrong with a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Illness {
    /// So many bytes go onto it still.
    Full {
        bytes: u64,
    },
    ReadOnly,
    /// It takes writes, and cannot keep them.
    Broken,
    /// A sync takes so long.
    Slow {
        sync_ns: u64,
    },
}

/// Something that goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The plant's thread gets no processor.
    PlantStalls { ns: u64 },
    /// The hub's thread gets none.
    HubStalls { ns: u64 },
    /// The hub's process, where it has one of its own, ends, and another one comes late.
    HubRestarts { ns: u64 },
    /// The process of both dies, and begins anew after a while.
    Crash { ns: u64 },
    /// The machine of both stops, and begins anew after a while: what it had not synced may be gone.
    MachineStops { ns: u64 },
    /// The journal's disk is ill for a while.
    DiskFalls { illness: Illness, ns: u64 },
    /// A client's connection breaks.
    Break { client: usize },
    /// It goes on in silence.
    HalfOpen { client: usize },
    /// Nothing arrives at the client for a while.
    Stall { client: usize, ns: u64 },
    /// A client does nothing for a while.
    Sleeps { client: usize, ns: u64 },
    /// A client dies, and another one takes its place.
    Restarts { client: usize },
    /// An exchange says nothing for a while.
    Silence { feed: usize, ns: u64 },
    /// An exchange says much at once.
    Burst { feed: usize, packets: u64 },
    /// An exchange begins a new session, with a word to the old one or without.
    NewSession { feed: usize, says_so: bool },
    /// A line is dead for a while.
    LineDies { feed: usize, line: usize, ns: u64 },
    /// A source of OMM dies, and is back after a while.
    SourceDies { source: usize, ns: u64 },
    /// Its connection breaks.
    SourceBreaks { source: usize },
    /// It goes on in silence.
    SourceHalfOpen { source: usize },
    /// An exchange's server of what was missed is dead for a while.
    ServerDies { feed: usize, ns: u64 },
}

impl Fault {
    /// The source that it happens to.
    const fn source(&self) -> Option<usize> {
        match *self {
            Self::SourceDies { source, .. }
            | Self::SourceBreaks { source }
            | Self::SourceHalfOpen { source } => Some(source),
            _ => None,
        }
    }
}

/// All of it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) feeds: usize,
    pub(crate) symbols: u16,
    pub(crate) lines: Vec<[Line; 2]>,
    /// Of recovery's datagrams.
    pub(crate) server_line: Line,
    pub(crate) every_message: bool,
    /// Whether the feeds' orders are published too, and how many there are at about the most.
    pub(crate) orders: Option<u32>,
    pub(crate) recovers: bool,
    pub(crate) slow: SlowPolicy,
    /// For how long an update may wait; 0 for as long as the other limits allow.
    pub(crate) slow_age_ms: u64,
    pub(crate) waits_for_unknown: bool,
    pub(crate) clients: Vec<Manner>,
    /// Of each, whether it speaks JSON on a WebSocket.
    pub(crate) speech: Vec<Speech>,
    /// How many sources each of the services of providers has.
    pub(crate) sources: [usize; PROVIDED.len()],
    /// What several interactive ones are for.
    pub(crate) policy: Policy,
    /// What several of those that publish are for.
    pub(crate) sharing: Sharing,
    /// Items that the plant has numbers for, beside those of the feeds: more than publishers have and clients can want at once,
    /// and fewer than there are names.
    pub(crate) numbers: usize,
    /// What becomes of posts to them.
    pub(crate) posts: Posts,
    /// Whether some items are kept from some clients; and when others are from then on, ns from the beginning.
    pub(crate) rules: Option<u64>,
    /// Whether images of providers' items are kept.
    pub(crate) is_cached: bool,
    /// The hub runs in a process of its own: it loses its place on the ring when it stands still for long, and cannot ask the sources
    /// for anything.
    pub(crate) is_apart: bool,
    /// The plant keeps images for a hub that has lost its place or comes late.
    pub(crate) keeps_images: bool,
    /// How what is published is kept, if it is.
    pub(crate) keeping: Option<Keeping>,
    pub(crate) hostile: usize,
    /// When, in ns from the beginning; in order.
    pub(crate) faults: Vec<(u64, Fault)>,
    /// For how long things go wrong.
    pub(crate) trouble_ns: u64,
    /// How long it may take after that until everybody is well.
    pub(crate) calm_ns: u64,
}

impl Plan {
    /// The world of a seed.
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
        plan.faults.sort_by_key(|(at, _)| *at);
        plan.set_apart(chance);
        plan.set_images(&mut Chance::of(seed, 8));
        plan.orders = chance.one_in(6).then(|| chance.within(20, 300) as u32);
        plan.speech = plan.clients.iter().map(|_| speech(chance)).collect();
        plan.set_keeping(&mut Chance::of(seed, 4));
        plan.sharing = if Chance::of(seed, 7).one_in(3) { Sharing::First } else { Sharing::Merge };
        plan
    }

    /// In a third of the worlds there is a journal, and things happen to its disk.
    fn set_keeping(&mut self, chance: &mut Chance) {
        // Who is elsewhere cannot see what is on disk.
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
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// In some worlds the hub has a process of its own, and stands still now and then.
    fn set_apart(&mut self, chance: &mut Chance) {
        self.is_apart = chance.one_in(8);
        if self.is_apart {
            (self.sources[ASKED], self.posts) = (0, Posts::Refuse);
            let sources = self.sources[UNASKED];
            // Those that were there may have been asked for.
            self.faults.retain(|(_, fault)| fault.source().is_none_or(|source| source < sources));
            for _ in 0..chance.within(1, 3) {
                let stall = Fault::HubStalls { ns: chance.within(200, 600) * MS };
                self.faults.push((chance.below(self.trouble_ns), stall));
            }
            self.faults.sort_by_key(|(at, _)| *at);
        }
    }

    /// In half of those worlds the plant keeps images, and in most of these another hub comes late.
    fn set_images(&mut self, chance: &mut Chance) {
        self.keeps_images = self.is_apart && chance.one_in(2);
        if self.keeps_images {
            for _ in 0..chance.below(3) {
                let restart = Fault::HubRestarts { ns: chance.within(20, 1_500) * MS };
                self.faults.push((chance.below(self.trouble_ns), restart));
            }
            self.faults.sort_by_key(|(at, _)| *at);
        }
    }

    /// A world in which nothing goes wrong, for one prompt client of one feed.
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
        // The first client is prompt: nothing happens to it.
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

/// What a line is like.
fn line(chance: &mut Chance) -> Line {
    let least = chance.within(20, 400) * 1_000;
    // More than from one packet to the next on some: they overtake one another.
    let spread = if chance.one_in(3) { 12 * MS } else { 100_000 };
    Line {
        loss: if chance.one_in(2) { chance.below(120) } else { 0 },
        twice: if chance.one_in(2) { chance.below(100) } else { 0 },
        delay: (least, least + spread),
        dead_until: 0,
    }
}

/// Half of the clients speak as most do.
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
