//! The demands of this plant's hub on the sources of the plant above, on a thread of its own, which sleeps until something comes.
//!
//! It connects while the plant follows the session of the plant above, and states every open item again after each loss. What has an answer gets
//! one in any case: posts and private streams end when the connection does.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tapeline_measure::{Clock, Nanos};
use tapeline_omm::rwf::{Domain, NakCode, Priority, StateCode};
use tapeline_plant::Seq;
use tapeline_plant::bridge::catch_up::{
    Beginning, CatchUpReply, CatchUpRequest, HEAD_BYTES, NotCatchUp, Outcome,
};
use tapeline_plant::bridge::demands::{ALIVE_NS, FromAbove, FromBelow, LONGEST, NotADemand};
use tapeline_plant::bridge::{BridgeSession, Epoch, PlantId};
use tapeline_plant::demand::{Answer, Demand, ItemName, Ticket, nak, status};
use tapeline_plant::sources::Posts;
use tapeline_wire::tcp::{Received, Stream, Wakeup, wait};

use super::UpstreamConfig;
use super::tcp_line::TlsToPlant;
use crate::Config;
use crate::error::Context;
use crate::events::{Events, Kind, Severity};
use crate::queue::{Entry, Exit};
use crate::sources::{DemandWaker, Demanding, QUEUE};

/// The plant above is silent for this long: it says something each second.
const PATIENCE_NS: i64 = 5_000_000_000;
/// The first pause after a loss, and the longest: each is twice as long as the one before.
const PAUSES_NS: (u64, u64) = (100_000_000, 5_000_000_000);
/// No more is written while so many bytes are untaken; what does not fit waits with the hub.
const MOST_UNSENT: usize = 256 << 10;
/// The longest sleep, and that while the hub has not taken all answers.
const SLEEP: Duration = Duration::from_millis(100);
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// What the plant's thread and the thread for demands tell each other, and the figures for the counters.
#[derive(Debug, Default)]
pub(crate) struct DemandsAbove {
    /// The epoch that the plant follows; 0 before the first.
    epoch: AtomicU64,
    connected: AtomicU64,
    items: AtomicU64,
    posts: AtomicU64,
    posts_refused: AtomicU64,
    losses: AtomicU64,
}

impl DemandsAbove {
    /// The plant follows this session.
    pub(super) fn follow(&self, session: BridgeSession) {
        // Relaxed: the thread asks the plant above, which knows its own epoch.
        self.epoch.store(session.epoch.0, Ordering::Relaxed);
    }

    /// Returns the figures: whether it is connected, open items, posts, posts refused here, connections lost.
    pub(super) fn figures(&self) -> [u64; 5] {
        let Self { connected, items, posts, posts_refused, losses, .. } = self;
        [connected, items, posts, posts_refused, losses].map(|figure| figure.load(Ordering::Relaxed))
    }
}

/// The running thread. It ends when the hub has.
#[derive(Debug)]
pub(crate) struct RunningDemands {
    thread: JoinHandle<()>,
    wakeup: Wakeup,
    pub(crate) shared: Arc<DemandsAbove>,
}

impl RunningDemands {
    /// Starts the thread, if there is a plant above and the hub has services of it. `demanding` becomes the hub's end of its queues.
    pub(crate) fn of_hub(
        config: &mut Config,
        demanding: &mut Option<Demanding>,
        events: &Events,
    ) -> crate::Result<Option<Self>> {
        let (Some(upstream), Some(hub)) = (&config.upstream, &mut config.hub) else { return Ok(None) };
        let settings = &mut hub.settings;
        settings.services.iter_mut().for_each(|service| service.is_shared = true);
        let services = settings.services.iter().map(|service| (service.id, service.name.clone()));
        let of_feeds =
            (settings.posts == Posts::Reflect).then(|| (settings.service_id, settings.service.clone()));
        let services: Vec<_> = services.chain(of_feeds).collect();
        if services.is_empty() {
            return Ok(None);
        }
        let (running, of_hub) = Self::start(upstream, services, events)?;
        *demanding = Some(of_hub);
        Ok(Some(running))
    }

    /// Starts the thread. Returns the hub's end of its queues. `services` are those of the plant above that the hub has.
    fn start(
        config: &UpstreamConfig,
        services: Vec<(u16, String)>,
        events: &Events,
    ) -> crate::Result<(Self, Demanding)> {
        let (mut demanding, demands, answers) = Demanding::queues(QUEUE);
        let wakeup = Wakeup::new()?;
        demanding.waker = Some(DemandWaker::Upstream(wakeup.clone()));
        let shared = Arc::<DemandsAbove>::default();
        let client = DemandClient {
            servers: config.catch_up.clone(),
            at: 0,
            tls: config.tls.clone(),
            name: config.name.clone(),
            plant: config.follower.plant,
            services,
            demands,
            answers,
            held: None,
            unanswered: VecDeque::new(),
            wakeup: wakeup.clone(),
            shared: Arc::clone(&shared),
            items: HashMap::new(),
            posts: HashSet::new(),
            private: HashSet::new(),
            connection: None,
            not_before: Nanos(0),
            pause_ns: PAUSES_NS.0,
            has_complained: false,
            told: Vec::new(),
            events: events.with("upstream", &config.name),
        };
        let thread = std::thread::Builder::new().name("demands".to_owned()).spawn(move || client.run());
        let thread = thread.context("cannot start the thread for demands on the plant above")?;
        Ok((Self { thread, wakeup, shared }, demanding))
    }

    /// The hub has ended.
    pub(crate) fn end(self) {
        self.wakeup.wake();
        // A panic was reported by its thread; nothing waits for a result.
        let _ = self.thread.join();
    }
}

struct DemandClient {
    /// That of each plant that may number, and which of them is asked.
    servers: Vec<SocketAddr>,
    at: usize,
    tls: Option<TlsToPlant>,
    name: String,
    plant: PlantId,
    services: Vec<(u16, String)>,
    demands: Exit<Demand>,
    answers: Entry<Answer>,
    /// Answers for which the hub's queue had no capacity.
    held: Option<Answer>,
    unanswered: VecDeque<Answer>,
    wakeup: Wakeup,
    shared: Arc<DemandsAbove>,
    /// Every open item.
    items: HashMap<ItemName, Priority>,
    /// Posts that wait for their receipt, and private streams.
    posts: HashSet<Ticket>,
    private: HashSet<Ticket>,
    connection: Option<Connection>,
    not_before: Nanos,
    pause_ns: u64,
    /// The loss was reported; the next success ends it.
    has_complained: bool,
    /// The services of the plant above, when they were last compared.
    told: Vec<(u16, String)>,
    events: Events,
}

struct Connection {
    stream: Stream,
    epoch: u64,
    heard: Nanos,
    said: Nanos,
    /// The plant above has agreed.
    is_open: bool,
    /// It has named its services.
    services: Vec<(u16, String)>,
    are_compared: bool,
    /// Items that were not stated on this connection yet.
    to_state: Vec<ItemName>,
}

/// Why a connection is lost, with advice.
struct Lost(String, Option<String>);

impl From<tapeline_wire::Error> for Lost {
    fn from(error: tapeline_wire::Error) -> Self {
        Self(error.to_string(), error.hint())
    }
}

impl From<NotCatchUp> for Lost {
    fn from(error: NotCatchUp) -> Self {
        Self(error.to_string(), None)
    }
}

impl From<NotADemand> for Lost {
    fn from(error: NotADemand) -> Self {
        Self(error.to_string(), None)
    }
}

impl DemandClient {
    fn run(mut self) {
        let clock = Clock::calibrate();
        while !self.demands.is_over() {
            self.wakeup.answer();
            let now = clock.now();
            if let Err(lost) = self.turn(now) {
                self.lose(lost, now);
            }
            self.take_demands();
            let connection = self.connection.as_mut();
            if let Some(Err(error)) = connection.map(|connection| connection.stream.flush()) {
                self.lose(error.into(), now);
            }
            let Self { answers, held, unanswered, .. } = &mut self;
            answers.send_all(held, || unanswered.pop_front());
            self.count();
            self.sleep();
        }
    }

    fn sleep(&self) {
        let longest = if self.held.is_some() { SHORT_SLEEP } else { SLEEP };
        let stream = self.connection.as_ref().filter(|_| self.held.is_none()).map(|it| &it.stream);
        let sockets = stream.map(|stream| (stream.as_fd(), stream.interest()));
        wait(sockets.into_iter().chain([self.wakeup.readiness()]), longest);
    }

    fn count(&self) {
        let is_open = self.connection.as_ref().is_some_and(|connection| connection.is_open);
        self.shared.connected.store(is_open.into(), Ordering::Relaxed);
        self.shared.items.store(self.items.len() as u64, Ordering::Relaxed);
    }

    /// Keeps the connection, takes answers, and states items.
    fn turn(&mut self, now: Nanos) -> Result<(), Lost> {
        let epoch = self.shared.epoch.load(Ordering::Relaxed);
        if self.connection.as_ref().is_some_and(|connection| connection.epoch != epoch) {
            // The answers of another epoch are about items of that epoch.
            self.end_all();
        }
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None if epoch == 0 || now < self.not_before => return Ok(()),
            None => {
                let mut stream = TlsToPlant::connect(self.tls.as_ref(), self.servers[self.at], LONGEST + 4)?;
                let (plant, beginning) = (self.plant, Beginning::Demands);
                let request = CatchUpRequest { plant, epoch: Some(Epoch(epoch)), next: Seq(0), beginning };
                stream.output().extend_from_slice(&request.encode());
                self.connection.insert(Connection {
                    stream,
                    epoch,
                    heard: now,
                    said: now,
                    is_open: false,
                    services: Vec::new(),
                    are_compared: false,
                    to_state: Vec::new(),
                })
            }
        };
        connection.stream.flush()?;
        if self.held.is_some() {
            return Ok(());
        }
        let received = connection.stream.receive()?;
        if let Received::Bytes(_) = received {
            connection.heard = now;
        }
        if !connection.is_open
            && let Some(head) = connection.stream.bytes().first_chunk::<HEAD_BYTES>()
        {
            let reply = CatchUpReply::decode(head)?;
            connection.stream.consume(HEAD_BYTES);
            refused(reply.outcome)?;
            connection.is_open = true;
            connection.to_state = self.items.keys().cloned().collect();
        }
        self.take_answers()?;
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if received == Received::Closed {
            return Err(Lost(
                "the plant above has closed the connection; its own messages may say why".to_owned(),
                None,
            ));
        }
        if now.since(connection.heard) >= PATIENCE_NS {
            return Err(Lost("nothing has come for 5 s".to_owned(), None));
        }
        if connection.is_open && now.since(connection.said) >= ALIVE_NS as i64 {
            connection.said = now;
            connection.put(&FromBelow::Alive);
        }
        while connection.stream.unsent() < MOST_UNSENT
            && let Some(item) = connection.to_state.pop()
        {
            if let Some(priority) = self.items.get(&item) {
                connection.put(&FromBelow::Demand(Demand::Open { item, priority: *priority }));
            }
        }
        Ok(())
    }

    fn take_answers(&mut self) -> Result<(), Lost> {
        let Some(connection) = self.connection.as_mut().filter(|connection| connection.is_open) else {
            return Ok(());
        };
        let mut used = 0;
        while let Some((said, length)) = FromAbove::read(&connection.stream.bytes()[used..])? {
            used += length;
            let answer = match said {
                FromAbove::Service { id, name } => {
                    connection.services.push((id, name.into()));
                    continue;
                }
                FromAbove::Alive => {
                    if !std::mem::replace(&mut connection.are_compared, true) {
                        (self.pause_ns, self.has_complained) = (PAUSES_NS.0, false);
                        if self.told != connection.services {
                            self.told.clone_from(&connection.services);
                            compare(&self.services, &self.told, &self.name, &self.events);
                        }
                    }
                    continue;
                }
                FromAbove::Answer(answer) => answer,
            };
            let is_awaited = match &answer {
                Answer::Ack { ticket, .. } => self.posts.remove(ticket),
                Answer::Private { ticket, .. } => self.private.contains(ticket),
                _ => true,
            };
            if is_awaited {
                self.unanswered.push_back(answer);
            }
        }
        connection.stream.consume(used);
        Ok(())
    }

    /// Takes demands of the hub, while the connection takes them.
    fn take_demands(&mut self) {
        let has_room = |it: &Self| {
            it.held.is_none()
                && it.connection.as_ref().is_none_or(|connection| connection.stream.unsent() < MOST_UNSENT)
        };
        while has_room(self) {
            let Some(demand) = self.demands.try_iter().next() else { return };
            self.demand(demand);
        }
    }

    fn demand(&mut self, demand: Demand) {
        match &demand {
            Demand::Open { item, priority } => _ = self.items.insert(item.clone(), *priority),
            Demand::Priority { item, priority } => {
                if let Some(own) = self.items.get_mut(item) {
                    *own = *priority;
                }
            }
            Demand::Close(item) => _ = self.items.remove(item),
            Demand::Post { ticket, .. } => {
                self.shared.posts.fetch_add(1, Ordering::Relaxed);
                self.posts.extend(*ticket);
            }
            Demand::OpenPrivate { ticket, .. } => _ = self.private.insert(*ticket),
            Demand::ClosePrivate(ticket) => _ = self.private.remove(ticket),
            _ => {}
        }
        let why = match self.connection.as_mut().filter(|connection| connection.is_open) {
            Some(connection) => {
                let said = FromBelow::Demand(demand);
                match said.put(connection.stream.output()) {
                    Ok(()) => return,
                    Err(too_long) => {
                        let FromBelow::Demand(demand) = said else { return };
                        return self.refuse(&demand, NakCode::INVALID_CONTENT, &too_long.to_string());
                    }
                }
            }
            None => "The plant above is not connected",
        };
        self.refuse(&demand, NakCode::SOURCE_DOWN, why);
    }

    /// Answers a demand that cannot be passed on, if it is one with an answer. Items wait for the connection.
    fn refuse(&mut self, demand: &Demand, code: NakCode, why: &str) {
        match demand {
            Demand::Post { ticket: Some(ticket), .. } => self.refuse_post(*ticket, code, why),
            Demand::OpenPrivate { ticket, .. } => self.end_private(*ticket, why),
            _ => {}
        }
    }

    fn refuse_post(&mut self, ticket: Ticket, code: NakCode, why: &str) {
        self.posts.remove(&ticket);
        self.shared.posts_refused.fetch_add(1, Ordering::Relaxed);
        self.unanswered.push_back(Answer::Ack { ticket, message: nak(code, why) });
    }

    fn end_private(&mut self, ticket: Ticket, why: &str) {
        self.private.remove(&ticket);
        let message = status(Domain::MARKET_PRICE, StateCode::NONE, why);
        self.unanswered.push_back(Answer::Private { ticket, message });
    }

    /// Ends the connection, and all that waits for an answer on it.
    fn end_all(&mut self) {
        self.connection = None;
        let mut posts: Vec<Ticket> = self.posts.iter().copied().collect();
        posts.sort_unstable();
        let why = "The plant above was lost before it had answered: the post may have arrived";
        posts.into_iter().for_each(|ticket| self.refuse_post(ticket, NakCode::NO_RESPONSE, why));
        let mut private: Vec<Ticket> = self.private.iter().copied().collect();
        private.sort_unstable();
        private.into_iter().for_each(|ticket| self.end_private(ticket, "The plant above was lost"));
    }

    fn lose(&mut self, Lost(why, hint): Lost, now: Nanos) {
        let server = self.servers[self.at];
        self.at = (self.at + 1) % self.servers.len();
        self.end_all();
        self.shared.losses.fetch_add(1, Ordering::Relaxed);
        self.not_before = now + self.pause_ns;
        self.pause_ns = PAUSES_NS.1.min(2 * self.pause_ns);
        if std::mem::replace(&mut self.has_complained, true) {
            return;
        }
        let said = format_args!(
            "upstream {}: nothing can be demanded of the plant above at {server}: {why}; it is tried again up to every 5 s",
            self.name
        );
        match hint {
            // Once for each loss.
            Some(hint) => self.events.warning_with(said, hint),
            None => self.events.peer(now, Kind::Bridge, Severity::Warning, said),
        }
    }
}

impl Connection {
    /// Appends a message without an answer, which is never too long.
    fn put(&mut self, said: &FromBelow) {
        let _ = said.put(self.stream.output());
    }
}

/// What a reply says that is no agreement.
fn refused(outcome: Outcome) -> Result<(), Lost> {
    let (why, hint) = match outcome {
        Outcome::Ticks => return Ok(()),
        Outcome::Busy => ("too many plants catch up there", None),
        Outcome::Gone => ("it is in another epoch, which this plant does not follow yet", None),
        Outcome::OtherPlant => {
            ("it is another plant", Some("plant and server in [[upstream]] must be of one plant"))
        }
        Outcome::NoDemands => (
            "it takes none",
            Some(
                "demands = \"items\" or \"posts\" in [bridge] of the plant above, which needs a [[service]]",
            ),
        ),
        _ => ("its reply is not one of this version", None),
    };
    Err(Lost(why.to_owned(), hint.map(str::to_owned)))
}

/// Warns of services that the plant above does not have.
fn compare(own: &[(u16, String)], theirs: &[(u16, String)], upstream: &str, events: &Events) {
    for (id, name) in own.iter().filter(|service| !theirs.contains(service)) {
        let theirs: Vec<_> = theirs.iter().map(|(id, name)| format!("{name} (number {id})")).collect();
        events.warning_with(
            format_args!("upstream {upstream}: the plant above has no service {name} with number {id}"),
            format!("it has {}; [[service]] here needs the same name and id", theirs.join(", ")),
        );
    }
}
