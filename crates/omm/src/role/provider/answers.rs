//! Output of the application: answers, updates, changes.

use tapeline_nanos::Nanos;

use super::streams::DEFAULT_GROUP;
use super::{Login, Outbox, Provider, ProviderStream, StreamHandle, StreamKind, after};
use crate::domain::directory::{self, Group, ServiceEntry};
use crate::domain::post::{self, Nak};
use crate::domain::{Directory, LoginFeatures, LoginRefresh, LoginRequest, OwnedState, RoundTrip, login};
use crate::role::peer::is_final;
use crate::role::{Sent, copy_of};
use crate::rwf::{
    AckHeader, DataType, Domain, Flags, GenericHeader, Header, Key, MapAction, MessageClass, MessageView,
    NakCode, PostHeader, RefreshHeader, StatusHeader, StreamState, UpdateHeader, UpdateType, flags,
    update_header,
};
use crate::{Refused, State};

/// Data for the acknowledgement of a post. It is a copy: a post may be answered long after its bytes are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Receipt {
    domain: Domain,
    stream_id: i32,
    post_id: u32,
    sequence: Option<u32>,
}

impl Receipt {
    /// Returns the data from a post; `None` if no acknowledgement is wanted.
    pub(super) fn of(post: &PostHeader<'_>) -> Option<Self> {
        let post_id = post.post_id.filter(|_| post::wants_ack(post))?;
        let PostHeader { domain, stream_id, sequence, .. } = *post;
        Some(Self { domain, stream_id, post_id, sequence })
    }

    /// Returns the acknowledgement of the post.
    fn ack<'a>(&self, nak: Option<Nak<'a>>) -> AckHeader<'a> {
        AckHeader {
            nak_code: nak.map(|nak| nak.code),
            text: nak.map(|nak| nak.text).filter(|text| !text.is_empty()),
            sequence: self.sequence,
            ..AckHeader::new(self.domain, self.stream_id, self.post_id)
        }
    }
}

impl ProviderStream {
    /// Returns the flags of a status that depend on the stream.
    pub(super) fn status_flags(&self) -> Flags {
        Flags::NONE
            .with(flags::status::PRIVATE_STREAM, self.is_private)
            .with(flags::status::QUALIFIED_STREAM, self.is_qualified)
    }

    /// Returns a refresh of this stream: the members of the stream are filled in.
    fn refresh<'a>(&'a self, header: &RefreshHeader<'a>) -> RefreshHeader<'a> {
        use flags::refresh as flag;
        let flags = header
            .flags
            .with(flag::SOLICITED, self.is_awaited)
            .with(flag::PRIVATE_STREAM, self.is_private)
            .with(flag::QUALIFIED_STREAM, self.is_qualified);
        let mut state = header.state;
        if !self.is_streaming && state.stream == StreamState::OPEN && flags.has(flag::REFRESH_COMPLETE) {
            state.stream = StreamState::NON_STREAMING;
        }
        let key = header.key.or(Some(self.key()));
        RefreshHeader { domain: self.domain, stream_id: self.id, flags, state, key, ..*header }
    }
}

impl Provider {
    /// Accepts the consumer's login, or a renewed one.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the attributes.
    pub fn accept_login(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        request: &LoginRequest<'_>,
        features: LoginFeatures<'_>,
    ) -> Result<Sent, Refused> {
        self.refresh_login(now, out, &LoginRefresh::accepting(request, features))
    }

    /// As [`Provider::accept_login`], with a refresh from the application: another text, or an unsolicited change. A
    /// refresh whose state is not open does not accept the login.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the attributes.
    pub fn refresh_login(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        refresh: &LoginRefresh<'_>,
    ) -> Result<Sent, Refused> {
        let sent = self.peer.refresh_login(out, refresh)?;
        if sent.is_queued() && self.is_logged_in() {
            self.takes_posts = refresh.features.takes_posts();
            self.standing.offered = refresh.features.standby_modes();
            self.round_trips.are_wanted =
                refresh.features.round_trip_latency == Some(login::ROUND_TRIP_WANTED);
            let interval = self.settings.round_trip_interval_ms;
            let is_timed = self.round_trips.are_wanted && interval > 0;
            self.round_trips.next = is_timed.then(|| after(now, interval));
        }
        Ok(sent)
    }

    /// Changes the state of the login. A final state refuses the login, or ends it: the connection is then over, as the
    /// next message or tick reports.
    pub fn login_status(&mut self, out: &mut dyn Outbox, state: State<'_>) -> Sent {
        self.peer.login_status(out, state)
    }

    /// Answers a directory request with the services and filters that it requests.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the service.
    pub fn directory(
        &mut self,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        services: &Directory,
    ) -> Result<Sent, Refused> {
        let Some(open) = self.streams.get(stream) else { return Ok(Sent::NotOpen) };
        if open.kind != StreamKind::Directory {
            return Ok(Sent::NotOpen);
        }
        let (service_id, filter) = (open.service_id, open.filter.unwrap_or(directory::filter::ALL));
        let wanted =
            || services.services().filter(|service| service_id.is_none_or(|wanted| wanted == service.id));
        let given = wanted()
            .flat_map(|service| &service.parts)
            .filter(|(_, part)| part.is_in(filter))
            .fold(0, |bits, (_, part)| bits | 1 << (part.id() - 1));
        let header = RefreshHeader {
            flags: directory::SOLICITED,
            key: Some(Key { service_id, filter: Some(given), ..Key::default() }),
            ..RefreshHeader::new(Domain::SOURCE, open.id, State::OPEN_OK, DataType::MAP)
        };
        let header = open.refresh(&header);
        let sent = self.peer.owe(out, &mut |room| {
            header.encode_with(room, |room| directory::encode_services(wanted(), filter, room))
        })?;
        if sent.is_queued()
            && let Some(open) = self.streams.get_mut(stream)
        {
            (open.is_awaited, open.has_image) = (false, true);
            if !open.is_streaming {
                self.streams.close(stream);
            }
        }
        Ok(sent)
    }

    /// Sends a change of the directory to the consumer, as far as the consumer requested it. Items whose service is
    /// deleted or receives a final state, itself or by group, are closed without a further message, as the consumer
    /// expects. Items of a merged group belong to the other group from now on.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the service.
    pub fn directory_changed(
        &mut self,
        out: &mut dyn Outbox,
        changes: &[ServiceEntry],
    ) -> Result<Sent, Refused> {
        let mut worst = Sent::Queued;
        for (_, stream) in self.streams.iter() {
            if stream.kind != StreamKind::Directory || !stream.has_image {
                continue;
            }
            let filter = stream.filter.unwrap_or(directory::filter::ALL);
            let wanted = || {
                changes.iter().filter(|change| {
                    stream.service_id.is_none_or(|wanted| wanted == change.id)
                        && (change.action == MapAction::DELETE
                            || change.parts.iter().any(|(_, part)| part.is_in(filter)))
                })
            };
            if wanted().next().is_some() {
                let sent = self
                    .peer
                    .owe(out, &mut |room| directory::encode_update(stream.id, filter, wanted(), room))?;
                worst = if sent.is_queued() { worst } else { sent };
            }
        }
        for change in changes {
            self.apply(change);
        }
        Ok(worst)
    }

    /// Applies a change of the directory to the items.
    fn apply(&mut self, change: &ServiceEntry) {
        let is_end =
            |status: &Option<OwnedState>| status.as_ref().is_some_and(|state| is_final(&state.view()));
        let is_over =
            change.action == MapAction::DELETE || change.state().is_some_and(|state| is_end(&state.status));
        let groups: Vec<&Group> = change.groups().collect();
        if !is_over && groups.is_empty() {
            return;
        }
        self.streams.retain(|stream| {
            if stream.kind != StreamKind::Item
                || stream.service_id != Some(change.id)
                || stream.refusal.is_some()
            {
                return true;
            }
            // An item belongs to a group from its first image or status on: before that, a consumer knows of no group.
            let is_grouped = stream.has_image || stream.is_grouped();
            for group in &groups {
                if !is_grouped || group.group.as_deref() != Some(stream.group()) {
                    continue;
                }
                if is_end(&group.status) {
                    return false;
                }
                if let Some(merged) = &group.merged_to_group {
                    stream.set_group(merged);
                }
            }
            !is_over
        });
    }

    /// Sends an image of an item, or a part of an image; `write` writes the payload, whose type is in the header.
    ///
    /// The role sets domain, stream, key (unless the header has one) and the flags SOLICITED, PRIVATE_STREAM and
    /// QUALIFIED_STREAM. For an item on [standby](Provider::stands_by), the image is sent without data, once for each
    /// request; an unsolicited one is skipped. A complete image ends a snapshot: its state becomes NON_STREAMING. The
    /// handle is no longer valid after that, or after a final state.
    ///
    /// # Errors
    ///
    /// Fails if `write` refuses, or a member is too long.
    pub fn refresh(
        &mut self,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        header: &RefreshHeader<'_>,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        let Some(open) = self.streams.get_mut(stream).filter(|open| open.refusal.is_none()) else {
            return Ok(Sent::NotOpen);
        };
        if !self.peer.settle(out) {
            return Ok(Sent::Full);
        }
        if open.is_held_by(&self.standing) && !is_final(&header.state) {
            return self.blank_image(out, stream, header);
        }
        let filled = open.refresh(header);
        let sent = out.encode(&mut |room| filled.encode_with(room, &mut *write))?;
        if !sent.is_queued() {
            return Ok(sent);
        }
        let is_complete = filled.flags.has(flags::refresh::REFRESH_COMPLETE);
        let is_over =
            is_final(&filled.state) || is_complete && filled.state.stream == StreamState::NON_STREAMING;
        let group = if header.group_id.is_empty() { DEFAULT_GROUP } else { header.group_id };
        if is_over {
            self.streams.close(stream);
        } else if let Some(open) = self.streams.get_mut(stream) {
            open.has_image = true;
            open.is_awaited &= !is_complete;
            open.set_group(group);
        }
        Ok(sent)
    }

    /// Sends the image of an item on standby: complete, whatever part was to be sent, and not one that updates can
    /// follow.
    fn blank_image(
        &mut self,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        header: &RefreshHeader<'_>,
    ) -> Result<Sent, Refused> {
        let Some(open) = self.streams.get_mut(stream) else { return Ok(Sent::NotOpen) };
        if !open.is_awaited {
            return Ok(Sent::Queued);
        }
        let flags = header.flags | flags::refresh::REFRESH_COMPLETE;
        let blank = RefreshHeader { flags, container: DataType::NO_DATA, part: None, ..*header };
        let filled = open.refresh(&blank);
        let sent = out.encode(&mut |room| filled.encode(room))?;
        if sent.is_queued() {
            open.is_awaited = false;
        }
        Ok(sent)
    }

    /// Changes the state of a stream. The role sets domain, stream and the flags PRIVATE_STREAM and QUALIFIED_STREAM.
    /// The handle is no longer valid after a final state.
    ///
    /// A CLOSED_RECOVER may be sent with a delay: [`ProviderSettings::refusal_pause_ms`](super::ProviderSettings).
    ///
    /// # Errors
    ///
    /// Fails if a member is too long.
    pub fn status(
        &mut self,
        now: Nanos,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        header: &StatusHeader<'_>,
    ) -> Result<Sent, Refused> {
        if self.streams.get(stream).is_none_or(|open| open.refusal.is_some()) {
            return Ok(Sent::NotOpen);
        }
        if !self.peer.settle(out) {
            return Ok(Sent::Full);
        }
        let state = header.state;
        if let Some(state) = state.filter(|state| state.stream == StreamState::CLOSED_RECOVER)
            && self.put_off(now, stream, state)
        {
            return Ok(Sent::Queued);
        }
        let Some(open) = self.streams.get(stream) else { return Ok(Sent::NotOpen) };
        let flags = Flags(header.flags.0 & flags::status::CLEAR_CACHE.0 | open.status_flags().0);
        let header = StatusHeader { domain: open.domain, stream_id: open.id, flags, ..*header };
        let sent = out.encode(&mut |room| header.encode(room))?;
        if sent.is_queued() {
            if state.is_some_and(|state| is_final(&state)) {
                self.downloads.cancel(header.stream_id);
                self.streams.close(stream);
            } else if let (Some(open), Some(group)) = (self.streams.get_mut(stream), header.group_id) {
                open.set_group(group);
            }
        }
        Ok(sent)
    }

    /// Sends an encoded update under the stream's id, with the key if the consumer requested that.
    ///
    /// Returns [`Sent::NotOpen`] also for a paused stream, and for one without an image: a consumer would drop the
    /// update.
    #[inline]
    pub fn update(&mut self, out: &mut dyn Outbox, stream: StreamHandle, message: &[u8]) -> Sent {
        let Some(open) = self.streams.get(stream) else { return Sent::NotOpen };
        let is_update = message.get(2).is_some_and(|class| class & 0x1F == MessageClass::UPDATE.0);
        if !is_update || !open.has_image || open.is_paused || open.refusal.is_some() || self.is_paused {
            return Sent::NotOpen;
        }
        if !self.peer.settle(out) {
            return Sent::Full;
        }
        if open.wants_key {
            return send_with_key(out, open, message);
        }
        send_as(out, open.id, message)
    }

    /// Sends an update that is written in place: `write` writes the payload, of type `container`. Nothing is copied,
    /// and nothing allocated. `write` may be called again with a larger buffer.
    ///
    /// Returns [`Sent::NotOpen`] as [`Provider::update`] does.
    ///
    /// # Errors
    ///
    /// Returns what `write` refuses, except for lack of space.
    #[inline]
    pub fn write_update(
        &mut self,
        out: &mut dyn Outbox,
        stream: StreamHandle,
        (update_type, container): (UpdateType, DataType),
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        let Some(open) = self.streams.get(stream) else { return Ok(Sent::NotOpen) };
        if !open.has_image || open.is_paused || open.refusal.is_some() || self.is_paused {
            return Ok(Sent::NotOpen);
        }
        if !self.peer.settle(out) {
            return Ok(Sent::Full);
        }
        if open.wants_key {
            let header = UpdateHeader {
                key: Some(open.key()),
                ..UpdateHeader::new(open.domain, open.id, update_type, container)
            };
            return out.encode(&mut |room| header.encode_with(room, &mut *write));
        }
        let (domain, id) = (open.domain, open.id);
        out.encode(&mut |room| {
            let start = update_header(room, domain, id, update_type, container)?;
            Ok(start + write(room.get_mut(start..).unwrap_or_default())?)
        })
    }

    /// Sends one encoded update to several streams of an item, one after the other. Returns the number of streams that
    /// are done. If it is less than all, there is no space: continue with the rest later. Streams that accept no update
    /// now are skipped.
    pub fn publish(&mut self, out: &mut dyn Outbox, streams: &[StreamHandle], message: &[u8]) -> usize {
        let is_full = |stream: &StreamHandle| self.update(out, *stream, message) == Sent::Full;
        streams.iter().position(is_full).unwrap_or(streams.len())
    }

    /// Sends a generic message on a stream, or on the login stream. The role sets the stream, and the domain except on
    /// the login stream. Without space the message is queued; above [`ProviderSettings::owed_bytes`](super::ProviderSettings) the
    /// connection is over.
    ///
    /// # Errors
    ///
    /// Fails if `write` refuses, or a member is too long.
    pub fn generic(
        &mut self,
        out: &mut dyn Outbox,
        stream: Option<StreamHandle>,
        header: &GenericHeader<'_>,
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        let (domain, stream_id) = match (stream, self.peer.login) {
            (None, Login::Open(id)) => (header.domain, id),
            (Some(stream), _) => match self.streams.get(stream).filter(|open| open.refusal.is_none()) {
                Some(open) => (open.domain, open.id),
                None => return Ok(Sent::NotOpen),
            },
            (None, _) => return Ok(Sent::NotOpen),
        };
        let header = GenericHeader { domain, stream_id, ..*header };
        self.peer.owe(out, &mut |room| header.encode_with(room, &mut *write))
    }

    /// Acknowledges a post: accepted, or refused. Without space the acknowledgement is queued: the post has had its
    /// effect, and its sender must be informed. Returns [`Sent::Full`] only if the queue is full, which ends the
    /// connection.
    pub fn ack(&mut self, out: &mut dyn Outbox, receipt: Receipt, nak: Option<Nak<'_>>) -> Sent {
        let handle = self.streams.find(receipt.stream_id);
        let is_private =
            handle.and_then(|handle| self.streams.get(handle)).is_some_and(|stream| stream.is_private);
        let flags = Flags::NONE.with(flags::ack::PRIVATE_STREAM, is_private);
        let ack = AckHeader { flags, ..receipt.ack(nak) };
        self.peer.owe(out, &mut |room| ack.encode(room)).unwrap_or(Sent::TooLong)
    }

    /// Refuses a post that the application does not receive.
    pub(super) fn refuse_post(
        &mut self,
        receipt: Option<Receipt>,
        code: NakCode,
        text: &str,
        out: &mut dyn Outbox,
    ) {
        self.peer.counters.refused += 1;
        if let Some(receipt) = receipt {
            self.peer.owe_ack(out, &receipt.ack(Some(Nak { code, text: text.as_bytes() })));
        }
    }

    /// Sends the provider's clock on a round trip to the consumer, if the consumer takes part: an
    /// [`ProviderEvent::RoundTrip`](super::ProviderEvent::RoundTrip) follows.
    pub fn round_trip(&mut self, now: Nanos, out: &mut dyn Outbox) -> Sent {
        let interval = self.settings.round_trip_interval_ms;
        if self.round_trips.next.is_some() {
            self.round_trips.next = Some(after(now, interval));
        }
        let Login::Open(id) = self.peer.login else { return Sent::NotOpen };
        if !self.round_trips.are_wanted {
            return Sent::NotOpen;
        }
        if !self.peer.settle(out) {
            return Sent::Full;
        }
        let message = RoundTrip { ticks: Some(now.0), ..RoundTrip::default() };
        let sent = out.encode(&mut |room| message.encode(id, room)).unwrap_or(Sent::TooLong);
        if sent.is_queued() {
            self.round_trips.sent = Some(now);
        }
        sent
    }
}

/// Copies a message into the outbox under another stream id.
#[inline]
fn send_as(out: &mut dyn Outbox, id: i32, message: &[u8]) -> Sent {
    let Some(room) = out.claim(message.len()).and_then(|room| room.get_mut(..message.len())) else {
        return if message.len() > out.most() { Sent::TooLong } else { Sent::Full };
    };
    room.copy_from_slice(message);
    if crate::rwf::patch_stream_id(room, id).is_err() {
        return Sent::NotOpen;
    }
    out.commit(message.len());
    Sent::Queued
}

/// Sends an update with its header encoded again, with the key.
#[cold]
fn send_with_key(out: &mut dyn Outbox, stream: &ProviderStream, message: &[u8]) -> Sent {
    let Ok(view) = MessageView::parse(message) else { return Sent::NotOpen };
    let Ok(Header::Update(header)) = view.header() else { return Sent::NotOpen };
    let header = UpdateHeader { stream_id: stream.id, key: header.key.or(Some(stream.key())), ..header };
    out.encode(&mut |room| header.encode_with(room, copy_of(view.payload()))).unwrap_or(Sent::TooLong)
}
