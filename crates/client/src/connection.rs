//! One role's messages on one connection. Roles use RWF; on a connection that uses simplified JSON, each message is converted in both
//! directions, so that roles need no JSON code.

mod cookie;
mod json;
mod texts;

use std::fmt;
use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
use tapeline_omm::json::PackedPlace;
use tapeline_omm::role::Outbox;
use tapeline_wire::rssl::{self, Negotiated, Sender};

use self::json::Json;
pub use self::json::JsonSettings;
pub use self::texts::SharedTexts;

/// The longest message that is sent, in bytes: the default limit of a connection.
const LONGEST: usize = 16 << 20;
/// Bytes that stay allocated for the next message; larger buffers are freed.
const KEPT_CAPACITY: usize = 64 << 10;
/// The limit of unreadable messages: after this number in one text the rest of the text is skipped, and after this number on one connection
/// a server should cut the connection. A correct peer sends none.
pub const MOST_MALFORMED: u64 = 100;

/// The program's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The end that connected. It sends each message as a separate text.
    Client,
    /// The end that listens. It sends arrays of messages, and answers unreadable messages.
    Server,
}

/// Information for the user about a connection that uses JSON. Each kind is reported once per connection, because a peer can cause any
/// number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A message of the peer is unreadable, with the reason.
    Unreadable(String),
    /// The peer could not read a message, with the peer's text.
    Complaint(String),
    /// A message cannot be sent as JSON, with the reason.
    Unsendable(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "a message in JSON cannot be read: {why}"),
            Self::Complaint(why) => write!(f, "the peer could not read a message: {}", why.escape_debug()),
            Self::Unsendable(why) => write!(f, "a message cannot be sent as JSON: {why}"),
        }
    }
}

/// The state of one connection between a role and the peer: the message that waits to be sent, the JSON converter, and counters.
#[derive(Debug, Default)]
pub struct RoleConnection {
    bytes: Vec<u8>,
    /// The length of the message that waits for capacity. On a JSON connection its text waits in the converter.
    waiting: Option<usize>,
    json: Option<Box<Json>>,
    /// The place in the last text at which [`RoleConnection::receive_some`] stopped.
    place: Option<PackedPlace>,
    /// The most messages in a frame, and the number in the current frame.
    pack: u32,
    packed: u32,
    /// Messages in JSON that could not be read; roles count those in RWF.
    unreadable: u64,
    /// Messages that the peer could not read.
    complaints: u64,
    /// Messages that could not be sent as JSON.
    unsendable: u64,
    /// Notes for the user, at most one of each kind.
    notes: Vec<Note>,
}

impl RoleConnection {
    /// Creates the state of a connection that has just opened.
    #[must_use]
    pub fn new(
        side: Side,
        agreed: &Negotiated,
        dictionary: &Arc<Dictionary>,
        settings: JsonSettings,
    ) -> Self {
        let new = || {
            let (ping_timeout, longest) = (agreed.ping_timeout, agreed.max_received_bytes);
            Box::new(Json::new(side, ping_timeout, longest, dictionary, settings))
        };
        let json = agreed.is_json().then(new);
        Self { json, ..Self::default() }
    }

    /// Returns the login request that a login cookie stands for; give it to the role before any other message. `None` if the client sends its
    /// login itself.
    #[must_use]
    pub fn cookie_login(agreed: &Negotiated) -> Option<Vec<u8>> {
        agreed.login.as_ref().and_then(cookie::request)
    }

    /// Sets the services by which JSON names items.
    pub fn set_services(&mut self, directory: &Directory) {
        if let Some(json) = &mut self.json {
            json.set_services(directory);
        }
    }

    /// Sets whether JSON names services by number or by name, until the peer itself uses the other form.
    pub fn number_services(&mut self, numbers_services: bool) {
        if let Some(json) = &mut self.json {
            json.meaning.numbers_services = numbers_services;
        }
    }

    /// Shares the texts of messages that go to many connections: a text that one connection has made is reused by the others.
    pub fn share_texts(&mut self, texts: &SharedTexts) {
        if let Some(json) = &mut self.json {
            json.texts = Some(texts.clone());
        }
    }

    /// Sets the maximum number of messages in one frame, among those sent before the connection is flushed. 0 or 1: one message per frame.
    pub fn set_pack(&mut self, most: u32) {
        self.pack = most;
    }

    /// Sets the dictionary by which JSON names fields.
    pub fn set_dictionary(&mut self, dictionary: &Arc<Dictionary>) {
        if let Some(json) = &mut self.json {
            json.meaning.dictionary = Arc::clone(dictionary);
        }
    }

    /// Returns the outbox for the role's messages. A waiting message is sent first, because a role without queued output never asks for capacity.
    pub fn outbox<'r, 's>(&'r mut self, sender: &'r mut Sender<'s>) -> RoleOutbox<'r, 's> {
        let mut outbox = RoleOutbox { connection: self, sender, in_place: false };
        outbox.send_waiting();
        outbox
    }

    /// Calls `each` with every message that has not completely left this process, in order; see [`Sender::unsent_messages`].
    pub fn unsent(&self, sender: &Sender<'_>, mut each: impl FnMut(Option<&[u8]>)) {
        sender.unsent_messages(&mut each);
        if let Some(len) = self.waiting {
            each(self.bytes.get(..len));
        }
    }

    /// Returns the number of unreadable JSON messages and texts so far.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// Returns the next note for the user.
    pub fn next_note(&mut self) -> Option<Note> {
        self.notes.pop()
    }

    fn cannot_send(&mut self, why: &str) {
        if self.unsendable == 0 {
            self.notes.push(Note::Unsendable(why.to_owned()));
        }
        self.unsendable += 1;
    }

    /// Calls `each` with the received message, or with each message of a JSON text in turn. After [`MOST_MALFORMED`] unreadable messages the
    /// rest of a text is skipped.
    ///
    /// # Errors
    /// The first error of `each`; the rest of the text is skipped.
    pub fn receive<E>(
        &mut self,
        received: &[u8],
        sender: &mut Sender<'_>,
        each: impl FnMut(&[u8], &mut RoleOutbox<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.receive_some(received, sender, usize::MAX, each).map(|_| ())
    }

    /// Receives as [`receive`](Self::receive) does, but stops when the messages of a JSON text have come to `bytes` bytes. Returns `false` if
    /// there are more: pass the same text again, before any other ([`Reactor::repeat`](rssl::Reactor::repeat)).
    ///
    /// # Errors
    /// The first error of `each`; the rest of the text is skipped.
    pub fn receive_some<E>(
        &mut self,
        received: &[u8],
        sender: &mut Sender<'_>,
        bytes: usize,
        mut each: impl FnMut(&[u8], &mut RoleOutbox<'_, '_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        // A copy, because texts are read and written at the same time.
        let Some(meaning) = self.json.as_ref().map(|json| json.meaning.clone()) else {
            return each(received, &mut self.outbox(sender)).map(|()| true);
        };
        let place = self.place.take();
        self.place = meaning.read(received, place, bytes, |step| {
            match step {
                json::Step::Form { numbers_services } => self.number_services(numbers_services),
                json::Step::Message(bytes) => return each(bytes, &mut self.outbox(sender)),
                json::Step::Unreadable(why) => {
                    if self.unreadable == 0 {
                        self.notes.push(Note::Unreadable(why));
                    }
                    self.unreadable += 1;
                }
                json::Step::Complaint(why) => {
                    if self.complaints == 0 {
                        self.notes.push(Note::Complaint(why.to_owned()));
                    }
                    self.complaints += 1;
                }
                // At most one answer per message of the peer; dropped if the peer does not read.
                json::Step::Answer(text) => _ = sender.send(text),
            }
            Ok(())
        })?;
        Ok(self.place.is_none())
    }
}

/// An [`Outbox`] on a connection. A connection without capacity reports it only when it is given a message. That one message waits here, and
/// no other is accepted until it is sent.
#[derive(Debug)]
pub struct RoleOutbox<'r, 's> {
    connection: &'r mut RoleConnection,
    sender: &'r mut Sender<'s>,
    /// The last claim is the connection's own buffer; the message is sent from there.
    in_place: bool,
}

impl RoleOutbox<'_, '_> {
    /// Tries again to send the waiting message. Returns `true` if none is waiting now.
    pub fn send_waiting(&mut self) -> bool {
        let Some(len) = self.connection.waiting else { return true };
        let bytes = match &self.connection.json {
            Some(json) => json.text.as_slice(),
            None => self.connection.bytes.get(..len).unwrap_or_default(),
        };
        let is_packed = self.connection.pack > 1;
        match if is_packed { self.sender.pack(bytes) } else { self.sender.send(bytes) } {
            rssl::Sent::Full => return false,
            // The RWF message was short enough; its JSON text is too long.
            rssl::Sent::Unfit => {
                let why = format!("its text has {} bytes", bytes.len());
                self.connection.cannot_send(&why);
            }
            // The message is sent, or the connection is closed.
            _ => {}
        }
        self.connection.waiting = None;
        if is_packed {
            self.connection.packed += 1;
            if self.connection.packed >= self.connection.pack {
                self.connection.packed = 0;
                self.sender.seal();
            }
        }
        true
    }
}

impl Outbox for RoleOutbox<'_, '_> {
    fn most(&self) -> usize {
        LONGEST
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if !self.send_waiting() || len > LONGEST {
            return None;
        }
        self.in_place = false;
        if self.connection.json.is_none()
            && self.connection.pack <= 1
            && let Some(bytes) = self.sender.claim(len)
        {
            self.in_place = true;
            return Some(bytes);
        }
        if self.connection.bytes.len() < len {
            self.connection.bytes.resize(len, 0);
        }
        self.connection.bytes.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        if std::mem::take(&mut self.in_place) {
            self.sender.commit(len);
            return;
        }
        let len = len.min(self.connection.bytes.len());
        let RoleConnection { bytes, json, .. } = &mut *self.connection;
        let message = bytes.get(..len).unwrap_or_default();
        match json.as_mut().map_or(Ok(()), |json| json.write(message)) {
            Ok(()) => self.connection.waiting = Some(len),
            Err(why) => self.connection.cannot_send(&why),
        }
        if self.send_waiting() && self.connection.bytes.len() > KEPT_CAPACITY {
            self.connection.bytes = Vec::new();
        }
    }
}
