//! Images of all items, stored by a reader of the ring that sends them on.

use std::sync::Arc;

use tapeline_omm::rwf::{Domain, MessageView};
use tapeline_omm::{Dictionary, Refused};
use tapeline_plant::ItemId;
use tapeline_plant::cache::{AnswerParameters, Applied, Cache, ItemKey, Limits};
use tapeline_plant::tick::{self, POSTED, Tick};

/// Initial and maximum buffer size for an image: the longest message that the hub's clients can be sent.
const FIRST: usize = 4 << 10;
const MOST: usize = 16 << 20;

/// An item in a domain.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) domain: Domain,
    pub(crate) name: Box<str>,
    pub(crate) last: tick::Header,
}

#[derive(Debug)]
pub(crate) struct Images {
    cache: Cache,
    /// `None` in the place of an ended item.
    places: Vec<Option<Place>>,
    free: Vec<usize>,
    /// For each item number, the places of its domains. An item has one or two.
    of_item: Vec<Vec<usize>>,
    most: usize,
    room: Vec<u8>,
}

impl Images {
    /// Stores images of items with numbers up to `most`. `dictionary` is that of these services.
    pub(crate) fn new(
        limits: Limits,
        most: usize,
        services: impl IntoIterator<Item = u16>,
        dictionary: &Arc<Dictionary>,
    ) -> Self {
        let mut cache = Cache::new(limits);
        services.into_iter().for_each(|service| cache.set_dictionary(service, dictionary));
        let (places, free, of_item) = (Vec::new(), Vec::new(), Vec::new());
        Self { cache, places, free, of_item, most, room: vec![0; FIRST] }
    }

    /// Folds a tick of an item into its image, which is marked as incomplete if the cache refuses the tick.
    pub(crate) fn fold(&mut self, domain: Domain, tick: &Tick<'_>) {
        let number = tick.header.item.0 as usize;
        if number > self.most {
            return;
        }
        let key = ItemKey { service: tick.header.service, domain, name: tick.name.as_bytes() };
        if self.cache.apply(&key, tick.header.seq, tick.body) == Ok(Applied::Status { is_open: false }) {
            self.cache.remove(&key);
        }
        if self.of_item.len() <= number {
            self.of_item.resize_with(number + 1, Vec::new);
        }
        let mut known = self.of_item[number].iter().copied();
        let known = known.find(|at| self.place(*at).is_some_and(|place| place.domain == domain));
        if let Some(place) = known.and_then(|at| self.places.get_mut(at)?.as_mut()) {
            let mut last = tick.header;
            if last.channel == POSTED {
                // A client's post: the item still belongs to its feed, and ends with it.
                last.channel = place.last.channel;
            }
            place.last = last;
            return;
        }
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(Place { domain, name: tick.name.into(), last: tick.header });
        self.of_item[number].push(at);
    }

    /// An item has ended, and its number may belong to another from here on.
    pub(crate) fn forget(&mut self, number: ItemId) {
        let places = self.of_item.get_mut(number.0 as usize).map(std::mem::take).unwrap_or_default();
        for at in places {
            if let Some(Place { domain, name, last }) = self.places.get_mut(at).and_then(Option::take) {
                self.cache.remove(&ItemKey { service: last.service, domain, name: name.as_bytes() });
                self.free.push(at);
            }
        }
    }

    /// Returns the number of places, including empty ones.
    pub(crate) const fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn place(&self, at: usize) -> Option<&Place> {
        self.places.get(at)?.as_ref()
    }

    /// Returns the image of a place as one unsolicited refresh of any length; `None` if there is none (yet).
    pub(crate) fn give(&mut self, at: usize) -> Option<&[u8]> {
        let Self { cache, places, room, .. } = self;
        let Place { domain, name, last } = places.get(at)?.as_ref()?;
        let image =
            cache.image(&ItemKey { service: last.service, domain: *domain, name: name.as_bytes() })?;
        let answer = AnswerParameters { is_solicited: false, ..AnswerParameters::to(0) };
        let len = loop {
            let mut parts = image.parts(answer);
            match parts.write(room) {
                // A buffer for only some of the entries would make it one part of several.
                Ok(len) if matches!(parts.write(&mut []), Ok(None)) => break len?,
                Ok(_) | Err(Refused::Full) if room.len() < MOST => room.resize(room.len() * 4, 0),
                _ => return None,
            }
        };
        let bytes = room.get(..len)?;
        MessageView::parse(bytes).is_ok().then_some(bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tapeline_omm::State;
    use tapeline_omm::rwf::{
        DataType, Header, Map, MapAction, MapEncoder, MapEntry, MapHead, RefreshHeader, flags,
    };

    use super::*;
    use crate::ticks;

    /// A refresh with `entries` entries of about 40 bytes each.
    pub(in super::super) fn refresh(domain: Domain, entries: u16) -> Vec<u8> {
        let mut out = vec![0; 64 << 10];
        let mut header = RefreshHeader::new(domain, 0, State::OPEN_OK, DataType::MAP);
        header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
        let len = header.encode_with(&mut out, |room| {
            let mut map = MapEncoder::new(room, &MapHead::new(DataType::BUFFER, DataType::NO_DATA))?;
            for number in 0..entries {
                let key = format!("{number:040}");
                let (action, key) = (MapAction::ADD, key.as_bytes());
                map.entry(&MapEntry { action, permission_data: None, key, data: &[] })?;
            }
            Ok(map.finish())
        });
        out.truncate(len.unwrap());
        out
    }

    fn images() -> Images {
        Images::new(Limits::default(), 10, [], &Arc::default())
    }

    fn fold(images: &mut Images, domain: Domain, (item, name): (u32, &str), entries: u16) {
        let body = refresh(domain, entries);
        images.fold(domain, &Tick { header: ticks::header(item, 1), name, body: &body, source: &[] });
    }

    #[test]
    fn a_long_image_is_one_whole_message() {
        let mut images = images();
        fold(&mut images, Domain::MARKET_BY_ORDER, (5, "A"), 300);
        let message = MessageView::parse(images.give(0).unwrap()).unwrap();
        let Ok(Header::Refresh(header)) = message.header() else { panic!("a refresh") };
        assert!(header.flags.has(flags::refresh::REFRESH_COMPLETE));
        assert_eq!(Map::parse(message.payload()).unwrap().iter().map(Result::unwrap).count(), 300);
    }

    #[test]
    fn a_number_that_is_anothers_gives_that_ones_image() {
        let mut images = images();
        fold(&mut images, Domain::MARKET_PRICE, (5, "A"), 1);
        images.forget(ItemId(5));
        fold(&mut images, Domain::MARKET_BY_ORDER, (5, "B"), 1);
        fold(&mut images, Domain::MARKET_PRICE, (9, "A"), 1);
        let there = |images: &mut Images| {
            let mut there: Vec<(String, u32)> = Vec::new();
            for at in 0..images.len() {
                if images.give(at).is_some() {
                    let place = images.place(at).unwrap();
                    there.push((place.name.to_string(), place.last.item.0));
                }
            }
            there.sort();
            there
        };
        assert_eq!(there(&mut images), [("A".to_owned(), 9), ("B".to_owned(), 5)]);
        images.forget(ItemId(5));
        assert_eq!(there(&mut images), [("A".to_owned(), 9)]);
    }
}
