//! What NI providers publish to.

use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::dictionary::Download;
use tapeline_omm::domain::directory::{Info, ServiceState, filter};
use tapeline_omm::domain::{LoginFeatures, ServiceEntry, directory, post};
use tapeline_omm::role::acceptor::{Acceptor, AcceptorEvent, AcceptorSettings};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    DataType, Domain, Flags, Key, MessageClass, MessageView, PostHeader, PostUserInfo, RefreshHeader,
    StreamState, UpdateHeader, UpdateType, flags,
};
use tapeline_omm::{Dictionary, State};

use super::desk::{dictionary, fields, item, login, message, sent};

struct Desk {
    acceptor: Acceptor,
    out: Queue,
    heard: Vec<String>,
}

impl Desk {
    fn open(settings: AcceptorSettings) -> Self {
        let mut desk =
            Self { acceptor: Acceptor::new(settings, Nanos(0)), out: Queue::new(1 << 20), heard: vec![] };
        desk.take(&login());
        assert_eq!(sent(&mut desk.out).len(), 1);
        desk
    }

    fn take(&mut self, bytes: &[u8]) -> Vec<String> {
        let heard = &mut self.heard;
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let mut application = |acceptor: &mut Acceptor, out: &mut dyn Outbox, event: AcceptorEvent<'_>| {
            let name = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            heard.push(match event {
                AcceptorEvent::Login { request, .. } => {
                    let _ = acceptor.accept_login(out, &request, LoginFeatures::default()).unwrap();
                    "login".to_owned()
                }
                AcceptorEvent::Service(service) => format!("{} {}", service.action, service.id),
                AcceptorEvent::DirectoryCleared => "cleared".to_owned(),
                AcceptorEvent::Image { item, .. } => format!("image {}", name(item.name)),
                AcceptorEvent::Update { item, .. } => format!("update {}", name(item.name)),
                AcceptorEvent::Withdrawn { item } => format!("withdrawn {}", name(item.name)),
                AcceptorEvent::Dictionary(request) => {
                    let _ = acceptor.dictionary(out, request.stream_id, &dictionary);
                    "dictionary".to_owned()
                }
                AcceptorEvent::Ack(ack) => format!("ack {}", ack.ack_id),
                other => panic!("{other:?}"),
            });
        };
        self.acceptor.message(Nanos(0), bytes, &mut self.out, &mut application).unwrap();
        std::mem::take(&mut self.heard)
    }
}

fn image(id: i32, name: &str) -> Vec<u8> {
    let header = RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE,
        key: Some(Key::item(1, name.as_bytes())),
        ..RefreshHeader::new(Domain::MARKET_PRICE, id, State::OPEN_OK, DataType::FIELD_LIST)
    };
    message(|room| header.encode_with(room, fields))
}

fn update(id: i32, key: Option<Key<'_>>) -> Vec<u8> {
    let header = UpdateHeader::new(Domain::MARKET_PRICE, id, UpdateType::QUOTE, DataType::FIELD_LIST);
    message(|room| UpdateHeader { key, ..header }.encode_with(room, fields))
}

#[test]
fn items_are_known_by_stream_and_by_name() {
    let mut desk = Desk::open(AcceptorSettings { most_items: 2, ..AcceptorSettings::default() });
    assert_eq!(desk.take(&image(-1, "A")), ["image A"]);
    assert_eq!(desk.take(&update(-1, None)), ["update A"]);
    assert_eq!(desk.take(&update(-1, Some(Key::item(1, b"A")))), ["update A"]);
    assert_eq!(desk.take(&image(-1, "B")), ["withdrawn A", "image B"]);
    assert_eq!(desk.take(&update(-2, None)), [""; 0], "nobody knows what it is");
    assert_eq!(desk.take(&image(5, "C")), [""; 0], "nobody asked for it");
    assert_eq!(desk.take(&image(-2, "C")), ["image C"]);
    assert_eq!(desk.take(&image(-3, "D")), [""; 0]);
    assert_eq!(sent(&mut desk.out), [(MessageClass::STATUS, -3, Some(StreamState::CLOSED))]);
    assert_eq!((desk.acceptor.items().len(), desk.acceptor.counters().ignored), (2, 2));
    // Items cannot be asked for here.
    assert_eq!(desk.take(&item(9, "X")), [""; 0]);
    assert_eq!(sent(&mut desk.out), [(MessageClass::STATUS, 9, Some(StreamState::CLOSED))]);
}

#[test]
fn a_directory_in_parts_is_one() {
    let mut desk = Desk::open(AcceptorSettings::default());
    let part = |id, flags: Flags| {
        let info = Info { name: Some(format!("S{id}")), ..Info::default() };
        let service = ServiceEntry::new(id, info, ServiceState::UP);
        message(|room| directory::encode_refresh(0, flags, filter::ALL, [&service], room))
    };
    let complete = flags::refresh::REFRESH_COMPLETE;
    assert_eq!(desk.take(&part(1, Flags::NONE)), ["ADD 1"]);
    assert_eq!(desk.take(&part(2, complete)), ["ADD 2"]);
    assert_eq!(desk.acceptor.directory().services().len(), 2);
    assert_eq!(desk.take(&part(3, complete)), ["cleared", "ADD 3"]);
    assert!(desk.acceptor.directory().named("S3").is_some());
    assert_eq!(desk.acceptor.directory().services().len(), 1);
}

#[test]
fn a_provider_downloads_and_takes_posts() {
    let mut desk = Desk::open(AcceptorSettings { dictionary_part_bytes: 700, ..AcceptorSettings::default() });
    assert_eq!(desk.take(&dictionary(3)), ["dictionary"]);
    let mut download = Download::new();
    while let Some(part) = desk.out.pop() {
        download.fields(MessageView::parse(&part).unwrap().payload()).unwrap();
    }
    assert_eq!(download.finish().len(), Dictionary::builtin().len());

    let mut header = PostHeader::new(Domain::MARKET_PRICE, -1, PostUserInfo::default(), DataType::FIELD_LIST);
    header.flags = flags::post::ACK | flags::post::POST_COMPLETE;
    header.post_id = Some(7);
    assert_eq!(desk.acceptor.post(&mut desk.out, &header, &mut fields), Ok(Sent::NotOpen));
    desk.take(&image(-1, "A"));
    assert_eq!(desk.acceptor.post(&mut desk.out, &header, &mut fields), Ok(Sent::Queued));
    assert_eq!(sent(&mut desk.out), [(MessageClass::POST, -1, None)]);
    assert_eq!(desk.take(&message(|room| post::ack(&header, None).encode(room))), ["ack 7"]);
}
