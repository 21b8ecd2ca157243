//! The last-value cache: every item's image as the fold of its refreshes and updates.
//!
//! A message goes in ([`Cache::apply`]), an image comes out ([`Cache::image`]): the state of a client that has received all messages from the
//! start. The cache does no I/O, reads no clock, and holds no more than its [`Limits`] allow.
//!
//! The handling of data follows the documentation of LSEG's Transport API (`rsslMsg.h`, `rsslMap.h`, `rsslVector.h`,
//! `rsslFilterList.h`, `rsslSeries.h`) and the EMA RDM usage guide (2.6.3, clearing the cache; 6.4.2, ripple fields):
//!
//! | container | a refresh without CLEAR_CACHE, an update |
//! |---|---|
//! | field list | by field; new fields are added |
//! | element list | by name |
//! | filter list | by id: SET replaces, UPDATE folds into the existing data, CLEAR leaves the id, empty |
//! | map | by key: ADD adds, or folds into the existing entry; UPDATE folds into the existing entry; DELETE removes |
//! | vector | by index: SET replaces, UPDATE folds into the data, CLEAR leaves the index, empty; INSERT and DELETE of a sorted one move those above |
//! | series | rows are appended |
//! | bytes (OPAQUE, XML, JSON, ANSI_PAGE), messages | replaced |
//!
//! Summaries and the data of entries are folded as separate containers; containers in fields and elements are values, and replaced. Set data
//! is stored as standard data. An update of an entry that does not exist is ignored.
//!
//! A refresh with CLEAR_CACHE starts a new image. Text of a field whose type in the service's dictionary is RMTES_STRING can be a partial
//! update, which is applied to the existing text. An update moves the old value of each field that it contains, in a payload's own field
//! list, to the ripple field in the dictionary, and so on, unless the update contains that field too, is marked DO_NOT_RIPPLE, or the image
//! does not have that field. Messages marked DO_NOT_CACHE are ignored. Permission data of an update applies to that update alone and is not
//! stored.
//!
//! ```
//! use tapeline_omm::rwf::{self, DataType, Domain, MessageView, RefreshHeader, flags};
//! use tapeline_omm::{FieldList, FieldListEncoder, Real, State, fid};
//! use tapeline_plant::cache::{AnswerParameters, Cache, ItemKey, Limits};
//! use tapeline_plant::Seq;
//!
//! let price = |room: &mut [u8], bid| {
//!     let mut list = FieldListEncoder::new(room)?;
//!     list.real(fid::BID, Real::decimal(bid, 2))?;
//!     Ok(list.finish())
//! };
//! let mut cache = Cache::new(Limits::default());
//! let item = ItemKey { service: 1, domain: Domain::MARKET_PRICE, name: b"AAPL" };
//! let mut out = [0; 256];
//!
//! let mut refresh = RefreshHeader::new(item.domain, 5, State::OPEN_OK, DataType::FIELD_LIST);
//! refresh.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
//! let len = refresh.encode_with(&mut out, |room| price(room, 3991))?;
//! cache.apply(&item, Seq(1), &out[..len])?;
//!
//! let header = rwf::update_header(&mut out, item.domain, 5, rwf::UpdateType::QUOTE, DataType::FIELD_LIST)?;
//! let len = header + price(&mut out[header..], 3992)?;
//! cache.apply(&item, Seq(2), &out[..len])?;
//!
//! let image = cache.image(&item).expect("applied above");
//! assert_eq!((image.seq(), image.is_complete()), (Seq(2), true));
//! let mut parts = image.parts(AnswerParameters::to(77));
//! let len = parts.write(&mut out)?.expect("there is always one part");
//! let message = MessageView::parse(&out[..len])?;
//! let bid = FieldList::parse(message.payload())?.find(fid::BID)?.expect("in the image").real()?;
//! assert_eq!((message.stream_id(), bid), (77, Some(Real::decimal(3992, 2))));
//! assert_eq!(parts.write(&mut out)?, None);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod body;
mod fields;
mod fold;
mod image;
mod item;
mod limits;
mod record;
mod rows;
mod shape;

use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use tapeline_feed::prefetch_lines;
use tapeline_omm::Dictionary;
use tapeline_omm::rwf::{DataType, Header, MessageClass, MessageView, RefreshHeader, StreamState, flags};

use crate::Seq;
use body::{Body, Tools};
use item::{Item, Progress};
use record::{Scratch, Words};
use shape::Shapes;

pub(crate) use image::copy;
pub use image::{AnswerParameters, Image, Parts, View};
pub use item::ItemKey;
pub use limits::{CacheCounters, Limits, Memory, NotApplied};

/// The effect of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Applied {
    /// A refresh: the image has begun, continues, or is complete.
    Refresh {
        /// `true` if the image is complete and can be sent.
        is_complete: bool,
    },
    /// An update.
    Update,
    /// A status: state, group, permission data, or an image cleared.
    Status {
        /// `true` if the stream is still open. Otherwise no more messages follow, and the item must be
        /// [removed](Cache::remove).
        is_open: bool,
    },
    /// No effect: the message must not be cached, is of a class without an effect on images, or is an update or status of an item that does
    /// not exist.
    PassedBy,
}

/// The place of an item, for callers that apply many messages to it: saves the lookup by key. Void after the item is [removed](Cache::remove), and
/// then looked up again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    place: u32,
    /// The serial of the item in it, from 1; 0 for none.
    serial: u32,
}

/// A cache of item images. See the [module](self).
#[derive(Debug, Default)]
pub struct Cache {
    limits: Limits,
    items: Vec<Option<Item>>,
    free: Vec<u32>,
    /// The serial of the newest item.
    serial: u32,
    /// Indexes in `items`, by key.
    index: HashTable<u32>,
    hasher: RandomState,
    shapes: Shapes,
    dictionaries: Vec<Arc<Dictionary>>,
    /// Indexes in `dictionaries`, by service.
    services: Vec<(u16, u16)>,
    scratch: Scratch,
    /// Buffers for folding.
    rooms: Vec<Vec<u8>>,
    /// Bytes of all items' labels and bodies.
    held: usize,
    counters: CacheCounters,
}

impl Cache {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits: Limits { items: limits.items.min(u32::MAX as usize), ..limits }, ..Self::default() }
    }

    /// Sets the dictionary of a service. Without one, values do not ripple and text is replaced as a whole. Applies to new items at once, and to
    /// existing ones from their next refresh with CLEAR_CACHE.
    pub fn set_dictionary(&mut self, service: u16, dictionary: &Arc<Dictionary>) {
        let known = self.dictionaries.iter().position(|known| Arc::ptr_eq(known, dictionary));
        let number = known.unwrap_or_else(|| {
            self.dictionaries.push(Arc::clone(dictionary));
            self.dictionaries.len() - 1
        });
        self.services.retain(|(known, _)| *known != service);
        // There are at most 65,536 services, and each has had only a few dictionaries.
        self.services.push((service, number as u16));
    }

    /// Applies a complete RWF message of an item; `seq` is its place in the plant's sequence. A refresh of an unknown item adds the item.
    ///
    /// An update costs about twice the decoding of its values (bench `cache`), and allocates only if its image becomes longer than ever before.
    ///
    /// # Errors
    /// [`NotApplied`]. A message is checked before anything of it is applied, so it is applied as a whole or not at all; beyond a limit the image is
    /// dropped.
    pub fn apply(&mut self, key: &ItemKey<'_>, seq: Seq, message: &[u8]) -> Result<Applied, NotApplied> {
        self.apply_at(&mut Slot::default(), key, seq, message)
    }

    /// Does the same as [`Self::apply`] for an item whose slot the caller keeps between messages. A void slot (the default) is looked up and
    /// corrected.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn apply_at(
        &mut self,
        slot: &mut Slot,
        key: &ItemKey<'_>,
        seq: Seq,
        message: &[u8],
    ) -> Result<Applied, NotApplied> {
        let known = self.item_at(*slot).map(|_| slot.place);
        let place = known.or_else(|| self.find(key));
        let done = match MessageView::parse(message) {
            Ok(view) => self.apply_view((key, place), seq, &view),
            Err(fault) => Err(self.refuse(place, fault.into())),
        };
        if known.is_none() {
            *slot = self.slot(key);
        }
        match &done {
            Ok(Applied::Refresh { .. }) => self.counters.refreshes += 1,
            Ok(Applied::Update) => self.counters.updates += 1,
            Ok(Applied::Status { .. }) => self.counters.statuses += 1,
            Ok(Applied::PassedBy) => self.counters.passed_by += 1,
            Err(NotApplied::Limit { .. }) => self.counters.over_limit += 1,
            Err(_) => self.counters.malformed += 1,
        }
        done
    }

    #[inline]
    fn apply_view(
        &mut self,
        (key, place): (&ItemKey<'_>, Option<u32>),
        seq: Seq,
        message: &MessageView<'_>,
    ) -> Result<Applied, NotApplied> {
        match (message.class(), place) {
            (MessageClass::UPDATE, Some(place)) => self.update(place, seq, message),
            (MessageClass::REFRESH, _) => self.refresh(key, place, seq, message),
            (MessageClass::STATUS, Some(place)) => self.status(place, seq, message),
            _ => Ok(Applied::PassedBy),
        }
    }

    fn update(&mut self, place: u32, seq: Seq, message: &MessageView<'_>) -> Result<Applied, NotApplied> {
        use flags::update as flag;
        let said = message.flags();
        let Some(Some(item)) = self.items.get_mut(place as usize) else { return Ok(Applied::PassedBy) };
        if said.has(flag::DO_NOT_CACHE) || item.progress == Progress::Empty {
            return Ok(Applied::PassedBy);
        }
        let mut sequence = None;
        if said.has(flag::HAS_SEQ_NUM) {
            match message.header() {
                Ok(header) => sequence = header.sequence(),
                Err(fault) => return Err(self.refuse(Some(place), fault.into())),
            }
        }
        let has_data = message.container() != DataType::NO_DATA;
        if has_data && message.container() != item.container {
            let (image, update) = (item.container, message.container());
            return Err(self.refuse(Some(place), NotApplied::Mismatch { image, update }));
        }
        let ripples = !said.has(flag::DO_NOT_RIPPLE);
        if !has_data || item.body.overwrite(message.payload(), ripples, &mut self.shapes) {
            item.note_update(seq, sequence);
            return Ok(Applied::Update);
        }
        self.fold(place, message.payload(), ripples)?;
        if let Some(Some(item)) = self.items.get_mut(place as usize) {
            item.note_update(seq, sequence);
        }
        Ok(Applied::Update)
    }

    /// Folds the data of an update into an image of the same container.
    #[inline(never)]
    fn fold(&mut self, place: u32, payload: &[u8], ripples: bool) -> Result<(), NotApplied> {
        let Some(Some(item)) = self.items.get_mut(place as usize) else { return Ok(()) };
        let before = item.body.bytes();
        let mut tools = Tools {
            shapes: &mut self.shapes,
            scratch: &mut self.scratch,
            limits: &self.limits,
            words: words(&self.dictionaries, item.dictionary()),
            rooms: &mut self.rooms,
        };
        let applied = item.body.apply(item.container, payload, ripples, &mut tools);
        let after = item.body.bytes();
        self.held = self.held - before + after;
        applied.map_err(|why| self.refuse(Some(place), why))?;
        if after > before { self.check_bytes(place) } else { Ok(()) }
    }

    #[inline(never)]
    fn refresh(
        &mut self,
        key: &ItemKey<'_>,
        place: Option<u32>,
        seq: Seq,
        message: &MessageView<'_>,
    ) -> Result<Applied, NotApplied> {
        let header = match message.header() {
            Ok(Header::Refresh(header)) => header,
            Ok(_) => return Ok(Applied::PassedBy),
            Err(fault) => return Err(self.refuse(place, fault.into())),
        };
        if header.flags.has(flags::refresh::DO_NOT_CACHE) {
            return Ok(Applied::PassedBy);
        }
        let place = match place {
            Some(place) => place,
            None => self.begin(key)?,
        };
        let done = self.apply_refresh(place, seq, &header, message.payload());
        let is_complete = done.map_err(|why| self.refuse(Some(place), why))?;
        self.check_bytes(place)?;
        Ok(Applied::Refresh { is_complete })
    }

    fn apply_refresh(
        &mut self,
        place: u32,
        seq: Seq,
        header: &RefreshHeader<'_>,
        payload: &[u8],
    ) -> Result<bool, NotApplied> {
        use flags::refresh as flag;
        let dictionary = self.dictionary_of(place);
        let Some(Some(item)) = self.items.get_mut(place as usize) else { return Ok(false) };
        let is_first = item.progress != Progress::Begun && header.part.unwrap_or(0) == 0;
        let begins = header.flags.has(flag::CLEAR_CACHE)
            || item.progress == Progress::Empty
            || header.container != item.container && header.container != DataType::NO_DATA;
        // Only an image from its start repairs lost data.
        let heals = header.flags.has(flag::CLEAR_CACHE) || header.flags.has(flag::SOLICITED) && is_first;
        let before = item.bytes();
        let dictionary = if begins { dictionary } else { item.dictionary() };
        let mut tools = Tools {
            shapes: &mut self.shapes,
            scratch: &mut self.scratch,
            limits: &self.limits,
            words: words(&self.dictionaries, dictionary),
            rooms: &mut self.rooms,
        };
        if begins {
            // Uses a separate body, so that an error leaves the old one unchanged.
            let mut body = Body::None;
            if header.container != DataType::NO_DATA
                && let Err(why) = body.apply(header.container, payload, false, &mut tools)
            {
                body.clear(&mut self.shapes);
                return Err(why);
            }
            std::mem::replace(&mut item.body, body).clear(&mut self.shapes);
            item.container = header.container;
            item.set_dictionary(dictionary);
        } else if header.container != DataType::NO_DATA && !item.body.overwrite(payload, false, tools.shapes)
        {
            let applied = item.body.apply(header.container, payload, false, &mut tools);
            if applied.is_err() {
                self.held = self.held - before + item.bytes();
                applied?;
            }
        }
        item.note_refresh(header);
        item.seq = seq;
        item.is_broken &= !heals;
        item.progress =
            if header.flags.has(flag::REFRESH_COMPLETE) { Progress::Complete } else { Progress::Begun };
        self.held = self.held - before + item.bytes();
        Ok(item.progress == Progress::Complete && !item.is_broken)
    }

    fn status(&mut self, place: u32, seq: Seq, message: &MessageView<'_>) -> Result<Applied, NotApplied> {
        let header = match message.header() {
            Ok(Header::Status(header)) => header,
            Ok(_) => return Ok(Applied::PassedBy),
            Err(fault) => return Err(self.refuse(Some(place), fault.into())),
        };
        let Some(Some(item)) = self.items.get_mut(place as usize) else { return Ok(Applied::PassedBy) };
        let before = item.bytes();
        item.note_status(&header);
        item.seq = seq;
        if header.flags.has(flags::status::CLEAR_CACHE) {
            item.body.clear(&mut self.shapes);
            item.progress = Progress::Empty;
            // The lost data is cleared as well.
            item.is_broken = false;
        }
        let is_open = matches!(item.state().stream, StreamState::OPEN | StreamState::NON_STREAMING);
        self.held = self.held - before + item.bytes();
        self.check_bytes(place)?;
        Ok(Applied::Status { is_open })
    }

    /// Removes an item with its image. Returns `true` if the item was present.
    pub fn remove(&mut self, key: &ItemKey<'_>) -> bool {
        let Some(place) = self.find(key) else { return false };
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.index.find_entry(hash, |found| *found == place) {
            entry.remove();
        }
        if let Some(mut item) = self.items.get_mut(place as usize).and_then(Option::take) {
            self.held -= item.bytes();
            item.body.clear(&mut self.shapes);
            self.free.push(place);
        }
        true
    }

    /// Returns the image of an item; `None` if the cache does not have it.
    #[must_use]
    pub fn image(&self, key: &ItemKey<'_>) -> Option<Image<'_>> {
        let item = self.items.get(self.find(key)? as usize)?.as_ref()?;
        Some(Image::new(item))
    }

    /// Returns the image in a slot; `None` if the slot is void.
    #[inline]
    #[must_use]
    pub fn image_at(&self, slot: Slot) -> Option<Image<'_>> {
        self.item_at(slot).map(Image::new)
    }

    /// Returns the slot of an item.
    #[must_use]
    pub fn slot(&self, key: &ItemKey<'_>) -> Slot {
        let item = self.find(key).and_then(|place| Some((place, self.items.get(place as usize)?.as_ref()?)));
        item.map_or_else(Slot::default, |(place, item)| Slot { place, serial: item.serial })
    }

    /// Prefetches an item to which a message will soon be applied: with 100,000 items none is in the processor's caches. Prefetches of several
    /// items are in progress at the same time, and nothing waits for them. Call [`expect_image`](Self::expect_image) for the same items later.
    #[inline]
    pub fn expect(&self, slot: Slot) {
        if let Some(place) = self.items.get(slot.place as usize) {
            prefetch_lines(place);
        }
    }

    /// Prefetches an item's image; waits for the item itself.
    #[inline]
    pub fn expect_image(&self, slot: Slot) {
        if let Some(Item { body: Body::Record(record), .. }) = self.item_at(slot) {
            record.expect();
        }
    }

    #[inline]
    fn item_at(&self, slot: Slot) -> Option<&Item> {
        let item = self.items.get(slot.place as usize)?.as_ref()?;
        (item.serial == slot.serial).then_some(item)
    }

    /// Returns all items, in arbitrary order.
    pub fn images(&self) -> impl Iterator<Item = (ItemKey<'_>, Image<'_>)> {
        self.items.iter().flatten().map(|item| (item.key(), Image::new(item)))
    }

    /// Returns the contents and memory of the cache. The working memory of [`Self::apply`], about 0.5 MB in total, is not included.
    #[must_use]
    pub fn memory(&self) -> Memory {
        Memory { items: self.index.len(), bytes: self.bytes(), shapes: self.shapes.len() }
    }

    /// Returns the counters of the cache.
    #[must_use]
    pub const fn counters(&self) -> CacheCounters {
        self.counters
    }

    fn bytes(&self) -> usize {
        // The index has one control byte for each place.
        let places = self.items.capacity() * size_of::<Option<Item>>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.capacity() * (size_of::<u32>() + 1);
        places + self.shapes.bytes() + self.held
    }

    #[inline]
    fn find(&self, key: &ItemKey<'_>) -> Option<u32> {
        let is_same = |place: &u32| {
            self.items.get(*place as usize).and_then(Option::as_ref).is_some_and(|item| item.key() == *key)
        };
        self.index.find(self.hasher.hash_one(key), is_same).copied()
    }

    fn dictionary_of(&self, place: u32) -> Option<u16> {
        let item = self.items.get(place as usize)?.as_ref()?;
        self.services.iter().find(|(service, _)| *service == item.service).map(|(_, number)| *number)
    }

    /// Creates a place for a new item.
    fn begin(&mut self, key: &ItemKey<'_>) -> Result<u32, NotApplied> {
        if self.index.len() >= self.limits.items {
            return Err(NotApplied::Limit { what: "items", limit: self.limits.items });
        }
        if self.bytes() > self.limits.bytes {
            return Err(NotApplied::Limit { what: "bytes", limit: self.limits.bytes });
        }
        // The serial does not repeat between two uses of a slot.
        self.serial = self.serial.wrapping_add(1).max(1);
        let item = Item::new(key, self.serial);
        self.held += item.bytes();
        let place = self.free.pop().unwrap_or_else(|| {
            self.items.push(None);
            // Lossless: the number of items is limited by a u32.
            (self.items.len() - 1) as u32
        });
        if let Some(room) = self.items.get_mut(place as usize) {
            *room = Some(item);
        }
        let (items, hasher) = (&self.items, &self.hasher);
        self.index.insert_unique(hasher.hash_one(key), place, |place| {
            items.get(*place as usize).and_then(Option::as_ref).map_or(0, |item| hasher.hash_one(item.key()))
        });
        Ok(place)
    }

    /// Refuses bytes beyond a limit, and drops the image that caused the excess.
    #[inline]
    fn check_bytes(&mut self, place: u32) -> Result<(), NotApplied> {
        let limit = self.limits.bytes;
        if self.bytes() <= limit {
            return Ok(());
        }
        Err(self.refuse(Some(place), NotApplied::Limit { what: "bytes", limit }))
    }

    /// Marks the image for which a message was refused.
    #[cold]
    fn refuse(&mut self, place: Option<u32>, why: NotApplied) -> NotApplied {
        if let Some(item) = place.and_then(|place| self.items.get_mut(place as usize)?.as_mut()) {
            item.is_broken = true;
            if matches!(why, NotApplied::Limit { .. }) {
                self.held -= item.body.bytes();
                item.body.clear(&mut self.shapes);
                item.progress = Progress::Empty;
            }
        }
        why
    }
}

#[inline]
fn words(dictionaries: &[Arc<Dictionary>], number: Option<u16>) -> Words<'_> {
    let number = number?;
    dictionaries.get(usize::from(number)).map(|dictionary| (number, &**dictionary))
}
