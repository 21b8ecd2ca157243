//! The loop over a reactor's events.

use std::convert::Infallible;

use tapeline_nanos::Nanos;

use super::connection::Sender;
use super::reactor::{ConnectionId, Reactor};
use super::session::Event;

/// Handles the events of a [`Reactor`], in [`Reactor::handle`].
pub trait Handler {
    /// Why no more events are handled; [`Infallible`] if nothing can go wrong.
    type Error;

    /// Handles an event of a connection. `sender` sends on that connection.
    ///
    /// # Errors
    /// The handler's own: [`Reactor::handle`] returns it at once.
    fn event(
        &mut self,
        id: ConnectionId,
        event: Event<'_>,
        sender: &mut Sender<'_>,
        now: Nanos,
    ) -> Result<(), Self::Error>;

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
        while let Some((id, event, mut sender)) = self.next(now) {
            is_busy = true;
            handler.event(id, event, &mut sender, now)?;
            if !handler.after(self, id, now)? {
                break;
            }
        }
        Ok(is_busy)
    }

    /// As [`handle`](Self::handle), for a program that only answers.
    pub fn each(&mut self, now: Nanos, answer: impl FnMut(ConnectionId, Event<'_>, &mut Sender<'_>)) -> bool {
        let Ok(is_busy) = self.handle(&mut Answering(answer), now);
        is_busy
    }
}

/// The handler of [`Reactor::each`].
struct Answering<F>(F);

impl<F: FnMut(ConnectionId, Event<'_>, &mut Sender<'_>)> Handler for Answering<F> {
    type Error = Infallible;

    fn event(
        &mut self,
        id: ConnectionId,
        event: Event<'_>,
        sender: &mut Sender<'_>,
        _: Nanos,
    ) -> Result<(), Infallible> {
        (self.0)(id, event, sender);
        Ok(())
    }
}
