//! What a role sends, into a connection.

use tapeline_omm::role::{Outbox, Sent};
use tapeline_wire::rssl::{self, Sender};

/// Longest message that is sent: what a connection takes if nothing else is set.
const MOST: usize = 16 << 20;
/// Room that is kept for the next message; more is given back.
const KEPT: usize = 64 << 10;

/// Where a connection's next message is written, and kept where the connection had no room for it.
#[derive(Debug, Default)]
pub(crate) struct Room {
    bytes: Vec<u8>,
    /// So many bytes of a message wait for room.
    waiting: Option<usize>,
}

impl Room {
    /// The way out for a role.
    pub(crate) fn on<'r, 's>(&'r mut self, sender: &'r mut Sender<'s>) -> Out<'r, 's> {
        Out { room: self, sender }
    }
}

/// An [`Outbox`] on a connection. A connection tells only when it is given a message that there is no room; so one message
/// may wait here, and nothing more is taken until that is out.
#[derive(Debug)]
pub(crate) struct Out<'r, 's> {
    room: &'r mut Room,
    sender: &'r mut Sender<'s>,
}

impl Out<'_, '_> {
    /// Whether nothing waits here.
    fn settle(&mut self) -> bool {
        let Some(len) = self.room.waiting else { return true };
        if self.sender.send(&self.room.bytes[..len]) == rssl::Sent::Full {
            return false;
        }
        // Sent; or the connection is over, and nobody will ever read it.
        self.room.waiting = None;
        true
    }
}

impl Outbox for Out<'_, '_> {
    fn most(&self) -> usize {
        MOST
    }

    fn claim(&mut self, len: usize) -> Option<&mut [u8]> {
        if !self.settle() || len > MOST {
            return None;
        }
        if self.room.bytes.len() < len {
            self.room.bytes.resize(len, 0);
        }
        self.room.bytes.get_mut(..len)
    }

    fn commit(&mut self, len: usize) {
        self.room.waiting = Some(len.min(self.room.bytes.len()));
        if self.settle() && self.room.bytes.len() > KEPT {
            self.room.bytes = Vec::new();
        }
    }
}

/// Nowhere: for a role without a connection, which has nobody to send to.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Outbox for Nowhere {
    fn most(&self) -> usize {
        MOST
    }

    fn claim(&mut self, _len: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _len: usize) {}

    fn send(&mut self, _message: &[u8]) -> Sent {
        Sent::Full
    }
}
