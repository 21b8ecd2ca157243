//! Posts with outstanding receipts, and posts that become messages of their items.

use std::collections::{HashMap, VecDeque};

use tapeline_measure::Nanos;
use tapeline_omm::domain::post::{Nak, ack as receipt_of};
use tapeline_omm::rwf::{
    AckHeader, DataType, Domain, Header, Key, MessageView, NakCode, PostHeader, UpdateHeader, UpdateType,
    flags,
};

use super::passing::{About, Passed, is_suspect};
use super::{Desk, LinkId};
use crate::demand::{Answer, ItemName, Ticket};
use crate::publish::Refused;
use crate::{ItemId, Publish, Sequencer, Time};

/// Posts with outstanding receipts, by the id that the plant has assigned.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    posts: HashMap<u32, Posted>,
    /// In the order of their time-outs; some may have been answered.
    order: VecDeque<(Nanos, u32)>,
    last: u32,
}

/// The data for the receipt of a post.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posted {
    ticket: Ticket,
    /// The source of the post's item.
    link: LinkId,
    id: u32,
    sequence: Option<u32>,
    domain: Domain,
}

impl Awaited {
    pub(super) fn len(&self) -> usize {
        self.posts.len()
    }

    /// Returns the time-out of the next post.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.order.front().map(|(due, _)| *due)
    }

    /// Adds a post to a source; returns the id to send it with.
    pub(super) fn add(&mut self, ticket: Ticket, link: LinkId, header: &PostHeader<'_>, due: Nanos) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.posts.contains_key(&self.last) {
                break;
            }
        }
        let (id, sequence, domain) = (header.post_id.unwrap_or(0), header.sequence, header.domain);
        self.posts.insert(self.last, Posted { ticket, link, id, sequence, domain });
        self.order.push_back((due, self.last));
        self.last
    }

    /// Removes a post that was answered, or was not sent.
    pub(super) fn take(&mut self, id: u32) -> Option<Posted> {
        let posted = self.posts.remove(&id);
        while let Some((_, id)) = self.order.front()
            && !self.posts.contains_key(id)
        {
            self.order.pop_front();
        }
        posted
    }
}

/// Returns the time-out of a post that is sent now.
pub(super) fn due(now: Nanos, timeout_ms: u64) -> Nanos {
    Nanos(now.0.saturating_add(timeout_ms.saturating_mul(1_000_000)))
}

impl Desk {
    /// Handles a source's answer to a post. A source may answer only its own posts, although it can guess the ids of others.
    pub(super) fn acknowledged(&mut self, link: LinkId, ack: &AckHeader<'_>) {
        if self.awaited.posts.get(&ack.ack_id).is_some_and(|posted| posted.link == link) {
            self.answered(ack);
        }
    }

    fn answered(&mut self, ack: &AckHeader<'_>) {
        let Some(posted) = self.awaited.take(ack.ack_id) else { return };
        if ack.nak_code.is_some_and(|code| code != NakCode::NONE) {
            self.counters.posts_refused += 1;
        }
        let receipt = AckHeader {
            nak_code: ack.nak_code,
            text: ack.text,
            sequence: posted.sequence,
            ..AckHeader::new(posted.domain, 0, posted.id)
        };
        self.receipt(posted.ticket, receipt);
    }

    fn receipt(&mut self, ticket: Ticket, receipt: AckHeader<'_>) {
        let text = receipt.text.filter(|_| self.has_bytes_to_answer());
        let receipt = AckHeader { text, ..receipt };
        let header_len = 64 + receipt.text.map_or(0, <[u8]>::len);
        let passed = Passed { header: receipt.into(), payload: &[], header_len };
        self.answer(Answer::Ack { ticket, message: passed.bytes() });
    }

    /// Refuses a post.
    pub(super) fn refuse_post(
        &mut self,
        ticket: Option<Ticket>,
        header: &PostHeader<'_>,
        code: NakCode,
        text: &str,
    ) {
        self.counters.posts_refused += 1;
        if let Some(ticket) = ticket {
            let header = PostHeader { stream_id: 0, ..*header };
            self.receipt(ticket, receipt_of(&header, Some(Nak { code, text: text.as_bytes() })));
        }
    }

    /// Refuses posts whose time is over.
    pub(super) fn refuse_late_posts(&mut self) {
        while self.awaited.due().is_some_and(|due| due <= self.now) {
            let Some((_, id)) = self.awaited.order.pop_front() else { return };
            let ack = AckHeader {
                nak_code: Some(NakCode::NO_RESPONSE),
                text: Some(b"The source has not answered in time"),
                ..AckHeader::new(Domain::MARKET_PRICE, 0, id)
            };
            self.answered(&ack);
        }
    }
}

/// A post of a client: a message, or its parts in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Post<'a> {
    /// Index of its service.
    pub(super) place: usize,
    /// Number of its service.
    pub(super) service: u16,
    pub(super) ticket: Option<Ticket>,
    pub(super) item: Option<&'a ItemName>,
    pub(super) parts: &'a [PostPart<'a>],
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PostPart<'a> {
    pub(super) header: PostHeader<'a>,
    view: MessageView<'a>,
}

impl<'a> PostPart<'a> {
    /// Decodes a post; `None` for any other message.
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let view = MessageView::parse(message).ok()?;
        let Ok(Header::Post(header)) = view.header() else { return None };
        Some(Self { header, view })
    }

    /// Returns `true` if this is the last part.
    pub(super) fn is_last(&self) -> bool {
        self.header.flags.has(flags::post::POST_COMPLETE)
    }

    /// Returns its header for the source, with the key of this item in place of the key in a post on a stream.
    pub(super) fn sent(&self, item: Option<&'a ItemName>, theirs: u16) -> PostHeader<'a> {
        let mut sent = self.header;
        if let Some(item) = item {
            let name = Some(item.name.as_bytes());
            sent.key = Some(Key { service_id: Some(theirs), name, ..sent.key.unwrap_or_default() });
            sent.domain = item.domain;
        } else {
            sent.key = sent.key.map(|key| Key { service_id: key.service_id.map(|_| theirs), ..key });
        }
        sent
    }

    /// Returns its contents; a message of an item gets the source's number of the service.
    pub(super) fn posted(&self, theirs: u16) -> Box<[u8]> {
        match self.inner() {
            Some(Ok((inner, header))) => Passed::new(header, &inner).of_service(theirs).bytes(),
            _ => self.view.payload().into(),
        }
    }

    /// Returns the message in the post, if it contains one.
    fn inner(&self) -> Option<Result<(MessageView<'a>, Header<'a>), tapeline_omm::Malformed>> {
        let read = || MessageView::parse(self.view.payload()).and_then(|inner| Ok((inner, inner.header()?)));
        (self.view.container() == DataType::MSG).then(read)
    }

    /// Returns the message for the item; other data becomes an update.
    fn reflected(&self, domain: Domain) -> Result<Passed<'a>, &'static str> {
        let passed = match self.inner() {
            Some(Ok((message, header))) => Passed::new(header, &message),
            Some(Err(_)) => return Err(UNREADABLE),
            None if self.header.container == DataType::NO_DATA => return Err("The post holds nothing"),
            None => {
                let update = UpdateHeader::new(domain, 0, UpdateType::UNSPECIFIED, self.header.container);
                Passed { header: update.into(), payload: self.view.payload(), header_len: 16 }
            }
        };
        Ok(passed.posted_by(self.header.post_user_info))
    }
}

/// Returns `true` if a message contains permission data. An update or status may not contain even empty permission data, which would clear that of
/// the item.
fn has_codes(header: &Header<'_>) -> bool {
    match header {
        Header::Refresh(refresh) => refresh.permission_data.is_some_and(|codes| !codes.is_empty()),
        Header::Update(update) => update.permission_data.is_some(),
        Header::Status(status) => status.permission_data.is_some(),
        _ => false,
    }
}

const UNREADABLE: &str = "The message in the post cannot be read";

impl Post<'_> {
    /// Checks the post: access was granted for this item, so a message in it must not belong to another.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let last = self.parts.len().saturating_sub(1);
        if self.parts.iter().enumerate().any(|(number, part)| part.is_last() != (number == last)) {
            return Err("Parts of the post are missing");
        }
        if self.parts.windows(2).any(|pair| pair[0].header.domain != pair[1].header.domain) {
            return Err("Parts of the post are of different domains");
        }
        self.parts.iter().try_for_each(|part| self.check_inner(part))
    }

    fn check_inner(&self, part: &PostPart<'_>) -> Result<(), &'static str> {
        let (message, header) = match part.inner() {
            None => return Ok(()),
            Some(Err(_)) => return Err(UNREADABLE),
            Some(Ok(inner)) => inner,
        };
        if !matches!(header, Header::Refresh(_) | Header::Update(_) | Header::Status(_)) {
            return Err("The message in the post is no refresh, update or status");
        }
        if message.domain() != self.item.map_or(part.header.domain, |item| item.domain) {
            return Err("The message in the post is of another domain than the post");
        }
        let key = message.key().map_err(|_| UNREADABLE)?.unwrap_or_default();
        if key.service_id.is_some_and(|service| service != self.service) {
            return Err("The message in the post is of another service than the post");
        }
        let item = self.item.map(|item| item.name.as_bytes());
        if key.name.is_some_and(|name| Some(name) != item) {
            return Err("The message in the post is of another item than the post");
        }
        Ok(())
    }
}

pub(super) type PostRefusal = (NakCode, &'static str);

impl Desk {
    /// Turns a post into messages of its item.
    pub(super) fn reflect<P: Publish>(
        &mut self,
        post: &Post<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<Result<(), PostRefusal>, Refused> {
        let (Some(name), Some(last)) = (post.item, post.parts.last()) else {
            return Ok(Err((NakCode::SYMBOL_UNKNOWN, "The post names no item")));
        };
        let messages: Result<Vec<_>, _> = post.parts.iter().map(|part| part.reflected(name.domain)).collect();
        let messages = match messages {
            Ok(messages) => messages,
            Err(text) => return Ok(Err((NakCode::INVALID_CONTENT, text))),
        };
        let Some(known) = self.services.get(post.place) else { return Ok(Ok(())) };
        let mut number = to.items().find(known.id(), &name.name).unwrap_or_default();
        if let Err(refusal) = self.may_reflect(known.is_of_feeds(), name.domain, number, &messages) {
            return Ok(Err(refusal));
        }
        let begins = messages.first().is_some_and(|passed| matches!(passed.header, Header::Refresh(_)));
        if number == ItemId(0) && begins {
            number = self.number(post.place, (name.domain, name.name.as_bytes()), to, time)?;
        }
        if let Some(wanted) = self.requests.number(name) {
            self.has_number(wanted, number);
        }
        if number == ItemId(0) {
            let text = "There is no such item, and the post brings no image of it";
            return Ok(Err((NakCode::SYMBOL_UNKNOWN, text)));
        }
        for passed in &messages {
            let is_suspect = is_suspect(&passed.header, false);
            let about = About { service: post.place, item: number, name: &name.name, is_suspect };
            if !self.pass(&about, passed, to, time)? {
                return Ok(Err((NakCode::NO_RESOURCES, "The post is too long for the plant")));
            }
        }
        self.counters.posts += 1;
        if let Some(ticket) = post.ticket {
            let header = PostHeader { stream_id: 0, ..last.header };
            self.receipt(ticket, receipt_of(&header, None));
        }
        Ok(Ok(()))
    }

    /// Checks that messages may be posted to an item, and accepts their fields. `number` is 0 without an image of the item.
    fn may_reflect(
        &mut self,
        is_of_feeds: bool,
        domain: Domain,
        number: ItemId,
        messages: &[Passed<'_>],
    ) -> Result<(), PostRefusal> {
        let has_image = messages.iter().any(|passed| matches!(passed.header, Header::Refresh(_)));
        let are_updates = messages.iter().all(|passed| matches!(passed.header, Header::Update(_)));
        // A feed sends no image again: data that could not be folded into one would damage it for all clients until the feed's next session, and an
        // item in a domain without a feed would exist forever.
        let text = if is_of_feeds && !are_updates {
            "Images and states of this item are its feed's: updates alone can be posted"
        } else if is_of_feeds && domain != Domain::MARKET_PRICE {
            "Of the feeds' items market prices alone can be posted"
        } else if messages.iter().any(|passed| has_codes(&passed.header)) {
            "The permission data of an item is its source's: a post brings none"
        } else if has_image && self.numbers.has_codes(number) {
            "A posted image of this item would be one without its permission data: post updates"
        } else if is_of_feeds && number != ItemId(0) {
            let taken = self.posted.take(number, messages, &self.settings.dictionary);
            return taken.map_err(|refused| (refused.code(), refused.text()));
        } else {
            return Ok(());
        };
        Err((NakCode::DENIED_BY_SRC, text))
    }
}
