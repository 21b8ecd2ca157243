//! One server of a thread, which has several with warm standby: its connection, its role's requests, its items.

use tapeline_client::connection::RoleConnection;
use tapeline_client::ema_config::StandbyMode;
use tapeline_client::endpoint::Endpoint;
use tapeline_measure::Nanos;
use tapeline_omm::domain::directory::{ServiceEntry, ServiceState};
use tapeline_omm::domain::standby::{ConnectionStatus, ServerType};
use tapeline_omm::role::consumer::{
    Consumer, ConsumerApplication, ConsumerEvent, Handle, ItemRequest, ServiceName,
};
use tapeline_omm::role::{Nowhere, Outbox};
use tapeline_omm::rwf::Domain;
use tapeline_wire::rssl::{ConnectionId, Reactor};

use super::super::slices::{Share, Slices};
use super::super::tally::Kind;
use super::plan::{ConsumerPlan, rates, takes};
use super::taking::Taking;

/// A server, connected or not.
pub(super) struct Server {
    /// Its thread.
    thread: usize,
    /// Its index among the thread's servers.
    number: usize,
    pub(super) consumer: Consumer,
    pub(super) connection: Option<ConnectionId>,
    pub(super) room: RoleConnection,
    pub(super) wants: Wants,
    /// Set once its service accepts requests.
    pub(super) asking: Option<Asking>,
    /// The current or last endpoint.
    endpoint: usize,
    /// Requests that have been counted.
    requests: u64,
    /// The service's number, if items are requested by it.
    service_id: Option<u16>,
    /// Its type, and the type that the server was sent on this connection.
    server_type: ServerType,
    told: Option<ServerType>,
    /// When its last message was received.
    pub(super) heard: Nanos,
    /// It is not retried.
    pub(super) is_out: bool,
    pub(super) has_said_unreachable: bool,
    pub(super) has_said_no_service: bool,
    has_said_standing: bool,
}

/// Requests of a server's role for its connection, until they are carried out.
#[derive(Debug, Default)]
pub(super) struct Wants {
    /// A connection, after so many failed attempts since the last successful login.
    pub(super) connection: Option<u32>,
    pub(super) disconnection: bool,
    /// The directory or the dictionary has changed.
    pub(super) has_news: bool,
    /// The reason for a permanent end, from the provider or the role.
    pub(super) refusal: Option<String>,
    /// Why the role gives up its connection.
    pub(super) timed_out: Option<String>,
    /// Items that the server closed permanently, by their numbers.
    pub(super) closed: Vec<u64>,
}

/// Maximum requests before received messages are processed. With more, their images and the updates behind them would wait in the socket.
const TURN: u64 = 100;

/// Progress of the requests, and the items that accept posts and generic messages.
pub(super) struct Asking {
    slices: Slices,
    share: Share,
    /// Requests of the slices that have begun, still to be made.
    left: u64,
    pub(super) opened: usize,
    pub(super) posts: Items,
    pub(super) generics: Items,
}

/// Items that accept posts, or generic messages.
pub(super) type Items = Vec<(Handle, Domain)>;

impl Server {
    pub(super) fn new(plan: &ConsumerPlan, thread: usize, number: usize) -> anyhow::Result<Self> {
        let mut consumer = Consumer::new(plan.settings.clone(), &plan.credentials.request())?;
        consumer.reserve(plan.division.of(thread));
        Ok(Self {
            thread,
            number,
            consumer,
            connection: None,
            room: RoleConnection::default(),
            wants: Wants::default(),
            asking: None,
            endpoint: 0,
            requests: 0,
            service_id: None,
            server_type: ServerType::Standby,
            told: None,
            heard: Nanos(0),
            is_out: false,
            has_said_unreachable: false,
            has_said_no_service: false,
            has_said_standing: false,
        })
    }

    /// The current or last endpoint.
    pub(super) fn endpoint<'p>(&self, plan: &'p ConsumerPlan) -> &'p Endpoint {
        let endpoints = &plan.servers[self.thread].all[self.number];
        &endpoints[self.endpoint % endpoints.len()]
    }

    /// The endpoint for an attempt, in turn.
    pub(super) fn next_endpoint<'p>(&mut self, plan: &'p ConsumerPlan, attempt: u32) -> &'p Endpoint {
        self.endpoint = attempt as usize;
        self.endpoint(plan)
    }

    /// The service in the directory: by name, or by number once that is known.
    pub(super) fn service(&self, plan: &ConsumerPlan) -> Option<&ServiceEntry> {
        let directory = self.consumer.directory();
        match self.service_id {
            Some(id) => directory.service(id),
            None => directory.named(&plan.args.service_name),
        }
    }

    fn is_service(&self, plan: &ConsumerPlan, so: fn(&ServiceState) -> bool) -> bool {
        self.service(plan).and_then(ServiceEntry::state).is_some_and(so)
    }

    /// Whether the service is present and not down.
    pub(super) fn is_up(&self, plan: &ConsumerPlan) -> bool {
        self.is_service(plan, ServiceState::is_up)
    }

    pub(super) fn is_open(&self, plan: &ConsumerPlan) -> bool {
        self.consumer.is_ready() && self.is_service(plan, ServiceState::accepts_requests)
    }

    /// Whether it could become the active server.
    pub(super) fn can_take_over(&self, plan: &ConsumerPlan) -> bool {
        !self.is_out && self.connection.is_some() && self.asking.is_some() && self.is_open(plan)
    }

    pub(super) fn begin(&mut self, plan: &ConsumerPlan, now: Nanos) {
        self.service_id = self.service(plan).map(|service| service.id).filter(|_| plan.args.use_service_id);
        self.asking = Some(Asking {
            slices: Slices::new(plan.args.run.pace.tick_rate, now),
            share: Share::new(plan.args.request_rate, plan.args.run.pace.tick_rate),
            left: 0,
            opened: 0,
            posts: Vec::new(),
            generics: Vec::new(),
        });
    }

    /// Opens items of the slices that have begun, up to [`TURN`] of them; returns whether the first item is among them.
    pub(super) fn ask(
        &mut self,
        plan: &ConsumerPlan,
        now: Nanos,
        taking: &mut Taking,
    ) -> anyhow::Result<bool> {
        let asking = self.asking.as_mut().filter(|_| !self.consumer.is_ended());
        let Some(Asking { slices, share, left, opened, posts, generics }) = asking else { return Ok(false) };
        let (items, count) = (plan.items_of(self.thread), plan.division.of(self.thread));
        let service = self.service_id.map_or(ServiceName::Name(&plan.args.service_name), ServiceName::Id);
        let before = *opened;
        while *opened < count
            && let Some((slice, due)) = slices.begin(now)
        {
            taking.link.tally.slice(now.since(due));
            *left += share.burst(slice);
        }
        let burst = TURN.min(*left);
        *left -= burst;
        for (number, item) in items.enumerate().skip(*opened).take(burst as usize) {
            let is_streaming = !item.is_snapshot && !plan.args.snapshot;
            let takes = |kind| rates(&plan.args, kind).0 > 0 && is_streaming && takes(item, kind);
            let sends = takes(Kind::Generic);
            let handle = self.consumer.open(&ItemRequest {
                domain: item.domain,
                is_streaming,
                // As in the public tools: generic messages on such a stream are private to the two ends.
                is_private: sends,
                closure: number as u64,
                ..ItemRequest::new(service, item.name.as_bytes())
            })?;
            if takes(Kind::Post) {
                posts.push((handle, item.domain));
            }
            if sends {
                generics.push((handle, item.domain));
            }
            *opened += 1;
        }
        Ok(before == 0 && *opened > 0)
    }

    /// Whether all items of the thread are requested.
    pub(super) fn has_asked(&self, plan: &ConsumerPlan) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.opened == plan.division.of(self.thread))
    }

    /// When the next items are to be requested; at once if some are late.
    pub(super) fn due(&self, plan: &ConsumerPlan) -> Option<Nanos> {
        let asking = self.asking.as_ref().filter(|_| !self.has_asked(plan))?;
        Some(if asking.left > 0 { Nanos(0) } else { asking.slices.due() })
    }

    /// Whether it is a standby that could take over, for the first time since it became one.
    pub(super) fn stands_by_anew(&mut self, plan: &ConsumerPlan) -> bool {
        let is_ready =
            self.told == Some(ServerType::Standby) && self.can_take_over(plan) && self.has_asked(plan);
        is_ready && !std::mem::replace(&mut self.has_said_standing, true)
    }

    /// Makes it active or standby; the server is then informed.
    pub(super) fn set_type(&mut self, server_type: ServerType) {
        (self.server_type, self.has_said_standing) = (server_type, false);
    }

    /// Lets the role do what is due; returns when it is due next.
    pub(super) fn tick(&mut self, reactor: &mut Reactor, now: Nanos, taking: &mut Taking) -> Option<Nanos> {
        self.with_role(reactor, taking, |consumer, out, hearing| consumer.tick(now, out, hearing))
    }

    /// Calls `act` with the role, the output if connected, and the event handler.
    pub(super) fn with_role<T>(
        &mut self,
        reactor: &mut Reactor,
        taking: &mut Taking,
        act: impl FnOnce(&mut Consumer, &mut dyn Outbox, &mut Hearing<'_>) -> T,
    ) -> T {
        let connection = self.connection;
        let (consumer, room, mut hearing) = self.hearing(taking);
        match connection.and_then(|id| reactor.sender(id)) {
            Some(mut sender) => {
                let mut out = room.outbox(&mut sender);
                hearing.tell(consumer, &mut out);
                act(consumer, &mut out, &mut hearing)
            }
            None => act(consumer, &mut Nowhere, &mut hearing),
        }
    }

    /// The role, the connection state and the event handler.
    pub(super) fn hearing<'s>(
        &'s mut self,
        taking: &'s mut Taking,
    ) -> (&'s mut Consumer, &'s mut RoleConnection, Hearing<'s>) {
        let Self { consumer, room, wants, told, server_type, is_out, .. } = self;
        (consumer, room, Hearing { taking, wants, told, is_out, server_type: *server_type })
    }

    /// Clears the state of the ended connection.
    pub(super) fn leave(&mut self, taking: &mut Taking) {
        (self.connection, self.told, self.has_said_standing) = (None, None, false);
        taking.link.tally.counts.malformed += std::mem::take(&mut self.room).unreadable();
    }

    /// Counts the requests sent since the last call, if the server is active.
    pub(super) fn count_requests(&mut self, taking: &mut Taking) {
        let requests = self.consumer.counters().requests;
        let new = requests - std::mem::replace(&mut self.requests, requests);
        if self.server_type == ServerType::Active {
            taking.link.tally.counts.requests += new;
        }
    }
}

/// Handles the events of one server's role.
pub(super) struct Hearing<'a> {
    taking: &'a mut Taking,
    wants: &'a mut Wants,
    told: &'a mut Option<ServerType>,
    is_out: &'a mut bool,
    server_type: ServerType,
}

impl Hearing<'_> {
    /// Informs the server of its type before items are requested. One that does not support standby is not used as one.
    fn tell(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox) {
        let Some(mode) = self.taking.standby() else { return };
        if *self.told == Some(self.server_type) || consumer.directory().services().len() == 0 {
            return;
        }
        let status = match mode {
            StandbyMode::Login => ConnectionStatus::Login(self.server_type),
            StandbyMode::Service => match consumer.directory().named(self.taking.service()) {
                Some(service) => ConnectionStatus::Services(vec![(service.id, self.server_type)]),
                None => return,
            },
        };
        // A server that is active and supports nothing else need not be informed.
        if consumer.tell_standing(&status, out) || self.server_type == ServerType::Active {
            *self.told = Some(self.server_type);
        } else {
            *self.is_out = true;
        }
    }
}

impl ConsumerApplication for Hearing<'_> {
    #[inline]
    fn event(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        let wants = &mut *self.wants;
        match event {
            ConsumerEvent::Message { closure, message, is_final, .. } => {
                if is_final {
                    wants.closed.push(closure);
                }
                match self.server_type {
                    ServerType::Active => self.taking.message(closure, message, is_final),
                    ServerType::Standby => self.taking.of_standby(message),
                }
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                if is_final {
                    wants.closed.push(closure);
                }
                let is_active = self.server_type == ServerType::Active;
                self.taking.state(closure, &state, is_final, is_active);
            }
            ConsumerEvent::Connect { attempt } => wants.connection = Some(attempt),
            ConsumerEvent::Disconnect => wants.disconnection = true,
            ConsumerEvent::TimedOut(wait) => {
                wants.timed_out = Some(format!("{wait:?} timed out").to_lowercase());
            }
            ConsumerEvent::Ended { state } => wants.refusal = Some(state.to_string()),
            ConsumerEvent::Directory(_) => {
                wants.has_news = true;
                self.tell(consumer, out);
            }
            ConsumerEvent::Dictionary(dictionary) => {
                wants.has_news = true;
                if self.server_type == ServerType::Active {
                    self.taking.set_dictionary(dictionary);
                }
            }
            ConsumerEvent::DictionaryFailed(failed) => {
                self.taking.note(&format!("the provider's dictionary cannot be had: {failed}"));
            }
            ConsumerEvent::Malformed(fault) => self.taking.malformed(&fault.to_string()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::super::allocations::Pair;
    use super::super::super::options::{ConsumerArgs, of};
    use super::*;

    #[test]
    fn late_requests_are_made_in_turns_with_what_is_received() {
        let args = of::<ConsumerArgs>("--item-count 250 --request-rate 1000000");
        let plan = Arc::new(ConsumerPlan::new(&args).unwrap());
        let mut taking = Taking::new(&plan, 0, Pair::new().link());
        let mut server = Server::new(&plan, 0, 0).unwrap();
        server.begin(&plan, Nanos(0));
        for (is_first, opened, due) in
            [(true, 100, Some(Nanos(0))), (false, 200, Some(Nanos(0))), (false, 250, None)]
        {
            assert_eq!(server.ask(&plan, Nanos(1_000_000_000), &mut taking).unwrap(), is_first);
            assert_eq!((server.asking.as_ref().unwrap().opened, server.due(&plan)), (opened, due));
        }
    }
}
