//! The consumer for C.

#![allow(unsafe_code)]

use std::ffi::c_char;
use std::ptr;
use std::slice;
use std::time::Duration;

use tapeline_client::{Consumer, Event, ItemMessage};
use tapeline_omm::role::consumer::ConsumerSettings;
use tapeline_omm::rwf::MessageClass;

use crate::failure::{self, Failure, given, guarded, null};
use crate::session::Session;
use crate::sized::write_sized;
use crate::tapeline_code::{self, *};
use crate::{tapeline_bytes, tapeline_dictionary, tapeline_session_options, tapeline_text};

/// A consumer of items of a plant, a hub or any other OMM provider. It reconnects by itself, and requests its items again.
#[derive(Debug)]
pub struct tapeline_consumer {
    consumer: Consumer,
    servers: String,
}

/// The kind of an event.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tapeline_event_kind {
    /// An event that this release does not describe further.
    TAPELINE_EVENT_OTHER = 0,
    /// The connection to `server` is open; the consumer logs in.
    TAPELINE_EVENT_CONNECTED = 1,
    /// There is no connection to `server`; `text` is the reason. The consumer tries again; values may be stale.
    TAPELINE_EVENT_DISCONNECTED = 2,
    /// The login is accepted, and the services are known.
    TAPELINE_EVENT_READY = 3,
    /// An image of an item: all fields, which replace earlier values.
    TAPELINE_EVENT_IMAGE = 4,
    /// An update of an item: the fields that changed.
    TAPELINE_EVENT_UPDATE = 5,
    /// A status of an item from the server; `text` is its text.
    TAPELINE_EVENT_STATUS = 6,
    /// The state of an item changed without a message, such as by a lost connection; `text` is the state.
    TAPELINE_EVENT_STATE = 7,
    /// Information for the user: `text`.
    TAPELINE_EVENT_NOTE = 8,
}

use tapeline_event_kind::*;

/// An event. All that it points to is valid until the next call with its consumer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tapeline_event {
    /// A tapeline_event_kind.
    pub kind: u32,
    /// The stream's state where `has_state`: 1 open, 3 closed, recover yourself, 4 closed, 5 redirected.
    pub stream_state: u8,
    /// The data's state where `has_state`: 1 good, 2 suspect.
    pub data_state: u8,
    /// The reason's code where `has_state`.
    pub state_code: u8,
    /// 1 if the message has a state; else 0.
    pub has_state: u8,
    /// The item's service; "" if the event is of no item.
    pub service: tapeline_text,
    /// The item's name; "" if the event is of no item.
    pub item: tapeline_text,
    /// A text, as the kind says; the text of the state, if the message has one.
    pub text: tapeline_text,
    /// The server that a connection event is of; else "".
    pub server: tapeline_text,
    /// The RWF message of an image, an update or a status: open its fields with tapeline_fields_open().
    pub message: tapeline_bytes,
    /// The dictionary of the message.
    pub dictionary: *const tapeline_dictionary,
}

/// Makes a consumer. It connects in the background of tapeline_consumer_poll(). The handle goes to `*consumer`, which is
/// NULL after an error; free it with tapeline_consumer_close().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_consumer_open(
    options: *const tapeline_session_options,
    consumer: *mut *mut tapeline_consumer,
) -> tapeline_code {
    guarded(|| {
        let handle = given(consumer, "where the consumer goes")?;
        // SAFETY: not NULL, so a place for a pointer; `options` is what it is declared to be.
        let session = unsafe {
            handle.write(ptr::null_mut());
            Session::read(options)?
        };
        let Session { endpoints, login, servers } = session;
        let opened = Consumer::new(endpoints, &login, ConsumerSettings::default());
        let consumer = opened.map_err(|error| Failure::from(error).at(&servers))?;
        // SAFETY: as above.
        unsafe { handle.write(Box::into_raw(Box::new(tapeline_consumer { consumer, servers }))) };
        Ok(TAPELINE_OK)
    })
}

/// Requests `count` items of a service. An unknown item or service gets a TAPELINE_EVENT_STATUS or TAPELINE_EVENT_STATE.
/// Items that are lost are requested again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_consumer_subscribe(
    consumer: *mut tapeline_consumer,
    service: *const c_char,
    items: *const *const c_char,
    count: usize,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses; `service` is NULL or a text.
        let (handle, service) = unsafe {
            let handle = consumer.as_mut().ok_or_else(|| null("the consumer"))?;
            (handle, failure::text(service, "the service's name")?)
        };
        if items.is_null() {
            return Err(null("the list of items"));
        }
        // SAFETY: not NULL, so `count` pointers, each NULL or a text.
        let names = unsafe { slice::from_raw_parts(items, count) };
        // SAFETY: as above.
        let names = names.iter().map(|name| unsafe { failure::text(*name, "an item's name") });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let done = handle.consumer.subscribe(service, &names);
        done.map_err(|error| Failure::from(error).at(&format!("service {service}")))?;
        Ok(TAPELINE_OK)
    })
}

/// Returns the next event in `*event`: TAPELINE_EVENT, or TAPELINE_TIMED_OUT if there is none within `timeout_ns`.
/// TAPELINE_ERROR_SESSION_OVER if the login was refused, or the session ended for good. The consumer works in this call alone:
/// call it often enough to answer the server's heartbeats, once in some seconds. `size`: sizeof *event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_consumer_poll(
    consumer: *mut tapeline_consumer,
    timeout_ns: u64,
    event: *mut tapeline_event,
    size: usize,
) -> tapeline_code {
    guarded(|| {
        // SAFETY: NULL, or a handle that this thread alone uses.
        let handle = unsafe { consumer.as_mut() }.ok_or_else(|| null("the consumer"))?;
        let place = given(event, "where the event goes")?;
        let tapeline_consumer { consumer, servers } = handle;
        let polled = consumer.poll(Duration::from_nanos(timeout_ns));
        let Some(found) = polled.map_err(|error| Failure::from(error).at(servers))? else {
            return Ok(TAPELINE_TIMED_OUT);
        };
        // SAFETY: not NULL, so `size` bytes for an event.
        unsafe { write_sized(lend(&found), place, size) };
        Ok(TAPELINE_EVENT)
    })
}

impl tapeline_event {
    /// An event of this kind, without anything else.
    #[inline]
    fn of(kind: tapeline_event_kind, (service, item): (&str, &str)) -> Self {
        Self {
            kind: kind as u32,
            stream_state: 0,
            data_state: 0,
            state_code: 0,
            has_state: 0,
            service: tapeline_text::lend(service.as_bytes()),
            item: tapeline_text::lend(item.as_bytes()),
            text: tapeline_text::lend(&[]),
            server: tapeline_text::lend(&[]),
            message: tapeline_bytes::lend(&[]),
            dictionary: ptr::null(),
        }
    }
}

fn lend(event: &Event<'_>) -> tapeline_event {
    let lent = |text: &str| tapeline_text::lend(text.as_bytes());
    let of_none =
        |kind, text: &str| tapeline_event { text: lent(text), ..tapeline_event::of(kind, ("", "")) };
    match event {
        Event::Message(message) => of_message(message),
        Event::Connected { server } => {
            tapeline_event { server: lent(server), ..of_none(TAPELINE_EVENT_CONNECTED, "") }
        }
        Event::Disconnected { server, reason } => {
            tapeline_event { server: lent(server), ..of_none(TAPELINE_EVENT_DISCONNECTED, reason) }
        }
        Event::Ready => of_none(TAPELINE_EVENT_READY, ""),
        Event::State { service, item, state, .. } => {
            tapeline_event { text: lent(state), ..tapeline_event::of(TAPELINE_EVENT_STATE, (service, item)) }
        }
        Event::Note(text) => of_none(TAPELINE_EVENT_NOTE, text),
        _ => of_none(TAPELINE_EVENT_OTHER, ""),
    }
}

#[inline]
fn of_message(message: &ItemMessage<'_>) -> tapeline_event {
    let class = message.message.class();
    let kind = match class {
        MessageClass::UPDATE => TAPELINE_EVENT_UPDATE,
        MessageClass::REFRESH => TAPELINE_EVENT_IMAGE,
        MessageClass::STATUS => TAPELINE_EVENT_STATUS,
        _ => TAPELINE_EVENT_OTHER,
    };
    let mut event = tapeline_event {
        message: tapeline_bytes::lend(message.bytes),
        dictionary: tapeline_dictionary::lend(message.dictionary()),
        ..tapeline_event::of(kind, (message.service, message.item))
    };
    if class != MessageClass::UPDATE
        && let Some(state) = message.message.header().ok().and_then(|header| header.state())
    {
        event.stream_state = state.stream.0;
        event.data_state = state.data.0;
        event.state_code = state.code.0;
        event.has_state = 1;
        event.text = tapeline_text::lend(state.text);
    }
    event
}

/// Logs out, closes the connection and frees the consumer. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tapeline_consumer_close(consumer: *mut tapeline_consumer) -> tapeline_code {
    if consumer.is_null() {
        return TAPELINE_OK;
    }
    guarded(|| {
        // SAFETY: made by `tapeline_consumer_open` from a box, and not freed before.
        let handle = unsafe { *Box::from_raw(consumer) };
        handle.consumer.close();
        Ok(TAPELINE_OK)
    })
}
