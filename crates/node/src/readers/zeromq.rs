//! The plant's ticks for ZeroMQ subscribers: one more reader of the ring, on its own thread.
//!
//! Each message has three parts: the topic, `SERVICE/ITEM`; a [header] with numbers, flags and times;
//! the tick's RWF message, or the same as JSON. The states of feeds as a whole are published under
//! `SERVICE#CHANNEL`. There are no requests: a late subscriber waits for an image, which is published again
//! at intervals, or for the next refresh.

pub mod header;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::Dictionary;
use tapeline_omm::json::Converter;
use tapeline_omm::rwf::{Domain, MessageView};
use tapeline_plant::cache::Limits;
use tapeline_plant::tick::{self, Flags, Tick};
use tapeline_plant::{ItemId, Seq};
use tapeline_ring::Wait;
use tapeline_wire::zmtp::{Publisher, PublisherCounters, PublisherSettings, Route};

use self::header::{Body, Header};
use crate::Error;
use crate::cursor::RingCursor;
use crate::events::{Events, Kind, Severity};
use crate::journal::{Gate, WHILE_HELD};
use crate::readers::counting::Serving;
use crate::readers::images::{Images, Place};
use crate::readers::reader::{Reader, Signs};
use crate::readers::sequence_cursor::{Kept, SequenceCursor, Taken};
use crate::ticks::OnRing;

/// The settings of the ZeroMQ outlet.
#[derive(Debug)]
pub struct ZeromqConfig {
    /// Address of the listener; port 0 selects a free port.
    pub address: SocketAddr,
    /// The format of a message's third part.
    pub body: Body,
    /// How often each item's image is published again.
    pub images_every: Option<Duration>,
    /// Settings of the sockets.
    pub settings: PublisherSettings,
    /// Numbers and names of the services; a service without a name is called by its number.
    pub services: Vec<(u16, String)>,
    /// The dictionary for JSON and for partial text in images.
    pub dictionary: Arc<Dictionary>,
    /// Maximum number of items; ticks of items beyond it are not published, and are counted.
    pub max_items: usize,
    /// Maximum bytes of all images together.
    pub cache_bytes: usize,
}

/// The thread of the outlet.
#[derive(Debug)]
pub(crate) struct RunningZeromq {
    /// Where subscribers connect.
    pub address: SocketAddr,
    pub(crate) reader: Reader<ZeromqReport>,
}

/// Totals of the outlet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ZeromqReport {
    /// Where subscribers connected.
    pub address: String,
    /// Ticks taken from the ring.
    pub ticks: u64,
    /// Times that the outlet lost its position on the ring.
    #[serde(default)]
    pub rejoined: u64,
    /// Ticks that the outlet missed by that and that no journal has.
    #[serde(default)]
    pub missing: u64,
    /// Ticks without a subscriber.
    pub unwanted: u64,
    /// Messages sent, counted once per subscriber.
    pub sent: u64,
    /// Messages that a subscriber's queue had no capacity for, counted once per subscriber.
    pub dropped: u64,
    /// Messages that JSON cannot express, and ticks of items beyond the limit.
    pub unusable: u64,
    /// Subscribers that connected.
    pub subscribers: u64,
    /// Subscribers that were disconnected by the outlet.
    pub let_go: u64,
}

impl RunningZeromq {
    /// Opens the port and starts the thread, which waits for the ring. Call before this thread is pinned, as
    /// for the hub. From the plant's journal it takes the gate that holds ticks back until they are durable,
    /// the folder where they are then, and the last tick of the plants before this one.
    pub(crate) fn start(
        config: ZeromqConfig,
        (gate, journal, after): (Option<Gate>, Option<Kept>, Seq),
        events: &Events,
    ) -> crate::Result<Self> {
        let publisher = Publisher::bind(config.address, config.settings.clone()).map_err(|error| {
            let what = format!("ZeroMQ cannot listen at {}", config.address);
            Error::of_port(what, "[hub.zeromq]", error)
        })?;
        let address = publisher.local_address();
        let of_topics = events.clone();
        let reader = Reader::start("zeromq", events, move |ring, subscriber, signs| {
            let ring = RingCursor::new("zeromq", OnRing { ring, subscriber }, gate, &of_topics);
            let place = SequenceCursor::new(ring, journal, after, "for ZeroMQ's subscribers");
            let clock = Clock::calibrate();
            let topics = Topics::new(config, publisher, clock.now(), of_topics);
            Outlet { place, clock, topics, signs }.run()
        })?;
        Ok(Self { address, reader })
    }

    /// Returns the thread's state for the counters.
    pub(crate) fn standing(&self) -> Serving {
        Serving { pulse: self.reader.pulse(), address: self.address.to_string() }
    }
}

/// Ticks taken between two looks at the sockets.
const BATCH: usize = 64;
/// The longest sleep while the ring is quiet; a subscription may wait this long.
const SHORT_SLEEP: Duration = Duration::from_micros(500);
/// The same while no subscriber is connected.
const LONG_SLEEP: Duration = Duration::from_millis(10);
/// How long queued output is still sent after the plant has ended.
const LAST_WORDS_NS: i64 = 2_000_000_000;
/// How often the clock is compared with the kernel's.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

#[derive(Debug, Default)]
struct Topic {
    name: Box<str>,
    route: Route,
    /// Number of messages published under the topic.
    number: u64,
}

struct Outlet {
    place: SequenceCursor,
    clock: Clock,
    topics: Topics,
    signs: Arc<Signs>,
}

impl Outlet {
    /// Publishes until the ring ends, then sends what is queued.
    fn run(mut self) -> crate::Result<ZeromqReport> {
        let (mut housekept, mut is_alive) = (self.topics.out.begun, true);
        loop {
            let now = self.clock.now();
            self.signs.turned.store(now.0, Ordering::Relaxed);
            let (taken, is_over) = self.take_ticks()?;
            self.topics.send_images(now);
            self.topics.out.publisher.turn(now, Duration::ZERO)?;
            self.topics.say(now);
            if is_over {
                break;
            }
            // A publisher releases the ring when it ends it: the remaining ticks, which may wait for the
            // disk, are read first, then the end.
            crate::error::ensure!(is_alive || taken > 0 || self.place.is_held(), "the plant has died");
            if now.since(housekept) >= HOUSEKEEPING_NS {
                housekept = now;
                self.clock.recalibrate();
                if let Some(cause) = self.topics.out.publisher.accept_error() {
                    let said = format_args!("ZeroMQ cannot accept connections: {cause}");
                    self.topics.events.peer(now, Kind::Accept, Severity::Warning, said);
                }
                self.topics.events.left_out(now);
                is_alive = self.place.subscriber().publisher_alive()?;
            }
            if taken == 0 && self.place.is_held() {
                // The ring has ticks, so waiting on it would return at once.
                std::thread::sleep(WHILE_HELD);
            } else if taken == 0 {
                let is_alone = self.topics.out.publisher.counters().subscribers == 0;
                self.place.subscriber().wait(Wait::Park, if is_alone { LONG_SLEEP } else { SHORT_SLEEP });
            }
        }
        let ended = self.clock.now();
        let Self { place, clock, topics: Topics { out: Out { mut publisher, .. }, report, .. }, .. } = self;
        let rejoined = place.ring.rejoined;
        drop(place);
        while !publisher.is_flushed() {
            let now = clock.now();
            if now.since(ended) >= LAST_WORDS_NS {
                break;
            }
            publisher.turn(now, Duration::from_millis(1))?;
        }
        let PublisherCounters { connected, let_go, queued, dropped, .. } = publisher.counters();
        Ok(ZeromqReport { rejoined, sent: queued, dropped, subscribers: connected, let_go, ..report })
    }

    /// Takes up to a batch of ticks. Returns their number and whether the ring has ended.
    fn take_ticks(&mut self) -> crate::Result<(usize, bool)> {
        let Self { place, clock, topics, signs } = self;
        place.take(BATCH, |taken| match taken {
            Taken::Tick(tick) => topics.publish(tick, clock),
            Taken::Gone(count) => {
                topics.skip(count);
                signs.missing.fetch_add(count, Ordering::Relaxed);
            }
        })
    }
}

/// The publishing side: everything except the source of the ticks.
struct Topics {
    out: Out,
    /// Indexed by item number.
    items: Vec<Topic>,
    /// Indexed by channel number.
    channels: Vec<Topic>,
    images: Option<(Images, Round)>,
    report: ZeromqReport,
    events: Events,
}

/// Publishes messages under topics.
struct Out {
    publisher: Publisher,
    config: ZeromqConfig,
    begun: Nanos,
    /// The last message as JSON.
    text: Vec<u8>,
}

impl Topics {
    fn new(config: ZeromqConfig, publisher: Publisher, begun: Nanos, events: Events) -> Self {
        let images = config.images_every.map(|every| {
            let limits = Limits { items: config.max_items, bytes: config.cache_bytes, ..Limits::default() };
            let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
            let services = config.services.iter().map(|(service, _)| *service);
            let images = Images::new(limits, config.max_items, services, &config.dictionary);
            (images, Round { every_ns, next: 0, begun })
        });
        let report =
            ZeromqReport { address: publisher.local_address().to_string(), ..ZeromqReport::default() };
        let out = Out { publisher, config, begun, text: Vec::new() };
        Self { out, items: Vec::new(), channels: Vec::new(), images, report, events }
    }

    /// Publishes the images that are due.
    fn send_images(&mut self, now: Nanos) {
        let Some((images, round)) = &mut self.images else { return };
        for _ in 0..BATCH {
            let Some(place) = round.due(images.len(), now) else { return };
            let Some(Place { domain, last, .. }) = images.place(place) else { continue };
            let (domain, last) = (*domain, *last);
            let Some(topic) = self.items.get_mut(last.item.0 as usize) else { continue };
            if !self.out.publisher.wants(&mut topic.route, topic.name.as_bytes()) {
                continue;
            }
            let Some(image) = images.give(place) else { continue };
            self.report.unusable += u64::from(!self.out.send(topic, now, (domain, true), last, image));
        }
    }

    /// Reports which subscribers disconnected, and why.
    fn say(&mut self, now: Nanos) {
        for left in self.out.publisher.take_left() {
            let what = if left.is_let_go { "was disconnected" } else { "has gone" };
            let said = format_args!(
                "zeromq: subscriber {} {what}: {}; {} dropped",
                left.address, left.why, left.dropped
            );
            self.events.peer(now, Kind::Zeromq, Severity::Info, said);
        }
    }

    /// An item has ended, and its number may belong to another.
    fn forget(&mut self, item: ItemId) {
        let at = item.0 as usize;
        if let Some(topic) = self.items.get_mut(at) {
            *topic = Topic::default();
        }
        if let Some((images, _)) = &mut self.images {
            images.forget(item);
        }
    }

    /// Ticks of unknown items are lost: every topic's number leaps, and no image is complete before a refresh.
    fn skip(&mut self, count: u64) {
        self.report.missing += count;
        let known = self.items.iter_mut().chain(&mut self.channels).filter(|topic| !topic.name.is_empty());
        known.for_each(|topic| topic.number += 1);
        if let Some((images, _)) = &mut self.images {
            (0..self.items.len()).for_each(|number| images.forget(ItemId(number as u32)));
        }
    }

    /// Without a subscriber, and without a new subscription since, the cost is a look at the topic's number.
    fn publish(&mut self, tick: &Tick<'_>, clock: &Clock) {
        self.send_tick(tick, clock);
        if tick.header.flags.contains(Flags::LAST) {
            self.forget(tick.header.item);
        }
    }

    fn send_tick(&mut self, tick: &Tick<'_>, clock: &Clock) {
        self.report.ticks += 1;
        let header = tick.header;
        let is_item = header.item != ItemId(0);
        let (topics, at, most) = match is_item {
            true => (&mut self.items, header.item.0 as usize, self.out.config.max_items),
            false => (&mut self.channels, usize::from(header.channel), usize::from(u16::MAX)),
        };
        if at > most {
            self.report.unusable += 1;
            return;
        }
        if topics.len() <= at {
            topics.resize_with(at + 1, Topic::default);
        }
        let topic = &mut topics[at];
        if topic.name.is_empty() {
            let service = self.out.config.service(header.service);
            topic.name = match is_item {
                true => format!("{service}/{}", tick.name).into(),
                false => format!("{service}#{}", header.channel).into(),
            };
        }
        topic.number += 1;
        let is_wanted = self.out.publisher.wants(&mut topic.route, topic.name.as_bytes());
        self.report.unwanted += u64::from(!is_wanted);
        if !is_wanted && self.images.is_none() {
            return;
        }
        let Ok(message) = MessageView::parse(tick.body) else {
            self.report.unusable += 1;
            return;
        };
        let domain = message.domain();
        if let Some((images, _)) = &mut self.images
            && is_item
        {
            images.fold(domain, tick);
        }
        if is_wanted {
            let is_sent = self.out.send(topic, clock.now(), (domain, false), header, tick.body);
            self.report.unusable += u64::from(!is_sent);
        }
    }
}

/// Spreads the images of all items over an interval, for publishing each again once per interval.
#[derive(Debug)]
struct Round {
    every_ns: u64,
    next: usize,
    /// When the current round began.
    begun: Nanos,
}

impl Round {
    /// The next of `count` images if it is due by now.
    fn due(&mut self, count: usize, now: Nanos) -> Option<usize> {
        let elapsed = u64::try_from(now.since(self.begun)).unwrap_or(0);
        let share = u128::from(elapsed) * count as u128 / u128::from(self.every_ns.max(1));
        if self.next >= count {
            if elapsed >= self.every_ns {
                (self.next, self.begun) = (0, now);
            }
            return None;
        }
        if share <= self.next as u128 {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

impl Out {
    /// Publishes a tick, or an image, to the topic's subscribers. Returns whether it could be encoded.
    fn send(
        &mut self,
        topic: &Topic,
        sent: Nanos,
        (domain, is_image): (Domain, bool),
        tick: tick::Header,
        message: &[u8],
    ) -> bool {
        let Self { publisher, config, begun, text } = self;
        let (number, begun, body) = (topic.number, *begun, config.body);
        let header = Header { number, begun, sent, domain, body, is_image, tick };
        let body = match body {
            Body::Rwf => message,
            Body::Json => {
                text.clear();
                let converter = Converter::new(&config.dictionary, &());
                let Ok(message) = MessageView::parse(message) else { return false };
                if converter.write(&message, text).is_err() {
                    return false;
                }
                text
            }
        };
        publisher.publish(&topic.route, &[topic.name.as_bytes(), &header.bytes(), body]);
        true
    }
}

impl ZeromqConfig {
    fn service(&self, number: u16) -> String {
        let known = self.services.iter().find(|(known, _)| *known == number);
        known.map_or_else(|| number.to_string(), |(_, name)| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readers::images;
    use crate::ticks;

    #[test]
    fn of_ticks_that_are_nowhere_every_topic_has_a_leap_and_no_image_is_told() {
        let config = ZeromqConfig {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            body: Body::Rwf,
            images_every: Some(Duration::from_secs(1)),
            settings: PublisherSettings::default(),
            services: vec![(1, "TAPELINE".to_owned())],
            dictionary: Arc::new(Dictionary::builtin().clone()),
            max_items: 10,
            cache_bytes: 1 << 20,
        };
        let publisher = Publisher::bind(config.address, config.settings.clone()).unwrap();
        let mut topics = Topics::new(config, publisher, Nanos(1), Events::default());
        let clock = Clock::calibrate();
        let has_image = |topics: &mut Topics| {
            let (images, _) = topics.images.as_mut().unwrap();
            (0..images.len()).any(|place| images.give(place).is_some())
        };
        let frame = images::tests::refresh(Domain::MARKET_PRICE, 3);
        let tick = Tick { header: ticks::header(7, 1), name: "A", body: &frame, source: &[] };
        topics.publish(&tick, &clock);
        assert_eq!(topics.items[7].number, 1);
        assert!(has_image(&mut topics));
        topics.skip(5);
        assert_eq!((topics.items[7].number, topics.items[6].number, topics.report.missing), (2, 0, 5));
        assert!(!has_image(&mut topics));
        topics.publish(&tick, &clock);
        assert_eq!(topics.items[7].number, 3);
        assert!(has_image(&mut topics));
    }
}
