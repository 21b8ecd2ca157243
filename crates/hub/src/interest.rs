//! Items, and who has them open.
//!
//! A tick finds its item by number, without a search; a request finds it by name. An item is there as long as the plant has
//! it or a client waits for it.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use tapeline_omm::role::provider::StreamHandle;
use tapeline_omm::rwf::Domain;
use tapeline_plant::ItemId;

use crate::SessionId;
use crate::market::SERVED;
use crate::views::ViewId;

/// An item in a domain, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// How a stream stands to its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// There is no image yet to be sent.
    Waits,
    /// An image is owed, and sent as soon as there is room: what changes until then will be in it.
    Owed,
    /// The same, and the client is to be told before that it missed something.
    Gap,
    /// The client has the image: updates follow.
    Current,
}

/// A stream on which an item is open.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) session: SessionId,
    pub(crate) stream: StreamHandle,
    pub(crate) view: ViewId,
    pub(crate) standing: Standing,
    /// An update was not sent, because the stream was paused: a client that goes on needs an image.
    pub(crate) missed: bool,
}

/// An item in a domain.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) domain: Domain,
    pub(crate) name: Box<[u8]>,
    /// The plant's number; 0 as long as it has none.
    pub(crate) number: ItemId,
    /// The channel that published it last: its group.
    pub(crate) channel: u16,
    /// The permission data that its source gave it last; `None` before its first image.
    pub(crate) permission: Option<Box<[u8]>>,
    /// There is a whole image.
    pub(crate) has_image: bool,
    pub(crate) streams: Vec<Open>,
}

/// Where a stream is found without a search: one message can open an item a hundred thousand times.
#[derive(Debug, Clone, Copy)]
struct Spot {
    place: Place,
    index: u32,
}

/// No more items are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyItems;

/// All items, and all streams on them.
#[derive(Debug)]
pub(crate) struct Interest {
    items: Vec<Option<Item>>,
    free: Vec<u32>,
    by_name: HashTable<u32>,
    /// By domain and the plant's number: places, each plus one; 0 for none.
    by_number: [Vec<u32>; SERVED.len()],
    /// By session.
    spots: Vec<HashMap<StreamHandle, Spot, RandomState>>,
    hasher: RandomState,
    most: usize,
}

/// Where a domain's items are.
fn column(domain: Domain) -> Option<usize> {
    SERVED.iter().position(|served| *served == domain)
}

impl Interest {
    /// For so many items at most in each domain.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            items: Vec::new(),
            free: Vec::new(),
            by_name: HashTable::new(),
            by_number: Default::default(),
            spots: Vec::new(),
            hasher: RandomState::default(),
            most: most.min(u32::MAX as usize / 4),
        }
    }

    /// The item that a tick is about; `None` where it has not been seen yet. Costs two indexed loads.
    #[inline]
    pub(crate) fn of_number(&self, number: ItemId, domain: Domain) -> Option<Place> {
        let places = self.by_number.get(column(domain)?)?;
        places.get(number.0 as usize)?.checked_sub(1).map(Place)
    }

    /// The item that a tick is about for the first time: new, or one that clients wait for.
    ///
    /// # Errors
    /// There are as many as may be.
    #[cold]
    pub(crate) fn appear(
        &mut self,
        number: ItemId,
        domain: Domain,
        name: &[u8],
    ) -> Result<Place, TooManyItems> {
        let at = number.0 as usize;
        let column = column(domain).filter(|_| at <= self.most).ok_or(TooManyItems)?;
        let place = self.take(domain, name)?;
        if let Some(item) = self.get_mut(place) {
            item.number = number;
        }
        let places = &mut self.by_number[column];
        if places.len() <= at {
            places.resize(at + 1, 0);
        }
        places[at] = place.0 + 1;
        Ok(place)
    }

    /// The item of a name.
    pub(crate) fn find(&self, domain: Domain, name: &[u8]) -> Option<Place> {
        let hash = self.hasher.hash_one((domain.0, name));
        let is_it = |place: &u32| {
            self.get(Place(*place)).is_some_and(|item| item.domain == domain && *item.name == *name)
        };
        self.by_name.find(hash, is_it).copied().map(Place)
    }

    /// The item of a name, made now if there is none.
    ///
    /// # Errors
    /// There are as many as may be.
    pub(crate) fn take(&mut self, domain: Domain, name: &[u8]) -> Result<Place, TooManyItems> {
        if let Some(place) = self.find(domain, name) {
            return Ok(place);
        }
        if self.by_name.len() >= SERVED.len() * self.most {
            return Err(TooManyItems);
        }
        let item = Item {
            domain,
            name: name.into(),
            number: ItemId(0),
            channel: 0,
            permission: None,
            has_image: false,
            streams: Vec::new(),
        };
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
        self.by_name.insert_unique(hasher.hash_one((domain.0, name)), place, |place| {
            let item = items.get(*place as usize).and_then(Option::as_ref);
            item.map_or(0, |item| hasher.hash_one((item.domain.0, &*item.name)))
        });
        Ok(Place(place))
    }

    #[inline]
    pub(crate) fn get(&self, place: Place) -> Option<&Item> {
        self.items.get(place.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut Item> {
        self.items.get_mut(place.0 as usize)?.as_mut()
    }

    /// An item is open on a stream from now on.
    pub(crate) fn open(&mut self, place: Place, open: Open) {
        let (session, stream) = (open.session.index(), open.stream);
        let Some(item) = self.get_mut(place) else { return };
        // Cannot cut: a connection has less than 2^32 streams, and the numbers of sessions are small.
        let index = item.streams.len() as u32;
        item.streams.push(open);
        if self.spots.len() <= session {
            self.spots.resize_with(session + 1, HashMap::default);
        }
        self.spots[session].insert(stream, Spot { place, index });
    }

    /// The item of a stream, and how the stream stands.
    pub(crate) fn of_stream(&self, session: SessionId, stream: StreamHandle) -> Option<(&Item, &Open)> {
        let Spot { place, index } = self.spot(session, stream)?;
        let item = self.get(place)?;
        Some((item, item.streams.get(index as usize)?))
    }

    /// A stream, to be changed.
    pub(crate) fn stream_mut(&mut self, session: SessionId, stream: StreamHandle) -> Option<&mut Open> {
        let Spot { place, index } = self.spot(session, stream)?;
        self.get_mut(place)?.streams.get_mut(index as usize)
    }

    /// A stream is open no longer: what it had.
    pub(crate) fn close(&mut self, session: SessionId, stream: StreamHandle) -> Option<Open> {
        let Spot { place, index } = self.spots.get_mut(session.index())?.remove(&stream)?;
        let item = self.items.get_mut(place.0 as usize)?.as_mut()?;
        let closed = item.streams.swap_remove(index as usize);
        if let Some(moved) = item.streams.get(index as usize)
            && let Some(spots) = self.spots.get_mut(moved.session.index())
            && let Some(spot) = spots.get_mut(&moved.stream)
        {
            spot.index = index;
        }
        if item.streams.is_empty() && item.number == ItemId(0) {
            self.forget(place);
        }
        Some(closed)
    }

    /// How many streams a session has.
    pub(crate) fn open_streams(&self, session: SessionId) -> usize {
        self.spots.get(session.index()).map_or(0, HashMap::len)
    }

    /// Streams of a session.
    pub(crate) fn streams_of(&self, session: SessionId) -> Vec<StreamHandle> {
        self.spots.get(session.index()).map(|spots| spots.keys().copied().collect()).unwrap_or_default()
    }

    fn spot(&self, session: SessionId, stream: StreamHandle) -> Option<Spot> {
        self.spots.get(session.index())?.get(&stream).copied()
    }

    fn forget(&mut self, place: Place) {
        let Some(item) = self.items.get_mut(place.0 as usize).and_then(Option::take) else { return };
        let hash = self.hasher.hash_one((item.domain.0, &*item.name));
        if let Ok(found) = self.by_name.find_entry(hash, |other| *other == place.0) {
            found.remove();
        }
        self.free.push(place.0);
    }
}
