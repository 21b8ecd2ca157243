//! A ring's subscriber of either policy, as `ring sub` reads it.

use tapeline_ring::{Broadcast, Discipline, Frame, Gated, Poll, Position, SubscriberOf, broadcast};

/// What a look at a ring of either policy gives.
pub(super) enum Look<'a> {
    Frame(Frame<'a>),
    Empty,
    Ended,
    /// The publisher of a broadcast ring has passed this subscriber by so many frames.
    Lost {
        frames: u64,
    },
    /// The publisher of a gated ring has waited long enough.
    Evicted {
        position: Position,
    },
    Damaged {
        position: Position,
    },
}

/// A policy whose rings can be read.
pub(super) trait Readable: Discipline + Sized {
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_>;
}

impl Readable for Gated {
    #[inline]
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_> {
        match subscriber.next() {
            Poll::Frame(frame) => Look::Frame(frame),
            Poll::Empty => Look::Empty,
            Poll::Evicted { position } => Look::Evicted { position },
            Poll::Damaged { position } => Look::Damaged { position },
            // Also what a later version of the ring may add: there is nothing that could be read.
            _ => Look::Ended,
        }
    }
}

impl Readable for Broadcast {
    #[inline]
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_> {
        match subscriber.next() {
            broadcast::Poll::Frame(frame) => Look::Frame(frame),
            broadcast::Poll::Lost { frames, .. } => Look::Lost { frames },
            broadcast::Poll::Empty => Look::Empty,
            broadcast::Poll::Damaged { position } => Look::Damaged { position },
            _ => Look::Ended,
        }
    }
}
