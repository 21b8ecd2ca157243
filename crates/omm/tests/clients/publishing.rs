//! The NI provider.

use std::collections::{HashMap, VecDeque};

use tapeline_nanos::Nanos;
use tapeline_omm::domain::directory::{self, ServiceEntry, ServicePart, ServiceState};
use tapeline_omm::domain::{LoginRequest, OwnedState};
use tapeline_omm::role::ni_provider::{
    NiProvider, NiProviderApplication, NiProviderEvent, NiProviderSettings, NotAdded, Publish,
};
use tapeline_omm::role::watchlist::Handle;
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    AckHeader, DataState, DataType, Domain, Header, MessageView, RefreshHeader, StatusHeader, StreamState,
    UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Refused, State};

use super::captured::{self, Captured};
use super::desk::{SECOND, brief, encode, login_refresh, outline};
use super::recovery::service;

/// An application that publishes an empty image whenever one is wanted.
#[derive(Default)]
struct Publisher {
    lines: Vec<String>,
    publishes: bool,
}

fn image() -> Publish<'static> {
    let header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
    Publish::Refresh(RefreshHeader { flags: flags::refresh::REFRESH_COMPLETE, ..header })
}

fn update() -> Publish<'static> {
    Publish::Update(UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST))
}

impl NiProviderApplication for Publisher {
    fn event(&mut self, provider: &mut NiProvider, out: &mut dyn Outbox, event: NiProviderEvent<'_>) {
        self.lines.push(match event {
            NiProviderEvent::ImageWanted { item, closure } => {
                if self.publishes {
                    let sent = provider.publish(out, item, &image(), &[]).unwrap();
                    format!("image of {closure}: {sent:?}")
                } else {
                    format!("image of {closure}")
                }
            }
            NiProviderEvent::Message { item, message } => {
                format!("{} of {}", message.class(), item.is_some())
            }
            NiProviderEvent::Login { state, .. } => format!("login {state}"),
            NiProviderEvent::Ended { state } => format!("ended {state}"),
            NiProviderEvent::Dictionary(_) => "dictionary".into(),
            other => format!("{other:?}"),
        });
    }
}

struct Desk {
    provider: NiProvider,
    app: Publisher,
    out: Queue,
    now: Nanos,
    next: Option<Nanos>,
}

impl Desk {
    fn new(settings: NiProviderSettings, services: &[ServiceEntry]) -> Self {
        let provider = NiProvider::new(settings, &LoginRequest::new(b"publisher"), services).unwrap();
        let app = Publisher { publishes: true, ..Publisher::default() };
        Self { provider, app, out: Queue::new(1 << 20), now: Nanos(SECOND), next: None }
    }

    fn tick(&mut self) {
        self.next = self.provider.tick(self.now, &mut self.out, &mut self.app);
    }

    fn connect(&mut self) {
        self.tick();
        while self.app.lines.last().is_none_or(|line| !line.starts_with("Connect")) {
            self.now = self.next.unwrap();
            self.tick();
        }
        self.provider.connected(self.now, &mut self.out);
    }

    fn feed(&mut self, message: &[u8]) {
        self.provider.message(self.now, message, &mut self.out, &mut self.app);
        self.tick();
    }

    fn sent(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.out.pop()).map(|message| brief(&message)).collect()
    }

    fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.app.lines)
    }
}

/// Feeds the hub's side, and does what the application did where the provider does not of itself.
fn replay(name: &str, messages: &[Captured]) -> (usize, usize) {
    let view = MessageView::parse(&messages[0].bytes).unwrap();
    let Header::Request(request) = view.header().unwrap() else { panic!("{name}: no login") };
    let login = LoginRequest::read(&request).unwrap();
    // What is published of services is in the first directory; a provider that is refused never gets to it.
    let directory = messages
        .iter()
        .map(|message| MessageView::parse(&message.bytes).unwrap())
        .find(|message| message.domain() == Domain::SOURCE);
    let services: Vec<_> = directory
        .map(|message| directory::services(message.payload()).unwrap().map(Result::unwrap).collect())
        .unwrap_or_default();
    let mut desk = Desk::new(NiProviderSettings::default(), &services);
    desk.provider = NiProvider::new(NiProviderSettings::default(), &login, &services).unwrap();
    desk.app.publishes = false;
    desk.connect();
    let (mut items, mut sent, mut compared, mut of_itself) = (HashMap::new(), VecDeque::new(), 0, 0);
    for message in messages {
        if !message.is_clients {
            desk.feed(&message.bytes);
            continue;
        }
        sent.extend(std::iter::from_fn(|| desk.out.pop()));
        of_itself += usize::from(!sent.is_empty());
        if sent.is_empty() {
            let view = MessageView::parse(&message.bytes).unwrap();
            let header = view.header().unwrap();
            let key = header.key().copied().unwrap_or_default();
            let item: Option<Handle> = key.name.map(|name| {
                *items.entry(name.to_vec()).or_insert_with(|| {
                    desk.provider.add(key.service_id.unwrap(), view.domain(), name, 0).unwrap()
                })
            });
            let what = match header {
                Header::Refresh(header) => Some(Publish::Refresh(header)),
                Header::Update(header) => Some(Publish::Update(header)),
                Header::Status(header) => Some(Publish::Status(header)),
                _ => None,
            };
            match (what, item) {
                (Some(what), Some(item)) => {
                    if !matches!(what, Publish::Refresh(_)) && !desk.provider.is_published(item) {
                        // Its image is too long for the file.
                        let _ = desk.provider.publish(&mut desk.out, item, &image(), &[]).unwrap();
                        desk.sent();
                    }
                    let done = desk.provider.publish(&mut desk.out, item, &what, view.payload()).unwrap();
                    assert_eq!(done, Sent::Queued, "{name}, record {}", message.record);
                }
                _ => desk.provider.log_out(&mut desk.out, &mut desk.app),
            }
            sent.extend(std::iter::from_fn(|| desk.out.pop()));
        }
        let found = sent.pop_front().unwrap();
        assert_eq!(outline(&found), outline(&message.bytes), "{name}, record {}", message.record);
        compared += 1;
    }
    assert!(sent.is_empty() && desk.out.is_empty(), "{name}");
    if name.starts_with("ni-04") {
        assert!(desk.provider.is_ended());
    }
    (compared, of_itself)
}

#[test]
fn captured_conversations_are_carried_on_as_the_vendors_ni_provider_did() {
    let (mut compared, mut of_itself) = (0, 0);
    let conversations = captured::conversations(&["ni-"]);
    for (name, messages) in &conversations {
        let (all, own) = replay(name, messages);
        println!("{name}: {all} compared, {own} of itself");
        (compared, of_itself) = (compared + all, of_itself + own);
    }
    if !conversations.is_empty() {
        assert_eq!((conversations.len(), compared, of_itself), (5, 42, 9));
    }
}

#[test]
fn everything_is_published_again_on_the_next_connection() {
    let mut desk = Desk::new(NiProviderSettings::default(), &[service(2, "NI")]);
    let [a, b] = [b"A", b"B"]
        .map(|name| desk.provider.add(2, Domain::MARKET_PRICE, name, u64::from(name[0])).unwrap());
    desk.connect();
    assert_eq!(desk.sent(), ["REQUEST 1 publisher"]);
    assert_eq!(desk.provider.publish(&mut desk.out, a, &image(), &[]), Ok(Sent::NotOpen));
    desk.feed(&login_refresh(State::OPEN_OK, &[]));
    assert_eq!(desk.sent(), ["REFRESH 0", "REFRESH -1 A", "REFRESH -2 B"]);
    desk.heard();

    // An update that is written in place has no key, and else is the same.
    let mut payload = |room: &mut [u8]| {
        room.get_mut(..3).ok_or(Refused::Full)?.copy_from_slice(&[8, 0, 0]);
        Ok(3)
    };
    let what = (UpdateType::QUOTE, DataType::FIELD_LIST);
    let sent = desk.provider.write_update(&mut desk.out, b, what, &mut payload);
    assert_eq!(
        (sent, desk.out.pop()),
        (Ok(Sent::Queued), Some([0, 9, 4, 6, 255, 255, 255, 254, 0, 4, 1, 8, 0, 0].into()))
    );
    assert_eq!(desk.provider.write_update(&mut Queue::new(0), b, what, &mut payload), Ok(Sent::Full));

    desk.provider.disconnected(desk.now, &mut desk.app);
    assert!(!desk.provider.is_published(a));
    assert_eq!(desk.provider.write_update(&mut desk.out, a, what, &mut payload), Ok(Sent::NotOpen));
    assert_eq!(desk.provider.publish(&mut desk.out, a, &update(), &[]), Ok(Sent::NotOpen));
    let change = ServicePart::State(ServiceState { service_state: Some(0), ..ServiceState::default() });
    assert_eq!(
        desk.provider.change_service(&mut desk.out, &ServiceEntry::change(2, change)),
        Ok(Sent::NotOpen)
    );
    desk.connect();
    assert_eq!(desk.heard(), ["Lost", "Connect { attempt: 0 }"]);
    desk.sent();
    desk.feed(&login_refresh(State::OPEN_OK, &[]));
    let directory = desk.out.pop().unwrap();
    let directory = MessageView::parse(&directory).unwrap();
    let published: Vec<_> = directory::services(directory.payload()).unwrap().map(Result::unwrap).collect();
    assert_eq!(published[0].state().unwrap().service_state, Some(0), "changes are remembered");
    assert_eq!(desk.sent(), ["REFRESH -1 A", "REFRESH -2 B"]);

    assert_eq!(desk.provider.withdraw(&mut desk.out, a, b"gone"), Ok(Sent::Queued));
    assert_eq!(desk.provider.publish(&mut desk.out, a, &update(), &[]), Ok(Sent::NotOpen), "nobody's handle");
    assert_eq!(desk.provider.publish(&mut desk.out, b, &update(), &[]), Ok(Sent::Queued));
    assert_eq!(desk.sent(), ["STATUS -1 A", "UPDATE -2 B"]);
    let status = State { stream: StreamState::CLOSED, data: DataState::SUSPECT, ..State::OPEN_OK };
    let status = StatusHeader { state: Some(status), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
    assert_eq!(desk.provider.publish(&mut desk.out, b, &Publish::Status(status), &[]), Ok(Sent::Queued));
    assert_eq!(desk.provider.items(), 0);
    let status = OwnedState::from(State::OPEN_OK);
    let up = ServicePart::State(ServiceState { status: Some(status), ..ServiceState::UP });
    assert_eq!(desk.provider.change_service(&mut desk.out, &ServiceEntry::change(2, up)), Ok(Sent::Queued));
    assert_eq!(desk.sent(), ["STATUS -2 B", "UPDATE 0"]);
    desk.provider.log_out(&mut desk.out, &mut desk.app);
    assert_eq!((desk.sent(), desk.provider.is_ended()), (vec!["CLOSE 1".into()], true));
}

#[test]
fn images_wait_for_room() {
    let mut desk = Desk::new(NiProviderSettings::default(), &[service(2, "NI")]);
    for name in 0..100_u64 {
        desk.provider.add(2, Domain::MARKET_PRICE, name.to_string().as_bytes(), name).unwrap();
    }
    desk.connect();
    desk.sent();
    // Room for a handful of messages at a time.
    desk.out = Queue::new(500);
    desk.feed(&login_refresh(State::OPEN_OK, &[]));
    let mut all = Vec::new();
    for _ in 0..200 {
        all.append(&mut desk.sent());
        desk.tick();
    }
    assert_eq!(all.len(), 101);
    assert_eq!(all.last().unwrap(), "REFRESH -100 99");
    let full = desk.heard().iter().filter(|line| line.ends_with("Full")).count();
    assert!(full > 5, "{full} times there was no room");
}

#[test]
fn a_login_that_is_refused_late_or_lost() {
    let mut desk =
        Desk::new(NiProviderSettings { most_items: 1, ..NiProviderSettings::default() }, &[service(2, "NI")]);
    assert_eq!(desk.provider.add(2, Domain::MARKET_PRICE, &[b'n'; 256], 0), Err(NotAdded::LongName(256)));
    desk.provider.add(2, Domain::MARKET_PRICE, b"A", 0).unwrap();
    assert_eq!(desk.provider.add(2, Domain::MARKET_PRICE, b"B", 0), Err(NotAdded::TooMany(1)));
    desk.connect();
    desk.sent();
    let recover = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
    desk.feed(&login_refresh(recover, &[]));
    desk.now = desk.next.unwrap();
    desk.tick();
    assert_eq!(desk.sent(), ["REQUEST 1 publisher"], "it logs in again");
    desk.now = desk.now + 45 * SECOND;
    desk.heard();
    desk.tick();
    assert_eq!(desk.heard(), ["TimedOut", "Disconnect", "Lost"]);
    desk.connect();
    desk.sent();
    let closed = State { stream: StreamState::CLOSED, data: DataState::SUSPECT, ..State::OPEN_OK };
    desk.heard();
    desk.feed(&login_refresh(closed, &[]));
    assert_eq!(desk.heard(), ["login CLOSED/SUSPECT/NONE", "Disconnect", "ended CLOSED/SUSPECT/NONE"]);
    assert_eq!((desk.next, desk.provider.is_ended()), (None, true));
}

#[test]
fn what_the_hub_sends_reaches_the_application() {
    let mut desk = Desk::new(
        NiProviderSettings { downloads_dictionary: true, ..NiProviderSettings::default() },
        &[service(2, "NI")],
    );
    desk.provider.add(2, Domain::MARKET_PRICE, b"A", 0).unwrap();
    desk.connect();
    desk.feed(&login_refresh(State::OPEN_OK, &[("SupportProviderDictionaryDownload", 1)]));
    assert_eq!(
        desk.sent(),
        ["REQUEST 1 publisher", "REFRESH 0", "REQUEST 3 RWFFld", "REQUEST 4 RWFEnum", "REFRESH -1 A"]
    );
    let dictionary = tapeline_omm::Dictionary::builtin();
    desk.heard();
    // The enumerations first: they wait for the fields.
    for (id, kind) in [
        (4, tapeline_omm::domain::DictionaryKind::Enumerations),
        (3, tapeline_omm::domain::DictionaryKind::Fields),
    ] {
        let request = tapeline_omm::domain::DictionaryRequest::new(id, 2, kind);
        let mut out = vec![0; 1 << 16];
        let part = request.encode_part(kind, dictionary, 0, &mut out).unwrap();
        assert!(part.is_last);
        desk.feed(&out[..part.len]);
    }
    assert_eq!(desk.heard(), ["dictionary"]);
    assert_eq!(desk.provider.dictionary().unwrap().len(), dictionary.len());
    for id in [-1, -7, i32::MIN, 5] {
        let post = tapeline_omm::rwf::PostHeader::new(
            Domain::MARKET_PRICE,
            id,
            Default::default(),
            DataType::FIELD_LIST,
        );
        desk.feed(&encode(|out| post.encode(out)));
    }
    assert_eq!(desk.heard(), ["POST of true", "POST of false", "POST of false", "POST of false"]);
    assert_eq!(
        desk.provider.ack(&mut desk.out, &AckHeader::new(Domain::MARKET_PRICE, -1, 7)),
        Ok(Sent::Queued)
    );
}
