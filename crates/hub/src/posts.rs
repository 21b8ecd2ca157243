//! Posts and generic messages of clients to the sources.

use std::net::IpAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tapeline_omm::domain::post::Nak;
use tapeline_omm::role::Outbox;
use tapeline_omm::role::provider::{Provider, Receipt, StreamHandle};
use tapeline_omm::rwf::{DataType, Domain, Header, Key, MessageView, NakCode, PostHeader, PostUserInfo};
use tapeline_plant::cache::ItemKey;
use tapeline_plant::demand::{Demand, ItemName, Ticket};
use tapeline_plant::sources::Posts;

use crate::SessionId;
use crate::demands::Full;
use crate::login::item_of;
use crate::parts;
use crate::request_handler::{RequestHandler, copy};
use crate::shared_state::{item_name, name_of};
use crate::status_texts::{NO_POSTS, NO_SERVICE, POST_OF_OTHER_ITEM, POSTS_REFUSED, SOURCE_BUSY};

#[derive(Debug)]
pub(crate) struct Receipts {
    waiting: HashMap<u64, (SessionId, Receipt), RandomState>,
    most: usize,
}

impl Receipts {
    /// Creates an empty set for `most` receipts.
    pub(crate) fn new(most: usize) -> Self {
        Self { waiting: HashMap::default(), most }
    }

    /// Returns `true` if the set is full.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.most
    }

    /// Adds an outstanding receipt.
    pub(crate) fn wait(&mut self, ticket: Ticket, session: SessionId, receipt: Receipt) {
        self.waiting.insert(ticket.0, (session, receipt));
    }

    /// Removes and returns a receipt that has come.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<(SessionId, Receipt)> {
        self.waiting.remove(&ticket.0)
    }

    pub(crate) fn forget(&mut self, session: SessionId) {
        self.waiting.retain(|_, (of, _)| *of != session);
    }

    /// Returns the number of outstanding receipts.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

type Refused = Nak<'static>;

const fn refuse(code: NakCode, text: &'static str) -> Refused {
    Nak { code, text: text.as_bytes() }
}

const BUSY: Refused = refuse(NakCode::NO_RESOURCES, SOURCE_BUSY);

impl RequestHandler<'_> {
    /// Handles a post: passes it to the source of its service, or refuses it.
    pub(crate) fn post(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: Option<StreamHandle>,
        post: (&PostHeader<'_>, &MessageView<'_>),
        receipt: Option<Receipt>,
    ) {
        match self.pass_post_on(provider, stream, post, receipt) {
            Ok(is_whole) => self.session_state.counters.posts += u64::from(is_whole),
            Err(why) => {
                self.session_state.counters.declined += 1;
                if let Some(receipt) = receipt {
                    let _ = provider.ack(out, receipt, Some(why));
                }
            }
        }
    }

    /// Passes a post on. Returns `false` for a part of an incomplete post.
    fn pass_post_on(
        &mut self,
        provider: &Provider,
        stream: Option<StreamHandle>,
        (header, message): (&PostHeader<'_>, &MessageView<'_>),
        receipt: Option<Receipt>,
    ) -> Result<bool, Refused> {
        let filled = self.filled(header, message);
        if let Some(ticket) = stream.and_then(|stream| self.shared.private.ticket(self.id, stream)) {
            let item = stream.and_then(|stream| item_of(provider, stream));
            if !item.as_ref().map_or(!self.is_ruled(), |item| self.may_post(item)) {
                return Err(refuse(NakCode::ACCESS_DENIED, NO_POSTS));
            }
            let is_meant = |item: &ItemKey<'_>| {
                item_of_message(message).is_none_or(|inner| inner == (item.domain, item.name))
            };
            if self.is_ruled() && !item.as_ref().is_some_and(is_meant) {
                return Err(refuse(NakCode::INVALID_CONTENT, POST_OF_OTHER_ITEM));
            }
            let demand = Demand::Private { ticket, message: filled };
            return self.shared.demands.message(demand).map(|()| true).map_err(|Full| BUSY);
        }
        let mut parts = self.gather(stream, header, filled)?.into_iter();
        let Some(first) = parts.next() else { return Ok(false) };
        let (service, item) = self.target_of(stream, &first)?;
        let Some(known) = self.shared.services.get(service) else {
            return Err(refuse(NakCode::SOURCE_UNKNOWN, NO_SERVICE));
        };
        if known.posts == Posts::Refuse {
            return Err(refuse(NakCode::DENIED_BY_SRC, POSTS_REFUSED));
        }
        let domain = item.as_ref().map_or(header.domain, |item| item.domain);
        let name = item.as_ref().map_or(&b""[..], |item| item.name.as_bytes());
        if !self.may_post(&ItemKey { service, domain, name }) {
            return Err(refuse(NakCode::ACCESS_DENIED, NO_POSTS));
        }
        if receipt.is_some() && self.shared.receipts.is_full() {
            return Err(refuse(NakCode::NO_RESOURCES, "Too many posts wait for their receipts"));
        }
        let ticket = receipt.map(|_| self.shared.demands.ticket());
        let demand = Demand::Post { ticket, service, item, message: first, more: parts.collect() };
        self.shared.demands.message(demand).map_err(|Full| BUSY)?;
        if let (Some(ticket), Some(receipt)) = (ticket, receipt) {
            self.shared.receipts.wait(ticket, self.id, receipt);
        }
        Ok(true)
    }

    /// Stores a part of a post until the last has come; then returns all parts in order.
    fn gather(
        &mut self,
        stream: Option<StreamHandle>,
        header: &PostHeader<'_>,
        part: Box<[u8]>,
    ) -> Result<Vec<Box<[u8]>>, Refused> {
        let (parts, demands) = (&mut self.session_state.parts, &mut self.shared.demands);
        let kept = parts.bytes();
        let most = (self.shared.settings.demand_bytes / SHARE).min(kept + demands.room());
        let taken = parts.take(self.now, stream, header, part, most);
        demands.keep(kept, parts.bytes());
        let missing = refuse(NakCode::INVALID_CONTENT, "A part of this post is missing, or came too late");
        let too_much = refuse(NakCode::NO_RESOURCES, "Too much of posts in parts is waited for");
        taken.map_err(|why| if why == parts::Refused::TooMuch { too_much } else { missing })
    }

    /// Returns the target of a post, from its only or its first part.
    fn target_of(
        &self,
        stream: Option<StreamHandle>,
        first: &[u8],
    ) -> Result<(u16, Option<ItemName>), Refused> {
        let unreadable = refuse(NakCode::INVALID_CONTENT, "The post cannot be read");
        let message = MessageView::parse(first).map_err(|_| unreadable)?;
        match message.header() {
            Ok(Header::Post(header)) => self.target(stream, &header, &message),
            _ => Err(unreadable),
        }
    }

    /// Returns the target of a post: the item of its stream, otherwise the item in its key, or in the key of the message in it.
    fn target(
        &self,
        stream: Option<StreamHandle>,
        header: &PostHeader<'_>,
        message: &MessageView<'_>,
    ) -> Result<(u16, Option<ItemName>), Refused> {
        if let Some(stream) = stream {
            let open = self.shared.interest.of_stream(self.id, stream);
            let (item, _) = open.ok_or(refuse(NakCode::NOT_OPEN, "This stream has no item"))?;
            return Ok((item.service, name_of(item)));
        }
        let key = header.key.unwrap_or_default();
        let text = "A post on the login's stream names its service in its key";
        let service = key.service_id.ok_or(refuse(NakCode::SOURCE_UNKNOWN, text))?;
        if key.name.is_none()
            && let Some((domain, name)) = item_of_message(message)
        {
            // Its service is checked when the post is accepted.
            return Ok((service, item_name(service, domain, name)));
        }
        Ok((service, key.name.and_then(|name| item_name(service, header.domain, name))))
    }

    /// Returns the post with its publisher filled in: the known address of the client, not the one in the message. A client without a user id gets
    /// the number of its session.
    fn filled(&self, header: &PostHeader<'_>, message: &MessageView<'_>) -> Box<[u8]> {
        let said = header.post_user_info;
        // Sessions are counted from 1; after 2^32 of them the numbers repeat.
        let own = self.session_state.serial as u32;
        let address = self.session_state.pass.peer.address.map(|address| address.ip().to_canonical());
        let post_user_info = PostUserInfo {
            address: match address {
                Some(IpAddr::V4(address)) => address.to_bits(),
                // The field has the size of an IPv4 address.
                Some(IpAddr::V6(_)) => 0,
                None => said.address,
            },
            user_id: if said.user_id == 0 { own } else { said.user_id },
        };
        let header = PostHeader { post_user_info, stream_id: 0, ..*header };
        let mut room = vec![0; message.header_len() + MORE + message.payload().len()];
        // Cannot fail: its members were read from a message, and none has grown.
        let len = header.encode_with(&mut room, |room| copy(message.payload(), room)).unwrap_or(0);
        room.truncate(len);
        room.into()
    }

    /// Handles a generic message on the stream of an item, or on a private stream.
    pub(crate) fn generic(&mut self, stream: Option<StreamHandle>, message: &MessageView<'_>) {
        let taken = stream.and_then(|stream| {
            let message = message.to_bytes();
            let demand = match self.shared.private.ticket(self.id, stream) {
                Some(ticket) => Demand::Private { ticket, message },
                None => {
                    let (item, _) = self.shared.interest.of_stream(self.id, stream)?;
                    let item = if item.is_of_feeds() { None } else { name_of(item) }?;
                    Demand::Generic { item, message }
                }
            };
            self.shared.demands.message(demand).ok()
        });
        let counters = &mut self.session_state.counters;
        *(if taken.is_some() { &mut counters.generic } else { &mut counters.declined }) += 1;
    }
}

/// Returns the item in the key of the message in a post, if there is one.
fn item_of_message<'a>(post: &MessageView<'a>) -> Option<(Domain, &'a [u8])> {
    if post.container() != DataType::MSG {
        return None;
    }
    let inner = MessageView::parse(post.payload()).ok()?;
    let Key { name, .. } = inner.key().ok()??;
    Some((inner.domain(), name?))
}

/// The share of one session's incomplete posts in the bytes queued for the sources: one part in this number.
const SHARE: usize = 16;
/// Maximum growth of a header when it is encoded again: lengths that had a shorter form.
const MORE: usize = 64;
