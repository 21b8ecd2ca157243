//! The handling of demands on the sources.

use tapeline_omm::State;
use tapeline_omm::domain::{RequestPayload, ServiceEntry};
use tapeline_omm::role::consumer::{ItemRequest, Reissue, ServiceName, Target};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    Domain, GenericHeader, Header, MessageView, NakCode, PostHeader, Priority, RequestHeader, StateCode,
    StreamState, flags,
};

use super::passing::{About, Passed, closed, suspect};
use super::posts::{Post, PostPart, PostRefusal};
use super::private::{Opened, Private};
use super::services::{Service, UNKNOWN};
use super::{Handling, Link, LinkId, Outlets, Posts, Role, Sources};
use crate::cache::copy;
use crate::demand::{Answer, Demand, ItemName, Ticket};
use crate::publish::Refused;
use crate::{ItemId, Publish, Time};

/// Maximum length of a name in bytes.
const MOST_NAME: usize = 255;

impl Sources {
    /// Opens an item; returns the status if it could not be opened. `number` is that of an item with ticks.
    fn open_item(
        &mut self,
        item: &ItemName,
        number: Option<ItemId>,
        priority: Priority,
    ) -> Option<State<'static>> {
        let place = self.desk.service(item.service);
        let service = place.and_then(|place| Some((place, self.desk.services.get(place)?)));
        Some(match service {
            None => closed(StreamState::CLOSED, UNKNOWN, "There is no such service"),
            // The publishers' data is on the ring already, with its state; or there is no source to ask.
            Some((place, service)) if service.is_published() => {
                self.desk.want_published(place, &item.name, number);
                if number.is_some() {
                    return None;
                }
                suspect("Nobody has published this item yet")
            }
            _ if item.name.is_empty() || item.name.len() > MOST_NAME => {
                closed(StreamState::CLOSED, StateCode::USAGE_ERROR, "An item's name has 1 to 255 bytes")
            }
            Some((place, _)) => return self.want(place, item, priority),
        })
    }

    /// Returns the source for a request: the source of the item, or the active one. `number` is that of an item with ticks.
    fn source_of(&self, service: usize, item: Option<&ItemName>, number: Option<ItemId>) -> Option<LinkId> {
        let known = self.desk.services.get(service)?;
        let of_item = item.and_then(|item| match self.desk.requests.find(item) {
            Some(wanted) => Some(wanted.from),
            None => self.desk.serving.server(item.domain, number?),
        });
        of_item.filter(|link| known.is_source_up(*link)).or(known.active)
    }

    fn open_private(&mut self, ticket: Ticket, request: &[u8]) {
        let read = MessageView::parse(request).and_then(|message| {
            let Header::Request(header) = message.header()? else { return Ok(None) };
            Ok(Some((header, RequestPayload::read(&message)?)))
        });
        let Ok(Some((header, payload))) = read else {
            let state = closed(StreamState::CLOSED, StateCode::USAGE_ERROR, "The request cannot be read");
            return self.desk.refuse_private(ticket, Domain::MARKET_PRICE, state);
        };
        if let Err(state) = self.ask_for_private(ticket, &header, &payload) {
            self.desk.refuse_private(ticket, header.domain, state);
        }
    }

    fn ask_for_private(
        &mut self,
        ticket: Ticket,
        header: &RequestHeader<'_>,
        payload: &RequestPayload<'_>,
    ) -> Result<(), State<'static>> {
        let place = header.key.service_id.and_then(|id| self.desk.service(id));
        let place = place.ok_or(closed(StreamState::CLOSED, UNKNOWN, "There is no such service"))?;
        if self.desk.private.len() >= self.desk.settings.max_private {
            let text = "Too many streams are open that are one client's alone";
            return Err(closed(StreamState::CLOSED_RECOVER, StateCode::NO_RESOURCES, text));
        }
        if self.desk.services.get(place).is_some_and(Service::is_published) {
            let text = "The source of this service cannot be asked for anything";
            return Err(closed(StreamState::CLOSED, StateCode::NOT_FOUND, text));
        }
        let down = closed(StreamState::CLOSED_RECOVER, StateCode::NONE, "The service is down");
        let link = self.source_of(place, None, None).ok_or(down)?;
        let Some(Link { role: Role::Provider(consumer), due, .. }) = self.links.get_mut(&link) else {
            return Err(down);
        };
        let Some(service) = self.desk.services.get(place) else { return Err(down) };
        let request = ItemRequest {
            domain: header.domain,
            name_type: header.key.name_type,
            qos: header.qos,
            worst_qos: header.worst_qos,
            view: payload.view,
            is_streaming: header.flags.has(flags::request::STREAMING),
            is_private: true,
            key_in_updates: header.flags.has(flags::request::MSG_KEY_IN_UPDATES),
            filter: header.key.filter,
            identifier: header.key.identifier,
            attributes: header.key.attributes,
            data_streams: payload.data_streams,
            closure: Private::number(ticket),
            ..ItemRequest::new(ServiceName::Name(service.name()), header.key.name.unwrap_or_default())
        };
        let text = "The source takes no more requests, or none as long as this";
        let refused = closed(StreamState::CLOSED, StateCode::NO_RESOURCES, text);
        let handle = consumer.open(&request).map_err(|_| refused)?;
        *due = Some(self.desk.now);
        let opened = Opened { service: service.id(), domain: header.domain, link, handle };
        self.desk.private.insert(ticket, opened);
        Ok(())
    }

    /// Sends a client's message on its private stream.
    fn send_private(&mut self, ticket: Ticket, message: &[u8], outlets: &mut impl Outlets) {
        let Some(opened) = self.desk.private.find(ticket) else { return };
        let link = self.links.get_mut(&opened.link);
        let Some(Link { role: Role::Provider(consumer), due, .. }) = link else { return };
        let Ok(message) = MessageView::parse(message) else { return };
        let Ok(header) = message.header() else { return };
        let target = Target::Item(opened.handle);
        match header {
            Header::Request(request) => {
                let Ok(payload) = RequestPayload::read(&message) else { return };
                let reissue = Reissue {
                    priority: request.priority,
                    view: Some(payload.view),
                    is_paused: Some(request.flags.has(flags::request::PAUSE)),
                    wants_image: !request.flags.has(flags::request::NO_REFRESH),
                };
                consumer.reissue(opened.handle, &reissue);
                *due = Some(self.desk.now);
            }
            Header::Generic(generic) => outlets.with(opened.link, &mut |out| {
                // Generic messages have no receipt: one without capacity is lost, as on any connection.
                let _ = consumer.generic(out, target, &generic, message.payload());
            }),
            Header::Post(post) => {
                let place = self.desk.service(opened.service);
                let known = place.and_then(|place| self.desk.services.get(place));
                let refusal = if known.map(Service::posts).unwrap_or_default() == Posts::Refuse {
                    Some((NakCode::DENIED_BY_SRC, "This service takes no posts"))
                } else {
                    let mut went = false;
                    outlets.with(opened.link, &mut |out| {
                        went = consumer.post(out, target, &post, message.payload()) == Ok(Sent::Queued);
                    });
                    (!went).then_some((NakCode::NO_RESOURCES, "The source takes no post now"))
                };
                let Some((code, text)) = refusal else { return };
                self.desk.counters.posts_refused += 1;
                if let Some(message) = nak_of(&post, code, text) {
                    self.desk.answer(Answer::Private { ticket, message });
                }
            }
            _ => {}
        }
    }

    /// Sends a client's generic message on the stream of an item.
    fn generic(
        &mut self,
        item: &ItemName,
        number: Option<ItemId>,
        message: &[u8],
        outlets: &mut impl Outlets,
    ) {
        let Ok(view) = MessageView::parse(message) else { return };
        let Ok(Header::Generic(header)) = view.header() else { return };
        let Some(place) = self.desk.service(item.service) else { return };
        let Some(link) = self.source_of(place, Some(item), number) else { return };
        let handle = self.desk.requests.find(item).and_then(|wanted| wanted.handle(link));
        let Some(link_entry) = self.links.get_mut(&link) else { return };
        let payload = view.payload();
        // Without a receipt a lack of capacity cannot be reported.
        match &mut link_entry.role {
            Role::Provider(consumer) => {
                let Some(handle) = handle else { return };
                let header = GenericHeader { key: None, ..header };
                outlets.with(link, &mut |out| {
                    let _ = consumer.generic(out, Target::Item(handle), &header, payload);
                });
            }
            Role::Publisher(acceptor) => {
                let publishing = &link_entry.state.publishing;
                let stream = number.and_then(|number| publishing.stream(item.domain, number));
                let Some(stream_id) = stream else { return };
                let header = GenericHeader { stream_id, domain: item.domain, key: None, ..header };
                outlets.with(link, &mut |out| {
                    let _ = acceptor.generic(out, &header, &mut |room| copy(payload, room));
                });
            }
        }
    }

    /// Passes a post to the source of its item, or of its service.
    fn forward(
        &mut self,
        post: &Post<'_>,
        number: Option<ItemId>,
        outlets: &mut impl Outlets,
    ) -> Result<(), PostRefusal> {
        let Post { place, ticket, item, parts, .. } = *post;
        let Some(last) = parts.last() else { return Ok(()) };
        let down = (NakCode::SOURCE_DOWN, "No source of this service is up");
        if ticket.is_some() && self.desk.awaited.len() >= self.desk.settings.max_posts {
            return Err((NakCode::NO_RESOURCES, "Too many posts wait for their receipt"));
        }
        let id = self.source_of(place, item, number).ok_or(down)?;
        let wanted = item.and_then(|item| self.desk.requests.find(item));
        let handle = wanted.and_then(|wanted| wanted.handle(id));
        let theirs = self.desk.services.get(place).and_then(|service| {
            let link = self.links.get(&id)?;
            link.directory().named(service.name()).map(|entry: &ServiceEntry| entry.id)
        });
        let link = self.links.get_mut(&id).ok_or(down)?;
        let theirs = theirs.ok_or(down)?;
        let due = super::posts::due(self.desk.now, self.desk.settings.post_timeout_ms);
        let added = ticket.map(|ticket| self.desk.awaited.add(ticket, id, &last.header, due));
        let mut outcome = Ok(Sent::NotOpen);
        for part in parts {
            let mut sent = part.sent(item, theirs);
            // All parts of a post have one id; the receipt is for the whole post.
            sent.post_id = added.or(part.header.post_id);
            sent.flags.0 &= !flags::post::ACK.0;
            if ticket.is_some() && part.is_last() {
                sent.flags |= flags::post::ACK;
            }
            let payload = part.posted(theirs);
            match &mut link.role {
                Role::Provider(consumer) => {
                    let target = handle.filter(|handle| consumer.has_image(*handle));
                    let target = target.map_or(Target::Login, Target::Item);
                    outlets.with(id, &mut |out: &mut dyn Outbox| {
                        outcome = consumer.post(out, target, &sent, &payload);
                    });
                }
                Role::Publisher(acceptor) => {
                    let domain = sent.domain;
                    let stream = number.and_then(|number| link.state.publishing.stream(domain, number));
                    let Some(stream) = stream.or(acceptor.login_stream()) else {
                        outcome = Ok(Sent::NotOpen);
                        break;
                    };
                    sent.stream_id = stream;
                    outlets.with(id, &mut |out: &mut dyn Outbox| {
                        outcome = acceptor.post(out, &sent, &mut |room| copy(&payload, room));
                    });
                }
            }
            if outcome != Ok(Sent::Queued) {
                break;
            }
        }
        let refusal = match outcome {
            Ok(Sent::Queued) => {
                self.desk.counters.posts += 1;
                link.due = Some(self.desk.now);
                return Ok(());
            }
            Ok(Sent::Full) => (NakCode::NO_RESOURCES, "The source has no room for a post now"),
            Ok(Sent::NotOpen) => (NakCode::DENIED_BY_SRC, "The source takes no posts"),
            Ok(Sent::TooLong) | Err(_) => (NakCode::INVALID_CONTENT, "The post is too long for the source"),
        };
        if let Some(id) = added {
            self.desk.awaited.take(id);
        }
        Err(refusal)
    }
}

impl<P: Publish, T: Time> Handling<'_, P, T> {
    pub(super) fn meet(&mut self, demand: Demand, outlets: &mut impl Outlets) -> Result<(), Refused> {
        match demand {
            Demand::Open { item, priority } => {
                let number = self.to.items().find(item.service, &item.name);
                let Some(state) = self.sources.open_item(&item, number, priority) else { return Ok(()) };
                let refusal = Passed::status(item.domain, state);
                match (number, self.sources.desk.service(item.service)) {
                    // Earlier ticks of the item may not have been read yet: the final status has to follow them.
                    (Some(number), Some(service)) => {
                        let about = About { service, item: number, name: &item.name, is_suspect: true };
                        self.sources.desk.pass(&about, &refusal, self.to, self.time)?;
                    }
                    _ => self.sources.desk.answer(Answer::Status { message: refusal.bytes(), item }),
                }
            }
            Demand::Priority { item, priority } => self.sources.want_otherwise(&item, Some(priority), false),
            // An image that is on its way is for all who have just opened the item.
            Demand::Refresh(item)
                if self.sources.desk.settings.is_shared && !self.sources.has_image(&item) => {}
            Demand::Refresh(item) => self.sources.want_otherwise(&item, None, true),
            Demand::Pause(item) => self.sources.pause(&item),
            Demand::Resume(item) => self.sources.resume(&item),
            Demand::Close(item) => match self.sources.desk.service(item.service) {
                Some(place) if self.sources.desk.services.get(place).is_some_and(Service::is_published) => {
                    let number = self.to.items().find(item.service, &item.name);
                    self.sources.desk.let_go_published(place, &item.name, number);
                }
                service => {
                    if let Some(service) = service.filter(|_| self.sources.desk.settings.is_shared) {
                        self.end_demanded(service, &item)?;
                    }
                    self.sources.desk.let_go(&item);
                }
            },
            Demand::OpenPrivate { ticket, request } => self.sources.open_private(ticket, &request),
            Demand::Private { ticket, message } => self.sources.send_private(ticket, &message, outlets),
            Demand::ClosePrivate(ticket) => {
                if let Some(opened) = self.sources.desk.private.remove(ticket) {
                    self.sources.close_at(opened.link, opened.handle);
                }
            }
            Demand::Post { ticket, service, item, message, more } => {
                let parts = std::iter::once(&message).chain(&more).map(|message| PostPart::read(message));
                let Some(parts) = parts.collect::<Option<Vec<_>>>() else { return Ok(()) };
                return self.post((service, ticket, item.as_ref()), &parts, outlets);
            }
            Demand::Generic { item, message } => {
                let number = self.to.items().find(item.service, &item.name);
                self.sources.generic(&item, number, &message, outlets);
            }
        }
        Ok(())
    }

    /// Publishes the end of an item that no hub demands any more.
    fn end_demanded(&mut self, service: usize, item: &ItemName) -> Result<(), Refused> {
        let wanted = self.sources.desk.requests.find(item);
        let Some(number) = wanted.map(|wanted| wanted.item).filter(|number| *number != ItemId(0)) else {
            return Ok(());
        };
        let state =
            closed(StreamState::CLOSED_RECOVER, StateCode::NONE, "Nobody has this item open any more");
        let about = About { service, item: number, name: &item.name, is_suspect: true };
        let status = Passed::status(item.domain, state);
        self.sources.desk.pass(&about, &status, self.to, self.time).map(|_| ())
    }

    /// Handles a client's post.
    fn post(
        &mut self,
        (service, ticket, item): (u16, Option<Ticket>, Option<&ItemName>),
        parts: &[PostPart<'_>],
        outlets: &mut impl Outlets,
    ) -> Result<(), Refused> {
        let Some(last) = parts.last() else { return Ok(()) };
        let outcome = match self.sources.desk.service(service) {
            None => Err((NakCode::SOURCE_UNKNOWN, "There is no such service")),
            Some(place) => {
                let post = Post { place, service, ticket, item, parts };
                match self.sources.desk.services.get(place).map(Service::posts).unwrap_or_default() {
                    Posts::Refuse => Err((NakCode::DENIED_BY_SRC, "This service takes no posts")),
                    taken => match (post.check(), taken) {
                        (Err(text), _) => Err((NakCode::INVALID_CONTENT, text)),
                        (Ok(()), Posts::Reflect) => self.sources.desk.reflect(&post, self.to, self.time)?,
                        (Ok(()), _) => {
                            let number = item.and_then(|item| self.to.items().find(service, &item.name));
                            self.sources.forward(&post, number, outlets)
                        }
                    },
                }
            }
        };
        if let Err((code, text)) = outcome {
            self.sources.desk.refuse_post(ticket, &last.header, code, text);
        }
        Ok(())
    }
}

/// Returns the negative receipt of a post that was not sent, if one is requested.
fn nak_of(post: &PostHeader<'_>, code: NakCode, text: &str) -> Option<Box<[u8]>> {
    use tapeline_omm::domain::post::{Nak, ack, wants_ack};
    let nak = Nak { code, text: text.as_bytes() };
    let receipt = ack(&PostHeader { stream_id: 0, ..*post }, Some(nak));
    let passed = Passed { header: receipt.into(), payload: &[], header_len: 64 + text.len() };
    wants_ack(post).then(|| passed.bytes())
}
