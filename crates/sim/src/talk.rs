//! A client's messages to sources, and the replies: posts with their receipts, and private streams.

use std::collections::{BTreeMap, BTreeSet};

use tapeline_omm::role::Sent;
use tapeline_omm::role::consumer::{Consumer, Handle, ItemRequest, ServiceName, Target};
use tapeline_omm::rwf::{
    DataType, Domain, Flags, GenericHeader, Header, Key, MessageClass, MessageView, PostHeader, PostUserInfo,
    flags,
};
use tapeline_omm::{FieldListEncoder, Real, fid};

use crate::chance::Chance;
use crate::end::Out;
use crate::image::{Fields, fold};
use crate::invariants::{Wrong, broken};
use crate::plan::{ASKED, PROVIDED, UNASKED, label, provided_id};
use crate::source::number_of;

/// The domain of private streams.
pub(crate) const OWN_DOMAIN: Domain = Domain(200);
/// The range of numbers on a private stream: they start at the number in the stream's name times this.
pub(crate) const NUMBERS: u64 = 1 << 24;
/// The bit that distinguishes a private stream's closure from an item's.
const OWN: u64 = 1 << 40;
/// Limit of private streams of a client.
const MOST_OWN: usize = 3;

/// A client's posts and private streams, and the receipts that it waits for.
#[derive(Debug, Default)]
pub(crate) struct Talk {
    client: u64,
    is_text: bool,
    /// Number of posts so far; each post has an id that no other client uses.
    posts: u64,
    /// Posts on this connection without a receipt so far.
    awaited: BTreeSet<u32>,
    own: BTreeMap<u64, Own>,
    names: u64,
    /// Number of receipts, and of messages on private streams.
    pub(crate) receipts: u64,
    pub(crate) heard: u64,
}

#[derive(Debug)]
struct Own {
    handle: Handle,
    /// The number in its name.
    number: u64,
    /// The last number received on it.
    last: Option<u64>,
}

impl Talk {
    pub(crate) fn new(client: usize, is_text: bool) -> Self {
        Self { client: client as u64, is_text, ..Self::default() }
    }

    /// The connection changed or ended: messages of the last one will not be answered.
    pub(crate) fn forget(&mut self) {
        self.awaited.clear();
        self.own.values_mut().for_each(|own| own.last = None);
    }

    /// Another client takes this one's place and continues its numbers.
    pub(crate) fn begin_again(&mut self) {
        self.awaited.clear();
        self.own.clear();
    }

    /// Sends a message, or opens or closes a private stream, at random.
    pub(crate) fn speak(
        &mut self,
        consumer: &mut Consumer,
        out: &mut Out<'_>,
        chance: &mut Chance,
        (items, names): (&[(String, Handle)], &[String]),
    ) {
        let parts = if chance.one_in(3) { 2 + chance.below(2) as u16 } else { 1 };
        match chance.below(6) {
            0 if names.iter().any(|name| is_asked(name)) && self.own.len() < MOST_OWN => {
                self.names += 1;
                let number = self.client * 1_000 + self.names;
                let name = format!("T{number}");
                let request = ItemRequest {
                    domain: OWN_DOMAIN,
                    is_private: true,
                    qos: None,
                    closure: OWN | self.names,
                    ..ItemRequest::new(ServiceName::Name(PROVIDED[ASKED]), name.as_bytes())
                };
                if let Ok(handle) = consumer.open(&request) {
                    self.own.insert(OWN | self.names, Own { handle, number, last: None });
                }
            }
            1 => {
                let closure = self.own.keys().nth(chance.index(self.own.len())).copied();
                if let Some(own) = closure.and_then(|closure| self.own.remove(&closure)) {
                    consumer.close(own.handle);
                }
            }
            2 if !items.is_empty() => {
                let (name, handle) = &items[chance.index(items.len())];
                let item = crate::plan::of_label(name).1;
                let generic = GenericHeader::new(Domain::MARKET_PRICE, 0, DataType::OPAQUE);
                // No receipt: if the buffer is full, the message is not sent.
                let _ = consumer.generic(out, Target::Item(*handle), &generic, item.as_bytes());
            }
            3 if !items.is_empty() => {
                let (_, handle) = items[chance.index(items.len())];
                self.post(consumer, out, Target::Item(handle), None, parts);
            }
            _ => {
                let service = [UNASKED, ASKED][chance.index(2)];
                let of_service = label(provided_id(service), "");
                // JSON identifies services by name: an unknown service is an error in the text, not a post.
                if self.is_text && !names.iter().any(|name| name.starts_with(&of_service)) {
                    return;
                }
                let name = format!("P{}", chance.index(crate::plan::ITEMS + 1));
                let key = Key::item(provided_id(service), name.as_bytes());
                self.post(consumer, out, Target::Login, Some(key), parts);
            }
        }
    }

    /// Posts a message in `parts` parts.
    fn post(
        &mut self,
        consumer: &mut Consumer,
        out: &mut Out<'_>,
        to: Target,
        key: Option<Key<'_>>,
        parts: u16,
    ) {
        let id = self.client as u32 * 1_000_000 + self.posts as u32 + 1;
        let user = PostUserInfo { address: 0, user_id: self.client as u32 + 1 };
        let mut payload = [0; 64];
        let mut list = FieldListEncoder::new(&mut payload).expect("there is room");
        list.real(fid::ASK, Real::integer(id.into())).expect("there is room");
        let len = list.finish();
        for part in 0..parts {
            let is_last = part + 1 == parts;
            let last = if is_last { flags::post::POST_COMPLETE } else { Flags::NONE };
            let header = PostHeader {
                flags: flags::post::ACK | last,
                post_id: Some(id),
                part: (parts > 1).then_some(part),
                key,
                ..PostHeader::new(Domain::MARKET_PRICE, 0, user, DataType::FIELD_LIST)
            };
            if consumer.post(out, to, &header, &payload[..len]) != Ok(Sent::Queued) {
                // If a part was not sent, the later parts are not sent either.
                return;
            }
            self.posts += u64::from(part == 0);
            if is_last {
                self.awaited.insert(id);
            }
        }
    }

    /// Checks a received message: a receipt must belong to a post of this client and be its only one.
    pub(crate) fn receipt(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        let Ok(message) = MessageView::parse(bytes) else { return Ok(()) };
        let Ok(Header::Ack(ack)) = message.header() else { return Ok(()) };
        self.receipts += 1;
        if !self.awaited.remove(&ack.ack_id) {
            broken!(Posts, "a receipt of post {}, which nobody waits for: {ack:?}", ack.ack_id);
        }
        Ok(())
    }

    /// Checks that a message on a private stream is the source's next one; `false` if the stream is an item's.
    pub(crate) fn own(&mut self, closure: u64, bytes: &[u8], is_final: bool) -> Result<bool, Wrong> {
        if closure & OWN == 0 {
            return Ok(false);
        }
        self.heard += 1;
        let Some(own) = self.own.get_mut(&closure) else { return Ok(true) };
        let number = own.number;
        let Ok(message) = MessageView::parse(bytes) else { broken!(Own, "stream T{number}: not a message") };
        let mut fields = Fields::new();
        if fold(&mut fields, &message).is_err() {
            broken!(Own, "stream T{number}: fields that cannot be read");
        }
        let said = number_of(&fields);
        let is_next = match (message.class(), said, own.last) {
            (MessageClass::STATUS, ..) => true,
            (MessageClass::REFRESH, Some(said), last) => {
                said / NUMBERS == number && last.is_none_or(|last| said >= last)
            }
            (MessageClass::UPDATE, Some(said), Some(last)) => said == last + 1,
            _ => false,
        };
        if !is_next {
            broken!(Own, "stream T{number}: {} {said:?} behind {:?}", message.class(), own.last);
        }
        own.last = said.or(own.last);
        if is_final {
            self.own.remove(&closure);
        }
        Ok(true)
    }

    /// Takes the state of a private stream. Returns `false` if the stream is an item's.
    pub(crate) fn own_state(&mut self, closure: u64, is_final: bool) -> bool {
        if is_final {
            self.own.remove(&closure);
        }
        closure & OWN != 0
    }

    /// Checks at the end, when everything is quiet.
    ///
    /// # Errors
    /// A receipt is missing.
    pub(crate) fn check_quiet(&self) -> Result<(), Wrong> {
        if !self.awaited.is_empty() {
            broken!(Posts, "the receipts of {:?} never came", self.awaited);
        }
        Ok(())
    }
}

fn is_asked(name: &str) -> bool {
    name.starts_with(&label(provided_id(ASKED), ""))
}
