//! What is done for each message allocates nothing: reading and writing, and the roles on the way of an update.
#![allow(clippy::unwrap_used)]

use allocation_counter::measure;
use tapeline_nanos::Nanos;
use tapeline_omm::domain::directory::{self, Info, ServiceEntry, ServiceState};
use tapeline_omm::domain::{LoginFeatures, LoginRefresh, LoginRequest};
use tapeline_omm::json::{Converter, Packed};
use tapeline_omm::role::consumer::{self, Consumer, ItemRequest, ServiceName};
use tapeline_omm::role::provider::{self, Provider};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    DataType, Domain, Key, MessageView, RefreshHeader, RequestHeader, UpdateType, flags, patch_stream_id,
    update_header,
};
use tapeline_omm::{Dictionary, FieldList, FieldListEncoder, Real, State, Time, fid};

const NOW: Nanos = Nanos(1);

/// An update of a price record with every kind of field that such have.
fn update(out: &mut [u8], turn: i64) -> usize {
    let header =
        update_header(out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST).unwrap();
    let mut list = FieldListEncoder::new(&mut out[header..]).unwrap();
    list.real(fid::BID, Real::decimal(1_000_000 + turn, 4)).unwrap();
    list.real(fid::BIDSIZE, Real::integer(100 * turn)).unwrap();
    list.time(fid::QUOTIM_NS, Time::from_ns_of_day(36_000_000_000_000 + turn as u64)).unwrap();
    list.rmtes(fid::MMID, b"NSDQ").unwrap();
    header + list.finish()
}

fn encoded(write: impl FnOnce(&mut [u8]) -> Result<usize, tapeline_omm::Refused>) -> Vec<u8> {
    let mut out = vec![0; 1024];
    let len = write(&mut out).unwrap();
    out.truncate(len);
    out
}

/// Does it once, which may fill what is kept, and then again so many times: with how many allocations.
fn allocations(times: u64, mut work: impl FnMut(u64)) -> u64 {
    work(0);
    measure(|| (1..=times).for_each(&mut work)).count_total
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(3, |size| drop(std::hint::black_box(vec![0_u8; 1 + size as usize]))), 3);
}

#[test]
fn updates_are_written_and_read() {
    let dictionary = Dictionary::builtin();
    let mut room = [0; 256];
    let count = allocations(100, |turn| {
        let len = update(&mut room, turn as i64);
        let message = MessageView::parse(&room[..len]).unwrap();
        let list = FieldList::parse(message.payload()).unwrap();
        for field in list.iter() {
            let field = field.unwrap();
            let data_type = dictionary.data_type(field.fid).unwrap();
            std::hint::black_box(field.value(data_type).unwrap());
        }
        assert!(list.find(fid::MMID).unwrap().is_some());
    });
    assert_eq!(count, 0);
}

#[test]
fn json_is_written_and_read() {
    let converter = Converter::new(Dictionary::builtin(), &());
    let (mut message, mut text, mut rwf) = ([0; 256], Vec::with_capacity(1024), Vec::with_capacity(8192));
    let count = allocations(100, |turn| {
        let len = update(&mut message, turn as i64);
        text.clear();
        converter.write(&MessageView::parse(&message[..len]).unwrap(), &mut text).unwrap();
        let incoming = Packed::parse(str::from_utf8(&text).unwrap()).unwrap().next().unwrap();
        assert_eq!(converter.read(&incoming, &mut rwf).unwrap(), &message[..len]);
    });
    assert_eq!(count, 0);
}

#[test]
fn a_consumer_takes_updates() {
    let mut silent = |_: &mut Consumer, _: &mut dyn Outbox, _: consumer::ConsumerEvent<'_>| {};
    let mut out = Queue::new(1 << 20);
    let login = LoginRequest::new(b"user");
    let mut consumer = Consumer::new(consumer::ConsumerSettings::default(), &login).unwrap();
    consumer.tick(NOW, &mut out, &mut silent);
    consumer.connected(NOW, &mut out);
    let accepted = encoded(|out| LoginRefresh::accepting(&login, LoginFeatures::default()).encode(out));
    let info =
        Info { name: Some("FEED".into()), capabilities: Some(vec![Domain::MARKET_PRICE]), ..Info::default() };
    let services = [ServiceEntry::new(1, info, ServiceState::UP)];
    let services = encoded(|out| directory::encode_refresh(2, directory::SOLICITED, 0x3F, &services, out));
    for message in [accepted, services] {
        consumer.message(NOW, &message, &mut out, &mut silent);
    }
    consumer.open(&ItemRequest::new(ServiceName::Name("FEED"), b"A")).unwrap();
    while out.pop().is_some() {}
    consumer.tick(NOW, &mut out, &mut silent);
    let id = MessageView::parse(&out.pop().unwrap()).unwrap().stream_id();
    let header = RefreshHeader {
        flags: flags::refresh::SOLICITED | flags::refresh::REFRESH_COMPLETE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, id, State::OPEN_OK, DataType::FIELD_LIST)
    };
    consumer.message(NOW, &encoded(|out| header.encode(out)), &mut out, &mut silent);

    let (mut told, mut room) = (0, [0; 256]);
    let count = allocations(100, |turn| {
        let len = update(&mut room, turn as i64);
        patch_stream_id(&mut room, id).unwrap();
        let mut application = |_: &mut Consumer, _: &mut dyn Outbox, event: consumer::ConsumerEvent<'_>| {
            told += u64::from(matches!(event, consumer::ConsumerEvent::Message { .. }));
        };
        consumer.message(NOW, &room[..len], &mut out, &mut application);
        consumer.tick(NOW, &mut out, &mut application);
    });
    assert_eq!((count, told), (0, 101));
}

#[test]
fn items_that_were_expected_make_no_table_grow() {
    let login = LoginRequest::new(b"user");
    for (expected_items, reserved) in [(0, 10_000), (10_000, 0)] {
        let settings = consumer::ConsumerSettings { expected_items, ..consumer::ConsumerSettings::default() };
        let mut consumer = Consumer::new(settings, &login).unwrap();
        consumer.reserve(reserved);
        let opened = measure(|| {
            for item in 0..10_000_u32 {
                let name = item.to_be_bytes();
                consumer.open(&ItemRequest::new(ServiceName::Name("FEED"), &name)).unwrap();
            }
        });
        // The name of the item and that of its service; the queue of output, which grows to 64 KiB.
        let names = 10_000 * (4 + 4);
        assert!(opened.bytes_max <= names + (128 << 10), "{opened:?}");
    }
}

/// Where a connection's messages go, as far as a role can tell.
struct Socket {
    room: [u8; 1024],
    sent: u64,
}

impl Outbox for Socket {
    fn most(&self) -> usize {
        self.room.len()
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.room.get_mut(..len)
    }

    fn commit(&mut self, _len: usize) {
        self.sent += 1;
    }
}

#[test]
fn a_provider_publishes_to_many_streams() {
    const STREAMS: i32 = 50;
    let mut provider = Provider::new(provider::ProviderSettings::default(), NOW);
    let mut out = Socket { room: [0; 1024], sent: 0 };
    let mut streams = Vec::new();
    let image = RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST)
    };
    let mut desk =
        |provider: &mut Provider, out: &mut dyn Outbox, event: provider::ProviderEvent<'_>| match event {
            provider::ProviderEvent::Login { request, .. } => {
                let _ = provider.accept_login(NOW, out, &request, LoginFeatures::default()).unwrap();
            }
            provider::ProviderEvent::Open { stream, .. } => {
                let _ = provider.refresh(out, stream, &image, &mut |_| Ok(0)).unwrap();
                streams.push(stream);
            }
            other => panic!("{other:?}"),
        };
    let login = encoded(|out| LoginRequest::new(b"user").encode(out));
    provider.message(NOW, &login, &mut out, &mut desk).unwrap();
    for id in 2..2 + STREAMS {
        let header = RequestHeader::new(Domain::MARKET_PRICE, id, Key::item(1, b"A"));
        let request = encoded(|out| RequestHeader { flags: flags::request::STREAMING, ..header }.encode(out));
        provider.message(NOW, &request, &mut out, &mut desk).unwrap();
    }

    out.sent = 0;
    let mut room = [0; 256];
    let count = allocations(100, |turn| {
        let len = update(&mut room, turn as i64);
        assert_eq!(provider.publish(&mut out, &streams, &room[..len]), streams.len());
    });
    assert_eq!((count, out.sent), (0, 101 * STREAMS as u64));

    // Written where it is sent from.
    out.sent = 0;
    let count = allocations(100, |turn| {
        let what = (UpdateType::QUOTE, DataType::FIELD_LIST);
        for stream in &streams {
            let mut write = |room: &mut [u8]| Ok(update(room, turn as i64));
            assert_eq!(provider.write_update(&mut out, *stream, what, &mut write), Ok(Sent::Queued));
        }
    });
    assert_eq!((count, out.sent), (0, 101 * STREAMS as u64));
}
