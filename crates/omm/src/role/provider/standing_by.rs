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

/// What became of a message of the consumer's.
#[derive(Debug, Default)]
struct Changes {
    stands_by: bool,
    takes_over: bool,
}

impl Changes {
    fn add(&mut self, server: ServerType) {
        match server {
            ServerType::Active => self.takes_over = true,
            ServerType::Standby => self.stands_by = true,
        }
    }
}

impl Provider {
    /// Whether a stream gets no data for now, as its consumer has the provider stand by: its image would go out without any, and
    /// it takes no updates.
    #[must_use]
    pub fn stands_by(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.is_held_by(&self.standing))
    }

    /// The consumer says what the provider is to it. Whatever it says of how many services, streams are looked at once.
    pub(super) fn set_standing(
        &mut self,
        status: &ConnectionStatus,
        out: &mut dyn Outbox,
        application: &mut dyn Application,
    ) {
        let mut changes = Changes::default();
        let mut set = |service_id, server| {
            if self.standing.set(service_id, server) {
                changes.add(server);
            }
        };
        match status {
            ConnectionStatus::Login(server) => set(None, *server),
            ConnectionStatus::Services(services) => {
                services.iter().for_each(|(id, server)| set(Some(*id), *server));
            }
        }
        let Changes { stands_by, takes_over } = changes;
        if !stands_by && !takes_over {
            return;
        }
        let standing = &self.standing;
        self.streams.for_each(|stream| {
            // What follows would be updates of an image that the consumer will not have: another one comes first.
            stream.has_image &= !stream.is_held_by(standing);
        });
        application.event(self, out, Event::Standing { takes_over });
    }

    /// Whether a stream has had an image that updates can follow: not one that stands by, nor one that did until its next image.
    #[must_use]
    pub fn has_image(&self, stream: StreamHandle) -> bool {
        self.streams.get(stream).is_some_and(|open| open.has_image)
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
