//! Prefetching for ticks that are available but not handled yet.
//!
//! With a hundred thousand items, the data of one item is in no cache of the processor when its tick comes: the hub's item, its stream, its image.
//! One after another, these cache misses take longer than all the work. So a hub with several available ticks first loads the data of all of them,
//! kind by kind: independent loads are in progress at the same time.

use std::hint::black_box;

use tapeline_omm::rwf::Domain;
use tapeline_plant::ItemId;
use tapeline_plant::tick::Tick;

use crate::hub::Hub;
use crate::interest::Item;

/// Maximum number of ticks that are prefetched together: their data is still in the first-level cache when they are handled, and their loads exceed
/// the number that a core has in progress at once.
pub(crate) const MOST_EXPECTED: usize = 16;
/// Minimum number of ticks for prefetching.
const FEWEST_EXPECTED: usize = 4;
/// Number of streams of an item that are prefetched: further ones are adjacent.
const STREAMS: usize = 2;

/// The item of a tick that the hub has not handled yet, and the domain of its message, if there is one.
#[derive(Clone, Copy, Debug)]
pub struct Coming {
    item: ItemId,
    domain: Option<Domain>,
}

impl Coming {
    /// Looks at the frame of a tick; `None` for one that is too short. Item and domain may be wrong if the tick is malformed.
    #[inline]
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let (item, body) = Tick::glance(frame)?;
        Some(Self { item, domain: body.get(DOMAIN_AT).map(|domain| Domain(*domain)) })
    }
}

impl Hub {
    /// Prefetches the data of the first few of the next ticks. Returns the number of ticks to [take](Self::tick) before the next call. Affects only
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
        // Images of the feeds' items are prefetched when updates are folded into them.
        let is_folded = |item: &&Item| !item.is_of_feeds();
        for item in items() {
            black_box(item.streams.first().map(|open| open.phase));
        }
        items().filter(is_folded).for_each(|item| shared.images.cache.expect(item.slot));
        items().filter(is_folded).for_each(|item| shared.images.cache.expect_image(item.slot));
        for item in items() {
            for open in item.streams.iter().take(STREAMS) {
                if let Some(session) = sessions.get(open.session) {
                    session.provider.expect(open.stream);
                }
            }
        }
        count
    }
}

/// Offset of the domain in a message (RWF chapter 2: after its length and its class).
const DOMAIN_AT: usize = 3;
