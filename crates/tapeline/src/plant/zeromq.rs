//! The plant's ticks for subscribers of ZeroMQ: one more reader of the ring, on a thread of its own.
//!
//! Each message has three parts: the topic, `SERVICE/ITEM`; a [header](header) with numbers, flags and times; the tick's RWF
//! message, or the same as JSON. What becomes of feeds as a whole is published under `SERVICE#CHANNEL`. There are no
//! requests: who comes late waits for the next refresh, or has `images_every`.

pub(crate) mod header;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::Dictionary;
use tapeline_omm::json::Converter;
use tapeline_omm::rwf::MessageView;
use tapeline_plant::ItemId;
use tapeline_plant::cache::Limits;
use tapeline_plant::tick::{Flags, Tick};
use tapeline_ring::{Subscriber, Wait};
use tapeline_wire::zmtp::{Counters, Publisher, Route, Settings};

use self::header::{Body, Header};
use super::images::{Images, Place};
use super::journal::{Gate, WHILE_HELD};
use super::reader::Reader;
use super::ticks::{self, Next};
use crate::failure;

/// What ZeroMQ's outlet is to be.
#[derive(Debug)]
pub(crate) struct ZeromqConfig {
    /// Where it listens; port 0 for a free one.
    pub(crate) address: SocketAddr,
    /// What the third part of a message is.
    pub(crate) body: Body,
    /// How often each item's image is published again.
    pub(crate) images_every: Option<Duration>,
    /// Of the sockets.
    pub(crate) settings: Settings,
    /// The services' numbers and names; of others the number is the name.
    pub(crate) services: Vec<(u16, String)>,
    /// What fields mean, for JSON and for partial text in images.
    pub(crate) dictionary: Arc<Dictionary>,
    /// Items at most; those beyond are published to nobody, and counted.
    pub(crate) max_items: usize,
    /// All images together at most.
    pub(crate) cache_bytes: usize,
}

/// Its thread.
#[derive(Debug)]
pub(super) struct RunningZeromq {
    /// Where subscribers connect.
    pub(super) address: SocketAddr,
    reader: Reader<ZeromqReport>,
}

/// What it did.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ZeromqReport {
    /// Where subscribers connected.
    pub(crate) address: String,
    /// Ticks taken from the ring.
    pub(crate) ticks: u64,
    /// Of them, those that nobody had subscribed to.
    pub(crate) unwanted: u64,
    /// Messages that were sent, once for each subscriber.
    pub(crate) sent: u64,
    /// Messages that a subscriber's queue had no room for, once for each.
    pub(crate) dropped: u64,
    /// Messages that cannot be said in JSON, and items beyond the limit.
    pub(crate) unusable: u64,
    /// Subscribers that connected.
    pub(crate) subscribers: u64,
    /// Of them, those that were let go.
    pub(crate) let_go: u64,
}

impl RunningZeromq {
    /// Opens the port and makes the thread, which waits for the ring. As a hub's, before this thread is pinned.
    pub(super) fn start(config: ZeromqConfig, gate: Option<Gate>) -> anyhow::Result<Self> {
        let publisher = Publisher::bind(config.address, config.settings.clone()).map_err(|error| {
            let what = format!("ZeroMQ cannot listen at {}", config.address);
            failure::of_port(what, "[hub.zeromq]", error)
        })?;
        let address = publisher.local_address();
        let outlet = move |subscriber: Subscriber| {
            if let Some(gate) = &gate {
                gate.holds_back(subscriber.seat());
            }
            Outlet { gate, ..Outlet::new(config, publisher, subscriber) }
        };
        let reader = Reader::start("zeromq", move |_, subscriber, _| outlet(subscriber).run())?;
        Ok(Self { address, reader })
    }

    /// The ring is there: returns when it is read.
    pub(super) fn join(self, ring: &tapeline_ring::Name) -> anyhow::Result<Self> {
        let (reader, _) = self.reader.join(ring)?;
        Ok(Self { reader, ..self })
    }

    /// The ring has ended.
    pub(super) fn end(self) -> anyhow::Result<ZeromqReport> {
        self.reader.end()
    }
}

/// Ticks that are taken before the sockets are looked at again.
const BATCH: usize = 64;
/// How long to sleep at most while the ring is quiet; a subscription waits so long then.
const SHORT_SLEEP: Duration = Duration::from_micros(500);
/// The same while nobody is connected.
const LONG_SLEEP: Duration = Duration::from_millis(10);
/// For how long what is queued is sent when the plant has ended.
const LAST_WORDS_NS: i64 = 2_000_000_000;
/// How often the clock is compared with the kernel's.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

/// A topic.
#[derive(Debug, Default)]
struct Topic {
    name: Box<str>,
    route: Route,
    /// Messages that were published under it.
    number: u64,
}

/// All of it.
struct Outlet {
    publisher: Publisher,
    subscriber: Subscriber,
    clock: Clock,
    config: ZeromqConfig,
    begun: Nanos,
    /// By the item's number.
    items: Vec<Topic>,
    /// By the channel's.
    channels: Vec<Topic>,
    images: Option<(Images, Round)>,
    text: Vec<u8>,
    report: ZeromqReport,
    /// What keeps ticks back until they are on disk, and whether it does.
    gate: Option<Gate>,
    is_held: bool,
}

impl Outlet {
    fn new(config: ZeromqConfig, publisher: Publisher, subscriber: Subscriber) -> Self {
        let clock = Clock::calibrate();
        let begun = clock.now();
        let images = config.images_every.map(|every| {
            let limits = Limits { items: config.max_items, bytes: config.cache_bytes, ..Limits::default() };
            let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
            let mut images = Images::new(limits, config.max_items);
            for (service, _) in &config.services {
                images.set_dictionary(*service, &config.dictionary);
            }
            (images, Round { every_ns, next: 0, begun })
        });
        let address = publisher.local_address().to_string();
        Self {
            publisher,
            subscriber,
            clock,
            config,
            begun,
            items: Vec::new(),
            channels: Vec::new(),
            images,
            text: Vec::new(),
            report: ZeromqReport { address, ..ZeromqReport::default() },
            gate: None,
            is_held: false,
        }
    }

    /// Publishes until the ring ends, and then what is queued.
    fn run(mut self) -> anyhow::Result<ZeromqReport> {
        let (mut housekept, mut is_alive) = (self.begun, true);
        loop {
            let now = self.clock.now();
            let (taken, is_over) = self.take_ticks()?;
            self.send_images(now);
            self.publisher.turn(now, Duration::ZERO)?;
            self.say();
            if is_over {
                break;
            }
            // Who ends the ring lets go of it too: what is on it, and may wait for the disk, is read first, and then its end.
            anyhow::ensure!(is_alive || taken > 0 || self.is_held, "the plant has died");
            if now.since(housekept) >= HOUSEKEEPING_NS {
                housekept = now;
                self.clock.recalibrate();
                if let Some(cause) = self.publisher.accept_error() {
                    anstream::eprintln!("warning: ZeroMQ can let nobody in: {cause}");
                }
                is_alive = self.subscriber.publisher_alive()?;
            }
            if taken == 0 && self.is_held {
                // The ring has something, so that it would not wait.
                std::thread::sleep(WHILE_HELD);
            } else if taken == 0 {
                let is_alone = self.publisher.counters().subscribers == 0;
                self.subscriber.wait(Wait::Park, if is_alone { LONG_SLEEP } else { SHORT_SLEEP });
            }
        }
        let ended = self.clock.now();
        drop(self.subscriber);
        while !self.publisher.is_flushed() {
            let now = self.clock.now();
            if now.since(ended) >= LAST_WORDS_NS {
                break;
            }
            self.publisher.turn(now, Duration::from_millis(1))?;
        }
        let Counters { connected, let_go, queued, dropped, .. } = self.publisher.counters();
        Ok(ZeromqReport { sent: queued, dropped, subscribers: connected, let_go, ..self.report })
    }

    /// Takes ticks, as many as are there: how many, and whether there will be no more.
    fn take_ticks(&mut self) -> anyhow::Result<(usize, bool)> {
        for taken in 0..BATCH {
            let next = match &self.gate {
                Some(gate) => gate.next(&mut self.subscriber)?,
                None => Some(ticks::next(&mut self.subscriber)?),
            };
            self.is_held = next.is_none();
            match next {
                Some(Next::Tick(tick)) => {
                    let Self {
                        publisher, config, items, channels, images, text, report, begun, clock, ..
                    } = self;
                    let mut outlet = Ticks { publisher, config, items, channels, images, text, report };
                    outlet.publish(&tick, *begun, clock);
                    if tick.header.flags.contains(Flags::LAST) {
                        outlet.forget(tick.header.item);
                    }
                }
                None | Some(Next::Nothing) => return Ok((taken, false)),
                Some(Next::End) => return Ok((taken, true)),
                Some(Next::Lost(lost)) => return Err(lost.of("ZeroMQ")),
            }
        }
        Ok((BATCH, false))
    }

    /// Publishes the images whose turn it is.
    fn send_images(&mut self, now: Nanos) {
        let Some((images, round)) = &mut self.images else { return };
        for _ in 0..BATCH {
            let Some(place) = round.due(images.len(), now) else { return };
            let Some(Place { domain, last, .. }) = images.place(place) else { continue };
            let (domain, last) = (*domain, *last);
            let Some(topic) = self.items.get_mut(last.item.0 as usize) else { continue };
            if !self.publisher.wants(&mut topic.route, topic.name.as_bytes()) {
                continue;
            }
            let Some(image) = images.give(place) else { continue };
            let body = self.config.body;
            let header = Header {
                number: topic.number,
                begun: self.begun,
                sent: now,
                domain,
                body,
                is_image: true,
                tick: last,
            };
            if !send(&mut self.publisher, &self.config, &mut self.text, topic, &header, image) {
                self.report.unusable += 1;
            }
        }
    }

    /// Who has gone, and why, on standard error.
    fn say(&mut self) {
        for left in self.publisher.take_left() {
            let what = if left.is_let_go { "was let go" } else { "has gone" };
            anstream::eprintln!(
                "zeromq: subscriber {} {what}: {}; {} dropped",
                left.address,
                left.why,
                left.dropped
            );
        }
    }
}

/// Whose turn it is, when every item's image is to be published again in so long.
#[derive(Debug)]
struct Round {
    every_ns: u64,
    next: usize,
    /// When it began.
    begun: Nanos,
}

impl Round {
    /// The next of so many whose turn it is by now.
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

/// What publishing one tick needs: all but the ring, which has lent it.
struct Ticks<'a> {
    publisher: &'a mut Publisher,
    config: &'a ZeromqConfig,
    items: &'a mut Vec<Topic>,
    channels: &'a mut Vec<Topic>,
    images: &'a mut Option<(Images, Round)>,
    text: &'a mut Vec<u8>,
    report: &'a mut ZeromqReport,
}

impl Ticks<'_> {
    /// An item is over, and its number another's.
    fn forget(&mut self, item: ItemId) {
        let at = item.0 as usize;
        if let Some(topic) = self.items.get_mut(at) {
            *topic = Topic::default();
        }
        if let Some((images, _)) = self.images {
            images.forget(item);
        }
    }

    /// Costs a look at the topic's number where nobody has subscribed to it, and nothing has been subscribed to since.
    fn publish(&mut self, tick: &Tick<'_>, begun: Nanos, clock: &Clock) {
        self.report.ticks += 1;
        let header = tick.header;
        let is_item = header.item != ItemId(0);
        let (topics, at, most) = match is_item {
            true => (&mut *self.items, header.item.0 as usize, self.config.max_items),
            false => (&mut *self.channels, usize::from(header.channel), usize::from(u16::MAX)),
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
            let service = self.config.service(header.service);
            topic.name = match is_item {
                true => format!("{service}/{}", tick.name).into(),
                false => format!("{service}#{}", header.channel).into(),
            };
        }
        topic.number += 1;
        let is_wanted = self.publisher.wants(&mut topic.route, topic.name.as_bytes());
        self.report.unwanted += u64::from(!is_wanted);
        if !is_wanted && self.images.is_none() {
            return;
        }
        let Ok(message) = MessageView::parse(tick.body) else {
            self.report.unusable += 1;
            return;
        };
        let domain = message.domain();
        if let Some((images, _)) = self.images
            && is_item
        {
            images.fold(domain, tick);
        }
        if is_wanted {
            let body = self.config.body;
            let header = Header {
                number: topic.number,
                begun,
                sent: clock.now(),
                domain,
                body,
                is_image: false,
                tick: header,
            };
            if !send(self.publisher, self.config, self.text, topic, &header, tick.body) {
                self.report.unusable += 1;
            }
        }
    }
}

/// Publishes a message to those who want its topic; whether it could be said.
fn send(
    publisher: &mut Publisher,
    config: &ZeromqConfig,
    text: &mut Vec<u8>,
    topic: &Topic,
    header: &Header,
    message: &[u8],
) -> bool {
    let body = match config.body {
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

impl ZeromqConfig {
    /// What a service is called.
    fn service(&self, number: u16) -> String {
        let known = self.services.iter().find(|(known, _)| *known == number);
        known.map_or_else(|| number.to_string(), |(_, name)| name.clone())
    }
}
