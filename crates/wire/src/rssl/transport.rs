//! What carries a session's bytes.

use std::io::IoSlice;

use super::fault::Reason;
use crate::tcp::{Received, Socket};

/// A socket.
#[derive(Debug)]
pub(super) enum Transport {
    /// As it is.
    Plain(Socket),
}

impl Transport {
    pub(super) fn receive(&mut self, room: &mut [u8]) -> Result<Received, Reason> {
        match self {
            Self::Plain(socket) => Ok(socket.receive(room)?),
        }
    }

    /// Sends as much as there is room for: how many bytes.
    pub(super) fn send(&mut self, pieces: &[IoSlice<'_>]) -> Result<usize, Reason> {
        match self {
            Self::Plain(socket) => Ok(socket.send(pieces)?),
        }
    }

    /// Sends what it holds itself; whether all is out.
    pub(super) fn flush(&mut self, reason: &mut Option<Reason>) -> bool {
        let Self::Plain(socket) = self;
        socket.has_connected().unwrap_or_else(|cause| {
            *reason = Some(cause.into());
            true
        })
    }

    pub(super) fn finish(&mut self) {
        let Self::Plain(socket) = self;
        socket.finish();
    }

    pub(super) fn is_connecting(&self) -> bool {
        self.socket().is_connecting()
    }

    pub(super) fn socket(&self) -> &Socket {
        let Self::Plain(socket) = self;
        socket
    }
}
