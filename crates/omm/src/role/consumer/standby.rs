//! Warm standby, for one of its connections: the consumer tells the provider its role.

use super::connection::LinkProgress;
use super::{Consumer, DIRECTORY_STREAM};
use crate::domain::LOGIN_STREAM;
use crate::domain::standby::{BY_LOGIN, BY_SERVICE, ConnectionStatus};
use crate::role::Outbox;

/// Buffer size for the message, bytes. No login offers to accept a longer list of services.
const MOST_BYTES: usize = 64 << 10;

impl Consumer {
    /// Returns the bits of the provider's standby modes, as its login states: [`BY_LOGIN`], [`BY_SERVICE`]; 0 for none.
    #[must_use]
    pub const fn standby_modes(&self) -> u64 {
        self.connection.features.standby
    }

    /// Assigns the provider its role: active or standby. Without space the message is queued. Returns `false` if the
    /// login does not offer the mode. Call it on each connection, at [`ConsumerEvent::Ready`](super::ConsumerEvent::Ready) at the
    /// latest: item requests follow the message.
    pub fn tell_standing(&mut self, status: &ConnectionStatus, out: &mut dyn Outbox) -> bool {
        let (mode, stream) = match status {
            ConnectionStatus::Login(_) => (BY_LOGIN, LOGIN_STREAM),
            ConnectionStatus::Services(_) => (BY_SERVICE, DIRECTORY_STREAM),
        };
        if self.connection.link <= LinkProgress::Login || self.standby_modes() & mode == 0 {
            return false;
        }
        let mut message = vec![0; MOST_BYTES];
        let Ok(len) = status.encode(stream, &mut message) else { return false };
        self.owe(message.get(..len).unwrap_or_default(), out);
        true
    }
}
