//! The most memory that a hub takes: from its settings, whatever its clients and its plant do.

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
    pub const fn total(&self) -> usize {
        let Self { images, items, sessions, waiting, streams, views, demand, rest } = *self;
        let mut total = images;
        let mut index = 0;
        let others = [items, sessions, waiting, streams, views, demand, rest];
        while index < others.len() {
            total = total.saturating_add(others[index]);
            index += 1;
        }
        total
    }
}

/// What an allocator adds to a piece of memory at most, and rounds it up by.
const ALLOCATION: usize = 32;
/// A name as long as the wire has them, in memory of its own.
const NAME: usize = 255 + ALLOCATION;
/// An item: two tables and a list have it, each of which may have grown to twice what it holds; what its source was told.
const ITEM: usize = 768 + NAME + MOST_PERMISSION + ALLOCATION;
/// A private stream or an awaited receipt, in two tables; a demand that waits.
const TICKET: usize = 256;
/// What a session owes to streams that are closed meanwhile, and its texts: a user, an address, a reason.
const SESSION: usize = 128 << 10;
/// Notes: two texts each at most.
const NOTES: usize = 10_000 * 1_200;
/// The longest image, while it is put together; the directory.
const AT_HAND: usize = 32 << 20;

impl Settings {
    /// Returns the maximum memory of a hub with these settings and `sessions` sessions.
    #[must_use]
    pub fn memory_bound(&self, sessions: usize) -> MemoryBound {
        // A stream: the role's, the item's (a list of one has room for four), the session's tables, four answers that it is
        // owed where it is closed and opened again without a pause.
        let stream = stream_bytes() + STREAM + 8 * size_of::<(StreamHandle, PendingReply)>();
        // What roles owe counts for as much again: short messages take more than they count for.
        let owed = self.session.owed_bytes.saturating_mul(2);
        let waits = self.slow.bytes();
        let tickets = self.max_private.saturating_add(self.max_receipts).saturating_add(self.max_demands);
        let session = 2 * size_of::<Session>() + SESSION;
        // Streams beyond the limit are refused. As many as one session may have can wait for that to be taken, and one message
        // can bring as many more before its session is ended for it.
        let streams = self.max_streams.saturating_add(2 * self.session.most_streams as usize);
        let view = 2 * MOST_FIDS + LONGEST + 2 * ALLOCATION + 128;
        MemoryBound {
            images: self.cache_bytes.saturating_add(self.cache_bytes / 4),
            // Two domains, and as many that are waited for.
            items: self.max_items.saturating_mul(3 * ITEM),
            sessions: sessions.saturating_mul(session.saturating_add(owed).saturating_add(waits)),
            // Short messages take more than they count for.
            waiting: self.waiting_bytes.max(self.image_bytes).saturating_mul(2),
            streams: streams.saturating_mul(stream),
            views: self.max_views.saturating_mul(view),
            demand: self.demand_bytes.saturating_add(tickets.saturating_mul(TICKET)),
            rest: NOTES + AT_HAND,
        }
    }
}
