//! What an application can ask of a consumer.

use super::{Application, Consumer, Event, Handle, Link, Sent, ServiceName};
use crate::domain::{LOGIN_STREAM, LoginRequest, View};
use crate::role::Outbox;
use crate::role::watchlist::{Interest, More, Phase, StreamKey, ViewOf};
use crate::rwf::{Attributes, CloseHeader, Domain, GenericHeader, NameType, PostHeader, Priority};
use crate::{Qos, Refused};

/// A request for an item, or for many that differ in their names alone.
#[derive(Debug, Clone, Copy)]
pub struct ItemRequest<'a> {
    /// Whose item.
    pub service: ServiceName<'a>,
    /// What kind of item.
    pub domain: Domain,
    /// What it is called; at most 255 bytes.
    pub name: &'a [u8],
    /// What kind of name; a RIC if none is given.
    pub name_type: Option<NameType>,
    /// Wanted quality of service.
    pub qos: Option<Qos>,
    /// The worst that will do, if `qos` is not to be had.
    pub worst_qos: Option<Qos>,
    /// How urgently. Requests that share a stream count together: the highest class, and the sum of its counts.
    pub priority: Priority,
    /// Fields that are wanted; all if there is none. Where requests share a stream, what comes are the fields of both.
    pub view: Option<View<'a>>,
    /// Whether the stream stays open after the image; otherwise it is a snapshot.
    pub is_streaming: bool,
    /// Whether the stream is to be the requester's alone.
    pub is_private: bool,
    /// Whether updates are to bring the key.
    pub key_in_updates: bool,
    /// Bits whose meaning the domain gives.
    pub filter: Option<u32>,
    /// A number whose meaning the domain gives.
    pub identifier: Option<i32>,
    /// Further attributes of the key, such as those of [`KeyElements`](crate::rwf::KeyElements).
    pub attributes: Option<Attributes<'a>>,
    /// Of a symbol list: how its items are wanted, see [`symbol_list`](crate::domain::symbol_list). The provider is told;
    /// opening them, as the list comes, is the application's to do.
    pub data_streams: Option<u64>,
    /// A number of the application's own, which comes with each event. Items of a batch count up from it.
    pub closure: u64,
}

impl<'a> ItemRequest<'a> {
    /// A streaming request for prices, real time and tick by tick.
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

/// Why an item was not opened: the caller's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotOpened {
    /// [`Settings::most_items`](super::Settings::most_items) are.
    #[error("{0} items are open, and no more may be")]
    TooMany(usize),
    /// A name has 255 bytes at most.
    #[error("the name has {0} bytes: no key holds more than 255")]
    LongName(usize),
    /// Attributes of a key have 32,767 bytes at most, and a request's share a message with the rest.
    #[error("the key's attributes have {0} bytes: a request holds no more than 16,384")]
    LongAttributes(usize),
    /// The consumer has [ended](super::Event::Ended).
    #[error("the consumer has ended")]
    Ended,
}

/// Changes of an open item. Its provider is told at once; what `None` leaves stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reissue<'a> {
    /// How urgently.
    pub priority: Option<Priority>,
    /// Fields that are wanted; `Some(None)` is all.
    pub view: Option<Option<View<'a>>>,
    /// Whether updates are to be held back. Needs a provider that can ([`SupportOptimizedPauseResume`
    /// ](crate::domain::LoginFeatures::support_optimized_pause_resume)); a shared stream rests when nobody is awake.
    pub is_paused: Option<bool>,
    /// Whether the image is wanted once more.
    pub wants_image: bool,
}

/// Where a post or a generic message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// On the stream of an item that is open.
    Item(Handle),
    /// On the login stream: off-stream, the message's key says what it is about.
    Login,
}

/// Bytes of a request's attributes at most: with a name, views and members it then has room in any message.
const MOST_ATTRIBUTES: usize = 16 << 10;

impl Consumer {
    /// Opens an item. It is asked for when there is a connection and a service for it, with the next `message` or `tick` at
    /// the earliest.
    ///
    /// # Errors
    ///
    /// See [`NotOpened`].
    pub fn open(&mut self, request: &ItemRequest<'_>) -> Result<Handle, NotOpened> {
        self.check(request)?;
        Ok(self.open_one(request, 0))
    }

    /// Opens items that differ in their names alone; the handles are in the order of the names. Where the provider takes
    /// batches ([`BATCH_REQUESTS`](crate::domain::login::BATCH_REQUESTS)) they are asked for together.
    ///
    /// # Errors
    ///
    /// See [`NotOpened`]: then none is opened.
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
        if self.connection.link == Link::Ended {
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

    /// Closes an item: there are no more events of it. `false`: it was not open.
    pub fn close(&mut self, item: Handle) -> bool {
        self.list.close(item)
    }

    /// Changes an open item. `false`: it is not open.
    pub fn reissue(&mut self, item: Handle, reissue: &Reissue<'_>) -> bool {
        let Some(interest) = self.list.interest_mut(item) else { return false };
        interest.priority = reissue.priority.unwrap_or(interest.priority);
        interest.is_paused = reissue.is_paused.unwrap_or(interest.is_paused);
        if let Some(view) = &reissue.view {
            interest.view = view.as_ref().and_then(owned);
        }
        let Some(place) = self.list.stream_of(item) else { return false };
        if let Some(stream) = self.list.stream_mut(place) {
            stream.is_reissued = true;
            stream.wants_image |= reissue.wants_image;
        }
        self.list.queue(place);
        true
    }

    /// Sends a post: on the stream of an item that has its image, or off-stream. Stream id and, on-stream, domain are put in;
    /// the rest is as given. A post that is complete and wants to be acknowledged will be, by an [`Event::Ack`], in time or
    /// with a nak of NO_RESPONSE.
    ///
    /// # Errors
    ///
    /// A member that is too long.
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
        let sent = self.send_payload(out, payload, |room| header.encode(room))?;
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

    /// Sends a generic message: on the stream of an item that has its image, or on the login stream. Stream id and, on-stream,
    /// domain are put in; the rest is as given.
    ///
    /// # Errors
    ///
    /// A member that is too long.
    pub fn generic(
        &mut self,
        out: &mut dyn Outbox,
        target: Target,
        generic: &GenericHeader<'_>,
        payload: &[u8],
    ) -> Result<Sent, Refused> {
        let Some((stream_id, domain)) = self.target(target, generic.domain) else { return Ok(Sent::NotOpen) };
        let header = GenericHeader { stream_id, domain, ..*generic };
        self.send_payload(out, payload, |room| header.encode(room))
    }

    /// What is owed goes first, then a header and its payload.
    fn send_payload(
        &mut self,
        out: &mut dyn Outbox,
        payload: &[u8],
        header: impl Fn(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        if !self.owed.send_on(out) {
            return Ok(Sent::Full);
        }
        out.encode(&mut |room| {
            let len = header(room)?;
            let place = room.get_mut(len..len + payload.len()).ok_or(Refused::Full)?;
            place.copy_from_slice(payload);
            Ok(len + payload.len())
        })
    }

    fn target(&self, target: Target, domain: Domain) -> Option<(i32, Domain)> {
        match target {
            Target::Login => (self.connection.link > Link::Login).then_some((LOGIN_STREAM, domain)),
            Target::Item(item) => {
                let stream = self.list.stream(self.list.stream_of(item)?)?;
                (stream.phase == Phase::Open && stream.id != 0).then_some((stream.id, stream.key.domain))
            }
        }
    }

    /// Gives the login other attributes, a new token say, and sends it if there is a login. NO_REFRESH among its flags if
    /// nothing has changed but the token; PAUSE to hold back all items, where the provider can
    /// ([`SupportPauseResume`](crate::domain::LoginFeatures::support_pause_resume)). Later connections log in with it too.
    ///
    /// # Errors
    ///
    /// A login that no message can hold: the old one stays.
    pub fn renew_login(&mut self, out: &mut dyn Outbox, login: &LoginRequest<'_>) -> Result<(), Refused> {
        self.take_login(login)?;
        if self.connection.link >= Link::Login && self.connection.link != Link::Ended {
            self.connection.owes_login = true;
            self.send_login(out);
        }
        Ok(())
    }

    /// Logs out. The connection is to be closed when that is sent ([`Event::Disconnect`]); all items are closed, and the
    /// consumer has ended.
    pub fn log_out(&mut self, out: &mut dyn Outbox, application: &mut dyn Application) {
        if self.connection.link >= Link::Login && self.connection.link != Link::Ended {
            let mut close = [0; 16];
            if let Ok(len) = CloseHeader::new(Domain::LOGIN, LOGIN_STREAM).encode(&mut close) {
                self.owe(close.get(..len).unwrap_or_default(), out);
            }
            self.connection.link = Link::Ended;
            application.event(self, out, Event::Disconnect);
        }
        let state = crate::State { text: b"Logged out.", ..super::losses::CLOSED };
        self.end(&state, out, application);
    }

    pub(super) fn take_login(&mut self, login: &LoginRequest<'_>) -> Result<(), Refused> {
        let mut bytes = vec![0; 0xFFFF];
        let len = login.encode(&mut bytes)?;
        bytes.truncate(len);
        self.login = bytes.into();
        self.single_open = login.attributes.single_open != Some(0);
        // Who has items recovered learns in between that they are suspect, whatever it says: as in the vendor's library.
        self.takes_suspect = self.single_open || login.attributes.allow_suspect_data != Some(0);
        self.answers_round_trips =
            login.attributes.round_trip_latency == Some(crate::domain::login::ROUND_TRIP_WANTED);
        Ok(())
    }
}

/// A view to be kept. One that names nothing is none.
fn owned(view: &View<'_>) -> Option<Box<ViewOf>> {
    if view.is_empty() {
        return None;
    }
    Some(Box::new(match view {
        View::Fids(fids) => ViewOf::Fids(fids.iter().flatten().collect()),
        View::Names(names) => ViewOf::Names(names.iter().flatten().map(Into::into).collect()),
    }))
}
