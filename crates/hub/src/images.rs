//! What the items are now: the images that clients begin with.

use tapeline_omm::rwf::{DataState, DataType, MessageView};
use tapeline_omm::{Fid, Refused, State};
use tapeline_plant::Seq;
use tapeline_plant::cache::{Answer, Applied, Cache, ItemKey, Limits, Memory, View};

use crate::Settings;
use crate::interest::Item;
use crate::market::SERVED;

/// Room for an image at first; nearly all are shorter.
const FIRST: usize = 4 << 10;
/// The longest image: the longest message that a connection takes if nothing else is set.
const MOST: usize = 16 << 20;
/// Room that is kept for the next one.
const KEPT: usize = 256 << 10;

/// All images.
#[derive(Debug)]
pub(crate) struct Images {
    cache: Cache,
    service: u16,
    room: Vec<u8>,
}

/// An image, ready to be sent.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    pub(crate) container: DataType,
    pub(crate) payload: &'a [u8],
    /// It lacks something: it did not fit the cache.
    is_broken: bool,
}

impl Images {
    /// None yet.
    pub(crate) fn new(settings: &Settings) -> Self {
        let (items, bytes) = (settings.max_items.saturating_mul(SERVED.len()), settings.cache_bytes);
        let mut cache = Cache::new(Limits { items, bytes, ..Limits::default() });
        cache.set_dictionary(settings.service_id, &settings.dictionary);
        Self { cache, service: settings.service_id, room: Vec::new() }
    }

    /// Folds a refresh or an update into the image of its item: whether a whole image is there now. What the cache refuses
    /// makes the image one that is not complete.
    pub(crate) fn apply(&mut self, item: &Item, seq: Seq, message: &[u8]) -> bool {
        let key = ItemKey { service: self.service, domain: item.domain, name: &item.name };
        match self.cache.apply(&key, seq, message) {
            Ok(Applied::Refresh { is_complete }) => is_complete,
            _ => item.has_image,
        }
    }

    /// The image of an item, or these of its fields.
    pub(crate) fn give(&mut self, item: &Item, fids: Option<&[Fid]>) -> Option<Image<'_>> {
        let Self { cache, service, room } = self;
        let image = cache.image(&ItemKey { service: *service, domain: item.domain, name: &item.name })?;
        let answer = Answer { view: fids.map_or(View::All, View::Fields), ..Answer::to(0) };
        if room.len() > KEPT || room.is_empty() {
            *room = vec![0; FIRST];
        }
        let len = loop {
            match image.parts(answer).write(room) {
                Ok(len) => break len?,
                Err(Refused::Full) if room.len() < MOST => room.resize(room.len() * 4, 0),
                Err(_) => return None,
            }
        };
        let message = MessageView::parse(room.get(..len)?).ok()?;
        let is_broken = !image.is_complete();
        Some(Image { container: message.container(), payload: message.payload(), is_broken })
    }

    /// What all images take.
    pub(crate) fn memory(&self) -> Memory {
        self.cache.memory()
    }
}

impl Image<'_> {
    /// Its state, where the channel that it comes from has this one.
    pub(crate) fn state<'s>(&self, of_channel: State<'s>) -> State<'s> {
        if !self.is_broken {
            return of_channel;
        }
        State { data: DataState::SUSPECT, text: b"This image is not complete", ..of_channel }
    }
}
