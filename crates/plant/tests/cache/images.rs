//! What an image says beside its data, how it becomes complete, and what limits do to it.

use tapeline_omm::rwf::{
    DataState, DataType, Flags, Header, MessageView, Qos, RefreshHeader, State, StateCode, StreamState, flags,
};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Applied, Cache, ItemKey, Limits, Memory, NotApplied};

use crate::cache::messages::{
    CLEAR, COMPLETE, ITEM, apply, fields_of, list, payload, refresh, status, update, whole, written,
};

const FIELDS: DataType = DataType::FIELD_LIST;

#[test]
fn an_image_says_what_its_messages_said() {
    let mut cache = Cache::new(Limits::default());
    let header = RefreshHeader {
        flags: CLEAR | COMPLETE,
        sequence: Some(44),
        group_id: b"\0\x03",
        permission_data: Some(b"pe"),
        qos: Some(Qos::REALTIME_TICK),
        ..RefreshHeader::new(ITEM.domain, 5, State { text: b"all well", ..State::OPEN_OK }, FIELDS)
    };
    let mut out = [0; 200];
    let len = header.encode_with(&mut out, whole(&list(&[(22, "1")]))).unwrap();
    assert_eq!(cache.apply(&ITEM, Seq(6), &out[..len]), Ok(Applied::Refresh { is_complete: true }));
    let image = cache.image(&ITEM).unwrap();
    assert_eq!((image.seq(), image.sequence(), image.qos()), (Seq(6), Some(44), Some(Qos::REALTIME_TICK)));
    assert_eq!((image.group(), image.permission_data()), (&b"\0\x03"[..], Some(&b"pe"[..])));
    assert_eq!(image.state(), State { text: b"all well", ..State::OPEN_OK });

    let suspect = State { data: DataState::SUSPECT, code: StateCode(1), text: b"no", ..State::OPEN_OK };
    assert_eq!(
        cache.apply(&ITEM, Seq(7), &status(Flags::NONE, Some(suspect))),
        Ok(Applied::Status { is_open: true })
    );
    let image = cache.image(&ITEM).unwrap();
    assert_eq!((image.seq(), image.state(), image.group()), (Seq(7), suspect, &b"\0\x03"[..]));
    let parts = written(image.parts(AnswerParameters::to(-3)), 300);
    let message = MessageView::parse(&parts[0]).unwrap();
    let Header::Refresh(given) = message.header().unwrap() else { panic!("{message:?}") };
    assert_eq!(given.state, suspect);
    assert_eq!((given.stream_id, given.sequence, given.qos), (-3, Some(44), Some(Qos::REALTIME_TICK)));
    assert_eq!((given.group_id, given.permission_data), (&b"\0\x03"[..], Some(&b"pe"[..])));
    assert!(given.flags.has(flags::refresh::SOLICITED | CLEAR | COMPLETE));

    let closed = State { stream: StreamState::CLOSED, ..suspect };
    assert_eq!(
        cache.apply(&ITEM, Seq(8), &status(Flags::NONE, Some(closed))),
        Ok(Applied::Status { is_open: false })
    );
    assert!(cache.remove(&ITEM) && !cache.remove(&ITEM));
    assert!(cache.image(&ITEM).is_none());
}

#[test]
fn parts_make_an_image_and_updates_may_come_between() {
    let mut cache = Cache::new(Limits::default());
    let part = |flags, fields: &[(i16, &str)]| refresh(flags, FIELDS, &list(fields));
    let begun = Ok(Applied::Refresh { is_complete: false });
    assert_eq!(cache.apply(&ITEM, Seq(1), &part(CLEAR, &[(1, "a")])), begun);
    assert_eq!(
        cache.apply(&ITEM, Seq(2), &update(Flags::NONE, FIELDS, &list(&[(1, "b")]))),
        Ok(Applied::Update)
    );
    assert_eq!(cache.image(&ITEM).unwrap().state().data, DataState::SUSPECT);
    assert_eq!(
        cache.apply(&ITEM, Seq(3), &part(COMPLETE, &[(2, "c")])),
        Ok(Applied::Refresh { is_complete: true })
    );
    assert_eq!(cache.image(&ITEM).unwrap().state(), State::OPEN_OK);
    assert_eq!(fields_of(&payload(&cache)).into_values().collect::<Vec<_>>(), [b"b", b"c"]);
}

#[test]
fn services_domains_and_names_are_apart() {
    let mut cache = Cache::new(Limits::default());
    let keys = [
        ITEM,
        ItemKey { service: 8, ..ITEM },
        ItemKey { domain: tapeline_omm::rwf::Domain(200), ..ITEM },
        ItemKey { name: b"OTHER", ..ITEM },
        ItemKey { name: b"", ..ITEM },
    ];
    for (seq, key) in (0..).zip(&keys) {
        let message = refresh(CLEAR | COMPLETE, FIELDS, &list(&[(1, [seq as u8])]));
        assert_eq!(cache.apply(key, Seq(seq), &message), Ok(Applied::Refresh { is_complete: true }));
    }
    assert!(cache.remove(&keys[1]));
    for (seq, key) in (0..).zip(&keys) {
        assert_eq!(cache.image(key).map(|image| image.seq()), (seq != 1).then_some(Seq(seq)));
    }
    assert_eq!((cache.memory().items, cache.images().count(), cache.memory().shapes), (4, 4, 1));
}

#[test]
fn what_is_not_to_be_cached_is_passed_by() {
    let mut cache = Cache::new(Limits::default());
    let fields = list(&[(1, "a")]);
    let mut passes = |message: &[u8]| cache.apply(&ITEM, Seq(1), message) == Ok(Applied::PassedBy);
    assert!(passes(&update(Flags::NONE, FIELDS, &fields)), "an update of nothing");
    assert!(passes(&status(Flags::NONE, None)), "a status of nothing");
    assert!(passes(&refresh(COMPLETE | flags::refresh::DO_NOT_CACHE, FIELDS, &fields)));
    assert_eq!(cache.counters().passed_by, 3);
    assert!(cache.image(&ITEM).is_none());
}

#[test]
fn an_update_of_another_shape_is_refused_and_a_refresh_heals() {
    let mut cache = Cache::new(Limits::default());
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, FIELDS, &list(&[(1, "a")])));
    let refused = cache.apply(&ITEM, Seq(2), &update(Flags::NONE, DataType::OPAQUE, b"??"));
    assert_eq!(refused, Err(NotApplied::Mismatch { image: FIELDS, update: DataType::OPAQUE }));
    let image = cache.image(&ITEM).unwrap();
    assert_eq!((image.seq(), image.is_complete(), image.state().data), (Seq(1), false, DataState::SUSPECT));
    // What is laid over the image does not bring back what it lacks; an image does.
    apply(&mut cache, 3, &refresh(COMPLETE, FIELDS, &list(&[(1, "b")])));
    assert!(!cache.image(&ITEM).unwrap().is_complete());
    apply(&mut cache, 4, &refresh(COMPLETE | flags::refresh::SOLICITED, FIELDS, &list(&[(1, "c")])));
    assert!(cache.image(&ITEM).unwrap().is_complete());
}

#[test]
fn bytes_are_replaced_as_a_whole() {
    let mut cache = Cache::new(Limits { image_bytes: 100, ..Limits::default() });
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::XML, b"<a/>"));
    apply(&mut cache, 2, &update(Flags::NONE, DataType::XML, b"<longer/>"));
    assert_eq!(payload(&cache), b"<longer/>");
    // No data at all changes nothing but the sequence.
    apply(&mut cache, 3, &update(Flags::NONE, DataType::NO_DATA, b""));
    assert_eq!((payload(&cache), cache.image(&ITEM).unwrap().seq()), (b"<longer/>".to_vec(), Seq(3)));
    let long = update(Flags::NONE, DataType::XML, &[b' '; 101]);
    assert_eq!(
        cache.apply(&ITEM, Seq(4), &long),
        Err(NotApplied::Limit { what: "bytes of an image", limit: 100 })
    );
    assert!(!cache.image(&ITEM).unwrap().is_complete());
}

#[test]
fn a_limit_of_items_refuses_the_next_one_alone() {
    let mut cache = Cache::new(Limits { items: 2, ..Limits::default() });
    let message = refresh(CLEAR | COMPLETE, FIELDS, &list(&[(1, "a")]));
    let keys = [b"A", b"B", b"C"].map(|name| ItemKey { name, ..ITEM });
    assert!(cache.apply(&keys[0], Seq(1), &message).is_ok());
    assert!(cache.apply(&keys[1], Seq(2), &message).is_ok());
    let refused = Err(NotApplied::Limit { what: "items", limit: 2 });
    assert_eq!(cache.apply(&keys[2], Seq(3), &message), refused);
    assert!(cache.image(&keys[2]).is_none());
    assert!(cache.image(&keys[0]).unwrap().is_complete() && cache.image(&keys[1]).unwrap().is_complete());
    assert!(cache.remove(&keys[0]));
    assert!(cache.apply(&keys[2], Seq(4), &message).is_ok());
    assert_eq!(cache.counters().over_limit, 1);
}

#[test]
fn a_limit_of_bytes_lets_the_image_go_that_came_last() {
    let mut cache = Cache::new(Limits { bytes: 100_000, ..Limits::default() });
    let message = refresh(CLEAR | COMPLETE, FIELDS, &list(&[(1, [7; 1_000])]));
    let names: Vec<String> = (0..200).map(|n| format!("N{n}")).collect();
    let mut refused = None;
    for (seq, name) in (1..).zip(&names) {
        let key = ItemKey { name: name.as_bytes(), ..ITEM };
        if cache.apply(&key, Seq(seq), &message).is_err() {
            refused = Some(key);
            break;
        }
        assert!(cache.memory().bytes <= 100_000);
    }
    let refused = refused.expect("200 images are more than 100,000 bytes");
    assert!(cache.memory().items > 60, "{:?}", cache.memory());
    let image = cache.image(&refused).expect("its item was there");
    assert_eq!(
        (image.is_complete(), image.container(), image.state().data),
        (false, DataType::NO_DATA, DataState::SUSPECT)
    );
    assert_eq!(cache.images().filter(|(_, image)| image.is_complete()).count(), cache.memory().items - 1);
    // What follows of it passes by until there is room and a new image.
    let more = update(Flags::NONE, FIELDS, &list(&[(1, "x")]));
    assert_eq!(cache.apply(&refused, Seq(900), &more), Ok(Applied::PassedBy));
    assert!(cache.remove(&ItemKey { name: b"N1", ..ITEM }) && cache.remove(&ItemKey { name: b"N2", ..ITEM }));
    assert_eq!(cache.apply(&refused, Seq(901), &message), Ok(Applied::Refresh { is_complete: true }));
}

#[test]
fn memory_is_given_back() {
    let mut cache = Cache::new(Limits::default());
    let names: Vec<String> = (0..500).map(|n| format!("N{n}")).collect();
    for round in 0..3_u64 {
        for (n, name) in (0_u64..).zip(&names) {
            // An order of fields for each item.
            let fields = list(&[(n as i16, vec![1; 50]), (n as i16 + 1, vec![round as u8; n as usize])]);
            let key = ItemKey { name: name.as_bytes(), ..ITEM };
            assert!(cache.apply(&key, Seq(n), &refresh(CLEAR | COMPLETE, FIELDS, &fields)).is_ok());
        }
        let full = cache.memory();
        assert_eq!((full.items, full.shapes), (500, 500));
        assert!(names.iter().all(|name| cache.remove(&ItemKey { name: name.as_bytes(), ..ITEM })));
        let Memory { items, bytes, shapes } = cache.memory();
        assert_eq!((items, shapes), (0, 0));
        assert!(bytes < full.bytes / 2, "{bytes} of {}", full.bytes);
    }
}
