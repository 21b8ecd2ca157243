//! Ticks that are there already, before they are taken.
//!
//! Of a hundred thousand items, what belongs to one is in none of the processor's caches when its tick comes: the hub's item, the
//! stream on it, the image. Each waits for memory, one behind the other, longer than all the work takes. So a hub that has several
//! ticks before it looks at what all of them need first, kind by kind: loads that do not depend on each other wait together.

use std::hint::black_box;

use tapeline_omm::rwf::Domain;
use tapeline_plant::ItemId;
use tapeline_plant::tick::Tick;

use crate::hub::Hub;
use crate::interest::Item;

/// Ticks that are looked at together at most: what they need is still in the first cache when they are taken, and their loads are
/// more than a core has under way at once.
pub(crate) const MOST_EXPECTED: usize = 16;
/// Fewer are taken as they are.
const FEWEST_EXPECTED: usize = 4;
/// Streams of an item that are looked at: of more, the first ones make up for the others, which lie beside them.
const STREAMS: usize = 2;

/// The item of a tick that the hub has not taken yet, and the domain of its message, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    item: ItemId,
    domain: Option<Domain>,
}

impl From<&Tick<'_>> for Coming {
    fn from(tick: &Tick<'_>) -> Self {
        let domain = tick.body.get(DOMAIN_AT).map(|domain| Domain(*domain));
        Self { item: tick.header.item, domain }
    }
}

impl Hub {
    /// Prefetches what the first few of the next ticks need. Returns the number of ticks to [take](Self::tick) before the next call. Affects only
    /// the processor's caches; a wrong prediction does no harm.
    pub fn expect(&mut self, ticks: impl Iterator<Item = Coming>) -> usize {
        let Self { shared, sessions, expected, .. } = self;
        let mut count = 0;
        expected.clear();
        for tick in ticks.take(MOST_EXPECTED) {
            count += 1;
            expected.extend(tick.domain.and_then(|domain| shared.interest.of_number(tick.item, domain)));
        }
        if expected.len() < FEWEST_EXPECTED {
            return count.max(1);
        }
        for place in &*expected {
            black_box(shared.interest.get(*place).map(|item| (item.number, item.streams.len())));
        }
        let items = || expected.iter().filter_map(|place| shared.interest.get(*place));
        // Images of the feeds' items are fetched when they are folded into.
        let is_folded = |item: &&Item| !item.is_of_feeds();
        for item in items() {
            black_box(item.streams.first().map(|open| open.phase));
        }
        items().filter(is_folded).for_each(|item| shared.images.cache().expect(item.slot));
        items().filter(is_folded).for_each(|item| shared.images.cache().expect_image(item.slot));
        for item in items() {
            for open in item.streams.iter().take(STREAMS) {
                if let Some(Some(session)) = sessions.get(open.session.index()) {
                    session.provider.expect(open.stream);
                }
            }
        }
        count
    }
}

/// Where a message says its domain (RWF chapter 2: behind its length and its class).
const DOMAIN_AT: usize = 3;
