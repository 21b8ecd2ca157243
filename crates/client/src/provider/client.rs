//! One consumer's connection of a provider.

use std::collections::{HashMap, VecDeque};

use tapeline_measure::Nanos;
use tapeline_omm::State;
use tapeline_omm::domain::LoginFeatures;
use tapeline_omm::domain::View;
use tapeline_omm::domain::login::{BATCH_CLOSES, BATCH_REQUESTS};
use tapeline_omm::role::provider::{
    self as role, ProviderApplication, ProviderEvent as Action, RequestedItem, StreamHandle,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{DataState, DataType, Domain, StateCode, StatusHeader, StreamState, UpdateType};
use tapeline_wire::rssl::{ConnectionId, Sender};

use super::market::{ItemKey, Market, SERVICE_ID, Values};
use super::{ItemStream, LoginAnswer, ProviderEvent};
use crate::connection::RoleConnection;
use crate::values;

/// A consumer's connection.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) role: role::Provider,
    pub(super) messages: RoleConnection,
    pub(super) user: String,
    /// The item of each open stream.
    pub(super) streams: HashMap<StreamHandle, Open>,
    /// Streams whose image is to be sent, or sent again because an update found no capacity.
    pub(super) owed: VecDeque<StreamHandle>,
}

/// An open stream.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) key: ItemKey,
    /// The requested fields; all if `None`.
    view: Option<Vec<i16>>,
}

impl Client {
    pub(super) fn new(messages: RoleConnection, now: Nanos) -> Self {
        Self {
            role: role::Provider::new(role::ProviderSettings::default(), now),
            messages,
            user: String::new(),
            streams: HashMap::new(),
            owed: VecDeque::new(),
        }
    }

    /// Sends an update of an item to each of its streams; the image, where a stream has none yet.
    pub(super) fn update(
        &mut self,
        market: &Market,
        sender: &mut Sender<'_>,
        key: &ItemKey,
        (container, data): (DataType, &[u8]),
    ) {
        let Self { role, messages, streams, owed, .. } = self;
        let mut out = messages.outbox(sender);
        for (stream, open) in streams.iter().filter(|(_, open)| open.key == *key) {
            if owed.contains(stream) {
                continue;
            }
            let viewed = match &open.view {
                Some(view) if container == DataType::FIELD_LIST => match values::of_view(data, view) {
                    None if role.has_image(*stream) => continue,
                    viewed => viewed,
                },
                _ => None,
            };
            let data = viewed.as_deref().unwrap_or(data);
            let kind = (UpdateType::UNSPECIFIED, container);
            let sent = role.write_update(&mut out, *stream, kind, &mut |room| values::copy(data, room));
            if !role.has_image(*stream) || matches!(sent, Ok(Sent::Full)) {
                owed.push_back(*stream);
            }
        }
        self.send_owed(market, sender);
    }

    /// Owes the image of an item to each of its streams.
    pub(super) fn owe(&mut self, key: &ItemKey) {
        for (stream, _) in self.streams.iter().filter(|(_, open)| open.key == *key) {
            if !self.owed.contains(stream) {
                self.owed.push_back(*stream);
            }
        }
    }

    /// Sends the images that streams wait for, as long as there is capacity.
    pub(super) fn send_owed(&mut self, market: &Market, sender: &mut Sender<'_>) {
        let Self { role, messages, streams, owed, .. } = self;
        let mut out = messages.outbox(sender);
        while let Some(stream) = owed.front().copied() {
            let open = streams.get(&stream);
            let sent =
                open.and_then(|open| Some((open, market.items.get(&open.key)?))).map(|(open, values)| {
                    role.refresh(&mut out, stream, &values::image(values.container()), &mut |room| {
                        match values {
                            Values::Fields(values) => values.encode_view(open.view.as_deref(), room),
                            Values::Payload(payload) => values::copy(&payload.data, room),
                        }
                    })
                });
            if matches!(sent, Some(Ok(Sent::Full))) {
                return;
            }
            owed.pop_front();
            // A snapshot's stream is closed after its image.
            if role.stream_id(stream).is_none() {
                streams.remove(&stream);
            }
        }
    }

    /// Sends a state to all streams of an item. A stream without capacity at this moment gets none.
    pub(super) fn status(&mut self, sender: &mut Sender<'_>, key: &ItemKey, state: State<'_>, now: Nanos) {
        let Self { role, messages, streams, .. } = self;
        let mut out = messages.outbox(sender);
        let header = StatusHeader { state: Some(state), ..StatusHeader::new(key.0, 0) };
        streams.retain(|stream, open| {
            if open.key == *key {
                let _ = role.status(now, &mut out, *stream, &header);
            }
            role.stream_id(*stream).is_some()
        });
    }
}

/// A consumer's connection, while one of its messages is handled.
pub(super) struct Answers<'a> {
    pub(super) market: &'a mut Market,
    pub(super) id: ConnectionId,
    pub(super) user: &'a mut String,
    pub(super) streams: &'a mut HashMap<StreamHandle, Open>,
    pub(super) owed: &'a mut VecDeque<StreamHandle>,
    pub(super) now: Nanos,
}

impl ProviderApplication for Answers<'_> {
    fn event(&mut self, provider: &mut role::Provider, out: &mut dyn Outbox, event: Action<'_>) {
        // A stream stays unanswered if the answer cannot be encoded, or if the role's own queue has no capacity.
        match event {
            Action::Login { request, is_reissue } => self.log_in(provider, out, &request, is_reissue),
            Action::Directory { stream, .. } => {
                _ = provider.directory(out, stream, &self.market.services);
            }
            Action::Dictionary { stream, .. } => {
                _ = provider.dictionary(out, stream, &self.market.dictionary);
            }
            Action::Open { stream, request } => self.open(provider, out, stream, &request),
            Action::Reissue { stream, request } => {
                if let Some(open) = self.streams.get_mut(&stream) {
                    open.view = fids(request.view.as_ref());
                }
                if request.wants_refresh() && !self.owed.contains(&stream) {
                    self.owed.push_back(stream);
                }
            }
            Action::Closed { stream } => {
                if let Some(open) = self.streams.remove(&stream) {
                    self.market.closed(open.key);
                }
            }
            Action::Generic { stream: Some(stream), message, .. } => {
                let Some(Open { key: (domain, item), .. }) = self.streams.get(&stream) else { return };
                self.market.events.push_back(ProviderEvent::Generic {
                    stream: ItemStream { connection: self.id, stream },
                    domain: *domain,
                    item: item.clone(),
                    message: message.to_bytes(),
                });
            }
            Action::Post { stream, header, message, receipt } => {
                let named = header.key.and_then(|key| key.name);
                let item = match stream.and_then(|stream| self.streams.get(&stream)) {
                    Some(open) => open.key.1.clone(),
                    None => named.map(String::from_utf8_lossy).unwrap_or_default().into_owned(),
                };
                self.market.events.push_back(ProviderEvent::Posted {
                    connection: self.id,
                    user: self.user.clone(),
                    item,
                    message: message.to_bytes(),
                    receipt,
                });
            }
            _ => {}
        }
    }
}

impl Answers<'_> {
    fn log_in(
        &mut self,
        provider: &mut role::Provider,
        out: &mut dyn Outbox,
        request: &tapeline_omm::domain::LoginRequest<'_>,
        is_reissue: bool,
    ) {
        let renew_at = match self.market.check_login(request) {
            LoginAnswer::Accept => None,
            LoginAnswer::AcceptUntil(time) => Some(time),
            LoginAnswer::Refuse(text) => {
                let (stream, data, code) = (StreamState::CLOSED, DataState::SUSPECT, StateCode::NOT_ENTITLED);
                let _ = provider.login_status(out, State { stream, data, code, text: text.as_bytes() });
                return;
            }
        };
        let features = LoginFeatures {
            application_name: Some(b"tapeline"),
            position: request.attributes.position,
            application_id: request.attributes.application_id,
            single_open: Some(1),
            allow_suspect_data: Some(1),
            support_batch_requests: Some(BATCH_REQUESTS | BATCH_CLOSES),
            support_view_requests: Some(1),
            support_omm_post: self.market.takes_posts.then_some(1),
            authentication_tt_reissue: renew_at,
            ..LoginFeatures::default()
        };
        if provider.accept_login(self.now, out, request, features).is_ok() && !is_reissue {
            *self.user = String::from_utf8_lossy(request.user).into_owned();
            self.market.events.push_back(ProviderEvent::LoggedIn(self.user.clone()));
        }
    }

    fn open(
        &mut self,
        provider: &mut role::Provider,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        request: &RequestedItem<'_>,
    ) {
        let is_here = request.key.service_id == Some(SERVICE_ID) && self.market.serves(request.domain);
        let name = request.key.name.map(|name| String::from_utf8_lossy(name).into_owned());
        let Some(name) = name.filter(|_| is_here) else {
            let state = Some(not_found(b"There is no such item"));
            let header = StatusHeader { state, ..StatusHeader::new(request.domain, 0) };
            _ = provider.status(self.now, out, stream, &header);
            return;
        };
        let key = (request.domain, name);
        if self.market.opened(&key, !request.is_streaming()) {
            self.owed.push_back(stream);
        }
        self.streams.insert(stream, Open { key, view: fids(request.view.as_ref()) });
    }
}

/// Returns the fields of a view; `None` for all fields.
fn fids(view: Option<&View<'_>>) -> Option<Vec<i16>> {
    match view? {
        View::Fids(fids) => Some(fids.iter().flatten().collect()),
        View::Names(_) => None,
    }
}

/// Returns the state that closes an item, with its reason.
pub(super) fn not_found(text: &[u8]) -> State<'_> {
    State { stream: StreamState::CLOSED, data: DataState::SUSPECT, code: StateCode::NOT_FOUND, text }
}

/// Returns the domain of prices, of which [`Provider`](super::Provider) keeps every field.
pub(super) const PRICES: Domain = Domain::MARKET_PRICE;
