//! OMM sources: non-interactive providers, which connect to the plant and publish, and interactive providers,
//! which the plant asks.

use std::collections::BTreeSet;

use tapeline_measure::Nanos;
use tapeline_omm::domain::directory::{Info, ServiceState};
use tapeline_omm::domain::{Directory, LoginFeatures, LoginRequest, ServiceEntry, post};
use tapeline_omm::role::consumer::{Backoff, Handle};
use tapeline_omm::role::ni_provider::{self, NiProvider, Publish};
use tapeline_omm::role::provider::{self, Provider, ProviderEvent, StreamHandle};
use tapeline_omm::role::{Nowhere, Outbox, Sent};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Field, Header, MessageView, RefreshHeader, StateCode, StatusHeader,
    StreamState, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Real, Refused, State, fid};

use crate::end::{Came, End, Speech};
use crate::image::{Fields, fold};
use crate::network::{LinkId, Network, Side};
use crate::plan::{ITEMS, NOVELTIES, ms};
use crate::talk::{NUMBERS, OWN_DOMAIN};

/// The id that sources give their service; it differs from the plant's.
const THEIRS: u16 = 7;

#[derive(Debug)]
pub(crate) struct Source {
    /// The index of the provider service.
    pub(crate) service: usize,
    role: Role,
    pub(crate) end: Option<End>,
    pub(crate) desk: Desk,
    /// Until this time it is unreachable and has no connection.
    pub(crate) dead_until: u64,
}

#[derive(Debug)]
enum Role {
    Publisher(Box<NiProvider>),
    /// `Some` while connected.
    Provider(Option<Box<Provider>>),
}

/// The state of a source's application.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    name: String,
    now: Nanos,
    /// The current values of the items.
    values: Vec<u64>,
    /// The last value sent for each open item.
    told: Vec<Option<u64>>,
    /// The item streams of an interactive provider.
    streams: Vec<Option<StreamHandle>>,
    /// Private streams, each with the last number sent on it, and whether its image was sent.
    own: Vec<(StreamHandle, u64, bool)>,
    /// The number of invented items at the last update of the private streams.
    counted: u64,
    /// Received parts of posts, by number of the post.
    posted: BTreeSet<(u64, u16)>,
    /// The next expected part of an incomplete post.
    unfinished: Option<(u64, u16)>,
    /// The post, and its part, that arrived twice or out of order.
    pub(crate) misplaced: Option<(u64, u16)>,
    /// The items of a publisher.
    handles: Vec<Handle>,
    /// The item invented last.
    novelty: Option<(u64, Handle)>,
    wants_connection: bool,
    hangs_up: bool,
}

/// The service as its source announces it.
fn service(name: &str) -> ServiceEntry {
    let info = Info {
        name: Some(name.to_owned()),
        capabilities: Some(vec![Domain::MARKET_PRICE, OWN_DOMAIN]),
        ..Info::default()
    };
    ServiceEntry::new(THEIRS, info, ServiceState::UP)
}

/// Encodes the fields of an item with this value.
fn fields(room: &mut [u8], value: u64) -> Result<usize, Refused> {
    let mut list = FieldListEncoder::new(room)?;
    list.real(fid::BID, Real::integer(value as i64))?;
    list.real(fid::BIDSIZE, Real::integer(value as i64 % 7))?;
    Ok(list.finish())
}

fn image() -> RefreshHeader<'static> {
    RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST)
    }
}

fn change() -> UpdateHeader<'static> {
    UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST)
}

impl Source {
    /// A source that connects to the plant and publishes all items.
    pub(crate) fn publisher(service_is: usize, name: &str) -> Self {
        let settings = ni_provider::NiProviderSettings {
            reconnect: Backoff { first: ms(50), most: ms(400) },
            login_timeout: ms(1_500),
            login_again: ms(100),
            ..ni_provider::NiProviderSettings::default()
        };
        let login = LoginRequest::new(b"publisher");
        let mut role = NiProvider::new(settings, &login, &[service(name)]).expect("the login is short");
        let mut desk = Desk::new(name);
        for item in 0..ITEMS {
            let name = format!("P{item}");
            let handle = role.add(THEIRS, Domain::MARKET_PRICE, name.as_bytes(), item as u64);
            desk.handles.push(handle.expect("there are few items"));
        }
        Self { service: service_is, role: Role::Publisher(Box::new(role)), end: None, desk, dead_until: 0 }
    }

    /// A source that the plant connects to.
    pub(crate) fn provider(service_is: usize, name: &str) -> Self {
        Self {
            service: service_is,
            role: Role::Provider(None),
            end: None,
            desk: Desk::new(name),
            dead_until: 0,
        }
    }

    pub(crate) fn accept(&mut self, end: End, now: u64) {
        let settings =
            provider::ProviderSettings { login_timeout_ms: 1_000, ..provider::ProviderSettings::default() };
        self.role = Role::Provider(Some(Box::new(Provider::new(settings, Nanos(now)))));
        self.desk.forget();
        self.end = Some(end);
    }

    /// Takes the requested connection to the plant; `None` if there is no plant.
    pub(crate) fn connected(&mut self, link: Option<LinkId>, now: u64) {
        match (link, &mut self.role) {
            (Some(link), _) => self.end = Some(End::client(link, Speech::Rwf, now)),
            (None, Role::Publisher(role)) => role.disconnected(Nanos(now), &mut self.desk),
            (None, Role::Provider(_)) => {}
        }
    }

    pub(crate) fn lose(&mut self, now: u64, network: &mut Network) {
        let Some(end) = self.end.take() else { return };
        let side = match &mut self.role {
            Role::Publisher(role) => {
                role.disconnected(Nanos(now), &mut self.desk);
                Side::Client
            }
            Role::Provider(role) => {
                *role = None;
                Side::Server
            }
        };
        network.close(end.link, side);
        self.desk.forget();
    }

    /// Takes a turn with the items' values and the number of invented ones. Returns whether it wants a connection.
    pub(crate) fn turn(
        &mut self,
        now: u64,
        network: &mut Network,
        (values, invented): (&[u64], u64),
    ) -> bool {
        if now < self.dead_until {
            return false;
        }
        self.desk.now = Nanos(now);
        self.desk.values.clear();
        self.desk.values.extend_from_slice(values);
        let mut is_over = false;
        if let Some(end) = &mut self.end {
            for came in end.receive(now, network, usize::MAX) {
                let mut out = end.out(now, network);
                match (came, &mut self.role) {
                    (Came::Connected, Role::Publisher(role)) => role.connected(Nanos(now), &mut out),
                    (Came::Message(message), Role::Publisher(role)) => {
                        role.message(Nanos(now), &message, &mut out, &mut self.desk);
                    }
                    (Came::Message(message), Role::Provider(Some(role))) => {
                        is_over |= role.message(Nanos(now), &message, &mut out, &mut self.desk).is_err();
                    }
                    (Came::Over(_), _) => is_over = true,
                    _ => {}
                }
            }
            is_over |= end.turn(now).is_some();
        }
        match (&mut self.role, &mut self.end) {
            (Role::Publisher(role), Some(end)) if end.is_open() => {
                let mut out = end.out(now, network);
                role.tick(Nanos(now), &mut out, &mut self.desk);
                self.desk.invent(role, &mut out, invented);
                self.desk.publish(role, &mut out);
            }
            (Role::Publisher(role), _) => {
                role.tick(Nanos(now), &mut Nowhere, &mut self.desk);
            }
            (Role::Provider(Some(role)), Some(end)) => {
                let mut out = end.out(now, network);
                is_over |= role.tick(Nanos(now), &mut out, &mut self.desk).is_err();
                self.desk.update(role, &mut out);
                self.desk.count_on(role, &mut out, invented);
            }
            _ => {}
        }
        if let Some(end) = &mut self.end {
            end.flush(now, network);
        }
        if std::mem::take(&mut self.desk.hangs_up)
            && let Some(end) = self.end.take()
        {
            network.close(end.link, Side::Client);
            self.desk.forget();
        }
        if is_over {
            self.lose(now, network);
        }
        std::mem::take(&mut self.desk.wants_connection)
    }
}

impl Desk {
    fn new(name: &str) -> Self {
        let (told, streams) = (vec![None; ITEMS], vec![None; ITEMS]);
        Self { name: name.to_owned(), told, streams, ..Self::default() }
    }

    /// Forgets the state of an ended connection.
    fn forget(&mut self) {
        self.told = vec![None; ITEMS];
        self.streams = vec![None; ITEMS];
        self.own.clear();
        self.unfinished = None;
    }

    /// Takes a post or a part of one, which must be in order and arrive once.
    fn take_post(&mut self, message: &MessageView<'_>) {
        let mut fields = Fields::new();
        if let Ok(Header::Post(header)) = message.header()
            && fold(&mut fields, message).is_ok()
            && let Some(number) = real_of(&fields, fid::ASK)
        {
            let part = (number, header.part.unwrap_or(0));
            // The last parts of the previous post may not have been sent because the buffer was full.
            let is_next = part.1 == 0 || self.unfinished == Some(part);
            if !self.posted.insert(part) || !is_next {
                self.misplaced = Some(part);
            }
            let is_last = header.flags.has(flags::post::POST_COMPLETE);
            self.unfinished = (!is_last).then_some((number, part.1 + 1));
        }
    }

    /// Sends the next number on each private stream, once for each invented item.
    fn count_on(&mut self, role: &mut Provider, out: &mut dyn Outbox, invented: u64) {
        let is_time = std::mem::replace(&mut self.counted, invented) != invented;
        for (stream, said, is_there) in &mut self.own {
            if role.is_paused(*stream) || *is_there && !is_time {
                continue;
            }
            if *is_there {
                let mut room = [0; 128];
                let header = UpdateHeader { domain: OWN_DOMAIN, ..change() };
                let len = header.encode_with(&mut room, |room| fields(room, *said + 1));
                let sent = role.update(out, *stream, &room[..len.expect("a short message has room")]);
                *said += u64::from(sent == Sent::Queued);
            } else {
                let header = RefreshHeader { domain: OWN_DOMAIN, ..image() };
                let sent = role.refresh(out, *stream, &header, &mut |room| fields(room, *said));
                *is_there = sent == Ok(Sent::Queued);
            }
        }
        self.own.retain(|(stream, ..)| role.stream_id(*stream).is_some());
    }

    /// Withdraws the publisher's previous invention and publishes a new one.
    fn invent(&mut self, role: &mut NiProvider, out: &mut dyn Outbox, number: u64) {
        if self.novelty.is_some_and(|(last, _)| last == number) {
            return;
        }
        if let Some((_, last)) = self.novelty
            && role.withdraw(out, last, b"something else is new") == Ok(Sent::Full)
        {
            return;
        }
        let name = novelty(number);
        let handle = role.add(THEIRS, Domain::MARKET_PRICE, name.as_bytes(), ITEMS as u64 + number);
        self.novelty = handle.ok().map(|handle| (number, handle));
    }

    /// Sends the changes on a publisher's streams.
    fn publish(&mut self, role: &mut NiProvider, out: &mut dyn Outbox) {
        for item in 0..ITEMS {
            let value = self.values[item];
            if self.told[item].is_some_and(|told| told != value) {
                let sent = publish(role, out, self.handles[item], &Publish::Update(change()), value);
                if sent == Sent::Queued {
                    self.told[item] = Some(value);
                }
            }
        }
    }

    /// Sends the changes on an interactive provider's streams.
    fn update(&mut self, role: &mut Provider, out: &mut dyn Outbox) {
        for item in 0..ITEMS {
            let value = self.values[item];
            let Some(stream) = self.streams[item].filter(|stream| !role.is_paused(*stream)) else { continue };
            let mut room = [0; 128];
            let sent = if self.told[item].is_none() {
                role.refresh(out, stream, &image(), &mut |room| fields(room, value)).unwrap_or(Sent::TooLong)
            } else if self.told[item] != Some(value) {
                let len = change().encode_with(&mut room, |room| fields(room, value));
                role.update(out, stream, &room[..len.expect("a short message has room")])
            } else {
                continue;
            };
            match sent {
                Sent::Queued => self.told[item] = Some(value),
                Sent::NotOpen => (self.streams[item], self.told[item]) = (None, None),
                _ => {}
            }
        }
    }
}

fn publish(
    role: &mut NiProvider,
    out: &mut dyn Outbox,
    item: Handle,
    what: &Publish<'_>,
    value: u64,
) -> Sent {
    let mut payload = [0; 64];
    let len = fields(&mut payload, value).expect("two fields have room");
    role.publish(out, item, what, &payload[..len]).unwrap_or(Sent::TooLong)
}

impl ni_provider::NiProviderApplication for Desk {
    fn event(
        &mut self,
        role: &mut NiProvider,
        out: &mut dyn Outbox,
        event: ni_provider::NiProviderEvent<'_>,
    ) {
        match event {
            ni_provider::NiProviderEvent::Connect { .. } => self.wants_connection = true,
            ni_provider::NiProviderEvent::Disconnect => self.hangs_up = true,
            ni_provider::NiProviderEvent::Lost => self.forget(),
            ni_provider::NiProviderEvent::ImageWanted { item, closure } if closure >= ITEMS as u64 => {
                let _ = publish(role, out, item, &Publish::Refresh(image()), closure);
            }
            ni_provider::NiProviderEvent::ImageWanted { item, closure } => {
                let value = self.values[closure as usize];
                if publish(role, out, item, &Publish::Refresh(image()), value) == Sent::Queued {
                    self.told[closure as usize] = Some(value);
                }
            }
            ni_provider::NiProviderEvent::Message { item, message } => {
                if let Ok(Header::Post(header)) = message.header() {
                    self.take_post(message);
                    if post::wants_ack(&header) {
                        let _ = role.ack(out, &post::ack(&header, None));
                    }
                }
                if let (Ok(Header::Generic(header)), Some(item)) = (message.header(), item) {
                    let _ = role.publish(out, item, &Publish::Generic(header), message.payload());
                }
            }
            _ => {}
        }
    }
}

impl provider::ProviderApplication for Desk {
    fn event(&mut self, role: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>) {
        match event {
            ProviderEvent::Login { request, .. } => {
                let features = LoginFeatures {
                    single_open: Some(1),
                    support_omm_post: Some(1),
                    support_optimized_pause_resume: Some(1),
                    ..LoginFeatures::default()
                };
                let _ = role.accept_login(self.now, out, &request, features);
            }
            ProviderEvent::Directory { stream, .. } => {
                let mut directory = Directory::new();
                directory.apply(&service(&self.name));
                let _ = role.directory(out, stream, &directory);
            }
            ProviderEvent::Open { stream, request } if request.is_private() => {
                let name = std::str::from_utf8(request.key.name.unwrap_or_default()).unwrap_or_default();
                let number = name.strip_prefix('T').and_then(|number| number.parse::<u64>().ok());
                self.own.push((stream, number.unwrap_or_default() * NUMBERS, false));
            }
            ProviderEvent::Open { stream, request } => {
                match place(request.key.name.unwrap_or_default()) {
                    // Its image is sent with the next turn.
                    Some(item) => (self.streams[item], self.told[item]) = (Some(stream), None),
                    None => {
                        let state = State {
                            stream: StreamState::CLOSED,
                            data: DataState::SUSPECT,
                            code: StateCode::NOT_FOUND,
                            text: b"no such item",
                        };
                        let status =
                            StatusHeader { state: Some(state), ..StatusHeader::new(request.domain, 0) };
                        let _ = role.status(self.now, out, stream, &status);
                    }
                }
            }
            ProviderEvent::Reissue { stream, request } if request.wants_refresh() => {
                if let Some(own) = self.own.iter_mut().find(|(open, ..)| *open == stream) {
                    own.2 = false;
                }
                if let Some(item) = self.streams.iter().position(|open| *open == Some(stream)) {
                    self.told[item] = None;
                }
            }
            ProviderEvent::Closed { stream } => {
                self.own.retain(|(open, ..)| *open != stream);
                if let Some(item) = self.streams.iter().position(|open| *open == Some(stream)) {
                    (self.streams[item], self.told[item]) = (None, None);
                }
            }
            ProviderEvent::Post { receipt, message, .. } => {
                self.take_post(&message);
                if let Some(receipt) = receipt {
                    let _ = role.ack(out, receipt, None);
                }
            }
            ProviderEvent::Generic { stream: Some(stream), header, message } => {
                let payload = message.payload();
                let _ = role.generic(out, Some(stream), &header, &mut |room| {
                    room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
                    Ok(payload.len())
                });
            }
            _ => {}
        }
    }
}

/// The value that the fields of an item represent.
pub(crate) fn number_of(fields: &Fields) -> Option<u64> {
    real_of(fields, fid::BID)
}

fn real_of(fields: &Fields, fid: Fid) -> Option<u64> {
    let real = Field::new(fid, fields.get(&fid.0)?).real().ok()??;
    u64::try_from(real.mantissa).ok()
}

/// The fields of an item with this value, in a client's form.
pub(crate) fn fields_of(value: u64) -> Fields {
    let mut room = [0; 64];
    let len = fields(&mut room, value).expect("two fields have room");
    let list = FieldList::parse(&room[..len]).expect("it was just written");
    list.into_iter().flatten().map(|field| (field.fid.0, field.data.to_vec())).collect()
}

/// The name of a publisher's invented item by number. Names repeat.
pub(crate) fn novelty(number: u64) -> String {
    format!("X{}", number % NOVELTIES)
}

/// The index of an item, from its name.
pub(crate) fn place(name: &[u8]) -> Option<usize> {
    let place: usize = std::str::from_utf8(name).ok()?.strip_prefix('P')?.parse().ok()?;
    (place < ITEMS).then_some(place)
}
