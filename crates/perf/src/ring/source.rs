//! A ring's subscriber of either policy, as `ring sub` reads it.

use tapeline_ring::{Broadcast, Discipline, Frame, Gated, Poll, Position, SubscriberOf, broadcast};

/// The result of one poll of a ring of either policy.
pub(super) enum Look<'a> {
    Frame(Frame<'a>),
    Empty,
    Ended,
    /// The publisher of a broadcast ring has overwritten this many frames before this subscriber read them.
    Lost {
        frames: u64,
    },
    /// The publisher of a gated ring has evicted this subscriber.
    Evicted {
        position: Position,
    },
    Damaged {
        position: Position,
    },
}

/// A policy whose rings `ring sub` can read.
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
            // Also covers variants that a later version of the ring may add: they contain nothing to read.
            _ => Look::Ended,
        }
    }
}

impl Readable for Broadcast {
    #[inline]
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_> {
        match subscriber.next() {
            broadcast::BroadcastPoll::Frame(frame) => Look::Frame(frame),
            broadcast::BroadcastPoll::Lost { frames, .. } => Look::Lost { frames },
            broadcast::BroadcastPoll::Empty => Look::Empty,
            broadcast::BroadcastPoll::Damaged { position } => Look::Damaged { position },
            _ => Look::Ended,
        }
    }
}
