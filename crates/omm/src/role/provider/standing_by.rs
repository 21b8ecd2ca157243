//! What the provider is to a consumer with several servers: the active one, or one that stands by.

use super::{Application, Event, Kind, Outbox, Provider, StreamHandle};
use crate::domain::standby::{self, ConnectionStatus, ServerType};

/// Services of a connection that stand by at most; others are active. Who has a standby has a handful.
const MOST_SERVICES: usize = 1024;

/// What stands by, as the consumer has it.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// Bits of what the login offers.
    pub(super) offered: u64,
    /// All items of the connection.
    is_login: bool,
    /// Those of these services, in order.
    services: Vec<u16>,
}

impl Standing {
    /// Whether items of this service wait.
    pub(super) fn waits(&self, service_id: Option<u16>) -> bool {
        self.is_login || service_id.is_some_and(|id| self.services.binary_search(&id).is_ok())
    }

    /// Whether it is another than before.
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
    /// Whether a stream gets no data for now, as its consumer has the provider stand by: its image would go out without any, and
    /// it takes no updates.
    #[must_use]
    pub fn stands_by(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.is_held_by(&self.standing))
    }

    /// The consumer says what the provider is to it.
    pub(super) fn set_standing(
        &mut self,
        status: &ConnectionStatus,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        match status {
            ConnectionStatus::Login(server) => self.stand(None, *server, out, application),
            ConnectionStatus::Services(services) => {
                for (id, server) in services {
                    self.stand(Some(*id), *server, out, application);
                }
            }
        }
    }

    fn stand(
        &mut self,
        service_id: Option<u16>,
        server: ServerType,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        if !self.standing.set(service_id, server) {
            return;
        }
        if server == ServerType::Standby {
            // What follows would be updates of an image that the consumer will not have: another one comes first.
            let standing = &self.standing;
            self.streams.for_each(|stream| stream.has_image &= !stream.is_held_by(standing));
        }
        application.event(self, out, Event::Standing { service_id, server });
    }

    /// Whether a message says so, of something that the login offers.
    pub(super) fn is_offered(&self, status: &ConnectionStatus) -> bool {
        let mode = match status {
            ConnectionStatus::Login(_) => standby::BY_LOGIN,
            ConnectionStatus::Services(_) => standby::BY_SERVICE,
        };
        self.standing.offered & mode != 0
    }
}

impl super::Stream {
    /// Whether it gets no data for now. A private stream is between its two ends, whatever else there is.
    pub(super) fn is_held_by(&self, standing: &Standing) -> bool {
        self.kind == Kind::Item && self.is_streaming && !self.is_private && standing.waits(self.service_id)
    }
}
