//! What a cache may hold, what it holds, and why it did not take something.

use tapeline_omm::Malformed;
use tapeline_omm::rwf::DataType;

/// What a cache may hold. Beyond a limit an item's image is let go and marked as not complete, which its clients see as
/// suspect; nothing of another item is given up for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Items; a new one beyond them is refused.
    pub items: usize,
    /// Bytes of all items with their names, indexes and spare room, as [`Memory::bytes`] counts them. One image may go
    /// beyond it, by at most `image_bytes`, for the time of the call that finds it out.
    pub bytes: usize,
    /// Bytes of one image. Field lists, wherever they are, end at 65,535 bytes: so the wire has it for all but payloads,
    /// and no record comes near it.
    pub image_bytes: usize,
    /// Entries of one map, vector or series.
    pub entries: usize,
}

impl Default for Limits {
    /// A million items, 4 GiB; 64 MiB and 65,536 entries in one image.
    fn default() -> Self {
        Self { items: 1_000_000, bytes: 4 << 30, image_bytes: 64 << 20, entries: 1 << 16 }
    }
}

/// Why a message was not applied. Unless it says otherwise the image is as it was before; as it lacks what the message
/// said, it is not complete any more until a refresh begins it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The peer's fault: bytes that are no message or container. Everything is checked before anything is applied.
    #[error("a message for the cache: {0}")]
    Malformed(#[from] Malformed),
    /// The peer's fault: a list with set data that no definition explains.
    #[error("a message for the cache: set data by a definition that is not there")]
    Undefined,
    /// The peer's fault: containers nested deeper than [`DEPTH_LIMIT`](tapeline_omm::rwf::DEPTH_LIMIT).
    #[error("a message for the cache: containers nested too deep")]
    TooDeep,
    /// The peer's fault: an update of another shape than its image.
    #[error("an update of {update} for an image of {image}")]
    Mismatch {
        /// What the image is: its container, the container of its entries, or the type of its keys.
        image: DataType,
        /// What the update has in that place.
        update: DataType,
    },
    /// A limit is reached. If the item was there, its image is let go.
    #[error("the cache has its limit of {limit} {what}")]
    Limit {
        /// Of what: "items", "bytes", "bytes of an image", "entries", "bytes of a list", "bytes of an entry".
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Items.
    pub items: usize,
    /// Bytes of the items, their names, images, indexes, and the spare room of each.
    pub bytes: usize,
    /// Different orders of fields; items that have the same one share its index, whose bytes count above.
    pub shapes: usize,
}

/// What a cache has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Refreshes applied, each part of an image counting.
    pub refreshes: u64,
    /// Updates applied.
    pub updates: u64,
    /// Statuses applied.
    pub statuses: u64,
    /// Messages passed by: those that are not to be cached, updates of what is not there.
    pub passed_by: u64,
    /// Messages refused as the peer's fault.
    pub malformed: u64,
    /// Messages refused for a limit.
    pub over_limit: u64,
}
