//! What a role sends, into a connection; and what comes, to a role. Where the connection speaks JSON, it is turned into RWF
//! and back here, so that no role knows.

mod cookie;
mod json;
mod texts;

use std::sync::Arc;

use tapeline_omm::Dictionary;
use tapeline_omm::domain::Directory;
use tapeline_omm::role::{Outbox, Sent};
use tapeline_wire::rssl::{self, Negotiated, Sender};

use self::json::Json;
pub(crate) use self::json::Settings as JsonSettings;
pub(crate) use self::texts::Texts;
use super::MOST_MALFORMED;

/// Longest message that is sent: what a connection takes if nothing else is set.
const MOST: usize = 16 << 20;
/// Room that is kept for the next message; more is given back.
const KEPT: usize = 64 << 10;

/// Where a connection's next message is written, and kept where the connection had no room for it.
#[derive(Debug, Default)]
pub(crate) struct Room {
    bytes: Vec<u8>,
    /// So many bytes of a message wait for room: of the text, where there is one.
    waiting: Option<usize>,
    json: Option<Box<Json>>,
    /// Messages in a frame at most, and those in the one that is being filled.
    pack: u32,
    packed: u32,
    /// Messages in JSON that could not be read; those in RWF are for the role to count.
    unreadable: u64,
    /// Messages that the peer could not read.
    complaints: u64,
    /// Messages that could not be sent as JSON.
    unsendable: u64,
}

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    /// Sends arrays, and answers what it cannot read.
    Server,
}

impl Room {
    /// For a connection that has just been opened.
    pub(crate) fn new(
        side: Side,
        agreed: &Negotiated,
        dictionary: &Arc<Dictionary>,
        settings: json::Settings,
    ) -> Self {
        let new = || Box::new(Json::new(side, agreed.ping_timeout, dictionary, settings));
        let json = agreed.is_json().then(new);
        Self { json, ..Self::default() }
    }

    /// The login that the connection stands for, as a message to be taken before any other; `None` where the client says it itself.
    pub(crate) fn login(agreed: &Negotiated) -> Option<Vec<u8>> {
        agreed.login.as_ref().and_then(cookie::request)
    }

    /// The names of services are these from now on, as JSON has them.
    pub(crate) fn set_services(&mut self, directory: &Directory) {
        if let Some(json) = &mut self.json {
            json.set_services(directory);
        }
    }

    /// JSON has services as numbers from now on, or as names, until the peer uses the other form itself.
    pub(crate) fn number_services(&mut self, numbers_services: bool) {
        if let Some(json) = &mut self.json {
            json.number_services(numbers_services);
        }
    }

    /// Shares the texts of messages that go to many connections: what another one has made is not made again.
    pub(crate) fn share(&mut self, texts: &Texts) {
        if let Some(json) = &mut self.json {
            json.share(texts);
        }
    }

    /// Up to so many messages share a frame from now on, of those that are sent before the connection is flushed. 0 or 1: none do.
    pub(crate) fn set_pack(&mut self, most: u32) {
        self.pack = most;
    }

    /// The dictionary is this one from now on.
    pub(crate) fn set_dictionary(&mut self, dictionary: &Arc<Dictionary>) {
        if let Some(json) = &mut self.json {
            json.set_dictionary(dictionary);
        }
    }

    /// The way out for a role. What waits here goes out first: a role that owes nothing would never ask for room.
    pub(crate) fn on<'r, 's>(&'r mut self, sender: &'r mut Sender<'s>) -> Out<'r, 's> {
        let mut out = Out { room: self, sender, in_place: false };
        out.settle();
        out
    }

    /// Hands each message that is not all out to `each`, in their order; see [`Sender::unsent_messages`].
    pub(crate) fn unsent(&self, sender: &Sender<'_>, mut each: impl FnMut(Option<&[u8]>)) {
        sender.unsent_messages(&mut each);
        if let Some(len) = self.waiting {
            each(self.bytes.get(..len));
        }
    }

    /// Messages, and texts of messages, that could not be read as JSON so far.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// One line for each connection: a peer can have as many made as it likes.
    fn cannot_send(&mut self, why: &str) {
        if self.unsendable == 0 {
            anstream::eprintln!("note: a message cannot be sent as JSON: {why}");
        }
        self.unsendable += 1;
    }

    /// Hands what came to `each`: the message, or those of a text one by one. Of a text nothing is looked at behind
    /// [`MOST_MALFORMED`] faults.
    ///
    /// # Errors
    /// The first that `each` comes back with; what follows is not looked at.
    pub(crate) fn take<E>(
        &mut self,
        received: &[u8],
        sender: &mut Sender<'_>,
        mut each: impl FnMut(&[u8], &mut Out<'_, '_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(meaning) = self.json.as_ref().map(|json| json.meaning()) else {
            return each(received, &mut self.on(sender));
        };
        meaning.read(received, MOST_MALFORMED, |step| match step {
            json::Step::Form { numbers_services } => {
                self.number_services(numbers_services);
                Ok(())
            }
            json::Step::Message(bytes) => each(bytes, &mut self.on(sender)),
            json::Step::Unreadable(why) => {
                // One line for each connection: a peer can send as many as it likes.
                if self.unreadable == 0 {
                    anstream::eprintln!("note: a message in JSON cannot be read: {why}");
                }
                self.unreadable += 1;
                Ok(())
            }
            json::Step::Complaint(why) => {
                if self.complaints == 0 {
                    anstream::eprintln!("note: the peer could not read a message: {}", why.escape_debug());
                }
                self.complaints += 1;
                Ok(())
            }
            json::Step::Answer(text) => {
                // Owed at most once for each message of the peer's; one that does not read goes without.
                let _ = sender.send(text);
                Ok(())
            }
        })
    }
}

/// An [`Outbox`] on a connection. A connection tells only when it is given a message that there is no room; so one message
/// may wait here, and nothing more is taken until that is out.
#[derive(Debug)]
pub(crate) struct Out<'r, 's> {
    room: &'r mut Room,
    sender: &'r mut Sender<'s>,
    /// What was claimed last is the connection's own, and sent from there.
    in_place: bool,
}

impl Out<'_, '_> {
    /// Whether nothing waits here, after another attempt to send it.
    pub(crate) fn settle(&mut self) -> bool {
        let Some(len) = self.room.waiting else { return true };
        let bytes = match &self.room.json {
            Some(json) => json.text(),
            None => self.room.bytes.get(..len).unwrap_or_default(),
        };
        let is_packed = self.room.pack > 1;
        match if is_packed { self.sender.pack(bytes) } else { self.sender.send(bytes) } {
            rssl::Sent::Full => return false,
            // As RWF it was short enough.
            rssl::Sent::Unfit => {
                let why = format!("its text has {} bytes", bytes.len());
                self.room.cannot_send(&why);
            }
            // Sent; or the connection is over, and nobody will ever read it.
            _ => {}
        }
        self.room.waiting = None;
        if is_packed {
            self.room.packed += 1;
            if self.room.packed >= self.room.pack {
                self.room.packed = 0;
                self.sender.seal();
            }
        }
        true
    }
}

impl Outbox for Out<'_, '_> {
    fn most(&self) -> usize {
        MOST
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if !self.settle() || len > MOST {
            return None;
        }
        self.in_place = false;
        if self.room.json.is_none()
            && self.room.pack <= 1
            && let Some(room) = self.sender.claim(len)
        {
            self.in_place = true;
            return Some(room);
        }
        if self.room.bytes.len() < len {
            self.room.bytes.resize(len, 0);
        }
        self.room.bytes.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        if std::mem::take(&mut self.in_place) {
            self.sender.commit(len);
            return;
        }
        let len = len.min(self.room.bytes.len());
        let Room { bytes, json, .. } = &mut *self.room;
        let message = bytes.get(..len).unwrap_or_default();
        match json.as_mut().map_or(Ok(()), |json| json.write(message)) {
            Ok(()) => self.room.waiting = Some(len),
            Err(why) => self.room.cannot_send(&why),
        }
        if self.settle() && self.room.bytes.len() > KEPT {
            self.room.bytes = Vec::new();
        }
    }
}

/// Nowhere: for a role without a connection, which has nobody to send to.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Outbox for Nowhere {
    fn most(&self) -> usize {
        MOST
    }

    fn claim(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _len: usize) {}

    fn send(&mut self, _message: &[u8]) -> Sent {
        Sent::Full
    }
}
