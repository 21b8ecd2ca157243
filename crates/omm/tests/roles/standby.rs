//! The interactive provider as one of several servers of a warm standby.

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::standby::{BY_LOGIN, BY_SERVICE, ConnectionStatus, ServerType};
use tapeline_omm::domain::{Directory, LoginFeatures};
use tapeline_omm::role::provider::{Provider, ProviderEvent, ProviderSettings, StreamHandle};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    DataType, Domain, Flags, Header, Key, MessageView, RefreshHeader, UpdateHeader, UpdateType, flags,
};

use super::desk::{fields, item, login, message, request};

/// A provider that answers at once, and what it heard of its standing.
struct Desk {
    provider: Provider,
    out: Queue,
    streams: Vec<StreamHandle>,
    /// Whether something is active again.
    heard: Vec<bool>,
    generics: usize,
}

fn image() -> RefreshHeader<'static> {
    let header = RefreshHeader::new(Domain(0), 0, State::OPEN_OK, DataType::FIELD_LIST);
    RefreshHeader { flags: flags::refresh::REFRESH_COMPLETE, ..header }
}

impl Desk {
    /// With a consumer that is logged in and has the directory open.
    fn open(offers: Option<u64>) -> Self {
        let mut desk = Self {
            provider: Provider::new(ProviderSettings::default(), Nanos(0)),
            out: Queue::new(1 << 20),
            streams: Vec::new(),
            heard: Vec::new(),
            generics: 0,
        };
        desk.take(&login(), offers);
        desk.take(&request(Domain::SOURCE, 2, flags::request::STREAMING, Key::default()), offers);
        desk.sent();
        desk
    }

    fn take(&mut self, bytes: &[u8], offers: Option<u64>) {
        let Self { provider, out, streams, heard, generics } = self;
        let mut application =
            |provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>| match event {
                ProviderEvent::Login { request, .. } => {
                    let features = LoginFeatures {
                        support_standby: offers.map(|_| 1),
                        support_standby_mode: offers,
                        ..LoginFeatures::default()
                    };
                    let _ = provider.accept_login(Nanos(0), out, &request, features).unwrap();
                }
                ProviderEvent::Directory { stream, .. } => {
                    let _ = provider.directory(out, stream, &Directory::new()).unwrap();
                }
                ProviderEvent::Open { stream, .. } => {
                    streams.push(stream);
                    let _ = provider.refresh(out, stream, &image(), &mut fields).unwrap();
                }
                ProviderEvent::Reissue { stream, .. } => {
                    let _ = provider.refresh(out, stream, &image(), &mut fields).unwrap();
                }
                ProviderEvent::Standing { takes_over } => heard.push(takes_over),
                ProviderEvent::Generic { .. } => *generics += 1,
                other => panic!("{other:?}"),
            };
        provider.message(Nanos(0), bytes, out, &mut application).unwrap();
    }

    fn open_item(&mut self, id: i32, name: &str) {
        self.take(&item(id, name), None);
    }

    fn told(&mut self, status: &ConnectionStatus) {
        let stream = if matches!(status, ConnectionStatus::Login(_)) { 1 } else { 2 };
        self.take(&message(|room| status.encode(stream, room)), None);
    }

    fn update(&mut self, at: usize) -> Sent {
        let header = UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST);
        let update = message(|room| header.encode_with(room, fields));
        let what = (UpdateType::QUOTE, DataType::FIELD_LIST);
        let written =
            self.provider.write_update(&mut self.out, self.streams[at], what, &mut |room| fields(room));
        let sent = self.provider.update(&mut self.out, self.streams[at], &update);
        assert_eq!(written, Ok(sent));
        sent
    }

    fn image(&mut self, at: usize) {
        let sent = self.provider.refresh(&mut self.out, self.streams[at], &image(), &mut fields);
        assert_eq!(sent, Ok(Sent::Queued));
    }

    /// Stream, whether it is asked for and complete, and whether there are data, of each image that was sent.
    fn sent(&mut self) -> Vec<(i32, bool, bool)> {
        let messages: Vec<_> = std::iter::from_fn(|| self.out.pop()).collect();
        let images = messages.iter().filter_map(|bytes| {
            let message = MessageView::parse(bytes).unwrap();
            let Header::Refresh(header) = message.header().unwrap() else { return None };
            assert!(message.is_refresh_complete());
            let has_data = header.container == DataType::FIELD_LIST && !message.payload().is_empty();
            Some((message.stream_id(), header.flags.has(flags::refresh::SOLICITED), has_data))
        });
        images.collect()
    }
}

const ACTIVE: ConnectionStatus = ConnectionStatus::Login(ServerType::Active);
const STANDBY: ConnectionStatus = ConnectionStatus::Login(ServerType::Standby);

#[test]
fn one_that_stands_by_has_no_data_and_no_updates() {
    let mut desk = Desk::open(Some(BY_LOGIN | BY_SERVICE));
    desk.told(&STANDBY);
    desk.open_item(5, "A");
    assert_eq!(desk.sent(), [(5, true, false)]);
    assert!(desk.provider.stands_by(desk.streams[0]));
    assert_eq!(desk.update(0), Sent::NotOpen);
    desk.image(0);
    assert_eq!(desk.sent(), [], "nobody asked for it");
    // Once more for each request.
    desk.open_item(5, "A");
    assert_eq!(desk.sent(), [(5, true, false)]);
    assert_eq!(desk.heard, [false]);
}

#[test]
fn updates_follow_an_image_when_it_becomes_the_active_one() {
    let mut desk = Desk::open(Some(BY_LOGIN));
    desk.told(&STANDBY);
    desk.open_item(5, "A");
    desk.told(&ACTIVE);
    assert_eq!(desk.heard, [false, true]);
    assert_eq!(desk.update(0), Sent::NotOpen, "the consumer has no data that it would change");
    desk.sent();
    desk.image(0);
    assert_eq!(desk.update(0), Sent::Queued);
    assert_eq!(desk.sent(), [(5, false, true)]);
}

#[test]
fn one_that_stands_by_again_begins_with_an_image_again() {
    let mut desk = Desk::open(Some(BY_LOGIN));
    desk.open_item(5, "A");
    // Told what it is already: nothing happens.
    desk.told(&ACTIVE);
    assert_eq!(desk.update(0), Sent::Queued);
    desk.told(&STANDBY);
    assert_eq!(desk.update(0), Sent::NotOpen);
    desk.told(&ACTIVE);
    assert_eq!(desk.update(0), Sent::NotOpen);
    desk.image(0);
    assert_eq!(desk.update(0), Sent::Queued);
    assert_eq!(desk.heard, [false, true]);
}

#[test]
fn services_stand_by_one_by_one() {
    let mut desk = Desk::open(Some(BY_LOGIN | BY_SERVICE));
    let of = |server| ConnectionStatus::Services(vec![(1, server)]);
    desk.told(&of(ServerType::Standby));
    desk.open_item(5, "A");
    desk.take(&request(Domain::MARKET_PRICE, 6, flags::request::STREAMING, Key::item(2, b"B")), None);
    assert_eq!(desk.sent(), [(5, true, false), (6, true, true)]);
    assert_eq!([desk.update(0), desk.update(1)], [Sent::NotOpen, Sent::Queued]);
    desk.told(&of(ServerType::Active));
    desk.image(0);
    assert_eq!([desk.update(0), desk.update(1)], [Sent::Queued, Sent::Queued]);
    assert!(desk.streams.iter().all(|stream| desk.provider.has_image(*stream)));
    assert_eq!(desk.heard, [false, true]);
}

#[test]
fn however_many_services_a_message_names_it_is_one_event() {
    let mut desk = Desk::open(Some(BY_SERVICE));
    desk.open_item(5, "A");
    let of = |server| ConnectionStatus::Services((1..=200).map(|id| (id, server)).collect());
    desk.told(&of(ServerType::Standby));
    assert!(!desk.provider.has_image(desk.streams[0]));
    desk.told(&of(ServerType::Active));
    assert_eq!(desk.heard, [false, true]);
}

#[test]
fn who_wants_an_image_alone_has_it_from_one_that_stands_by() {
    let mut desk = Desk::open(Some(BY_LOGIN));
    desk.told(&STANDBY);
    desk.take(&request(Domain::MARKET_PRICE, 5, Flags::NONE, Key::item(1, b"A")), None);
    assert_eq!(desk.sent(), [(5, true, true)]);
}

#[test]
fn what_was_not_offered_is_for_the_application() {
    for (offers, taken) in [(None, 0), (Some(BY_SERVICE), 0), (Some(BY_LOGIN), 1)] {
        let mut desk = Desk::open(offers);
        desk.told(&STANDBY);
        assert_eq!((desk.heard.len(), desk.generics), (taken, 1 - taken), "{offers:?}");
        desk.open_item(5, "A");
        assert_eq!(desk.update(0) == Sent::Queued, taken == 0, "{offers:?}");
    }
}
