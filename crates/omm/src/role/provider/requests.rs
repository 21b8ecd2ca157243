//! Requests and closes of a consumer.

use std::collections::VecDeque;

use tapeline_nanos::Nanos;

use super::streams::Texts;
use super::{
    Call, Login, Outbox, Provider, ProviderEvent, ProviderStream, RequestedItem, StreamHandle, StreamKind,
    after,
};
use crate::State;
use crate::domain::{DictionaryRequest, OwnedState, RequestPayload, directory};
use crate::rwf::{
    CloseHeader, Domain, Key, MessageView, RequestHeader, StateCode, StatusHeader, StreamState, flags,
};

impl Provider {
    pub(super) fn request(
        &mut self,
        message: &MessageView<'_>,
        request: &RequestHeader<'_>,
        call: &mut Call<'_>,
    ) {
        if request.domain == Domain::LOGIN {
            return self.login_request(request, call);
        }
        let refusal = match self.peer.login {
            Login::Open(login) if login == request.stream_id => {
                let at = (request.domain, login);
                return self.peer.complain(call.out, at, "This is the stream of the login");
            }
            _ if request.stream_id <= 0 => {
                Some((StreamState::CLOSED, "The streams of requests have positive ids"))
            }
            Login::Open(_) => None,
            Login::Asked(_) => Some((StreamState::CLOSED_RECOVER, "The login is not accepted yet")),
            Login::Awaited => Some((StreamState::CLOSED, "There is no login")),
        };
        if let Some((stream, text)) = refusal {
            let code = StateCode::USAGE_ERROR;
            return self.peer.refuse(call.out, (request.domain, request.stream_id), stream, code, text);
        }
        match request.domain {
            Domain::SOURCE => self.directory_request(request, call),
            Domain::DICTIONARY => self.dictionary_request(request, call),
            _ => self.item_request(message, request, call),
        }
    }

    fn login_request(&mut self, request: &RequestHeader<'_>, call: &mut Call<'_>) {
        if self.streams.find(request.stream_id).is_some() {
            return self.peer.complain(call.out, (Domain::LOGIN, request.stream_id), ANOTHER_KEY);
        }
        match self.peer.login_request(call.out, request) {
            Some(Ok((read, is_reissue))) => {
                self.is_paused = is_reissue && request.flags.has(flags::request::PAUSE);
                call.event(self, ProviderEvent::Login { request: read, is_reissue });
            }
            Some(Err(fault)) => self.malformed(fault, call),
            None => {}
        }
    }

    fn directory_request(&mut self, request: &RequestHeader<'_>, call: &mut Call<'_>) {
        let Some(stream) = self.admin_stream(request, StreamKind::Directory, call.out) else { return };
        let (service_id, filter) =
            (request.key.service_id, request.key.filter.unwrap_or(directory::filter::ALL));
        if let Some(open) = self.streams.get_mut(stream) {
            (open.service_id, open.filter) = (service_id, Some(filter));
        }
        call.event(self, ProviderEvent::Directory { stream, service_id, filter });
    }

    fn dictionary_request(&mut self, request: &RequestHeader<'_>, call: &mut Call<'_>) {
        let Some(stream) = self.admin_stream(request, StreamKind::Dictionary, call.out) else { return };
        let request = DictionaryRequest::read(request);
        call.event(self, ProviderEvent::Dictionary { stream, request });
    }

    /// Returns the stream of a request for the directory or a dictionary; opens it if it is not open.
    fn admin_stream(
        &mut self,
        request: &RequestHeader<'_>,
        kind: StreamKind,
        out: &mut dyn Outbox,
    ) -> Option<StreamHandle> {
        match self.streams.find(request.stream_id) {
            Some(handle) => {
                let open = self.streams.get_mut(handle)?;
                if open.kind != kind || open.refusal.is_some() {
                    self.peer.complain(out, (request.domain, request.stream_id), ANOTHER_KEY);
                    return None;
                }
                open.is_awaited = true;
                Some(handle)
            }
            None => self.open(request, kind, out),
        }
    }

    /// Opens a stream, or refuses it if there are too many.
    fn open(
        &mut self,
        request: &RequestHeader<'_>,
        kind: StreamKind,
        out: &mut dyn Outbox,
    ) -> Option<StreamHandle> {
        use flags::request as flag;
        let RequestHeader { stream_id: id, domain, key, flags, .. } = *request;
        if self.streams.len() >= self.settings.most_streams as usize {
            let text = "Too many streams are open";
            self.peer.refuse(out, (domain, id), StreamState::CLOSED, StateCode::TOO_MANY_ITEMS, text);
            return None;
        }
        Some(self.streams.open(ProviderStream {
            id,
            kind,
            domain,
            service_id: key.service_id,
            filter: key.filter,
            is_streaming: flags.has(flag::STREAMING),
            is_private: flags.has(flag::PRIVATE_STREAM),
            is_qualified: flags.has(flag::QUALIFIED_STREAM),
            wants_key: flags.has(flag::MSG_KEY_IN_UPDATES),
            is_paused: flags.has(flag::PAUSE),
            is_awaited: !flags.has(flag::NO_REFRESH),
            has_image: false,
            texts: Texts::new(key.name.unwrap_or_default()),
            refusal: None,
        }))
    }

    fn item_request(&mut self, message: &MessageView<'_>, header: &RequestHeader<'_>, call: &mut Call<'_>) {
        let payload = match RequestPayload::read(message) {
            Ok(payload) => payload,
            Err(fault) => {
                self.refuse_malformed(message, call.out);
                return self.malformed(fault, call);
            }
        };
        let request = RequestedItem {
            domain: header.domain,
            key: header.key,
            flags: header.flags,
            qos: header.qos,
            worst_qos: header.worst_qos,
            priority: header.priority,
            view: payload.view,
            data_streams: payload.data_streams,
            extended_header: header.extended_header,
            message: *message,
        };
        if header.flags.has(flags::request::HAS_BATCH) {
            return self.batch(header, &payload, &request, call);
        }
        if let Some(stream) = self.streams.find(header.stream_id) {
            self.reissue(stream, &request, true, call);
        } else if let Some(stream) = self.open(header, StreamKind::Item, call.out) {
            call.event(self, ProviderEvent::Open { stream, request });
        }
    }

    /// Opens the streams after that of the batch, one for each name, or reissues the listed streams.
    fn batch(
        &mut self,
        header: &RequestHeader<'_>,
        payload: &RequestPayload<'_>,
        request: &RequestedItem<'_>,
        call: &mut Call<'_>,
    ) {
        let (domain, id) = (header.domain, header.stream_id);
        if self.streams.find(id).is_some() {
            return self.peer.complain(call.out, (domain, id), "A batch needs a stream of its own");
        }
        if let Some(items) = payload.items {
            let mut opened = Vec::new();
            let mut total = 0;
            for (name, at) in items.iter().zip(1_i32..) {
                total += 1;
                let free = id.checked_add(at).filter(|id| self.streams.find(*id).is_none());
                let name = name.filter(|name| !name.is_empty() && name.len() <= 255);
                let (Some(_), Some(stream_id)) = (name, free) else { continue };
                let key = Key { name, ..header.key };
                let one = RequestHeader { stream_id, key, ..*header };
                opened.extend(self.open(&one, StreamKind::Item, call.out).map(|stream| (stream, key)));
            }
            let ok = opened.len();
            let text = format!("Processed {total} total items from Batch Request. {ok} Ok.");
            self.end_batch(domain, id, &text, call.out);
            for (stream, key) in opened {
                let request = RequestedItem { key, ..*request };
                call.event(self, ProviderEvent::Open { stream, request });
            }
        } else if let Some(streams) = payload.streams {
            let (mut ok, mut total) = (0, 0);
            for id in streams.iter() {
                total += 1;
                if let Some(stream) = id.and_then(|id| self.streams.find(id)) {
                    ok += u32::from(self.reissue(stream, request, false, call));
                }
            }
            let text = format!("Processed {total} total stream ids from Batch Reissue Request. {ok} Ok.");
            self.end_batch(domain, id, &text, call.out);
        } else {
            let text = "This batch has no items";
            self.peer.refuse(call.out, (domain, id), StreamState::CLOSED, StateCode::USAGE_ERROR, text);
        }
    }

    /// Answers the batch request itself: its stream is done.
    fn end_batch(&mut self, domain: Domain, id: i32, text: &str, out: &mut dyn Outbox) {
        let state = State { stream: StreamState::CLOSED, text: text.as_bytes(), ..State::OPEN_OK };
        self.peer.say(out, domain, id, state);
    }

    /// Processes a request on an open stream. `has_key`: the request names the item, which must be that of the stream.
    fn reissue(
        &mut self,
        handle: StreamHandle,
        request: &RequestedItem<'_>,
        has_key: bool,
        call: &mut Call<'_>,
    ) -> bool {
        let Some(stream) = self.streams.get_mut(handle) else { return false };
        let (domain, id) = (stream.domain, stream.id);
        let is_same = stream.kind == StreamKind::Item
            && request.domain == domain
            && (!has_key
                || request.key.name.is_none_or(|name| name == stream.name())
                    && request.key.service_id.is_none_or(|id| Some(id) == stream.service_id));
        if stream.refusal.is_some() {
            // The stream is closed already, and its refusal will be sent.
            return false;
        }
        if !is_same {
            self.peer.complain(call.out, (domain, id), ANOTHER_KEY);
            return false;
        }
        stream.is_paused = request.is_pause();
        stream.is_awaited |= request.wants_refresh();
        let key = Key {
            service_id: stream.service_id.or(request.key.service_id),
            name: None,
            filter: stream.filter,
            ..request.key
        };
        // The application knows the items of a batch by their handles.
        let request = if has_key { *request } else { RequestedItem { key, ..*request } };
        call.event(self, ProviderEvent::Reissue { stream: handle, request });
        true
    }

    pub(super) fn close(&mut self, message: &MessageView<'_>, close: &CloseHeader<'_>, call: &mut Call<'_>) {
        let id = close.stream_id;
        if self.peer.closes_login(call.out, close) {
            return;
        }
        let batch = RequestPayload::read(message).ok().and_then(|payload| payload.streams);
        if let Some(streams) = batch {
            let (mut ok, mut total) = (0, 0);
            for id in streams.iter() {
                total += 1;
                ok += u32::from(id.is_some_and(|id| self.close_one(id, call)));
            }
            let text = format!("Processed {total} total stream ids from Batch Close Request. {ok} Ok.");
            self.end_batch(close.domain, id, &text, call.out);
        } else if !self.close_one(id, call) {
            // The peer's close may have crossed ours.
            self.peer.counters.ignored += 1;
        }
        self.peer.acknowledge(call.out, close);
    }

    fn close_one(&mut self, id: i32, call: &mut Call<'_>) -> bool {
        let Some(handle) = self.streams.find(id) else { return false };
        self.downloads.cancel(id);
        let closed = self.streams.close(handle);
        if closed.is_some_and(|stream| stream.refusal.is_none()) {
            call.event(self, ProviderEvent::Closed { stream: handle });
        }
        true
    }

    /// Delays a refusal if there was one recently. Returns `true` if it is delayed.
    pub(super) fn put_off(&mut self, now: Nanos, handle: StreamHandle, state: State<'_>) -> bool {
        let pause = self.settings.refusal_pause_ms;
        let is_early = self.last_refusal.is_some_and(|last| now < after(last, pause));
        if !is_early || self.refusals.len() >= self.settings.most_streams as usize {
            self.last_refusal = Some(now);
            return false;
        }
        if let Some(stream) = self.streams.get_mut(handle) {
            stream.refusal = Some(Box::new(OwnedState::from(state)));
            self.refusals.push_back((after(now, pause), handle));
        }
        true
    }

    /// Sends the delayed refusals that are due, as far as there is space.
    pub(super) fn refuse_what_is_due(&mut self, now: Nanos, out: &mut dyn Outbox) {
        while let Some((due, handle)) = self.refusals.front().copied() {
            if due > now || !self.peer.settle(out) {
                return;
            }
            self.refusals.pop_front();
            if self.refusals.is_empty() {
                self.refusals = VecDeque::new();
            }
            let Some(stream) = self.streams.close(handle) else { continue };
            let Some(state) = &stream.refusal else { continue };
            let header = StatusHeader {
                state: Some(state.view()),
                flags: stream.status_flags(),
                ..StatusHeader::new(stream.domain, stream.id)
            };
            let _ = self.peer.owe(out, &mut |room| header.encode(room));
            self.last_refusal = Some(now);
        }
    }
}

const ANOTHER_KEY: &str = "This stream is open for something else";
