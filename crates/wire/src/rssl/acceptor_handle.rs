//! Connections that one reactor accepts for another.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use mio::Waker;

use super::settings::ConnectionSettings;
use crate::tcp::TcpSocket;

/// A handle through which one [`Reactor`](super::Reactor) receives connections that another one accepts; see
/// [`Reactor::listen_for`](super::Reactor::listen_for).
#[derive(Clone, Debug)]
pub struct AcceptorHandle {
    arrivals: Sender<(TcpSocket, Arc<ConnectionSettings>)>,
    waker: Arc<Waker>,
    inside: Arc<AtomicUsize>,
}

/// The receiving side of the handle.
#[derive(Debug)]
pub(super) struct Arrivals {
    sockets: Receiver<(TcpSocket, Arc<ConnectionSettings>)>,
    inside: Arc<AtomicUsize>,
}

impl AcceptorHandle {
    /// Creates a handle and its receiving side. `waker`: of the reactor that receives the connections.
    pub(super) fn new(waker: Waker) -> (Self, Arrivals) {
        let (arrivals, sockets) = channel();
        let inside = Arc::new(AtomicUsize::new(0));
        let door = Self { arrivals, waker: Arc::new(waker), inside: Arc::clone(&inside) };
        (door, Arrivals { sockets, inside })
    }

    /// Returns the number of open connections that came through this handle, including those not yet
    /// received.
    pub fn inside(&self) -> usize {
        // Relaxed: a number for comparison, which publishes nothing.
        self.inside.load(Ordering::Relaxed)
    }

    /// Passes a connection to the reactor, unless the reactor is gone.
    pub(super) fn give(&self, socket: TcpSocket, settings: &Arc<ConnectionSettings>) {
        self.inside.fetch_add(1, Ordering::Relaxed);
        if self.arrivals.send((socket, Arc::clone(settings))).is_err() {
            // The reactor is gone: this handle's count stays high, so that other handles are chosen.
            return;
        }
        // A reactor that cannot be woken still checks about ten times a second.
        let _ = self.waker.wake();
    }
}

impl Arrivals {
    /// Returns the next received connection.
    pub(super) fn next(&self) -> Option<(TcpSocket, Arc<ConnectionSettings>)> {
        self.sockets.try_recv().ok()
    }

    /// Counts a connection as closed.
    pub(super) fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
    }
}
