//! The images of the items, with which clients begin.

use tapeline_omm::role::Sent;
use tapeline_omm::rwf::{DataState, Header, MessageView, Qos, RefreshHeader};
use tapeline_omm::{Fid, Refused, State};
use tapeline_plant::Seq;
use tapeline_plant::cache::{self, AnswerParameters, Applied, Cache, Image, Limits, Memory, View};

use crate::Settings;
use crate::interest::Item;
use crate::request_handler::copy;
use crate::status_texts::IMAGE_INCOMPLETE;

/// Size in bytes of a message of an image in parts, if its entries allow: it fits in one buffer of a connection (RSSL's default of 6,144 bytes).
const PART: usize = 6_000;
/// Buffer that is kept for the next image; nearly all are shorter.
const KEPT: usize = 256 << 10;

/// Writes the data of an image, or of a part, into a buffer; returns the number of bytes.
type Write<'w> = &'w mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>;

#[derive(Debug)]
pub(crate) struct Images {
    pub(crate) cache: Cache,
    most: usize,
    room: Vec<u8>,
}

/// State and group of an image of the feeds, as set by its channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label<'a> {
    pub(crate) state: State<'a>,
    pub(crate) group: &'a [u8],
}

/// The effect of a message on the image of its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Folded {
    /// The image is complete now.
    pub(crate) is_whole: bool,
    /// The message is malformed.
    pub(crate) is_malformed: bool,
    /// The message is not cached: clients that wait for an image start with it.
    pub(crate) is_passed_by: bool,
    /// The cache has no capacity for it.
    pub(crate) is_over_limit: bool,
}

impl Folded {
    /// The effect of a message of an item that is not cached.
    pub(crate) const NOT_KEPT: Self =
        Self { is_whole: false, is_malformed: false, is_passed_by: true, is_over_limit: false };
}

impl Images {
    /// Creates an empty set of images of these services.
    pub(crate) fn new(settings: &Settings, services: impl Iterator<Item = u16>) -> Self {
        let (items, bytes) = (settings.max_items.saturating_mul(2), settings.cache_bytes);
        let limits = Limits { items, bytes, image_bytes: settings.image_bytes, ..Limits::default() };
        let mut cache = Cache::new(limits);
        for service in services {
            cache.set_dictionary(service, &settings.dictionary);
        }
        Self { cache, most: settings.image_bytes.saturating_add(PART), room: Vec::new() }
    }

    /// Folds a message into the image of its item. If the cache refuses it, the image becomes incomplete.
    pub(crate) fn apply(&mut self, item: &mut Item, seq: Seq, message: &[u8]) -> Folded {
        let mut slot = item.slot;
        let applied = self.cache.apply_at(&mut slot, &item.key(), seq, message);
        item.slot = slot;
        let is_whole = match applied {
            Ok(Applied::Refresh { is_complete }) => is_complete,
            _ => item.has_image,
        };
        let is_over_limit = matches!(applied, Err(cache::NotApplied::Limit { .. }));
        Folded {
            is_whole,
            // At a limit of the cache the message itself is valid.
            is_malformed: applied.is_err() && !is_over_limit,
            is_passed_by: applied == Ok(Applied::PassedBy),
            is_over_limit,
        }
    }

    pub(crate) fn remove(&mut self, item: &Item) {
        self.cache.remove(&item.key());
    }

    /// Returns the state and group of an item's image.
    pub(crate) fn label(&self, item: &Item) -> Option<Label<'_>> {
        let image = self.cache.image_at(item.slot)?;
        Some(Label { state: image.state(), group: image.group() })
    }

    /// Returns `true` if the image of an item may consist of several messages.
    pub(crate) fn is_in_parts(&self, item: &Item) -> bool {
        self.cache.image_at(item.slot).is_some_and(|image| !image.is_whole())
    }

    /// Passes the image of an item, or these of its fields, to `send`: as one message, or as several for an image with entries. Stops at the first
    /// result other than [`Sent::Queued`] and returns it; `None` if there is no image.
    pub(crate) fn give(
        &mut self,
        item: &Item,
        fids: Option<&[Fid]>,
        label: Option<Label<'_>>,
        send: &mut dyn FnMut(&RefreshHeader<'_>, Write<'_>) -> Sent,
    ) -> Option<Sent> {
        let Self { cache, most, room } = self;
        // All messages were applied by the item's slot.
        let image = cache.image_at(item.slot)?;
        if image.is_whole() {
            let view = fids.map_or(View::All, View::Fields);
            let mut header = image.whole();
            set_label(&mut header, &image, label);
            return Some(send(&header, &mut |room| image.write(&view, room)));
        }
        // A view contains whole entries, as in updates.
        let mut parts = image.parts(AnswerParameters::to(0));
        if room.len() > KEPT || room.is_empty() {
            *room = vec![0; PART];
        }
        let mut size = PART;
        loop {
            match parts.write(room.get_mut(..size)?) {
                Ok(None) => return Some(Sent::Queued),
                Ok(Some(len)) => {
                    let message = MessageView::parse(room.get(..len)?).ok()?;
                    let Ok(Header::Refresh(mut header)) = message.header() else { return None };
                    set_label(&mut header, &image, label);
                    let sent = send(&header, &mut |room| copy(message.payload(), room));
                    if !sent.is_queued() {
                        return Some(sent);
                    }
                }
                Err(Refused::Full) if size < *most => {
                    size = size.saturating_mul(4).min(*most);
                    if room.len() < size {
                        room.resize(size, 0);
                    }
                }
                Err(_) => return Some(Sent::TooLong),
            }
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        self.cache.memory()
    }
}

/// Sets state and group of an image's header to those of its channel, for the feeds.
fn set_label<'a>(header: &mut RefreshHeader<'a>, image: &Image<'_>, label: Option<Label<'a>>) {
    let Some(Label { state, group }) = label else { return };
    header.state = if image.is_complete() {
        state
    } else {
        State { data: DataState::SUSPECT, text: IMAGE_INCOMPLETE.as_bytes(), ..state }
    };
    (header.group_id, header.qos) = (group, Some(Qos::REALTIME_TICK));
}
