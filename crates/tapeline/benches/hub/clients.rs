//! Clients on the network, all on one thread: Tapeline's consumers, or readers that look for nothing but the stamp.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Clock, Lateness, Nanos, Recorder, Trend, monotonic_ns};
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::role::consumer::{Consumer, ConsumerEvent, ConsumerSettings, ItemRequest, ServiceName};
use tapeline_omm::role::{Outbox, Queue};
use tapeline_omm::rwf::{MessageClass, MessageView};
use tapeline_wire::rssl::{self, ConnectionId, Reactor, Sender};

use crate::SERVICE;
use crate::messages;

/// The longest request: a login, or a batch of a thousand items.
const LONGEST: usize = 64 << 10;
/// At high rates the time of one update in so many is looked at.
const SAMPLED: u64 = 16;

/// What came.
pub(crate) struct Tally {
    pub(crate) images: u64,
    pub(crate) updates: u64,
    /// From when an update was due to when it was here, ns.
    pub(crate) latency: Recorder,
    lateness: Lateness,
    /// When items were asked for, and when the last image came, ns of the monotonic clock.
    asked_ns: u64,
    answered_ns: u64,
}

impl Tally {
    fn new() -> Self {
        let lateness = Lateness::new(Nanos(monotonic_ns()));
        Self { images: 0, updates: 0, latency: Recorder::new(), lateness, asked_ns: 0, answered_ns: 0 }
    }

    /// From the first request to the last image.
    pub(crate) fn images_took(&self) -> Duration {
        Duration::from_nanos(self.answered_ns.saturating_sub(self.asked_ns))
    }

    /// What comes from here on counts.
    pub(crate) fn begin(&mut self) {
        *self = Self::new();
    }

    fn take(&mut self, message: &MessageView<'_>, every: u64) {
        match message.class() {
            MessageClass::REFRESH => {
                self.images += 1;
                self.answered_ns = monotonic_ns();
            }
            MessageClass::UPDATE => {
                self.updates += 1;
                if self.updates.is_multiple_of(every)
                    && let Some(due_ns) = messages::due_ns(message.payload())
                {
                    let now = monotonic_ns();
                    let ns = now.saturating_sub(due_ns) as i64;
                    self.latency.record(ns);
                    self.lateness.record(Nanos(now), ns);
                }
            }
            _ => {}
        }
    }

    /// Whether what came was later and later.
    pub(crate) fn trend(&self) -> Trend {
        self.lateness.trend()
    }
}

/// Where a consumer writes.
struct Out<'r, 's> {
    room: &'r mut Vec<u8>,
    sender: &'r mut Sender<'s>,
}

impl Outbox for Out<'_, '_> {
    fn most(&self) -> usize {
        LONGEST
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.room.resize(self.room.len().max(len), 0);
        self.room.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        // What clients send fits: they wait for answers.
        let sent = self.sender.send(&self.room[..len]);
        assert_eq!(sent, rssl::Sent::Queued, "a client's request");
    }
}

/// Some clients.
pub(crate) struct Clients {
    reactor: Reactor,
    consumers: Vec<Consumer>,
    /// Where each is; and the one that had the last message, which is likely to have the next.
    places: HashMap<ConnectionId, usize>,
    last: Option<(ConnectionId, usize)>,
    room: Vec<u8>,
    clock: Clock,
    pub(crate) tally: Tally,
    every: u64,
    connected: usize,
    /// Items that were asked for, and messages that said that there is no image yet.
    wanted: usize,
    told: usize,
    /// The server may end the connection, and has.
    pub(crate) may_end: bool,
    pub(crate) is_over: bool,
}

impl Clients {
    /// Without a connection; `rate`: of all updates that will come, a second.
    pub(crate) fn new(rate: u64) -> anyhow::Result<Self> {
        let every = if rate > 500_000 { SAMPLED } else { 1 };
        Ok(Self {
            reactor: Reactor::new(10_000)?,
            consumers: Vec::new(),
            places: HashMap::new(),
            last: None,
            room: Vec::new(),
            clock: Clock::calibrate(),
            tally: Tally::new(),
            every,
            connected: 0,
            wanted: 0,
            told: 0,
            may_end: false,
            is_over: false,
        })
    }

    fn transport() -> Arc<rssl::ConnectionSettings> {
        // As large as LSEG's tools have theirs.
        Arc::new(rssl::ConnectionSettings {
            guaranteed_output_buffers: 5_000,
            ..rssl::ConnectionSettings::default()
        })
    }

    /// One that asks for nothing.
    pub(crate) fn listen_to(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        self.reactor.connect(address, &Self::transport(), self.clock.now())?;
        self.until("a connection", |clients| clients.connected > 0)
    }

    /// One more that will ask for these items, in batches where `in_batches`.
    pub(crate) fn connect(
        &mut self,
        address: SocketAddr,
        names: Vec<String>,
        in_batches: bool,
    ) -> anyhow::Result<()> {
        self.wanted += names.len();
        let settings = ConsumerSettings {
            request_timeout: PATIENCE,
            most_items: 1_000_000,
            ..ConsumerSettings::default()
        };
        let mut consumer = Consumer::new(settings, &LoginRequest::new(b"bench"))?;
        let service = ServiceName::Name(SERVICE);
        if in_batches {
            for names in names.chunks(1_000) {
                let names: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
                consumer.open_batch(&ItemRequest::new(service, b""), &names)?;
            }
        } else {
            for name in &names {
                consumer.open(&ItemRequest::new(service, name.as_bytes()))?;
            }
        }
        let now = self.clock.now();
        let mut nowhere = Queue::new(0);
        // It asks for a connection, which it gets in any case.
        consumer.tick(
            now,
            &mut nowhere,
            &mut |_: &mut Consumer, _: &mut dyn Outbox, _: ConsumerEvent<'_>| (),
        );
        let connection = self.reactor.connect(address, &Self::transport(), now)?;
        self.places.insert(connection, self.consumers.len());
        self.consumers.push(consumer);
        Ok(())
    }

    /// Works until the server has said of each item that its image is yet to come.
    pub(crate) fn until_asked(&mut self) -> anyhow::Result<()> {
        self.until("an answer for every item", |clients| clients.told >= clients.wanted)
    }

    /// Works until something is so.
    pub(crate) fn until(&mut self, what: &str, mut is_done: impl FnMut(&Self) -> bool) -> anyhow::Result<()> {
        let begun = self.clock.now();
        while !is_done(self) {
            self.turn(Duration::from_millis(5))?;
            anyhow::ensure!(
                self.clock.now().since(begun) < PATIENCE.as_nanos() as i64,
                "{what} did not come: {} images, {} updates",
                self.tally.images,
                self.tally.updates
            );
        }
        Ok(())
    }

    /// Takes what is there, or waits for it.
    pub(crate) fn turn(&mut self, longest: Duration) -> anyhow::Result<()> {
        self.reactor.wait(longest)?;
        let now = self.clock.now();
        let Self { reactor, consumers, places, last, room, tally, every, connected, told: answers, .. } =
            self;
        while let Some((id, event, mut sender)) = reactor.next(now) {
            let mut told = |_: &mut Consumer, _: &mut dyn Outbox, event: ConsumerEvent<'_>| match event {
                ConsumerEvent::Message { message, .. } => tally.take(message, *every),
                ConsumerEvent::Ready => tally.asked_ns = monotonic_ns(),
                ConsumerEvent::State { .. } => *answers += 1,
                _ => {}
            };
            if last.is_none_or(|(last, _)| last != id) {
                *last = places.get(&id).map(|place| (id, *place));
            }
            match (event, last.and_then(|(_, place)| consumers.get_mut(place))) {
                (rssl::Event::Connected(_), consumer) => {
                    *connected += 1;
                    if let Some(consumer) = consumer {
                        consumer.connected(now, &mut Out { room, sender: &mut sender });
                    }
                }
                (rssl::Event::Message(bytes), Some(consumer)) => {
                    consumer.message(now, bytes, &mut Out { room, sender: &mut sender }, &mut told);
                }
                (rssl::Event::Message(bytes), None) => tally.take(&MessageView::parse(bytes)?, *every),
                (rssl::Event::Closed(_), _) if self.may_end => self.is_over = true,
                (rssl::Event::Closed(reason), _) => anyhow::bail!("a client was cut: {reason}"),
                _ => {}
            }
        }
        Ok(())
    }
}

/// What takes longer than this will never come.
const PATIENCE: Duration = Duration::from_secs(20);
