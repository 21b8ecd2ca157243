//! Open items of an application, and the streams that serve them.
//!
//! An application opens *items* and has a [`Handle`] for each; the connection carries *streams*. Items with the same
//! request share a stream: it is requested once, and each message on it goes to every handle. Snapshots and private
//! streams are never shared, because their data is for one requester.
//!
//! Finding a stream by its id is one table lookup, finding its handles is a list in another table, and neither
//! allocates. An update takes the same steps whatever is open; with a hundred thousand items in a scattered order each
//! step is a cache miss (`cargo bench -p tapeline-omm --bench consumer`). Memory is bounded by the limits that the
//! application sets: [`Consumer::BYTES_PER_ITEM`](super::consumer::Consumer::BYTES_PER_ITEM) for an item with a stream
//! of its own, plus its name and group id.

mod key;
mod slots;
mod stream;
mod stream_ids;
mod timers;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::hint::black_box;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

pub(crate) use key::{More, StreamKey};
use slots::NOWHERE;
pub(crate) use slots::Slots;
pub(crate) use stream::{Image, Interest, Phase, Stream, ViewOf};
pub(crate) use stream_ids::{Owner, StreamIds};
pub(crate) use timers::Timers;

/// Handle of an open item. It is valid until the item is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    pub(super) place: u32,
    pub(super) turn: u32,
}

impl Handle {
    pub(super) const fn of(place: u32, turn: u32) -> Self {
        Self { place, turn }
    }
}

/// Maximum number of messages that are prefetched for together: what they need stays in the first-level cache until they are handled.
pub(crate) const MOST_EXPECTED: usize = 16;
/// Minimum number of messages for prefetching.
const FEWEST_EXPECTED: usize = 4;

/// Number of queued streams that never causes a sweep.
const FEW: usize = 64;

/// Items, their streams, and the queue of their output.
#[derive(Debug)]
pub(crate) struct Watchlist {
    interests: Slots<Interest>,
    /// Streams that are open or wanted, including those whose close is still to be sent. Only the list adds and removes
    /// them.
    pub(crate) streams: Slots<Stream>,
    /// Streams that other items may join.
    by_key: HashTable<u32>,
    hasher: RandomState,
    pub(crate) ids: StreamIds,
    /// Streams with output to send, each once.
    work: VecDeque<u32>,
}

impl Watchlist {
    /// Memory for an item, bytes, without its name, group id and view: its entry, its stream's entry, the stream's
    /// entry by key, its entry in the queue of output, and twice that in the table of ids (which may be four times as
    /// long as there are streams, just after it grew).
    pub(crate) const BYTES_PER_ITEM: usize = Slots::<Interest>::BYTES
        + Slots::<Stream>::BYTES
        + 2 * size_of::<u32>()
        + 2 * size_of::<u32>()
        + 4 * StreamIds::BYTES;

    pub(crate) fn new(first_id: i32) -> Self {
        Self {
            interests: Slots::default(),
            streams: Slots::default(),
            by_key: HashTable::new(),
            hasher: RandomState::default(),
            ids: StreamIds::new(first_id),
            work: VecDeque::new(),
        }
    }

    /// Makes room for `items` in total, each with a stream of its own.
    pub(crate) fn reserve(&mut self, items: usize) {
        self.interests.reserve(items);
        self.streams.reserve(items);
        let (streams, hasher) = (&self.streams, &self.hasher);
        self.by_key.reserve(items.saturating_sub(self.by_key.len()), |place| {
            streams.get(*place).map_or(0, |stream| hasher.hash_one(&stream.key))
        });
        self.ids.reserve(items);
    }

    /// Returns the number of open items.
    pub(crate) const fn len(&self) -> usize {
        self.interests.len()
    }

    /// Opens an item: joins the stream of `key`, or creates one. The necessary output is queued.
    pub(crate) fn open(&mut self, key: StreamKey, interest: Interest, batch: u32) -> Handle {
        let hash = self.hasher.hash_one(&key);
        let shared = if key.is_shareable() {
            self.by_key
                .find(hash, |place| self.streams.get(*place).is_some_and(|stream| stream.key == key))
                .copied()
        } else {
            None
        };
        let stream = shared.unwrap_or_else(|| {
            let is_shareable = key.is_shareable();
            let place = self.streams.insert(Stream::new(key, batch));
            if is_shareable {
                let (streams, hasher) = (&self.streams, &self.hasher);
                self.by_key.insert_unique(hash, place, |place| {
                    streams.get(*place).map_or(0, |stream| hasher.hash_one(&stream.key))
                });
            }
            place
        });
        let first = self.streams.get(stream).map_or(NOWHERE, |stream| stream.first);
        let place = self.interests.insert(Interest { stream, next: first, previous: NOWHERE, ..interest });
        if let Some(first) = self.interests.get_mut(first) {
            first.previous = place;
        }
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.first = place;
        }
        self.queue(stream);
        Handle { place, turn: self.interests.turn(place) }
    }

    /// Closes an item. A stream without items is closed later, or removed at once if it was never requested. `false`:
    /// the item was not open.
    pub(crate) fn close(&mut self, handle: Handle) -> bool {
        let Some(place) = self.place(handle) else { return false };
        let Some(interest) = self.interests.remove(place) else { return false };
        if let Some(next) = self.interests.get_mut(interest.next) {
            next.previous = interest.previous;
        }
        match self.interests.get_mut(interest.previous) {
            Some(previous) => previous.next = interest.next,
            None => {
                if let Some(stream) = self.streams.get_mut(interest.stream) {
                    stream.first = interest.next;
                }
            }
        }
        match self.streams.get(interest.stream) {
            Some(stream) if stream.first == NOWHERE => {
                self.unlist(interest.stream);
                if self.streams.get(interest.stream).is_some_and(|stream| stream.id == 0) {
                    self.streams.remove(interest.stream);
                } else {
                    self.queue(interest.stream);
                }
            }
            Some(_) => self.queue(interest.stream),
            None => {}
        }
        true
    }

    /// Removes a stream: its id is free, and its remaining handles are invalid.
    pub(crate) fn remove(&mut self, place: u32) {
        self.unlist(place);
        self.release_id(place);
        let Some(stream) = self.streams.remove(place) else { return };
        let mut next = stream.first;
        while let Some(interest) = self.interests.remove(next) {
            next = interest.next;
        }
    }

    /// Prevents further items from joining the stream.
    fn unlist(&mut self, place: u32) {
        let Some(stream) = self.streams.get(place) else { return };
        if !stream.key.is_shareable() {
            return;
        }
        let hash = self.hasher.hash_one(&stream.key);
        if let Ok(entry) = self.by_key.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
    }

    /// Assigns the stream an id for its request.
    pub(crate) fn take_id(&mut self, place: u32) -> i32 {
        let id = self.ids.take(Owner::Stream(place));
        if let Some(stream) = self.streams.get_mut(place) {
            stream.id = id;
        }
        id
    }

    /// Frees the stream's id.
    pub(crate) fn release_id(&mut self, place: u32) {
        if let Some(stream) = self.streams.get_mut(place) {
            self.ids.free(stream.id);
            stream.id = 0;
        }
    }

    /// Queues the stream, once.
    pub(crate) fn queue(&mut self, place: u32) {
        if let Some(stream) = self.streams.get_mut(place)
            && !stream.is_queued
        {
            stream.is_queued = true;
            self.work.push_back(place);
            if self.work.len() > 2 * self.streams.len() + FEW {
                self.sweep();
            }
        }
    }

    /// Removes queue entries of streams that no longer exist, and duplicates, which occur when a place is reused.
    fn sweep(&mut self) {
        let streams = &mut self.streams;
        self.work.retain(|place| {
            streams.get_mut(*place).is_some_and(|stream| std::mem::take(&mut stream.is_queued))
        });
        for place in &self.work {
            if let Some(stream) = streams.get_mut(*place) {
                stream.is_queued = true;
            }
        }
    }

    /// Returns `true` if no stream has output to send.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_empty()
    }

    /// Removes and returns the first stream of the queue.
    pub(crate) fn next_in_line(&mut self) -> Option<u32> {
        loop {
            let place = self.work.pop_front()?;
            if let Some(stream) = self.streams.get_mut(place)
                && stream.is_queued
            {
                stream.is_queued = false;
                return Some(place);
            }
        }
    }

    /// Returns the stream to the front of the queue: there was no space for its output.
    pub(crate) fn put_back(&mut self, place: u32) {
        if let Some(stream) = self.streams.get_mut(place)
            && !stream.is_queued
        {
            stream.is_queued = true;
            self.work.push_front(place);
        }
    }

    /// Returns the place of the item's entry, if the item is open.
    fn place(&self, handle: Handle) -> Option<u32> {
        self.interests.is_current(handle.place, handle.turn).then_some(handle.place)
    }

    /// Returns the item's stream.
    pub(crate) fn stream_of(&self, handle: Handle) -> Option<u32> {
        self.interest(handle).map(|interest| interest.stream)
    }

    pub(crate) fn interest(&self, handle: Handle) -> Option<&Interest> {
        self.interests.get(self.place(handle)?)
    }

    pub(crate) fn interest_mut(&mut self, handle: Handle) -> Option<&mut Interest> {
        self.interests.get_mut(self.place(handle)?)
    }

    /// Returns the items of a stream, newest first.
    pub(crate) fn items(&self, stream: u32) -> impl Iterator<Item = (Handle, &Interest)> {
        let mut next = self.streams.get(stream).map_or(NOWHERE, |stream| stream.first);
        std::iter::from_fn(move || {
            let place = next;
            let interest = self.interests.get(place)?;
            next = interest.next;
            Some((Handle { place, turn: self.interests.turn(place) }, interest))
        })
    }

    /// Prefetches the entries of the streams with these ids: of a hundred thousand, none is in the processor's caches when its message comes.
    /// Table by table, because loads that do not depend on each other are in progress at the same time. Affects only the caches; an id that
    /// is not open does no harm. Returns the number of ids.
    pub(crate) fn expect(&self, ids: impl Iterator<Item = i32>) -> usize {
        let (mut places, mut count) = ([NOWHERE; MOST_EXPECTED], 0);
        for (place, id) in places.iter_mut().zip(ids) {
            count += 1;
            if let Some(Owner::Stream(found)) = self.ids.find(id) {
                *place = found;
            }
        }
        if count < FEWEST_EXPECTED {
            return count;
        }
        for place in &mut places[..count] {
            *place = self.streams.get(*place).map_or(NOWHERE, |stream| stream.first);
        }
        for place in &places[..count] {
            black_box(self.interests.get(*place).map(|interest| interest.closure));
        }
        count
    }

    /// Applies `change` to each item of a stream.
    pub(crate) fn change_items(&mut self, stream: u32, mut change: impl FnMut(Handle, &mut Interest)) {
        let mut next = self.streams.get(stream).map_or(NOWHERE, |stream| stream.first);
        loop {
            let (place, turn) = (next, self.interests.turn(next));
            let Some(interest) = self.interests.get_mut(place) else { return };
            next = interest.next;
            change(Handle { place, turn }, interest);
        }
    }
}
