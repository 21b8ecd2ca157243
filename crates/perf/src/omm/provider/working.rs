//! A thread: its share of the consumers, slice by slice.

use std::sync::Arc;
use std::time::Duration;

use tapeline_client::connection::{MOST_MALFORMED, SharedTexts};
use tapeline_client::server::{Connections, Serve};
use tapeline_console::log;
use tapeline_console::omm::{say_accept_error, say_notes};
use tapeline_measure::Nanos;
use tapeline_omm::Refused;
use tapeline_omm::rwf::{DataType, MessageClass, MessageView};
use tapeline_wire::rssl::{ConnectionId, Negotiated, Reactor, Sender};

use super::super::bursts::Progress;
use super::super::consumer::decoding::{Decoder, FoundTimes};
use super::super::dispatching::{self, Dispatched};
use super::super::link::Link;
use super::super::slices::Slices;
use super::super::stamp::{self, now, until};
use super::super::tally::{Kind, RunPhase, Timed};
use super::answers::Answers;
use super::client::ProviderClient;
use super::plan::ProviderPlan;

/// Maximum wait of a thread that has nothing to send: the main thread may request its tally meanwhile.
const IDLE: Duration = Duration::from_millis(50);
/// Time limit for consumers to receive queued output at the end.
const GOODBYE_NS: u64 = 5_000_000_000;

/// State that the consumers of a thread share.
pub(super) struct Desk {
    pub(super) plan: Arc<ProviderPlan>,
    pub(super) link: Link,
    /// Slices that have begun.
    pub(super) begun: u64,
    /// Consumers connected so far.
    pub(super) clients: u64,
    /// JSON texts of updates that are encoded once, shared by consumers with JSON connections.
    pub(super) texts: SharedTexts,
    decoder: Decoder,
    /// Buffer in which posts become updates.
    pub(super) scratch: Vec<u8>,
    /// Bytes of posts queued to be sent back, of all consumers.
    pub(super) reflected: usize,
    /// Messages that could not be encoded.
    pub(super) unwritten: u64,
}

/// A thread of the provider.
pub(super) struct Working {
    /// Its number.
    thread: usize,
    desk: Desk,
    reactor: Reactor,
    clients: Connections<Desk>,
    slices: Slices,
    /// Updates are late or under back pressure: they would use all capacity, and no consumer would get an image.
    /// Images then take turns with updates, instead of using only the spare time.
    is_behind: bool,
}

/// Runs one thread until it is told to end.
pub(super) fn work(plan: &Arc<ProviderPlan>, thread: usize, reactor: Reactor, link: Link) {
    let mut working = Working::new(plan, thread, reactor, link);
    let done = working.run();
    let Working { mut desk, mut clients, .. } = working;
    clients.leave(&mut desk);
    desk.link.end(done);
}

impl Working {
    fn new(plan: &Arc<ProviderPlan>, thread: usize, reactor: Reactor, mut link: Link) -> Self {
        // A provider has no start-up phase.
        link.tally.phase = RunPhase::Steady;
        let desk = Desk {
            plan: Arc::clone(plan),
            link,
            begun: 0,
            clients: 0,
            texts: SharedTexts::default(),
            decoder: Decoder::new(Arc::clone(&plan.dictionary)),
            scratch: Vec::new(),
            reflected: 0,
            unwritten: 0,
        };
        let slices = Slices::new(plan.publishing.tick_rate, now());
        Self { thread, desk, reactor, clients: Connections::default(), slices, is_behind: false }
    }

    fn run(&mut self) -> anyhow::Result<()> {
        match self.desk.plan.args.run.api_threads().get(self.thread).map(|core| core.0) {
            Some(core) => dispatching::run(self, self.thread, core)?,
            None => {
                while !self.desk.link.is_over() {
                    self.turn()?;
                }
            }
        }
        self.drain()
    }

    fn turn(&mut self) -> anyhow::Result<()> {
        self.receive();
        let wait = self.give();
        self.reactor.wait(wait)?;
        self.desk.link.settle();
        Ok(())
    }

    /// Flushes queued output, then closes. Messages that are still queued at the time limit count as unsent.
    fn drain(&mut self) -> anyhow::Result<()> {
        let end = now() + GOODBYE_NS;
        while !self.is_out() && now() < end {
            self.reactor.wait(IDLE)?;
            self.clients.receive(&mut self.desk, &mut self.reactor, now());
            say_accept_error(&mut self.reactor);
        }
        for (id, client) in &self.clients.open {
            if let Some(sender) = self.reactor.sender(*id) {
                let tally = &mut self.desk.link.tally;
                client.room.unsent(&sender, |message| tally.take_back(message, MessageClass::UPDATE));
            }
            self.reactor.close(*id);
        }
        Ok(())
    }

    /// Whether all output is sent.
    fn is_out(&mut self) -> bool {
        let Self { clients, reactor, .. } = self;
        clients.open.iter_mut().all(|(id, client)| {
            let Some(mut sender) = reactor.sender(*id) else { return true };
            let is_settled = client.room.outbox(&mut sender).send_waiting();
            is_settled && sender.flush() && sender.unsent() == 0
        })
    }

    /// Processes received messages.
    fn receive(&mut self) {
        let now = now();
        self.clients.receive(&mut self.desk, &mut self.reactor, now);
        say_accept_error(&mut self.reactor);
        self.clients.tick(&mut self.desk, &mut self.reactor, now);
    }

    /// Sends due messages; returns the time until there is more to do.
    fn give(&mut self) -> Duration {
        if self.is_behind {
            self.answer_once(now());
        }
        let progress = self.send();
        self.is_behind = progress != Progress::Done;
        let mut is_busy = progress == Progress::More;
        if !self.is_behind {
            // Due messages do not wait for the images of others.
            self.reactor.flush();
            is_busy |= self.answer();
        }
        let is_active = self.clients.open.values().any(ProviderClient::is_active);
        let idle = self.desk.plan.round_trips().map_or(IDLE, |interval| interval.min(IDLE));
        match (is_busy, is_active) {
            (true, _) => Duration::ZERO,
            (false, false) => idle,
            (false, true) => until(Some(self.slices.due_of(self.desk.begun)), idle),
        }
    }

    /// Sends the messages due in the slices that have begun; returns the combined progress of all clients.
    fn send(&mut self) -> Progress {
        let now = now();
        let begun = self.slices.begun(now);
        let before = std::mem::replace(&mut self.desk.begun, begun);
        if self.clients.open.values().any(ProviderClient::is_active) {
            for number in before..begun {
                self.desk.link.tally.slice(now.since(self.slices.due_of(number)));
            }
        }
        let mut progress = Progress::Done;
        for (id, client) in &mut self.clients.open {
            let Some(mut sender) = self.reactor.sender(*id) else { continue };
            progress = progress.max(client.send(&mut sender, &mut self.desk, &self.slices, self.is_behind));
        }
        progress
    }

    /// Sends one burst of answers for each client; returns whether some are left.
    fn answer_once(&mut self, now: Nanos) -> bool {
        let (mut is_busy, most) = (false, self.desk.plan.publishing.args.refresh_burst_size);
        for (id, client) in &mut self.clients.open {
            if !client.items.owes() {
                continue;
            }
            let Some(mut sender) = self.reactor.sender(*id) else { continue };
            is_busy |= client.answer(&mut sender, &mut self.desk, most, now) == Progress::More;
        }
        is_busy
    }

    /// Answers requests in bursts until the next slice begins; returns whether some are left.
    fn answer(&mut self) -> bool {
        let next = self.slices.due_of(self.desk.begun);
        loop {
            let is_busy = self.answer_once(now());
            if !is_busy || now() >= next {
                return is_busy;
            }
        }
    }
}

/// With API dispatch, an additional thread receives, and the thread itself sends.
impl Dispatched for Working {
    fn reactor(&mut self) -> &mut Reactor {
        &mut self.reactor
    }

    fn take(&mut self) -> anyhow::Result<bool> {
        self.receive();
        Ok(self.clients.open.values().any(|client| client.items.owes()))
    }

    fn perform(&mut self) -> anyhow::Result<Option<Duration>> {
        if self.desk.link.is_over() {
            return Ok(None);
        }
        if self.desk.plan.round_trips().is_some() {
            // Round trips are also due while no messages arrive.
            self.clients.tick(&mut self.desk, &mut self.reactor, now());
        }
        let wait = self.give();
        self.desk.link.settle();
        Ok(Some(wait))
    }
}

impl Desk {
    /// One line for all: a peer can trigger any number of messages that cannot be encoded.
    pub(super) fn cannot_write(&mut self, refused: &Refused) {
        note_unwritten(&mut self.unwritten, refused);
    }

    /// Counts and times a consumer's generic message.
    pub(super) fn heard_generic(&mut self, message: &MessageView<'_>) {
        self.link.tally.counts.generics_received += 1;
        let Some(found) = self.decode(message.container(), message.payload()) else { return };
        if found.generic > 0 {
            let unit = self.plan.publishing.unit;
            self.link.tally.time(Timed::new(Kind::Generic, unit, found.generic, found.due, now().0));
        }
    }

    /// Decodes every value of a consumer's message, and measures the time if enabled. `None`: it is malformed.
    pub(super) fn decode(&mut self, container: DataType, payload: &[u8]) -> Option<FoundTimes> {
        let is_measured = self.plan.publishing.args.measure_decode;
        self.decoder.read_and_count(container, payload, is_measured, &mut self.link.tally)
    }
}

/// Counts a message that cannot be encoded, and reports the first.
pub(super) fn note_unwritten(unwritten: &mut u64, refused: &Refused) {
    if *unwritten == 0 {
        log::note(format_args!("a message cannot be written: {refused}"));
    }
    *unwritten += 1;
}

impl Serve for Desk {
    type Client = ProviderClient;

    fn open(&mut self, agreed: &Negotiated, now: Nanos) -> ProviderClient {
        ProviderClient::new(agreed, self, now)
    }

    fn step(
        &mut self,
        client: &mut ProviderClient,
        _id: ConnectionId,
        sender: &mut Sender<'_>,
        message: Option<&[u8]>,
        now: Nanos,
    ) -> Result<(), String> {
        if message.is_some() {
            // The consumer may have resumed paused items.
            client.passed = 0;
        }
        // Round trips use the actual time, not the time when the turn began.
        let measures_round_trips = self.plan.round_trips().is_some();
        let now = if measures_round_trips { stamp::now() } else { now };
        let ProviderClient { provider, room, items, reflections, user, .. } = client;
        let mut answers = Answers { desk: self, items, reflections, user, now };
        let done = match message {
            Some(received) => room
                .receive(received, sender, |message, out| provider.message(now, message, out, &mut answers)),
            None => provider.tick(now, &mut room.outbox(sender), &mut answers).map(|_| ()),
        };
        say_notes(room);
        done.map_err(|over| over.to_string())?;
        if measures_round_trips && message.is_none() && sender.unsent() > 0 {
            // A round trip that has just begun does not wait for the next burst.
            sender.flush();
        }
        if client.malformed() >= MOST_MALFORMED {
            return Err(format!("{MOST_MALFORMED} of its messages could not be read"));
        }
        Ok(())
    }

    fn closing(&mut self, client: &ProviderClient, sender: &Sender<'_>) {
        let tally = &mut self.link.tally;
        client.room.unsent(sender, |message| tally.take_back(message, MessageClass::UPDATE));
    }

    fn closed(&mut self, _id: ConnectionId, client: ProviderClient, reason: &str) {
        let tally = &mut self.link.tally;
        tally.worst = tally.worst.worse(client.standing.served);
        tally.counts.malformed += client.room.unreadable();
        self.reflected -= client.reflections.bytes;
        log::note(format_args!("{} is gone: {reason}", client.user.escape_debug()));
    }
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;

    use super::super::super::allocations::Pair;
    use super::super::super::options::{ProviderArgs, of};
    use super::*;
    use tapeline_client::ema_config::Chosen;

    /// Plain updates, updates encoded once, packed updates; generic messages in both directions, and reflected posts.
    #[test]
    fn what_is_sent_allocates_nothing_once_it_goes_on() {
        for options in ["--latency-update-rate 1000", "--pre-enc", "--max-pack-count 7 --measure-encode"] {
            let args = of::<ProviderArgs>(&format!("--update-rate 10000 --generic-msg-rate 1000 {options}"));
            let plan = Arc::new(ProviderPlan::new(&args, Chosen::default()).unwrap());
            let mut pair = Pair::new();
            let mut working = Working::new(&plan, 0, pair.reactor.take().unwrap(), pair.link());
            pair.consume("--item-count 100 --posting-rate 1000 --generic-msg-rate 1000");
            let until = |working: &mut Working, updates| {
                while working.desk.link.tally.counts.updates < updates
                    || working.desk.link.tally.counts.reflected_posts < updates / 20
                {
                    working.turn().unwrap();
                }
            };
            until(&mut working, 5_000);
            let before = working.desk.link.tally.counts.updates;
            let counted = measure(|| until(&mut working, before + 10_000));
            assert_eq!(counted.count_total, 0, "{options}");
            let counts = working.desk.link.tally.counts;
            assert!(counts.generics_sent > 0 && counts.generics_received > 0, "{options}: {counts:?}");
            pair.end(|| working.turn().unwrap());
        }
    }
}
