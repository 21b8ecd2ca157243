//! A thread: its servers, and its stage of the test. With API dispatch there are two threads.

use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::{RoleConnection, Side};
use tapeline_client::ema_config::StandbyMode;
use tapeline_client::endpoint::resolve;
use tapeline_console::failure::Hinted;
use tapeline_console::omm::say_notes;
use tapeline_measure::Nanos;
use tapeline_omm::domain::standby::ServerType;
use tapeline_omm::rwf::MessageClass;
use tapeline_wire::rssl::{ConnectionId, Delivery, Event, Handler, Reactor};

use super::super::dispatching::{self, Dispatched};
use super::super::link::{Link, Word};
use super::super::stamp::{now, until};
use super::super::tally::Milestone;
use super::plan::ConsumerPlan;
use super::sending::SteadyTraffic;
use super::server::Server;
use super::taking::Taking;

/// Maximum time between two checks for the end.
const TURN: Duration = Duration::from_millis(100);

/// Time limit for queued output at the end, in nanoseconds.
const DRAIN_NS: u64 = 5_000_000_000;

pub(super) fn work(plan: &Arc<ConsumerPlan>, thread: usize, link: Link) {
    let mut taking = Taking::new(plan, thread, link);
    let how = Working::new(plan, thread, &mut taking).and_then(|mut working| {
        let mut reactor = Reactor::new(working.servers.len())?;
        match plan.args.run.api_threads().get(thread) {
            None => {
                while !working.is_over() {
                    working.turn(&mut reactor)?;
                }
            }
            Some(core) => dispatching::run(&mut (&mut working, &mut reactor), thread, core.0)?,
        }
        working.log_out(&mut reactor)
    });
    taking.link.end(how);
}

/// A thread's stage of the test.
enum Stage {
    /// Waiting for connection, login and service.
    Waiting,
    /// Requesting items, and waiting for their images.
    Startup,
    Steady(SteadyTraffic),
    Over,
}

/// The state of a thread, beside its reactor.
struct Working<'a> {
    plan: Arc<ConsumerPlan>,
    thread: usize,
    taking: &'a mut Taking,
    /// One server, or with warm standby several.
    servers: Vec<Server>,
    /// Index of the server whose messages are counted.
    active: usize,
    stage: Stage,
    /// What an event leaves for `after`: the index of a server that has news, or whose connection closed for this reason.
    changed: Option<(usize, Option<String>)>,
}

impl<'a> Working<'a> {
    fn new(plan: &Arc<ConsumerPlan>, thread: usize, taking: &'a mut Taking) -> anyhow::Result<Self> {
        let count = plan.servers[thread].all.len();
        let mut servers =
            (0..count).map(|number| Server::new(plan, thread, number)).collect::<anyhow::Result<Vec<_>>>()?;
        let active = plan.servers[thread].first;
        servers[active].set_type(ServerType::Active);
        let plan = Arc::clone(plan);
        Ok(Self { plan, thread, taking, servers, active, stage: Stage::Waiting, changed: None })
    }

    fn turn(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        let now = now();
        reactor.handle(self, now)?;
        let next = self.perform(reactor, now)?;
        self.disconnect(reactor);
        self.connect(reactor, now)?;
        Ok(reactor.wait(self.wait(next))?)
    }

    /// Requests items, posts and sends; returns when there is more to do.
    fn perform(&mut self, reactor: &mut Reactor, now: Nanos) -> anyhow::Result<Option<Nanos>> {
        self.look_for_service(now);
        self.ask(now)?;
        let next = self.tick(reactor, now)?;
        self.say_standing();
        self.servers.iter_mut().for_each(|server| server.count_requests(self.taking));
        self.taking.say_unknown();
        self.taking.link.settle();
        Ok(next)
    }

    fn is_over(&self) -> bool {
        self.taking.link.is_over() || matches!(self.stage, Stage::Over)
    }

    /// The connection to a server was lost or could not be established.
    fn lost(&mut self, reactor: &mut Reactor, number: usize, reason: &str) {
        let server = &mut self.servers[number];
        let name = &server.endpoint(&self.plan).server;
        if matches!(self.stage, Stage::Over) || server.is_out {
            return;
        }
        if number != self.active {
            if !std::mem::replace(&mut server.has_said_unreachable, true) {
                let what = "which is to stand by, is not there, and is tried again";
                self.taking.note(&format!("{name}, {what}: {reason}"));
            }
            return;
        }
        let what = format!("{name}: {reason}");
        if self.switch(reactor, &what) {
            return;
        }
        let server = &mut self.servers[number];
        if !matches!(self.stage, Stage::Waiting) {
            self.end(what);
        } else if !std::mem::replace(&mut server.has_said_unreachable, true) {
            let name = &server.endpoint(&self.plan).server;
            self.taking
                .note(&format!("no connection to {name}, it is tried again until there is one: {reason}"));
        }
    }

    /// Switches from the active server to the next standby server, if there is one.
    fn switch(&mut self, reactor: &mut Reactor, why: &str) -> bool {
        let (count, before) = (self.servers.len(), self.active);
        let can_take_over = |number: &usize| self.servers[*number].can_take_over(&self.plan);
        let others: Vec<usize> =
            (1..count).map(|step| (before + step) % count).filter(can_take_over).collect();
        // Preferably a server where all items have been requested.
        let has_asked = |number: &&usize| self.servers[**number].has_asked(&self.plan);
        let Some(next) = others.iter().find(has_asked).or(others.first()).copied() else { return false };
        self.active = next;
        self.servers[before].set_type(ServerType::Standby);
        self.servers[before].has_said_unreachable = true;
        self.servers[next].set_type(ServerType::Active);
        let server = &self.servers[next];
        self.taking.note(&format!("{why}; {} is active now", server.endpoint(&self.plan).server));
        if let Some(dictionary) = server.consumer.dictionary() {
            self.taking.set_dictionary(dictionary);
        }
        if !matches!(self.stage, Stage::Waiting) {
            self.taking.switched(self.servers[before].heard);
        }
        self.taking.closed_before(&self.servers[next].wants.closed);
        // It is informed at once, so that no subscriber has to wait for it.
        self.servers[next].with_role(reactor, self.taking, |_, _, _| ());
        if matches!(self.stage, Stage::Steady(_)) {
            self.stage = self.steady(now());
        }
        true
    }

    /// Ends the test early: a connection or service that it needs is lost.
    fn end(&mut self, what: String) {
        self.taking.link.say(Word::Milestone(Milestone::Lost(what)));
        (self.stage, self.taking.is_over) = (Stage::Over, true);
    }

    /// Ends a test that has begun if its service is down, unless another server takes over, which none does by login.
    fn has_service_gone(&mut self, reactor: &mut Reactor, number: usize) {
        let has_begun = matches!(self.stage, Stage::Startup | Stage::Steady(_));
        if number != self.active || !has_begun || self.servers[number].is_up(&self.plan) {
            return;
        }
        let what = format!("the service {} is down, or gone", self.plan.args.service_name);
        let name = &self.servers[number].endpoint(&self.plan).server;
        let why = format!("{name}: {what}");
        let is_of_service = self.plan.servers[self.thread].standby == Some(StandbyMode::Service);
        if !is_of_service || !self.switch(reactor, &why) {
            self.end(what);
        }
    }

    /// Begins to request items from each server once its service accepts requests.
    fn look_for_service(&mut self, now: Nanos) {
        for (number, server) in self.servers.iter_mut().enumerate() {
            if server.asking.is_none() && !server.is_out && server.is_open(&self.plan) {
                server.begin(&self.plan, now);
            }
            if number != self.active || !matches!(self.stage, Stage::Waiting) || !server.consumer.is_ready() {
                continue;
            }
            if let Some(asking) = &server.asking {
                self.taking.link.say(Word::Milestone(Milestone::Ready));
                if asking.opened > 0 {
                    // It was a standby until now.
                    self.taking.link.say(Word::Milestone(Milestone::FirstRequest(now)));
                }
                self.stage = Stage::Startup;
            } else if !std::mem::replace(&mut server.has_said_no_service, true) {
                let (service, directory) = (&self.plan.args.service_name, server.consumer.directory());
                let names: Vec<&str> = directory.services().filter_map(|service| service.name()).collect();
                let is_there = server.service(&self.plan).is_some_and(|service| service.state().is_some());
                self.taking.note(&match (is_there, names.join(", ").as_str()) {
                    (true, _) => {
                        format!("the service {service} takes no requests now; they wait until it does")
                    }
                    (_, "") => format!("there is no service {service}, nor any other; it is waited for"),
                    (_, others) => format!("there is no service {service} but {others}; it is waited for"),
                });
            }
        }
    }

    /// Opens the items of the slices that have begun. The steady state begins once all are opened and have images.
    fn ask(&mut self, now: Nanos) -> anyhow::Result<()> {
        for (number, server) in self.servers.iter_mut().enumerate() {
            let is_first = server.ask(&self.plan, now, self.taking)?;
            if is_first && number == self.active {
                self.taking.link.say(Word::Milestone(Milestone::FirstRequest(now)));
            }
        }
        let is_asked = self.servers[self.active].has_asked(&self.plan);
        if matches!(self.stage, Stage::Startup) && is_asked && self.taking.has_all() {
            if self.plan.division.of(self.thread) == 0 {
                self.taking.complete();
            }
            self.stage = if self.plan.args.snapshot { Stage::Over } else { self.steady(now) };
        }
        Ok(())
    }

    /// Reports each standby server once it is ready to take over.
    fn say_standing(&mut self) {
        if !matches!(self.stage, Stage::Steady(_)) {
            return;
        }
        for number in (0..self.servers.len()).filter(|number| *number != self.active) {
            if self.servers[number].stands_by_anew(&self.plan) {
                let name = |number: usize| &self.servers[number].endpoint(&self.plan).server;
                self.taking.note(&format!("{} is active, {} stands by", name(self.active), name(number)));
            }
        }
    }

    /// The steady state; posts and generic messages go to the active server.
    fn steady(&self, now: Nanos) -> Stage {
        let asking = self.servers[self.active].asking.as_ref();
        let (posts, generics) =
            asking.map(|asking| (asking.posts.clone(), asking.generics.clone())).unwrap_or_default();
        Stage::Steady(SteadyTraffic::new(&self.plan, posts, generics, self.taking.poster, now))
    }

    /// Lets the roles do what is due; returns when they are due next.
    fn tick_roles(&mut self, reactor: &mut Reactor, now: Nanos) -> Option<Nanos> {
        let next = self.servers.iter_mut().filter(|server| !server.is_out);
        next.filter_map(|server| server.tick(reactor, now, self.taking)).min()
    }

    /// Lets the roles do what is due, and sends; returns when to do so again.
    fn tick(&mut self, reactor: &mut Reactor, now: Nanos) -> anyhow::Result<Option<Nanos>> {
        let next = self.tick_roles(reactor, now);
        let server = &mut self.servers[self.active];
        let mut sends = None;
        if let Stage::Steady(sending) = &mut self.stage
            && let Some(mut sender) = server.connection.and_then(|id| reactor.sender(id))
        {
            let mut out = server.room.outbox(&mut sender);
            sending.send(now, &mut server.consumer, &mut out, &mut self.taking.link.tally)?;
            sends = sending.due();
        }
        let asks = self.servers.iter().filter_map(|server| server.due(&self.plan));
        Ok(next.into_iter().chain(sends).chain(asks).min())
    }

    /// Time until there is more to do than receive.
    fn wait(&self, next: Option<Nanos>) -> Duration {
        if self.plan.args.busy_read || matches!(self.stage, Stage::Over) {
            return Duration::ZERO;
        }
        until(next, TURN)
    }

    /// Connects if the roles request it.
    fn connect(&mut self, reactor: &mut Reactor, now: Nanos) -> anyhow::Result<()> {
        for number in 0..self.servers.len() {
            let server = &mut self.servers[number];
            if let Some(why) = server.wants.refusal.take().filter(|_| !matches!(self.stage, Stage::Over)) {
                self.refused(reactor, number, &why)?;
            }
            let server = &mut self.servers[number];
            let wanted = server.wants.connection.take().filter(|_| !server.is_out);
            let Some(attempt) = wanted else { continue };
            let endpoint = server.next_endpoint(&self.plan, attempt);
            let begun = resolve(&endpoint.server)
                .and_then(|all| Ok(reactor.connect_to_any(&all, &endpoint.settings, now)?));
            match begun {
                Ok(id) => server.connection = Some(id),
                Err(cause) => {
                    self.lost(reactor, number, &format!("{cause:#}"));
                    self.disconnected(number, now);
                }
            }
        }
        Ok(())
    }

    /// A server's session has ended permanently.
    fn refused(&mut self, reactor: &mut Reactor, number: usize, why: &str) -> anyhow::Result<()> {
        let server = &mut self.servers[number];
        server.is_out = true;
        let what = format!("the session with {} is over: {why}", server.endpoint(&self.plan).server);
        if number != self.active {
            self.taking.note(&what);
        } else if !self.switch(reactor, &what) {
            let hint = "--user and --password-file say who logs in, --server where";
            return Err(Hinted::new(what, hint).into());
        }
        Ok(())
    }

    /// Informs a role that its connection is closed.
    fn disconnected(&mut self, number: usize, now: Nanos) {
        let (consumer, _, mut hearing) = self.servers[number].hearing(self.taking);
        consumer.disconnected(now, &mut hearing);
    }

    /// Closes connections if the roles request it, and those of servers that do not support standby.
    fn disconnect(&mut self, reactor: &mut Reactor) {
        for number in 0..self.servers.len() {
            let server = &mut self.servers[number];
            let wants = std::mem::take(&mut server.wants.disconnection);
            let Some(id) = server.connection.filter(|_| wants || server.is_out) else { continue };
            reactor.close(id);
            server.leave(self.taking);
            if !wants {
                let name = &server.endpoint(&self.plan).server;
                let mode = self.plan.servers[self.thread].standby.map_or("", StandbyMode::what);
                self.taking
                    .note(&format!("{name} is left out: its login does not offer to stand by for {mode}"));
            } else if server.wants.refusal.is_none() {
                let why = server.wants.timed_out.take();
                let why = why.unwrap_or_else(|| "the provider closed the login".to_owned());
                self.lost(reactor, number, &why);
            }
        }
    }

    /// Reports missing images, flushes queued output, and logs out.
    fn log_out(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        if let Some(what) = self.taking.what_is_missing() {
            self.taking.note(&what);
        }
        (self.stage, self.taking.is_over) = (Stage::Over, true);
        self.drain(reactor)?;
        for server in &mut self.servers {
            if let Some(id) = server.connection {
                server.with_role(reactor, self.taking, |consumer, out, hearing| {
                    consumer.log_out(out, hearing);
                });
                if let Some(mut sender) = reactor.sender(id) {
                    sender.flush();
                }
                reactor.close(id);
            }
            server.leave(self.taking);
            server.count_requests(self.taking);
        }
        Ok(())
    }

    /// Waits until all messages counted as sent are out. Receives meanwhile: a peer that is not read might not read.
    fn drain(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        let until = now().0.saturating_add(DRAIN_NS);
        loop {
            let server = &mut self.servers[self.active];
            let Some(mut sender) = server.connection.and_then(|id| reactor.sender(id)) else {
                return Ok(());
            };
            let is_out = server.room.outbox(&mut sender).send_waiting() && sender.unsent() == 0;
            let now = now();
            if is_out || now.0 >= until {
                let tally = &mut self.taking.link.tally;
                server.room.unsent(&sender, |message| tally.take_back(message, MessageClass::POST));
                return Ok(());
            }
            reactor.wait(TURN)?;
            reactor.handle(self, now)?;
        }
    }
}

impl Handler for Working<'_> {
    type Error = anyhow::Error;

    #[inline]
    fn event(
        &mut self,
        Delivery { id, event, following, sender, now }: Delivery<'_, '_>,
    ) -> anyhow::Result<()> {
        let Some(number) = self.servers.iter().position(|server| server.connection == Some(id)) else {
            return Ok(());
        };
        let server = &mut self.servers[number];
        match event {
            Event::Message(received) => {
                server.heard = now;
                server.consumer.expect(following);
                let (consumer, room, mut hearing) = server.hearing(self.taking);
                room.receive(received, sender, |message, out| {
                    consumer.message(now, message, out, &mut hearing);
                    anyhow::Ok(())
                })?;
                say_notes(&mut server.room);
                if std::mem::take(&mut server.wants.has_news) {
                    server.room.set_services(server.consumer.directory());
                    if let Some(dictionary) = server.consumer.dictionary() {
                        server.room.set_dictionary(dictionary);
                    }
                    self.changed = Some((number, None));
                }
            }
            Event::Connected(agreed) => {
                server.room =
                    RoleConnection::new(Side::Client, agreed, &self.plan.dictionary, self.plan.json);
                // LSEG's Java tools require this.
                server.room.number_services(true);
                server.consumer.connected(now, &mut server.room.outbox(sender));
            }
            Event::Closed(reason) => {
                let tally = &mut self.taking.link.tally;
                server.room.unsent(sender, |message| tally.take_back(message, MessageClass::POST));
                server.leave(self.taking);
                self.changed = Some((number, Some(reason.to_string())));
            }
            _ => {}
        }
        Ok(())
    }

    /// Another server may take over, and is informed at once.
    #[inline]
    fn after(&mut self, reactor: &mut Reactor, _: ConnectionId, now: Nanos) -> anyhow::Result<bool> {
        match self.changed.take() {
            None => {}
            Some((number, None)) => self.has_service_gone(reactor, number),
            Some((number, Some(reason))) => {
                self.lost(reactor, number, &reason);
                self.disconnected(number, now);
            }
        }
        Ok(true)
    }
}

/// With API dispatch, an additional thread receives and does the role's timed work; the thread itself sends.
impl Dispatched for (&mut Working<'_>, &mut Reactor) {
    fn reactor(&mut self) -> &mut Reactor {
        self.1
    }

    fn take(&mut self) -> anyhow::Result<bool> {
        let (working, reactor) = self;
        let now = now();
        reactor.handle(*working, now)?;
        working.disconnect(reactor);
        working.connect(reactor, now)?;
        working.tick_roles(reactor, now);
        Ok(match working.stage {
            Stage::Waiting => working.servers.iter().any(|server| server.consumer.is_ready()),
            Stage::Startup => working.taking.has_all(),
            Stage::Steady(_) => false,
            Stage::Over => true,
        })
    }

    fn perform(&mut self) -> anyhow::Result<Option<Duration>> {
        let (working, reactor) = self;
        if working.is_over() {
            return Ok(None);
        }
        let next = working.perform(reactor, now())?;
        Ok(Some(working.wait(next)))
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;

    use super::super::super::allocations::Pair;
    use super::super::super::options::{ConsumerArgs, of};
    use super::*;

    /// Updates are decoded and timed, posts are reflected, and generic messages are sent in both directions.
    #[test]
    fn what_is_received_and_posted_allocates_nothing_once_it_goes_on() {
        let mut pair = Pair::new();
        let options =
            "--item-count 100 --posting-rate 1000 --posting-latency-rate 100 --generic-msg-rate 1000";
        let args =
            of::<ConsumerArgs>(&format!("{options} --measure-decode --server localhost:{}", pair.port));
        let plan = Arc::new(ConsumerPlan::new(&args).unwrap());
        let mut taking = Taking::new(&plan, 0, pair.link());
        let mut working = Working::new(&plan, 0, &mut taking).unwrap();
        let mut reactor = Reactor::new(1).unwrap();
        pair.serve("--update-rate 10000 --latency-update-rate all --generic-msg-rate 1000");
        let mut turn = |working: &mut Working<'_>| {
            working.turn(&mut reactor).unwrap();
            // A change of phase begins a new tally.
            let updates = working.taking.link.tally.counts.updates;
            if matches!(working.stage, Stage::Steady(_)) { updates } else { 0 }
        };
        while turn(&mut working) < 5_000 {}
        let counted = measure(|| while turn(&mut working) < 15_000 {});
        assert_eq!(counted.count_total, 0);
        let counts = working.taking.link.tally.counts;
        assert!(counts.posts > 0 && counts.reflected_posts > 0 && counts.generics_received > 0, "{counts:?}");
        pair.end(|| _ = turn(&mut working));
    }
}
