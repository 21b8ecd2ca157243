//! Posts that wait for their receipt, and posts that become messages of their items.

use std::collections::{HashMap, VecDeque};

use tapeline_measure::Nanos;
use tapeline_omm::domain::post::{Nak, ack as receipt_of};
use tapeline_omm::rwf::{
    AckHeader, DataType, Domain, Header, MessageView, NakCode, PostHeader, UpdateHeader, UpdateType, flags,
};

use super::demanded::Post;
use super::passing::{About, Passed, is_suspect};
use super::{Desk, LinkId, Sources};
use crate::demand::{Answer, Ticket};
use crate::publish::Refused;
use crate::{ItemId, Publish, Sequencer, Time};

/// Posts without a receipt, by the id that the plant has given them.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    posts: HashMap<u32, Posted>,
    /// In the order of their times; some may have been answered.
    order: VecDeque<(Nanos, u32)>,
    last: u32,
}

/// What the receipt of a post is made from.
#[derive(Debug, Clone, Copy)]
struct Posted {
    ticket: Ticket,
    /// Whom it went to.
    link: LinkId,
    id: u32,
    sequence: Option<u32>,
    domain: Domain,
}

impl Awaited {
    pub(super) fn len(&self) -> usize {
        self.posts.len()
    }

    /// When the next one is late.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.order.front().map(|(due, _)| *due)
    }

    /// Awaits the receipt of a post from a source: the id that it is to be sent with.
    pub(super) fn add(&mut self, ticket: Ticket, link: LinkId, header: &PostHeader<'_>, due: Nanos) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.posts.contains_key(&self.last) {
                break;
            }
        }
        let posted = Posted {
            ticket,
            link,
            id: header.post_id.unwrap_or(0),
            sequence: header.sequence,
            domain: header.domain,
        };
        self.posts.insert(self.last, posted);
        self.order.push_back((due, self.last));
        self.last
    }

    /// It did not go out.
    pub(super) fn forget(&mut self, id: u32) {
        self.take(id);
    }

    fn take(&mut self, id: u32) -> Option<Posted> {
        let posted = self.posts.remove(&id);
        while let Some((_, id)) = self.order.front()
            && !self.posts.contains_key(id)
        {
            self.order.pop_front();
        }
        posted
    }
}

/// When a post that goes out now is late.
pub(super) fn due(now: Nanos, timeout_ms: u64) -> Nanos {
    Nanos(now.0.saturating_add(timeout_ms.saturating_mul(1_000_000)))
}

impl Desk {
    /// A source has answered a post. Posts to others are not its to answer, though it can guess their ids.
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

    /// A post is not taken.
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

    /// Posts whose time is over.
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

impl Sources {
    /// Makes of a post what it says of its item.
    pub(super) fn reflect<P: Publish>(
        &mut self,
        post: &Post<'_>,
        to: &mut Sequencer<P>,
        time: &impl Time,
    ) -> Result<(), Refused> {
        let Post { place: service, ticket, item, header, view } = *post;
        let desk = &mut self.desk;
        let Some(name) = item else {
            desk.refuse_post(ticket, header, NakCode::SYMBOL_UNKNOWN, "The post names no item");
            return Ok(());
        };
        if header.part.is_some() || !header.flags.has(flags::post::POST_COMPLETE) {
            let text = "Posts in several parts are not taken";
            desk.refuse_post(ticket, header, NakCode::INVALID_CONTENT, text);
            return Ok(());
        }
        let passed = match reflected(header, name.domain, view.payload()) {
            Ok(passed) => passed.posted_by(header.post_user_info),
            Err(text) => {
                desk.refuse_post(ticket, header, NakCode::INVALID_CONTENT, text);
                return Ok(());
            }
        };
        let Some(known) = desk.services.get(service) else { return Ok(()) };
        let mut number = to.items().find(known.id(), &name.name).unwrap_or_default();
        if number == ItemId(0) && matches!(passed.header, Header::Refresh(_)) {
            number = desk.number(service, (name.domain, name.name.as_bytes()), to, time)?;
        }
        if let Some(wanted) = desk.requests.number(name) {
            desk.has_number(wanted, number);
        }
        if number == ItemId(0) {
            let text = "There is no such item, and the post brings no image of it";
            desk.refuse_post(ticket, header, NakCode::SYMBOL_UNKNOWN, text);
            return Ok(());
        }
        let is_suspect = is_suspect(&passed.header, false);
        let about = About { service, item: number, name: &name.name, is_suspect };
        if !desk.pass(&about, &passed, to, time)? {
            desk.refuse_post(ticket, header, NakCode::NO_RESOURCES, "The post is too long for the plant");
            return Ok(());
        }
        desk.counters.posts += 1;
        if let Some(ticket) = ticket {
            let header = PostHeader { stream_id: 0, ..*header };
            desk.receipt(ticket, receipt_of(&header, None));
        }
        Ok(())
    }
}

/// The message that a post holds; of other data an update is made.
fn reflected<'a>(
    header: &PostHeader<'a>,
    domain: Domain,
    payload: &'a [u8],
) -> Result<Passed<'a>, &'static str> {
    if header.container != DataType::MSG {
        if header.container == DataType::NO_DATA {
            return Err("The post holds nothing");
        }
        let update = UpdateHeader::new(domain, 0, UpdateType::UNSPECIFIED, header.container);
        return Ok(Passed { header: update.into(), payload, header_len: 16 });
    }
    let read = MessageView::parse(payload).and_then(|message| Ok((message, message.header()?)));
    let Ok((message, header)) = read else { return Err("The message in the post cannot be read") };
    if !matches!(header, Header::Refresh(_) | Header::Update(_) | Header::Status(_)) {
        return Err("The message in the post is no refresh, update or status");
    }
    if message.domain() != domain {
        return Err("The message in the post is of another domain than its item");
    }
    Ok(Passed::new(header, &message))
}
