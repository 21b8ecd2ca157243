//! Events that a consumer has received and its program has not taken yet.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::role::Outbox;
use tapeline_omm::role::consumer::{self as role, ConsumerApplication, ConsumerEvent, Handle};
use tapeline_omm::rwf::{MessageView, NakCode};

use super::{Event, Item, ItemMessage, LoginMessage, Refusal};
use crate::dialer::{ConnectionEvent, Dialing};

/// Events that were received and not taken yet. A turn runs only when no event is left.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    pub(super) events: VecDeque<Waiting>,
    /// The event that was taken last, from which the caller borrows.
    pub(super) last: Option<Waiting>,
    /// The bytes of the messages.
    pub(super) bytes: Vec<u8>,
    pub(super) items: HashMap<u64, Named>,
    /// The item of each handle, for the answers to posts.
    numbers: HashMap<Handle, Item>,
    /// Closed items, whose names are removed when no event is left.
    closed: Vec<u64>,
    pub(super) dictionary: Option<Arc<Dictionary>>,
    /// The server of the open connection.
    server: String,
    /// Why the server or the consumer gives up the connection, until the connection is closed.
    reason: String,
    pub(super) ended: Option<String>,
}

/// An item that was requested.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: Arc<str>,
    pub(super) service: Arc<str>,
    /// `None` once the item is closed.
    pub(super) handle: Option<Handle>,
}

/// An event, without its message's bytes and its item's names.
#[derive(Clone, Debug)]
pub(super) enum Waiting {
    Connected(String),
    Disconnected { server: String, reason: String },
    Login(Range<usize>),
    Services,
    Ready,
    Message { item: u64, bytes: Range<usize>, is_final: bool },
    State { item: u64, state: String, is_final: bool },
    Ack { item: Option<Item>, post: u32, refusal: Option<(NakCode, String)> },
    Note(String),
}

impl Waiting {
    pub(super) const fn item(&self) -> Option<u64> {
        match self {
            Self::Message { item, .. } | Self::State { item, .. } => Some(*item),
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> Range<usize> {
        match self {
            Self::Message { bytes, .. } | Self::Login(bytes) => bytes.clone(),
            _ => 0..0,
        }
    }

    /// Returns the event, of a message with these bytes and an item of this name and service.
    pub(super) fn event<'a>(
        &'a self,
        bytes: &'a [u8],
        (item_name, service): (&'a str, &'a str),
        dictionary: &'a Dictionary,
    ) -> Option<Event<'a>> {
        Some(match self {
            Self::Connected(server) => Event::Connected { server },
            Self::Disconnected { server, reason } => Event::Disconnected { server, reason },
            // The messages were parsed when they were received.
            Self::Login(_) => Event::Login(LoginMessage { message: MessageView::parse(bytes).ok()? }),
            Self::Services => Event::Services,
            Self::Ready => Event::Ready,
            Self::Message { item, is_final, .. } => Event::Message(ItemMessage {
                id: Item(*item),
                item: item_name,
                service,
                message: MessageView::parse(bytes).ok()?,
                bytes,
                is_final: *is_final,
                dictionary,
            }),
            Self::State { item, state, is_final } => {
                Event::State { id: Item(*item), service, item: item_name, state, is_final: *is_final }
            }
            Self::Ack { item, post, refusal } => Event::Ack {
                id: *item,
                post: *post,
                refusal: refusal.as_ref().map(|(code, text)| Refusal { code: *code, text }),
            },
            Self::Note(text) => Event::Note(text),
        })
    }
}

impl Inbox {
    /// Adds an open item.
    pub(super) fn add(&mut self, number: u64, name: &str, service: &Arc<str>, handle: Handle) {
        self.numbers.insert(handle, Item(number));
        let service = Arc::clone(service);
        self.items.insert(number, Named { name: name.into(), service, handle: Some(handle) });
    }

    /// Returns the handle of an open item.
    pub(super) fn handle(&self, item: Item) -> Option<Handle> {
        self.items.get(&item.0)?.handle
    }

    /// Marks an item as closed. Returns the handle that it had.
    pub(super) fn close(&mut self, item: u64) -> Option<Handle> {
        let handle = self.items.get_mut(&item)?.handle.take()?;
        self.numbers.remove(&handle);
        self.closed.push(item);
        Some(handle)
    }

    /// Forgets the bytes and names of events that were taken. Only if no event is left.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        for item in self.closed.drain(..) {
            self.items.remove(&item);
        }
    }

    /// Stores a message of a peer. Returns its place.
    fn store(&mut self, message: &MessageView<'_>) -> Range<usize> {
        let start = self.bytes.len();
        message.append_to(&mut self.bytes);
        start..self.bytes.len()
    }
}

impl Dialing<role::Consumer> for Inbox {
    fn connection(&mut self, _role: &mut role::Consumer, event: ConnectionEvent<'_>) {
        self.events.push_back(match event {
            ConnectionEvent::Connected { server, .. } => {
                (self.server, self.reason) = (server.to_owned(), String::new());
                Waiting::Connected(server.to_owned())
            }
            ConnectionEvent::Disconnected { server, reason } => {
                Waiting::Disconnected { server: server.to_owned(), reason: reason.to_owned() }
            }
            ConnectionEvent::Note(note) => Waiting::Note(note.to_string()),
        });
    }
}

impl ConsumerApplication for Inbox {
    fn event(&mut self, _consumer: &mut role::Consumer, _out: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        let waiting = match event {
            ConsumerEvent::Login { message, state, .. } => {
                self.reason = state.to_string();
                Waiting::Login(self.store(message))
            }
            ConsumerEvent::LoginGeneric(message) => Waiting::Login(self.store(message)),
            // The connection is closed without an event of its own.
            ConsumerEvent::Disconnect => Waiting::Disconnected {
                server: self.server.clone(),
                reason: std::mem::take(&mut self.reason),
            },
            ConsumerEvent::Directory(_) => Waiting::Services,
            ConsumerEvent::Ready => Waiting::Ready,
            ConsumerEvent::Message { closure, message, is_final, .. } => {
                if is_final {
                    self.close(closure);
                }
                Waiting::Message { item: closure, bytes: self.store(message), is_final }
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                if is_final {
                    self.close(closure);
                }
                Waiting::State { item: closure, state: state.to_string(), is_final }
            }
            ConsumerEvent::Ack { item, ack } => {
                let text = ack.text.map(|text| String::from_utf8_lossy(text).into_owned());
                Waiting::Ack {
                    item: item.and_then(|item| self.numbers.get(&item).copied()),
                    post: ack.ack_id,
                    refusal: ack.nak_code.map(|code| (code, text.unwrap_or_default())),
                }
            }
            ConsumerEvent::Ended { state } => {
                self.ended = Some(state.to_string());
                return;
            }
            ConsumerEvent::Dictionary(dictionary) => {
                self.dictionary = Some(Arc::clone(dictionary));
                return;
            }
            ConsumerEvent::TimedOut(wait) => {
                self.reason = format!("the server does not answer: {wait:?}");
                return;
            }
            ConsumerEvent::Malformed(fault) => Waiting::Note(format!("a message cannot be read: {fault}")),
            ConsumerEvent::DictionaryFailed(failed) => {
                Waiting::Note(format!("there is no dictionary: {failed}"))
            }
            _ => return,
        };
        self.events.push_back(waiting);
    }
}
