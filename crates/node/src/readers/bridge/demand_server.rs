//! The demands of plants below on this plant's sources. They connect to the catch-up server, which hands those connections over to this thread;
//! it sleeps until something comes.
//!
//! Items of a plant whose connection is lost stay open for [`GRACE_NS`], so that it can come back; its posts and private streams end at once.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tapeline_feed::token_bucket::TokenBucket;
use tapeline_measure::{Clock, Nanos};
use tapeline_omm::rwf::{Domain, NakCode, StateCode};
use tapeline_plant::bridge::demands::{ALIVE_NS, FromAbove, FromBelow, LONGEST, NotADemand};
use tapeline_plant::demand::{Answer, Demand, DemanderId, FarDemand, Ticket, nak, status};
use tapeline_wire::tcp::{Received, Stream, Wakeup, wait};

use super::counters::BridgeCounters;
use crate::error::Context;
use crate::events::{Events, Kind, Severity};
use crate::sources::BETWEEN;
use crate::sources::far::FarLink;

/// Maximum number of plants below with demands; each has a buffer of [`LONGEST`] bytes.
const MOST_PLANTS: usize = 64;
/// Connections that wait to be taken over from the catch-up server.
const ARRIVING: usize = 16;
/// A plant that says nothing for this long is disconnected; it says something each second.
const PATIENCE_NS: i64 = 5_000_000_000;
/// How long the items of a plant stay open whose connection is lost.
const GRACE_NS: u64 = 5_000_000_000;
/// A plant that leaves more than this untaken is cut off.
const MOST_UNSENT: usize = 8 << 20;
/// Bytes per second of demands that each plant may send, and the bytes that it may send at once.
const RATE: (u64, u64) = (16 << 20, 4 << 20);
/// The longest sleep, and that while a plant waits for its rate or for the queue to the sources.
const SLEEP: Duration = Duration::from_millis(100);
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Memory of an item of one plant: the longest name twice, and its entries.
const ITEM: usize = 1_024;

/// Returns the bound of all memory for demands of plants below, each with so many items.
pub(super) fn memory_bound(max_demanded: usize) -> usize {
    // One plant at a time is read, and what it has sent waits for the sources.
    let each = (LONGEST + MOST_UNSENT).saturating_add(max_demanded.saturating_mul(ITEM));
    each.saturating_mul(MOST_PLANTS).saturating_add(BETWEEN + 16 * LONGEST)
}

/// The thread, and the way to it.
#[derive(Debug)]
pub(super) struct RunningDemandServer {
    thread: JoinHandle<()>,
    wakeup: Wakeup,
}

/// The catch-up server's way to the thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct ToDemandServer {
    to: SyncSender<Stream>,
    wakeup: Wakeup,
}

impl ToDemandServer {
    /// Hands over a connection whose request was answered. Returns `false` if too many wait.
    pub(super) fn hand_over(&self, stream: Stream) -> bool {
        let is_taken = self.to.try_send(stream).is_ok();
        self.wakeup.wake();
        is_taken
    }
}

impl RunningDemandServer {
    /// Starts the thread. `services` are the numbers and names of what can be demanded.
    pub(super) fn start(
        link: FarLink,
        services: Vec<(u16, String)>,
        counters: &Arc<BridgeCounters>,
        events: &Events,
    ) -> crate::Result<(Self, ToDemandServer)> {
        let (to, arriving) = sync_channel(ARRIVING);
        let wakeup = link.wakeup.clone();
        let server = DemandServer {
            link,
            services,
            arriving,
            plants: Vec::new(),
            leaving: VecDeque::new(),
            next_id: DemanderId::OWN.0 + 1,
            to_plant: VecDeque::new(),
            counters: Arc::clone(counters),
            events: events.clone(),
        };
        let run = move || server.run();
        let thread = std::thread::Builder::new().name("demands".to_owned()).spawn(run);
        let thread = thread.context("cannot start the thread for the demands of plants below")?;
        Ok((Self { thread, wakeup: wakeup.clone() }, ToDemandServer { to, wakeup }))
    }

    /// The catch-up server has ended.
    pub(super) fn end(self) {
        self.wakeup.wake();
        // A panic was reported by its thread; nothing waits for a result.
        let _ = self.thread.join();
    }
}

struct DemandServer {
    link: FarLink,
    services: Vec<(u16, String)>,
    arriving: Receiver<Stream>,
    plants: Vec<Plant>,
    /// Plants whose connection is lost, with the time at which their items are closed.
    leaving: VecDeque<(Nanos, DemanderId)>,
    next_id: u32,
    /// What the queue to the sources had no capacity for.
    to_plant: VecDeque<FarDemand>,
    counters: Arc<BridgeCounters>,
    events: Events,
}

/// A plant below.
struct Plant {
    id: DemanderId,
    stream: Stream,
    bucket: TokenBucket,
    heard: Nanos,
    said: Nanos,
    /// It has sent more than its rate allows: it is not read for now.
    is_held: bool,
}

/// Why a plant has left.
enum Left {
    Closed,
    Refused(String),
}

impl From<tapeline_wire::Error> for Left {
    fn from(_: tapeline_wire::Error) -> Self {
        // It was reset: that plant has ended, or has given up.
        Self::Closed
    }
}

impl From<NotADemand> for Left {
    fn from(error: NotADemand) -> Self {
        Self::Refused(error.to_string())
    }
}

impl DemandServer {
    fn run(mut self) {
        let clock = Clock::calibrate();
        loop {
            self.link.wakeup.answer();
            let now = clock.now();
            loop {
                match self.arriving.try_recv() {
                    Ok(stream) => self.admit(stream, now),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            self.take_answers();
            self.send();
            let mut plants = std::mem::take(&mut self.plants);
            plants.retain_mut(|plant| {
                let Err(left) = self.serve(plant, now) else { return true };
                self.part_with(plant, left, now);
                false
            });
            self.plants = plants;
            while let Some((_, hub)) = self.leaving.front().copied().filter(|(until, _)| *until <= now) {
                self.leaving.pop_front();
                self.to_plant.push_back(FarDemand::Gone(hub));
            }
            self.send();
            self.counters.demanding.store(self.plants.len() as u64, Ordering::Relaxed);
            let figures = &self.link.figures;
            self.counters.demanded.store(figures.items.load(Ordering::Relaxed), Ordering::Relaxed);
            self.counters.demands_refused.store(figures.refused.load(Ordering::Relaxed), Ordering::Relaxed);
            self.sleep();
        }
    }

    fn sleep(&self) {
        let is_full = !self.to_plant.is_empty();
        let is_held = is_full || self.plants.iter().any(|plant| plant.is_held);
        // A plant that is not read for now would end each wait at once.
        let read = self.plants.iter().filter(|plant| !is_full && !plant.is_held);
        let sockets = read.map(|plant| (plant.stream.as_fd(), plant.stream.interest()));
        wait(sockets.chain([self.link.wakeup.readiness()]), if is_held { SHORT_SLEEP } else { SLEEP });
    }

    /// Takes over a connection, and says which services there are.
    fn admit(&mut self, mut stream: Stream, now: Nanos) {
        if self.plants.len() >= MOST_PLANTS {
            let said = format_args!(
                "bridge: {} demands nothing: {MOST_PLANTS} plants have demands already",
                stream.peer_address()
            );
            return self.events.peer(now, Kind::Bridge, Severity::Warning, said);
        }
        stream.enlarge_input(LONGEST + 4);
        for (id, name) in &self.services {
            // A name fits.
            let _ = FromAbove::Service { id: *id, name: name.as_str().into() }.put(stream.output());
        }
        let _ = FromAbove::Alive.put(stream.output());
        let id = DemanderId(self.next_id);
        // No process lives for 2^32 connections.
        self.next_id = self.next_id.saturating_add(1);
        let bucket = TokenBucket::new(RATE.0, RATE.1);
        self.plants.push(Plant { id, stream, bucket, heard: now, said: now, is_held: false });
    }

    fn part_with(&mut self, plant: &Plant, left: Left, now: Nanos) {
        let (peer, severity, why) = match left {
            Left::Closed => {
                (plant.stream.peer_address(), Severity::Info, "it has closed the connection".to_owned())
            }
            Left::Refused(why) => (plant.stream.peer_address(), Severity::Warning, why),
        };
        self.counters.demands_cut_off.fetch_add(u64::from(severity == Severity::Warning), Ordering::Relaxed);
        let said = format_args!(
            "bridge: the plant at {peer} demands nothing more: {why}; its items are closed in {} s unless it comes back",
            GRACE_NS / 1_000_000_000
        );
        self.events.peer(now, Kind::Bridge, severity, said);
        self.to_plant.push_back(FarDemand::Lost(plant.id));
        self.leaving.push_back((now + GRACE_NS, plant.id));
    }

    /// Passes demands on to the sources, as far as the queue has capacity.
    fn send(&mut self) {
        let mut has_sent = false;
        while let Some(demand) = self.to_plant.pop_front() {
            match self.link.demands.try_send(demand) {
                Ok(()) => has_sent = true,
                Err(TrySendError::Full(demand)) => {
                    self.to_plant.push_front(demand);
                    break;
                }
                // The plant ends.
                Err(TrySendError::Disconnected(_)) => {}
            }
        }
        if has_sent {
            // If this fails, the plant looks a few milliseconds later.
            let _ = self.link.waker.wake();
        }
    }

    fn take_answers(&mut self) {
        for answer in self.link.answers.try_iter() {
            // For a plant that has left meanwhile there is no answer.
            let Some(plant) = self.plants.iter_mut().find(|plant| plant.id == answer.hub) else { continue };
            if let Some(private) = put(answer.answer, plant.stream.output()) {
                self.to_plant.push_back(FarDemand::Of(plant.id, Demand::ClosePrivate(private)));
            }
        }
    }

    fn serve(&mut self, plant: &mut Plant, now: Nanos) -> Result<(), Left> {
        plant.stream.flush()?;
        plant.is_held = !plant.bucket.has(LONGEST as u64 + 4, now);
        if !plant.is_held && self.to_plant.is_empty() {
            self.read(plant, now)?;
        }
        if now.since(plant.said) >= ALIVE_NS as i64 {
            plant.said = now;
            let _ = FromAbove::Alive.put(plant.stream.output());
        }
        if plant.stream.unsent() > MOST_UNSENT {
            return Err(Left::Refused("it does not take its answers".to_owned()));
        }
        if now.since(plant.heard) >= PATIENCE_NS {
            return Err(Left::Refused("nothing has come for 5 s".to_owned()));
        }
        plant.stream.flush()?;
        Ok(())
    }

    fn read(&mut self, plant: &mut Plant, now: Nanos) -> Result<(), Left> {
        let received = plant.stream.receive()?;
        if let Received::Bytes(count) = received {
            plant.heard = now;
            plant.bucket.take(count as u64, now);
        }
        let mut used = 0;
        while let Some((said, length)) = FromBelow::read(&plant.stream.bytes()[used..])? {
            used += length;
            match said {
                FromBelow::Alive => {}
                FromBelow::Demand(demand) => {
                    let is_post = matches!(demand, Demand::Post { .. });
                    self.counters.far_posts.fetch_add(u64::from(is_post), Ordering::Relaxed);
                    self.to_plant.push_back(FarDemand::Of(plant.id, demand));
                }
            }
        }
        plant.stream.consume(used);
        if received == Received::Closed { Err(Left::Closed) } else { Ok(()) }
    }
}

/// Appends an answer; in place of one that is too long, that it is. Returns the private stream that must end for that reason.
fn put(answer: Answer, out: &mut Vec<u8>) -> Option<Ticket> {
    let answer = FromAbove::Answer(answer);
    let Err(too_long) = answer.put(out) else { return None };
    let text = too_long.to_string();
    let short = match answer {
        FromAbove::Answer(Answer::Status { item, .. }) => {
            Answer::Status { message: status(item.domain, StateCode::NO_RESOURCES, &text), item }
        }
        FromAbove::Answer(Answer::Private { ticket, .. }) => {
            let message = status(Domain::MARKET_PRICE, StateCode::NO_RESOURCES, &text);
            Answer::Private { ticket, message }
        }
        FromAbove::Answer(Answer::Ack { ticket, .. }) => {
            let code = NakCode::NO_RESOURCES;
            Answer::Ack { ticket, message: nak(code, &text) }
        }
        // A generic message has no answer that could be awaited.
        _ => return None,
    };
    let ends = match &short {
        Answer::Private { ticket, .. } => Some(*ticket),
        _ => None,
    };
    let _ = FromAbove::Answer(short).put(out);
    ends
}
