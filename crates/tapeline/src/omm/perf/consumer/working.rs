//! A thread: its connection, and where in the test it is. With API dispatch there are two of them (`dispatching.rs`).

mod dispatching;

use std::sync::Arc;
use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::directory::{ServiceEntry, ServiceState};
use tapeline_omm::role::consumer::{Consumer, ItemRequest, ServiceName};
use tapeline_wire::rssl::{ConnectionId, Event, Reactor};

use super::super::link::{Link, Word};
use super::super::slices::{Share, Slices};
use super::super::tally::{Kind, Milestone};
use super::plan::{Plan, takes};
use super::sending::Sending;
use super::taking::Taking;
use crate::failure::Hinted;
use crate::omm::out::{Nowhere, Room, Side};
use crate::omm::transport::resolve;

/// The longest wait between two looks at whether to end.
const TURN: Duration = Duration::from_millis(100);

/// How long what was sent has to go out in the end, nanoseconds.
const DRAIN_NS: u64 = 5_000_000_000;

/// One thread's whole work.
pub(super) fn work(plan: &Arc<Plan>, thread: usize, link: Link) {
    let mut taking = Taking::new(plan, thread, link);
    let how = match Working::new(plan, thread) {
        Ok(mut working) => match plan.api_threads.get(thread) {
            None => working.run(&mut taking),
            Some(core) => dispatching::run(&mut working, &mut taking, core.0),
        },
        Err(cause) => Err(cause),
    };
    taking.link.end(how);
}

/// Where in the test a thread is.
enum Stage {
    /// It waits for connection, login and service.
    Waiting,
    /// It asks for items, and waits for their images.
    Startup {
        slices: Slices,
        share: Share,
        opened: usize,
        posts: Items,
        generics: Items,
    },
    Steady(Sending),
    Over,
}

/// Items that take posts, or generic messages.
type Items = Vec<(tapeline_omm::role::consumer::Handle, tapeline_omm::rwf::Domain)>;

struct Working {
    plan: Arc<Plan>,
    thread: usize,
    reactor: Reactor,
    consumer: Consumer,
    connection: Option<ConnectionId>,
    /// The endpoint that is connected to, or was last.
    endpoint: usize,
    room: Room,
    stage: Stage,
    /// Requests that have been counted.
    requests: u64,
    /// The service's number, if items are asked for by that.
    service_id: Option<u16>,
    has_said_unreachable: bool,
    has_said_no_service: bool,
}

/// The clock of everything here: times in messages are on it.
fn now() -> Nanos {
    Nanos(monotonic_ns())
}

impl Working {
    fn new(plan: &Arc<Plan>, thread: usize) -> anyhow::Result<Self> {
        Ok(Self {
            plan: Arc::clone(plan),
            thread,
            reactor: Reactor::new(1)?,
            consumer: Consumer::new(plan.settings.clone(), &plan.credentials.request())?,
            connection: None,
            endpoint: 0,
            room: Room::default(),
            stage: Stage::Waiting,
            requests: 0,
            service_id: None,
            has_said_unreachable: false,
            has_said_no_service: false,
        })
    }

    fn run(&mut self, taking: &mut Taking) -> anyhow::Result<()> {
        while !self.is_over(taking) {
            let now = now();
            self.receive(now, taking)?;
            self.look_for_service(now, taking);
            self.ask(now, taking)?;
            let next = self.tick(now, taking)?;
            self.disconnect(taking);
            self.connect(now, taking)?;
            self.count_requests(taking);
            taking.say_unknown();
            taking.link.settle();
            self.reactor.wait(self.wait(next))?;
        }
        self.log_out(taking)
    }

    fn is_over(&self, taking: &Taking) -> bool {
        taking.link.is_over() || matches!(self.stage, Stage::Over)
    }

    /// Takes what has come.
    fn receive(&mut self, now: Nanos, taking: &mut Taking) -> anyhow::Result<()> {
        while let Some((id, event, mut sender)) = self.reactor.next(now) {
            if self.connection != Some(id) {
                continue;
            }
            match event {
                Event::Message(received) => {
                    let Self { consumer, room, .. } = self;
                    room.take(received, &mut sender, |message, out| {
                        consumer.message(now, message, out, taking);
                        anyhow::Ok(())
                    })?;
                    if std::mem::take(&mut taking.has_news) {
                        self.room.set_services(self.consumer.directory());
                        if let Some(dictionary) = &taking.dictionary {
                            self.room.set_dictionary(dictionary);
                        }
                        self.has_service_gone(taking);
                    }
                }
                Event::Connected(agreed) => {
                    self.room = Room::new(Side::Client, agreed, &self.plan.dictionary, self.plan.json);
                    self.consumer.connected(now, &mut self.room.on(&mut sender));
                }
                Event::Closed(reason) => {
                    let reason = reason.to_string();
                    self.connection = None;
                    self.leave(taking);
                    self.lost(&reason, taking);
                    self.consumer.disconnected(now, taking);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The connection is gone: where the test had begun, it is over; else there will be another one.
    fn lost(&mut self, reason: &str, taking: &mut Taking) {
        let server = &self.plan.endpoints[self.endpoint].server;
        match self.stage {
            Stage::Over => {}
            Stage::Waiting => {
                if !std::mem::replace(&mut self.has_said_unreachable, true) {
                    taking.note(&format!(
                        "no connection to {server}, it is tried again until there is one: {reason}"
                    ));
                }
            }
            _ => {
                let what = format!("{server}: {reason}");
                taking.link.say(Word::Milestone(Milestone::Lost(what)));
                (self.stage, taking.is_over) = (Stage::Over, true);
            }
        }
    }

    /// The service as the directory has it: by its name, or once that is known by its number.
    fn service(&self) -> Option<&ServiceEntry> {
        let directory = self.consumer.directory();
        match self.service_id {
            Some(id) => directory.service(id),
            None => directory.named(&self.plan.service),
        }
    }

    /// Where the test has begun, it is over without its service.
    fn has_service_gone(&mut self, taking: &mut Taking) {
        let has_begun = matches!(self.stage, Stage::Startup { .. } | Stage::Steady(_));
        let is_up = self.service().and_then(ServiceEntry::state).is_some_and(ServiceState::is_up);
        if has_begun && !is_up {
            let what = format!("the service {} is down, or gone", self.plan.service);
            taking.link.say(Word::Milestone(Milestone::Lost(what)));
            (self.stage, taking.is_over) = (Stage::Over, true);
        }
    }

    /// Begins to ask for items as soon as their service takes requests.
    fn look_for_service(&mut self, now: Nanos, taking: &mut Taking) {
        if !matches!(self.stage, Stage::Waiting) || !self.consumer.is_ready() {
            return;
        }
        let state = self.service().and_then(ServiceEntry::state);
        let (is_there, is_open) = (state.is_some(), state.is_some_and(ServiceState::accepts_requests));
        if is_open {
            let id = self.service().map(|service| service.id);
            self.service_id = id.filter(|_| self.plan.asks_by_id);
            taking.link.say(Word::Milestone(Milestone::Ready));
            self.stage = Stage::Startup {
                slices: Slices::new(self.plan.tick_rate, now),
                share: Share::new(self.plan.request_rate, self.plan.tick_rate),
                opened: 0,
                posts: Vec::new(),
                generics: Vec::new(),
            };
        } else if !std::mem::replace(&mut self.has_said_no_service, true) {
            let (service, directory) = (&self.plan.service, self.consumer.directory());
            let names: Vec<&str> = directory.services().filter_map(|service| service.name()).collect();
            taking.note(&match (is_there, names.is_empty()) {
                (true, _) => format!("the service {service} takes no requests now; they wait until it does"),
                (false, true) => format!("there is no service {service}, nor any other; it is waited for"),
                (false, false) => {
                    format!("there is no service {service} but {}; it is waited for", names.join(", "))
                }
            });
        }
    }

    /// Opens the items of the slices that have begun. Without any left, and with all images, the steady state begins.
    fn ask(&mut self, now: Nanos, taking: &mut Taking) -> anyhow::Result<()> {
        let Stage::Startup { slices, share, opened, posts, generics } = &mut self.stage else {
            return Ok(());
        };
        let plan = &*self.plan;
        let (items, count) = (plan.items_of(self.thread), plan.division.of(self.thread));
        let service = self.service_id.map_or(ServiceName::Name(&plan.service), ServiceName::Id);
        while *opened < count
            && let Some((slice, due)) = slices.begin(now)
        {
            taking.link.tally.slice(now.since(due));
            if *opened == 0 {
                taking.link.say(Word::Milestone(Milestone::FirstRequest(now)));
            }
            let burst = usize::try_from(share.burst(slice)).unwrap_or(usize::MAX);
            let numbered = items.clone().enumerate().skip(*opened).take(burst);
            for (number, item) in numbered {
                let is_streaming = !item.is_snapshot && !plan.is_snapshot;
                let takes = |kind, rate: u64| rate > 0 && is_streaming && takes(item, kind);
                let sends = takes(Kind::Generic, plan.generics.all);
                let handle = self.consumer.open(&ItemRequest {
                    domain: item.domain,
                    is_streaming,
                    // As the public tools do: what is said on such a stream is between the two ends.
                    is_private: sends,
                    closure: number as u64,
                    ..ItemRequest::new(service, item.name.as_bytes())
                })?;
                if takes(Kind::Post, plan.posts.all) {
                    posts.push((handle, item.domain));
                }
                if sends {
                    generics.push((handle, item.domain));
                }
                *opened += 1;
            }
        }
        if *opened == count && taking.has_all() {
            if count == 0 {
                taking.complete();
            }
            let (posts, generics) = (std::mem::take(posts), std::mem::take(generics));
            self.stage = match plan.is_snapshot {
                true => Stage::Over,
                false => Stage::Steady(Sending::new(&self.plan, posts, generics, taking.poster, now)),
            };
        }
        Ok(())
    }

    /// Has the role do what is due; when it wants that again.
    fn tick_role(&mut self, now: Nanos, taking: &mut Taking) -> Option<Nanos> {
        match self.connection.and_then(|id| self.reactor.sender(id)) {
            Some(mut sender) => self.consumer.tick(now, &mut self.room.on(&mut sender), taking),
            None => self.consumer.tick(now, &mut Nowhere, taking),
        }
    }

    /// Does what is due, and sends; when to do so again.
    fn tick(&mut self, now: Nanos, taking: &mut Taking) -> anyhow::Result<Option<Nanos>> {
        let next = self.tick_role(now, taking);
        let sender = self.connection.and_then(|id| self.reactor.sender(id));
        let Some(mut sender) = sender else { return Ok(next) };
        let mut out = self.room.on(&mut sender);
        let due = match &mut self.stage {
            Stage::Startup { slices, opened, .. } => {
                (*opened < self.plan.division.of(self.thread)).then(|| slices.due())
            }
            Stage::Steady(sending) => {
                sending.send(now, &mut self.consumer, &mut out, &mut taking.link.tally)?;
                sending.due()
            }
            Stage::Waiting | Stage::Over => None,
        };
        Ok(next.into_iter().chain(due).min())
    }

    /// How long there is nothing to do but to take what comes.
    fn wait(&self, next: Option<Nanos>) -> Duration {
        if self.plan.spins || matches!(self.stage, Stage::Over) {
            return Duration::ZERO;
        }
        next.map_or(TURN, |next| Duration::from_nanos(next.0.saturating_sub(now().0))).min(TURN)
    }

    /// Connects, if the role wants it.
    fn connect(&mut self, now: Nanos, taking: &mut Taking) -> anyhow::Result<()> {
        if let Some(why) = taking.refusal.take().filter(|_| !matches!(self.stage, Stage::Over)) {
            let server = &self.plan.endpoints[self.endpoint].server;
            let what = format!("the session with {server} is over: {why}");
            return Err(
                Hinted::new(what, "--user and --password-file say who logs in, --server where").into()
            );
        }
        if !std::mem::take(&mut taking.wants_connection) {
            return Ok(());
        }
        self.endpoint = taking.attempt as usize % self.plan.endpoints.len();
        let endpoint = &self.plan.endpoints[self.endpoint];
        let begun = resolve(&endpoint.server)
            .and_then(|all| Ok(self.reactor.connect_to_any(&all, &endpoint.settings, now)?));
        match begun {
            Ok(id) => self.connection = Some(id),
            Err(cause) => {
                self.lost(&format!("{cause:#}"), taking);
                self.consumer.disconnected(now, taking);
            }
        }
        Ok(())
    }

    /// Closes the connection, if the role wants it.
    fn disconnect(&mut self, taking: &mut Taking) {
        if std::mem::take(&mut taking.wants_disconnection)
            && let Some(id) = self.connection.take()
        {
            self.reactor.close(id);
            self.leave(taking);
            if taking.refusal.is_none() {
                let why =
                    taking.timed_out.take().unwrap_or_else(|| "the provider closed the login".to_owned());
                self.lost(&why, taking);
            }
        }
    }

    /// Forgets the connection that there was.
    fn leave(&mut self, taking: &mut Taking) {
        taking.link.tally.counts.malformed += std::mem::take(&mut self.room).unreadable();
    }

    fn count_requests(&mut self, taking: &mut Taking) {
        let requests = self.consumer.counters().requests;
        taking.link.tally.counts.requests += requests - std::mem::replace(&mut self.requests, requests);
    }

    /// Says what was missing, lets what was sent go out, and says goodbye.
    fn log_out(&mut self, taking: &mut Taking) -> anyhow::Result<()> {
        if let Some(what) = taking.what_is_missing() {
            taking.note(&what);
        }
        (self.stage, taking.is_over) = (Stage::Over, true);
        self.drain(taking)?;
        if let Some(id) = self.connection.take()
            && let Some(mut sender) = self.reactor.sender(id)
        {
            self.consumer.log_out(&mut self.room.on(&mut sender), taking);
            sender.flush();
            self.reactor.close(id);
        }
        self.leave(taking);
        self.count_requests(taking);
        Ok(())
    }

    /// Waits until what was counted as sent is out, and takes what comes meanwhile: a peer that is not read might not read.
    fn drain(&mut self, taking: &mut Taking) -> anyhow::Result<()> {
        let until = now().0.saturating_add(DRAIN_NS);
        while let Some(mut sender) = self.connection.and_then(|id| self.reactor.sender(id)) {
            let is_out = self.room.on(&mut sender).settle() && sender.unsent() == 0;
            let now = now();
            if is_out || now.0 >= until {
                break;
            }
            self.reactor.wait(TURN)?;
            self.receive(now, taking)?;
        }
        Ok(())
    }
}
