//! Role of the provider for a consumer with several servers: active or standby.

use super::{Call, Provider, ProviderEvent, StreamHandle, StreamKind};
use crate::domain::standby::{self, ConnectionStatus, ServerType};

/// Maximum number of services on standby; further services are active. A real standby has a handful.
const MOST_SERVICES: usize = 1024;

/// Standby state, as the consumer has set it.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Bits of the modes that the login offers.
    pub(super) offered: u64,
    /// `true` if all items of the connection are on standby.
    is_login: bool,
    /// Services on standby, in ascending order.
    services: Vec<u16>,
}

impl Standing {
    /// Returns `true` if items of this service are on standby.
    pub(super) fn waits(&self, service_id: Option<u16>) -> bool {
        self.is_login || service_id.is_some_and(|id| self.services.binary_search(&id).is_ok())
    }

    /// Sets the role. Returns `true` if it has changed.
    fn set(&mut self, service_id: Option<u16>, server: ServerType) -> bool {
        let waits = server == ServerType::Standby;
        let Some(id) = service_id else { return std::mem::replace(&mut self.is_login, waits) != waits };
        match (self.services.binary_search(&id), waits) {
            (Ok(place), false) => _ = self.services.remove(place),
            (Err(place), true) if self.services.len() < MOST_SERVICES => self.services.insert(place, id),
            _ => return false,
        }
        true
    }
}

impl Provider {
    /// Returns `true` if a stream has no data for now, because its consumer has put the provider on standby: its image
    /// is sent without data, and it accepts no updates.
    #[must_use]
    pub fn stands_by(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.is_held_by(&self.standing))
    }

    /// Applies the roles that the consumer assigns. The streams are visited once, whatever the number of services.
    pub(super) fn set_standing(&mut self, status: &ConnectionStatus, call: &mut Call<'_>) {
        let (mut stands_by, mut takes_over) = (false, false);
        let mut set = |service_id, server| {
            if self.standing.set(service_id, server) {
                stands_by |= server == ServerType::Standby;
                takes_over |= server == ServerType::Active;
            }
        };
        match status {
            ConnectionStatus::Login(server) => set(None, *server),
            ConnectionStatus::Services(services) => {
                services.iter().for_each(|(id, server)| set(Some(*id), *server));
            }
        }
        if !stands_by && !takes_over {
            return;
        }
        let standing = &self.standing;
        self.streams.for_each(|stream| {
            // Updates would refer to an image that the consumer does not have: another image must come first.
            stream.has_image &= !stream.is_held_by(standing);
        });
        call.event(self, ProviderEvent::Standing { takes_over });
    }

    /// Returns `true` if a stream has had an image that updates can follow. A stream on standby has none, until its
    /// next image after it.
    #[must_use]
    pub fn has_image(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.has_image)
    }

    /// Returns `true` if the login offers the mode of a message.
    pub(super) fn is_offered(&self, status: &ConnectionStatus) -> bool {
        let mode = match status {
            ConnectionStatus::Login(_) => standby::BY_LOGIN,
            ConnectionStatus::Services(_) => standby::BY_SERVICE,
        };
        self.standing.offered & mode != 0
    }
}

impl super::ProviderStream {
    /// Returns `true` if the stream has no data for now. A private stream is never on standby: it belongs to its two
    /// ends.
    pub(super) fn is_held_by(&self, standing: &Standing) -> bool {
        self.kind == StreamKind::Item
            && self.is_streaming
            && !self.is_private
            && standing.waits(self.service_id)
    }
}
