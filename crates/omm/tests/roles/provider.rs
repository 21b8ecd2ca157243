//! The interactive provider.

use std::sync::Arc;

use tapeline_nanos::Nanos;
use tapeline_omm::dictionary::Download;
use tapeline_omm::domain::directory::{Group, Info, Load, ServiceState, filter};
use tapeline_omm::domain::item::encode_batch_close;
use tapeline_omm::domain::{
    Directory, List, LoginFeatures, LoginRequest, OwnedState, RequestPayload, ServiceEntry, ServicePart,
    directory,
};
use tapeline_omm::role::provider::{Provider, ProviderEvent, ProviderSettings, StreamHandle};
use tapeline_omm::role::{Outbox, Over, Queue, Sent};
use tapeline_omm::rwf::{
    CloseHeader, DataState, DataType, Domain, Flags, GenericHeader, Header, Key, MapAction, MessageClass,
    MessageView, PostHeader, PostUserInfo, RefreshHeader, RequestHeader, StateCode, StatusHeader,
    StreamState, UpdateType, flags, update_header,
};
use tapeline_omm::{Dictionary, Refused, State};

use super::desk::{close, dictionary, fields, item, login, message, request, sent};

const CLOSED: Option<StreamState> = Some(StreamState::CLOSED);
const OPEN: Option<StreamState> = Some(StreamState::OPEN);
const RECOVER: Option<StreamState> = Some(StreamState::CLOSED_RECOVER);

/// A provider and what its application heard.
struct Desk {
    provider: Provider,
    out: Queue,
    now: Nanos,
    streams: Vec<StreamHandle>,
    heard: Vec<String>,
    /// Answers items at once.
    answers: bool,
}

impl Desk {
    fn new(settings: ProviderSettings, room: usize) -> Self {
        let provider = Provider::new(settings, Nanos(0));
        Self {
            provider,
            out: Queue::new(room),
            now: Nanos(0),
            streams: vec![],
            heard: vec![],
            answers: false,
        }
    }

    /// With a consumer that is logged in.
    fn open(settings: ProviderSettings) -> Self {
        let mut desk = Self::new(settings, 1 << 20);
        desk.take(&login()).unwrap();
        assert_eq!(sent(&mut desk.out), [(MessageClass::REFRESH, 1, OPEN)]);
        desk
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Over> {
        let (now, streams, heard, answers) = (self.now, &mut self.streams, &mut self.heard, self.answers);
        let mut application =
            |provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>| match event {
                ProviderEvent::Login { request, .. } => {
                    let _ = provider.accept_login(now, out, &request, LoginFeatures::default()).unwrap();
                }
                ProviderEvent::Directory { stream, .. } | ProviderEvent::Dictionary { stream, .. } => {
                    streams.push(stream);
                }
                ProviderEvent::Open { stream, request } => {
                    let view = request.view.is_some();
                    heard.push(format!("open {} {view}", String::from_utf8_lossy(request.key.name.unwrap())));
                    streams.push(stream);
                    if answers {
                        let _ = provider.refresh(out, stream, &image(), &mut fields).unwrap();
                    }
                }
                ProviderEvent::Reissue { stream, request } => {
                    let id = provider.stream_id(stream).unwrap();
                    heard.push(format!("again {id} {} {}", request.is_pause(), request.wants_refresh()));
                }
                ProviderEvent::Closed { .. } => heard.push("closed".to_owned()),
                ProviderEvent::Malformed(_) => heard.push("malformed".to_owned()),
                other => panic!("{other:?}"),
            };
        self.provider.message(self.now, bytes, &mut self.out, &mut application)
    }

    fn tick(&mut self, now: u64) -> Result<Option<Nanos>, Over> {
        self.now = Nanos(now);
        let mut nothing = |_: &mut Provider, _: &mut dyn Outbox, _: ProviderEvent<'_>| ();
        self.provider.tick(self.now, &mut self.out, &mut nothing)
    }

    fn refresh(&mut self, at: usize) -> Sent {
        self.provider.refresh(&mut self.out, self.streams[at], &image(), &mut fields).unwrap()
    }

    fn refuse(&mut self, at: usize, stream: StreamState) -> Sent {
        let state = State { stream, data: DataState::SUSPECT, ..State::OPEN_OK };
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain(0), 0) };
        self.provider.status(self.now, &mut self.out, self.streams[at], &header).unwrap()
    }

    fn change(&mut self, changes: &[ServiceEntry]) {
        assert_eq!(self.provider.directory_changed(&mut self.out, changes), Ok(Sent::Queued));
    }

    fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.heard)
    }
}

fn image() -> RefreshHeader<'static> {
    let header = RefreshHeader::new(Domain(0), 0, State::OPEN_OK, DataType::FIELD_LIST);
    RefreshHeader { flags: flags::refresh::REFRESH_COMPLETE, ..header }
}

fn update() -> Vec<u8> {
    message(|room| {
        let (update, list) = (UpdateType::QUOTE, DataType::FIELD_LIST);
        let header = update_header(room, Domain::MARKET_PRICE, 0, update, list)?;
        Ok(header + fields(&mut room[header..])?)
    })
}

fn batch(id: i32, payload: &RequestPayload<'_>) -> Vec<u8> {
    let key = Key { service_id: Some(1), ..Key::default() };
    let mut header = RequestHeader::new(Domain::MARKET_PRICE, id, key);
    header.flags = flags::request::STREAMING;
    payload.mark(&mut header);
    message(|room| header.encode_with(room, |room| payload.encode(room)))
}

#[test]
fn a_batch_takes_the_ids_behind_its_own() {
    let mut desk = Desk::open(ProviderSettings::default());
    desk.answers = true;
    desk.take(&item(12, "X")).unwrap();
    sent(&mut desk.out);
    let names = RequestPayload { items: Some(List::Given(&[b"A", b"", b"B"])), ..RequestPayload::default() };
    desk.take(&batch(10, &names)).unwrap();
    desk.heard();
    // 11 is free; 12 has no name, and is another's.
    let status = (MessageClass::STATUS, 10, CLOSED);
    let image = |id| (MessageClass::REFRESH, id, OPEN);
    assert_eq!(sent(&mut desk.out), [status, image(11), image(13)]);
    assert_eq!(desk.provider.open_streams(), 3);
    assert_eq!(desk.provider.key(desk.streams[2]).unwrap().name, Some(&b"B"[..]));

    // The streams are named again to be reissued, and to be closed.
    let streams = RequestPayload { streams: Some(List::Given(&[11, 13, 99])), ..RequestPayload::default() };
    desk.take(&batch(20, &streams)).unwrap();
    assert_eq!(desk.heard(), ["again 11 false true", "again 13 false true"]);
    assert_eq!(sent(&mut desk.out), [(MessageClass::STATUS, 20, CLOSED)]);
    let header = CloseHeader { flags: flags::close::ACK, ..CloseHeader::new(Domain::MARKET_PRICE, 11) };
    desk.take(&message(|room| encode_batch_close(&header, &[11, 13, 99], room))).unwrap();
    assert_eq!(desk.heard(), ["closed", "closed"]);
    assert_eq!(sent(&mut desk.out), [(MessageClass::STATUS, 11, CLOSED), (MessageClass::ACK, 11, None)]);
    assert_eq!((desk.provider.open_streams(), desk.refresh(1)), (1, Sent::NotOpen));
}

/// As a consumer of the vendor's library does: whoever is refused with CLOSED_RECOVER asks again at once.
#[test]
fn refusals_make_no_storm() {
    let mut desk = Desk::open(ProviderSettings::default());
    let (mut id, mut refused) = (3, 0);
    desk.take(&item(id, "A")).unwrap();
    assert_eq!(desk.refuse(0, StreamState::CLOSED_RECOVER), Sent::Queued);
    // Ten seconds in steps of one millisecond.
    for millisecond in 1..=10_000 {
        for (class, closed, state) in sent(&mut desk.out) {
            assert_eq!((class, closed, state), (MessageClass::STATUS, id, RECOVER));
            refused += 1;
            id += 1;
            desk.take(&item(id, "A")).unwrap();
            let last = desk.streams.len() - 1;
            assert_eq!(desk.refuse(last, StreamState::CLOSED_RECOVER), Sent::Queued);
            assert_eq!(desk.refresh(last), Sent::NotOpen, "it is closed for the application");
        }
        let due = desk.tick(millisecond * 1_000_000).unwrap();
        assert!(due.is_none_or(|due| due > desk.now));
    }
    // The first at once, and then one each second.
    assert_eq!(refused, 10);
    // What is final is said at once, and what is closed meanwhile is not said.
    desk.take(&item(id + 1, "B")).unwrap();
    assert_eq!(desk.refuse(desk.streams.len() - 1, StreamState::CLOSED), Sent::Queued);
    assert_eq!(sent(&mut desk.out).last().unwrap(), &(MessageClass::STATUS, id + 1, CLOSED));
    desk.take(&close(Domain::MARKET_PRICE, id, Flags::NONE)).unwrap();
    desk.tick(60_000_000_000).unwrap();
    assert_eq!((sent(&mut desk.out), desk.provider.open_streams()), (vec![], 0));
}

fn services() -> Directory {
    let mut directory = Directory::new();
    for id in [1, 2] {
        let info = Info { name: Some(format!("S{id}")), ..Info::default() };
        let mut service = ServiceEntry::new(id, info, ServiceState::UP);
        let load = Load { open_limit: Some(5), ..Load::default() };
        service.parts.push((tapeline_omm::rwf::FilterAction::SET, ServicePart::Load(load)));
        directory.apply(&service);
    }
    directory
}

/// A service, and the ids of the filters that are given of it.
type Given = (u16, Vec<u8>);

/// Stream and services of each directory message.
fn sent_services(out: &mut Queue) -> Vec<(i32, Vec<Given>)> {
    std::iter::from_fn(|| out.pop())
        .map(|bytes| {
            let message = MessageView::parse(&bytes).unwrap();
            assert_eq!(message.domain(), Domain::SOURCE);
            let services = directory::services(message.payload()).unwrap().map(Result::unwrap);
            let ids = services.map(|s| (s.id, s.parts.iter().map(|(_, part)| part.id()).collect())).collect();
            (message.stream_id(), ids)
        })
        .collect()
}

#[test]
fn directories_are_what_was_asked_for() {
    let mut desk = Desk::open(ProviderSettings::default());
    let key = |service_id, filter| Key { service_id, filter: Some(filter), ..Key::default() };
    let streaming = flags::request::STREAMING;
    desk.take(&request(Domain::SOURCE, 2, streaming, key(None, filter::ALL))).unwrap();
    desk.take(&request(Domain::SOURCE, 3, streaming, key(Some(2), filter::STATE | filter::GROUP))).unwrap();
    desk.take(&request(Domain::SOURCE, 4, Flags::NONE, key(None, filter::INFO))).unwrap();
    for stream in desk.streams.clone() {
        assert_eq!(desk.provider.directory(&mut desk.out, stream, &services()), Ok(Sent::Queued));
    }
    let all = [filter::INFO_ID, filter::STATE_ID, filter::LOAD_ID];
    let expected = [
        (2, vec![(1, all.to_vec()), (2, all.to_vec())]),
        (3, vec![(2, vec![filter::STATE_ID])]),
        (4, vec![(1, vec![filter::INFO_ID]), (2, vec![filter::INFO_ID])]),
    ];
    assert_eq!(sent_services(&mut desk.out), expected);
    assert_eq!(desk.provider.open_streams(), 2, "a snapshot is over with its image");

    let load = ServicePart::Load(Load { open_window: Some(0), ..Load::default() });
    let changes =
        [ServiceEntry::change(2, load), ServiceEntry::change(1, ServicePart::State(ServiceState::UP))];
    desk.change(&changes);
    // Stream 3 has asked for neither.
    let expected = [(2, vec![(2, vec![filter::LOAD_ID]), (1, vec![filter::STATE_ID])])];
    assert_eq!(sent_services(&mut desk.out), expected);
    desk.change(&[ServiceEntry::delete(2)]);
    assert_eq!(sent_services(&mut desk.out), [(2, vec![(2, vec![])]), (3, vec![(2, vec![])])]);
}

#[test]
fn groups_and_services_close_their_items() {
    let mut desk = Desk::open(ProviderSettings::default());
    for (id, name) in [(3, "A"), (4, "B"), (5, "C")] {
        desk.take(&item(id, name)).unwrap();
    }
    let group = |group: &[u8]| Some(Box::from(group));
    for (at, id) in [(0, &b"g1"[..]), (1, b"g2"), (2, b"")] {
        let header = RefreshHeader { group_id: id, ..image() };
        let _ = desk.provider.refresh(&mut desk.out, desk.streams[at], &header, &mut fields).unwrap();
    }
    let closed = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
    let change = |part| [ServiceEntry::change(1, ServicePart::Group(part))];
    let open = |desk: &Desk| {
        desk.streams.iter().map(|stream| desk.provider.key(*stream).is_some()).collect::<Vec<_>>()
    };
    let merge = Group { group: group(b"g1"), merged_to_group: group(b"g2"), status: None };
    desk.change(&change(merge));
    let other = Group { group: group(b"g1"), status: Some(OwnedState::from(closed)), merged_to_group: None };
    desk.change(&change(other.clone()));
    assert_eq!(open(&desk), [true, true, true], "nothing is left in that group");
    let merged = Group { group: group(b"g2"), ..other };
    desk.change(&change(merged));
    assert_eq!(open(&desk), [false, false, true]);
    let gone = ServiceEntry { action: MapAction::DELETE, ..ServiceEntry::delete(1) };
    desk.change(&[gone]);
    assert_eq!((open(&desk), desk.provider.open_streams()), (vec![false, false, false], 0));
}

#[test]
fn one_update_goes_to_many_streams() {
    let mut desk = Desk::open(ProviderSettings::default());
    let wants_key = flags::request::STREAMING | flags::request::MSG_KEY_IN_UPDATES;
    for (id, flags) in [(3, flags::request::STREAMING), (4, flags::request::STREAMING), (5, wants_key)] {
        desk.take(&request(Domain::MARKET_PRICE, id, flags, Key::item(1, b"A"))).unwrap();
    }
    let update = update();
    assert_eq!(desk.provider.publish(&mut desk.out, &desk.streams, &update), 3);
    assert!(desk.out.is_empty(), "before an image nobody can make sense of it");
    (0..3).for_each(|at| assert_eq!(desk.refresh(at), Sent::Queued));
    sent(&mut desk.out);
    let mut small = Queue::new(2 * (update.len() + 32));
    assert_eq!(desk.provider.publish(&mut small, &desk.streams, &update), 2, "the third has no room");
    assert_eq!(desk.provider.publish(&mut desk.out, &desk.streams, &update), 3);
    for id in [3, 4] {
        let mut expected = update.clone();
        tapeline_omm::rwf::patch_stream_id(&mut expected, id).unwrap();
        assert_eq!(desk.out.pop().as_deref(), Some(&expected[..]));
    }
    let with_key = desk.out.pop().unwrap();
    let with_key = MessageView::parse(&with_key).unwrap();
    assert_eq!(with_key.key().unwrap(), Some(Key::item(1, b"A")));
    assert_eq!(with_key.payload(), MessageView::parse(&update).unwrap().payload());

    // Paused: by itself, or with the login.
    let pause = flags::request::STREAMING | flags::request::PAUSE | flags::request::NO_REFRESH;
    desk.take(&request(Domain::MARKET_PRICE, 3, pause, Key::item(1, b"A"))).unwrap();
    assert_eq!(desk.heard().last().unwrap(), "again 3 true false");
    assert_eq!(desk.provider.update(&mut desk.out, desk.streams[0], &update), Sent::NotOpen);
    desk.take(&item(3, "A")).unwrap();
    assert_eq!(desk.heard(), ["again 3 false true"]);
    assert_eq!(desk.provider.update(&mut desk.out, desk.streams[0], &update), Sent::Queued);
    let paused = LoginRequest { flags: pause, ..LoginRequest::new(b"user") };
    desk.take(&message(|room| paused.encode(room))).unwrap();
    assert_eq!(desk.provider.update(&mut desk.out, desk.streams[0], &update), Sent::NotOpen);
    desk.take(&login()).unwrap();
    assert_eq!(desk.provider.update(&mut desk.out, desk.streams[0], &update), Sent::Queued);
    // Another key on an open stream changes nothing.
    sent(&mut desk.out);
    desk.take(&item(3, "B")).unwrap();
    assert_eq!((sent(&mut desk.out), desk.heard()), (vec![(MessageClass::STATUS, 3, OPEN)], vec![]));
}

#[test]
fn an_update_that_is_written_in_place_is_the_one_that_is_passed_on() {
    let mut desk = Desk::open(ProviderSettings::default());
    let wants_key = flags::request::STREAMING | flags::request::MSG_KEY_IN_UPDATES;
    for (id, flags) in [(3, flags::request::STREAMING), (4, wants_key)] {
        desk.take(&request(Domain::MARKET_PRICE, id, flags, Key::item(1, b"A"))).unwrap();
    }
    let update = update();
    let view = MessageView::parse(&update).unwrap();
    let write = |desk: &mut Desk, out: &mut Queue, at: usize| {
        let what = (view.update_type().unwrap(), view.container());
        let payload = |room: &mut [u8]| {
            let len = view.payload().len();
            room.get_mut(..len).ok_or(Refused::Full)?.copy_from_slice(view.payload());
            Ok(len)
        };
        desk.provider.write_update(out, desk.streams[at], what, &mut { payload }).unwrap()
    };
    let mut out = Queue::new(1 << 20);
    assert_eq!(write(&mut desk, &mut out, 0), Sent::NotOpen, "before an image nobody can make sense of it");
    (0..2).for_each(|at| assert_eq!(desk.refresh(at), Sent::Queued));
    sent(&mut desk.out);
    for at in 0..2 {
        assert_eq!(write(&mut desk, &mut out, at), Sent::Queued);
        assert_eq!(desk.provider.update(&mut desk.out, desk.streams[at], &update), Sent::Queued);
        assert_eq!(out.pop(), desk.out.pop(), "{at}");
    }
    assert_eq!(write(&mut desk, &mut Queue::new(0), 0), Sent::Full);
    let pause = flags::request::STREAMING | flags::request::PAUSE | flags::request::NO_REFRESH;
    desk.take(&request(Domain::MARKET_PRICE, 3, pause, Key::item(1, b"A"))).unwrap();
    assert_eq!(write(&mut desk, &mut out, 0), Sent::NotOpen);
    assert!(out.is_empty());
}

#[test]
fn snapshots_end_and_private_streams_say_so() {
    let mut desk = Desk::open(ProviderSettings::default());
    let private = flags::request::STREAMING | flags::request::PRIVATE_STREAM;
    desk.take(&request(Domain::MARKET_PRICE, 3, Flags::NONE, Key::item(1, b"S"))).unwrap();
    desk.take(&request(Domain::MARKET_PRICE, 4, private, Key::item(1, b"P"))).unwrap();
    assert_eq!((desk.refresh(0), desk.refresh(0)), (Sent::Queued, Sent::NotOpen));
    // The second image was asked for by nobody.
    assert_eq!((desk.refresh(1), desk.refresh(1)), (Sent::Queued, Sent::Queued));
    assert_eq!(desk.refuse(1, StreamState::CLOSED), Sent::Queued);
    let all: Vec<_> = std::iter::from_fn(|| desk.out.pop()).collect();
    let headers: Vec<_> =
        all.iter().map(|bytes| MessageView::parse(bytes).unwrap().header().unwrap()).collect();
    let (Header::Refresh(snapshot), Header::Refresh(first), Header::Refresh(second), Header::Status(status)) =
        (headers[0], headers[1], headers[2], headers[3])
    else {
        panic!("{headers:?}")
    };
    assert_eq!(snapshot.state.stream, StreamState::NON_STREAMING);
    assert_eq!(snapshot.key, Some(Key::item(1, b"S")));
    assert!(first.flags.has(flags::refresh::PRIVATE_STREAM | flags::refresh::SOLICITED));
    assert!(second.flags.has(flags::refresh::PRIVATE_STREAM) && !second.flags.has(flags::refresh::SOLICITED));
    assert!(status.flags.has(flags::status::PRIVATE_STREAM));
    // The id may be used again; the old handle is not the new stream's.
    desk.take(&item(4, "Q")).unwrap();
    assert_eq!((desk.refresh(1), desk.refresh(2)), (Sent::NotOpen, Sent::Queued));
}

#[test]
fn a_peer_that_does_not_read_is_owed_so_much_and_no_more() {
    let mut desk = Desk::new(ProviderSettings { owed_bytes: 2000, ..ProviderSettings::default() }, 500);
    desk.take(&login()).unwrap();
    desk.take(&item(3, "A")).unwrap();
    // Room is left for some refusals; more of them are owed, and then it is enough.
    let mut refused = 0;
    let over = loop {
        match desk.take(&item(-1 - refused, "X")) {
            Ok(()) => refused += 1,
            Err(over) => break over,
        }
    };
    assert_eq!(over, Over::Unread);
    assert!((15..40).contains(&refused), "{refused}");
    assert_eq!(desk.refresh(0), Sent::Full, "what is owed goes first");
    assert_eq!(desk.take(&login()), Err(Over::Unread));
}

#[test]
fn what_is_too_long_to_be_owed_is_not_lost_without_a_word() {
    let mut desk = Desk::new(ProviderSettings { owed_bytes: 2000, ..ProviderSettings::default() }, 500);
    desk.take(&login()).unwrap();
    let header = GenericHeader::new(Domain::LOGIN, 1, DataType::OPAQUE);
    let mut echo = |len: usize| {
        let write = &mut |room: &mut [u8]| room.get_mut(..len).map(|_| len).ok_or(Refused::Full);
        desk.provider.generic(&mut desk.out, None, &header, write).unwrap()
    };
    assert_eq!([echo(300), echo(3000)], [Sent::Queued, Sent::TooLong]);
    assert_eq!(desk.tick(0), Err(Over::Unread));
}

#[test]
fn a_receipt_without_room_is_owed() {
    let mut desk = Desk::new(ProviderSettings::default(), 500);
    let mut receipts = 0;
    let mut application =
        |provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>| match event {
            ProviderEvent::Login { request, .. } => {
                let features = LoginFeatures { support_omm_post: Some(1), ..LoginFeatures::default() };
                let _ = provider.accept_login(Nanos(0), out, &request, features).unwrap();
            }
            ProviderEvent::Post { receipt, .. } => {
                receipts += 1;
                assert_eq!(provider.ack(out, receipt.unwrap(), None), Sent::Queued);
            }
            other => panic!("{other:?}"),
        };
    desk.provider.message(Nanos(0), &login(), &mut desk.out, &mut application).unwrap();
    let post = PostHeader {
        flags: flags::post::ACK | flags::post::POST_COMPLETE,
        post_id: Some(7),
        ..PostHeader::new(Domain::MARKET_PRICE, 1, PostUserInfo::default(), DataType::NO_DATA)
    };
    let post = message(|room| post.encode_with(room, |_| Ok(0)));
    for _ in 0..50 {
        desk.provider.message(Nanos(0), &post, &mut desk.out, &mut application).unwrap();
    }
    let mut got = 0;
    while !desk.out.is_empty() {
        got += sent(&mut desk.out).iter().filter(|(class, ..)| *class == MessageClass::ACK).count();
        desk.tick(0).unwrap();
    }
    assert_eq!((receipts, got), (50, 50));
}

#[test]
fn what_is_owed_goes_out_in_order() {
    let mut desk = Desk::new(ProviderSettings::default(), 500);
    desk.take(&login()).unwrap();
    (1..=50).for_each(|id| desk.take(&item(-id, "X")).unwrap());
    let mut ids = Vec::new();
    while !desk.out.is_empty() {
        ids.extend(sent(&mut desk.out).iter().map(|(_, id, _)| *id));
        desk.tick(1).unwrap();
    }
    let expected: Vec<_> = std::iter::once(1).chain((1..=50).map(|id: i32| -id)).collect();
    assert_eq!(ids, expected);
}

#[test]
fn a_dictionary_goes_out_as_there_is_room() {
    let mut desk =
        Desk::new(ProviderSettings { dictionary_part_bytes: 400, ..ProviderSettings::default() }, 500);
    desk.take(&login()).unwrap();
    sent(&mut desk.out);
    desk.take(&dictionary(3)).unwrap();
    let all = Arc::new(Dictionary::builtin().clone());
    assert_eq!(desk.provider.dictionary(&mut desk.out, desk.streams[0], &all), Sent::Queued);
    let (mut download, mut parts) = (Download::new(), 0);
    while let Some(part) = desk.out.pop() {
        let part = MessageView::parse(&part).unwrap();
        download.fields(part.payload()).unwrap();
        parts += 1;
        let Header::Refresh(header) = part.header().unwrap() else { panic!("no refresh") };
        assert_eq!(header.flags.has(flags::refresh::CLEAR_CACHE), parts == 1);
        desk.tick(1).unwrap();
        assert_eq!(header.flags.has(flags::refresh::REFRESH_COMPLETE), desk.out.is_empty());
    }
    assert!(parts > 2);
    assert_eq!(download.finish().len(), all.len());
    // Closed on the way, it is sent no further.
    assert_eq!(desk.provider.dictionary(&mut desk.out, desk.streams[0], &all), Sent::Queued);
    desk.take(&close(Domain::DICTIONARY, 3, Flags::NONE)).unwrap();
    sent(&mut desk.out);
    desk.tick(2).unwrap();
    assert!(desk.out.is_empty());
}

#[test]
fn nothing_is_answered_before_a_login_and_nobody_waits_for_one_for_ever() {
    let mut desk = Desk::new(ProviderSettings::default(), 10_000);
    desk.take(&item(3, "A")).unwrap();
    assert_eq!((sent(&mut desk.out), desk.heard()), (vec![(MessageClass::STATUS, 3, CLOSED)], vec![]));
    let due = desk.tick(1).unwrap().unwrap();
    assert_eq!(due, Nanos(30_000_000_000));
    assert_eq!(desk.tick(due.0), Err(Over::NoLogin(30_000)));

    let mut desk = Desk::open(ProviderSettings { most_streams: 2, ..ProviderSettings::default() });
    (3..=5).for_each(|id| desk.take(&item(id, "A")).unwrap());
    assert_eq!(sent(&mut desk.out), [(MessageClass::STATUS, 5, CLOSED)]);
    assert_eq!(desk.tick(u64::MAX / 2), Ok(None));
    // A request whose key is cut off is answered, as its stream is known.
    let mut cut = item(9, "A");
    cut.truncate(12);
    cut[1] = 10;
    desk.take(&cut).unwrap();
    assert_eq!(
        (sent(&mut desk.out), desk.heard().pop().unwrap()),
        (vec![(MessageClass::STATUS, 9, CLOSED)], "malformed".to_owned())
    );
    let state = State { stream: StreamState::CLOSED, code: StateCode::NOT_ENTITLED, ..State::OPEN_OK };
    assert_eq!(desk.provider.login_status(&mut desk.out, state), Sent::Queued);
    assert_eq!(desk.tick(1), Err(Over::Refused));
    let mut desk = Desk::open(ProviderSettings::default());
    assert_eq!(desk.take(&close(Domain::LOGIN, 1, Flags::NONE)), Err(Over::LoggedOut));
}
