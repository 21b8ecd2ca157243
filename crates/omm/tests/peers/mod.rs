//! Any messages for the roles that are logged in to, and what must hold whatever they are.
//!
//! An input is eight bytes that say what the application does, then messages, each behind its length in two bytes.

#![allow(dead_code, reason = "each user takes some of it")]

use std::sync::{Arc, LazyLock};

use tapeline_nanos::Nanos;
use tapeline_omm::dictionary::Dictionary;
use tapeline_omm::domain::directory::{Group, Info, ServiceState};
use tapeline_omm::domain::{Directory, LoginFeatures, OwnedState, ServiceEntry, ServicePart};
use tapeline_omm::role::acceptor::{self, Acceptor};
use tapeline_omm::role::provider::{self, Provider, StreamHandle};
use tapeline_omm::role::{Outbox, Over, Queue, Sent};
use tapeline_omm::rwf::{
    DataState, DataType, Domain, MessageClass, MessageView, RefreshHeader, StatusHeader, StreamState,
    UpdateType, flags, update_header,
};
use tapeline_omm::{State, fid};

/// Streams and items that a peer may have here.
const MOST: u32 = 12;
/// Bytes for what the peer does not read.
const OWED: usize = 4096;

/// What is given out, made once: its tables are large.
static DICTIONARY: LazyLock<Arc<Dictionary>> = LazyLock::new(|| Arc::new(Dictionary::builtin().clone()));

/// What the application does, taken from the input over and over.
struct Script<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Script<'_> {
    fn next(&mut self) -> u8 {
        self.at += 1;
        self.bytes[self.at % self.bytes.len()]
    }
}

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
        assert!(classes.contains(&message.class()), "{}", message.class());
        message.header().unwrap();
        // The application sends generic messages back as they came, whatever is in them.
        assert!(message.class() == MessageClass::GENERIC || message.open().is_ok());
    }
}

fn services() -> [ServiceEntry; 2] {
    let info = Info {
        name: Some("TAPELINE".into()),
        capabilities: Some(vec![Domain::MARKET_PRICE]),
        ..Info::default()
    };
    [
        ServiceEntry::new(1, info.clone(), ServiceState::UP),
        ServiceEntry::new(2, info, ServiceState { service_state: Some(0), ..ServiceState::default() }),
    ]
}

/// A change of the directory, by number.
fn change(number: u8) -> ServiceEntry {
    let closed = State { stream: StreamState::CLOSED_RECOVER, data: DataState::SUSPECT, ..State::OPEN_OK };
    let group = |merged: Option<&[u8]>, status| {
        ServicePart::Group(Group {
            group: Some([0, 0].into()),
            merged_to_group: merged.map(Into::into),
            status,
        })
    };
    match number % 5 {
        0 => ServiceEntry::delete(1),
        1 => ServiceEntry::change(1, group(Some(b"merged"), None)),
        2 => ServiceEntry::change(1, group(None, Some(OwnedState::from(closed)))),
        3 => {
            let status = Some(OwnedState::from(closed));
            ServiceEntry::change(2, ServicePart::State(ServiceState { status, ..ServiceState::UP }))
        }
        _ => ServiceEntry::change(1, ServicePart::State(ServiceState::UP)),
    }
}

/// A provider of any consumer.
pub(crate) fn provider(input: &[u8]) {
    let Some((script, bytes)) = input.split_at_checked(8) else { return };
    let mut script = Script { bytes: script, at: 0 };
    let settings = provider::ProviderSettings {
        most_streams: MOST,
        owed_bytes: OWED,
        dictionary_part_bytes: 600,
        refusal_pause_ms: 1,
        round_trip_interval_ms: 1,
        login_timeout_ms: 5,
    };
    let (mut provider, mut out) = (Provider::new(settings, Nanos(0)), Queue::new(OWED));
    let mut now = Nanos(0);
    let dictionary = &*DICTIONARY;
    let mut directory = Directory::new();
    services().iter().for_each(|service| {
        directory.apply(service);
    });
    let mut handles: Vec<StreamHandle> = Vec::new();
    let mut over = None;
    for message in messages(bytes) {
        let mut events = 0;
        let mut application =
            |provider: &mut Provider, out: &mut dyn Outbox, event: provider::ProviderEvent<'_>| {
                events += 1;
                decide(provider, out, now, &event, &mut script, dictionary, &directory, &mut handles);
            };
        let done = provider.message(now, message, &mut out, &mut application);
        if let Some(over) = over {
            assert_eq!((done, events), (Err(over), 0), "nothing happens behind the end");
        }
        over = done.err();
        assert!(provider.open_streams() <= MOST as usize);
        publish(&mut provider, &mut out, &handles);
        let did = script.next();
        if did & 1 != 0 && over.is_none() {
            let _ = provider.directory_changed(&mut out, &[change(did >> 1)]).unwrap();
        }
        if did & 2 != 0 {
            check_sent(&mut out, FROM_PROVIDER);
        }
        now = Nanos(now.0 + u64::from(did) * 50_000);
        let mut nothing = |_: &mut Provider, _: &mut dyn Outbox, _: provider::ProviderEvent<'_>| ();
        match provider.tick(now, &mut out, &mut nothing) {
            Ok(Some(next)) => assert!(next > Nanos(0)),
            Ok(None) => {}
            Err(now_over) => {
                assert!(over.is_none_or(|over| over == now_over));
                over = Some(now_over);
            }
        }
    }
    // All that was owed goes out, sooner or later.
    let mut nothing = |_: &mut Provider, _: &mut dyn Outbox, _: provider::ProviderEvent<'_>| ();
    for _ in 0..200 {
        check_sent(&mut out, FROM_PROVIDER);
        let _ = provider.tick(now, &mut out, &mut nothing);
    }
}

const FROM_PROVIDER: &[MessageClass] = &[
    MessageClass::REFRESH,
    MessageClass::STATUS,
    MessageClass::UPDATE,
    MessageClass::ACK,
    MessageClass::GENERIC,
];

#[allow(clippy::too_many_arguments, reason = "all that an application has")]
fn decide(
    provider: &mut Provider,
    out: &mut dyn Outbox,
    now: Nanos,
    event: &provider::ProviderEvent<'_>,
    script: &mut Script<'_>,
    dictionary: &Arc<Dictionary>,
    directory: &Directory,
    handles: &mut Vec<StreamHandle>,
) {
    use provider::ProviderEvent;
    let number = script.next();
    match event {
        ProviderEvent::Login { .. } if number.is_multiple_of(16) => {}
        ProviderEvent::Login { .. } if number % 16 == 1 => {
            let state = State { stream: StreamState::CLOSED, data: DataState::SUSPECT, ..State::OPEN_OK };
            let _ = provider.login_status(out, state);
        }
        ProviderEvent::Login { request, .. } => {
            let features = LoginFeatures {
                support_omm_post: Some(u64::from(number & 1)),
                support_standby: Some(u64::from(number & 2)),
                round_trip_latency: Some(2),
                ..LoginFeatures::default()
            };
            let _ = provider.accept_login(now, out, request, features);
        }
        ProviderEvent::Directory { stream, .. } => {
            let _ = provider.directory(out, *stream, directory).unwrap();
        }
        ProviderEvent::Dictionary { stream, .. } => {
            let _ = provider.dictionary(out, *stream, dictionary);
        }
        ProviderEvent::Open { stream, .. } | ProviderEvent::Reissue { stream, .. } => {
            let stream = *stream;
            handles.push(stream);
            assert!(provider.key(stream).is_some());
            match number % 4 {
                0 => {
                    let header = RefreshHeader {
                        flags: if number & 4 == 0 {
                            flags::refresh::REFRESH_COMPLETE
                        } else {
                            flags::refresh::CLEAR_CACHE
                        },
                        ..RefreshHeader::new(Domain(0), 0, State::OPEN_OK, DataType::FIELD_LIST)
                    };
                    let _ = provider.refresh(out, stream, &header, &mut |room| write_fields(room));
                }
                1 | 2 => {
                    let stream_state =
                        if number % 4 == 1 { StreamState::CLOSED_RECOVER } else { StreamState::CLOSED };
                    let state = State { stream: stream_state, data: DataState::SUSPECT, ..State::OPEN_OK };
                    let header = StatusHeader { state: Some(state), ..StatusHeader::new(Domain(0), 0) };
                    let _ = provider.status(now, out, stream, &header);
                }
                _ => {}
            }
        }
        ProviderEvent::Closed { stream } => {
            assert!(provider.key(*stream).is_none());
            assert_eq!(provider.update(out, *stream, &an_update()), Sent::NotOpen);
        }
        ProviderEvent::Post { receipt: Some(receipt), .. } => {
            let _ = provider.ack(out, *receipt, None);
        }
        ProviderEvent::Generic { stream, header, message } => {
            let payload = message.payload();
            let _ = provider.generic(out, *stream, header, &mut |room| {
                room.get_mut(..payload.len()).ok_or(tapeline_omm::Refused::Full)?.copy_from_slice(payload);
                Ok(payload.len())
            });
        }
        _ => {}
    }
}

fn write_fields(room: &mut [u8]) -> Result<usize, tapeline_omm::Refused> {
    let mut list = tapeline_omm::FieldListEncoder::new(room)?;
    list.real(fid::BID, tapeline_omm::Real::decimal(3991, 2))?;
    Ok(list.finish())
}

fn an_update() -> Vec<u8> {
    let mut bytes = vec![0; 64];
    let header =
        update_header(&mut bytes, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST).unwrap();
    let len = header + write_fields(&mut bytes[header..]).unwrap();
    bytes.truncate(len);
    bytes
}

fn publish(provider: &mut Provider, out: &mut Queue, handles: &[StreamHandle]) {
    let done = provider.publish(out, handles, &an_update());
    assert!(done <= handles.len());
}

/// An acceptor of any NI provider.
pub(crate) fn acceptor(input: &[u8]) {
    use acceptor::AcceptorEvent;
    let Some((script, bytes)) = input.split_at_checked(8) else { return };
    let mut script = Script { bytes: script, at: 0 };
    let settings = acceptor::AcceptorSettings {
        login_timeout_ms: 5,
        most_items: MOST,
        owed_bytes: OWED,
        dictionary_part_bytes: 600,
    };
    let (mut acceptor, mut out) = (Acceptor::new(settings, Nanos(0)), Queue::new(OWED));
    let dictionary = &*DICTIONARY;
    let mut now = Nanos(0);
    let mut over: Option<Over> = None;
    let classes = [
        MessageClass::REFRESH,
        MessageClass::STATUS,
        MessageClass::ACK,
        MessageClass::POST,
        MessageClass::GENERIC,
    ];
    for message in messages(bytes) {
        let mut events = 0;
        let mut application = |acceptor: &mut Acceptor, out: &mut dyn Outbox, event: AcceptorEvent<'_>| {
            events += 1;
            match event {
                AcceptorEvent::Login { request, .. } if !script.next().is_multiple_of(16) => {
                    let _ = acceptor.accept_login(out, &request, LoginFeatures::default());
                }
                AcceptorEvent::Image { item, .. }
                | AcceptorEvent::Update { item, .. }
                | AcceptorEvent::Status { item, .. } => {
                    assert!(item.stream_id < 0);
                    assert!(acceptor.items().any(|published| published == item));
                }
                AcceptorEvent::Withdrawn { item } => {
                    assert!(!acceptor.items().any(|published| published == item));
                }
                AcceptorEvent::Dictionary(request) => {
                    let _ = acceptor.dictionary(out, request.stream_id, dictionary);
                }
                AcceptorEvent::Generic { header, .. } => {
                    let _ = acceptor.generic(out, &header, &mut |_| Ok(0));
                }
                _ => {}
            }
        };
        let done = acceptor.message(now, message, &mut out, &mut application);
        if let Some(over) = over {
            assert_eq!((done, events), (Err(over), 0), "nothing happens behind the end");
        }
        over = done.err();
        assert!(acceptor.items().len() <= MOST as usize);
        let did = script.next();
        if did & 2 != 0 {
            check_sent(&mut out, &classes);
        }
        now = Nanos(now.0 + u64::from(did) * 50_000);
        let mut nothing = |_: &mut Acceptor, _: &mut dyn Outbox, _: AcceptorEvent<'_>| ();
        over = acceptor.tick(now, &mut out, &mut nothing).err().or(over);
    }
    check_sent(&mut out, &classes);
}
