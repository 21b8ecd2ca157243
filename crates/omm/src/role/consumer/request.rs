//! Requests of an application to a consumer.

use super::{Call, Consumer, ConsumerApplication, ConsumerEvent, Handle, LinkProgress, Sent, ServiceName};
use crate::domain::{LOGIN_STREAM, LoginRequest, View};
use crate::role::watchlist::{Interest, More, Phase, StreamKey, ViewOf};
use crate::role::{CLOSED, Outbox, copy_of, encoded};
use crate::rwf::{Attributes, Domain, GenericHeader, NameType, PostHeader, Priority};
use crate::{Qos, Refused, State};

/// Request for an item, or for several that differ only in their names.
#[derive(Debug, Clone, Copy)]
pub struct ItemRequest<'a> {
    /// Service of the item.
    pub service: ServiceName<'a>,
    /// Domain of the item.
    pub domain: Domain,
    /// Name of the item, at most 255 bytes.
    pub name: &'a [u8],
    /// Name type; a RIC if absent.
    pub name_type: Option<NameType>,
    /// Requested quality of service.
    pub qos: Option<Qos>,
    /// Worst acceptable quality of service, if `qos` is not available.
    pub worst_qos: Option<Qos>,
    /// Priority. For requests that share a stream: the highest class, and the sum of its counts.
    pub priority: Priority,
    /// Requested fields; all if absent. Requests that share a stream receive the fields of all of them.
    pub view: Option<View<'a>>,
    /// `true` if the stream stays open after the image; `false` for a snapshot.
    pub is_streaming: bool,
    /// `true` to request a private stream.
    pub is_private: bool,
    /// `true` if updates are to contain the key.
    pub key_in_updates: bool,
    /// Filter bits; the domain defines their meaning.
    pub filter: Option<u32>,
    /// Identifier; the domain defines its meaning.
    pub identifier: Option<i32>,
    /// Further attributes of the key, such as those of [`KeyElements`](crate::rwf::KeyElements).
    pub attributes: Option<Attributes<'a>>,
    /// For a symbol list: the form in which its items are requested, see [`symbol_list`](crate::domain::symbol_list).
    /// The value is sent to the provider; the application opens the items as the list arrives.
    pub data_streams: Option<u64>,
    /// A number of the application's own, which is part of each event. Items of a batch count up from it.
    pub closure: u64,
}

impl<'a> ItemRequest<'a> {
    /// Returns a streaming request for prices, real time and tick by tick.
    #[must_use]
    pub const fn new(service: ServiceName<'a>, name: &'a [u8]) -> Self {
        Self {
            service,
            domain: Domain::MARKET_PRICE,
            name,
            name_type: None,
            qos: Some(Qos::REALTIME_TICK),
            worst_qos: None,
            priority: Priority { class: 1, count: 1 },
            view: None,
            is_streaming: true,
            is_private: false,
            key_in_updates: false,
            filter: None,
            identifier: None,
            attributes: None,
            data_streams: None,
            closure: 0,
        }
    }

    fn key(&self, service: u32) -> StreamKey {
        let has_more = self.filter.is_some()
            || self.identifier.is_some()
            || self.attributes.is_some()
            || self.data_streams.is_some();
        let attributes = self.attributes.map(|attributes| (attributes.container, attributes.data.into()));
        let (filter, identifier, data_streams) = (self.filter, self.identifier, self.data_streams);
        let more = More { filter, identifier, attributes, data_streams };
        StreamKey {
            service,
            domain: self.domain,
            name_type: self.name_type,
            is_streaming: self.is_streaming,
            is_private: self.is_private,
            key_in_updates: self.key_in_updates,
            qos: self.qos,
            worst_qos: self.worst_qos,
            name: self.name.into(),
            more: has_more.then(|| Box::new(more)),
        }
    }
}

/// Reason why an item was not opened. The caller is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOpened {
    /// [`ConsumerSettings::most_items`](super::ConsumerSettings::most_items) items are open.
    #[error("{0} items are open, and no more may be")]
    TooMany(usize),
    /// The name is longer than 255 bytes.
    #[error("the name has {0} bytes: no key holds more than 255")]
    LongName(usize),
    /// The attributes of the key are too long. A key allows 32,767 bytes, but in a request they share a message with
    /// the rest.
    #[error("the key's attributes have {0} bytes: a request holds no more than 16,384")]
    LongAttributes(usize),
    /// The consumer has [ended](super::ConsumerEvent::Ended).
    #[error("the consumer has ended")]
    Ended,
}

/// Changes of an open item. The provider is informed at once; `None` means no change.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reissue<'a> {
    /// Priority.
    pub priority: Option<Priority>,
    /// Requested fields; `Some(None)` is all fields.
    pub view: Option<Option<View<'a>>>,
    /// `true` to pause updates. The provider must support it
    /// ([`SupportOptimizedPauseResume`](crate::domain::LoginFeatures::support_optimized_pause_resume)). A shared stream
    /// pauses when all of its items are paused.
    pub is_paused: Option<bool>,
    /// `true` to request the image again.
    pub wants_image: bool,
}

/// Target of a post or a generic message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The stream of an open item.
    Item(Handle),
    /// The login stream: off-stream, the message's key names the subject.
    Login,
}

/// Maximum bytes of a request's attributes: with name, views and members, the request then fits in any message.
const MOST_ATTRIBUTES: usize = 16 << 10;

impl Consumer {
    /// Opens an item. It is requested when there is a connection and a service for it, at the earliest with the next
    /// `message` or `tick`. Fails with [`NotOpened`].
    pub fn open(&mut self, request: &ItemRequest<'_>) -> Result<Handle, NotOpened> {
        self.check(request)?;
        Ok(self.open_one(request, 0))
    }

    /// Opens items that differ only in their names; the handles have the order of the names. They are requested
    /// together if the provider accepts batches ([`BATCH_REQUESTS`](crate::domain::login::BATCH_REQUESTS)). Fails with
    /// [`NotOpened`]: no item is opened.
    pub fn open_batch(
        &mut self,
        request: &ItemRequest<'_>,
        names: &[&[u8]],
    ) -> Result<Vec<Handle>, NotOpened> {
        if self.list.len() + names.len() > self.settings.most_items {
            return Err(NotOpened::TooMany(self.list.len()));
        }
        let named = |name| ItemRequest { name, ..*request };
        names.iter().try_for_each(|name| self.check(&named(name)))?;
        self.batches = self.batches.wrapping_add(1).max(1);
        let batch = self.batches;
        let numbered = names.iter().zip(request.closure..);
        Ok(numbered
            .map(|(name, closure)| self.open_one(&ItemRequest { closure, ..named(name) }, batch))
            .collect())
    }

    fn check(&self, request: &ItemRequest<'_>) -> Result<(), NotOpened> {
        let attributes = request.attributes.map_or(0, |attributes| attributes.data.len());
        if self.connection.link == LinkProgress::Ended {
            Err(NotOpened::Ended)
        } else if self.list.len() >= self.settings.most_items {
            Err(NotOpened::TooMany(self.list.len()))
        } else if request.name.len() > usize::from(u8::MAX) {
            Err(NotOpened::LongName(request.name.len()))
        } else if attributes > MOST_ATTRIBUTES {
            Err(NotOpened::LongAttributes(attributes))
        } else {
            Ok(())
        }
    }

    fn open_one(&mut self, request: &ItemRequest<'_>, batch: u32) -> Handle {
        let service = self.services.place(request.service, &self.directory);
        let interest =
            Interest::new(request.priority, request.view.and_then(|view| owned(&view)), request.closure);
        self.list.open(request.key(service), interest, batch)
    }

    /// Closes an item: it has no further events. Returns `false` if it was not open.
    pub fn close(&mut self, item: Handle) -> bool {
        self.list.close(item)
    }

    /// Changes an open item. Returns `false` if it is not open.
    pub fn reissue(&mut self, item: Handle, reissue: &Reissue<'_>) -> bool {
        let Some(interest) = self.list.interest_mut(item) else { return false };
        interest.priority = reissue.priority.unwrap_or(interest.priority);
        interest.is_paused = reissue.is_paused.unwrap_or(interest.is_paused);
        if let Some(view) = &reissue.view {
            interest.view = view.as_ref().and_then(owned);
        }
        let Some(place) = self.list.stream_of(item) else { return false };
        if let Some(stream) = self.list.streams.get_mut(place) {
            stream.is_reissued = true;
            stream.wants_image |= reissue.wants_image;
        }
        self.list.queue(place);
        true
    }

    /// Sends a post: on the stream of an item that has its image, or off-stream. The stream id and, on-stream, the
    /// domain are filled in; all other members are sent as given. A complete post that requests an acknowledgement
    /// results in a [`ConsumerEvent::Ack`]: in time, or with a nak of NO_RESPONSE.
    ///
    /// # Errors
    ///
    /// Fails if a member is too long.
    pub fn post(
        &mut self,
        out: &mut dyn Outbox,
        target: Target,
        post: &PostHeader<'_>,
        payload: &[u8],
    ) -> Result<Sent, Refused> {
        let Some((stream_id, domain)) = self.target(target, post.domain) else { return Ok(Sent::NotOpen) };
        if !self.connection.features.posts {
            return Ok(Sent::NotOpen);
        }
        let awaits = post.post_id.filter(|_| crate::domain::post::wants_ack(post));
        if awaits.is_some() && self.posts.len() >= self.settings.most_posts {
            return Ok(Sent::Full);
        }
        let header = PostHeader { stream_id, domain, ..*post };
        let sent = self.send_after_owed(out, |room| header.encode_with(room, copy_of(payload)))?;
        if let Some(id) = awaits.filter(|_| sent.is_queued()) {
            let item = match target {
                Target::Item(item) => Some(item),
                Target::Login => None,
            };
            let due = self.after(self.settings.post_timeout);
            self.posts.await_receipt((item, id), due, post.sequence, domain);
        }
        Ok(sent)
    }

    /// Sends a generic message: on the stream of an item that has its image, or on the login stream. The stream id and,
    /// on-stream, the domain are filled in; all other members are sent as given.
    ///
    /// # Errors
    ///
    /// Fails if a member is too long.
    pub fn generic(
        &mut self,
        out: &mut dyn Outbox,
        target: Target,
        generic: &GenericHeader<'_>,
        payload: &[u8],
    ) -> Result<Sent, Refused> {
        let Some((stream_id, domain)) = self.target(target, generic.domain) else { return Ok(Sent::NotOpen) };
        let header = GenericHeader { stream_id, domain, ..*generic };
        self.send_after_owed(out, |room| header.encode_with(room, copy_of(payload)))
    }

    /// Sends pending output first, then a message.
    fn send_after_owed(
        &mut self,
        out: &mut dyn Outbox,
        mut write: impl FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        if self.owed.send_on(out) { out.encode(&mut write) } else { Ok(Sent::Full) }
    }

    fn target(&self, target: Target, domain: Domain) -> Option<(i32, Domain)> {
        match target {
            Target::Login => (self.connection.link > LinkProgress::Login).then_some((LOGIN_STREAM, domain)),
            Target::Item(item) => {
                let stream = self.list.streams.get(self.list.stream_of(item)?)?;
                (stream.phase == Phase::Open && stream.id != 0).then_some((stream.id, stream.key.domain))
            }
        }
    }

    /// Replaces the attributes of the login, for example the token, and sends the login if there is one. Set its flag
    /// NO_REFRESH if only the token has changed; set PAUSE to pause all items, if the provider supports it
    /// ([`SupportPauseResume`](crate::domain::LoginFeatures::support_pause_resume)). Later connections use the new
    /// login too.
    ///
    /// # Errors
    ///
    /// Fails if no message can hold the login: the old login stays.
    pub fn renew_login(&mut self, out: &mut dyn Outbox, login: &LoginRequest<'_>) -> Result<(), Refused> {
        self.take_login(login)?;
        if self.connection.link.is_up() {
            self.connection.owes_login = true;
            self.send_login(out);
        }
        Ok(())
    }

    /// Logs out: all items are closed, and the consumer ends. Close the connection when the output is sent
    /// ([`ConsumerEvent::Disconnect`]).
    pub fn log_out(&mut self, out: &mut dyn Outbox, application: &mut dyn ConsumerApplication) {
        let call = &mut Call { out, application };
        if self.connection.link.is_up() {
            self.close_stream(Domain::LOGIN, LOGIN_STREAM, call.out);
            self.connection.link = LinkProgress::Ended;
            call.event(self, ConsumerEvent::Disconnect);
        }
        self.end(&State { text: b"Logged out.", ..CLOSED }, call);
    }

    pub(super) fn take_login(&mut self, login: &LoginRequest<'_>) -> Result<(), Refused> {
        self.login = encoded(login)?;
        self.single_open = login.attributes.single_open != Some(0);
        // A login with item recovery receives suspect states in between, whatever it says, as in the vendor's library.
        self.takes_suspect = self.single_open || login.attributes.allow_suspect_data != Some(0);
        self.answers_round_trips =
            login.attributes.round_trip_latency == Some(crate::domain::login::ROUND_TRIP_WANTED);
        Ok(())
    }
}

/// Returns an owned view; `None` for a view that names no field.
fn owned(view: &View<'_>) -> Option<Box<ViewOf>> {
    if view.is_empty() {
        return None;
    }
    Some(Box::new(match view {
        View::Fids(fids) => ViewOf::Fids(fids.iter().flatten().collect()),
        View::Names(names) => ViewOf::Names(names.iter().flatten().map(Into::into).collect()),
    }))
}
