//! The limits, contents, counters and errors of a cache.

use tapeline_omm::Malformed;
use tapeline_omm::rwf::DataType;

/// The limits of a cache. When an item exceeds one, its image is dropped and marked incomplete, and its clients see suspect data; other items
/// are not affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of items; new ones beyond it are refused.
    pub items: usize,
    /// Maximum bytes of all items with their names, indexes and spare capacity, as [`Memory::bytes`] counts them. One image may exceed it, by at
    /// most `image_bytes`, until the call that detects this returns.
    pub bytes: usize,
    /// Maximum bytes of one image. Field lists end at 65,535 bytes anywhere: the wire format has this limit for all but payloads, and no record
    /// comes near it.
    pub image_bytes: usize,
    /// Maximum entries of one map, vector or series.
    pub entries: usize,
}

impl Default for Limits {
    /// A million items, 4 GiB; 64 MiB and 65,536 entries in one image.
    fn default() -> Self {
        Self { items: 1_000_000, bytes: 4 << 30, image_bytes: 64 << 20, entries: 1 << 16 }
    }
}

/// The reason why a message was not applied. Unless stated otherwise the image is unchanged. Because it lacks the contents of the message, the
/// image is incomplete until a refresh starts a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotApplied {
    /// The peer's fault: bytes that are not a message or container. Everything is checked before anything is applied.
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
        /// The type in the image: its container, the container of its entries, or the type of its keys.
        image: DataType,
        /// The type in the update at that place.
        update: DataType,
    },
    /// A limit is reached. If the item existed, its image is dropped.
    #[error("the cache has its limit of {limit} {what}")]
    Limit {
        /// The subject of the limit: "items", "bytes", "bytes of an image", "entries", "bytes of a list", "bytes of an entry".
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// The contents of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Items.
    pub items: usize,
    /// Bytes of the items, their names, images, indexes, and the spare capacity of each.
    pub bytes: usize,
    /// Distinct field orders; items with the same order share its index, whose bytes are included above.
    pub shapes: usize,
}

/// The counters of a cache since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounters {
    /// Applied refreshes; each part of an image counts.
    pub refreshes: u64,
    /// Applied updates.
    pub updates: u64,
    /// Applied statuses.
    pub statuses: u64,
    /// Ignored messages: those that must not be cached, and updates of items that do not exist.
    pub passed_by: u64,
    /// Messages refused through the peer's fault.
    pub malformed: u64,
    /// Messages refused because of a limit.
    pub over_limit: u64,
}
