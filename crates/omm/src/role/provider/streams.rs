//! The open streams of one connection.

use std::collections::HashMap;

use crate::domain::OwnedState;
use crate::rwf::{Domain, Key};

/// An open stream of a provider's connection. It is worth nothing once the stream is closed, also when the peer uses
/// the same id again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamHandle {
    place: u32,
    serial: u32,
}

/// What is known of a stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: i32,
    pub(super) kind: Kind,
    pub(super) domain: Domain,
    pub(super) service_id: Option<u16>,
    pub(super) name: Box<[u8]>,
    pub(super) filter: Option<u32>,
    /// Stays open behind its image.
    pub(super) is_streaming: bool,
    pub(super) is_private: bool,
    pub(super) is_qualified: bool,
    /// Updates are to have the key.
    pub(super) wants_key: bool,
    pub(super) is_paused: bool,
    /// A request waits for its image.
    pub(super) is_awaited: bool,
    /// The peer has had some of an image.
    pub(super) has_image: bool,
    /// None for the usual group of two zero bytes.
    pub(super) group: Option<Box<[u8]>>,
    /// Closed for the application already; the peer hears of it later.
    pub(super) refusal: Option<OwnedState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    Dictionary,
    Item,
}

/// The group of items that nobody has put into another.
pub(super) const DEFAULT_GROUP: &[u8] = &[0, 0];

impl Stream {
    pub(super) fn key(&self) -> Key<'_> {
        Key {
            service_id: self.service_id,
            name: Some(&*self.name).filter(|name| !name.is_empty()),
            filter: self.filter,
            ..Key::default()
        }
    }

    pub(super) fn group(&self) -> &[u8] {
        self.group.as_deref().unwrap_or(DEFAULT_GROUP)
    }

    pub(super) fn set_group(&mut self, group: &[u8]) {
        if group != self.group() {
            self.group = Some(group).filter(|group| *group != DEFAULT_GROUP).map(Into::into);
        }
    }
}

/// The most memory that an open stream takes, bytes: lists and tables grown to twice what they hold, the name as long as the
/// wire has them, a text of a few words while its refusal waits.
#[must_use]
pub const fn stream_bytes() -> usize {
    // In memory of their own: name, group, text. Ids are in a table, free places and refusals in lists.
    let apart = (255 + 32) + (255 + 32) + 160;
    2 * size_of::<Place>() + apart + 32 + 8 + 64
}

/// Streams by id, and by handle without a search.
#[derive(Debug, Default)]
pub(super) struct Streams {
    places: Vec<Place>,
    free: Vec<u32>,
    by_id: HashMap<i32, u32>,
}

#[derive(Debug)]
struct Place {
    serial: u32,
    stream: Option<Stream>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Opens a stream under its id, which must not be open.
    pub(super) fn open(&mut self, stream: Stream) -> StreamHandle {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { serial: 0, stream: None });
            // There are at most as many places as the limit of streams, which is 32 bits wide.
            (self.places.len() - 1) as u32
        });
        self.by_id.insert(stream.id, place);
        let mut serial = 0;
        if let Some(slot) = self.places.get_mut(place as usize) {
            slot.serial = slot.serial.wrapping_add(1);
            serial = slot.serial;
            slot.stream = Some(stream);
        }
        StreamHandle { place, serial }
    }

    pub(super) fn find(&self, id: i32) -> Option<StreamHandle> {
        let place = *self.by_id.get(&id)?;
        Some(StreamHandle { place, serial: self.places.get(place as usize)?.serial })
    }

    #[inline]
    pub(super) fn get(&self, handle: StreamHandle) -> Option<&Stream> {
        let place = self.places.get(handle.place as usize)?;
        if place.serial == handle.serial { place.stream.as_ref() } else { None }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, handle: StreamHandle) -> Option<&mut Stream> {
        let place = self.places.get_mut(handle.place as usize)?;
        if place.serial == handle.serial { place.stream.as_mut() } else { None }
    }

    pub(super) fn close(&mut self, handle: StreamHandle) -> Option<Stream> {
        let place = self.places.get_mut(handle.place as usize)?;
        if place.serial != handle.serial {
            return None;
        }
        let stream = place.stream.take()?;
        self.by_id.remove(&stream.id);
        self.free.push(handle.place);
        Some(stream)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (StreamHandle, &Stream)> {
        self.places.iter().enumerate().filter_map(|(place, slot)| {
            Some((StreamHandle { place: place as u32, serial: slot.serial }, slot.stream.as_ref()?))
        })
    }

    /// Looks at every stream; those for which `keep` says no are closed.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut Stream) -> bool) {
        for (place, slot) in self.places.iter_mut().enumerate() {
            let Some(stream) = &mut slot.stream else { continue };
            if !keep(stream) {
                self.by_id.remove(&stream.id);
                slot.stream = None;
                self.free.push(place as u32);
            }
        }
    }
}
