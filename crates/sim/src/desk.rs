//! What lies between hub and plant, beside the ring: demands one way, answers the other.

use std::collections::VecDeque;

use tapeline_plant::demand::{Answer, Demand};

/// Most of either that lie here.
pub(crate) const DESK: usize = 64;

/// Two queues with a bound.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) demands: VecDeque<Demand>,
    pub(crate) answers: VecDeque<Answer>,
}
