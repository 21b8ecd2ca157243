//! Any messages for the roles that log in, and what must hold whatever they are.
//!
//! An input is eight bytes that say what the application does, then messages, each behind its length in two bytes.

#![allow(dead_code, reason = "each user takes some of it")]

use std::collections::BTreeSet;
use std::time::Duration;

use tapeline_nanos::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::LoginRequest;
use tapeline_omm::domain::directory::{Info, ServiceEntry, ServicePart, ServiceState};
use tapeline_omm::role::consumer::{self, Consumer, Handle, ItemRequest, Reissue, ServiceName, Target};
use tapeline_omm::role::ni_provider::{self, NiProvider, Publish};
use tapeline_omm::role::{Outbox, Queue};
use tapeline_omm::rwf::{
    DataType, Domain, GenericHeader, MessageClass, MessageView, PostHeader, PostUserInfo, RefreshHeader,
    UpdateHeader, UpdateType, flags,
};

/// Items that may be open here.
const MOST: usize = 24;
/// Room for what is sent.
const ROOM: usize = 4096;

/// The messages of an input; what is cut off at the end is one too.
fn messages(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut messages = Vec::new();
    while let Some((len, rest)) = bytes.split_first_chunk::<2>() {
        let (message, rest) = rest.split_at(usize::from(u16::from_be_bytes(*len)).min(rest.len()));
        messages.push(message);
        bytes = rest;
    }
    messages
}

/// What a role sent: whole messages of the classes that it may send.
fn check_sent(out: &mut Queue, classes: &[MessageClass]) {
    while let Some(message) = out.pop() {
        let message = MessageView::parse(&message).unwrap();
        // A round trip is sent back as it came.
        if message.class() == MessageClass::GENERIC {
            continue;
        }
        assert!(classes.contains(&message.class()), "{}", message.class());
        message.header().unwrap();
        message.open().unwrap();
    }
}

/// The application of a consumer: it knows which items are its own.
#[derive(Default)]
struct Items {
    open: BTreeSet<Handle>,
    wants_connection: bool,
    is_disconnected: bool,
    is_ended: bool,
}

impl consumer::ConsumerApplication for Items {
    fn event(&mut self, consumer: &mut Consumer, _: &mut dyn Outbox, event: consumer::ConsumerEvent<'_>) {
        assert!(!self.is_ended, "nothing happens behind the end: {event:?}");
        match event {
            consumer::ConsumerEvent::Connect { .. } => self.wants_connection = true,
            consumer::ConsumerEvent::Disconnect => self.is_disconnected = true,
            consumer::ConsumerEvent::Ended { .. } => self.is_ended = true,
            consumer::ConsumerEvent::Message { item, is_final, .. }
            | consumer::ConsumerEvent::State { item, is_final, .. } => {
                assert!(self.open.contains(&item), "somebody else's item");
                if is_final {
                    self.open.remove(&item);
                    assert!(!consumer.close(item), "what is over is nobody's");
                }
            }
            consumer::ConsumerEvent::Ack { item: Some(item), .. } => assert!(self.open.contains(&item)),
            _ => {}
        }
    }
}

fn open(consumer: &mut Consumer, items: &mut Items, number: u8) {
    let names: [&[u8]; 3] = [b"A", b"B", b"C"];
    let request = ItemRequest {
        is_private: number & 0x08 != 0,
        is_streaming: number & 0x10 == 0,
        ..ItemRequest::new(
            if number & 0x20 == 0 { ServiceName::Name("FEED") } else { ServiceName::Id(1) },
            names[usize::from(number) % 3],
        )
    };
    if number & 0x40 != 0 {
        items.open.extend(consumer.open_batch(&request, &names).unwrap_or_default());
    } else {
        items.open.extend(consumer.open(&request));
    }
}

fn act(consumer: &mut Consumer, items: &mut Items, number: u8, out: &mut Queue) {
    let item = items.open.iter().nth(usize::from(number) % items.open.len().max(1)).copied();
    let post = PostHeader {
        flags: flags::post::ACK | flags::post::POST_COMPLETE,
        post_id: Some(u32::from(number)),
        ..PostHeader::new(Domain::MARKET_PRICE, 0, PostUserInfo::default(), DataType::OPAQUE)
    };
    let generic = GenericHeader::new(Domain::MARKET_PRICE, 0, DataType::OPAQUE);
    match (number % 8, item) {
        (0 | 1, _) => open(consumer, items, number),
        (2, Some(item)) => {
            assert!(consumer.close(item));
            items.open.remove(&item);
        }
        (3, Some(item)) => {
            let reissue = Reissue {
                is_paused: Some(number & 16 == 0),
                wants_image: number & 32 == 0,
                ..Reissue::default()
            };
            assert!(consumer.reissue(item, &reissue));
        }
        (4, Some(item)) => {
            let _ = consumer.post(out, Target::Item(item), &post, b"data").unwrap();
            let _ = consumer.generic(out, Target::Item(item), &generic, b"data").unwrap();
        }
        (5, _) => {
            let _ = consumer.post(out, Target::Login, &post, b"data").unwrap();
        }
        (6, _) if number & 0x78 == 0 => consumer.disconnected(consumer.now(), items),
        _ => {}
    }
}

/// A consumer of any provider.
pub(crate) fn consumer(input: &[u8]) {
    let Some((script, bytes)) = input.split_at_checked(8) else { return };
    let settings = consumer::ConsumerSettings {
        most_items: MOST,
        most_posts: 3,
        downloads_dictionary: script[0] & 1 != 0,
        request_timeout: Duration::from_millis(50),
        login_timeout: Duration::from_millis(300),
        most_in_batch: 2,
        ..consumer::ConsumerSettings::default()
    };
    let mut login = LoginRequest::new(b"user");
    login.attributes.round_trip_latency = (script[0] & 2 != 0).then_some(2);
    login.attributes.single_open = Some(u64::from(script[0] & 4 == 0));
    let mut consumer = Consumer::new(settings, &login).unwrap();
    let (mut items, mut out, mut now) = (Items::default(), Queue::new(ROOM), Nanos(0));
    for number in [0, 0, 1, 0x08, 0x10, 0x40, 0x20] {
        open(&mut consumer, &mut items, number);
    }
    let mut does = script.iter().copied().cycle();
    for message in messages(bytes) {
        consumer.tick(now, &mut out, &mut items);
        if std::mem::take(&mut items.wants_connection) {
            consumer.connected(now, &mut out);
        }
        consumer.message(now, message, &mut out, &mut items);
        let number = does.next().unwrap();
        if !items.is_ended {
            act(&mut consumer, &mut items, number, &mut out);
        }
        if number & 0x80 == 0 {
            check_sent(&mut out, &[MessageClass::REQUEST, MessageClass::CLOSE, MessageClass::POST]);
        }
        if std::mem::take(&mut items.is_disconnected) || items.is_ended {
            out = Queue::new(ROOM);
        }
        now = now + u64::from(number) * 300_000;
        assert_eq!(consumer.items(), items.open.len());
        assert!(consumer.items() <= MOST && consumer.streams() <= 4 * MOST);
    }
    if !items.is_ended {
        consumer.log_out(&mut out, &mut items);
    }
    assert!(items.is_ended && items.open.is_empty() && consumer.items() == 0 && consumer.streams() == 0);
    assert_eq!(consumer.tick(now + 1_000_000_000, &mut out, &mut items), None);
}

/// An NI provider of any hub.
pub(crate) fn ni_provider(input: &[u8]) {
    let Some((script, bytes)) = input.split_at_checked(8) else { return };
    let info =
        Info { name: Some("FEED".into()), capabilities: Some(vec![Domain::MARKET_PRICE]), ..Info::default() };
    let services = [ServiceEntry::new(1, info, ServiceState::UP)];
    let settings = ni_provider::NiProviderSettings {
        most_items: MOST,
        downloads_dictionary: script[0] & 1 != 0,
        login_timeout: Duration::from_millis(300),
        ..ni_provider::NiProviderSettings::default()
    };
    let mut provider = NiProvider::new(settings, &LoginRequest::new(b"user"), &services).unwrap();
    let items: Vec<_> =
        [b"A", b"B", b"C"].map(|name| provider.add(1, Domain::MARKET_PRICE, name, 0).unwrap()).into();
    let (mut wants_connection, mut is_ended, mut published) = (false, false, 0);
    let image = RefreshHeader {
        flags: flags::refresh::REFRESH_COMPLETE,
        ..RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST)
    };
    let update = UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST);
    let mut out = Queue::new(ROOM);
    let mut now = Nanos(0);
    let mut does = script.iter().copied().cycle();
    for message in messages(bytes) {
        let number = does.next().unwrap();
        let mut application =
            |provider: &mut NiProvider, out: &mut dyn Outbox, event: ni_provider::NiProviderEvent<'_>| {
                assert!(!is_ended, "nothing happens behind the end: {event:?}");
                match event {
                    ni_provider::NiProviderEvent::Connect { .. } => wants_connection = true,
                    ni_provider::NiProviderEvent::Ended { .. } => is_ended = true,
                    ni_provider::NiProviderEvent::ImageWanted { item, .. } if number & 2 == 0 => {
                        published += usize::from(
                            provider.publish(out, item, &Publish::Refresh(image), &[]).unwrap().is_queued(),
                        );
                    }
                    _ => {}
                }
            };
        provider.tick(now, &mut out, &mut application);
        provider.message(now, message, &mut out, &mut application);
        for item in &items {
            let is_published = provider.is_published(*item);
            let sent = provider.publish(&mut out, *item, &Publish::Update(update), &[]).unwrap();
            assert!(is_published || !sent.is_queued(), "no update before the image");
        }
        if number & 4 != 0 {
            let state = ServiceState { service_state: Some(0), ..ServiceState::default() };
            let change = ServiceEntry::change(1, ServicePart::State(state));
            let _ = provider.change_service(&mut out, &change).unwrap();
        }
        if number & 0x80 == 0 {
            let classes = [
                MessageClass::REQUEST,
                MessageClass::CLOSE,
                MessageClass::REFRESH,
                MessageClass::UPDATE,
                MessageClass::STATUS,
            ];
            check_sent(&mut out, &classes);
        }
        if std::mem::take(&mut wants_connection) {
            provider.connected(now, &mut out);
        }
        now = now + u64::from(number) * 300_000;
        assert!(provider.items() <= MOST);
    }
}
