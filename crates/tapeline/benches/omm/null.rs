//! Ends that do as little as there can be: what a tool costs beside one of them is its own.
//!
//! The null sink logs in and opens the items as a consumer does, and then looks at nothing: messages are taken off
//! the socket and counted. The null source answers as a provider does, and sends one update, encoded before, to all streams in turn,
//! as fast as it is taken.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tapeline_measure::{Clock, Nanos, pin};
use tapeline_omm::domain::directory::{Info, ServiceState};
use tapeline_omm::domain::login::LoginFeatures;
use tapeline_omm::domain::{Directory, LoginRequest, ServiceEntry};
use tapeline_omm::role::consumer::{
    Consumer, ConsumerEvent as Told, ConsumerSettings as Asking, ItemRequest, ServiceName,
};
use tapeline_omm::role::provider::{Provider, ProviderEvent, ProviderSettings as Giving, StreamHandle};
use tapeline_omm::role::{self, Outbox, Queue};
use tapeline_omm::rwf::{DataType, Domain, MessageClass, MessageView, RefreshHeader, flags};
use tapeline_omm::{Qos, State};
use tapeline_wire::rssl::{self, ConnectionSettings, Reactor, Sender};

use crate::SERVICE;
use crate::messages::Messages;

/// Room for any message of these.
const LONGEST: usize = 64 << 10;
const TURN: Duration = Duration::from_millis(5);
/// What takes longer than this will never come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a sink waits for its images.
const OPENING: Duration = Duration::from_secs(8);
/// Updates to be sent between two looks at what comes.
const BURST: usize = 256;

/// Where a role writes.
struct Out<'r, 's> {
    room: &'r mut Vec<u8>,
    sender: &'r mut Sender<'s>,
    /// The last message found no room.
    is_full: bool,
}

impl Outbox for Out<'_, '_> {
    fn most(&self) -> usize {
        LONGEST
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        // Nothing is lost: the role asks before it counts a message as sent.
        if self.is_full || self.sender.unsent() > LONGEST * 8 {
            self.is_full = true;
            return None;
        }
        self.room.resize(self.room.len().max(len), 0);
        self.room.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        match self.sender.send(&self.room[..len]) {
            rssl::Sent::Queued => {}
            // The client has left, which is the reactor's next event.
            rssl::Sent::NotOpen => self.is_full = true,
            other => panic!("a message of the bench: {other:?}"),
        }
    }
}

fn transport() -> Arc<ConnectionSettings> {
    // As large as LSEG's tools have theirs.
    Arc::new(ConnectionSettings { guaranteed_output_buffers: 5_000, ..ConnectionSettings::default() })
}

/// A null sink whose items are open.
pub(crate) struct Sink {
    reactor: Reactor,
    core: Option<usize>,
    items: usize,
}

impl Sink {
    /// Opens so many items of a provider. One that sends all it can may leave most of them without an image for ever, as LSEG's do:
    /// after [`OPENING`] those that came are enough.
    pub(crate) fn open(server: SocketAddr, items: usize, core: Option<usize>) -> anyhow::Result<Self> {
        let (clock, mut reactor, mut room) = (Clock::calibrate(), Reactor::new(1)?, Vec::new());
        let settings = Asking { request_timeout: PATIENCE, most_items: 1_000_000, ..Asking::default() };
        let mut consumer = Consumer::new(settings, &LoginRequest::new(b"sink"))?;
        for number in 1..=items {
            let name = format!("RDT{number}");
            consumer.open(&ItemRequest::new(ServiceName::Name(SERVICE), name.as_bytes()))?;
        }
        let begun = clock.now();
        consumer.tick(begun, &mut Queue::new(0), &mut |_: &mut Consumer, _: &mut dyn Outbox, _: Told<'_>| ());
        reactor.connect(server, &transport(), begun)?;
        let mut images = 0;
        while images < items {
            reactor.wait(TURN)?;
            let now = clock.now();
            if now.since(begun) > OPENING.as_nanos() as i64 {
                anyhow::ensure!(images > 0, "the sink got no image");
                break;
            }
            while let Some((_, event, mut sender)) = reactor.next(now) {
                let mut out = Out { room: &mut room, sender: &mut sender, is_full: false };
                let mut told = |_: &mut Consumer, _: &mut dyn Outbox, event: Told<'_>| {
                    let is_image = |message: &MessageView<'_>| message.class() == MessageClass::REFRESH;
                    if matches!(event, Told::Message { message, .. } if is_image(message)) {
                        images += 1;
                    }
                };
                match event {
                    rssl::Event::Connected(_) => consumer.connected(now, &mut out),
                    rssl::Event::Message(bytes) => consumer.message(now, bytes, &mut out, &mut told),
                    rssl::Event::Closed(reason) => anyhow::bail!("the sink was cut: {reason}"),
                    _ => {}
                }
            }
        }
        Ok(Self { reactor, core, items: images })
    }

    /// Items that had their image.
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// Counts what comes in a window of time: messages a second.
    pub(crate) fn count(mut self, window: Duration) -> anyhow::Result<f64> {
        if let Some(core) = self.core {
            pin(core)?;
        }
        let (clock, mut messages) = (Clock::calibrate(), 0_u64);
        let begun = clock.now();
        let mut now = begun;
        while now.since(begun) < window.as_nanos() as i64 {
            self.reactor.wait(TURN)?;
            now = clock.now();
            while let Some((_, event, _)) = self.reactor.next(now) {
                match event {
                    rssl::Event::Message(_) => messages += 1,
                    rssl::Event::Closed(reason) => anyhow::bail!("the sink was cut: {reason}"),
                    _ => {}
                }
            }
        }
        Ok(messages as f64 * 1e9 / now.since(begun) as f64)
    }
}

/// A running null source. Ended with this.
pub(crate) struct Source {
    pub(crate) address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Source {
    pub(crate) fn begin(messages: &Messages, core: Option<usize>) -> anyhow::Result<Self> {
        let mut reactor = Reactor::new(2)?;
        let address = reactor.listen("127.0.0.1:0".parse()?, &transport())?;
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let mut update = vec![0; 1_024];
        let len = messages.update(0, &mut update);
        update.truncate(len);
        let image = MessageView::parse(&messages.image)?.payload().to_vec();
        let thread = std::thread::Builder::new().name("source".to_owned()).spawn(move || {
            if let Some(core) = core {
                pin(core)?;
            }
            serve(&mut reactor, &image, &update, &flag)
        })?;
        Ok(Self { address, is_over, thread: Some(thread) })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(Err(why)) = self.thread.take().and_then(|thread| thread.join().ok()) {
            eprintln!("omm: the null source: {why:#}");
        }
    }
}

/// What a source has to know of its one client.
struct Client {
    id: rssl::ConnectionId,
    provider: Provider,
    open: Vec<StreamHandle>,
    /// Those that wait for their image.
    unanswered: Vec<StreamHandle>,
    next: usize,
}

fn serve(reactor: &mut Reactor, image: &[u8], update: &[u8], is_over: &AtomicBool) -> anyhow::Result<()> {
    let clock = Clock::calibrate();
    let info = Info {
        name: Some(SERVICE.to_owned()),
        is_source: Some(1),
        capabilities: Some(vec![Domain::MARKET_PRICE]),
        qos: Some(vec![Qos::REALTIME_TICK]),
        ..Info::default()
    };
    let mut services = Directory::new();
    services.apply(&ServiceEntry::new(1, info, ServiceState::UP));
    let (mut client, mut room) = (None::<Client>, Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        // It has a core of its own, and what was full may have room by now.
        let is_busy =
            client.as_ref().is_some_and(|client| !client.open.is_empty() || !client.unanswered.is_empty());
        reactor.wait(if is_busy { Duration::ZERO } else { TURN })?;
        let now = clock.now();
        while let Some((id, event, mut sender)) = reactor.next(now) {
            match event {
                rssl::Event::Connected(_) => {
                    let settings =
                        Giving { most_streams: 1_000_000, owed_bytes: 64 << 20, ..Giving::default() };
                    let provider = Provider::new(settings, now);
                    let (open, unanswered) = (Vec::new(), Vec::new());
                    client = Some(Client { id, provider, open, unanswered, next: 0 });
                }
                rssl::Event::Message(bytes) => {
                    if let Some(client) = client.as_mut().filter(|client| client.id == id) {
                        let mut out = Out { room: &mut room, sender: &mut sender, is_full: false };
                        client.hear(now, bytes, &services, &mut out)?;
                    }
                }
                rssl::Event::Closed(_) => client = None,
                _ => {}
            }
        }
        if let Some(client) = &mut client
            && let Some(mut sender) = reactor.sender(client.id)
        {
            client.send(image, update, &mut Out { room: &mut room, sender: &mut sender, is_full: false })?;
        }
    }
    Ok(())
}

impl Client {
    fn hear(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        services: &Directory,
        out: &mut Out<'_, '_>,
    ) -> anyhow::Result<()> {
        let Self { provider, unanswered, .. } = self;
        let mut answer = |provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>| {
            let sent = match event {
                ProviderEvent::Login { request, .. } => {
                    let features = LoginFeatures { single_open: Some(1), ..LoginFeatures::default() };
                    provider.accept_login(now, out, &request, features)
                }
                ProviderEvent::Directory { stream, .. } => provider.directory(out, stream, services),
                ProviderEvent::Open { stream, .. } => {
                    unanswered.push(stream);
                    return;
                }
                _ => return,
            };
            assert!(sent.is_ok_and(role::Sent::is_queued), "the source's client takes nothing");
        };
        Ok(provider.message(now, bytes, out, &mut answer)?)
    }

    /// Images first, then updates, as far as there is room.
    fn send(&mut self, image: &[u8], update: &[u8], out: &mut Out<'_, '_>) -> anyhow::Result<()> {
        while let Some(stream) = self.unanswered.last().copied() {
            let mut header =
                RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
            header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
            let mut write = |room: &mut [u8]| {
                room.get_mut(..image.len()).ok_or(tapeline_omm::Full)?.copy_from_slice(image);
                Ok(image.len())
            };
            if !self.provider.refresh(out, stream, &header, &mut write)?.is_queued() {
                return Ok(());
            }
            self.unanswered.pop();
            self.open.push(stream);
        }
        for _ in 0..BURST.min(self.open.len()) {
            if self.provider.update(out, self.open[self.next % self.open.len()], update) == role::Sent::Full {
                return Ok(());
            }
            self.next += 1;
        }
        Ok(())
    }
}
