//! Handles the items' messages: prints and counts them, and sends posts and generic messages.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value as Json;
use tapeline_client::dialer::{ConnectionEvent, Dialing};
use tapeline_console::log;
use tapeline_omm::domain::{List, View};
use tapeline_omm::role::consumer::{
    Consumer, ConsumerApplication, ConsumerCounters, ConsumerEvent, Handle, ItemRequest, Reissue,
    ServiceName, Target,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    AckHeader, DataType, ElementListEncoder, GenericHeader, Header, Key, MessageClass, MessageView, NameType,
    PostHeader, PostUserInfo, flags,
};
use tapeline_omm::{Dictionary, State};

use super::asking::Asked;
use super::timing::Timing;
use crate::omm::lines::Lines;
use crate::omm::shown;

#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) handle: Option<Handle>,
    pub(super) has_image: bool,
    is_closed: bool,
    /// Closed by a command: updates that are still missing then are no failure.
    is_dismissed: bool,
    pub(super) updates: u64,
}

/// Counts of messages and items.
#[derive(Debug, Default)]
struct Tally {
    /// Items that have received everything requested.
    satisfied: usize,
    closed: usize,
    /// Items that a command closed before that.
    dismissed: usize,
    refreshes: u64,
    updates: u64,
    statuses: u64,
    acks: u64,
    naks: u64,
    generics: u64,
    posts: u64,
    asked: u64,
}

/// A message to send to an item.
#[derive(Clone, Debug)]
pub(super) enum Sending {
    Post(usize, Rc<[u8]>),
    Generic(usize, Rc<str>),
}

pub(super) struct Watching<'a> {
    pub(super) asked: Asked<'a>,
    pub(super) dictionary: Arc<Dictionary>,
    pub(super) lines: Lines,
    pub(super) items: Vec<Item>,
    /// For each name, the item that was opened last.
    pub(super) numbers: HashMap<String, usize>,
    tally: Tally,
    pub(super) timing: Option<Timing>,
    pub(super) to_send: VecDeque<Sending>,
    /// The item of each post; the id of a post is its index plus one.
    posted: Vec<usize>,
    message: Vec<u8>,
    /// The first failed send: the program ends with it.
    pub(super) failure: Option<anyhow::Error>,
    /// This side ends the session: a stream that closes now was not closed by the provider.
    pub(super) is_ending: bool,
    /// Why the provider refused or ended the login.
    pub(super) refusal: Option<String>,
    /// The login was successful at least once.
    pub(super) was_ready: bool,
}

impl<'a> Watching<'a> {
    pub(super) fn new(asked: Asked<'a>, dictionary: Arc<Dictionary>, lines: Lines) -> Self {
        Self {
            items: asked.items.iter().map(|_| Item::default()).collect(),
            numbers: asked.items.iter().cloned().zip(0..).collect(),
            asked,
            dictionary,
            lines,
            tally: Tally::default(),
            timing: None,
            to_send: VecDeque::new(),
            posted: Vec::new(),
            message: Vec::new(),
            failure: None,
            is_ending: false,
            refusal: None,
            was_ready: false,
        }
    }

    /// Adds an item; `open` must follow.
    pub(super) fn add(&mut self, name: String) {
        self.numbers.insert(name.clone(), self.items.len());
        self.asked.items.push(name);
        self.items.push(Item::default());
    }

    /// Opens the items from that number on; they are requested as soon as possible.
    pub(super) fn open(
        &mut self,
        consumer: &mut Consumer,
        from: usize,
        is_streaming: bool,
    ) -> anyhow::Result<()> {
        let asked = &self.asked;
        let view = (!asked.view.is_empty()).then(|| View::Fids(List::Given(&asked.view)));
        let request = ItemRequest {
            domain: asked.args.domain,
            view,
            is_streaming,
            is_private: asked.args.private,
            closure: from as u64,
            ..ItemRequest::new(ServiceName::Name(&asked.args.service), b"")
        };
        let items = self.items.iter_mut().skip(from);
        if asked.args.batch {
            let names: Vec<&[u8]> = asked.items.iter().skip(from).map(String::as_bytes).collect();
            for (item, handle) in items.zip(consumer.open_batch(&request, &names)?) {
                item.handle = Some(handle);
            }
        } else {
            for ((item, name), closure) in items.zip(asked.items.iter().skip(from)).zip(from as u64..) {
                let request = ItemRequest { name: name.as_bytes(), closure, ..request };
                item.handle = Some(consumer.open(&request)?);
            }
        }
        if asked.args.pause {
            let pause = Reissue { is_paused: Some(true), ..Reissue::default() };
            for handle in self.items.iter().skip(from).filter_map(|item| item.handle) {
                consumer.reissue(handle, &pause);
            }
        }
        Ok(())
    }

    pub(super) fn dismiss(&mut self, consumer: &mut Consumer, number: usize) {
        let needed = self.asked.args.updates.unwrap_or(0);
        let Some(item) = self.items.get_mut(number) else { return };
        let Some(handle) = item.handle.take() else { return };
        consumer.close(handle);
        (item.is_closed, item.is_dismissed) = (true, true);
        if !item.has_image || item.updates < needed {
            self.tally.dismissed += 1;
        }
        self.lines.event("closed", &[("item", self.asked.items[number].as_str().into())]);
    }

    /// Whether the program ends by itself.
    pub(super) fn is_finite(&self) -> bool {
        self.asked.args.snapshot || self.asked.args.updates.is_some()
    }

    /// Whether everything expected has arrived.
    pub(super) fn is_done(&self) -> bool {
        let is_answered = self.asked.generic.is_none() || self.tally.generics >= self.tally.asked;
        self.is_finite() && self.is_settled() && is_answered || self.tally.closed == self.items.len()
    }

    /// Whether nothing is pending: each item is complete or closed, each post acknowledged.
    pub(super) fn is_settled(&self) -> bool {
        self.to_send.is_empty()
            && self.tally.acks + self.tally.naks >= self.tally.posts
            && self.tally.satisfied + self.tally.closed + self.tally.dismissed >= self.items.len()
    }

    /// Whether something requested never arrived.
    pub(super) fn has_failed(&self) -> bool {
        let is_short = |item: &Item| !item.has_image || item.updates < self.asked.args.updates.unwrap_or(0);
        self.items.iter().filter(|item| !item.is_dismissed).any(is_short)
    }

    /// Prints the totals; `unreadable`: JSON messages that could not be read.
    pub(super) fn report(&mut self, counters: &ConsumerCounters, unreadable: u64) {
        let images = self.items.iter().filter(|item| item.has_image).count();
        let tally = &self.tally;
        let mut members: Vec<(&str, Json)> = vec![
            ("items", self.items.len().into()),
            ("images", images.into()),
            ("closed", tally.closed.into()),
            ("refreshes", tally.refreshes.into()),
            ("updates", tally.updates.into()),
            ("statuses", tally.statuses.into()),
            ("acks", tally.acks.into()),
            ("naks", tally.naks.into()),
            ("generics", tally.generics.into()),
            ("logins", counters.logins.into()),
            ("recoveries", counters.recoveries.into()),
            ("malformed", (counters.malformed + unreadable).into()),
        ];
        if let Some(timing) = &self.timing {
            members.push(("age", timing.shown()));
        }
        self.lines.event("end", &members);
    }

    /// Sends the posts and generic messages that are due, while there is buffer space.
    fn send_due(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox) -> anyhow::Result<()> {
        while let Some(sending) = self.to_send.front().cloned() {
            let sent = match &sending {
                Sending::Post(number, fields) => self.post(consumer, *number, fields, out)?,
                Sending::Generic(number, text) => self.generic(consumer, *number, text, out)?,
            };
            match sent {
                Sent::Full => return Ok(()),
                Sent::Queued => {}
                Sent::NotOpen | Sent::TooLong => {
                    let (Sending::Post(number, _) | Sending::Generic(number, _)) = sending;
                    let name = self.asked.items[number].as_str();
                    let why = "there is no image of it, or the provider does not take it";
                    log::note(format_args!("nothing can be sent to {name}: {why}"));
                    match sending {
                        Sending::Post(..) => self.tally.posts -= 1,
                        Sending::Generic(..) => self.tally.asked = self.tally.asked.saturating_sub(1),
                    }
                }
            }
            self.to_send.pop_front();
        }
        Ok(())
    }

    /// Queues a post, for which an acknowledgement is expected.
    pub(super) fn queue_post(&mut self, number: usize, fields: Rc<[u8]>) {
        self.tally.posts += 1;
        self.to_send.push_back(Sending::Post(number, fields));
    }

    fn post(
        &mut self,
        consumer: &mut Consumer,
        number: usize,
        fields: &[u8],
        out: &mut dyn Outbox,
    ) -> anyhow::Result<Sent> {
        let Some(handle) = self.items[number].handle else { return Ok(Sent::NotOpen) };
        let id = self.posted.len() as u32 + 1;
        let name = self.asked.items[number].as_bytes();
        let service = consumer.directory().named(&self.asked.args.service).map(|service| service.id);
        let key =
            Key { service_id: service, name: Some(name), name_type: Some(NameType::RIC), ..Key::default() };
        let header = PostHeader {
            domain: self.asked.args.domain,
            stream_id: 0,
            flags: flags::post::POST_COMPLETE | flags::post::ACK,
            container: DataType::FIELD_LIST,
            // The poster: this process, on this machine.
            post_user_info: PostUserInfo { address: 0x7F00_0001, user_id: std::process::id() },
            sequence: Some(id),
            post_id: Some(id),
            permission_data: None,
            key: self.asked.args.off_stream.then_some(key),
            extended_header: None,
            part: None,
            post_user_rights: None,
        };
        let target = if self.asked.args.off_stream { Target::Login } else { Target::Item(handle) };
        let sent = consumer.post(out, target, &header, fields)?;
        if sent == Sent::Queued {
            self.posted.push(number);
        }
        Ok(sent)
    }

    fn generic(
        &mut self,
        consumer: &mut Consumer,
        number: usize,
        text: &str,
        out: &mut dyn Outbox,
    ) -> anyhow::Result<Sent> {
        let Some(handle) = self.items[number].handle else { return Ok(Sent::NotOpen) };
        self.message.resize(text.len() + 64, 0);
        let mut list = ElementListEncoder::new(&mut self.message)?;
        list.ascii("Text", text)?;
        let len = list.finish();
        let header = GenericHeader {
            domain: self.asked.args.domain,
            stream_id: 0,
            flags: flags::generic::MESSAGE_COMPLETE,
            container: DataType::ELEMENT_LIST,
            sequence: Some(number as u32 + 1),
            secondary_sequence: None,
            permission_data: None,
            key: None,
            extended_header: None,
            part: None,
        };
        Ok(consumer.generic(out, Target::Item(handle), &header, &self.message[..len])?)
    }

    fn message(&mut self, number: usize, message: &MessageView<'_>, is_final: bool) {
        let Some(item) = self.items.get_mut(number) else { return };
        let needed = self.asked.args.updates.unwrap_or(0);
        let was_satisfied = item.has_image && item.updates >= needed;
        let mut is_first = false;
        match message.class() {
            MessageClass::REFRESH => {
                self.tally.refreshes += 1;
                is_first = message.is_refresh_complete() && !item.has_image;
                item.has_image |= message.is_refresh_complete();
            }
            MessageClass::UPDATE => {
                self.tally.updates += 1;
                item.updates += 1;
                if let Some(timing) = &mut self.timing {
                    timing.update(message);
                }
            }
            MessageClass::STATUS => self.tally.statuses += 1,
            MessageClass::GENERIC => self.tally.generics += 1,
            _ => {}
        }
        let is_satisfied = item.has_image && item.updates >= needed;
        self.tally.satisfied += usize::from(is_satisfied && !was_satisfied);
        if is_first {
            if let Some(fields) = self.asked.post.clone() {
                self.queue_post(number, fields);
            }
            if let Some(text) = self.asked.generic.clone() {
                self.tally.asked += 1;
                self.to_send.push_back(Sending::Generic(number, text));
            }
        }
        if is_final {
            self.closes(number);
        }
        if !self.asked.args.quiet {
            let name = self.asked.items[number].as_str();
            self.lines.message(name, message, &self.dictionary);
        }
    }

    fn closes(&mut self, number: usize) {
        let needed = self.asked.args.updates.unwrap_or(0);
        let Some(item) = self.items.get_mut(number) else { return };
        if !std::mem::replace(&mut item.is_closed, true) && (!item.has_image || item.updates < needed) {
            self.tally.closed += 1;
        }
        item.handle = None;
    }

    fn state(&mut self, number: usize, state: &State<'_>, is_final: bool) {
        if is_final && !self.is_ending {
            self.closes(number);
        }
        if !self.asked.args.quiet && !self.is_ending {
            let name = self.asked.items.get(number).map_or("", String::as_str);
            self.lines.event("state", &[("item", name.into()), ("state", shown::state_json(state))]);
        }
    }

    fn ack(&mut self, ack: &AckHeader<'_>) {
        match ack.nak_code {
            Some(_) => self.tally.naks += 1,
            None => self.tally.acks += 1,
        }
        let number = self.posted.get((ack.ack_id as usize).wrapping_sub(1));
        let name = number.and_then(|number| self.asked.items.get(*number)).map_or("", String::as_str);
        let mut members: Vec<(&str, Json)> = vec![("item", name.into()), ("post_id", ack.ack_id.into())];
        if let Some(code) = ack.nak_code {
            members.push(("nak", code.to_string().into()));
        }
        if let Some(text) = ack.text {
            members.push(("text", shown::lossy(text)));
        }
        self.lines.event("ack", &members);
    }
}

impl Dialing<Consumer> for Watching<'_> {
    fn connection(&mut self, _consumer: &mut Consumer, event: ConnectionEvent<'_>) {
        match event {
            ConnectionEvent::Connected { server, agreed } => self.lines.connected(server, agreed),
            ConnectionEvent::Disconnected { server, reason } => {
                // Not with `--until-closed` after a login: there the disconnect is expected.
                if !(self.asked.args.until_closed && self.was_ready) {
                    log::note(format_args!("no connection to {server}: {reason}"));
                }
                self.lines.event("disconnected", &[("server", server.into()), ("reason", reason.into())]);
            }
            ConnectionEvent::Note(note) => log::note(note),
            _ => {}
        }
    }

    fn send(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox) {
        if let Err(cause) = self.send_due(consumer, out) {
            self.failure.get_or_insert(cause);
        }
    }
}

impl ConsumerApplication for Watching<'_> {
    fn event(&mut self, consumer: &mut Consumer, _out: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        match event {
            ConsumerEvent::TimedOut(wait) => {
                log::note(format_args!("the provider does not answer: {wait:?}"));
            }
            ConsumerEvent::Login { state, .. } => {
                self.lines.event("login", &[("state", shown::state_json(&state))]);
            }
            ConsumerEvent::Ended { state } if !self.is_ending => self.refusal = Some(state.to_string()),
            ConsumerEvent::Directory(_) => {
                let names = consumer.directory().services().filter_map(|service| service.name());
                let names: Vec<Json> = names.map(Into::into).collect();
                self.lines.event("directory", &[("services", names.into())]);
            }
            ConsumerEvent::Dictionary(dictionary) => {
                self.dictionary = Arc::clone(dictionary);
                let members =
                    [("fields", dictionary.len().into()), ("tables", dictionary.enumerations().len().into())];
                self.lines.event("dictionary", &members);
            }
            ConsumerEvent::DictionaryFailed(failed) => {
                log::note(format_args!("there is no dictionary from the provider: {failed}"));
            }
            ConsumerEvent::Ready => {
                self.was_ready = true;
                self.lines.event("ready", &[]);
            }
            ConsumerEvent::Message { closure, message, is_final, .. } => {
                self.message(closure as usize, message, is_final && !self.is_ending);
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                self.state(closure as usize, &state, is_final);
            }
            ConsumerEvent::Ack { ack, .. } => self.ack(&ack),
            ConsumerEvent::LoginGeneric(message) => {
                if let Ok(Header::Generic(_)) = message.header() {
                    self.lines.message("", message, &self.dictionary);
                }
            }
            ConsumerEvent::RoundTrip(_) => {}
            // Only the first: the total is in the `end` event.
            ConsumerEvent::Malformed(fault) if consumer.counters().malformed == 1 => {
                log::note(format_args!("a message cannot be read: {fault}"));
            }
            _ => {}
        }
    }
}
