//! A thread: its connection, and its stage of the test.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::{RoleConnection, Side};
use tapeline_client::endpoint::resolve;
use tapeline_console::failure::Hinted;
use tapeline_console::log;
use tapeline_console::omm::say_notes;
use tapeline_omm::role::Nowhere;
use tapeline_omm::role::ni_provider::NiProvider;
use tapeline_omm::rwf::MessageClass;
use tapeline_wire::rssl::{ConnectionId, Delivery, Event, Handler, Reactor};

use super::super::bursts::{Bursts, Progress};
use super::super::consumer::decoding::Decoder;
use super::super::dispatching::{self, Dispatched};
use super::super::link::{Link, Word};
use super::super::slices::Slices;
use super::super::stamp::{self, now, until};
use super::super::tally::{Milestone, RunPhase};
use super::plan::NiProviderPlan;
use super::publisher::{PublishedItem, Publisher};

/// Maximum time between two checks for the end.
const IDLE: Duration = Duration::from_millis(50);
/// Time limit for the hub to receive queued output at the end.
const GOODBYE_NS: u64 = 5_000_000_000;

/// Runs one thread until it is told to end, or its connection is lost.
pub(super) fn work(plan: &Arc<NiProviderPlan>, thread: usize, mut link: Link) {
    // It has no start-up phase: images are part of its traffic.
    link.tally.phase = RunPhase::Steady;
    let decoder = plan.publishing.args.measure_decode.then(|| Decoder::new(Arc::clone(&plan.dictionary)));
    let mut publisher = Publisher::new(link, decoder);
    let how = Working::new(plan, thread, &mut publisher).and_then(|mut working| working.run());
    publisher.link.end(how);
}

/// The state of a thread, beside its reactor.
struct Working<'a> {
    plan: Arc<NiProviderPlan>,
    thread: usize,
    publisher: &'a mut Publisher,
    provider: NiProvider,
    connection: Option<ConnectionId>,
    /// The current or last endpoint.
    endpoint: usize,
    room: RoleConnection,
    slices: Slices,
    begun: u64,
    updates: Bursts,
    /// Updates were late or under back pressure: they would use all capacity, and no further item would get an image.
    is_behind: bool,
    /// The service is published: losing the connection ends the test.
    has_begun: bool,
    is_over: bool,
    has_said_unreachable: bool,
}

impl<'a> Working<'a> {
    fn new(plan: &Arc<NiProviderPlan>, thread: usize, publisher: &'a mut Publisher) -> anyhow::Result<Self> {
        let (credentials, services) = (plan.credentials.request(), [plan.service.clone()]);
        let mut provider = NiProvider::new(plan.settings.clone(), &credentials, &services)?;
        for (number, item) in plan.items_of(thread).enumerate() {
            let handle = provider.add(plan.service.id, item.domain, item.name.as_bytes(), number as u64)?;
            let is_book = plan.publishing.is_book(item.domain).unwrap_or_default();
            publisher.items.push(PublishedItem { handle, domain: item.domain, is_book, update: 0 });
        }
        let publishing = &plan.publishing;
        let (traffic, tick_rate) = (&publishing.args, publishing.tick_rate);
        let seed = now().0 ^ (thread as u64).rotate_right(16);
        let updates = Bursts::new(traffic.update_rate, traffic.stamped_updates(), tick_rate, 0, seed);
        Ok(Self {
            plan: Arc::clone(plan),
            thread,
            publisher,
            provider,
            connection: None,
            endpoint: 0,
            room: RoleConnection::default(),
            slices: Slices::new(tick_rate, now()),
            begun: 0,
            updates,
            is_behind: false,
            has_begun: false,
            is_over: false,
            has_said_unreachable: false,
        })
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let reactor = &mut Reactor::new(1)?;
        match self.plan.args.run.api_threads().get(self.thread).map(|core| core.0) {
            Some(core) => {
                let number = self.thread;
                dispatching::run(&mut (&mut *self, &mut *reactor), number, core)?;
            }
            None => {
                while !self.is_leaving() {
                    reactor.handle(self, now())?;
                    let wait = self.turn(reactor)?;
                    self.connect(reactor)?;
                    self.publisher.link.settle();
                    reactor.wait(wait)?;
                }
            }
        }
        self.log_out(reactor)
    }

    /// Whether the test is over, or its connection lost.
    fn is_leaving(&self) -> bool {
        self.is_over || self.publisher.link.is_over()
    }

    /// The connection is lost: the test ends if it had begun; else the connection is retried. Behind the end of the test that is no loss.
    fn lost(&mut self, reason: &str) {
        let server = &self.plan.endpoints[self.thread][self.endpoint].server;
        if self.has_begun && !self.is_leaving() {
            let what = format!("{server}: {reason}");
            self.publisher.link.say(Word::Milestone(Milestone::Lost(what)));
            self.is_over = true;
        } else if !self.has_begun && !std::mem::replace(&mut self.has_said_unreachable, true) {
            log::note(format_args!(
                "no connection to {server}, it is tried again until there is one: {reason}"
            ));
        }
        self.connection = None;
        self.publisher.link.tally.counts.malformed += std::mem::take(&mut self.room).unreadable();
        self.provider.disconnected(now(), self.publisher);
    }

    /// Sends due messages; returns the time until there is more to do.
    fn turn(&mut self, reactor: &mut Reactor) -> anyhow::Result<Duration> {
        let now = now();
        let sender = self.connection.and_then(|id| reactor.sender(id));
        let Some(mut sender) = sender else {
            let next = self.provider.tick(now, &mut Nowhere, self.publisher);
            return Ok(until(next, IDLE));
        };
        let mut out = self.room.outbox(&mut sender);
        let next = self.provider.tick(now, &mut out, self.publisher);
        if !self.provider.is_ready() {
            return Ok(until(next, IDLE));
        }
        if std::mem::take(&mut self.publisher.is_ready) {
            self.publisher.link.say(Word::Milestone(Milestone::Ready));
            self.has_begun = true;
        }
        let publishing = &self.plan.publishing;
        let before = std::mem::replace(&mut self.begun, self.slices.begun(now));
        let is_active = self.publisher.images > 0 && self.updates.is_any;
        if is_active {
            for number in before..self.begun {
                self.publisher.link.tally.slice(now.since(self.slices.due_of(number)));
            }
        }
        let Self { publisher, provider, updates, slices, begun, is_behind, .. } = self;
        if *is_behind {
            publisher.send_images(publishing, provider, &mut out)?;
        }
        let mut progress = publisher.send_updates(publishing, updates, slices, *begun, provider, &mut out);
        *is_behind = progress != Progress::Done;
        let due = slices.due_of(*begun);
        if progress == Progress::Done {
            // Due updates do not wait for the images of other items.
            sender.flush();
            let mut out = self.room.outbox(&mut sender);
            loop {
                progress = publisher.send_images(publishing, provider, &mut out)?;
                if progress != Progress::More || stamp::now() >= due {
                    break;
                }
            }
        }
        let is_active = publisher.images > 0 && updates.is_any;
        Ok(match progress {
            Progress::More => Duration::ZERO,
            Progress::Done | Progress::Held if is_active => until(Some(due), IDLE),
            // A reactor event reports the end of back pressure.
            Progress::Done | Progress::Held => until(next, IDLE),
        })
    }

    /// Connects and disconnects as the role requests.
    fn connect(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        if std::mem::take(&mut self.publisher.wants_disconnection)
            && let Some(id) = self.connection
        {
            reactor.close(id);
            if self.publisher.refusal.is_none() {
                self.lost("the hub closed the login, or did not answer it");
            }
            self.connection = None;
        }
        if let Some(why) = self.publisher.refusal.take() {
            let server = &self.plan.endpoints[self.thread][self.endpoint].server;
            let what = format!("the session with {server} is over: {why}");
            return Err(Hinted::new(what, "--user names another user, --server another hub").into());
        }
        let wanted = self.publisher.wants_connection.take().filter(|_| !self.is_over);
        let Some(attempt) = wanted else { return Ok(()) };
        self.endpoint = attempt as usize % self.plan.endpoints[self.thread].len();
        let endpoint = &self.plan.endpoints[self.thread][self.endpoint];
        let begun = resolve(&endpoint.server)
            .and_then(|all| Ok(reactor.connect_to_any(&all, &endpoint.settings, now())?));
        match begun {
            Ok(id) => self.connection = Some(id),
            Err(cause) => self.lost(&format!("{cause:#}")),
        }
        Ok(())
    }

    /// Logs out, then closes the connection once all output is sent.
    fn log_out(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        let end = now() + GOODBYE_NS;
        if let Some(id) = self.connection
            && let Some(mut sender) = reactor.sender(id)
        {
            self.provider.log_out(&mut self.room.outbox(&mut sender), self.publisher);
        }
        while let Some(id) = self.connection.filter(|_| now() < end) {
            let Some(mut sender) = reactor.sender(id) else { break };
            let mut out = self.room.outbox(&mut sender);
            self.provider.tick(now(), &mut out, self.publisher);
            if out.send_waiting() && sender.flush() && sender.unsent() == 0 {
                reactor.close(id);
                break;
            }
            reactor.wait(IDLE)?;
            reactor.handle(self, now())?;
        }
        // Still connected at the time limit: queued messages count as unsent.
        if let Some(sender) = self.connection.and_then(|id| reactor.sender(id)) {
            let tally = &mut self.publisher.link.tally;
            self.room.unsent(&sender, |message| tally.take_back(message, MessageClass::UPDATE));
        }
        self.publisher.link.tally.counts.malformed += self.room.unreadable();
        Ok(())
    }
}

impl Handler for Working<'_> {
    type Error = anyhow::Error;

    #[inline]
    fn event(&mut self, Delivery { id, event, sender, now, .. }: Delivery<'_, '_>) -> anyhow::Result<()> {
        if self.connection != Some(id) {
            return Ok(());
        }
        match event {
            // Too late: the test is over.
            Event::Connected(_) if self.is_leaving() => {}
            Event::Connected(agreed) => {
                let publishing = &self.plan.publishing;
                publishing.check_pack(agreed.max_fragment_size)?;
                self.room = RoleConnection::new(Side::Client, agreed, &self.plan.dictionary, self.plan.json);
                self.room.set_services(self.provider.directory());
                self.room.set_pack(publishing.args.max_pack_count);
                self.provider.connected(now, &mut self.room.outbox(sender));
            }
            Event::Message(received) => {
                let Self { provider, room, publisher, .. } = self;
                let _ = room.receive(received, sender, |message, out| {
                    provider.message(now, message, out, *publisher);
                    Ok::<(), Infallible>(())
                });
                say_notes(room);
            }
            Event::Closed(reason) => {
                let reason = reason.to_string();
                let tally = &mut self.publisher.link.tally;
                self.room.unsent(sender, |message| tally.take_back(message, MessageClass::UPDATE));
                self.lost(&reason);
            }
            _ => {}
        }
        Ok(())
    }
}

/// With API dispatch, an additional thread receives, and the thread itself publishes.
impl Dispatched for (&mut Working<'_>, &mut Reactor) {
    fn reactor(&mut self) -> &mut Reactor {
        self.1
    }

    fn take(&mut self) -> anyhow::Result<bool> {
        let (working, reactor) = self;
        reactor.handle(*working, now())?;
        working.connect(reactor)?;
        Ok(working.publisher.is_ready || working.is_over)
    }

    fn perform(&mut self) -> anyhow::Result<Option<Duration>> {
        let (working, reactor) = self;
        if working.is_leaving() {
            return Ok(None);
        }
        let wait = working.turn(reactor)?;
        working.connect(reactor)?;
        working.publisher.link.settle();
        Ok(Some(wait))
    }
}
