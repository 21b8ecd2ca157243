//! Connections that one reactor accepts, and others have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::Waker;

use super::settings::Settings;
use crate::tcp::Socket;

/// A handle through which one [`Reactor`](super::Reactor) receives connections that another one accepts; see
/// [`Reactor::listen_for`](super::Reactor::listen_for).
#[derive(Clone, Debug)]
pub struct AcceptorHandle {
    arrivals: Sender<(Socket, Arc<Settings>)>,
    waker: Arc<Waker>,
    inside: Arc<AtomicUsize>,
}

/// The other side of it.
#[derive(Debug)]
pub(super) struct Arrivals {
    sockets: Receiver<(Socket, Arc<Settings>)>,
    inside: Arc<AtomicUsize>,
}

impl AcceptorHandle {
    /// A door, and what comes in by it. `waker`: of the reactor that is behind it.
    pub(super) fn new(waker: Waker) -> (Self, Arrivals) {
        let (arrivals, sockets) = channel();
        let inside = Arc::new(AtomicUsize::new(0));
        let door = Self { arrivals, waker: Arc::new(waker), inside: Arc::clone(&inside) };
        (door, Arrivals { sockets, inside })
    }

    /// Returns the number of open connections that came in through this handle, including those still on their way.
    pub fn inside(&self) -> usize {
        // Relaxed: a number to compare, which publishes nothing.
        self.inside.load(Ordering::Relaxed)
    }

    /// Hands a connection over, unless the reactor is gone.
    pub(super) fn give(&self, socket: Socket, settings: &Arc<Settings>) {
        self.inside.fetch_add(1, Ordering::Relaxed);
        if self.arrivals.send((socket, Arc::clone(settings))).is_err() {
            // Nobody is behind it any more: it fills up, and others are taken.
            return;
        }
        // One that cannot be woken looks about ten times a second.
        let _ = self.waker.wake();
    }
}

impl Arrivals {
    /// The next that came in.
    pub(super) fn next(&self) -> Option<(Socket, Arc<Settings>)> {
        self.sockets.try_recv().ok()
    }

    /// One of them is over.
    pub(super) fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }
}
