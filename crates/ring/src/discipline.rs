//! The two policies as types: the policy for slow subscribers is fixed at compile time.

use crate::Policy;

/// A ring's policy as a type: [`Gated`] or [`Broadcast`].
pub trait Discipline: sealed::Sealed {}

/// [`Policy::Gated`] as a type.
#[derive(Clone, Copy, Debug)]
pub struct Gated;

/// [`Policy::Broadcast`] as a type.
#[derive(Clone, Copy, Debug)]
pub struct Broadcast;

impl Discipline for Gated {}
impl Discipline for Broadcast {}

pub(crate) mod sealed {
    use super::{Broadcast, Discipline, Gated, Policy};
    use crate::copy::{FrameCopy, Lap};
    use crate::{Error, Start, SubscriberOf};

    pub trait Sealed: Sized {
        const POLICY: Policy;

        /// A subscriber's state beyond its position.
        type Reading: std::fmt::Debug + Default;

        /// Registers a subscriber that already has its slot, and sets the position of its first frame.
        fn enter(subscriber: &mut SubscriberOf<Self>, start: Start) -> Result<(), Error>
        where
            Self: Discipline;
    }

    impl Sealed for Gated {
        const POLICY: Policy = Policy::Gated;
        /// The lent frame, on a ring with a stall limit.
        type Reading = FrameCopy;

        fn enter(subscriber: &mut SubscriberOf<Self>, start: Start) -> Result<(), Error> {
            match start {
                Start::Newest => subscriber.join_newest(),
                Start::Oldest => subscriber.join_oldest(),
            }
        }
    }

    impl Sealed for Broadcast {
        const POLICY: Policy = Policy::Broadcast;
        type Reading = Lap;

        fn enter(subscriber: &mut SubscriberOf<Self>, start: Start) -> Result<(), Error> {
            subscriber.enter_at(start)
        }
    }
}
