//! Published items.

use super::{Call, Link, NiProvider, NiProviderEvent};
use crate::role::watchlist::{Handle, Owner};
use crate::role::{CLOSED, Outbox, Sent, copy_of};
use crate::rwf::{
    AckHeader, DataType, Domain, GenericHeader, Header, Key, NameType, RefreshHeader, StatusHeader,
    StreamState, UpdateHeader, UpdateType, update_header,
};
use crate::{Refused, State};

/// An item.
#[derive(Debug)]
pub(super) struct Item {
    domain: Domain,
    service_id: u16,
    name_type: Option<NameType>,
    name: Box<[u8]>,
    /// Id of the item's stream, which never changes.
    id: i32,
    /// `true` if the image was sent on this connection.
    is_published: bool,
    closure: u64,
}

impl Item {
    fn key(&self) -> Key<'_> {
        Key { name_type: self.name_type, ..Key::item(self.service_id, &self.name) }
    }
}

/// Reason why an item was not added. The caller is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAdded {
    /// [`NiProviderSettings::most_items`](super::NiProviderSettings::most_items) items exist.
    #[error("{0} items are published, and no more may be")]
    TooMany(usize),
    /// The name is longer than 255 bytes.
    #[error("the name has {0} bytes: no key holds more than 255")]
    LongName(usize),
}

/// Message for an item. Stream id, domain and key are filled in; all other members are sent as given.
#[derive(Debug, Clone, Copy)]
pub enum Publish<'a> {
    /// An image. Its flags state whether it is complete; the vendor's library includes its quality of service.
    Refresh(RefreshHeader<'a>),
    /// An update.
    Update(UpdateHeader<'a>),
    /// A status. A stream state of CLOSED withdraws the item: see [`NiProvider::withdraw`] for the short way.
    Status(StatusHeader<'a>),
    /// A generic message.
    Generic(GenericHeader<'a>),
}

impl NiProvider {
    /// Adds an item. The application is asked for its image when there is a connection, at the earliest with the next
    /// `message` or `tick`. Fails with [`NotAdded`].
    pub fn add(
        &mut self,
        service_id: u16,
        domain: Domain,
        name: &[u8],
        closure: u64,
    ) -> Result<Handle, NotAdded> {
        if self.items.len() >= self.settings.most_items {
            return Err(NotAdded::TooMany(self.items.len()));
        }
        if name.len() > usize::from(u8::MAX) {
            return Err(NotAdded::LongName(name.len()));
        }
        let item = Item {
            domain,
            service_id,
            name_type: None,
            name: name.into(),
            id: 0,
            is_published: false,
            closure,
        };
        let place = self.items.insert(item);
        let id = self.ids.take(Owner::Stream(place));
        if let Some(item) = self.items.get_mut(place) {
            item.id = -id;
        }
        let turn = self.items.turn(place);
        self.unpublished.push_back((place, turn));
        if self.unpublished.len() > 2 * self.items.len() + 64 {
            let items = &self.items;
            self.unpublished.retain(|(place, turn)| items.is_current(*place, *turn));
        }
        Ok(Handle::of(place, turn))
    }

    /// Returns `true` if the item's image was sent on this connection.
    #[must_use]
    pub fn is_published(&self, item: Handle) -> bool {
        self.item(item).is_some_and(|item| item.is_published)
    }

    /// Sends a message for an item. The image comes first: until it is sent on this connection, other messages are [not
    /// accepted](Sent::NotOpen). A status that closes the stream removes the item.
    ///
    /// # Errors
    ///
    /// Fails if a member is too long.
    pub fn publish(
        &mut self,
        out: &mut dyn Outbox,
        item: Handle,
        what: &Publish<'_>,
        payload: &[u8],
    ) -> Result<Sent, Refused> {
        let is_ready = self.link == Link::Ready;
        let Some(entry) = self.item(item).filter(|_| is_ready) else { return Ok(Sent::NotOpen) };
        let is_image = matches!(what, Publish::Refresh(_));
        if !is_image && !entry.is_published {
            return Ok(Sent::NotOpen);
        }
        let (domain, stream_id, key) = (entry.domain, entry.id, Some(entry.key()));
        let header = match *what {
            Publish::Refresh(header) => Header::Refresh(RefreshHeader { domain, stream_id, key, ..header }),
            Publish::Update(header) => Header::Update(UpdateHeader { domain, stream_id, key, ..header }),
            Publish::Status(header) => Header::Status(StatusHeader { domain, stream_id, key, ..header }),
            Publish::Generic(header) => Header::Generic(GenericHeader { domain, stream_id, ..header }),
        };
        let sent = out.encode(&mut |room| header.encode_with(room, copy_of(payload)))?;
        let is_withdrawn = header.state().is_some_and(|state| state.stream == StreamState::CLOSED);
        self.was_full |= is_image && sent == Sent::Full;
        if sent == Sent::Queued {
            if is_withdrawn {
                self.forget(item);
            } else if let Some(entry) = self.item_mut(item) {
                entry.is_published |= is_image;
            }
        }
        Ok(sent)
    }

    /// Sends an update that is written in place: `write` writes the payload, of type `container`. The update has no
    /// key: the hub knows the stream by its image. Nothing is copied, and nothing allocated. `write` may be called
    /// again with a larger buffer.
    ///
    /// [`Sent::NotOpen`] as [`NiProvider::publish`].
    ///
    /// # Errors
    ///
    /// Returns what `write` refuses, except for lack of space.
    #[inline]
    pub fn write_update(
        &self,
        out: &mut dyn Outbox,
        item: Handle,
        (update_type, container): (UpdateType, DataType),
        write: &mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>,
    ) -> Result<Sent, Refused> {
        let open = self.item(item).filter(|open| open.is_published && self.link == Link::Ready);
        let Some(Item { domain, id, .. }) = open else { return Ok(Sent::NotOpen) };
        out.encode(&mut |room| {
            let start = update_header(room, *domain, *id, update_type, container)?;
            Ok(start + write(room.get_mut(start..).unwrap_or_default())?)
        })
    }

    /// Removes an item; if it is published, a status of CLOSED and SUSPECT with this text is sent. [`Sent::Full`]: the
    /// item still exists.
    ///
    /// # Errors
    ///
    /// Fails if the text is too long.
    pub fn withdraw(&mut self, out: &mut dyn Outbox, item: Handle, text: &[u8]) -> Result<Sent, Refused> {
        if self.link == Link::Ready && self.is_published(item) {
            let state = Some(State { text, ..CLOSED });
            let status = StatusHeader { state, ..StatusHeader::new(Domain::MARKET_PRICE, 0) };
            return self.publish(out, item, &Publish::Status(status), &[]);
        }
        self.forget(item);
        Ok(Sent::NotOpen)
    }

    /// Acknowledges a post of the hub: see [`post::ack`](crate::domain::post::ack).
    ///
    /// # Errors
    ///
    /// Fails if a member is too long.
    pub fn ack(&mut self, out: &mut dyn Outbox, ack: &AckHeader<'_>) -> Result<Sent, Refused> {
        if self.link != Link::Ready {
            return Ok(Sent::NotOpen);
        }
        out.encode(&mut |room| ack.encode(room))
    }

    fn item(&self, item: Handle) -> Option<&Item> {
        self.items.get(item.place).filter(|_| self.items.is_current(item.place, item.turn))
    }

    fn item_mut(&mut self, item: Handle) -> Option<&mut Item> {
        if self.items.is_current(item.place, item.turn) { self.items.get_mut(item.place) } else { None }
    }

    fn forget(&mut self, item: Handle) {
        if let Some(entry) = self.item(item) {
            self.ids.free(entry.id.saturating_neg());
            self.items.remove(item.place);
        }
    }

    /// Returns the item of this stream.
    pub(super) fn item_of(&self, id: i32) -> Option<Handle> {
        match self.ids.find(id.checked_neg().filter(|id| *id > 0)?)? {
            Owner::Stream(place) => Some(Handle::of(place, self.items.turn(place))),
            Owner::Batch(_) => None,
        }
    }

    /// Marks all items as unpublished: there is no connection. The next one needs all images.
    pub(super) fn unpublish(&mut self) {
        self.unpublished.clear();
        for place in 0..self.items.places() {
            if let Some(item) = self.items.get_mut(place) {
                item.is_published = false;
                self.unpublished.push_back((place, self.items.turn(place)));
            }
        }
    }

    /// Asks the application for the images that were not sent, one after the other, until there is no space for one.
    pub(super) fn ask_for_images(&mut self, call: &mut Call<'_>) {
        while let Some((place, turn)) = self.unpublished.pop_front() {
            let handle = Handle::of(place, turn);
            let Some(closure) = self.item(handle).filter(|item| !item.is_published).map(|item| item.closure)
            else {
                continue;
            };
            self.was_full = false;
            call.event(self, NiProviderEvent::ImageWanted { item: handle, closure });
            if std::mem::take(&mut self.was_full) {
                self.unpublished.push_front((place, turn));
                return;
            }
        }
    }
}
