//! Warm standby, as one of its connections: the provider is told what it is.

use super::connection::Link;
use super::{Consumer, DIRECTORY_STREAM};
use crate::domain::LOGIN_STREAM;
use crate::domain::standby::{BY_LOGIN, BY_SERVICE, ConnectionStatus};
use crate::role::Outbox;

/// Bytes of the message: more are a list of services that no login offers to take.
const MOST_BYTES: usize = 64 << 10;

impl Consumer {
    /// Bits of what the provider can be in a warm standby, as its login says: [`BY_LOGIN`], [`BY_SERVICE`]; 0 for nothing.
    #[must_use]
    pub const fn standby_modes(&self) -> u64 {
        self.connection.features.standby
    }

    /// Tells the provider what it is, the active server or one that stands by; without room the role owes it. Whether it is told:
    /// not without a login that offers it. To be told on each connection anew, at [`Event::Ready`](super::Event::Ready) at the
    /// latest: items are asked for behind it.
    pub fn tell_standing(&mut self, status: &ConnectionStatus, out: &mut dyn Outbox) -> bool {
        let (mode, stream) = match status {
            ConnectionStatus::Login(_) => (BY_LOGIN, LOGIN_STREAM),
            ConnectionStatus::Services(_) => (BY_SERVICE, DIRECTORY_STREAM),
        };
        if self.connection.link <= Link::Login || self.standby_modes() & mode == 0 {
            return false;
        }
        let mut message = vec![0; MOST_BYTES];
        let Ok(len) = status.encode(stream, &mut message) else { return false };
        self.owe(message.get(..len).unwrap_or_default(), out);
        true
    }
}
