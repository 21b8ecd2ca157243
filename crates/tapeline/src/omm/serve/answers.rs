//! The provider's answers to a consumer.

use std::collections::VecDeque;

use serde_json::Value as Json;
use tapeline_console::log;
use tapeline_measure::Nanos;
use tapeline_omm::domain::login::{self, LoginFeatures};
use tapeline_omm::domain::post::Nak;
use tapeline_omm::domain::{LoginRequest, View as Wanted};
use tapeline_omm::role::provider::{
    Provider, ProviderApplication, ProviderEvent, Receipt, RequestedItem, StreamHandle,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    Container, DataType, Domain, Key, MessageView, NakCode, RefreshHeader, StateCode, StatusHeader, flags,
};
use tapeline_omm::{Qos, Refused, State};
use tapeline_wire::rssl::ConnectionId;

use super::Market;
use crate::omm::market::{NAK, UNKNOWN, View};
use crate::omm::serving::closed;

/// Counts of a consumer's messages and of the answers to it.
#[derive(Debug, Default)]
pub(super) struct AnswerTally {
    requests: u64,
    closes: u64,
    posts: u64,
    generics: u64,
    refreshes: u64,
    pub(super) updates: u64,
    /// Answers that do not fit in a message.
    unwritten: u64,
}

impl AnswerTally {
    pub(super) fn members(&self) -> [(&'static str, Json); 7] {
        [
            ("requests", self.requests.into()),
            ("closes", self.closes.into()),
            ("posts", self.posts.into()),
            ("generics", self.generics.into()),
            ("refreshes", self.refreshes.into()),
            ("updates", self.updates.into()),
            ("unwritten", self.unwritten.into()),
        ]
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.closes += other.closes;
        self.posts += other.posts;
        self.generics += other.generics;
        self.refreshes += other.refreshes;
        self.updates += other.updates;
        self.unwritten += other.unwritten;
    }
}

/// Pending answers to a consumer, to be sent as buffer space allows.
#[derive(Debug, Default)]
pub(super) struct Unanswered {
    answers: VecDeque<(StreamHandle, Answer)>,
    /// Since when no pending answer has fitted into the buffer.
    pub(super) stuck: Option<Nanos>,
    /// Bytes left in this consumer's turn.
    left: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Answer {
    /// The image of the stream's item, or a status if the item is gone.
    Image,
    Closed(StateCode, &'static [u8]),
}

/// Bytes of answers a turn: a consumer that reads fast always has buffer space and must not block the others.
const TURN_BYTES: usize = 1 << 20;
/// Cost of an answer in addition to its data, in bytes.
const ANSWER_COST: usize = 256;
/// Pending answers to closed streams are removed only above this number.
const MOST_CLOSED: usize = 1024;

impl Unanswered {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.answers.len()
    }

    pub(super) fn begin_turn(&mut self) {
        self.left = TURN_BYTES;
    }

    /// Queues an answer. A stream has one answer at a time, so their number is bounded by the consumer's open streams.
    pub(super) fn push(&mut self, provider: &Provider, stream: StreamHandle, answer: Answer) {
        if self.answers.len() >= 2 * provider.open_streams() + MOST_CLOSED {
            self.answers.retain(|(stream, _)| provider.stream_id(*stream).is_some());
        }
        self.answers.push_back((stream, answer));
    }
}

/// A consumer while one of its messages is handled.
pub(super) struct Answers<'a> {
    pub(super) id: ConnectionId,
    pub(super) now: Nanos,
    pub(super) market: &'a mut Market,
    pub(super) user: &'a mut String,
    pub(super) unanswered: &'a mut Unanswered,
    pub(super) tally: &'a mut AnswerTally,
}

impl ProviderApplication for Answers<'_> {
    fn event(&mut self, provider: &mut Provider, out: &mut dyn Outbox, event: ProviderEvent<'_>) {
        let answered = match event {
            ProviderEvent::Login { request, is_reissue } => self.login(provider, out, &request, is_reissue),
            ProviderEvent::Directory { stream, .. } => {
                provider.directory(out, stream, &self.market.services).map(|_| ())
            }
            ProviderEvent::Dictionary { stream, .. } => {
                let _ = provider.dictionary(out, stream, &self.market.dictionary);
                Ok(())
            }
            ProviderEvent::Open { stream, request } => {
                self.open(provider, stream, &request);
                Ok(())
            }
            ProviderEvent::Reissue { stream, request } => {
                let view = self.market.view(&request);
                self.market.board.set_view(self.id, stream, view);
                if request.wants_refresh() && self.market.board.want_image(self.id, stream, true) {
                    self.unanswered.push(provider, stream, Answer::Image);
                }
                Ok(())
            }
            ProviderEvent::Closed { stream } => {
                self.tally.closes += 1;
                self.market.board.close(self.id, stream);
                Ok(())
            }
            ProviderEvent::Post { stream, header, message, receipt } => {
                let name = self.posted_to(stream, header.key.as_ref(), header.domain);
                self.post(provider, out, name, &message, receipt);
                Ok(())
            }
            ProviderEvent::Generic { stream, header, message } => {
                self.tally.generics += 1;
                // Echoes the message.
                let payload = message.payload();
                provider.generic(out, stream, &header, &mut |room| copy(payload, room)).map(|_| ())
            }
            ProviderEvent::Malformed(fault) => {
                // One line a connection: a peer can send any number of malformed messages.
                if provider.counters().malformed == 1 {
                    let user = self.user.escape_debug();
                    log::note(format_args!("a message of {user} cannot be read: {fault}"));
                }
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(refused) = answered {
            self.unwritten(refused);
        }
    }
}

impl Answers<'_> {
    /// One line a connection: a peer can send any number of requests whose answer cannot be written.
    fn unwritten(&mut self, refused: Refused) {
        self.tally.unwritten += 1;
        if self.tally.unwritten == 1 {
            let user = self.user.escape_debug();
            log::note(format_args!("an answer to {user} cannot be written: {refused}"));
        }
    }

    fn login(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        is_reissue: bool,
    ) -> Result<(), Refused> {
        if !is_reissue {
            *self.user = String::from_utf8_lossy(request.user).into_owned();
        }
        if self.market.deny.as_ref().is_some_and(|denied| denied.as_bytes() == request.user) {
            let _ = provider.login_status(out, closed(StateCode::NOT_ENTITLED, b"This user is not let in"));
            self.market.lines.event("denied", &[("user", self.user.as_str().into())]);
            return Ok(());
        }
        if is_reissue && request.flags.has(flags::request::NO_REFRESH) {
            // For example a renewed token: earlier answers stay valid.
            return Ok(());
        }
        let attributes = &request.attributes;
        let has_token = request.name_type == login::USER_AUTHENTICATION_TOKEN;
        let features = LoginFeatures {
            application_id: attributes.application_id,
            application_name: Some(b"tapeline"),
            authentication_error_code: has_token.then_some(0),
            authentication_error_text: has_token.then_some(b"Success"),
            position: attributes.position,
            single_open: attributes.single_open.or(Some(1)),
            allow_suspect_data: attributes.allow_suspect_data.or(Some(1)),
            support_batch_requests: Some(login::BATCH_REQUESTS | login::BATCH_REISSUES | login::BATCH_CLOSES),
            support_optimized_pause_resume: Some(1),
            support_pause_resume: Some(1),
            support_omm_post: Some(1),
            support_view_requests: Some(1),
            round_trip_latency: attributes.round_trip_latency,
            ..LoginFeatures::default()
        };
        if let Err(refused) = provider.accept_login(self.now, out, request, features) {
            // The login's attributes can have the maximum key length, and a full answer would be longer.
            let text = b"The login is too long to be answered";
            let _ = provider.login_status(out, closed(StateCode::USAGE_ERROR, text));
            return Err(refused);
        }
        if !is_reissue {
            self.market.lines.event("login", &[("user", self.user.as_str().into())]);
        }
        Ok(())
    }

    fn open(&mut self, provider: &Provider, stream: StreamHandle, request: &RequestedItem<'_>) {
        self.tally.requests += 1;
        let name = request.key.name.unwrap_or_default();
        let service = request.key.service_id.and_then(|id| self.market.services.service(id));
        let mut refuse = |code, text| self.unanswered.push(provider, stream, Answer::Closed(code, text));
        if service.is_none() {
            return refuse(StateCode::SOURCE_UNKNOWN, b"There is no such service");
        }
        if !matches!(request.domain, Domain::MARKET_PRICE | Domain::MARKET_BY_ORDER) {
            return refuse(StateCode::NOT_FOUND, b"There is no such domain here");
        }
        if name.is_empty() || name == UNKNOWN {
            return refuse(StateCode::NOT_FOUND, b"There is no such item");
        }
        let view = self.market.view(request);
        self.market.board.open(self.id, stream, (request.domain, name.into()), view);
        self.market.board.want_image(self.id, stream, true);
        self.unanswered.push(provider, stream, Answer::Image);
    }

    /// Sends pending answers while there is buffer space and the turn lasts.
    pub(super) fn go_on(&mut self, provider: &mut Provider, out: &mut dyn Outbox) {
        while let Some((stream, answer)) = self.unanswered.answers.front().copied() {
            if self.unanswered.left == 0 {
                self.market.is_busy = true;
                return;
            }
            let sent = match answer {
                Answer::Image => self.image(provider, out, stream),
                Answer::Closed(code, text) => self.closed(provider, out, stream, code, text),
            };
            match sent {
                Ok(Sent::Full) => {
                    self.unanswered.stuck.get_or_insert(self.now);
                    return;
                }
                Ok(_) => {}
                Err(refused) => self.unwritten(refused),
            }
            self.market.board.want_image(self.id, stream, false);
            self.unanswered.answers.pop_front();
            self.unanswered.stuck = None;
            self.unanswered.left = self.unanswered.left.saturating_sub(ANSWER_COST);
        }
    }

    /// Sends the status that closes a stream.
    fn closed(
        &self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        code: StateCode,
        text: &'static [u8],
    ) -> Result<Sent, Refused> {
        // The role sets the domain of the stream.
        let status =
            StatusHeader { state: Some(closed(code, text)), ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
        provider.status(self.now, out, stream, &status)
    }

    fn image(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
    ) -> Result<Sent, Refused> {
        let Some((domain, moment, view)) = self.market.board.of(self.id, stream, self.now) else {
            // The item was closed for all; a stream that the consumer closed is not open here either.
            return self.closed(provider, out, stream, StateCode::NONE, b"This item is gone");
        };
        let is_book = domain == Domain::MARKET_BY_ORDER;
        let container = if is_book { DataType::MAP } else { DataType::FIELD_LIST };
        let state = State { text: b"All is well", ..State::OPEN_OK };
        let header = RefreshHeader {
            flags: flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE,
            qos: Some(Qos::REALTIME_TICK),
            ..RefreshHeader::new(domain, 0, state, container)
        };
        let mut len = 0;
        let sent = provider.refresh(out, stream, &header, &mut |room| {
            len = if is_book { moment.book(room) } else { moment.prices(view, room) }?;
            Ok(len)
        })?;
        if sent.is_queued() {
            self.unanswered.left = self.unanswered.left.saturating_sub(len);
            self.tally.refreshes += 1;
            // A snapshot's stream is complete.
            if provider.stream_id(stream).is_none() {
                self.market.board.close(self.id, stream);
            }
        }
        Ok(sent)
    }

    /// The item of a post: that of its stream, or of its key.
    fn posted_to(
        &self,
        stream: Option<StreamHandle>,
        key: Option<&Key<'_>>,
        domain: Domain,
    ) -> Option<(Domain, Box<[u8]>)> {
        match stream {
            Some(stream) => {
                let (domain, moment, _) = self.market.board.of(self.id, stream, self.now)?;
                Some((domain, moment.name.into()))
            }
            None => Some((domain, key?.name?.into())),
        }
    }

    /// Accepts a post and passes it on to every stream that has the item open, or refuses it.
    fn post(
        &mut self,
        provider: &mut Provider,
        out: &mut dyn Outbox,
        name: Option<(Domain, Box<[u8]>)>,
        message: &MessageView<'_>,
        receipt: Option<Receipt>,
    ) {
        self.tally.posts += 1;
        let nak = |code, text| Some(Nak { code, text });
        let nak = match &name {
            None => nak(NakCode::SYMBOL_UNKNOWN, b"The post names no item".as_slice()),
            Some((_, name)) if **name == *UNKNOWN => nak(NakCode::SYMBOL_UNKNOWN, b"There is no such item"),
            Some((_, name)) if **name == *NAK => {
                nak(NakCode::DENIED_BY_SRC, b"Posts to this item are refused")
            }
            Some(name) => {
                let board = &mut self.market.board;
                // A whole message in the post replaces the item's content; otherwise its data does.
                let taken = match message.open() {
                    Ok(Container::Message(inner)) => {
                        board.post(self.id, name, inner.container(), inner.payload())
                    }
                    Ok(Container::NoData) | Err(_) => Ok(()),
                    Ok(_) => board.post(self.id, name, message.container(), message.payload()),
                };
                taken.err().and_then(|_| nak(NakCode::NO_RESOURCES, b"Too many posts wait to be passed on"))
            }
        };
        if let Some(receipt) = receipt {
            // Without buffer space the role queues it, or disconnects a consumer that does not read.
            let _ = provider.ack(out, receipt, nak);
        }
    }
}

impl Market {
    /// Field ids of a request's view. The streams of a batch share one list.
    fn view(&mut self, request: &RequestedItem<'_>) -> View {
        let Some(Wanted::Fids(fids)) = &request.view else { return None };
        let fids = || fids.iter().flatten();
        if !self.last_view.as_ref().is_some_and(|last| fids().eq(last.iter().copied())) {
            self.last_view = Some(fids().collect());
        }
        self.last_view.clone()
    }
}

fn copy(payload: &[u8], room: &mut [u8]) -> Result<usize, Refused> {
    room.get_mut(..payload.len()).ok_or(Refused::Full)?.copy_from_slice(payload);
    Ok(payload.len())
}
