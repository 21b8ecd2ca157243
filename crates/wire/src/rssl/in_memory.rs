//! A connection without a socket: its bytes pass through memory, for programs that simulate the network
//! themselves.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::Error;
use crate::error::Operation;
use crate::tcp::Received;

/// The far end of a connection in memory; it takes the place of a network and a peer. The caller decides when
/// bytes arrive and how many the connection may send. Obtain one with
/// [`Reactor::accept_in_memory`](super::Reactor::accept_in_memory) or
/// [`Reactor::next_dialed`](super::Reactor::next_dialed).
#[derive(Clone, Debug)]
pub struct FarEnd(Arc<Mutex<Pipe>>);

/// The reactor's end.
#[derive(Debug)]
pub(super) struct NearEnd {
    pipe: Arc<Mutex<Pipe>>,
    peer: SocketAddr,
}

#[derive(Debug, Default)]
struct Pipe {
    /// Bytes that arrived and are not yet read.
    arrived: Vec<u8>,
    /// Bytes that were sent and are not yet taken.
    sent: Vec<u8>,
    /// Bytes that may be sent now.
    capacity: usize,
    /// The peer has closed its side.
    is_closed: bool,
    /// The connection was reset.
    is_reset: bool,
    /// The reactor has closed its side.
    is_finished: bool,
}

fn lock(pipe: &Mutex<Pipe>) -> MutexGuard<'_, Pipe> {
    pipe.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates both ends of a new connection with a peer of this address.
pub(super) fn connect(peer: SocketAddr) -> (NearEnd, FarEnd) {
    let pipe = Arc::<Mutex<Pipe>>::default();
    (NearEnd { pipe: Arc::clone(&pipe), peer }, FarEnd(pipe))
}

impl FarEnd {
    /// Delivers bytes from the peer.
    pub fn deliver(&self, bytes: &[u8]) {
        lock(&self.0).arrived.extend_from_slice(bytes);
    }

    /// Closes the peer's side: the connection reads what was delivered, and then its end.
    pub fn close(&self) {
        lock(&self.0).is_closed = true;
    }

    /// Resets the connection: what was delivered can still be read.
    pub fn reset(&self) {
        lock(&self.0).is_reset = true;
    }

    /// Sets the number of bytes that the connection may send from now on.
    pub fn set_capacity(&self, bytes: usize) {
        lock(&self.0).capacity = bytes;
    }

    /// Takes the bytes that were sent since the last call.
    pub fn take_sent(&self) -> Vec<u8> {
        std::mem::take(&mut lock(&self.0).sent)
    }

    /// Returns the number of bytes that were delivered and not read: a connection may pause its peer.
    pub fn unread(&self) -> usize {
        lock(&self.0).arrived.len()
    }

    /// Returns the number of bytes that may still be sent; 0 if output may be waiting.
    pub fn capacity(&self) -> usize {
        lock(&self.0).capacity
    }

    /// Returns `true` once the reactor has ended the connection: nothing follows the bytes that
    /// [`take_sent`](Self::take_sent) returns now.
    pub fn is_finished(&self) -> bool {
        lock(&self.0).is_finished
    }
}

impl NearEnd {
    pub(super) const fn peer_address(&self) -> SocketAddr {
        self.peer
    }

    /// As [`TcpSocket::receive`](crate::tcp::TcpSocket::receive).
    pub(super) fn receive(&self, room: &mut [u8]) -> Result<Received, Error> {
        let mut pipe = lock(&self.pipe);
        let count = room.len().min(pipe.arrived.len());
        if count > 0 {
            room[..count].copy_from_slice(&pipe.arrived[..count]);
            pipe.arrived.drain(..count);
            return Ok(Received::Bytes(count));
        }
        match *pipe {
            _ if room.is_empty() => Ok(Received::Full),
            Pipe { is_reset: true, .. } => Err(self.reset(Operation::Receive)),
            Pipe { is_closed: true, .. } => Ok(Received::Closed),
            _ => Ok(Received::Nothing),
        }
    }

    /// As [`TcpSocket::send`](crate::tcp::TcpSocket::send).
    pub(super) fn send(&self, pieces: &[IoSlice<'_>]) -> Result<usize, Error> {
        let mut pipe = lock(&self.pipe);
        if pipe.is_reset {
            return Err(self.reset(Operation::Send));
        }
        let mut count = 0;
        for piece in pieces {
            let taken = piece.len().min(pipe.capacity);
            pipe.sent.extend_from_slice(&piece[..taken]);
            pipe.capacity -= taken;
            count += taken;
        }
        Ok(count)
    }

    pub(super) fn finish(&self) {
        lock(&self.pipe).is_finished = true;
    }

    fn reset(&self, operation: Operation) -> Error {
        Error::socket(operation, self.peer, Errno::CONNRESET)
    }
}

impl Drop for NearEnd {
    fn drop(&mut self) {
        self.finish();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use std::time::Duration;

    use tapeline_nanos::Nanos;

    use super::*;
    use crate::rssl::{ConnectionSettings, Event, Reactor, Sent};

    /// Carries bytes from one end to the other, a few at a time.
    fn carry(from: &FarEnd, to: &FarEnd) {
        to.deliver(&from.take_sent());
        from.set_capacity(10);
        if from.is_finished() {
            to.close();
        }
    }

    #[test]
    fn two_reactors_talk_through_memory() {
        let address: SocketAddr = "10.0.0.1:14002".parse().unwrap();
        let settings = Arc::new(ConnectionSettings::default());
        let (mut server, mut client) = (Reactor::new(10).unwrap(), Reactor::in_memory(10).unwrap());
        let dialed = client.connect(address, &settings, Nanos(1)).unwrap();
        let (to, client_end) = client.next_dialed().unwrap();
        assert_eq!(to, address);
        let server_end = server.accept_in_memory("10.0.0.2:1".parse().unwrap(), &settings, Nanos(1));
        let (mut heard, mut over, mut now) = (Vec::new(), None, 1);
        while over.is_none() {
            now += 1_000;
            for reactor in [&mut server, &mut client] {
                reactor.wait(Duration::ZERO).unwrap();
                while let Some((id, event, mut sender)) = reactor.next(Nanos(now)) {
                    match event {
                        Event::Connected(_) if id == dialed => {
                            assert_eq!(sender.send(&[7; 100]), Sent::Queued);
                        }
                        Event::Message(message) => heard = message.to_vec(),
                        Event::Closed(reason) => over = Some(reason.to_string()),
                        _ => {}
                    }
                }
            }
            if heard.len() == 100 {
                client_end.reset();
            }
            carry(&client_end, &server_end);
            carry(&server_end, &client_end);
        }
        assert_eq!(heard, [7; 100]);
        assert!(over.unwrap().contains("10.0.0.1:14002"), "the client is told of the reset");
    }
}
