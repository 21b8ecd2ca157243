//! A thread: its connection, and its stage of the test.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::{RoleConnection, Side};
use tapeline_client::endpoint::resolve;
use tapeline_console::failure::Hinted;
use tapeline_console::omm::say_notes;
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::role::ni_provider::NiProvider;
use tapeline_omm::rwf::MessageClass;
use tapeline_wire::rssl::{ConnectionId, Delivery, Event, Handler, Reactor};

use super::super::bursts::{Bursts, Progress};
use super::super::consumer::decoding::Decoder;
use super::super::dispatching::{self, Dispatched};
use super::super::link::{Link, Word};
use super::super::slices::Slices;
use super::super::tally::{Milestone, RunPhase};
use super::plan::NiProviderPlan;
use super::publisher::{PublishedItem, Publisher};
use tapeline_omm::role::Nowhere;

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
    let how = Working::new(plan, thread, &mut publisher).and_then(|mut working| working.run(&mut publisher));
    publisher.link.end(how);
}

/// The state of a thread, beside its reactor.
struct Working {
    plan: Arc<NiProviderPlan>,
    thread: usize,
    provider: NiProvider,
    connection: Option<ConnectionId>,
    /// The current or last endpoint.
    endpoint: usize,
    room: RoleConnection,
    slices: Slices,
    begun: u64,
    updates: Bursts,
    /// Updates were late or under back pressure: they would use all capacity, and no further item would get its
    /// image.
    is_behind: bool,
    /// The service is published: losing the connection ends the test.
    has_begun: bool,
    is_over: bool,
    has_said_unreachable: bool,
}

/// The clock of this module and of the times in messages.
fn now() -> Nanos {
    Nanos(monotonic_ns())
}

impl Working {
    fn new(plan: &Arc<NiProviderPlan>, thread: usize, publisher: &mut Publisher) -> anyhow::Result<Self> {
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

    fn run(&mut self, publisher: &mut Publisher) -> anyhow::Result<()> {
        let reactor = &mut Reactor::new(1)?;
        match self.plan.api_threads.get(self.thread).map(|core| core.0) {
            Some(core) => {
                let number = self.thread;
                dispatching::run(&mut Halves { working: self, reactor, publisher }, number, core)?;
            }
            None => {
                while !self.is_leaving(publisher) {
                    self.receive(reactor, publisher)?;
                    let wait = self.turn(reactor, publisher)?;
                    self.connect(reactor, publisher)?;
                    publisher.link.settle();
                    reactor.wait(wait)?;
                }
            }
        }
        self.log_out(reactor, publisher)
    }

    /// Whether the test is over, or its connection lost.
    fn is_leaving(&self, publisher: &Publisher) -> bool {
        self.is_over || publisher.link.is_over()
    }

    /// Processes received messages and connection events.
    ///
    /// # Errors
    /// The hub's frames are too small for the configured packing.
    fn receive(&mut self, reactor: &mut Reactor, publisher: &mut Publisher) -> anyhow::Result<()> {
        let (now, is_leaving) = (now(), self.is_leaving(publisher));
        reactor.handle(&mut HubEvents { working: self, publisher, is_leaving }, now)?;
        Ok(())
    }

    /// The connection is lost: the test ends if it had begun; else the connection is retried. Behind the end of the test that is no loss.
    fn lost(&mut self, reason: &str, publisher: &mut Publisher) {
        let server = &self.plan.endpoints(self.thread)[self.endpoint].server;
        if self.has_begun && !self.is_leaving(publisher) {
            let what = format!("{server}: {reason}");
            publisher.link.say(Word::Milestone(Milestone::Lost(what)));
            self.is_over = true;
        } else if !self.has_begun && !std::mem::replace(&mut self.has_said_unreachable, true) {
            anstream::eprintln!(
                "note: no connection to {server}, it is tried again until there is one: {reason}"
            );
        }
        self.connection = None;
        publisher.link.tally.counts.malformed += std::mem::take(&mut self.room).unreadable();
        self.provider.disconnected(now(), publisher);
    }

    /// Sends due messages; returns the time until there is more to do.
    fn turn(&mut self, reactor: &mut Reactor, publisher: &mut Publisher) -> anyhow::Result<Duration> {
        let now = now();
        let sender = self.connection.and_then(|id| reactor.sender(id));
        let Some(mut sender) = sender else {
            let next = self.provider.tick(now, &mut Nowhere, publisher);
            return Ok(until(next, now).min(IDLE));
        };
        let mut out = self.room.outbox(&mut sender);
        let next = self.provider.tick(now, &mut out, publisher);
        if !self.provider.is_ready() {
            return Ok(until(next, now).min(IDLE));
        }
        if std::mem::take(&mut publisher.is_ready) {
            publisher.link.say(Word::Milestone(Milestone::Ready));
            self.has_begun = true;
        }
        let publishing = &self.plan.publishing;
        let before = std::mem::replace(&mut self.begun, self.slices.begun(now));
        let is_active = publisher.images > 0 && self.updates.is_any();
        if is_active {
            for number in before..self.begun {
                publisher.link.tally.slice(now.since(self.slices.due_of(number)));
            }
        }
        let Self { provider, updates, slices, begun, is_behind, .. } = self;
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
                if progress != Progress::More || monotonic_ns() >= due.0 {
                    break;
                }
            }
        }
        let is_active = publisher.images > 0 && updates.is_any();
        Ok(match progress {
            Progress::More => Duration::ZERO,
            Progress::Done | Progress::Held if is_active => {
                Duration::from_nanos(due.0.saturating_sub(monotonic_ns())).min(IDLE)
            }
            // A reactor event reports the end of back pressure.
            Progress::Done | Progress::Held => until(next, now).min(IDLE),
        })
    }

    /// Connects and disconnects as the role requests.
    fn connect(&mut self, reactor: &mut Reactor, publisher: &mut Publisher) -> anyhow::Result<()> {
        if std::mem::take(&mut publisher.wants_disconnection)
            && let Some(id) = self.connection
        {
            reactor.close(id);
            if publisher.refusal.is_none() {
                self.lost("the hub closed the login, or did not answer it", publisher);
            }
            self.connection = None;
        }
        if let Some(why) = publisher.refusal.take() {
            let server = &self.plan.endpoints(self.thread)[self.endpoint].server;
            let what = format!("the session with {server} is over: {why}");
            return Err(Hinted::new(what, "--user names another user, --server another hub").into());
        }
        if !std::mem::take(&mut publisher.wants_connection) || self.is_over {
            return Ok(());
        }
        self.endpoint = publisher.attempt as usize % self.plan.endpoints(self.thread).len();
        let endpoint = &self.plan.endpoints(self.thread)[self.endpoint];
        let begun = resolve(&endpoint.server)
            .and_then(|all| Ok(reactor.connect_to_any(&all, &endpoint.settings, now())?));
        match begun {
            Ok(id) => self.connection = Some(id),
            Err(cause) => self.lost(&format!("{cause:#}"), publisher),
        }
        Ok(())
    }

    /// Logs out, then closes the connection once all output is sent.
    fn log_out(&mut self, reactor: &mut Reactor, publisher: &mut Publisher) -> anyhow::Result<()> {
        let end = now() + GOODBYE_NS;
        if let Some(id) = self.connection
            && let Some(mut sender) = reactor.sender(id)
        {
            self.provider.log_out(&mut self.room.outbox(&mut sender), publisher);
        }
        while let Some(id) = self.connection.filter(|_| now() < end) {
            let Some(mut sender) = reactor.sender(id) else { break };
            let mut out = self.room.outbox(&mut sender);
            self.provider.tick(now(), &mut out, publisher);
            if out.send_waiting() && sender.flush() && sender.unsent() == 0 {
                reactor.close(id);
                break;
            }
            reactor.wait(IDLE)?;
            self.receive(reactor, publisher)?;
        }
        // Still connected at the time limit: queued messages count as unsent.
        if let Some(sender) = self.connection.and_then(|id| reactor.sender(id)) {
            let tally = &mut publisher.link.tally;
            self.room.unsent(&sender, |message| tally.take_back(message, MessageClass::UPDATE));
        }
        publisher.link.tally.counts.malformed += self.room.unreadable();
        Ok(())
    }
}

/// A thread, while it receives.
struct HubEvents<'a> {
    working: &'a mut Working,
    publisher: &'a mut Publisher,
    /// Whether the test was over before it received.
    is_leaving: bool,
}

impl Handler for HubEvents<'_> {
    type Error = anyhow::Error;

    #[inline]
    fn event(&mut self, Delivery { id, event, sender, now }: Delivery<'_, '_>) -> anyhow::Result<()> {
        let Self { working, publisher, is_leaving } = self;
        if working.connection != Some(id) {
            return Ok(());
        }
        match event {
            // Too late: the test is over.
            Event::Connected(_) if *is_leaving => {}
            Event::Connected(agreed) => {
                working.plan.publishing.check_pack(agreed.max_fragment_size)?;
                working.room =
                    RoleConnection::new(Side::Client, agreed, &working.plan.dictionary, working.plan.json);
                working.room.set_services(working.provider.directory());
                working.room.set_pack(working.plan.publishing.args.max_pack_count);
                working.provider.connected(now, &mut working.room.outbox(sender));
            }
            Event::Message(received) => {
                let Working { provider, room, .. } = working;
                let _ = room.receive(received, sender, |message, out| {
                    provider.message(now, message, out, *publisher);
                    Ok::<(), Infallible>(())
                });
                say_notes(room);
            }
            Event::Closed(reason) => {
                let reason = reason.to_string();
                let tally = &mut publisher.link.tally;
                working.room.unsent(sender, |message| tally.take_back(message, MessageClass::UPDATE));
                working.lost(&reason, publisher);
            }
            _ => {}
        }
        Ok(())
    }
}

/// With API dispatch, an additional thread receives, and the thread itself publishes.
struct Halves<'a> {
    working: &'a mut Working,
    reactor: &'a mut Reactor,
    publisher: &'a mut Publisher,
}

impl Dispatched for Halves<'_> {
    fn reactor(&mut self) -> &mut Reactor {
        self.reactor
    }

    fn take(&mut self) -> anyhow::Result<bool> {
        let Self { working, reactor, publisher } = self;
        working.receive(reactor, publisher)?;
        working.connect(reactor, publisher)?;
        Ok(publisher.is_ready || working.is_over)
    }

    fn perform(&mut self) -> anyhow::Result<Option<Duration>> {
        let Self { working, reactor, publisher } = self;
        if working.is_leaving(publisher) {
            return Ok(None);
        }
        let wait = working.turn(reactor, publisher)?;
        working.connect(reactor, publisher)?;
        publisher.link.settle();
        Ok(Some(wait))
    }
}

/// Time until `next`; `IDLE` if there is none.
fn until(next: Option<Nanos>, now: Nanos) -> Duration {
    next.map_or(IDLE, |next| Duration::from_nanos(next.0.saturating_sub(now.0)))
}
