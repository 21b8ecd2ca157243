//! The two policies as types: what becomes of slow subscribers is known when a program is compiled.

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
    use crate::copy::FrameCopy;
    use crate::{Error, Start, SubscriberOf, broadcast};

    pub trait Sealed: Sized {
        const POLICY: Policy;

        /// What a subscriber keeps beyond its position.
        type Reading: std::fmt::Debug + Default;

        /// Registers a subscriber that has its slot, and leaves it where it is to read first.
        fn enter(subscriber: &mut SubscriberOf<Self>, start: Start) -> Result<(), Error>
        where
            Self: Discipline;
    }

    impl Sealed for Gated {
        const POLICY: Policy = Policy::Gated;
        /// The frame that is lent, on a ring with a stall limit.
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
        type Reading = broadcast::lap::Lap;

        fn enter(subscriber: &mut SubscriberOf<Self>, start: Start) -> Result<(), Error> {
            subscriber.enter_at(start)
        }
    }
}
