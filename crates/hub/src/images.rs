//! What the items are now: the images that clients begin with.

use tapeline_omm::role::Sent;
use tapeline_omm::rwf::{DataState, Header, MessageView, Qos, RefreshHeader};
use tapeline_omm::{Fid, Refused, State};
use tapeline_plant::Seq;
use tapeline_plant::cache::{self, Answer, Applied, Cache, Image, Limits, Memory, View};

use crate::Settings;
use crate::interest::Item;
use crate::request_handler::copy;

/// Bytes of a message of an image that has several, as far as its entries allow: such a message goes out in one piece of a
/// connection (RSSL's usual 6,144 bytes).
const PART: usize = 6_000;
/// Room that is kept for the next image; nearly all are shorter.
const KEPT: usize = 256 << 10;

/// Writes the data of an image, or of a part of one, into the room that it is given: how many bytes.
type Write<'w> = &'w mut dyn FnMut(&mut [u8]) -> Result<usize, Refused>;

/// All images.
#[derive(Debug)]
pub(crate) struct Images {
    cache: Cache,
    most: usize,
    room: Vec<u8>,
}

/// What an image of the feeds says beside its data: its channel speaks for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label<'a> {
    pub(crate) state: State<'a>,
    pub(crate) group: &'a [u8],
}

/// What a message did to the image of its item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Folded {
    /// A whole image is there now.
    pub(crate) is_whole: bool,
    /// Something in the message cannot be read.
    pub(crate) is_malformed: bool,
    /// The message was not for keeping: those who wait for an image begin with it.
    pub(crate) is_passed_by: bool,
    /// The cache has no room for it.
    pub(crate) is_over_limit: bool,
}

impl Folded {
    /// Of a message of an item whose image is not kept.
    pub(crate) const NOT_KEPT: Self =
        Self { is_whole: false, is_malformed: false, is_passed_by: true, is_over_limit: false };
}

impl Images {
    /// None yet, of these services.
    pub(crate) fn new(settings: &Settings, services: impl Iterator<Item = u16>) -> Self {
        let (items, bytes) = (settings.max_items.saturating_mul(2), settings.cache_bytes);
        let limits = Limits { items, bytes, image_bytes: settings.image_bytes, ..Limits::default() };
        let mut cache = Cache::new(limits);
        for service in services {
            cache.set_dictionary(service, &settings.dictionary);
        }
        Self { cache, most: settings.image_bytes.saturating_add(PART), room: Vec::new() }
    }

    /// Folds a message into the image of its item. What the cache refuses makes the image one that is not complete.
    pub(crate) fn apply(&mut self, item: &mut Item, seq: Seq, message: &[u8]) -> Folded {
        let mut slot = item.slot;
        let applied = self.cache.apply_at(&mut slot, &item.key(), seq, message);
        item.slot = slot;
        let is_whole = match applied {
            Ok(Applied::Refresh { is_complete }) => is_complete,
            _ => item.has_image,
        };
        let is_over_limit = matches!(applied, Err(cache::Refused::Limit { .. }));
        Folded {
            is_whole,
            // At a limit of the cache the message itself is as good as any.
            is_malformed: applied.is_err() && !is_over_limit,
            is_passed_by: applied == Ok(Applied::PassedBy),
            is_over_limit,
        }
    }

    /// An item is gone, and its image.
    pub(crate) fn remove(&mut self, item: &Item) {
        self.cache.remove(&item.key());
    }

    /// The state of an item's image, and its group.
    pub(crate) fn label(&self, item: &Item) -> Option<Label<'_>> {
        let image = self.cache.image_at(item.slot)?;
        Some(Label { state: image.state(), group: image.group() })
    }

    /// Whether the image of an item may be several messages.
    pub(crate) fn is_in_parts(&self, item: &Item) -> bool {
        self.cache.image_at(item.slot).is_some_and(|image| !image.is_whole())
    }

    /// Hands the image of an item, or these of its fields, to `send`: as one message, or as several of an image that has
    /// entries. Ends with what `send` says first that is not [`Sent::Queued`]; `None` where there is no image.
    pub(crate) fn give(
        &mut self,
        item: &Item,
        fids: Option<&[Fid]>,
        label: Option<Label<'_>>,
        send: &mut dyn FnMut(&RefreshHeader<'_>, Write<'_>) -> Sent,
    ) -> Option<Sent> {
        let Self { cache, most, room } = self;
        // Whatever was applied to it came by its slot.
        let image = cache.image_at(item.slot)?;
        if image.is_whole() {
            let view = fids.map_or(View::All, View::Fields);
            let header = labelled(image.whole(), &image, label);
            return Some(send(&header, &mut |room| image.write(&view, room)));
        }
        // Entries are whole in each view, as they are in updates.
        let mut parts = image.parts(Answer::to(0));
        if room.len() > KEPT || room.is_empty() {
            *room = vec![0; PART];
        }
        let mut size = PART;
        loop {
            match parts.write(room.get_mut(..size)?) {
                Ok(None) => return Some(Sent::Queued),
                Ok(Some(len)) => {
                    let message = MessageView::parse(room.get(..len)?).ok()?;
                    let Ok(Header::Refresh(header)) = message.header() else { return None };
                    let sent =
                        send(&labelled(header, &image, label), &mut |room| copy(message.payload(), room));
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

    /// The images themselves.
    pub(crate) const fn cache(&self) -> &Cache {
        &self.cache
    }

    /// What all images take.
    pub(crate) fn memory(&self) -> Memory {
        self.cache.memory()
    }
}

/// The header of an image as its channel has it, where it is of the feeds.
fn labelled<'a>(header: RefreshHeader<'a>, image: &Image<'_>, label: Option<Label<'a>>) -> RefreshHeader<'a> {
    let Some(Label { state, group }) = label else { return header };
    let state = if image.is_complete() {
        state
    } else {
        State { data: DataState::SUSPECT, text: b"This image is not complete", ..state }
    };
    RefreshHeader { state, group_id: group, qos: Some(Qos::REALTIME_TICK), ..header }
}
