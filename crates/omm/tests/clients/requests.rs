//! What an application asks for, and what becomes of it on the wire.

use tapeline_omm::State;
use tapeline_omm::domain::{List, LoginRequest, RequestPayload, View, login};
use tapeline_omm::role::consumer::{
    Consumer, ConsumerSettings, Handle, ItemRequest, NotOpened, Reissue, ServiceName, Target,
};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    AckHeader, DataType, Domain, GenericHeader, Header, MessageView, NakCode, PostHeader, PostUserInfo,
    Priority, StateCode, StreamState, flags,
};

use super::desk::{Desk, SECOND, answer, brief, encode, flags_of, image, login_refresh, status, update};

const ALL_FEATURES: [(&str, u64); 4] = [
    ("SupportOMMPost", 1),
    ("SupportViewRequests", 1),
    ("SupportOptimizedPauseResume", 1),
    ("SupportBatchRequests", 7),
];

/// Connected to a provider that can do everything.
fn able(settings: ConsumerSettings) -> Desk {
    let mut desk = Desk::new(settings, &LoginRequest::new(b"user"));
    desk.connect();
    desk.log_in(&ALL_FEATURES);
    desk.directory(&[(1, "FEED")]);
    desk.heard();
    desk
}

fn open(desk: &mut Desk, request: &ItemRequest<'_>) -> Handle {
    let item = desk.consumer.open(request).unwrap();
    desk.tick();
    item
}

const fn request(name: &[u8], closure: u64) -> ItemRequest<'_> {
    ItemRequest { closure, ..ItemRequest::new(ServiceName::Name("FEED"), name) }
}

#[test]
fn an_item_that_is_opened_twice_is_one_stream() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let first = desk.open("A", 1);
    let second = desk.open("A", 2);
    assert_eq!(desk.sent(), ["REQUEST 3 A"], "both wait for the same answer");
    desk.feed(&update(3));
    assert_eq!((desk.heard(), desk.consumer.counters().early_updates), (vec![], 1));
    desk.feed(&answer(3));
    assert_eq!(desk.heard(), ["item 2: REFRESH OPEN/OK/NONE", "item 1: REFRESH OPEN/OK/NONE"]);
    // Who comes later asks for an image of his own, and hears nothing before it.
    let third = desk.open("A", 3);
    assert_eq!(desk.sent(), ["REQUEST 3 A"]);
    desk.feed(&update(3));
    assert_eq!(desk.heard(), ["item 2: UPDATE", "item 1: UPDATE"]);
    desk.feed(&image(3, &[0, 1], State::OPEN_OK, flags_of::PART));
    // Who comes while an image is on its way, asks when it is there.
    desk.open("A", 4);
    assert_eq!(desk.sent(), [""; 0]);
    assert_eq!(desk.heard(), ["item 3: REFRESH OPEN/OK/NONE"]);
    desk.feed(&update(3));
    assert_eq!(desk.heard(), ["item 3: UPDATE", "item 2: UPDATE", "item 1: UPDATE"]);
    desk.feed(&answer(3));
    assert_eq!(
        (desk.sent(), desk.heard()),
        (vec!["REQUEST 3 A".into()], vec!["item 3: REFRESH OPEN/OK/NONE".into()])
    );
    desk.feed(&image(3, &[0, 1], State::OPEN_OK, flags_of::UNSOLICITED));
    assert_eq!(desk.heard().len(), 4, "an image that nobody asked for is everybody's");
    assert_eq!((desk.consumer.items(), desk.consumer.streams()), (4, 1));
    for item in [first, third, second] {
        assert!(desk.consumer.close(item) && !desk.consumer.close(item));
        desk.tick();
    }
    desk.feed(&update(3));
    assert_eq!((desk.sent(), desk.heard()), (vec![], vec!["item 4: UPDATE".into()]));
    desk.feed(&status(3, State { stream: StreamState::CLOSED, ..State::OPEN_OK }));
    assert_eq!((desk.consumer.items(), desk.consumer.streams()), (0, 0));
}

#[test]
fn an_image_that_a_late_comer_waits_for_in_vain_is_asked_for_again() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.open("A", 1);
    desk.feed(&answer(3));
    desk.open("A", 2);
    desk.sent();
    desk.pass(15 * SECOND);
    assert_eq!(desk.sent(), ["REQUEST 3 A"], "the stream is others' too, and stays");
}

#[test]
fn what_differs_is_not_shared() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let base = request(b"A", 1);
    for request in [
        base,
        ItemRequest { domain: Domain::DICTIONARY, ..base },
        ItemRequest { qos: None, ..base },
        ItemRequest { filter: Some(1), ..base },
        ItemRequest { is_streaming: false, ..base },
        ItemRequest { is_streaming: false, ..base },
        ItemRequest { is_private: true, ..base },
        ItemRequest { is_private: true, ..base },
    ] {
        open(&mut desk, &request);
    }
    assert_eq!(desk.consumer.streams(), 8);
    let sent = desk.sent();
    assert_eq!(
        sent[4..],
        ["REQUEST 7 A snapshot", "REQUEST 8 A snapshot", "REQUEST 9 A private", "REQUEST 10 A private"]
    );
    // A snapshot ends with its image. Where the provider takes it for a stream, it is told that it is none.
    desk.heard();
    desk.feed(&image(
        7,
        &[],
        State { stream: StreamState::NON_STREAMING, ..State::OPEN_OK },
        flags_of::SOLICITED,
    ));
    desk.feed(&answer(8));
    let end = "REFRESH NON_STREAMING/OK/NONE, final";
    assert_eq!(desk.heard(), [format!("item 1: {end}"), "item 1: REFRESH OPEN/OK/NONE, final".into()]);
    assert_eq!(desk.sent(), ["CLOSE 8"]);
}

#[test]
fn views_of_one_stream_are_put_together() {
    let mut desk = able(ConsumerSettings::default());
    let view = |fids: &'static [i16]| Some(View::Fids(List::Given(fids)));
    let sent = |desk: &mut Desk| -> Option<Vec<i16>> {
        let message = desk.out.pop()?;
        assert!(desk.out.is_empty());
        let message = MessageView::parse(&message).unwrap();
        match RequestPayload::read(&message).unwrap().view {
            Some(View::Fids(fids)) => Some(fids.iter().flatten().collect()),
            None => Some(Vec::new()),
            other => panic!("{other:?}"),
        }
    };
    open(&mut desk, &ItemRequest { view: view(&[22, 25]), ..request(b"A", 1) });
    assert_eq!(sent(&mut desk), Some(vec![22, 25]));
    desk.feed(&answer(3));
    let second = open(&mut desk, &ItemRequest { view: view(&[25, 6]), ..request(b"A", 2) });
    assert_eq!(sent(&mut desk), Some(vec![25, 6, 22]));
    desk.heard();
    desk.feed(&answer(3));
    assert_eq!(desk.heard().len(), 2, "the others get the new fields too");
    let third = open(&mut desk, &request(b"A", 3));
    assert_eq!(sent(&mut desk), Some(vec![]), "somebody wants all");
    desk.feed(&answer(3));
    desk.consumer.close(third);
    desk.consumer.close(second);
    desk.tick();
    assert_eq!(sent(&mut desk), Some(vec![22, 25]));
    // A provider that serves no views is not asked for any.
    let mut desk = Desk::ready(ConsumerSettings::default());
    open(&mut desk, &ItemRequest { view: view(&[22]), ..request(b"A", 1) });
    assert_eq!(sent(&mut desk), Some(vec![]));
}

#[test]
fn priorities_and_pauses_of_one_stream_are_put_together() {
    let mut desk = able(ConsumerSettings::default());
    let priority = |desk: &mut Desk| {
        let message = desk.out.pop().unwrap();
        let Header::Request(request) = MessageView::parse(&message).unwrap().header().unwrap() else {
            panic!()
        };
        let is_paused = request.flags.has(flags::request::PAUSE);
        (
            request.priority.map(|p| (p.class, p.count)),
            request.flags.has(flags::request::NO_REFRESH),
            is_paused,
        )
    };
    let first = open(&mut desk, &request(b"A", 1));
    assert_eq!(priority(&mut desk), (Some((1, 1)), false, false));
    desk.feed(&answer(3));
    let second = open(&mut desk, &request(b"A", 2));
    assert_eq!(priority(&mut desk), (Some((1, 2)), false, false));
    desk.feed(&answer(3));
    let change = Reissue { priority: Some(Priority { class: 3, count: 7 }), ..Reissue::default() };
    assert!(desk.consumer.reissue(second, &change));
    desk.tick();
    assert_eq!(priority(&mut desk), (Some((3, 7)), true, false));
    let pause = |is_paused| Reissue { is_paused: Some(is_paused), ..Reissue::default() };
    desk.consumer.reissue(first, &pause(true));
    desk.tick();
    assert!(!priority(&mut desk).2, "somebody is awake");
    desk.consumer.reissue(second, &pause(true));
    desk.tick();
    assert_eq!(priority(&mut desk), (Some((3, 7)), true, true));
    desk.consumer.reissue(first, &pause(false));
    desk.tick();
    assert_eq!(priority(&mut desk), (Some((3, 7)), false, false), "who resumes gets an image");
    desk.consumer.close(first);
    desk.tick();
    assert_eq!(priority(&mut desk), (Some((3, 7)), true, true), "the others sleep");
    assert!(!desk.consumer.reissue(first, &pause(true)));
}

#[test]
fn a_symbol_list_says_how_its_items_are_wanted() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    open(&mut desk, &ItemRequest { data_streams: Some(1), ..request(b"A", 1) });
    let message = desk.out.pop().unwrap();
    let message = MessageView::parse(&message).unwrap();
    assert_eq!(RequestPayload::read(&message).unwrap().data_streams, Some(1));
}

#[test]
fn batches_go_out_as_such_where_the_provider_takes_them() {
    let names: [&[u8]; 5] = [b"A", b"B", b"C", b"D", b"E"];
    let mut desk = able(ConsumerSettings { most_in_batch: 3, ..ConsumerSettings::default() });
    let items = desk.consumer.open_batch(&request(b"", 10), &names).unwrap();
    desk.tick();
    let batch = |message: &[u8]| -> Vec<String> {
        let message = MessageView::parse(message).unwrap();
        let items = RequestPayload::read(&message).unwrap().items.unwrap();
        items.iter().map(|name| String::from_utf8_lossy(name.unwrap()).into_owned()).collect()
    };
    let (first, second) = (desk.out.pop().unwrap(), desk.out.pop().unwrap());
    assert_eq!([brief(&first), brief(&second)], ["REQUEST 3 batch", "REQUEST 7 batch"]);
    assert_eq!([batch(&first), batch(&second)], [vec!["A", "B", "C"], vec!["D", "E"]]);
    desk.feed(&status(3, State { stream: StreamState::CLOSED, text: b"processed", ..State::OPEN_OK }));
    assert_eq!(desk.heard(), [""; 0]);
    for id in [4, 5, 6, 8] {
        desk.feed(&answer(id));
    }
    assert_eq!(
        desk.heard(),
        ["item 10", "item 11", "item 12", "item 13"].map(|item| format!("{item}: REFRESH OPEN/OK/NONE"))
    );
    // One of a batch that is not answered is asked for by itself, or with others that were not.
    desk.consumer.close(items[0]);
    desk.pass(15 * SECOND);
    assert_eq!(
        desk.sent(),
        ["CLOSE 4", "CLOSE 8", "REQUEST 10 batch"].map(|line| line.replace("CLOSE 8", "CLOSE 9"))
    );
    // A provider that does not take it after all.
    desk.lose_connection();
    desk.connect();
    desk.log_in(&ALL_FEATURES);
    desk.directory(&[(1, "FEED")]);
    assert_eq!(desk.sent(), ["REQUEST 12 batch", "REQUEST 16 batch"]);
    let refused =
        State { stream: StreamState::CLOSED, code: StateCode::UNABLE_TO_REQUEST_AS_BATCH, ..State::OPEN_OK };
    desk.feed(&status(12, refused));
    assert_eq!(desk.sent(), ["REQUEST 18 B", "REQUEST 19 C", "REQUEST 20 D"]);
    // A provider that says that it takes none.
    let mut desk = Desk::ready(ConsumerSettings::default());
    desk.consumer.open_batch(&request(b"", 0), &names[..2]).unwrap();
    desk.tick();
    assert_eq!(desk.sent(), ["REQUEST 3 A", "REQUEST 4 B"]);
}

#[test]
fn many_are_closed_and_changed_with_one_message_where_the_provider_takes_that() {
    let streams = |message: &[u8]| -> (String, Vec<i32>) {
        let view = MessageView::parse(message).unwrap();
        let streams = RequestPayload::read(&view).unwrap().streams;
        (brief(message), streams.iter().flat_map(List::iter).flatten().collect())
    };
    let names: [&[u8]; 5] = [b"A", b"B", b"C", b"D", b"E"];
    let open = |desk: &mut Desk| {
        let items = names.map(|name| desk.consumer.open(&request(name, 0)).unwrap());
        desk.tick();
        (3..8).for_each(|id| desk.feed(&answer(id)));
        desk.sent();
        desk.heard();
        items
    };
    let mut desk = able(ConsumerSettings { most_in_batch: 3, ..ConsumerSettings::default() });
    let items = open(&mut desk);
    let pause = Reissue { is_paused: Some(true), ..Reissue::default() };
    assert!(items.iter().all(|item| desk.consumer.reissue(*item, &pause)));
    // No room, and then some: nothing is lost, and nothing sent twice.
    let room = std::mem::replace(&mut desk.out, Queue::new(0));
    desk.tick();
    desk.out = room;
    desk.tick();
    let sent: Vec<_> = std::iter::from_fn(|| desk.out.pop()).map(|message| streams(&message)).collect();
    let paused = |id| format!("REQUEST {id} no-refresh pause batch");
    assert_eq!(sent, [(paused(8), vec![3, 4, 5]), (paused(9), vec![6, 7])]);
    let done = State { stream: StreamState::CLOSED, text: b"processed", ..State::OPEN_OK };
    (8..10).for_each(|id| desk.feed(&status(id, done)));
    // What differs is told by itself.
    let priority = Priority { class: 2, count: 1 };
    desk.consumer.reissue(items[0], &Reissue { priority: Some(priority), ..Reissue::default() });
    desk.consumer.reissue(items[1], &Reissue { is_paused: Some(false), ..Reissue::default() });
    desk.tick();
    assert_eq!(desk.sent(), ["REQUEST 3 A no-refresh pause", "REQUEST 4 B"]);
    assert_eq!(desk.heard(), [""; 0]);
    desk.feed(&answer(4));

    items.iter().for_each(|item| assert!(desk.consumer.close(*item)));
    let room = std::mem::replace(&mut desk.out, Queue::new(0));
    desk.tick();
    desk.out = room;
    desk.tick();
    let sent: Vec<_> = std::iter::from_fn(|| desk.out.pop())
        .map(|message| {
            let view = MessageView::parse(&message).unwrap();
            assert!(view.flags().has(flags::close::HAS_BATCH));
            streams(&message)
        })
        .collect();
    assert_eq!(sent, [("CLOSE 10".to_owned(), vec![3, 4, 5]), ("CLOSE 11".to_owned(), vec![6, 7])]);
    assert_eq!((desk.consumer.items(), desk.consumer.streams()), (0, 0));
    // Their ids are free, and those of the batches once they are answered, or after a while.
    desk.feed(&status(10, done));
    desk.pass(15 * SECOND);
    assert_eq!((desk.sent(), desk.consumer.counters().misplaced), (vec![], 0));

    // A provider that takes none.
    let mut desk = Desk::ready(ConsumerSettings::default());
    let items = open(&mut desk);
    items[..2].iter().for_each(|item| assert!(desk.consumer.close(*item)));
    desk.tick();
    assert_eq!(desk.sent(), ["CLOSE 3", "CLOSE 4"]);
}

#[test]
fn a_batch_keeps_to_the_window_and_waits_for_room() {
    let mut desk = able(ConsumerSettings::default());
    let load = tapeline_omm::domain::directory::Load { open_window: Some(2), ..Default::default() };
    let change = tapeline_omm::domain::ServiceEntry::change(1, tapeline_omm::domain::ServicePart::Load(load));
    desk.feed(&encode(|out| tapeline_omm::domain::directory::encode_update(2, 0x3F, [&change], out)));
    desk.consumer.open_batch(&request(b"", 0), &[b"A", b"B", b"C"]).unwrap();
    desk.out = Queue::new(1_100);
    assert!(desk.out.send(&[0; 1_000]).is_queued());
    desk.tick();
    assert_eq!(desk.out.len(), 1, "no room");
    desk.out = Queue::new(1 << 20);
    desk.tick();
    assert_eq!(desk.sent(), ["REQUEST 3 batch"]);
    for id in [4, 5] {
        desk.feed(&answer(id));
    }
    assert_eq!(desk.sent(), ["REQUEST 6 batch"]);
}

#[test]
fn posts_are_acknowledged_in_time_or_not() {
    let mut desk = able(ConsumerSettings { most_posts: 3, ..ConsumerSettings::default() });
    let item = desk.open("A", 1);
    let post = |id: u32| PostHeader {
        flags: flags::post::POST_COMPLETE | flags::post::ACK,
        post_id: Some(id),
        sequence: Some(id),
        ..PostHeader::new(Domain::MARKET_PRICE, 0, PostUserInfo::default(), DataType::OPAQUE)
    };
    let send =
        |desk: &mut Desk, target, id| desk.consumer.post(&mut desk.out, target, &post(id), b"data").unwrap();
    assert_eq!(send(&mut desk, Target::Item(item), 1), Sent::NotOpen, "no image, no post");
    desk.feed(&answer(3));
    desk.sent();
    desk.heard();
    for (target, id) in [(Target::Item(item), 1), (Target::Login, 1), (Target::Item(item), 2)] {
        assert_eq!(send(&mut desk, target, id), Sent::Queued);
    }
    assert_eq!(send(&mut desk, Target::Item(item), 3), Sent::Full);
    assert_eq!(desk.sent(), ["POST 3", "POST 1", "POST 3"]);
    let ack =
        AckHeader { nak_code: Some(NakCode::ACCESS_DENIED), ..AckHeader::new(Domain::MARKET_PRICE, 1, 1) };
    desk.feed(&encode(|out| ack.encode(out)));
    desk.feed(&encode(|out| ack.encode(out)));
    desk.feed(&encode(|out| AckHeader::new(Domain::MARKET_PRICE, 3, 2).encode(out)));
    assert_eq!(desk.heard(), ["ack 1 Some(1) off-stream", "ack 2 None"], "the second receipt is nobody's");
    desk.pass(15 * SECOND);
    assert_eq!(desk.heard(), ["ack 1 Some(6)"]);
    // One that is not to be acknowledged is not awaited; those that were when the connection is lost never will be.
    let silent = PostHeader { flags: flags::post::POST_COMPLETE, ..post(9) };
    assert_eq!(desk.consumer.post(&mut desk.out, Target::Item(item), &silent, b""), Ok(Sent::Queued));
    assert_eq!(send(&mut desk, Target::Login, 4), Sent::Queued);
    desk.lose_connection();
    assert_eq!(desk.heard()[1..], ["ack 4 Some(6) off-stream"]);
    assert_eq!(send(&mut desk, Target::Login, 5), Sent::NotOpen);
    assert_eq!(
        send(&mut Desk::ready(ConsumerSettings::default()), Target::Login, 5),
        Sent::NotOpen,
        "it takes no posts"
    );
}

#[test]
fn generic_messages_go_both_ways() {
    let mut desk = able(ConsumerSettings::default());
    let item = desk.open("A", 1);
    let generic = GenericHeader {
        flags: flags::generic::MESSAGE_COMPLETE,
        ..GenericHeader::new(Domain::LOGIN, 0, DataType::OPAQUE)
    };
    assert_eq!(desk.consumer.generic(&mut desk.out, Target::Item(item), &generic, b"x"), Ok(Sent::NotOpen));
    desk.feed(&answer(3));
    desk.heard();
    assert_eq!(desk.consumer.generic(&mut desk.out, Target::Item(item), &generic, b"x"), Ok(Sent::Queued));
    assert_eq!(desk.consumer.generic(&mut desk.out, Target::Login, &generic, b"x"), Ok(Sent::Queued));
    let lines = desk.sent();
    assert_eq!(lines, ["REQUEST 3 A", "GENERIC 3", "GENERIC 1"]);
    for id in [3, 1] {
        let generic = GenericHeader { stream_id: id, ..generic };
        desk.feed(&encode(|out| generic.encode(out)));
    }
    assert_eq!(desk.heard(), ["item 1: GENERIC", "generic on the login"]);
}

#[test]
fn round_trips_are_answered_with_the_same_bytes_if_they_were_asked_for() {
    for wanted in [false, true] {
        let mut login = LoginRequest::new(b"user");
        login.attributes.round_trip_latency = wanted.then_some(login::ROUND_TRIP_WANTED);
        let mut desk = Desk::new(ConsumerSettings::default(), &login);
        desk.connect();
        desk.log_in(&[("RoundTripLatency", 2)]);
        desk.sent();
        let trip = tapeline_omm::domain::RoundTrip { ticks: Some(77), ..Default::default() };
        let trip = encode(|out| trip.encode(1, out));
        // While there is no room, answers wait; they come first when there is, and a peer that never reads gets no more.
        desk.out = Queue::new(60);
        for _ in 0..5_000 {
            desk.feed(&trip);
        }
        let mut answers = 0;
        while let Some(answer) = desk.out.pop() {
            assert_eq!(*answer, *trip);
            answers += 1;
            desk.tick();
        }
        assert_eq!(answers > 500, wanted, "{answers}");
        assert!(answers < 2_000, "{answers}");
        assert_eq!(desk.consumer.counters().dropped > 0, wanted);
    }
}

#[test]
fn a_token_is_renewed_before_its_time() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let end = desk.now.0 / SECOND + 100;
    desk.feed(&login_refresh(State::OPEN_OK, &[("AuthenticationTTReissue", end)]));
    desk.heard();
    desk.pass(79 * SECOND);
    assert_eq!(desk.heard(), [""; 0]);
    desk.pass(SECOND);
    assert_eq!(desk.heard(), ["token due"]);
    let mut login = LoginRequest::new(b"other");
    login.flags |= flags::request::NO_REFRESH;
    desk.consumer.renew_login(&mut desk.out, &login).unwrap();
    assert_eq!(desk.sent(), ["REQUEST 1 other no-refresh"]);
    desk.lose_connection();
    desk.connect();
    assert_eq!(desk.sent(), ["REQUEST 1 other no-refresh"]);
}

#[test]
fn what_cannot_be_asked_for_is_refused() {
    let mut desk = Desk::ready(ConsumerSettings { most_items: 2, ..ConsumerSettings::default() });
    assert_eq!(desk.consumer.open(&request(&[b'n'; 256], 0)), Err(NotOpened::LongName(256)));
    let long: &[u8] = &[b'n'; 300];
    assert_eq!(desk.consumer.open_batch(&request(b"", 0), &[b"A", long]), Err(NotOpened::LongName(300)));
    assert_eq!(desk.consumer.open_batch(&request(b"", 0), &[&b"A"[..]; 3]), Err(NotOpened::TooMany(0)));
    assert_eq!(desk.consumer.items(), 0);
    desk.open("A", 1);
    desk.open("A", 2);
    assert_eq!(desk.consumer.open(&request(b"B", 0)), Err(NotOpened::TooMany(2)));
}

/// The application may do as it likes while it is told.
#[test]
fn an_application_can_act_while_it_is_told() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let items: Vec<_> = (0..4).map(|closure| desk.open("A", closure)).collect();
    desk.sent();
    let mut told = 0;
    let mut application = |consumer: &mut Consumer,
                           _: &mut dyn Outbox,
                           event: tapeline_omm::role::consumer::ConsumerEvent<'_>| {
        if let tapeline_omm::role::consumer::ConsumerEvent::Message { .. } = event {
            told += 1;
            for item in &items {
                consumer.close(*item);
            }
            consumer.open(&request(b"A", 9)).unwrap();
        }
    };
    desk.consumer.message(desk.now, &answer(3), &mut desk.out, &mut application);
    assert_eq!(told, 1, "the others were closed before their turn");
    assert_eq!(desk.sent(), ["CLOSE 3", "REQUEST 4 A"]);
    assert_eq!((desk.consumer.items(), desk.consumer.streams()), (1, 1));
}

#[test]
fn a_hundred_thousand_items() {
    let mut desk = Desk::ready(ConsumerSettings::default());
    let count = 100_000_i32;
    for closure in 0..count {
        let name = format!("ITEM{closure}");
        desk.consumer.open(&request(name.as_bytes(), u64::try_from(closure).unwrap())).unwrap();
    }
    // Room for a thousand requests or so at a time.
    desk.out = Queue::new(64 << 10);
    let mut asked = 0;
    while asked < count {
        desk.tick();
        let mut some = 0;
        while let Some(message) = desk.out.pop() {
            let id = MessageView::parse(&message).unwrap().stream_id();
            assert_eq!(id, 3 + asked + some);
            some += 1;
        }
        assert!(some > 0);
        asked += some;
    }
    for id in 3..3 + count {
        desk.consumer.message(desk.now, &answer(id), &mut desk.out, &mut desk.told);
    }
    assert_eq!(desk.heard().len(), usize::try_from(count).unwrap());
    desk.feed(&update(3 + 77_777));
    assert_eq!(desk.heard(), ["item 77777: UPDATE"]);
    const { assert!(Consumer::BYTES_PER_ITEM < 600) };
    println!("{} bytes an item", Consumer::BYTES_PER_ITEM);
    desk.lose_connection();
    assert_eq!(desk.heard().len(), usize::try_from(count).unwrap());
}
