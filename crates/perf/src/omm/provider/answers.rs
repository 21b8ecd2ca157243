//! A consumer's requests and posts, and the answers to them.

use std::collections::VecDeque;

use tapeline_console::log;
use tapeline_measure::Nanos;
use tapeline_omm::Refused;
use tapeline_omm::domain::post::Nak;
use tapeline_omm::domain::{LoginFeatures, LoginRequest, login, standby};
use tapeline_omm::role::provider::{
    Provider, ProviderApplication, ProviderEvent, RequestedItem, StreamHandle,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    Container, DataState, DataType, MessageView, NakCode, PostHeader, State, StateCode, StreamState,
    UpdateHeader, UpdateType, flags,
};

use super::super::tally::Counts;
use super::items::{Answer, Items};
use super::working::Desk;

/// A consumer while its events are handled.
pub(super) struct Answers<'a> {
    pub(super) desk: &'a mut Desk,
    pub(super) items: &'a mut Items,
    pub(super) reflections: &'a mut Reflections,
    pub(super) user: &'a mut String,
    pub(super) now: Nanos,
}

/// Posts to send back to their senders that are queued because of back pressure.
#[derive(Debug, Default)]
pub(super) struct Reflections {
    waiting: VecDeque<(StreamHandle, Box<[u8]>)>,
    /// Accounted bytes of the queued posts.
    pub(super) bytes: usize,
}

/// Maximum bytes of posts queued to be sent back on one connection; further ones are dropped, and get a NAK if asked for.
const MOST_WAITING: usize = 17 << 20;
/// The same for all connections of a thread.
const MOST_WAITING_OF_ALL: usize = 256 << 20;
/// Accounted bytes of a queued post in addition to its payload.
const POST_COST: usize = 64;
/// Maximum bytes of an update in addition to a post's payload.
const HEADER: usize = 64;

impl Reflections {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Sends the queued posts; returns whether the queue is empty. `of_all`: accounted bytes of all connections.
    pub(super) fn send(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        counts: &mut Counts,
        of_all: &mut usize,
    ) -> bool {
        while let Some((stream, update)) = self.waiting.front() {
            match provider.update(out, *stream, update) {
                Sent::Full => return false,
                sent => counts.reflected_posts += u64::from(sent.is_queued()),
            }
            let cost = update.len() + POST_COST;
            self.bytes -= cost;
            *of_all -= cost;
            self.waiting.pop_front();
        }
        true
    }

    /// Sends a post back, or queues it. `false`: the queue is full.
    fn take(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        update: &[u8],
        (counts, of_all): (&mut Counts, &mut usize),
    ) -> bool {
        if self.send(provider, out, counts, of_all) {
            let sent = provider.update(out, stream, update);
            counts.reflected_posts += u64::from(sent.is_queued());
            if sent != Sent::Full {
                return true;
            }
        }
        let cost = update.len() + POST_COST;
        if self.bytes + cost > MOST_WAITING || *of_all + cost > MOST_WAITING_OF_ALL {
            return false;
        }
        self.bytes += cost;
        *of_all += cost;
        self.waiting.push_back((stream, update.into()));
        true
    }
}

impl ProviderApplication for Answers<'_> {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>) {
        let tally = &mut self.desk.link.tally;
        let mut answered = Ok(());
        match event {
            ProviderEvent::Login { request, is_reissue } => {
                answered = self.login(provider, out, &request, is_reissue);
            }
            ProviderEvent::Directory { stream, .. } => {
                answered = provider.directory(out, stream, &self.desk.plan.services).map(|_| ());
            }
            ProviderEvent::Dictionary { stream, .. } => {
                let _ = provider.dictionary(out, stream, &self.desk.plan.dictionary);
            }
            ProviderEvent::Open { stream, request } => self.open(provider, stream, &request),
            ProviderEvent::Reissue { stream, request } if request.wants_refresh() => {
                self.items.ask_again(provider, stream);
            }
            ProviderEvent::Closed { stream } => self.items.close(stream),
            ProviderEvent::Post { stream, header, message, receipt } => {
                tally.counts.posts += 1;
                let nak = self.post(provider, out, stream, &header, &message);
                if let Some(receipt) = receipt {
                    // Under back pressure the role queues it, or disconnects a consumer that does not read.
                    let _ = provider.ack(out, receipt, nak);
                }
            }
            ProviderEvent::Generic { message, .. } => self.desk.heard_generic(&message),
            ProviderEvent::Standing { takes_over: true } => self.items.take_over(provider),
            ProviderEvent::RoundTrip { ns } => tally.round_trips.record(ns.cast_signed()),
            ProviderEvent::Malformed(fault) => {
                tally.counts.malformed += 1;
                // One line per connection: a peer can send any number of them.
                if provider.counters().malformed == 1 {
                    let user = self.user.escape_debug();
                    log::note(format_args!("a message of {user} cannot be read: {fault}"));
                }
            }
            _ => {}
        }
        if let Err(refused) = answered {
            self.desk.cannot_write(&refused);
        }
    }
}

impl Answers<'_> {
    /// Accepts every login.
    fn login(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        is_reissue: bool,
    ) -> Result<(), Refused> {
        if is_reissue && request.flags.has(flags::request::NO_REFRESH) {
            return Ok(());
        }
        *self.user = String::from_utf8_lossy(request.user).into_owned();
        let attributes = &request.attributes;
        let features = LoginFeatures {
            application_id: attributes.application_id,
            application_name: Some(b"tapeline"),
            position: attributes.position,
            single_open: attributes.single_open.or(Some(1)),
            allow_suspect_data: attributes.allow_suspect_data.or(Some(1)),
            support_batch_requests: Some(login::BATCH_REQUESTS | login::BATCH_REISSUES | login::BATCH_CLOSES),
            support_optimized_pause_resume: Some(1),
            support_pause_resume: Some(1),
            support_omm_post: Some(1),
            support_standby: Some(1),
            support_standby_mode: Some(standby::BY_LOGIN | standby::BY_SERVICE),
            // This attribute invites the consumer to take part in round trips.
            round_trip_latency: self.desk.plan.round_trips().and(attributes.round_trip_latency),
            ..LoginFeatures::default()
        };
        if let Err(refused) = provider.accept_login(self.now, out, request, features) {
            // The request's names have the maximum length of a key, and the answer would be longer.
            let (stream, data) = (StreamState::CLOSED, DataState::SUSPECT);
            let text = b"The login is too long to be answered";
            let _ = provider.login_status(out, State { stream, data, code: StateCode::USAGE_ERROR, text });
            return Err(refused);
        }
        Ok(())
    }

    /// Accepts every item name.
    fn open(&mut self, provider: &Provider, stream: StreamHandle, request: &RequestedItem<'_>) {
        self.desk.link.tally.counts.requests += 1;
        let plan = &self.desk.plan;
        let has_service = request.key.service_id.is_some_and(|id| plan.services.service(id).is_some());
        let (code, text): (_, &[u8]) = if !has_service {
            (StateCode::SOURCE_UNKNOWN, b"There is no such service")
        } else if plan.publishing.is_book(request.domain).is_none() {
            (StateCode::NOT_FOUND, b"There are no messages of this domain")
        } else if request.key.name.is_none_or(<[u8]>::is_empty) {
            (StateCode::NOT_FOUND, b"This item has no name")
        } else if self.items.asked >= plan.args.open_limit as usize {
            (StateCode::TOO_MANY_ITEMS, b"As many items are open as may be")
        } else {
            return self.items.ask(provider, stream);
        };
        self.items.owe(provider, stream, Answer::Closed(code, text));
    }

    /// Sends a post back unchanged as an update of its item; returns the reason if it does not.
    fn post(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: Option<StreamHandle>,
        post: &PostHeader<'_>,
        message: &MessageView<'_>,
    ) -> Option<Nak<'static>> {
        let at = stream.and_then(|stream| Some((stream, provider.domain(stream)?)));
        let Some((stream, domain)) = at else {
            let text = b"Posts are taken on the streams of items";
            return Some(Nak { code: NakCode::INVALID_CONTENT, text });
        };
        // If the post contains a whole message, its payload becomes the update; else the post's own payload.
        let (container, payload) = match message.open() {
            Ok(Container::Message(inner)) => (inner.container(), inner.payload()),
            Ok(_) => (message.container(), message.payload()),
            Err(_) => {
                return Some(Nak { code: NakCode::INVALID_CONTENT, text: b"The post cannot be read" });
            }
        };
        if container == DataType::NO_DATA {
            return None;
        }
        if self.desk.plan.publishing.args.measure_decode {
            self.desk.decode(container, payload);
        }
        let Desk { scratch, link, reflected, .. } = &mut *self.desk;
        scratch.resize(HEADER + payload.len(), 0);
        let header = UpdateHeader {
            flags: flags::update::DO_NOT_CONFLATE,
            post_user_info: Some(post.post_user_info),
            ..UpdateHeader::new(domain, 0, UpdateType::UNSPECIFIED, container)
        };
        let written = header.encode_with(scratch, |room| {
            room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
            Ok(payload.len())
        });
        let update = written.ok().and_then(|len| scratch.get(..len)).unwrap_or_default();
        let counts = &mut link.tally.counts;
        let is_taken = self.reflections.take(provider, out, stream, update, (counts, reflected));
        counts.dropped_posts += u64::from(!is_taken);
        (!is_taken).then_some(Nak { code: NakCode::NO_RESOURCES, text: b"Too many posts wait to go back" })
    }
}
