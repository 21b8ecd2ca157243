//! The open streams of one connection.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::domain::OwnedState;
use crate::role::Name;
use crate::rwf::{Domain, Key};

/// Handle of an open stream of a provider's connection. It is no longer valid once the stream is closed, even if the
/// peer uses the same id again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamHandle {
    place: u32,
    serial: u32,
}

impl StreamHandle {
    /// Returns an index, counted from 0 with few gaps, and reused: suitable as an index among the streams of one
    /// connection.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self.place as usize
    }
}

/// State of a stream.
#[derive(Debug)]
pub(super) struct ProviderStream {
    pub(super) id: i32,
    pub(super) kind: StreamKind,
    pub(super) domain: Domain,
    pub(super) service_id: Option<u16>,
    pub(super) filter: Option<u32>,
    /// The stream stays open after its image.
    pub(super) is_streaming: bool,
    pub(super) is_private: bool,
    pub(super) is_qualified: bool,
    /// Updates must contain the key.
    pub(super) wants_key: bool,
    pub(super) is_paused: bool,
    /// A request waits for its image.
    pub(super) is_awaited: bool,
    /// The peer has received a part of an image.
    pub(super) has_image: bool,
    pub(super) texts: Texts,
    /// Refusal that the peer will receive later; the stream is closed for the application already.
    pub(super) refusal: Option<Box<OwnedState>>,
}

/// Name of a stream's item, followed by its group unless that has two bytes, such as the default one and those of a hub's
/// feeds: mostly no allocation, because there may be a hundred thousand streams.
#[derive(Debug)]
pub(super) struct Texts {
    bytes: Name,
    /// Length of the name, bytes.
    name: u16,
    /// The group, if it has two bytes; otherwise it follows the name.
    short_group: Option<[u8; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Directory,
    Dictionary,
    Item,
}

/// Group of items that were not put into another.
pub(super) const DEFAULT_GROUP: &[u8] = &SHORT_GROUP;
const SHORT_GROUP: [u8; 2] = [0, 0];

impl Texts {
    /// Creates the texts of a name, which a message key limits to 255 bytes.
    pub(super) fn new(name: &[u8]) -> Self {
        Self { bytes: name.into(), name: name.len() as u16, short_group: Some(SHORT_GROUP) }
    }

    fn split(&self) -> (&[u8], &[u8]) {
        self.bytes.split_at_checked(self.name.into()).unwrap_or_default()
    }
}

impl ProviderStream {
    pub(super) fn name(&self) -> &[u8] {
        self.texts.split().0
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            service_id: self.service_id,
            name: Some(self.name()).filter(|name| !name.is_empty()),
            filter: self.filter,
            ..Key::default()
        }
    }

    pub(super) fn group(&self) -> &[u8] {
        self.texts.short_group.as_ref().map_or(self.texts.split().1, <[u8; 2]>::as_slice)
    }

    /// Returns `true` if the item was put into another group than the default one.
    pub(super) fn is_grouped(&self) -> bool {
        self.texts.short_group != Some(SHORT_GROUP)
    }

    pub(super) fn set_group(&mut self, group: &[u8]) {
        if group == self.group() {
            return;
        }
        let short_group = group.try_into().ok();
        if short_group.is_none() || self.texts.short_group.is_none() {
            let kept = if short_group.is_none() { group } else { &[] };
            self.texts.bytes = [self.name(), kept].concat().as_slice().into();
        }
        self.texts.short_group = short_group;
    }
}

/// Returns the maximum memory of an open stream, bytes: lists and tables at `SPARE` times their content, the longest name
/// on the wire, a text of a few words while its refusal waits.
#[must_use]
pub const fn stream_bytes() -> usize {
    // Separate allocations: name with group, state with text. Ids are in a table, free places and refusals in lists.
    let apart = (255 + 255 + 32) + size_of::<OwnedState>() + 32 + 160;
    SPARE * (size_of::<Place>() + 8 + 8) + apart + 64
}

/// Streams by id, and by handle without a search.
#[derive(Debug, Default)]
pub(super) struct Streams {
    places: Vec<Place>,
    /// Places without a stream. An entry may be obsolete: the place no longer exists, or is in use again.
    free: Vec<u32>,
    by_id: HashMap<i32, u32, RandomState>,
    /// Serial number of the stream that was opened last.
    serial: u32,
}

#[derive(Debug)]
struct Place {
    /// Serial number of the stream in this place: unique among all handles that may still be in use.
    serial: u32,
    stream: Option<ProviderStream>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns the number of places, with a stream or without.
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Opens a stream under its id, which must not be open.
    pub(super) fn open(&mut self, stream: ProviderStream) -> StreamHandle {
        let is_free =
            |place: &u32| self.places.get(*place as usize).is_some_and(|place| place.stream.is_none());
        let free = std::iter::from_fn(|| self.free.pop()).find(is_free);
        // There are at most as many places as the limit of streams, which is 32 bits wide.
        let place = free.unwrap_or(self.places.len() as u32);
        self.serial = self.serial.wrapping_add(1);
        let serial = self.serial;
        self.by_id.insert(stream.id, place);
        let taken = Place { serial, stream: Some(stream) };
        match self.places.get_mut(place as usize) {
            Some(free) => *free = taken,
            None => self.places.push(taken),
        }
        StreamHandle { place, serial }
    }

    pub(super) fn find(&self, id: i32) -> Option<StreamHandle> {
        let place = *self.by_id.get(&id)?;
        Some(StreamHandle { place, serial: self.places.get(place as usize)?.serial })
    }

    #[inline]
    pub(super) fn get(&self, handle: StreamHandle) -> Option<&ProviderStream> {
        let place = self.places.get(handle.place as usize)?;
        if place.serial == handle.serial { place.stream.as_ref() } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: StreamHandle) -> Option<&mut ProviderStream> {
        let place = self.places.get_mut(handle.place as usize)?;
        if place.serial == handle.serial { place.stream.as_mut() } else { None }
    }

    pub(super) fn close(&mut self, handle: StreamHandle) -> Option<ProviderStream> {
        let place = self.places.get_mut(handle.place as usize)?;
        if place.serial != handle.serial {
            return None;
        }
        let stream = place.stream.take()?;
        self.by_id.remove(&stream.id);
        self.free.push(handle.place);
        self.give_back();
        Some(stream)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamHandle, &ProviderStream)> {
        self.places.iter().enumerate().filter_map(|(place, slot)| {
            Some((StreamHandle { place: place as u32, serial: slot.serial }, slot.stream.as_ref()?))
        })
    }

    /// Applies `change` to every stream.
    pub(super) fn for_each(&mut self, change: impl FnMut(&mut ProviderStream)) {
        self.places.iter_mut().filter_map(|place| place.stream.as_mut()).for_each(change);
    }

    /// Visits every stream, and closes those for which `keep` returns `false`.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut ProviderStream) -> bool) {
        for (place, slot) in self.places.iter_mut().enumerate() {
            let Some(stream) = &mut slot.stream else { continue };
            if !keep(stream) {
                self.by_id.remove(&stream.id);
                slot.stream = None;
                self.free.push(place as u32);
            }
        }
        self.give_back();
    }

    /// Frees the memory of closed streams that have no open one behind them: a peer may have had many at one time.
    fn give_back(&mut self) {
        while self.places.pop_if(|place| place.stream.is_none()).is_some() {}
        let most = KEPT.max(SPARE * self.places.len());
        if self.places.capacity() > most {
            self.places.shrink_to(most / 2);
            // Its remaining entries are no more than there were places.
            self.free.retain(|place| (*place as usize) < self.places.len());
            self.free.shrink_to(most / 2);
        }
        if self.by_id.capacity() > KEPT.max(SPARE * self.by_id.len()) {
            self.by_id.shrink_to(self.by_id.len());
        }
    }
}

/// Places that are kept for new streams, and the maximum capacity as a multiple of the streams.
const KEPT: usize = 256;
const SPARE: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_any_length_follow_each_other() {
        let mut stream = ProviderStream {
            id: 5,
            kind: StreamKind::Item,
            domain: Domain::MARKET_PRICE,
            service_id: Some(1),
            filter: None,
            is_streaming: true,
            is_private: false,
            is_qualified: false,
            wants_key: false,
            is_paused: false,
            is_awaited: true,
            has_image: false,
            texts: Texts::new(b"AAPL"),
            refusal: None,
        };
        assert_eq!((stream.group(), stream.is_grouped()), (DEFAULT_GROUP, false));
        for group in [&b"g1"[..], b"long", b"longer", b"", b"g2", b"x", DEFAULT_GROUP, b"g1"] {
            stream.set_group(group);
            assert_eq!((stream.name(), stream.group()), (&b"AAPL"[..], group));
            assert_eq!(stream.is_grouped(), group != DEFAULT_GROUP);
        }
    }
}
