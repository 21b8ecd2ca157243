//! The state of a broadcast subscriber.

use crate::copy::FrameCopy;

/// A broadcast subscriber's state beyond its position.
#[derive(Debug, Default)]
pub struct Lap {
    /// The frame that the subscriber lends.
    pub(crate) copy: FrameCopy,
    /// Frames before the subscriber's position.
    pub(crate) frames: u64,
}
