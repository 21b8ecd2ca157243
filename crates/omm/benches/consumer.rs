//! What the roles cost beside the codec: a consumer from an update's bytes to the application that holds the item, and a
//! provider from an update's bytes to each of the streams that it goes to.
//!
//! ```text
//! cargo bench -p tapeline-omm --bench consumer -- [--core N] [--seconds S] [--repeats N] [--json]
//! ```
//!
//! `update/N` is one update, of one of N items that are open, in turn over all of them in a scattered order; `expected/N` the same,
//! prefetched for by sixteen. `publish/N` is one
//! update that is encoded already, for one of N streams that have the item open, in turn over all of them; `write/N` one that is
//! written where the connection sends it from, as the performance tools write theirs.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod harness;

use std::hint::black_box;

use harness::Bench;
use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::directory::{self, Info, ServiceEntry, ServiceState};
use tapeline_omm::domain::{LoginFeatures, LoginRefresh, LoginRequest};
use tapeline_omm::role::consumer::{Consumer, ConsumerEvent, ConsumerSettings, ItemRequest, ServiceName};
use tapeline_omm::role::provider::{self, Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Queue, Sent};
use tapeline_omm::rwf::{
    DataType, Domain, Key, MessageView, RefreshHeader, RequestHeader, UpdateType, flags, update_header,
};

const NOW: Nanos = Nanos(1);

fn encode(write: impl FnOnce(&mut [u8]) -> Result<usize, tapeline_omm::Refused>) -> Vec<u8> {
    let mut out = vec![0; 1024];
    let len = write(&mut out).unwrap();
    out.truncate(len);
    out
}

/// A consumer with so many items open, each with its image, and the ids of their streams.
fn ready(count: usize) -> (Consumer, Vec<i32>) {
    let mut silent = |_: &mut Consumer, _: &mut dyn Outbox, _: ConsumerEvent<'_>| {};
    let mut out = Queue::new(1 << 28);
    let login = LoginRequest::new(b"user");
    let mut consumer = Consumer::new(ConsumerSettings::default(), &login).unwrap();
    consumer.tick(NOW, &mut out, &mut silent);
    consumer.connected(NOW, &mut out);
    let accepted = encode(|out| LoginRefresh::accepting(&login, LoginFeatures::default()).encode(out));
    let info =
        Info { name: Some("FEED".into()), capabilities: Some(vec![Domain::MARKET_PRICE]), ..Info::default() };
    let services = [ServiceEntry::new(1, info, ServiceState::UP)];
    let services = encode(|out| directory::encode_refresh(2, directory::SOLICITED, 0x3F, &services, out));
    for message in [accepted, services] {
        consumer.message(NOW, &message, &mut out, &mut silent);
    }
    for item in 0..count {
        let name = format!("ITEM{item}");
        consumer.open(&ItemRequest::new(ServiceName::Name("FEED"), name.as_bytes())).unwrap();
    }
    while out.pop().is_some() {}
    consumer.tick(NOW, &mut out, &mut silent);
    let mut ids = Vec::new();
    while let Some(request) = out.pop() {
        let id = MessageView::parse(&request).unwrap().stream_id();
        let header = RefreshHeader {
            flags: flags::refresh::SOLICITED | flags::refresh::REFRESH_COMPLETE,
            ..RefreshHeader::new(Domain::MARKET_PRICE, id, State::OPEN_OK, DataType::FIELD_LIST)
        };
        consumer.message(NOW, &encode(|out| header.encode(out)), &mut out, &mut silent);
        ids.push(id);
    }
    assert_eq!(ids.len(), count);
    (consumer, ids)
}

/// Where a connection's messages go: one place, over and over.
struct Socket([u8; 1024]);

impl Outbox for Socket {
    fn most(&self) -> usize {
        self.0.len()
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        self.0.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        black_box(&self.0[..len]);
    }
}

/// A provider with so many streams open for an item, each with its image.
fn open_for(count: usize) -> (Provider, Vec<StreamHandle>) {
    let mut provider = Provider::new(provider::ProviderSettings::default(), NOW);
    let mut out = Socket([0; 1024]);
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
    let login = encode(|out| LoginRequest::new(b"user").encode(out));
    provider.message(NOW, &login, &mut out, &mut desk).unwrap();
    for id in 0..count {
        let header = RequestHeader::new(Domain::MARKET_PRICE, id as i32 + 2, Key::item(1, b"A"));
        let request = encode(|out| RequestHeader { flags: flags::request::STREAMING, ..header }.encode(out));
        provider.message(NOW, &request, &mut out, &mut desk).unwrap();
    }
    assert_eq!(streams.len(), count);
    (provider, streams)
}

fn publishing(bench: &mut Bench) {
    let mut update = [0; 128];
    update_header(&mut update, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST).unwrap();
    for count in [1, 1_000] {
        let (mut provider, streams) = open_for(count);
        let mut out = Socket([0; 1024]);
        bench.add(("publish", count, "streams"), update.len() as f64, move |place| {
            let stream = &streams[place % count..][..1];
            provider.publish(&mut out, stream, black_box(&update)) as u64
        });
    }
    let (mut provider, streams) = open_for(1_000);
    let mut out = Socket([0; 1024]);
    let payload = [0; 100];
    let what = (UpdateType::QUOTE, DataType::FIELD_LIST);
    bench.add(("write", 1_000, "streams"), payload.len() as f64, move |place| {
        let mut write = |room: &mut [u8]| {
            room[..payload.len()].copy_from_slice(black_box(&payload));
            Ok(payload.len())
        };
        let sent = provider.write_update(&mut out, streams[place % streams.len()], what, &mut write);
        u64::from(sent.is_ok_and(Sent::is_queued))
    });
}

/// Updates as `update/N` has them, prefetched for sixteen at a time, as a connection with many received messages does.
fn expecting(bench: &mut Bench) {
    const COUNT: usize = 100_000;
    let (mut consumer, ids) = ready(COUNT);
    let mut update = [0; 64];
    let header = update_header(&mut update, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST);
    let len = header.unwrap() + 3;
    let mut updates = [update; 16];
    let mut out = Queue::new(1 << 16);
    let mut application = |_: &mut Consumer, _: &mut dyn Outbox, event: ConsumerEvent<'_>| {
        black_box(matches!(event, ConsumerEvent::Message { .. }));
    };
    bench.add(("expected", COUNT, "scattered"), len as f64, move |place| {
        if place % updates.len() == 0 {
            for (number, update) in updates.iter_mut().enumerate() {
                let id = ids[((place + number).wrapping_mul(2_654_435_761)) % COUNT];
                tapeline_omm::rwf::patch_stream_id(update, id).unwrap();
            }
        }
        consumer.expect(updates[place % updates.len() + 1..].iter().map(|update| &update[..len]));
        consumer.message(NOW, &updates[place % updates.len()][..len], &mut out, &mut application);
        len as u64
    });
}

fn main() {
    let mut bench = Bench::new("consumer");
    publishing(&mut bench);
    let mut consumers: Vec<_> =
        [1_usize, 1_000, 100_000].into_iter().map(|count| (count, ready(count))).collect();
    for (count, (consumer, ids)) in &mut consumers {
        let count = *count;
        let mut update = [0; 64];
        let header =
            update_header(&mut update, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST);
        let len = header.unwrap() + 3;
        let mut out = Queue::new(1 << 16);
        bench.add(("update", count, "scattered"), len as f64, move |place| {
            // A prime near the golden ratio of 2^32: neighbours in time are far apart in the table.
            let id = ids[(place.wrapping_mul(2_654_435_761)) % count];
            tapeline_omm::rwf::patch_stream_id(&mut update, id).unwrap();
            let mut told = 0;
            let mut application = |_: &mut Consumer, _: &mut dyn Outbox, event: ConsumerEvent<'_>| {
                if let ConsumerEvent::Message { message, .. } = event {
                    told += message.payload().len() as u64;
                }
            };
            consumer.message(NOW, &update[..len], &mut out, &mut application);
            told
        });
    }
    expecting(&mut bench);
    bench.print();
}
