//! The loop over a reactor's events.

use tapeline_nanos::Nanos;

use super::connection::Sender;
use super::reactor::{ConnectionId, Reactor};
use super::receiver::Following;
use super::session::Event;

/// An event of a connection, and what a [`Handler`] needs to answer it.
#[derive(Debug)]
pub struct Delivery<'r, 's> {
    /// The connection.
    pub id: ConnectionId,
    /// The event.
    pub event: Event<'r>,
    /// The messages that have arrived behind the event.
    pub following: Following<'r>,
    /// Sends on that connection.
    pub sender: &'r mut Sender<'s>,
    /// The time of the call of [`Reactor::handle`].
    pub now: Nanos,
}

/// Handles the events of a [`Reactor`], in [`Reactor::handle`].
pub trait Handler {
    /// Why no more events are handled; [`Infallible`](std::convert::Infallible) if nothing can go wrong.
    type Error;

    /// Handles an event of a connection.
    ///
    /// # Errors
    /// The handler's own: [`Reactor::handle`] returns it at once.
    fn event(&mut self, delivery: Delivery<'_, '_>) -> Result<(), Self::Error>;

    /// Does after each event of connection `id` what takes the reactor itself: connects, closes, [repeats](Reactor::repeat). Returns `false`
    /// if the next event is left for a later turn.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    #[inline]
    fn after(&mut self, reactor: &mut Reactor, id: ConnectionId, now: Nanos) -> Result<bool, Self::Error> {
        let _ = (reactor, id, now);
        Ok(true)
    }
}

impl Reactor {
    /// Passes events to `handler` until each connection had its turn, or the handler wants no more. Returns whether there were any.
    /// Call [`wait`](Self::wait) next, which does not sleep if there is more to do.
    ///
    /// # Errors
    /// The handler's: the events behind it are kept for the next call.
    #[inline]
    pub fn handle<H: Handler>(&mut self, handler: &mut H, now: Nanos) -> Result<bool, H::Error> {
        let mut is_busy = false;
        while let Some((id, event, following, mut sender)) = self.next_and_following(now) {
            is_busy = true;
            handler.event(Delivery { id, event, following, sender: &mut sender, now })?;
            if !handler.after(self, id, now)? {
                break;
            }
        }
        Ok(is_busy)
    }

    /// As [`handle`](Self::handle), for a program that only answers.
    pub fn each(
        &mut self,
        now: Nanos,
        mut answer: impl FnMut(ConnectionId, Event<'_>, &mut Sender<'_>),
    ) -> bool {
        let mut is_busy = false;
        while let Some((id, event, mut sender)) = self.next(now) {
            is_busy = true;
            answer(id, event, &mut sender);
        }
        is_busy
    }
}
