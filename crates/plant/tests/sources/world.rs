//! A plant's sources, and the other ends of their connections.

use std::cell::Cell;
use std::collections::BTreeMap;

use tapeline_measure::Nanos;
use tapeline_omm::domain::directory::{self, Info, ServiceState};
use tapeline_omm::domain::{LoginFeatures, LoginRequest, ServiceEntry, ServicePart};
use tapeline_omm::role::ni_provider::{self, NiProvider, Publish as Say};
use tapeline_omm::role::provider::{self, Provider, ProviderEvent, StreamHandle};
use tapeline_omm::role::{Nowhere, Outbox, Queue, consumer};
use tapeline_omm::rwf::{
    DataType, Domain, GenericHeader, Header, MessageView, PostHeader, Priority, RefreshHeader, StatusHeader,
    UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{FieldList, FieldListEncoder, Real, State, fid};
use tapeline_plant::demand::{Answer, Demand, ItemName};
use tapeline_plant::sources::{
    LinkId, Outlets, Policy, Posts, ProviderSettings, ServiceSettings, Settings, Sharing, Sources, Sourcing,
    Wish,
};
use tapeline_plant::tick::{Flags, Tick};
use tapeline_plant::{Items, Publish, Refused, Sequencer, Time};

/// The number of the service in the plant; its sources have it as another.
pub(crate) const SERVICE: u16 = 300;
pub(crate) const THEIRS: u16 = 7;
pub(crate) const NAME: &str = "FEED";
pub(crate) const SECOND: u64 = 1_000_000_000;

/// A ring that takes ticks up to a length.
pub(crate) struct Ring {
    pub(crate) frames: Vec<Vec<u8>>,
    pub(crate) most: usize,
}

impl Publish for Ring {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        if len > self.most {
            return Err(Refused::TooLong { len, max: self.most });
        }
        let mut frame = vec![0xEE; len];
        let used = fill(&mut frame);
        frame.truncate(used);
        self.frames.push(frame);
        Ok(())
    }
}

pub(crate) struct Clock(Cell<u64>);

impl Time for Clock {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// What sits at the other end of a connection.
enum Peer {
    /// With the price of each item.
    Publisher(Box<NiProvider>),
    Provider(Box<Provider>),
}

pub(crate) struct End {
    peer: Peer,
    to_peer: Queue,
    desk: Desk,
}

/// What an end's application knows and has heard.
#[derive(Default)]
pub(crate) struct Desk {
    prices: BTreeMap<String, i64>,
    /// Open streams of an interactive provider.
    pub(crate) open: BTreeMap<String, StreamHandle>,
    private: Option<StreamHandle>,
    pub(crate) heard: Vec<String>,
    /// It refuses posts by silence.
    pub(crate) is_mute: bool,
    /// The item that the last post named.
    pub(crate) posted: Option<String>,
    /// It is up.
    is_up: bool,
    is_denying: bool,
    can_pause: bool,
    item: Option<consumer::Handle>,
}

#[derive(Default)]
pub(crate) struct Ends(pub(crate) BTreeMap<LinkId, End>);

impl Outlets for Ends {
    fn with(&mut self, link: LinkId, send: &mut dyn FnMut(&mut dyn Outbox)) {
        match self.0.get_mut(&link) {
            Some(end) => send(&mut end.to_peer),
            None => send(&mut Nowhere),
        }
    }
}

pub(crate) struct World {
    pub(crate) sources: Sources,
    pub(crate) sequencer: Sequencer<Ring>,
    pub(crate) clock: Clock,
    pub(crate) ends: Ends,
    /// Whether each interactive provider can be reached.
    pub(crate) is_there: Vec<bool>,
    pub(crate) is_denying: bool,
    /// Whether providers can hold back single items.
    pub(crate) can_pause: bool,
    /// How providers of either kind say that they are.
    read: usize,
    pub(crate) answers: Vec<Answer>,
    /// Whether somebody takes answers.
    pub(crate) takes_answers: bool,
}

/// A service of publishers of which one serves at a time.
pub(crate) fn published(posts: Posts) -> Settings {
    settings(Sourcing::Publishers { users: None, sharing: Sharing::First }, 0, posts)
}

/// One whose publishers share it.
pub(crate) fn merged(posts: Posts) -> Settings {
    settings(Sourcing::Publishers { users: None, sharing: Sharing::Merge }, 0, posts)
}

pub(crate) fn provided(providers: usize, policy: Policy, posts: Posts) -> Settings {
    settings(Sourcing::Providers { of: (0..providers).collect(), policy }, providers, posts)
}

fn settings(sources: Sourcing, providers: usize, posts: Posts) -> Settings {
    Settings {
        services: vec![ServiceSettings { id: SERVICE, name: NAME.into(), channel: 3, sources, posts }],
        providers: (0..providers)
            .map(|number| ProviderSettings {
                name: format!("P{number}"),
                consumer: consumer::ConsumerSettings::default(),
                user: "plant".into(),
                password: None,
                application_id: "256".into(),
                position: "127.0.0.1/net".into(),
            })
            .collect(),
        ..Settings::default()
    }
}

pub(crate) fn item(name: &str) -> ItemName {
    ItemName { service: SERVICE, domain: Domain::MARKET_PRICE, name: name.into() }
}

pub(crate) fn open(name: &str) -> Demand {
    Demand::Open { item: item(name), priority: Priority { class: 1, count: 1 } }
}

/// A service as its source has it.
pub(crate) fn service(name: &str, is_up: bool) -> ServiceEntry {
    let info = Info {
        name: Some(name.into()),
        capabilities: Some(vec![Domain::MARKET_PRICE, Domain::MARKET_BY_ORDER]),
        ..Info::default()
    };
    let state = ServiceState { service_state: Some(is_up.into()), ..ServiceState::UP };
    ServiceEntry::new(THEIRS, info, state)
}

pub(crate) fn fields(price: i64) -> Vec<u8> {
    let mut room = vec![0; 64];
    let mut list = FieldListEncoder::new(&mut room).unwrap();
    list.real(fid::BID, Real::decimal(price, 2)).unwrap();
    let len = list.finish();
    room.truncate(len);
    room
}

pub(crate) fn refresh() -> RefreshHeader<'static> {
    RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST)
    }
}

pub(crate) fn update() -> UpdateHeader<'static> {
    UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST)
}

pub(crate) fn bytes(write: impl FnOnce(&mut [u8]) -> Result<usize, tapeline_omm::Refused>) -> Box<[u8]> {
    let mut room = vec![0; 4096];
    let len = write(&mut room).unwrap();
    room.truncate(len);
    room.into()
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        Self::of(settings, Items::new(1_000))
    }

    /// With room for so many items.
    pub(crate) fn of(settings: Settings, items: Items) -> Self {
        let mut world = Self {
            is_there: vec![false; settings.providers.len()],
            sources: Sources::new(settings).unwrap(),
            sequencer: Sequencer::new(1, items, Ring { frames: Vec::new(), most: 2_000 }),
            clock: Clock(Cell::new(1_000 * SECOND)),
            ends: Ends::default(),
            is_denying: false,
            can_pause: true,
            read: 0,
            answers: Vec::new(),
            takes_answers: true,
        };
        world.sources.begin(&mut world.sequencer, &world.clock).unwrap();
        let are_feeds = world.sources.services().count() == 0;
        assert_eq!(world.ticks(), if are_feeds { vec![] } else { vec!["FEED down"] });
        world.run();
        world
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.clock.0.get())
    }

    /// An NI provider of these items connects, and publishes them.
    pub(crate) fn publisher(
        &mut self,
        user: &str,
        services: &[ServiceEntry],
        prices: &[(&str, i64)],
    ) -> LinkId {
        let settings = ni_provider::NiProviderSettings::default();
        let mut role = NiProvider::new(settings, &LoginRequest::new(user.as_bytes()), services).unwrap();
        let mut desk = Desk::default();
        for (name, price) in prices {
            desk.prices.insert((*name).into(), *price);
            desk.item = Some(role.add(THEIRS, Domain::MARKET_PRICE, name.as_bytes(), *price as u64).unwrap());
        }
        let link = self.sources.open(self.now());
        let mut out = Queue::new(1 << 20);
        role.tick(self.now(), &mut out, &mut desk);
        role.connected(self.now(), &mut out);
        self.ends
            .0
            .insert(link, End { peer: Peer::Publisher(Box::new(role)), to_peer: Queue::new(1 << 20), desk });
        self.deliver(link, out);
        self.run();
        link
    }

    /// An interactive provider can be reached from now on.
    pub(crate) fn arrive(&mut self, number: usize) {
        self.is_there[number] = true;
        self.pass_time(6);
    }

    /// The connection of a source breaks; an interactive one is not there any more.
    pub(crate) fn kill(&mut self, link: LinkId) {
        if let Some(there) = self.is_there.get_mut(link.0 as usize) {
            *there = false;
        }
        self.ends.0.remove(&link).unwrap();
        self.sources.closed(self.now(), link, "broken", &mut self.sequencer, &self.clock).unwrap();
        self.run();
    }

    /// A source says something of its own accord.
    pub(crate) fn say(&mut self, link: LinkId, what: impl FnOnce(&mut dyn Outbox)) {
        let mut out = Queue::new(1 << 20);
        what(&mut out);
        self.deliver(link, out);
        self.run();
    }

    /// An NI provider's last item.
    pub(crate) fn say_of_last(&mut self, link: LinkId, what: &Say<'_>, payload: &[u8]) {
        let mut out = Queue::new(1 << 20);
        let end = self.ends.0.get_mut(&link).unwrap();
        let Peer::Publisher(role) = &mut end.peer else { panic!("not a publisher") };
        let sent = role.publish(&mut out, end.desk.item.unwrap(), what, payload).unwrap();
        assert!(sent.is_queued());
        self.deliver(link, out);
        self.run();
    }

    /// An NI provider's service changes.
    pub(crate) fn change_service(&mut self, link: LinkId, part: ServicePart) {
        let mut out = Queue::new(1 << 20);
        let end = self.ends.0.get_mut(&link).unwrap();
        let change = ServiceEntry::change(THEIRS, part);
        match &mut end.peer {
            Peer::Publisher(role) => _ = role.change_service(&mut out, &change).unwrap(),
            Peer::Provider(role) => _ = role.directory_changed(&mut out, &[change]),
        }
        self.deliver(link, out);
        self.run();
    }

    /// An interactive provider's open item has another price, or state.
    pub(crate) fn update(&mut self, link: LinkId, name: &str, price: i64) {
        let mut out = Queue::new(1 << 20);
        let end = self.ends.0.get_mut(&link).unwrap();
        let Peer::Provider(role) = &mut end.peer else { panic!("not a provider") };
        end.desk.prices.insert(name.into(), price);
        let message = bytes(|room| update().encode_with(room, |room| copy(&fields(price), room)));
        assert!(role.update(&mut out, end.desk.open[name], &message).is_queued());
        self.deliver(link, out);
        self.run();
    }

    pub(crate) fn status(&mut self, link: LinkId, name: &str, state: State<'_>) {
        let mut out = Queue::new(1 << 20);
        let end = self.ends.0.get_mut(&link).unwrap();
        let Peer::Provider(role) = &mut end.peer else { panic!("not a provider") };
        let stream = if name.is_empty() { end.desk.private.unwrap() } else { end.desk.open[name] };
        let status = StatusHeader { state: Some(state), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        assert!(role.status(Nanos(0), &mut out, stream, &status).unwrap().is_queued());
        self.deliver(link, out);
        self.run();
    }

    pub(crate) fn demand(&mut self, demand: Demand) {
        let now = self.now();
        self.sources.demand(now, demand, &mut self.ends, &mut self.sequencer, &self.clock).unwrap();
        self.run();
    }

    /// What an end has heard since this was asked last.
    pub(crate) fn heard(&mut self, link: LinkId) -> Vec<String> {
        std::mem::take(&mut self.ends.0.get_mut(&link).unwrap().desk.heard)
    }

    pub(crate) fn desk(&mut self, link: LinkId) -> &mut Desk {
        &mut self.ends.0.get_mut(&link).unwrap().desk
    }

    fn deliver(&mut self, link: LinkId, mut out: Queue) {
        while let Some(message) = out.pop() {
            let now = self.now();
            let mut nowhere = Queue::new(1 << 20);
            let room = self.ends.0.get_mut(&link).map_or(&mut nowhere, |end| &mut end.to_peer);
            self.sources.message(now, link, &message, room, &mut self.sequencer, &self.clock).unwrap();
            self.do_wishes();
        }
    }

    fn do_wishes(&mut self) {
        while let Some(wish) = self.sources.next_wish() {
            match wish {
                Wish::Disconnect(link) => _ = self.ends.0.remove(&link),
                Wish::Connect { link, .. } if self.is_there[link.0 as usize] => {
                    let role = Provider::new(provider::ProviderSettings::default(), self.now());
                    let mut to_peer = Queue::new(1 << 20);
                    self.sources.connected(self.now(), link, &mut to_peer);
                    let desk = Desk {
                        is_up: true,
                        is_denying: self.is_denying,
                        can_pause: self.can_pause,
                        ..Desk::default()
                    };
                    let peer = Peer::Provider(Box::new(role));
                    self.ends.0.insert(link, End { peer, to_peer, desk });
                }
                Wish::Connect { link, .. } => {
                    let now = self.now();
                    self.sources.closed(now, link, "refused", &mut self.sequencer, &self.clock).unwrap();
                }
            }
        }
    }

    /// Until nobody has anything to say.
    pub(crate) fn run(&mut self) {
        loop {
            let now = self.now();
            self.sources.turn(now, &mut self.ends, &mut self.sequencer, &self.clock).unwrap();
            self.do_wishes();
            if self.takes_answers {
                self.answers.extend(std::iter::from_fn(|| self.sources.next_answer()));
            }
            let mut is_quiet = true;
            let links: Vec<LinkId> = self.ends.0.keys().copied().collect();
            for link in links {
                let Some(end) = self.ends.0.get_mut(&link) else { continue };
                let mut out = Queue::new(1 << 20);
                while let Some(message) = end.to_peer.pop() {
                    is_quiet = false;
                    match &mut end.peer {
                        Peer::Publisher(role) => role.message(now, &message, &mut out, &mut end.desk),
                        Peer::Provider(role) => _ = role.message(now, &message, &mut out, &mut end.desk),
                    }
                }
                match &mut end.peer {
                    Peer::Publisher(role) => _ = role.tick(now, &mut out, &mut end.desk),
                    Peer::Provider(role) => _ = role.tick(now, &mut out, &mut end.desk),
                }
                is_quiet &= out.is_empty();
                self.deliver(link, out);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// The plant ends: what it has said to an interactive provider then.
    pub(crate) fn end(&mut self, link: LinkId) -> Vec<Vec<u8>> {
        self.sources.end(&mut self.ends);
        let to_peer = &mut self.ends.0.get_mut(&link).unwrap().to_peer;
        std::iter::from_fn(|| to_peer.pop().map(|message| message.to_vec())).collect()
    }

    /// So many seconds go by.
    pub(crate) fn pass_time(&mut self, seconds: u64) {
        for _ in 0..10 * seconds {
            self.clock.0.set(self.clock.0.get() + SECOND / 10);
            self.run();
        }
    }

    /// Ticks since this was asked last, a line each.
    pub(crate) fn ticks(&mut self) -> Vec<String> {
        let read = self.read;
        let frames = &self.sequencer.publisher().frames;
        self.read = frames.len();
        frames[read..].iter().map(|frame| describe(frame)).collect()
    }

    /// Answers since this was asked last, a line each.
    pub(crate) fn answered(&mut self) -> Vec<String> {
        let answers = std::mem::take(&mut self.answers);
        answers
            .iter()
            .map(|answer| match answer {
                Answer::Status { item, message } => format!("{}: {}", item.name, line(message)),
                Answer::Private { ticket, message } => format!("private {}: {}", ticket.0, line(message)),
                Answer::Ack { ticket, message } => format!("ticket {}: {}", ticket.0, line(message)),
                Answer::Generic { item, message } => format!("{}: {}", item.name, line(message)),
                _ => panic!("{answer:?}"),
            })
            .collect()
    }
}

fn describe(frame: &[u8]) -> String {
    let tick = Tick::parse(frame).unwrap();
    assert_eq!((tick.header.service, tick.header.channel), (SERVICE, 3));
    let message = MessageView::parse(tick.body).unwrap();
    assert_eq!(message.stream_id(), 0);
    if let Some(service) = message.key().unwrap().and_then(|key| key.service_id) {
        assert_eq!(service, SERVICE);
    }
    if tick.header.item.0 == 0 {
        let entries: Vec<_> = directory::services(message.payload()).unwrap().collect();
        let entry = entries[0].as_ref().unwrap();
        assert_eq!((entries.len(), entry.id, message.domain()), (1, SERVICE, Domain::SOURCE));
        let mut said = Vec::new();
        for (_, part) in &entry.parts {
            match part {
                ServicePart::Info(info) => {
                    // LSEG's library refuses a whole directory for one service without.
                    assert!(info.capabilities.is_some());
                    said.push(info.name.clone().unwrap());
                }
                ServicePart::State(state) => match (&state.service_state, &state.status) {
                    (Some(0), _) => said.push("down".into()),
                    (Some(_), _) if !state.accepts_requests() => said.push("closed".into()),
                    (Some(_), _) => said.push("up".into()),
                    (None, Some(status)) => said.push(format!("all {}", status.view())),
                    (None, None) => {}
                },
                ServicePart::Group(group) => said.push(format!("group {:?}", group.group.as_ref().unwrap())),
                other => said.push(format!("{other:?}")),
            }
        }
        return said.join(" ");
    }
    assert_eq!(message.class().0, tick.header.kind as u8);
    let suspect = if tick.header.flags.contains(Flags::SUSPECT) { " (suspect)" } else { "" };
    let last = if tick.header.flags.contains(Flags::LAST) { " (last)" } else { "" };
    format!("{} {}{suspect}{last}", tick.name, line(tick.body))
}

/// A message in a line: class, state, price, who posted it.
pub(crate) fn line(message: &[u8]) -> String {
    let message = MessageView::parse(message).unwrap();
    let header = message.header().unwrap();
    let mut line = message.class().to_string();
    if let Some(state) = header.state() {
        line += &format!(" {} {}", state.stream, state.data);
        if !matches!(header, Header::Refresh(_)) {
            line += &format!(" {:?}", String::from_utf8_lossy(state.text));
        }
    }
    if let Header::Ack(ack) = header {
        line += &format!(" {}", ack.ack_id);
        if let Some(code) = ack.nak_code {
            line += &format!(" {code} {:?}", String::from_utf8_lossy(ack.text.unwrap_or_default()));
        }
    }
    let user = match header {
        Header::Refresh(header) => header.post_user_info,
        Header::Update(header) => header.post_user_info,
        _ => None,
    };
    if message.container() == DataType::FIELD_LIST
        && let Ok(list) = FieldList::parse(message.payload())
        && let Ok(Some(bid)) = list.find(fid::BID)
    {
        line += &format!(" {}", bid.real().unwrap().unwrap());
    }
    if let Some(user) = user {
        line += &format!(" by {}", user.user_id);
    }
    line
}

pub(crate) fn copy(payload: &[u8], room: &mut [u8]) -> Result<usize, tapeline_omm::Refused> {
    room.get_mut(..payload.len()).ok_or(tapeline_omm::Refused::Full)?.copy_from_slice(payload);
    Ok(payload.len())
}

impl ni_provider::NiProviderApplication for Desk {
    fn event(
        &mut self,
        role: &mut NiProvider,
        out: &mut dyn Outbox,
        event: ni_provider::NiProviderEvent<'_>,
    ) {
        match event {
            ni_provider::NiProviderEvent::ImageWanted { item, closure } => {
                let say = Say::Refresh(refresh());
                assert!(role.publish(out, item, &say, &fields(closure as i64)).unwrap().is_queued());
            }
            ni_provider::NiProviderEvent::Message { item, message } => {
                let header = message.header().unwrap();
                let on = if item.is_some() { "item" } else { "login" };
                // A directory that was changed on its way has made the service another.
                let service = header.key().and_then(|key| key.service_id).filter(|id| *id != THEIRS);
                let of = service.map_or(String::new(), |id| format!(" of service {id}"));
                self.heard.push(format!("{} on {on}{of}", message.class()));
                if let Header::Post(post) = header
                    && !self.is_mute
                {
                    let ack = tapeline_omm::domain::post::ack(&post, None);
                    assert!(role.ack(out, &ack).unwrap().is_queued());
                }
            }
            ni_provider::NiProviderEvent::Login { state, .. } => {
                self.heard.push(format!("login {}", state.stream));
            }
            _ => {}
        }
    }
}

impl provider::ProviderApplication for Desk {
    fn event(&mut self, role: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>) {
        match event {
            ProviderEvent::Login { .. } if self.is_denying => {
                let state = State {
                    stream: tapeline_omm::rwf::StreamState::CLOSED,
                    data: tapeline_omm::rwf::DataState::SUSPECT,
                    code: tapeline_omm::rwf::StateCode::NOT_ENTITLED,
                    text: b"not you",
                };
                let _ = role.login_status(out, state);
            }
            ProviderEvent::Login { request, .. } => {
                let features = LoginFeatures {
                    single_open: Some(1),
                    support_omm_post: Some(1),
                    support_optimized_pause_resume: Some(self.can_pause.into()),
                    ..LoginFeatures::default()
                };
                assert!(role.accept_login(Nanos(0), out, &request, features).unwrap().is_queued());
            }
            ProviderEvent::Directory { stream, .. } => {
                let mut directory = tapeline_omm::domain::Directory::new();
                directory.apply(&service(NAME, self.is_up));
                assert!(role.directory(out, stream, &directory).unwrap().is_queued());
            }
            ProviderEvent::Open { stream, request } => self.opened(role, out, stream, &request),
            ProviderEvent::Reissue { stream, request } => {
                let paused = if request.is_pause() { " paused" } else { "" };
                self.heard.push(format!("reissue{paused}"));
                if request.wants_refresh() {
                    self.image(role, out, stream, &request);
                }
            }
            ProviderEvent::Closed { stream } => {
                let name = self.open.iter().find(|(_, open)| **open == stream).map(|(name, _)| name.clone());
                self.heard.push(format!("close {}", name.as_deref().unwrap_or("private")));
                self.open.retain(|_, open| *open != stream);
            }
            ProviderEvent::Post { stream, header, receipt, .. } => {
                let on = if stream.is_some() { "item" } else { "login" };
                let mut heard = format!("POST on {on} by {}", header.post_user_info.user_id);
                if let Some(part) = header.part {
                    heard += &format!(" part {part} of {}", header.post_id.unwrap());
                }
                self.heard.push(heard);
                let name = header.key.and_then(|key| key.name);
                self.posted = name.map(|name| String::from_utf8_lossy(name).into_owned());
                if let Some(receipt) = receipt.filter(|_| !self.is_mute) {
                    assert!(role.ack(out, receipt, None).is_queued());
                }
            }
            ProviderEvent::Generic { stream, header, message } => {
                self.heard.push(format!("generic {:?}", String::from_utf8_lossy(message.payload())));
                let header = GenericHeader { stream_id: 0, ..header };
                let payload = message.payload();
                let sent = role.generic(out, stream, &header, &mut |room| copy(payload, room));
                assert!(sent.unwrap().is_queued());
            }
            _ => {}
        }
    }
}

impl Desk {
    fn opened(
        &mut self,
        role: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        request: &provider::RequestedItem<'_>,
    ) {
        let name = String::from_utf8_lossy(request.key.name.unwrap()).into_owned();
        if request.is_private() {
            self.heard.push(format!("open private {name}"));
            self.private = Some(stream);
        } else {
            self.heard.push(format!("open {name}"));
            self.open.insert(name.clone(), stream);
        }
        if name == "NONE" {
            let state = State {
                stream: tapeline_omm::rwf::StreamState::CLOSED,
                data: tapeline_omm::rwf::DataState::SUSPECT,
                code: tapeline_omm::rwf::StateCode::NOT_FOUND,
                text: b"no such item",
            };
            let status = StatusHeader { state: Some(state), ..StatusHeader::new(request.domain, 0) };
            assert!(role.status(Nanos(0), out, stream, &status).unwrap().is_queued());
            self.open.remove(&name);
        } else if name != "SLOW" {
            self.image(role, out, stream, request);
        }
    }

    fn image(
        &mut self,
        role: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        request: &provider::RequestedItem<'_>,
    ) {
        let name = String::from_utf8_lossy(request.key.name.unwrap()).into_owned();
        let price = *self.prices.entry(name).or_insert(100);
        let sent = role.refresh(out, stream, &refresh(), &mut |room| copy(&fields(price), room));
        assert!(sent.unwrap().is_queued());
    }
}

/// A post of a client's.
pub(crate) fn post(key: Option<&str>, payload: &[u8], container: DataType) -> Box<[u8]> {
    let user = tapeline_omm::rwf::PostUserInfo { address: 0x7F00_0001, user_id: 42 };
    let header = PostHeader {
        flags: flags::post::ACK | flags::post::POST_COMPLETE,
        post_id: Some(5),
        sequence: Some(9),
        key: key.map(|name| tapeline_omm::rwf::Key::item(SERVICE, name.as_bytes())),
        ..PostHeader::new(Domain::MARKET_PRICE, 0, user, container)
    };
    bytes(|room| header.encode_with(room, |room| copy(payload, room)))
}
