//! Items, and the streams on which they are open.
//!
//! A tick finds its item by number, without a search; a request finds it by service, domain and name. An item exists as long as the plant has it, a
//! client waits for it, or a demand for it is queued.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_nanos::Nanos;
use tapeline_omm::role::Name;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{Domain, Priority};
use tapeline_plant::ItemId;
use tapeline_plant::cache::{ItemKey, Slot};

use crate::SessionId;
use crate::upstream::Upstream;
use crate::views::ViewId;

/// The slot of an item in a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ItemSlot(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamPhase {
    /// There is no image to send yet.
    NoImage,
    /// The first image is pending, sent when there is capacity; it will contain all changes until then.
    FirstImageOwed,
    /// Another image is pending in place of updates: the client is conflated.
    ImageOwed,
    /// As [`ImageOwed`](Self::ImageOwed), with a gap status before the image.
    GapOwed,
    /// The client has the image: updates follow.
    Current,
}

/// A stream with an open item.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: SessionId,
    pub(crate) stream: StreamHandle,
    pub(crate) view: ViewId,
    pub(crate) phase: StreamPhase,
    /// An update was not sent because the stream was paused: on resumption the client needs an image.
    pub(crate) missed: bool,
    /// The request is for one image only.
    pub(crate) is_snapshot: bool,
    /// The session has recorded that an update of the stream was queued.
    pub(crate) is_behind: bool,
    /// The stream waits, and has had a status without an image: a time-out is not reported again.
    pub(crate) is_told: bool,
    /// The state of the item changed with its group or service, and the client, which cannot derive that, needs a status.
    pub(crate) is_restated: bool,
    pub(crate) priority: Priority,
}

impl Open {
    /// Returns `true` if the stream has had an image or a status; for a snapshot only an image counts.
    pub(crate) fn has_heard(&self) -> bool {
        self.phase != StreamPhase::NoImage || self.is_told && !self.is_snapshot
    }

    /// Returns `true` if the stream waits for its item, and has had the status that nothing came.
    pub(crate) fn waits_told(&self) -> bool {
        self.phase == StreamPhase::NoImage && self.is_told
    }
}

/// An item of a service, in a domain.
#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) service: u16,
    pub(crate) domain: Domain,
    pub(crate) name: Name,
    /// The plant's number; 0 without one.
    pub(crate) number: ItemId,
    /// The slot plus one of the item with the same number in another domain; 0 for none.
    twin: u32,
    /// The channel of the last tick, which is the item's group for the feeds.
    pub(crate) channel: u16,
    /// `true` if the permission data is known, which is mostly none: there was an image.
    has_permission: bool,
    /// `true` if the image is complete.
    pub(crate) has_image: bool,
    /// `true` if the image is cached.
    pub(crate) is_kept: bool,
    /// `None` for the many items that have nothing of it.
    rare: Option<Box<Rare>>,
    /// The state at the source; `None` for an item of the feeds, which publish without demand.
    pub(crate) upstream: Option<Box<Upstream>>,
    pub(crate) slot: Slot,
    pub(crate) streams: Vec<Open>,
}

/// The part of an item that few items have, apart from it: there may be a hundred thousand items.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rare {
    due: Nanos,
    closes: Nanos,
    permission: Box<[u8]>,
}

impl Item {
    /// Returns the time at which waiting clients get the status that nothing came; 0 for never.
    pub(crate) fn due(&self) -> Nanos {
        self.rare.as_ref().map_or(Nanos(0), |rare| rare.due)
    }

    pub(crate) fn set_due(&mut self, due: Nanos) {
        if self.due() != due {
            self.change_rare(|rare| rare.due = due);
        }
    }

    /// Returns the time at which streams that still wait after that status are closed; 0 for never.
    pub(crate) fn closes(&self) -> Nanos {
        self.rare.as_ref().map_or(Nanos(0), |rare| rare.closes)
    }

    pub(crate) fn set_closes(&mut self, closes: Nanos) {
        if self.closes() != closes {
            self.change_rare(|rare| rare.closes = closes);
        }
    }

    /// Returns the last permission data from the source; `None` before the first image.
    pub(crate) fn permission(&self) -> Option<&[u8]> {
        self.has_permission.then(|| self.rare.as_ref().map_or(&[][..], |rare| &rare.permission))
    }

    pub(crate) fn set_permission(&mut self, permission: &[u8]) {
        if self.permission().unwrap_or_default() != permission {
            self.change_rare(|rare| rare.permission = permission.into());
        }
        self.has_permission = true;
    }

    fn change_rare(&mut self, change: impl FnOnce(&mut Rare)) {
        let mut rare = self.rare.take().unwrap_or_default();
        change(&mut rare);
        self.rare = Some(rare).filter(|rare| **rare != Rare::default());
    }

    /// Returns `true` for an item of the plant's own feeds.
    #[inline]
    pub(crate) const fn is_of_feeds(&self) -> bool {
        self.upstream.is_none()
    }

    /// Returns `true` if the source was paused, and no image has come since its resumption.
    pub(crate) fn is_old(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| upstream.is_old)
    }

    /// Returns the cache key of the image.
    #[inline]
    pub(crate) fn key(&self) -> ItemKey<'_> {
        ItemKey { service: self.service, domain: self.domain, name: &self.name }
    }

    /// Returns `true` if the item has no data and no queued demand.
    #[inline]
    fn is_forgotten(&self) -> bool {
        if !self.streams.is_empty() {
            return false;
        }
        // The number of an item of the feeds is permanent; an item of a provider appears again with its next image.
        match &self.upstream {
            None => self.number == ItemId(0),
            Some(upstream) => upstream.is_settled() && !self.has_image,
        }
    }
}

/// Maximum size of an item's permission data in bytes: many times the size that vendors use.
pub(crate) const MOST_PERMISSION: usize = 1024;

/// The position of a stream, found without a search: one message can open an item a hundred thousand times.
#[derive(Debug, Clone, Copy)]
struct Spot {
    stream: StreamHandle,
    place: ItemSlot,
    index: u32,
}

/// The streams of a session, indexed by their handles.
#[derive(Debug, Default)]
struct Spots {
    spots: Vec<Option<Spot>>,
    open: usize,
}

impl Spots {
    fn get(&self, stream: StreamHandle) -> Option<Spot> {
        self.spots.get(stream.index()).copied().flatten().filter(|spot| spot.stream == stream)
    }

    fn put(&mut self, spot: Spot) {
        let at = spot.stream.index();
        if self.spots.len() <= at {
            self.spots.resize(at + 1, None);
        }
        if let Some(place) = self.spots.get_mut(at) {
            self.open += usize::from(place.replace(spot).is_none());
        }
    }

    /// Removes and returns the position of a stream.
    fn take(&mut self, stream: StreamHandle) -> Option<Spot> {
        let spot = self.get(stream)?;
        *self.spots.get_mut(stream.index())? = None;
        self.open -= 1;
        while self.spots.pop_if(|spot| spot.is_none()).is_some() {}
        give_back(&mut self.spots);
        Some(spot)
    }
}

/// Frees the unused capacity of a list.
fn give_back<T>(list: &mut Vec<T>) {
    let most = SPARE * list.len().max(1);
    if list.capacity() > most {
        list.shrink_to(most / 2);
    }
}

/// Maximum capacity of a list for each of its elements.
const SPARE: usize = 4;
/// Maximum memory in bytes of a stream in the lists of sessions and items.
pub(crate) const STREAM: usize = SPARE * (size_of::<Option<Spot>>() + size_of::<Open>()) + 32;

/// The maximum number of items is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyItems;

/// An item's slot in the table of names, with the hash of its key: a table that grows reads no items, none of which is in the processor's caches.
#[derive(Debug, Clone, Copy)]
struct Named {
    hash: u32,
    place: u32,
}

impl Named {
    /// Returns the hash for the table, which takes its low bits for the position and its high bits for a tag.
    #[inline]
    const fn spread(hash: u32) -> u64 {
        (hash as u64) << 32 | hash as u64
    }
}

/// All items, and all streams on them.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    items: Vec<Option<Item>>,
    free: Vec<u32>,
    by_name: HashTable<Named>,
    /// Slots by the plant's number, each plus one; 0 for none.
    by_number: Vec<u32>,
    /// The streams by session.
    spots: Vec<Spots>,
    hasher: RandomState,
    most: usize,
    /// Number of items without a number of the plant.
    unnumbered: usize,
}

impl Interest {
    /// Creates an empty set for at most `most` names of the plant, each in two domains, and as many items that the plant does not have.
    pub(crate) fn new(most: usize) -> Self {
        let most = most.min(u32::MAX as usize / 4);
        // Lists that never move while the plant has as many: the system provides the memory only when it is used.
        let (items, by_number) = (Vec::with_capacity(2 * most), Vec::with_capacity(most + 1));
        Self { items, by_number, most, ..Self::default() }
    }

    /// Returns the item of a tick; `None` if it is new. Costs two indexed loads, and one more for each other domain in which the name is published.
    #[inline]
    pub(crate) fn of_number(&self, number: ItemId, domain: Domain) -> Option<ItemSlot> {
        let mut place = *self.by_number.get(number.0 as usize)?;
        loop {
            // Ends, because no two items of a number have the same domain.
            let item = self.items.get(place.checked_sub(1)? as usize)?.as_ref()?;
            if item.domain == domain {
                return Some(ItemSlot(place - 1));
            }
            place = item.twin;
        }
    }

    /// Returns the item of a tick with a new number: new, or one that clients wait for.
    #[cold]
    pub(crate) fn appear(&mut self, number: ItemId, named: &ItemKey<'_>) -> Result<ItemSlot, TooManyItems> {
        let at = number.0 as usize;
        let known = self.find(named);
        let is_numbered =
            known.and_then(|place| self.get(place)).is_some_and(|item| item.number != ItemId(0));
        if at > self.most || !is_numbered && self.by_name.len() - self.unnumbered >= 2 * self.most {
            return Err(TooManyItems);
        }
        let place = known.unwrap_or_else(|| self.add(named));
        self.unlink(place);
        if self.by_number.len() <= at {
            self.by_number.resize(at + 1, 0);
        }
        let first = std::mem::replace(&mut self.by_number[at], place.0 + 1);
        if let Some(item) = self.get_mut(place) {
            (item.number, item.twin) = (number, first);
            self.unnumbered -= 1;
        }
        Ok(place)
    }

    /// Removes the number of an item.
    fn unlink(&mut self, place: ItemSlot) {
        let Some(item) = self.get_mut(place).filter(|item| item.number != ItemId(0)) else { return };
        let (at, behind) = (item.number.0 as usize, item.twin);
        (item.number, item.twin) = (ItemId(0), 0);
        self.unnumbered += 1;
        let Some(first) = self.by_number.get_mut(at) else { return };
        if *first == place.0 + 1 {
            *first = behind;
            return;
        }
        let mut next = *first;
        while let Some(item) = next.checked_sub(1).and_then(|at| self.items.get_mut(at as usize)?.as_mut()) {
            if item.twin == place.0 + 1 {
                item.twin = behind;
                return;
            }
            next = item.twin;
        }
    }

    /// Returns the items of a number that is reassigned, and removes the number from them.
    #[cold]
    pub(crate) fn end_number(&mut self, number: ItemId) -> Vec<ItemSlot> {
        let mut places = Vec::new();
        while let Some(place) = self.by_number.get(number.0 as usize).and_then(|first| first.checked_sub(1)) {
            self.unlink(ItemSlot(place));
            places.push(ItemSlot(place));
        }
        places
    }

    /// Removes the numbers of providers' items, which may have been reassigned: each is set again by the next tick of its item. Numbers of the
    /// feeds' items are permanent.
    #[cold]
    pub(crate) fn forget_numbers(&mut self) {
        for place in 0..self.items.len() as u32 {
            if self.get(ItemSlot(place)).is_some_and(|item| !item.is_of_feeds()) {
                self.unlink(ItemSlot(place));
            }
        }
    }

    pub(crate) fn find(&self, named: &ItemKey<'_>) -> Option<ItemSlot> {
        let hash = self.hash(named);
        let is_it = |found: &Named| {
            found.hash == hash && self.get(ItemSlot(found.place)).is_some_and(|item| item.key() == *named)
        };
        self.by_name.find(Named::spread(hash), is_it).map(|found| ItemSlot(found.place))
    }

    #[inline]
    fn hash(&self, named: &ItemKey<'_>) -> u32 {
        (self.hasher.hash_one(named) >> 32) as u32
    }

    /// Returns the item of a name, created if necessary.
    pub(crate) fn take(&mut self, named: &ItemKey<'_>) -> Result<ItemSlot, TooManyItems> {
        match self.find(named) {
            Some(place) => Ok(place),
            None if self.unnumbered >= self.most => Err(TooManyItems),
            None => Ok(self.add(named)),
        }
    }

    fn add(&mut self, named: &ItemKey<'_>) -> ItemSlot {
        let item = Item {
            service: named.service,
            domain: named.domain,
            name: named.name.into(),
            is_kept: true,
            ..Item::default()
        };
        self.unnumbered += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            (self.items.len() - 1) as u32
        });
        self.items[place as usize] = Some(item);
        let hash = self.hash(named);
        let spread = |named: &Named| Named::spread(named.hash);
        self.by_name.insert_unique(Named::spread(hash), Named { hash, place }, spread);
        ItemSlot(place)
    }

    /// Returns the number of items.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ItemSlot, &Item)> {
        (0..).map(ItemSlot).zip(&self.items).filter_map(|(place, item)| Some((place, item.as_ref()?)))
    }

    #[inline]
    pub(crate) fn get(&self, place: ItemSlot) -> Option<&Item> {
        self.items.get(place.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: ItemSlot) -> Option<&mut Item> {
        self.items.get_mut(place.0 as usize)?.as_mut()
    }

    /// Opens an item on a stream.
    pub(crate) fn open(&mut self, place: ItemSlot, open: Open) {
        let (session, stream) = (open.session.index(), open.stream);
        let Some(item) = self.get_mut(place) else { return };
        // Lossless: a connection has fewer than 2^32 streams, and session numbers are small.
        let index = item.streams.len() as u32;
        if let Some(upstream) = &mut item.upstream {
            upstream.wishes.add(open.priority);
            // More than one client has it open now.
            upstream.is_held = false;
        }
        if item.streams.is_empty() {
            // Most items have only one or two clients.
            item.streams.reserve_exact(1);
        }
        item.streams.push(open);
        if self.spots.len() <= session {
            self.spots.resize_with(session + 1, Spots::default);
        }
        self.spots[session].put(Spot { stream, place, index });
    }

    /// Returns `true` if a session has an item open on `most` streams or more. Costs a test of each of the item's streams if both have that many.
    #[inline]
    pub(crate) fn is_open_on(&self, most: usize, place: ItemSlot, session: SessionId) -> bool {
        let Some(item) = self.get(place).filter(|item| item.streams.len() >= most) else { return false };
        let mut own = item.streams.iter().filter(|open| open.session == session);
        self.open_streams(session) >= most && own.nth(most.saturating_sub(1)).is_some()
    }

    /// Returns the item of a stream, and the stream.
    pub(crate) fn of_stream(&self, session: SessionId, stream: StreamHandle) -> Option<(&Item, &Open)> {
        let Spot { place, index, .. } = self.spot(session, stream)?;
        let item = self.get(place)?;
        Some((item, item.streams.get(index as usize)?))
    }

    pub(crate) fn stream_mut(&mut self, session: SessionId, stream: StreamHandle) -> Option<&mut Open> {
        let Spot { place, index, .. } = self.spot(session, stream)?;
        self.get_mut(place)?.streams.get_mut(index as usize)
    }

    /// Closes a stream; returns its item's slot and the stream. The item may be removed as well.
    pub(crate) fn close(&mut self, session: SessionId, stream: StreamHandle) -> Option<(ItemSlot, Open)> {
        let Spot { place, index, .. } = self.spots.get_mut(session.index())?.take(stream)?;
        let item = self.items.get_mut(place.0 as usize)?.as_mut()?;
        let closed = item.streams.swap_remove(index as usize);
        give_back(&mut item.streams);
        if let Some(moved) = item.streams.get(index as usize)
            && let Some(spots) = self.spots.get_mut(moved.session.index())
        {
            spots.put(Spot { stream: moved.stream, place, index });
        }
        if let Some(upstream) = &mut item.upstream {
            upstream.wishes.remove(closed.priority);
            upstream.is_held = false;
        }
        self.forget_if_idle(place);
        Some((place, closed))
    }

    /// Removes an item without data, streams and demands.
    #[inline]
    pub(crate) fn forget_if_idle(&mut self, place: ItemSlot) {
        if self.get(place).is_some_and(Item::is_forgotten) {
            self.forget(place);
        }
    }

    pub(crate) fn open_streams(&self, session: SessionId) -> usize {
        self.spots.get(session.index()).map_or(0, |spots| spots.open)
    }

    /// Returns the streams of a session, always in the same order.
    pub(crate) fn streams_of(&self, session: SessionId) -> Vec<StreamHandle> {
        let spots = self.spots.get(session.index()).map_or(&[][..], |spots| &spots.spots);
        spots.iter().flatten().map(|spot| spot.stream).collect()
    }

    /// Returns the number of positions among a session's streams, some of which may be free.
    pub(crate) fn stream_places(&self, session: SessionId) -> usize {
        self.spots.get(session.index()).map_or(0, |spots| spots.spots.len())
    }

    /// Returns item and stream at a position among a session's streams, if the client needs the item's state.
    pub(crate) fn restated_at(&self, session: SessionId, at: usize) -> Option<(ItemSlot, StreamHandle)> {
        let Spot { stream, place, index } = (*self.spots.get(session.index())?.spots.get(at)?)?;
        let open = self.get(place)?.streams.get(index as usize)?;
        (open.is_restated && open.phase == StreamPhase::Current).then_some((place, stream))
    }

    /// Records that the client of that stream has got the state.
    pub(crate) fn unmark_restated(&mut self, session: SessionId, at: usize) {
        let spots = self.spots.get(session.index());
        let stream = spots.and_then(|spots| spots.spots.get(at).copied().flatten()).map(|spot| spot.stream);
        if let Some(open) = stream.and_then(|stream| self.stream_mut(session, stream)) {
            open.is_restated = false;
        }
    }

    pub(crate) fn place_of(&self, session: SessionId, stream: StreamHandle) -> Option<ItemSlot> {
        Some(self.spot(session, stream)?.place)
    }

    fn spot(&self, session: SessionId, stream: StreamHandle) -> Option<Spot> {
        self.spots.get(session.index())?.get(stream)
    }

    #[cold]
    fn forget(&mut self, place: ItemSlot) {
        self.unlink(place);
        let Some(item) = self.items.get_mut(place.0 as usize).and_then(Option::take) else { return };
        self.unnumbered -= 1;
        let hash = Named::spread(self.hash(&item.key()));
        if let Ok(found) = self.by_name.find_entry(hash, |other| other.place == place.0) {
            found.remove();
        }
        self.free.push(place.0);
    }
}
