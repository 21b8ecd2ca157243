//! What a broadcast subscriber keeps.

use crate::copy::FrameCopy;

/// A broadcast subscriber's own.
#[derive(Debug, Default)]
pub struct Lap {
    /// The frame that it lends.
    pub(crate) copy: FrameCopy,
    /// Frames before the subscriber's position.
    pub(crate) frames: u64,
}
