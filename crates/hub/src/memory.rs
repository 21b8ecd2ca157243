//! The maximum memory of a hub, determined by its settings for any clients and any plant.

use tapeline_omm::role::provider::{StreamHandle, stream_bytes};

use crate::interest::{MOST_PERMISSION, STREAM};
use crate::session::{PendingReply, Session};
use crate::settings::Settings;
use crate::views::{LONGEST, MOST_FIDS};

/// The maximum memory of a hub in bytes, by purpose. Excludes the connections, and the dictionary, which the hub shares with
/// others.
///
/// The bound uses the object sizes of the code, names and texts at their maximum length, and lists and tables at twice their contents.
/// `tests/memory.rs` drives clients to the limits and compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryBound {
    /// Images: [`Settings::cache_bytes`] as the cache counts them, and the overhead of the allocator.
    pub images: usize,
    /// Items: names and numbers.
    pub items: usize,
    /// Sessions: queued updates and pending answers.
    pub sessions: usize,
    /// Images in parts and messages of private streams, queued for all sessions together: [`Settings::waiting_bytes`].
    pub waiting: usize,
    /// Streams of all sessions: [`Settings::max_streams`].
    pub streams: usize,
    /// Views, with the last update in the form of each.
    pub views: usize,
    /// Demands queued for the sources, private streams, receipts.
    pub demand: usize,
    /// Events that wait to be logged, working memory for messages, the directory.
    pub rest: usize,
}

impl MemoryBound {
    /// Returns the total.
    #[must_use]
    pub fn total(&self) -> usize {
        let Self { images, items, sessions, waiting, streams, views, demand, rest } = *self;
        let all = [images, items, sessions, waiting, streams, views, demand, rest];
        all.into_iter().fold(0, usize::saturating_add)
    }
}

/// Maximum overhead of an allocation in bytes.
const ALLOCATION: usize = 32;
/// A name of the maximum length on the wire, separately allocated.
const NAME: usize = 255 + ALLOCATION;
/// An item: in two tables and a list, each of which may have grown to twice its contents; its state at the source.
const ITEM: usize = 768 + NAME + MOST_PERMISSION + ALLOCATION;
/// A private stream or an outstanding receipt, in two tables; a queued demand.
const TICKET: usize = 256;
/// Pending answers to closed streams of a session, and its texts: a user, an address, a reason.
const SESSION: usize = 128 << 10;
/// Events, with at most two texts each.
const NOTES: usize = 10_000 * 1_200;
/// The longest image while it is built; the directory.
const AT_HAND: usize = 32 << 20;

impl Settings {
    /// Returns the maximum memory of a hub with these settings and `sessions` sessions.
    #[must_use]
    pub fn memory_bound(&self, sessions: usize) -> MemoryBound {
        // A stream: the role's, the item's (a list of one has a capacity of four), the session's tables, and four pending answers, if it is closed
        // and opened repeatedly.
        let stream = stream_bytes() + STREAM + 8 * size_of::<(StreamHandle, PendingReply)>();
        // Pending output of roles counts twice: short messages take more memory than they count for.
        let owed = self.session.owed_bytes.saturating_mul(2);
        let waits = self.slow.bytes();
        let tickets = self.max_private.saturating_add(self.max_receipts).saturating_add(self.max_demands);
        let session = 2 * size_of::<Session>() + SESSION;
        // Streams beyond the limit are refused. Up to the limit of one session can wait for their refusals, and one message can add as many before
        // its session is ended.
        let streams = self.max_streams.saturating_add(2 * self.session.most_streams as usize);
        let view = 2 * MOST_FIDS + LONGEST + 2 * ALLOCATION + 128;
        MemoryBound {
            images: self.cache_bytes.saturating_add(self.cache_bytes / 4),
            // Two domains, and the same number of awaited items.
            items: self.max_items.saturating_mul(3 * ITEM),
            sessions: sessions.saturating_mul(session.saturating_add(owed).saturating_add(waits)),
            // Short messages take more memory than they count for.
            waiting: self.waiting_bytes.max(self.image_bytes).saturating_mul(2),
            streams: streams.saturating_mul(stream),
            views: self.max_views.saturating_mul(view),
            demand: self.demand_bytes.saturating_add(tickets.saturating_mul(TICKET)),
            rest: NOTES + AT_HAND,
        }
    }
}
