//! A thread: its connections, and the messages sent and received on them.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tapeline_client::connection::MOST_MALFORMED;
use tapeline_client::endpoint::{Endpoint, resolve};
use tapeline_console::failure::Hinted;
use tapeline_console::log;
use tapeline_measure::Nanos;
use tapeline_wire::rssl::{
    ConnectionId, Delivery, Event, Handler, Negotiated, Reactor, Reason, Sender, Sent,
};

use super::super::link::{Link, Word};
use super::super::options::TransportPerfArgs;
use super::super::stamp::{now, until};
use super::super::tally::{Milestone, RunPhase, Tally};
use super::hearing::Heard;
use super::sending::FlowSender;

/// Maximum time between two checks for the end.
const TURN: Duration = Duration::from_millis(100);
/// Time between two connection attempts.
const AGAIN_NS: u64 = 1_000_000_000;
/// Time limit for queued output at the end.
const DRAIN_NS: u64 = 2_000_000_000;
/// Maximum bytes of messages queued to be reflected on one connection.
const MOST_WAITING: usize = 16 << 20;

/// The work of all threads.
#[derive(Debug)]
pub(super) struct TransportPlan {
    /// A client's server.
    pub(super) endpoint: Option<Endpoint>,
    pub(super) args: TransportPerfArgs,
    /// Open connections of all threads, and connections ever opened.
    pub(super) open: AtomicUsize,
    pub(super) opened: AtomicUsize,
}

pub(super) fn work(plan: &Arc<TransportPlan>, thread: usize, mut reactor: Reactor, mut link: Link) {
    link.begin(RunPhase::Steady);
    let mut working = Working {
        plan: Arc::clone(plan),
        thread,
        flows: Vec::new(),
        places: HashMap::new(),
        last: 0,
        over: Vec::new(),
        link,
        attempts_left: plan.args.attempts,
        next_attempt: plan.endpoint.is_some().then_some(Nanos(0)),
        why_not: String::new(),
        was_connected: false,
        is_done: false,
        is_lost: false,
    };
    let how = working.run(&mut reactor);
    working.link.end(how);
}

/// The state of a thread, beside its reactor.
struct Working {
    plan: Arc<TransportPlan>,
    thread: usize,
    flows: Vec<Flow>,
    /// Index of each connection in `flows`.
    places: HashMap<ConnectionId, usize>,
    /// Index of the flow that received last: usually the next message is for the same one.
    last: usize,
    /// Connections that end once all received messages are handled.
    over: Vec<(ConnectionId, Over)>,
    link: Link,
    attempts_left: Option<u32>,
    /// Time of a client's next connection attempt; `None` during an attempt and once connected.
    next_attempt: Option<Nanos>,
    /// Why there is no connection yet.
    why_not: String,
    was_connected: bool,
    /// Whether the thread has no more work.
    is_done: bool,
    /// Whether a client's connection was lost: the other threads continue without this one.
    is_lost: bool,
}

struct Flow {
    id: ConnectionId,
    /// The peer's version text.
    peer: String,
    is_json: bool,
    /// `None`: it sends no messages of its own.
    sending: Option<FlowSender>,
    heard: Heard,
    back: Reflections,
    /// Messages that were queued and never sent.
    unsent: u64,
}

/// Messages to reflect unchanged that are queued because of back pressure.
#[derive(Default)]
struct Reflections {
    waiting: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Reflected messages.
    sent: u64,
}

impl Working {
    fn run(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        while !self.link.is_over() && !self.is_lost {
            let now = now();
            self.connect(reactor, now)?;
            self.receive(reactor, now);
            self.send(reactor, now);
            self.link.settle();
            self.is_all_over();
            let wait = self.wait();
            reactor.wait(wait)?;
            if let Some(cause) = reactor.accept_error() {
                log::note(format_args!("nobody can be let in: {cause}"));
            }
        }
        self.drain(reactor)?;
        for at in (0..self.flows.len()).rev() {
            self.close(reactor, at);
            self.gone(at, "this side ends", true);
        }
        if let Some(endpoint) = self.plan.endpoint.as_ref().filter(|_| !self.was_connected) {
            let why = if self.why_not.is_empty() { "it did not answer" } else { &self.why_not };
            let what = format!("cannot connect to {}: {why}", endpoint.server);
            let hint =
                "start the other end first: tapeline omm transport server, or TransportPerf -appType server";
            return Err(Hinted::new(what, hint).into());
        }
        Ok(())
    }

    /// Connects a client's thread when an attempt is due.
    fn connect(&mut self, reactor: &mut Reactor, now: Nanos) -> anyhow::Result<()> {
        let (Some(endpoint), Some(next)) = (&self.plan.endpoint, self.next_attempt) else { return Ok(()) };
        if now < next {
            return Ok(());
        }
        self.next_attempt = None;
        self.attempts_left = self.attempts_left.map(|left| left.saturating_sub(1));
        let addresses = resolve(&endpoint.server)?;
        if let Err(cause) = reactor.connect_to_any(&addresses, &endpoint.settings, now) {
            self.failed(now, cause.to_string());
        }
        Ok(())
    }

    /// A connection attempt failed: another may follow.
    fn failed(&mut self, now: Nanos, reason: String) {
        if self.attempts_left == Some(0) {
            self.is_done = true;
            self.link.say(Word::Milestone(Milestone::Done(now)));
        } else {
            if self.why_not.is_empty() {
                let server = self.plan.endpoint.as_ref().map_or("", |endpoint| &endpoint.server);
                log::note(format_args!("no connection to {server}, it is tried again each second: {reason}"));
            }
            self.next_attempt = Some(now + AGAIN_NS);
        }
        self.why_not = reason;
    }

    fn receive(&mut self, reactor: &mut Reactor, now: Nanos) {
        let Ok(_) = reactor.handle(self, now);
        for (id, how) in std::mem::take(&mut self.over) {
            match (self.places.get(&id).copied(), how) {
                (Some(at), Over::ByThem(reason, is_good)) => self.gone(at, &reason, is_good),
                (Some(at), Over::ByUs(reason)) => {
                    self.close(reactor, at);
                    self.gone(at, reason, false);
                }
                (None, Over::ByThem(reason, _)) => {
                    // A connection that this side has closed is not retried.
                    if self.plan.endpoint.is_some() && !self.is_done {
                        self.failed(now, reason);
                    }
                }
                (None, Over::ByUs(_)) => {}
            }
        }
    }

    fn send(&mut self, reactor: &mut Reactor, now: Nanos) {
        let mut unfit = None;
        for (at, flow) in self.flows.iter_mut().enumerate() {
            if let Some(sending) = &mut flow.sending
                && let Some(mut sender) = reactor.sender(flow.id)
            {
                sending.turn(now, &mut sender, &mut self.link.tally);
                if sending.is_unfit {
                    unfit = Some(at);
                }
            }
        }
        // One per turn: the others follow in later turns.
        if let Some(at) = unfit {
            self.close(reactor, at);
            let len = self.plan.args.msg_size;
            self.gone(
                at,
                &format!("a message of {len} bytes is longer than any that can be sent on it"),
                false,
            );
        }
    }

    /// Time until there is something to send.
    fn wait(&self) -> Duration {
        if self.plan.args.busy_read && !self.flows.is_empty() {
            return Duration::ZERO;
        }
        let due = self.flows.iter().filter_map(|flow| flow.sending.as_ref()?.due());
        until(due.chain(self.next_attempt).min(), TURN)
    }

    /// Flushes queued output, and receives meanwhile. Messages still queued at the time limit count as unsent.
    fn drain(&mut self, reactor: &mut Reactor) -> anyhow::Result<()> {
        let until = now() + DRAIN_NS;
        loop {
            let mut flows = self.flows.iter();
            let is_out = flows.all(|flow| reactor.sender(flow.id).is_none_or(|sender| sender.unsent() == 0));
            if is_out || now() >= until {
                return Ok(());
            }
            reactor.wait(TURN)?;
            self.receive(reactor, now());
        }
    }

    /// Closes a connection. Messages queued on it count as unsent.
    fn close(&mut self, reactor: &mut Reactor, at: usize) {
        let Self { flows, link, plan, .. } = self;
        let flow = &mut flows[at];
        if let Some(sender) = reactor.sender(flow.id) {
            flow.take_back(&sender, plan.args.msg_size, &mut link.tally);
        }
        reactor.close(flow.id);
    }

    /// A connection ended. `is_good`: as intended by one of its ends.
    fn gone(&mut self, at: usize, reason: &str, is_good: bool) {
        let Flow { id, peer, heard, sending, back, unsent, .. } = self.flows.swap_remove(at);
        self.places.remove(&id);
        if let Some(moved) = self.flows.get(at) {
            self.places.insert(moved.id, at);
        }
        self.plan.open.fetch_sub(1, Ordering::Relaxed);
        self.link.say(Word::Milestone(Milestone::Parted));
        let Heard { received, lost, out_of_order, malformed, .. } = heard;
        let sent = sending.map_or(back.sent, |sending| sending.sent).saturating_sub(unsent);
        let faults = match (lost, out_of_order, malformed) {
            (0, 0, 0) => String::new(),
            _ => format!(", {lost} lost, {out_of_order} out of order, {malformed} malformed"),
        };
        log::note(format_args!(
            "connection {} with {} is over: {reason}; {sent} sent, {received} received{faults}",
            self.thread + 1,
            peer.escape_debug(),
        ));
        if self.plan.endpoint.is_some() && !self.link.is_over() {
            (self.is_done, self.is_lost) = (true, !is_good);
            let milestone = if is_good { Milestone::Done(now()) } else { Milestone::Lost(reason.to_owned()) };
            self.link.say(Word::Milestone(milestone));
        }
    }

    /// Reports the end once all clients have disconnected, if configured.
    fn is_all_over(&mut self) {
        let TransportPlan { args, open, opened, .. } = &*self.plan;
        // Relaxed: the counts publish no other data.
        let is_left = opened.load(Ordering::Relaxed) > 0 && open.load(Ordering::Relaxed) == 0;
        if args.end_with_clients && is_left && !self.is_done {
            self.is_done = true;
            self.link.say(Word::Milestone(Milestone::Done(now())));
        }
    }
}

impl Handler for Working {
    type Error = Infallible;

    #[inline]
    fn event(&mut self, Delivery { id, event, sender, now, .. }: Delivery<'_, '_>) -> Result<(), Infallible> {
        let Self { flows, places, last, link, plan, was_connected, over, .. } = self;
        if flows.get(*last).is_none_or(|flow| flow.id != id) {
            *last = places.get(&id).copied().unwrap_or(usize::MAX);
        }
        let flow = flows.get_mut(*last);
        match event {
            Event::Message(bytes) => {
                let Some(flow) = flow else { return Ok(()) };
                if plan.args.reflect_msgs {
                    flow.heard.pass(bytes, &mut link.tally);
                    if !flow.back.reflect(bytes, sender, &mut link.tally) {
                        over.push((id, Over::ByUs("it sends faster than it takes what goes back")));
                    }
                } else {
                    flow.heard.take(bytes, flow.is_json, &mut link.tally);
                    if flow.heard.malformed == MOST_MALFORMED {
                        over.push((id, Over::ByUs("its messages cannot be read")));
                    }
                }
            }
            Event::Room => {
                let Some(flow) = flow else { return Ok(()) };
                flow.back.go_on(sender, &mut link.tally);
                if let Some(sending) = &mut flow.sending {
                    sending.goes_on();
                }
            }
            Event::Connected(agreed) => {
                *was_connected = true;
                places.insert(id, flows.len());
                flows.push(Flow::new(plan, id, agreed, now));
                if plan.open.fetch_add(1, Ordering::Relaxed) == 0 {
                    link.say(Word::Milestone(Milestone::Ready));
                }
                plan.opened.fetch_add(1, Ordering::Relaxed);
                link.say(Word::Milestone(Milestone::FirstRequest(now)));
            }
            Event::Closed(reason) => {
                if let Some(flow) = flow {
                    flow.take_back(sender, plan.args.msg_size, &mut link.tally);
                }
                over.push((id, Over::ByThem(reason.to_string(), matches!(reason, Reason::Peer))));
            }
            _ => {}
        }
        Ok(())
    }
}

/// How a connection ended.
enum Over {
    /// The reason, and whether it is the regular end of a peer.
    ByThem(String, bool),
    ByUs(&'static str),
}

impl Flow {
    fn new(plan: &TransportPlan, id: ConnectionId, agreed: &Negotiated, now: Nanos) -> Self {
        let is_json = agreed.is_json();
        // Seeded by the clock, so that no two connections draw the same slices.
        let sending = FlowSender::new(&plan.args, is_json, now, now.0);
        let (heard, back) = (Heard::default(), Reflections::default());
        Self { id, peer: agreed.peer_version.clone(), is_json, sending, heard, back, unsent: 0 }
    }

    /// Subtracts messages still queued on a connection that ends. `len`: the length of those whose bytes are unavailable.
    fn take_back(&mut self, sender: &Sender<'_>, len: u32, tally: &mut Tally) {
        let Self { unsent, .. } = self;
        sender.unsent_messages(|message| {
            *unsent += 1;
            tally.unsent.messages_sent += 1;
            tally.unsent.bytes_sent += message.map_or(len as usize, <[u8]>::len) as u64;
        });
    }
}

impl Reflections {
    /// Reflects a message unchanged, now or after back pressure. `false`: the queue is full.
    fn reflect(&mut self, bytes: &[u8], sender: &mut Sender<'_>, tally: &mut Tally) -> bool {
        tally.counts.messages_due += 1;
        if self.waiting.is_empty() && self.sent_back(bytes, sender, tally) {
            return true;
        }
        self.bytes += bytes.len();
        self.waiting.push_back(bytes.into());
        self.bytes <= MOST_WAITING
    }

    /// Sends queued messages after back pressure.
    fn go_on(&mut self, sender: &mut Sender<'_>, tally: &mut Tally) {
        while let Some(bytes) = self.waiting.pop_front() {
            if !self.sent_back(&bytes, sender, tally) {
                self.waiting.push_front(bytes);
                return;
            }
            self.bytes -= bytes.len();
        }
    }

    /// Whether a message is sent or needs no retry. If the connection is closed, its close event follows.
    fn sent_back(&mut self, bytes: &[u8], sender: &mut Sender<'_>, tally: &mut Tally) -> bool {
        match sender.send(bytes) {
            Sent::Queued => {
                self.sent += 1;
                tally.counts.messages_sent += 1;
                tally.counts.bytes_sent += bytes.len() as u64;
                true
            }
            // A received message is short enough to be sent, so `Unfit` does not occur.
            Sent::NotOpen | Sent::Unfit => true,
            Sent::Full => false,
        }
    }
}
