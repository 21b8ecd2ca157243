//! Items, and who has them open.
//!
//! A tick finds its item by number, without a search; a request finds it by service, domain and name. An item is there as long
//! as the plant has it, a client waits for it, or a source is to be told of it.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_nanos::Nanos;
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::{Domain, Priority};
use tapeline_plant::ItemId;
use tapeline_plant::cache::{ItemKey, Slot};

use crate::SessionId;
use crate::upstream::Upstream;
use crate::views::ViewId;

/// An item in a domain, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ItemSlot(u32);

/// How a stream stands to its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamPhase {
    /// There is no image yet to be sent.
    NoImage,
    /// An image is owed, and sent as soon as there is room: what changes until then will be in it.
    ImageOwed,
    /// The same, and the client is to be told before that it missed something.
    GapOwed,
    /// The client has the image: updates follow.
    Current,
}

/// A stream on which an item is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: SessionId,
    pub(crate) stream: StreamHandle,
    pub(crate) view: ViewId,
    pub(crate) phase: StreamPhase,
    /// An update was not sent, because the stream was paused: a client that goes on needs an image.
    pub(crate) missed: bool,
    /// One image is all that is wanted.
    pub(crate) is_snapshot: bool,
    /// Its session keeps a note that an update had to wait for room.
    pub(crate) is_behind: bool,
    /// It waits, and has heard how its item is without an image: that no image comes in time is no news.
    pub(crate) is_told: bool,
    /// Its item's state has changed with that of a group or service, and its client, which cannot know, is to be told.
    pub(crate) is_restated: bool,
    /// How urgently it is wanted.
    pub(crate) priority: Priority,
}

impl Open {
    /// Whether it knows how its item is. Who wants one image alone knows nothing before that.
    pub(crate) fn has_heard(&self) -> bool {
        self.phase != StreamPhase::NoImage || self.is_told && !self.is_snapshot
    }

    /// Whether it waits for its item, and knows that nothing came.
    pub(crate) fn waits_told(&self) -> bool {
        self.phase == StreamPhase::NoImage && self.is_told
    }
}

/// An item of a service, in a domain.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) service: u16,
    pub(crate) domain: Domain,
    pub(crate) name: Box<[u8]>,
    /// The plant's number; 0 as long as it has none.
    pub(crate) number: ItemId,
    /// The item of the same number in another domain: its place plus one, 0 for none.
    twin: u32,
    /// The channel that published it last: its group, where it is of the feeds.
    pub(crate) channel: u16,
    /// The permission data that its source gave it last; `None` before its first image.
    pub(crate) permission: Option<Box<[u8]>>,
    /// There is a whole image.
    pub(crate) has_image: bool,
    /// Its image is kept.
    pub(crate) is_kept: bool,
    /// When those who wait for it are told that nothing came in time; 0 for never.
    pub(crate) due: Nanos,
    /// When those who have been told so, and wait still, are closed; 0 for never.
    pub(crate) closes: Nanos,
    /// What its source has been told; `None` for an item of the feeds, which publish unasked.
    pub(crate) upstream: Option<Box<Upstream>>,
    /// Where it is.
    pub(crate) slot: Slot,
    pub(crate) streams: Vec<Open>,
}

impl Item {
    /// Whether it is one of the plant's own feeds.
    #[inline]
    pub(crate) const fn is_of_feeds(&self) -> bool {
        self.upstream.is_none()
    }

    /// Whether its source paused, and no image has come since it goes on.
    pub(crate) fn is_old(&self) -> bool {
        self.upstream.as_ref().is_some_and(|upstream| upstream.is_old)
    }

    /// What its image is found by.
    #[inline]
    pub(crate) fn key(&self) -> ItemKey<'_> {
        ItemKey { service: self.service, domain: self.domain, name: &self.name }
    }

    /// What it is found by.
    pub(crate) fn named(&self) -> Named<'_> {
        Named { service: self.service, domain: self.domain, name: &self.name }
    }

    /// Whether nothing is known of it, and nobody is to be told of it.
    fn is_forgotten(&self) -> bool {
        let is_unsaid = self.upstream.as_ref().is_none_or(|upstream| upstream.is_settled());
        // The plant's number of an item of the feeds is for good; a provider's item comes again with its next image.
        let is_unpublished = if self.is_of_feeds() { self.number == ItemId(0) } else { !self.has_image };
        self.streams.is_empty() && is_unsaid && is_unpublished
    }
}

/// The longest permission data that an item keeps, bytes: many times what those of vendors take.
pub(crate) const MOST_PERMISSION: usize = 1024;

/// What an item is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Named<'n> {
    pub(crate) service: u16,
    pub(crate) domain: Domain,
    pub(crate) name: &'n [u8],
}

/// Where a stream is found without a search: one message can open an item a hundred thousand times.
#[derive(Debug, Clone, Copy)]
struct Spot {
    stream: StreamHandle,
    place: ItemSlot,
    index: u32,
}

/// The streams of a session, each where its handle says.
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

    /// The spot of a stream, which has none from now on.
    fn take(&mut self, stream: StreamHandle) -> Option<Spot> {
        let spot = self.get(stream)?;
        *self.spots.get_mut(stream.index())? = None;
        self.open -= 1;
        while self.spots.pop_if(|spot| spot.is_none()).is_some() {}
        give_back(&mut self.spots);
        Some(spot)
    }
}

/// Gives the memory back of what was in a list once.
fn give_back<T>(list: &mut Vec<T>) {
    let most = SPARE * list.len().max(1);
    if list.capacity() > most {
        list.shrink_to(most / 2);
    }
}

/// Room that a list may have for each that is in it.
const SPARE: usize = 4;
/// What the lists of sessions and items take for a stream at most, bytes.
pub(crate) const STREAM: usize = SPARE * (size_of::<Option<Spot>>() + size_of::<Open>()) + 32;

/// No more items are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyItems;

/// All items, and all streams on them.
#[derive(Debug)]
pub(crate) struct Interest {
    items: Vec<Option<Item>>,
    free: Vec<u32>,
    by_name: HashTable<u32>,
    /// By the plant's number: places, each plus one; 0 for none.
    by_number: Vec<u32>,
    /// By session.
    spots: Vec<Spots>,
    hasher: RandomState,
    most: usize,
    /// Items that the plant has given no number.
    unnumbered: usize,
}

impl Interest {
    /// For so many names at most that the plant has, each in two domains, and as many items that it has not.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            by_number: Vec::new(),
            spots: Vec::new(),
            hasher: RandomState::default(),
            most: most.min(u32::MAX as usize / 4),
            unnumbered: 0,
        }
    }

    /// The item that a tick is about; `None` where it has not been seen yet. Costs two indexed loads, and one more for each
    /// other domain in which the name is published.
    #[inline]
    pub(crate) fn of_number(&self, number: ItemId, domain: Domain) -> Option<ItemSlot> {
        let mut place = *self.by_number.get(number.0 as usize)?;
        loop {
            // Ends: no two items of a number have the same domain.
            let item = self.items.get(place.checked_sub(1)? as usize)?.as_ref()?;
            if item.domain == domain {
                return Some(ItemSlot(place - 1));
            }
            place = item.twin;
        }
    }

    /// The item that a tick is about for the first time: new, or one that clients wait for.
    ///
    /// # Errors
    /// There are as many as may be.
    #[cold]
    pub(crate) fn appear(&mut self, number: ItemId, named: &Named<'_>) -> Result<ItemSlot, TooManyItems> {
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

    /// An item has no number any more.
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

    /// A number is another item's from here on: the items that had it.
    #[cold]
    pub(crate) fn end_number(&mut self, number: ItemId) -> Vec<ItemSlot> {
        let mut places = Vec::new();
        while let Some(place) = self.by_number.get(number.0 as usize).and_then(|first| first.checked_sub(1)) {
            self.unlink(ItemSlot(place));
            places.push(ItemSlot(place));
        }
        places
    }

    /// Numbers of providers' items may be others' by now: each is learnt anew from the next tick of its item. Those of the
    /// feeds are for good.
    #[cold]
    pub(crate) fn forget_numbers(&mut self) {
        for place in 0..self.items.len() as u32 {
            if self.get(ItemSlot(place)).is_some_and(|item| !item.is_of_feeds()) {
                self.unlink(ItemSlot(place));
            }
        }
    }

    /// The item of a name.
    pub(crate) fn find(&self, named: &Named<'_>) -> Option<ItemSlot> {
        let is_it = |place: &u32| {
            self.get(ItemSlot(*place)).is_some_and(|item| {
                item.service == named.service && item.domain == named.domain && *item.name == *named.name
            })
        };
        self.by_name.find(self.hasher.hash_one(named), is_it).copied().map(ItemSlot)
    }

    /// The item of a name, made now if there is none.
    ///
    /// # Errors
    /// There are as many as may be.
    pub(crate) fn take(&mut self, named: &Named<'_>) -> Result<ItemSlot, TooManyItems> {
        match self.find(named) {
            Some(place) => Ok(place),
            None if self.unnumbered >= self.most => Err(TooManyItems),
            None => Ok(self.add(named)),
        }
    }

    fn add(&mut self, named: &Named<'_>) -> ItemSlot {
        let item = Item {
            service: named.service,
            domain: named.domain,
            name: named.name.into(),
            number: ItemId(0),
            twin: 0,
            channel: 0,
            permission: None,
            has_image: false,
            is_kept: true,
            due: Nanos(0),
            closes: Nanos(0),
            upstream: None,
            slot: Slot::default(),
            streams: Vec::new(),
        };
        self.unnumbered += 1;
        let place = match self.free.pop() {
            Some(place) => {
                self.items[place as usize] = Some(item);
                place
            }
            None => {
                self.items.push(Some(item));
                (self.items.len() - 1) as u32
            }
        };
        let (items, hasher) = (&self.items, &self.hasher);
        self.by_name.insert_unique(hasher.hash_one(named), place, |place| {
            let item = items.get(*place as usize).and_then(Option::as_ref);
            item.map_or(0, |item| hasher.hash_one(item.named()))
        });
        ItemSlot(place)
    }

    /// Items that are there.
    pub(crate) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Every item with its place.
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

    /// An item is open on a stream from now on.
    pub(crate) fn open(&mut self, place: ItemSlot, open: Open) {
        let (session, stream) = (open.session.index(), open.stream);
        let Some(item) = self.get_mut(place) else { return };
        // Cannot cut: a connection has less than 2^32 streams, and the numbers of sessions are small.
        let index = item.streams.len() as u32;
        if let Some(upstream) = &mut item.upstream {
            upstream.wishes.add(open.priority);
            // It is not one client's alone any more.
            upstream.is_held = false;
        }
        if item.streams.is_empty() {
            // Of most items a client or two are all that there are.
            item.streams.reserve_exact(1);
        }
        item.streams.push(open);
        if self.spots.len() <= session {
            self.spots.resize_with(session + 1, Spots::default);
        }
        self.spots[session].put(Spot { stream, place, index });
    }

    /// Whether a session has an item open on `most` streams, or more. Costs a look at each of the item's streams where both have as many.
    pub(crate) fn is_open_on(&self, most: usize, place: ItemSlot, session: SessionId) -> bool {
        let Some(item) = self.get(place) else { return false };
        self.open_streams(session) >= most
            && item.streams.len() >= most
            && item
                .streams
                .iter()
                .filter(|open| open.session == session)
                .nth(most.saturating_sub(1))
                .is_some()
    }

    /// The item of a stream, and how the stream stands.
    pub(crate) fn of_stream(&self, session: SessionId, stream: StreamHandle) -> Option<(&Item, &Open)> {
        let Spot { place, index, .. } = self.spot(session, stream)?;
        let item = self.get(place)?;
        Some((item, item.streams.get(index as usize)?))
    }

    /// A stream, to be changed.
    pub(crate) fn stream_mut(&mut self, session: SessionId, stream: StreamHandle) -> Option<&mut Open> {
        let Spot { place, index, .. } = self.spot(session, stream)?;
        self.get_mut(place)?.streams.get_mut(index as usize)
    }

    /// A stream is open no longer: its item's place, and what it had. The item may be gone with it.
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

    /// An item of which nothing is known and which nobody wants is gone.
    pub(crate) fn forget_if_idle(&mut self, place: ItemSlot) {
        if self.get(place).is_some_and(Item::is_forgotten) {
            self.forget(place);
        }
    }

    /// How many streams a session has.
    pub(crate) fn open_streams(&self, session: SessionId) -> usize {
        self.spots.get(session.index()).map_or(0, |spots| spots.open)
    }

    /// Streams of a session, in an order that is the same each time.
    pub(crate) fn streams_of(&self, session: SessionId) -> Vec<StreamHandle> {
        let spots = self.spots.get(session.index()).map_or(&[][..], |spots| &spots.spots);
        spots.iter().flatten().map(|spot| spot.stream).collect()
    }

    /// Places of a session's streams, of which some may be free.
    pub(crate) fn stream_places(&self, session: SessionId) -> usize {
        self.spots.get(session.index()).map_or(0, |spots| spots.spots.len())
    }

    /// The item and the stream at a place among a session's streams, where its client is to be told the item's state.
    pub(crate) fn restated_at(&self, session: SessionId, at: usize) -> Option<(ItemSlot, StreamHandle)> {
        let Spot { stream, place, index } = (*self.spots.get(session.index())?.spots.get(at)?)?;
        let open = self.get(place)?.streams.get(index as usize)?;
        (open.is_restated && open.phase == StreamPhase::Current).then_some((place, stream))
    }

    /// The client of that stream has been told.
    pub(crate) fn unmark_restated(&mut self, session: SessionId, at: usize) {
        let spots = self.spots.get(session.index());
        let stream = spots.and_then(|spots| spots.spots.get(at).copied().flatten()).map(|spot| spot.stream);
        if let Some(open) = stream.and_then(|stream| self.stream_mut(session, stream)) {
            open.is_restated = false;
        }
    }

    /// The place of a stream's item.
    pub(crate) fn place_of(&self, session: SessionId, stream: StreamHandle) -> Option<ItemSlot> {
        Some(self.spot(session, stream)?.place)
    }

    fn spot(&self, session: SessionId, stream: StreamHandle) -> Option<Spot> {
        self.spots.get(session.index())?.get(stream)
    }

    fn forget(&mut self, place: ItemSlot) {
        self.unlink(place);
        let Some(item) = self.items.get_mut(place.0 as usize).and_then(Option::take) else { return };
        self.unnumbered -= 1;
        let hash = self.hasher.hash_one(item.named());
        if let Ok(found) = self.by_name.find_entry(hash, |other| *other == place.0) {
            found.remove();
        }
        self.free.push(place.0);
    }
}
