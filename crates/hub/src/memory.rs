//! The most memory that a hub takes: from its settings, whatever its clients and its plant do.

use tapeline_omm::role::provider::{StreamHandle, stream_bytes};

use crate::interest::{MOST_PERMISSION, STREAM};
use crate::session::{PendingReply, Session};
use crate::settings::Settings;
use crate::views::{LONGEST, MOST_FIDS};

/// The most memory that a hub takes, bytes, by what it is for. What carries the sessions is not in it, nor is the dictionary,
/// which others have, too.
///
/// The sizes of what is kept are those of the code, names and texts as long as they may be, lists and tables grown to twice
/// what they hold. `tests/memory.rs` drives clients to the limits and compares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryBound {
    /// Images: [`Settings::cache_bytes`] by the cache's own account, and what the allocator adds.
    pub images: usize,
    /// Items: names, numbers.
    pub items: usize,
    /// Sessions: updates that wait for them, and what they are owed.
    pub sessions: usize,
    /// Images in parts and messages of private streams that wait for any of them: [`Settings::waiting_bytes`].
    pub waiting: usize,
    /// Streams, those of all sessions: [`Settings::max_streams`].
    pub streams: usize,
    /// Choices of fields, and the last update as each has it.
    pub views: usize,
    /// What waits to be told to sources, private streams, receipts.
    pub demand: usize,
    /// Notes that wait to be written down, room for the messages at hand, the directory.
    pub rest: usize,
}

impl MemoryBound {
    /// All of it.
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
    /// The most memory that a hub with these settings and so many sessions takes.
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
