//! The plant's configuration: one TOML file, checked completely before anything is opened.
//!
//! Every error names the file, the line and the column, states what was expected, and gives a hint.

pub(crate) mod access;
mod aeron;
mod bridge;
mod faults;
pub(crate) mod hub;
mod journal;
mod kdb;
mod lease;
mod otlp;
mod port_conflicts;
pub(crate) mod recovery;
mod simulated;
mod source;
pub(crate) mod sources;
mod symbols;
mod venue;
pub(crate) mod web;
mod zeromq;

use std::net::SocketAddrV4;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::civil::Date;
use serde::Deserialize;
use tapeline_console::{Hinted, arguments, paths, trading_day};
use tapeline_feed::Protocol;
use tapeline_hub::Posts;
use tapeline_measure::{Clock, Nanos};
use tapeline_node::bridge::BridgeConfig;
use tapeline_node::config::{Config, Feed, Line, Receive, Recording};
use tapeline_node::config::{MAX_ITEMS, RECEIVE_BUFFER, REORDER_TIME, RING_BYTES};
use tapeline_node::config::{STALE_AFTER, STALL_LIMIT, VENUE_STALE_AFTER};
use tapeline_node::hub::HubConfig;
use tapeline_node::image_server::ImageServerConfig;
use tapeline_node::upstream::UpstreamConfig;
use tapeline_omm::Dictionary;
use tapeline_plant::{ConsolidationSettings, PublishPolicy};
use tapeline_wire::pool;
use tapeline_wire::udp::MAX_WAIT;
use toml::Spanned;

pub(crate) use self::faults::check;
pub(crate) use self::simulated::SimulatedFeed;
pub(crate) use self::source::Source;
use self::source::span;
use crate::tick::config::RawTickerplant;

/// A sample that `tapeline plant sample` prints, and that the tests check.
pub(crate) const SAMPLE: &str = include_str!("sample.toml");

/// Maximum number of feeds of a plant, and of lines of a feed.
const MAX_FEEDS: usize = 64;
const MAX_LINES: usize = 8;
/// Maximum number of messages that may wait for a missing one: some 40 MB.
const MAX_REORDER: usize = 1 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    plant: RawPlant,
    #[serde(default)]
    feed: Vec<RawFeed>,
    nbbo: Option<symbols::RawNbbo>,
    hub: Option<hub::RawHub>,
    journal: Option<journal::RawJournal>,
    kdb: Option<RawTickerplant>,
    #[serde(default)]
    service: Vec<sources::RawService>,
    #[serde(default)]
    provider: Vec<sources::RawProvider>,
    publishers: Option<sources::RawPublishers>,
    bridge: Option<bridge::RawBridge>,
    #[serde(default)]
    upstream: Vec<Spanned<bridge::RawUpstream>>,
    lease: Option<lease::RawLease>,
    aeron: Option<Spanned<aeron::RawAeron>>,
    otlp: Option<otlp::RawOtlp>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPlant {
    name: Option<Spanned<String>>,
    ring: Spanned<String>,
    ring_size: Option<Spanned<String>>,
    stall_limit: Option<Spanned<String>>,
    #[serde(default)]
    keep_ring: bool,
    ring_removed: Option<Spanned<String>>,
    publish: Option<Spanned<String>>,
    wait: Option<Spanned<String>>,
    receive: Option<Spanned<String>>,
    pool_slots: Option<Spanned<usize>>,
    pool_policy: Option<Spanned<String>>,
    cpu: Option<Spanned<usize>>,
    max_items: Option<Spanned<usize>>,
    reserved_items: Option<Spanned<usize>>,
    images: Option<Spanned<String>>,
    standby_size: Option<Spanned<String>>,
    #[serde(default)]
    shared_items: bool,
}

/// The checked settings of `[plant]` that depend on no other table.
struct OfPlant {
    /// `None` if the name is not valid.
    ring: Option<tapeline_ring::Name>,
    ring_bytes: usize,
    publish: PublishPolicy,
    ends_without_name: bool,
    spin: bool,
    receive: Receive,
    stall_limit: Duration,
    cpu: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFeed {
    name: Spanned<String>,
    protocol: Spanned<String>,
    date: Option<Spanned<String>>,
    start: Option<Spanned<String>>,
    restart: Option<Spanned<String>>,
    reorder_messages: Option<Spanned<usize>>,
    reorder_time: Option<Spanned<String>>,
    stale_after: Option<Spanned<String>>,
    receive_buffer: Option<Spanned<String>>,
    symbols: Option<Spanned<Vec<Spanned<String>>>>,
    symbols_file: Option<Spanned<String>>,
    market_by_order: Option<Spanned<bool>>,
    venue: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    pace: Option<Spanned<String>>,
    simulate: Option<Spanned<String>>,
    url: Option<Spanned<String>>,
    snapshot_url: Option<Spanned<String>>,
    ca: Option<Spanned<PathBuf>>,
    suffix: Option<Spanned<String>>,
    recovery: Option<recovery::RawRecovery>,
    #[serde(default)]
    line: Vec<RawLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLine {
    name: Option<Spanned<String>>,
    address: Spanned<String>,
    interface: Option<Spanned<String>>,
    source: Option<Spanned<String>>,
}

/// Reads and checks a configuration file.
///
/// # Errors
/// One error for the first fault, with file, line, column and hint.
pub(crate) fn read(path: &Path) -> anyhow::Result<Config> {
    read_with_exchanges(path).map(|(config, _)| config)
}

/// Reads and checks a configuration file. Returns the simulated exchanges to start too.
///
/// # Errors
/// One error for the first fault, with file, line, column and hint.
pub(crate) fn read_with_exchanges(path: &Path) -> anyhow::Result<(Config, Vec<SimulatedFeed>)> {
    read_all(path).map_err(|faults| first(path, faults))
}

/// Reads and checks a configuration file. Returns the simulated exchanges to start too.
///
/// # Errors
/// All faults, each with file, line, column and hint.
pub(crate) fn read_all(path: &Path) -> Result<(Config, Vec<SimulatedFeed>), Vec<anyhow::Error>> {
    let text = std::fs::read_to_string(path).with_context(|| {
        let hint = "`tapeline plant sample > plant.toml` writes a commented one to start from";
        Hinted::new(format!("cannot read {}", paths::shown(&path)), hint)
    });
    check(path, &text.map_err(|fault| vec![fault])?)
}

/// The first of several faults, and how many more there are.
fn first(path: &Path, faults: Vec<anyhow::Error>) -> anyhow::Error {
    let more = faults.len().saturating_sub(1);
    let first =
        faults.into_iter().next().unwrap_or_else(|| anyhow::anyhow!("cannot use {}", paths::shown(&path)));
    if more == 0 {
        return first;
    }
    let hints = tapeline_console::failure::hints(&first).join("; ");
    let hint = format!(
        "{hints}\nhint: {more} more faults: `tapeline plant check {}` lists them all",
        paths::shown(&path)
    );
    Hinted::new(format!("{first:#}"), hint).into()
}

/// Gives the hub the services of the providers; its own has a name only if feeds or kdb+ clients publish.
fn set_services(hub: &mut HubConfig, services: &[tapeline_hub::Service], has_own: bool) {
    if !has_own {
        hub.settings.service.clear();
    }
    hub.settings.services = services.to_vec();
    if let Some(zeromq) = &mut hub.zeromq {
        let services = hub.settings.services.iter();
        zeromq.services.extend(services.map(|service| (service.id, service.name.clone())));
    }
}

/// Checks the text of a configuration.
#[cfg(test)]
pub(crate) fn parse(file: &str, text: &str) -> anyhow::Result<Config> {
    // Only the first fault: tests compare one.
    let checked = check(Path::new(file), text).map(|(config, _)| config);
    checked.map_err(|faults| faults.into_iter().next().expect("a fault"))
}

impl Source<'_> {
    /// Adds errors to the faults; `None` if they leave no complete configuration.
    fn check(&self, raw: RawConfig) -> Option<Config> {
        let plant = raw.plant;
        let OfPlant { ring, ring_bytes, publish, ends_without_name, spin, receive, stall_limit, cpu } =
            self.of_plant(&plant);
        let of_sources = sources::RawSources {
            services: raw.service,
            providers: raw.provider,
            publishers: raw.publishers,
        };
        let count = raw.feed.len();
        let others = (raw.kdb.is_some(), raw.bridge.is_some(), raw.lease.is_some());
        let is_below = !raw.upstream.is_empty();
        let mut upstream = self.input(raw.upstream, (count, &of_sources), others);
        let has_own = count > 0 || raw.kdb.is_some() || upstream.is_some();
        let several = count > 1 && !plant.shared_items;
        let feeds = self.feeds(raw.feed, publish, several);
        let max_items = plant.max_items.as_ref().map_or(MAX_ITEMS, |items| *items.get_ref());
        // With an invalid feed left out, checks over all feeds would report wrong faults.
        let all = Some(&feeds).filter(|feeds| feeds.len() == count);
        let nbbo = all.and_then(|feeds| self.over_all(feeds, several, raw.nbbo.as_ref(), max_items));
        let name = plant.name.map_or_else(|| "TAPELINE".into(), Spanned::into_inner);
        let mut hub = raw.hub.and_then(|hub| self.sound(self.hub(hub, &name, max_items)));
        let own = hub.as_ref().map_or((1, &*name), |hub| (hub.settings.service_id, &hub.settings.service));
        let beside = sources::Beside {
            // Rows that kdb+ clients publish belong to the feeds' service too.
            feeds: Some(own).filter(|_| has_own),
            // One more channel number is that of the best bid and offer.
            channel: count as u16 + 1,
            max_items,
            dictionary: hub.as_ref().map(|hub| hub.settings.dictionary.clone()),
            posts: hub.as_ref().map_or(Posts::Refuse, |hub| hub.settings.posts),
            standby: self.standby(&plant.standby_size),
        };
        let (sources, of_hub) = self.services_and_sources(&of_sources, &beside, is_below);
        hub.iter_mut().for_each(|hub| set_services(hub, &of_hub, has_own));
        let service_id = hub.as_ref().map_or(1, |hub| hub.settings.service_id);
        let dictionary = hub.as_ref().map(|hub| hub.settings.dictionary.clone());
        let services = sources.as_ref().map_or(0, |sources| sources.settings.services.len());
        let beside = kdb::BesideTickerplant {
            dictionary: dictionary.as_deref().unwrap_or_else(|| Dictionary::builtin()),
            max_items,
            has_feeds: count > 0 || upstream.is_some(),
            channel: (count + 1 + services) as u16,
        };
        let kdb = raw.kdb.as_ref().and_then(|kdb| self.kdb(kdb, &beside));
        let sources_of_ticks = (count + usize::from(kdb.is_some()), services);
        let reserved_items = self.reserved_items(plant.reserved_items.as_ref(), max_items, sources_of_ticks);
        self.ports_apart(hub.as_ref(), sources.as_ref(), kdb.as_ref());
        let ids = of_hub.iter().map(|service| service.id).chain([service_id]);
        let of_images = (max_items, ids.collect(), dictionary);
        let (images, mut bridge) = self.for_late(&plant.images, raw.bridge.as_ref(), of_images);
        Some(Config {
            lease: self.lease(raw.lease, (bridge.as_ref(), upstream.as_ref()), raw.journal.is_some()),
            term: None,
            aeron_driver: self.aeron(raw.aeron.as_ref(), bridge.as_mut(), upstream.as_mut()),
            bridge,
            upstream,
            otlp: raw.otlp.and_then(|otlp| self.sound(self.otlp(&otlp))),
            images,
            kdb,
            journal: raw.journal.as_ref().map(|journal| self.journal(journal)),
            nbbo,
            service_id,
            sources,
            hub,
            name,
            ring: ring?,
            ring_bytes,
            stall_limit,
            keep_ring: plant.keep_ring,
            ends_without_name,
            publish,
            spin,
            receive,
            cpu,
            max_items,
            reserved_items,
            feeds,
        })
    }

    /// The plant above, if there is one: without a lease it excludes every other input, and a bridge further down. Without one there are feeds or
    /// other inputs.
    fn input(
        &self,
        mut raw: Vec<Spanned<bridge::RawUpstream>>,
        (feeds, sources): (usize, &sources::RawSources),
        (has_kdb, has_bridge, has_lease): (bool, bool, bool),
    ) -> Option<UpstreamConfig> {
        let Some(span) = raw.first().map(Spanned::span) else {
            if feeds == 0 && sources.are_none() && !has_kdb || feeds > MAX_FEEDS {
                let what = format!("{feeds} feeds; 1 to {MAX_FEEDS} are expected");
                let hint = "a feed is a table [[feed]] with its [[feed.line]]s; with a [[service]] or [kdb] none is needed";
                self.fault(self.end(), what, hint);
            }
            return None;
        };
        let (count, has_inputs) = (raw.len(), feeds > 0 || sources.are_own());
        if count > 1 {
            let what = format!("{count} plants above; one is expected");
            self.fault(span, what, "two sequences cannot become one: a second plant below takes the other");
        } else if has_lease && !sources.are_none() {
            let what = "services are in a plant with a lease";
            self.fault(
                span,
                what,
                "only feeds move from one plant to the other; a plant of its own has the services",
            );
        } else if has_lease {
            // The lease decides which of them is used.
        } else if has_inputs {
            let what = "[[upstream]] brings the ticks of another plant, and this plant has other inputs too";
            self.fault(span, what, "feeds and providers belong in the plant above; a [[service]] without providers is one of its services");
        } else if has_bridge {
            let what = "[bridge] and [[upstream]] are in one plant";
            self.fault(span, what, "plants further down take their ticks from the plant that numbers them");
        }
        self.upstream(raw.swap_remove(0).into_inner())
    }

    fn feeds(&self, raw: Vec<RawFeed>, publish: PublishPolicy, several: bool) -> Vec<Feed> {
        raw.into_iter().filter_map(|feed| self.sound(self.feed(feed, publish, several))).collect()
    }

    /// The number of items that is reserved for each source, given the numbers of channels and services: by
    /// default, half of all items in equal parts.
    fn reserved_items(
        &self,
        given: Option<&Spanned<usize>>,
        max_items: usize,
        (channels, services): (usize, usize),
    ) -> usize {
        let sources = (channels + services).max(1);
        let usual = if sources > 1 { max_items / 2 / sources } else { 0 };
        let Some(given) = given else { return usual };
        // If there are feeds, services have at most half of all items.
        let of_services = if channels > 0 { max_items / 2 } else { max_items };
        let most = (max_items / sources).min(of_services / services.max(1));
        if *given.get_ref() > most {
            let what = format!(
                "reserved_items is {}, for each of {channels} feeds and {services} services of a plant with {max_items} items",
                given.get_ref()
            );
            let hint = format!("{most} at most, {usual} if left out; or raise max_items");
            self.fault(given.span(), what, hint);
        }
        *given.get_ref()
    }

    fn ring_size(&self, size: &Option<Spanned<String>>) -> anyhow::Result<usize> {
        let bytes = self.size(size, RING_BYTES)?;
        if bytes.is_power_of_two() && bytes >= 64 << 10 {
            return Ok(bytes);
        }
        let what = format!("ring_size is {bytes} bytes; a power of two from 64KiB is expected");
        Err(self.wrong(span(size), what, "ring_size = \"8MiB\" suits most feeds"))
    }

    /// Checks that involve all feeds. `nbbo`: the suffix of the symbols whose best bid and offer over the feeds is
    /// published.
    fn together(&self, feeds: &[Feed], several: bool, nbbo: Option<&str>) -> anyhow::Result<()> {
        if several {
            self.items_apart(feeds, nbbo)?;
        }
        let mut addresses: Vec<SocketAddrV4> =
            feeds.iter().flat_map(|feed| &feed.lines).map(|l| l.address).collect();
        addresses.sort_unstable();
        let twice = addresses.windows(2).find(|pair| pair.first() == pair.last()).and_then(<[_]>::first);
        if let Some(twice) = twice {
            let at = self.text.rfind(&twice.to_string()).unwrap_or(0);
            let what = format!("{twice} is the address of two lines");
            return Err(self.wrong(at..at, what, "each copy of a feed arrives at an address of its own"));
        }
        let lines: usize = feeds.iter().map(|feed| feed.lines.len()).sum();
        if lines > MAX_WAIT {
            let what = format!("{lines} lines in all; at most {MAX_WAIT} are expected");
            let hint = "give some of the feeds to a second plant with a ring of its own";
            return Err(self.wrong(self.end(), what, hint));
        }
        Ok(())
    }

    fn receive(&self, plant: &RawPlant) -> anyhow::Result<Receive> {
        let hint = "\"thread\" needs a core for each feed";
        let threads = self.one_of("receive", &plant.receive, [("inline", false), ("thread", true)], hint)?;
        let of_pool = [
            plant.pool_slots.as_ref().map(|slots| ("pool_slots", slots.span())),
            plant.pool_policy.as_ref().map(|policy| ("pool_policy", policy.span())),
        ];
        if let Some((key, span)) = of_pool.into_iter().flatten().next().filter(|_| !threads) {
            let what = format!("{key} is set, but there is no pool");
            return Err(self.wrong(span, what, "receive = \"thread\" makes one for each feed"));
        }
        let (usual, hint) = (pool::PoolSettings::default().slots, "a slot has 2 KiB and holds one datagram");
        let slots = self.number("pool_slots", &plant.pool_slots, usual, pool::MAX_SLOTS, hint)?;
        let policy = self.one_of(
            "pool_policy",
            &plant.pool_policy,
            [
                ("block", pool::Policy::Block),
                ("drop-newest", pool::Policy::DropNewest),
                ("heap", pool::Policy::Heap),
            ],
            "\"block\" leaves datagrams in the kernel's buffer",
        )?;
        let settings = pool::PoolSettings { slots, policy, ..pool::PoolSettings::default() };
        Ok(if threads { Receive::Thread(settings) } else { Receive::Inline })
    }

    /// Two feeds that list the same symbol each have an item for it: under one name, a subscriber would receive the
    /// quotes of both feeds in turns.
    fn items_apart(&self, feeds: &[Feed], nbbo: Option<&str>) -> anyhow::Result<()> {
        for (at, feed) in feeds.iter().enumerate() {
            let other = match feeds[..at].iter().find(|other| other.suffix == feed.suffix) {
                Some(other) => format!("feed {}", other.name),
                None if nbbo == Some(&feed.suffix) => "[nbbo]".to_owned(),
                None => continue,
            };
            let span = self.text.rfind(&format!("\"{}\"", feed.name)).unwrap_or(0);
            let what = format!(
                "feed {} and {other} would use one item name for a symbol that both have: AAPL{}",
                feed.name, feed.suffix
            );
            let hint = format!(
                "suffix = \".{}\" makes the names differ; shared_items = true in [plant] states that no symbol is in two feeds",
                if at == 0 { "A" } else { "B" }
            );
            return Err(self.wrong(span..span, what, hint));
        }
        Ok(())
    }

    fn feed(&self, mut raw: RawFeed, publish: PublishPolicy, several: bool) -> anyhow::Result<Feed> {
        let known = Protocol::named(raw.protocol.get_ref()).map_err(|_| {
            let what = format!("protocol \"{}\" is not known", raw.protocol.get_ref());
            let known: Vec<_> =
                Protocol::ALL.iter().map(|protocol| format!("\"{}\"", protocol.name())).collect();
            self.wrong(raw.protocol.span(), what, format!("this version reads {}", known.join(", ")))
        });
        let known = self.sound(known);
        let hint = "\"from-one\" reports the messages before the plant's start as a gap";
        let from_one = self.word("start", &raw.start, [("first-seen", false), ("from-one", true)], hint);
        let hint = "\"ignore\" takes repeated sequence numbers for duplicates, whatever their content";
        let restart = self.word("restart", &raw.restart, [("reset", true), ("ignore", false)], hint);
        let midnight = self.midnight(raw.date.as_ref())?;
        let hint = "stale_after = \"3s\" is the default, for a venue \"30s\": feeds send a heartbeat each second; \"0s\" is never";
        let stale_after = self.time(&raw.stale_after, arguments::duration, hint);
        let hint = "reorder_time = \"5ms\" is the default";
        let reorder_time = self.time(&raw.reorder_time, arguments::duration, hint);
        let receive_buffer = self.size_or(&raw.receive_buffer, RECEIVE_BUFFER);
        let file = known.and_then(|protocol| self.sound(self.recording(&raw, protocol))).flatten();
        self.check_lines(&raw, known);
        let reorder_messages = self.reorder_messages(&raw.reorder_messages, raw.recovery.is_some());
        let recovery = raw
            .recovery
            .take()
            .zip(known)
            .and_then(|(raw, protocol)| self.sound(self.recovery(raw, protocol.framing())));
        let lines = std::mem::take(&mut raw.line).into_iter().enumerate();
        let lines = lines.filter_map(|(at, line)| self.line(at, line)).collect();
        self.check_selection(&raw, known, publish);
        let keys = venue::VenueKeys::of(&mut raw);
        let venue = self.venue(raw.venue, raw.name.get_ref());
        let venue = self.or(venue, raw.name.get_ref().clone());
        let symbols = self.sound(self.symbols(raw.symbols, raw.symbols_file)).flatten();
        let stream =
            known.and_then(|protocol| self.sound(self.stream(&keys, protocol, symbols.as_ref()))).flatten();
        let suffix = self.suffix(raw.suffix, several.then_some(venue.as_str()))?;
        let feed = Feed {
            // A venue's symbols are subscribed.
            symbols: symbols.filter(|_| stream.is_none()),
            market_by_order: raw.market_by_order.is_some_and(Spanned::into_inner),
            suffix,
            venue,
            // An unknown protocol is reported above.
            protocol: known.unwrap_or(Protocol::ALL[0]),
            midnight,
            midnight_before: match raw.date {
                None => Some(|now| trading_day::midnight_before(now).ok()),
                Some(_) => None,
            },
            stale_after: stale_after.unwrap_or(if stream.is_some() {
                VENUE_STALE_AFTER
            } else {
                STALE_AFTER
            }),
            from_one,
            restart,
            recovery,
            reorder_messages,
            reorder_time: reorder_time.unwrap_or(REORDER_TIME),
            receive_buffer,
            name: raw.name.into_inner(),
            lines,
            file,
            stream,
        };
        self.simulate(raw.simulate.as_ref(), &feed);
        Ok(feed)
    }

    /// The settings of `[plant]` that depend on no other table.
    fn of_plant(&self, plant: &RawPlant) -> OfPlant {
        let hint = "letters, digits, dot, dash and underscore, at most 64 of them";
        let ring = tapeline_ring::Name::new(plant.ring.get_ref());
        let stall_hint = "stall_limit = \"1s\" is the default; \"0s\" waits for ever";
        OfPlant {
            ring: self.sound(ring.map_err(|error| self.wrong(plant.ring.span(), error, hint))),
            ring_bytes: self.or(self.ring_size(&plant.ring_size), RING_BYTES),
            publish: self.word(
                "publish",
                &plant.publish,
                [("changes", PublishPolicy::Changes), ("every-message", PublishPolicy::EveryMessage)],
                "\"changes\" gives a tick where a published field changes",
            ),
            ends_without_name: self.word(
                "ring_removed",
                &plant.ring_removed,
                [("warn", false), ("end", true)],
                "\"end\" ends the plant, so that a supervisor can start it again with a named ring",
            ),
            spin: self.spins("wait", &plant.wait),
            receive: self.or(self.receive(plant), Receive::Inline),
            stall_limit: self
                .time(&plant.stall_limit, arguments::duration, stall_hint)
                .unwrap_or(STALL_LIMIT),
            cpu: self.core(&plant.cpu),
        }
    }

    /// The server of images for late hubs, if the plant keeps images, and the bridge, which has images of its own.
    fn for_late(
        &self,
        size: &Option<Spanned<String>>,
        bridge: Option<&bridge::RawBridge>,
        (max_items, services, dictionary): (usize, Vec<u16>, Option<Arc<Dictionary>>),
    ) -> (Option<ImageServerConfig>, Option<BridgeConfig>) {
        let dictionary = dictionary.unwrap_or_else(|| Arc::new(Dictionary::builtin().clone()));
        let of = |bytes| ImageServerConfig {
            bytes,
            max_items,
            services: services.clone(),
            dictionary: dictionary.clone(),
        };
        (self.given_size(size).map(of), bridge.and_then(|bridge| self.bridge(bridge, of(0))))
    }

    /// The size of a standby plant's ring, and the place of that key.
    fn standby(&self, size: &Option<Spanned<String>>) -> Option<(usize, Range<usize>)> {
        Some((self.given_size(size)?, span(size)))
    }

    /// Checks all feeds together, and returns the settings of their best bids and offers.
    fn over_all(
        &self,
        feeds: &[Feed],
        several: bool,
        nbbo: Option<&symbols::RawNbbo>,
        max_items: usize,
    ) -> Option<ConsolidationSettings> {
        self.sound(self.together(feeds, several, nbbo.map(symbols::RawNbbo::suffix)));
        self.sound(self.nbbo(nbbo?, feeds, max_items))
    }

    /// The start of the trading day in New York: of today, unless a day is given.
    fn midnight(&self, date: Option<&Spanned<String>>) -> anyhow::Result<Nanos> {
        let today = || trading_day::midnight_before(Clock::calibrate().now());
        let Some(date) = date else { return today() };
        let day = date.get_ref().parse::<Date>().map_err(|error| {
            self.wrong(date.span(), error, "the trading day in New York, such as date = \"2026-11-20\"")
        });
        self.sound(day).map_or_else(today, trading_day::midnight_of)
    }

    /// A feed has lines or a file or a venue's stream.
    fn check_lines(&self, raw: &RawFeed, known: Option<Protocol>) {
        if let Some(protocol) = known.filter(|protocol| protocol.venue().is_some()) {
            return self.check_no_lines(raw, protocol);
        }
        let lines_expected = if raw.file.is_some() { 0..=0 } else { 1..=MAX_LINES };
        if !lines_expected.contains(&raw.line.len()) {
            let name = raw.name.get_ref();
            if let Some(file) = &raw.file {
                let what = format!("feed {name} has a file and lines");
                self.fault(file.span(), what, "a file replaces the lines");
            } else {
                let lines = raw.line.len();
                let what = format!("feed {name} has {lines} lines; 1 to {MAX_LINES} are expected");
                self.fault(raw.name.span(), what, "a line is a table [[feed.line]] with its address");
            }
        }
    }

    /// The number of messages that may wait for missing ones.
    fn reorder_messages(&self, count: &Option<Spanned<usize>>, has_recovery: bool) -> usize {
        // With recovery, all messages after a gap wait for it: a quarter of a second of a busy feed.
        let usual = if has_recovery { 65_536 } else { 4_096 };
        let hint =
            "reorder_messages = 4096 is the default, 65536 with recovery; the memory is taken at the start";
        self.or(self.number("reorder_messages", count, usual, MAX_REORDER, hint), usual)
    }

    /// The messages to publish must be messages that the protocol has.
    fn check_selection(&self, raw: &RawFeed, known: Option<Protocol>, publish: PublishPolicy) {
        if let Some(orders) = raw.market_by_order.as_ref().filter(|orders| *orders.get_ref())
            && let Some(protocol) = known.filter(|protocol| !protocol.has_orders())
        {
            let what = format!("protocol \"{}\" has no orders to publish", protocol.name());
            self.fault(orders.span(), what, "market_by_order is for feeds of single orders");
        }
        let filter = raw.symbols.as_ref().map(Spanned::span).or(raw.symbols_file.as_ref().map(Spanned::span));
        if publish == PublishPolicy::EveryMessage && known.is_some_and(|protocol| protocol.venue().is_some())
        {
            let what = "publish is \"every-message\", and a venue's messages can be longer than a tick";
            return self.fault(raw.protocol.span(), what, "set publish = \"changes\"");
        }
        if let Some(span) = filter
            && publish == PublishPolicy::EveryMessage
        {
            let what = "symbols are selected, but publish is \"every-message\"";
            self.fault(span, what, "set publish = \"changes\", or select no symbols");
        }
    }

    /// The file of a feed, if it has one.
    fn recording(&self, raw: &RawFeed, protocol: Protocol) -> anyhow::Result<Option<Recording>> {
        let Some(file) = &raw.file else {
            if let Some(pace) = &raw.pace {
                let hint = "pace sets how fast a file is read; messages from lines are taken as they arrive";
                return Err(self.wrong(pace.span(), "pace without a file", hint));
            }
            if protocol.framing().is_none() && protocol.venue().is_none() {
                let what = format!("protocol \"{}\" is read from a file", protocol.name());
                return Err(self.wrong(raw.protocol.span(), what, "such as file = \"day.dbn.zst\""));
            }
            return Ok(None);
        };
        let speed = match raw.pace.as_ref().map(|pace| pace.get_ref().as_str()) {
            None | Some("recorded") => Some(1.0),
            Some("fast") => None,
            Some(factor) => {
                let speed = factor.trim_end_matches('x').parse::<f64>().ok();
                let speed = speed.filter(|speed| speed.is_finite() && *speed > 0.0);
                Some(speed.ok_or_else(|| {
                    let what =
                        format!("pace is \"{factor}\"; \"recorded\", \"fast\" or a factor is expected");
                    self.wrong(
                        span(&raw.pace),
                        what,
                        "pace = \"100x\" is a hundred times as fast as it was recorded",
                    )
                })?)
            }
        };
        Ok(Some(Recording { path: self.beside(Path::new(file.get_ref())), speed }))
    }

    /// One line of a feed; errors go to the faults.
    fn line(&self, at: usize, raw: RawLine) -> Option<Line> {
        let address = raw.address.get_ref().parse::<SocketAddrV4>().map_err(|_| {
            let what = format!("address \"{}\" is not an IPv4 address with a port", raw.address.get_ref());
            self.wrong(raw.address.span(), what, "such as address = \"233.54.12.111:26477\"")
        });
        let address = self.sound(address);
        let source = match &raw.source {
            None => None,
            Some(source) => self.sound(source.get_ref().parse().map_err(|_| {
                let what = format!("source \"{}\" is not an IPv4 address", source.get_ref());
                self.wrong(source.span(), what, "leave source out to take datagrams from every sender")
            })),
        };
        if let (Some(source), Some(address)) = (&raw.source, address)
            && !address.ip().is_multicast()
        {
            let what = format!("a source can be chosen for a multicast group only, and {address} is not one");
            let hint = "leave source out; a firewall can refuse the datagrams of other senders";
            self.sound(Err::<(), _>(self.wrong(source.span(), what, hint)));
        }
        let interface = raw.interface.as_ref().map_or("127.0.0.1", |i| i.get_ref().as_str());
        let found = tapeline_wire::interface::find(interface).map_err(|error| {
            let span = raw.interface.as_ref().map_or_else(|| raw.address.span(), Spanned::span);
            let hint = "an interface is named by its address or its name, such as \"127.0.0.1\" or \"eth0\"";
            self.wrong(span, error, hint)
        });
        self.sound(found)?;
        Some(Line {
            // Beyond the letters there are too many lines, which is reported.
            name: raw
                .name
                .map_or_else(|| char::from(b'A' + (at % 26) as u8).to_string(), Spanned::into_inner),
            address: address?,
            interface: interface.to_owned(),
            source,
        })
    }
}

/// What the tests of several tables share.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A plant with one feed, in eight lines.
    pub(crate) const PLANT: &str = "[plant]\nring = \"r\"\n[[feed]]\nname = \"f\"\nprotocol = \"itch50-moldudp64\"\n\
                                    [[feed.line]]\naddress = \"239.1.1.1:1\"\ninterface = \"127.0.0.1\"\n";

    /// The configuration, or its first fault with the hint.
    pub(crate) fn checked(text: &str) -> Result<Config, String> {
        parse("plant.toml", text).map_err(|error| {
            let hint = error.chain().find_map(|e| e.downcast_ref::<Hinted>()).map_or("", Hinted::hint);
            format!("{error}\nhint: {hint}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        testing::checked(text).unwrap_err()
    }

    #[test]
    fn the_sample_is_a_valid_configuration() {
        let config = parse("sample.toml", SAMPLE).unwrap();
        assert_eq!(config.publish, PublishPolicy::Changes);
        assert_eq!(config.feeds.len(), 1);
        assert_eq!(config.feeds[0].lines.len(), 2);
        assert_eq!(config.feeds[0].lines[1].name, "B");
    }

    #[test]
    fn an_unknown_key_names_line_and_column_and_what_was_meant() {
        let text = "[plant]\nring = \"r\"\npulish = \"changes\"\n";
        let said = complaint(text);
        assert!(said.starts_with("plant.toml:3:1: unknown key `pulish`, expected one of"), "{said}");
        assert!(said.ends_with("hint: did you mean `publish`?"), "{said}");
    }

    #[test]
    fn a_bad_line_is_shown_with_what_was_expected() {
        let bad = testing::PLANT.replace("239.1.1.1:1", "239.1.1.1");
        let said = complaint(&bad);
        let expected = "plant.toml:7:11: address \"239.1.1.1\" is not an IPv4 address with a port";
        assert!(said.contains(expected), "{said}");
        let said =
            complaint(&testing::PLANT.replace("239.1.1.1:1\"", "127.0.0.1:1\"\nsource = \"10.0.0.1\""));
        assert!(
            said.contains("plant.toml:8:10: a source can be chosen for a multicast group only"),
            "{said}"
        );
        let said = complaint(&testing::PLANT.replace("127.0.0.1", "nosuch0"));
        assert!(said.contains("plant.toml:8:13:"), "{said}");
        assert!(said.contains("nosuch0") && said.contains("lo"), "{said}");
    }

    #[test]
    fn each_source_is_sure_of_its_part_of_the_items() {
        let feed = |number: u8| {
            format!(
                "[[feed]]\nname = \"{number}\"\nprotocol = \"itch50-moldudp64\"\n[[feed.line]]\naddress = \"239.1.1.{number}:1\"\n\
                 interface = \"127.0.0.1\"\n"
            )
        };
        let plant = |keys: &str| format!("[plant]\nring = \"r\"\nmax_items = 1000\n{keys}\n");
        let service = "[[service]]\nname = \"X\"\nid = 3\n[publishers]\n";
        let reserved = |text: &str| parse("plant.toml", text).unwrap().reserved_items;
        assert_eq!(reserved(&format!("{}{}", plant(""), feed(1))), 0);
        assert_eq!(reserved(&format!("{}{}{}", plant(""), feed(1), feed(2))), 250);
        assert_eq!(reserved(&format!("{}{}{}{service}", plant(""), feed(1), feed(2))), 166);
        assert_eq!(reserved(&format!("{}{}{}", plant("reserved_items = 500"), feed(1), feed(2))), 500);
        let said = complaint(&format!("{}{}{}", plant("reserved_items = 501"), feed(1), feed(2)));
        assert!(said.starts_with("plant.toml:4:18: reserved_items is 501, for each of 2 feeds"), "{said}");
        assert!(said.contains("hint: 500 at most, 250 if left out"), "{said}");
    }

    #[test]
    fn feeds_have_items_of_their_own_or_say_that_they_share_them() {
        let feed = |name: &str, more: &str| {
            format!(
                "[[feed]]\nname = \"{name}\"\nprotocol = \"itch50-moldudp64\"\n{more}\n[[feed.line]]\naddress = \
                 \"239.1.1.{}:1\"\ninterface = \"127.0.0.1\"\n",
                name.len()
            )
        };
        let plant = "[plant]\nring = \"r\"\n";
        let suffixes = |text: &str| {
            let config = parse("plant.toml", text).unwrap();
            config.feeds.into_iter().map(|feed| feed.suffix).collect::<Vec<_>>()
        };
        assert_eq!(suffixes(&format!("{plant}{}", feed("a", ""))), [""]);
        let two = format!("{plant}{}{}", feed("a", "venue = \"XNAS\""), feed("bb", ""));
        assert_eq!(suffixes(&two), [".XNAS", ".bb"]);
        let named = format!("{plant}{}{}", feed("a", "suffix = \"\""), feed("bb", "suffix = \".N\""));
        assert_eq!(suffixes(&named), ["", ".N"]);
        let alike = format!("{plant}{}{}", feed("a", "venue = \"X\""), feed("bb", "venue = \"X\""));
        let said = complaint(&alike);
        assert!(said.starts_with("plant.toml:11:8: feed bb and feed a would use one item name"), "{said}");
        assert!(said.contains("AAPL.X") && said.contains("shared_items = true"), "{said}");
        let shared = alike.replace("ring =", "shared_items = true\nring =");
        assert_eq!(suffixes(&shared), ["", ""]);
        let nbbo = format!("{two}[nbbo]\nfeeds = [\"a\", \"bb\"]\nsuffix = \".bb\"\n");
        let said = complaint(&nbbo);
        assert!(said.contains("feed bb and [nbbo] would use one item name"), "{said}");
        assert!(complaint(&format!("{plant}{}", feed("a", "suffix = \" A\""))).contains("suffix"));
    }

    #[test]
    fn no_feed_no_line_and_other_protocols_are_refused() {
        assert!(complaint("[plant]\nring = \"r\"\n").contains("0 feeds"));
        let (feed, _line) = testing::PLANT.split_once("[[feed.line]]").unwrap();
        assert!(complaint(feed).contains("plant.toml:4:8: feed f has 0 lines"));
        let said = complaint(&feed.replace("itch50-moldudp64", "pitch"));
        assert!(said.contains("protocol \"pitch\" is not known"));
    }
}
