//! The catch-up server: plants below that start late, or have lost more than re-requests bring, get images and the ticks behind them, over
//! TCP, from the journal of this plant. The lines have the rest.
//!
//! One thread answers all of them in turns. Each has a rate, and a limit on the bytes that wait for it; a plant that takes nothing for
//! [`PATIENCE_NS`] is disconnected.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tapeline_feed::token_bucket::TokenBucket;
use tapeline_journal::{Directory, From, Next as InJournal, Reader as JournalReader};
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::Seq;
use tapeline_plant::bridge::catch_up::{
    self, Beginning, CatchUpReply, CatchUpRequest, HEAD_BYTES, Outcome, put_end, put_tick,
};
use tapeline_plant::bridge::{BridgeSession, PlantId};
use tapeline_plant::tick::{self, Tick};
use tapeline_ring::{Name, SubscriberId, Wait};
use tapeline_wire::tcp::{Interest, Listener, Received, Stream, wait};
use tapeline_wire::tls::Tls;

use super::counters::BridgeCounters;
use super::demand_server::ToDemandServer;
use super::epochs::{EpochFound, Epochs};
use super::{BridgeConfig, LAST_WORDS_NS, LONGEST_LEAVE_NS};
use crate::Error;
use crate::cursor::RingCursor;
use crate::events::{Events, Kind, Severity};
use crate::image_server::{KeptState, new_kept};
use crate::journal::Gate;
use crate::lease::Term;
use crate::readers::reader::{self, Reader};
use crate::readers::sequence_cursor::Kept;
use crate::ticks::{Next, OnRing};

/// Ticks taken between two looks at the sockets.
const BATCH: usize = 256;
/// Bytes prepared for one plant at a time.
const READY: usize = 256 << 10;
/// The longest sleep while the ring is quiet: while a plant is catching up, and otherwise.
const SHORT_SLEEP: Duration = Duration::from_micros(200);
const LONG_SLEEP: Duration = Duration::from_millis(5);
/// A plant that takes nothing, or does not send its request, for this long is disconnected.
const PATIENCE_NS: i64 = 5_000_000_000;
/// Plants that are being told that there are too many.
const TOLD_AT_ONCE: usize = 16;
/// How often the server checks that the plant is alive.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;
/// A plant that is no nearer to the last tick after this long is told of.
const COMPARED_NS: i64 = 10_000_000_000;
/// A plant that is behind by no more ticks than these is nearly level: at a low rate, what is sent at once is as many.
const NEARLY_LEVEL: u64 = 10_000;
/// Images are made once for all plants that ask within this time.
const SHARED_NS: i64 = 1_000_000_000;

/// The running thread; its result is the number of plants that have caught up.
#[derive(Debug)]
pub(super) struct RunningCatchUp(Reader<u64>);

impl RunningCatchUp {
    /// Opens the port and starts the thread, which waits for the ring.
    pub(super) fn start(
        config: &BridgeConfig,
        (epochs, gate, journal): (Epochs, Option<Gate>, Option<Kept>),
        demands: Option<ToDemandServer>,
        counters: &Arc<BridgeCounters>,
        events: &Events,
    ) -> crate::Result<(Self, SocketAddr)> {
        let listener = Listener::open(config.catch_up).map_err(|error| {
            let what = format!("plants below cannot catch up at {}", config.catch_up);
            Error::of_port(what, "[bridge]", error)
        })?;
        let address = listener.local_address();
        let limits = (config.max_catching_up, config.catch_up_bytes_per_second);
        let (plant, tls, term) = (config.plant, config.tls.clone(), config.term.clone());
        let kept = config.images.as_ref().map(new_kept);
        let (of_thread, counters) = (events.clone(), Arc::clone(counters));
        let reader = Reader::start("catch-up", events, move |ring, subscriber, _| {
            let ring = RingCursor::new("catch-up", OnRing { ring, subscriber }, gate, &of_thread);
            let server = CatchUpServer {
                plant,
                epochs,
                journal,
                kept,
                last: Seq(0),
                is_level: true,
                images: None,
                listener,
                tls,
                clients: Vec::new(),
                demands,
                limits,
                caught_up: 0,
                counters,
                term,
                events: of_thread,
            };
            server.run(ring)
        })?;
        Ok((Self(reader), address))
    }

    /// The ring exists. Returns the thread's place on it.
    pub(super) fn join(&mut self, ring: &Name) -> crate::Result<SubscriberId> {
        self.0.join(ring)
    }

    /// The ring has ended: returns how many plants have caught up.
    pub(super) fn end(self) -> crate::Result<u64> {
        self.0.end()
    }
}

/// All images at one moment, as ticks with their lengths.
#[derive(Debug)]
struct ImagesAt {
    made: Nanos,
    /// The last tick in them.
    last: Seq,
    bytes: Vec<u8>,
}

struct CatchUpServer {
    plant: PlantId,
    epochs: Epochs,
    journal: Option<Kept>,
    /// What the ticks so far have said, if images are kept.
    kept: Option<KeptState>,
    /// The last tick taken from the ring.
    last: Seq,
    /// Whether there was none behind it.
    is_level: bool,
    images: Option<Arc<ImagesAt>>,
    listener: Listener,
    tls: Option<Tls>,
    clients: Vec<Client>,
    /// What serves plants with demands; `None` if there is nothing to demand.
    demands: Option<ToDemandServer>,
    /// Maximum number of clients, and bytes per second of each.
    limits: (usize, u64),
    caught_up: u64,
    counters: Arc<BridgeCounters>,
    term: Option<Term>,
    events: Events,
}

/// One plant that catches up.
struct Client {
    stream: Stream,
    bucket: TokenBucket,
    /// When the peer last took or sent bytes.
    moved: Nanos,
    sending: Option<Sent>,
    distance: Distance,
    /// It is told that there are too many, and nothing else.
    is_one_too_many: bool,
    /// The connection ends behind what it is being sent.
    is_answered: bool,
    /// It has demands, and is not served here.
    has_demands: bool,
    is_over: bool,
}

/// How far behind the last tick a plant was when that was last compared.
#[derive(Clone, Copy, Debug, Default)]
struct Distance {
    /// When, and how many ticks; `None` before the first comparison.
    compared: Option<(Nanos, u64)>,
    is_told: bool,
}

impl Distance {
    /// Compares the distance every [`COMPARED_NS`]. Returns the one before, once, if it has not become less.
    fn compare(&mut self, ticks: u64, now: Nanos) -> Option<u64> {
        let (at, before) = *self.compared.get_or_insert((now, ticks));
        if now.since(at) < COMPARED_NS {
            return None;
        }
        self.compared = Some((now, ticks));
        let is_no_nearer = ticks >= before && ticks > NEARLY_LEVEL;
        (is_no_nearer && !std::mem::replace(&mut self.is_told, true)).then_some(before)
    }
}

/// What is being sent to one plant.
struct Sent {
    /// Images, which come behind the last tick in them, and how many bytes of them were passed on.
    images: Option<(Arc<ImagesAt>, usize)>,
    journal: Option<JournalReader<Directory>>,
    /// The first sequence that was not passed on.
    next: Seq,
    /// The first sequence that is not sent; `None`: as far as the journal reaches.
    end: Option<Seq>,
}

impl CatchUpServer {
    fn run(mut self, mut ring: RingCursor) -> crate::Result<u64> {
        let clock = Clock::calibrate();
        let (mut housekept, mut is_alive) = (clock.now(), true);
        loop {
            let now = clock.now();
            let (taken, is_over) = self.take_ticks(&mut ring)?;
            self.is_level = taken < BATCH;
            if !self.may_serve() {
                return Ok(self.caught_up);
            }
            self.turn(now);
            if is_over {
                return Ok(self.take_leave(&clock));
            }
            if now.since(housekept) >= HOUSEKEEPING_NS {
                housekept = now;
                is_alive = ring.ticks.subscriber.publisher_alive()?;
            } else if taken == 0 {
                crate::error::ensure!(is_alive || ring.is_held, "the plant has died");
            }
            if taken == 0 && ring.is_held {
                std::thread::sleep(SHORT_SLEEP);
            } else if self.clients.is_empty() && reader::may_pause(&ring.ticks.subscriber, taken) {
                std::thread::sleep(reader::PAUSE);
            } else if taken == 0 {
                let sleep = if self.clients.is_empty() { LONG_SLEEP } else { SHORT_SLEEP };
                ring.ticks.subscriber.wait(Wait::Park, sleep);
            }
        }
    }

    /// Answers those who lack the last ticks of a plant that has ended. Returns how many plants have caught up.
    fn take_leave(mut self, clock: &Clock) -> u64 {
        let begun = clock.now();
        let mut asked = begun;
        loop {
            let now = clock.now();
            if !self.may_serve() {
                return self.caught_up;
            }
            self.turn(now);
            if !self.clients.is_empty() {
                asked = now;
            }
            if now.since(asked) >= LAST_WORDS_NS || now.since(begun) >= LONGEST_LEAVE_NS {
                return self.caught_up;
            }
            let sockets = self.clients.iter().map(|client| (client.stream.as_fd(), client.stream.interest()));
            wait(sockets.chain([(self.listener.as_fd(), Interest::Read)]), LONG_SLEEP);
        }
    }

    /// Whether the plant still numbers: after its lease, plants below must ask the one that does.
    fn may_serve(&self) -> bool {
        self.term.as_ref().is_none_or(|term| term.check().is_ok())
    }

    fn take_ticks(&mut self, ring: &mut RingCursor) -> crate::Result<(usize, bool)> {
        for taken in 0..BATCH {
            match ring.take()? {
                Next::Tick(tick) => {
                    if tick.header.seq.is_outside() {
                        continue;
                    }
                    self.last = tick.header.seq;
                    if let Some(kept) = &mut self.kept {
                        kept.take(&tick);
                    }
                }
                Next::Nothing => return Ok((taken, false)),
                Next::End => return Ok((taken, true)),
                Next::Lost(lost) => return Err(lost.of("the catch-up server")),
            }
        }
        Ok((BATCH, false))
    }

    /// Accepts plants, reads their requests, and sends what they take.
    fn turn(&mut self, now: Nanos) {
        loop {
            let accepted = match &self.tls {
                Some(tls) => self.listener.accept_tls(tls, HEAD_BYTES),
                None => self.listener.accept(HEAD_BYTES),
            };
            match accepted {
                Ok(Some(stream)) => self.accept(stream, now),
                Ok(None) => break,
                Err(error) => {
                    let said = format_args!("the catch-up server cannot accept connections: {error}");
                    self.events.peer(now, Kind::Accept, Severity::Warning, said);
                    break;
                }
            }
        }
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            let peer = client.stream.peer_address();
            if let Err(error) = self.serve(client, now) {
                client.is_over = true;
                let said = format_args!("bridge: the plant at {peer} does not catch up: {error:#}");
                self.events.peer(now, Kind::Bridge, Severity::Warning, said);
            }
        }
        for client in clients.into_iter().filter(|client| !client.is_over) {
            match &self.demands {
                Some(demands) if client.has_demands => {
                    if !demands.hand_over(client.stream) {
                        let said = "bridge: too many plants come with demands at once; they come again";
                        self.events.peer(now, Kind::Bridge, Severity::Warning, said);
                    }
                }
                _ => self.clients.push(client),
            }
        }
        self.counters.catching_up.store(self.catching_up() as u64, Ordering::Relaxed);
        self.counters.caught_up.store(self.caught_up, Ordering::Relaxed);
        if self.images.as_ref().is_some_and(|images| now.since(images.made) >= SHARED_NS) {
            self.images = None;
        }
    }

    fn accept(&mut self, mut stream: Stream, now: Nanos) {
        let (most, rate) = self.limits;
        let is_one_too_many = self.catching_up() >= most;
        if is_one_too_many {
            if self.clients.len() - self.catching_up() >= TOLD_AT_ONCE {
                return;
            }
            let session = self.session();
            let busy = CatchUpReply { session, outcome: Outcome::Busy, next: Seq(0) };
            stream.output().extend_from_slice(&busy.encode());
        }
        let bucket = TokenBucket::new(rate, rate.max(READY as u64));
        self.clients.push(Client {
            stream,
            bucket,
            moved: now,
            sending: None,
            distance: Distance::default(),
            is_one_too_many,
            is_answered: is_one_too_many,
            has_demands: false,
            is_over: false,
        });
    }

    fn catching_up(&self) -> usize {
        self.clients.iter().filter(|client| !client.is_one_too_many).count()
    }

    fn session(&self) -> BridgeSession {
        let session = self.epochs.present();
        session.unwrap_or(BridgeSession { plant: self.plant, epoch: tapeline_plant::bridge::Epoch(0) })
    }

    fn serve(&mut self, client: &mut Client, now: Nanos) -> crate::Result<()> {
        // Agrees on TLS first.
        client.stream.flush()?;
        if client.sending.is_none() && client.stream.unsent() == 0 {
            match client.stream.receive()? {
                Received::Bytes(_) => client.moved = now,
                Received::Closed => client.is_over = true,
                Received::Nothing | Received::Full => {}
            }
            if client.is_one_too_many {
                client.stream.consume(HEAD_BYTES);
            }
            if let Some(request) = client.stream.bytes().first_chunk::<HEAD_BYTES>() {
                let request =
                    CatchUpRequest::decode(request).map_err(|error| Error::new(error.to_string()))?;
                let wants_images = request.beginning == Beginning::Images && self.kept.is_some();
                // The images must contain what the plant below has. Without a journal nothing lies between them and the lines, behind which this
                // thread may be.
                let is_level = self.is_level || self.journal.is_some();
                if !wants_images || (is_level && request.next.0 <= self.last().0 + 1) {
                    client.stream.consume(HEAD_BYTES);
                    self.begin(client, request, now)?;
                    if client.has_demands {
                        return Ok(());
                    }
                    client.is_answered = true;
                }
            }
        }
        if let Some(sending) = &mut client.sending {
            let before = client.stream.unsent();
            while client.stream.unsent() < READY && client.bucket.has(READY as u64, now) {
                let had = client.stream.unsent();
                if sending.more(client.stream.output())? {
                    client.sending = None;
                    self.caught_up += 1;
                    break;
                }
                let bytes = client.stream.unsent() - had;
                if bytes == 0 {
                    break;
                }
                client.bucket.take(bytes.min(READY) as u64, now);
            }
            self.compare(client, now);
            // It waits for its rate, or has something new to take.
            if client.stream.unsent() != before || !client.bucket.has(READY as u64, now) {
                client.moved = now;
            }
        }
        let unsent = client.stream.unsent();
        let is_flushed = client.stream.flush()?;
        if client.stream.unsent() < unsent {
            client.moved = now;
        }
        if is_flushed && client.is_answered && client.sending.is_none() {
            client.is_answered = false;
            client.stream.finish();
        }
        crate::error::ensure!(now.since(client.moved) < PATIENCE_NS, "it takes nothing for 5 s");
        Ok(())
    }

    /// Tells of a plant that comes no nearer to the last tick.
    fn compare(&self, client: &mut Client, now: Nanos) {
        let Some(next) = client.sending.as_ref().and_then(Sent::follows_from) else {
            client.distance.compared = None;
            return;
        };
        let behind = (self.last.0 + 1).saturating_sub(next.0);
        let Some(before) = client.distance.compare(behind, now) else { return };
        let holds_back = if client.bucket.has(READY as u64, now) {
            "the network, that plant or this one is slower than the ticks".to_owned()
        } else {
            let (_, rate) = self.limits;
            format!("catch_up_rate in [bridge] holds it back: {} bytes a second", thousands(rate))
        };
        let said = format_args!(
            "bridge: the plant at {} does not become level: {} ticks behind, {} ten seconds ago; {holds_back}",
            client.stream.peer_address(),
            thousands(behind),
            thousands(before),
        );
        self.events.peer(now, Kind::Bridge, Severity::Warning, said);
    }

    /// Answers a request, and determines what follows.
    fn begin(&mut self, client: &mut Client, request: CatchUpRequest, now: Nanos) -> crate::Result<()> {
        let mut session = self.session();
        let mut reply = |session, outcome, next| {
            client.stream.output().extend_from_slice(&CatchUpReply { session, outcome, next }.encode());
        };
        if request.plant != self.plant {
            reply(session, Outcome::OtherPlant, Seq(0));
            return Ok(());
        }
        if request.beginning == Beginning::Demands {
            let outcome = match &self.demands {
                None => Outcome::NoDemands,
                Some(_) if request.epoch != Some(session.epoch) => Outcome::Gone,
                Some(_) => Outcome::Ticks,
            };
            reply(session, outcome, Seq(0));
            client.has_demands = outcome == Outcome::Ticks;
            return Ok(());
        }
        // Without a journal no epoch is to be had, only images.
        let wants_images = match request.beginning {
            Beginning::Images => true,
            Beginning::Epoch => self.journal.is_none(),
            _ => false,
        };
        let images = wants_images.then(|| self.images(now)).flatten();
        let Some(epoch) = request.epoch.filter(|_| request.next > Seq(0)) else {
            let sent = self.whole_past(images)?;
            reply(session, Outcome::Ticks, sent.next);
            client.sending = Some(sent);
            return Ok(());
        };
        let next = request.next;
        let (outcome, end) = match self.epochs.find(epoch, next) {
            EpochFound::Present => (Outcome::Ticks, None),
            EpochFound::Over(of_rest, end) => {
                session = of_rest;
                (Outcome::EpochOver, Some(end))
            }
            EpochFound::Parted(end) => {
                // From here on this plant has other ticks.
                reply(session, Outcome::Gone, end);
                return Ok(());
            }
            EpochFound::Nowhere => (Outcome::Gone, None),
        };
        let is_new = next > self.last && next > Seq(self.written());
        let journal = match (outcome, is_new) {
            (Outcome::Gone, _) | (_, true) => None,
            _ => self.journal_from(next)?,
        };
        if outcome == Outcome::Gone || (journal.is_none() && !is_new) {
            reply(self.session(), Outcome::Gone, Seq(0));
            return Ok(());
        }
        reply(session, outcome, next);
        let images = images.filter(|_| end.is_none()).map(|images| (images, 0));
        client.sending = Some(Sent { images, journal, next, end });
        Ok(())
    }

    /// The last tick of this plant, or of those before it.
    fn last(&self) -> Seq {
        Seq(self.last.0.max(self.epochs.first().0 - 1))
    }

    /// The images as of the last tick, if images are kept.
    fn images(&mut self, now: Nanos) -> Option<Arc<ImagesAt>> {
        let last = self.last();
        let kept = self.kept.as_mut()?;
        let images = match self.images.take() {
            Some(images) if self.journal.is_some() || images.last == last => images,
            _ => Arc::new(images_at(kept, last, now)),
        };
        self.images = Some(Arc::clone(&images));
        Some(images)
    }

    /// The last sequence that the journal has.
    fn written(&self) -> u64 {
        self.journal.as_ref().map_or(0, |(_, progress)| progress.written_up_to())
    }

    /// What a plant gets that has nothing: images and the ticks behind them, or all ticks of the epoch.
    fn whole_past(&self, images: Option<Arc<ImagesAt>>) -> crate::Result<Sent> {
        if let Some(images) = images {
            let next = Seq(images.last.0 + 1);
            let journal = self.journal_from(next)?;
            return Ok(Sent { images: Some((images, 0)), journal, next, end: None });
        }
        let first = self.epochs.first();
        let journal = self.journal_from(first)?;
        let next = if journal.is_some() { first } else { Seq(self.last().0 + 1) };
        Ok(Sent { images: None, journal, next, end: None })
    }

    /// The journal from a sequence on; `None` if there is no journal, or it no longer has the sequence.
    fn journal_from(&self, next: Seq) -> crate::Result<Option<JournalReader<Directory>>> {
        let Some((folder, _)) = &self.journal else { return Ok(None) };
        let failed =
            |error| Error::of_journal(format!("cannot read the journal in {}", folder.display()), error);
        let mut journal = Directory::open(folder).and_then(JournalReader::open).map_err(failed)?;
        journal.seek(From::Seq(next.0)).map_err(failed)?;
        let is_there = !matches!(journal.next().map_err(failed)?, InJournal::Missing { .. });
        journal.seek(From::Seq(next.0)).map_err(failed)?;
        Ok(is_there.then_some(journal))
    }
}

impl Sent {
    /// The first sequence that was not passed on, if the plant follows up to the last tick, and images are not what it gets just now.
    fn follows_from(&self) -> Option<Seq> {
        let gets_images = self.images.as_ref().is_some_and(|(images, _)| images.last < self.next);
        (self.end.is_none() && !gets_images).then_some(self.next)
    }

    /// Appends some of what follows. Returns whether that was the end.
    fn more(&mut self, out: &mut Vec<u8>) -> crate::Result<bool> {
        if let Some((images, sent)) = &mut self.images
            && images.last < self.next
        {
            let rest = &images.bytes[*sent..];
            let piece = rest.len().min(READY);
            out.extend_from_slice(&rest[..piece]);
            *sent += piece;
            if piece == rest.len() {
                self.images = None;
            }
            return Ok(false);
        }
        let begun = out.len();
        let behind = self.images.as_ref().map(|(images, _)| images.last);
        while out.len() - begun < READY && behind.is_none_or(|last| self.next <= last) {
            let journal = self.journal.as_mut().filter(|_| self.end.is_none_or(|end| self.next < end));
            let found = journal.map_or(Ok(InJournal::End), JournalReader::next);
            match found.map_err(|error| Error::of_journal("the journal cannot be read on", error))? {
                InJournal::Record(record) if self.end.is_none_or(|end| record.seq < end.0) => {
                    put_tick(out, record.body);
                    self.next = Seq(record.seq + 1);
                }
                // The plant below sees that they are missing.
                InJournal::Missing { to, .. } => self.next = self.next.max(Seq(to.saturating_add(1))),
                InJournal::Record(_) | InJournal::End if behind.is_some_and(|last| self.next <= last) => {
                    // The journal ends before the images: it does not have all ticks in them.
                    self.next = Seq(behind.map_or(0, |last| last.0) + 1);
                }
                InJournal::Record(_) | InJournal::End => {
                    put_end(out, self.end.unwrap_or(self.next));
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Makes the images of all items, and the states of channels in front of them: an image has its channel's state.
fn images_at(kept: &mut KeptState, last: Seq, made: Nanos) -> ImagesAt {
    let (mut bytes, mut frame) = (Vec::new(), Vec::new());
    kept.each(|tick| {
        let header = tick::Header { seq: Seq(0), ..tick.header };
        frame.clear();
        Tick { header, ..*tick }.write(&mut frame);
        if frame.len() <= catch_up::LONGEST_TICK {
            put_tick(&mut bytes, &frame);
        }
    });
    ImagesAt { made, last, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plant_that_comes_no_nearer_is_told_of_once() {
        let at = |seconds: u64| Nanos(1_000_000_000 * seconds);
        let mut distance = Distance::default();
        // Compared after ten seconds, and not before; nearer is well.
        assert_eq!(
            [(1, 90_000), (5, 200_000), (11, 89_900)].map(|(s, ticks)| distance.compare(ticks, at(s))),
            [None; 3]
        );
        assert_eq!(
            [(20, 95_000), (21, 89_900)].map(|(s, ticks)| distance.compare(ticks, at(s))),
            [None, Some(89_900)]
        );
        assert_eq!(distance.compare(500_000, at(31)), None);
    }
}
