//! Images of all items, published again every now and then: for subscribers that came late, or lost something.

use tapeline_measure::Nanos;
use tapeline_omm::Refused;
use tapeline_omm::rwf::{Domain, MessageView};
use tapeline_plant::cache::{Answer, Cache, ItemKey, Limits};
use tapeline_plant::tick::{self, Tick};

/// Room for an image at first, and for the longest: the longest message that clients of the hub can be sent.
const FIRST: usize = 4 << 10;
const MOST: usize = 16 << 20;

/// An item in a domain.
#[derive(Debug)]
struct Place {
    /// Of the table of topics.
    topic: usize,
    domain: Domain,
    name: Box<str>,
    last: tick::Header,
}

/// All images, and whose turn it is.
#[derive(Debug)]
pub(super) struct Images {
    cache: Cache,
    places: Vec<Place>,
    /// By topic: of each domain its place. An item has one or two.
    of_topic: Vec<Vec<(Domain, usize)>>,
    every_ns: u64,
    next: usize,
    /// When the round began, and how many had their turn in it.
    begun: Nanos,
    room: Vec<u8>,
}

impl Images {
    pub(super) fn new(limits: Limits, every_ns: u64, now: Nanos) -> Self {
        Self {
            cache: Cache::new(limits),
            places: Vec::new(),
            of_topic: Vec::new(),
            every_ns,
            next: 0,
            begun: now,
            room: vec![0; FIRST],
        }
    }

    /// Folds a tick of an item into its image. What the cache refuses makes an image that is not complete, and says so.
    pub(super) fn fold(&mut self, topic: usize, domain: Domain, tick: &Tick<'_>) {
        let key = ItemKey { service: tick.header.service, domain, name: tick.name.as_bytes() };
        let _ = self.cache.apply(&key, tick.header.seq, tick.body);
        if self.of_topic.len() <= topic {
            self.of_topic.resize_with(topic + 1, Vec::new);
        }
        let places = &mut self.of_topic[topic];
        match places.iter().find(|(other, _)| *other == domain) {
            Some((_, place)) => self.places[*place].last = tick.header,
            None => {
                places.push((domain, self.places.len()));
                self.places.push(Place { topic, domain, name: tick.name.into(), last: tick.header });
            }
        }
    }

    /// A topic's number is another item's from here on.
    pub(super) fn forget(&mut self, topic: usize) {
        for (domain, at) in self.of_topic.get_mut(topic).map(std::mem::take).unwrap_or_default() {
            let place = self.places.swap_remove(at);
            let (service, name) = (place.last.service, place.name.as_bytes());
            self.cache.remove(&ItemKey { service, domain, name });
            // The last one has its place.
            if let Some(moved) = self.places.get(at)
                && let Some(known) =
                    self.of_topic[moved.topic].iter_mut().find(|(other, _)| *other == moved.domain)
            {
                known.1 = at;
            }
        }
    }

    /// The next item whose turn it is by now: its topic, domain and last tick, and its place for [`give`](Self::give).
    pub(super) fn due(&mut self, now: Nanos) -> Option<(usize, Domain, tick::Header, usize)> {
        let elapsed = u64::try_from(now.since(self.begun)).unwrap_or(0);
        let share = u128::from(elapsed) * self.places.len() as u128 / u128::from(self.every_ns.max(1));
        if self.next >= self.places.len() {
            if elapsed < self.every_ns {
                return None;
            }
            (self.next, self.begun) = (0, now);
            return None;
        }
        if share <= self.next as u128 {
            return None;
        }
        let place = self.next;
        self.next += 1;
        let Place { topic, domain, last, .. } = &self.places[place];
        Some((*topic, *domain, *last, place))
    }

    /// The image, as a refresh that nobody asked for; `None` where there is none yet.
    pub(super) fn give(&mut self, place: usize) -> Option<&[u8]> {
        let Self { cache, places, room, .. } = self;
        let Place { domain, name, last, .. } = places.get(place)?;
        let image =
            cache.image(&ItemKey { service: last.service, domain: *domain, name: name.as_bytes() })?;
        let answer = Answer { is_solicited: false, ..Answer::to(0) };
        let len = loop {
            match image.parts(answer).write(room) {
                Ok(len) => break len?,
                Err(Refused::Full) if room.len() < MOST => room.resize(room.len() * 4, 0),
                Err(_) => return None,
            }
        };
        let bytes = room.get(..len)?;
        MessageView::parse(bytes).is_ok().then_some(bytes)
    }
}
