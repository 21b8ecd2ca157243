//! A plant below: the real follower, its connection to the catch-up server, its ring and its journal.

use tapeline_feed::line::Line;
use tapeline_measure::Nanos;
use tapeline_plant::bridge::catch_up::{
    Beginning, CatchUpReply, CatchUpRequest, HEAD_BYTES, Outcome, Part, part,
};
use tapeline_plant::bridge::{BridgeSession, Delivery, Follower, FollowerSettings, Stranger, TickSource};
use tapeline_plant::tick::Tick;
use tapeline_plant::{Refused, Seq};

use super::above::{Above, plant};
use super::plan::{BelowPlan, MS, SECOND};
use super::{HostsTotals, Standing};
use crate::invariants::{Wrong, broken};
use crate::trace::{fnv, mix};

/// Between two looks at the lines; between two connections to the catch-up server; until a silent one is given up; between two looks into an
/// epoch that a line shows.
const LOOK: u64 = 2 * MS;
const PAUSE: u64 = 500 * MS;
const PATIENCE: u64 = 5 * SECOND;
const LOOK_INTO: u64 = SECOND;

/// What a plant's readers have: the ticks on its ring, and what they come to.
#[derive(Clone, Copy, Debug, Default)]
struct Has {
    session: Option<BridgeSession>,
    last: Seq,
    /// The hash of all ticks up to the last, as the images and the ticks behind them say.
    chain: u64,
    /// Nothing but images has come: others may replace them.
    only_images: bool,
}

struct Connection {
    number: u64,
    bytes: Vec<u8>,
    heard: Nanos,
    reply: Option<CatchUpReply>,
}

pub(super) struct Below {
    settings: FollowerSettings,
    has_journal: bool,
    whole_epoch: bool,
    is_alive: bool,
    follower: Follower,
    ring: Ring,
    connection: Option<Connection>,
    connections: u64,
    not_before: Nanos,
    looked_into: Nanos,
    totals: HostsTotals,
    /// A hash of everything that was delivered.
    pub(super) hash: u64,
}

/// The ring, and the journal behind it.
struct Ring {
    /// What its readers have; `None` in a ring that has just begun.
    has: Option<Has>,
    /// What the journal has, if there is one.
    journal: Option<Has>,
    keeps: bool,
    delivered: u64,
    hash: u64,
}

/// Publishes the ticks of a session, and checks each against those that were numbered.
struct Publishing<'a> {
    ring: &'a mut Ring,
    session: BridgeSession,
    above: &'a Above,
    wrong: Option<Wrong>,
}

impl Delivery for Publishing<'_> {
    fn tick(&mut self, seq: Seq, frame: &[u8]) -> Result<(), Refused> {
        match self.ring.take(self.session, seq, frame, self.above) {
            Ok(()) => Ok(()),
            Err(wrong) => {
                self.wrong = Some(wrong);
                Err(Refused::Stopping)
            }
        }
    }
}

impl Ring {
    fn take(&mut self, session: BridgeSession, seq: Seq, frame: &[u8], above: &Above) -> Result<(), Wrong> {
        let known = self.has.or(self.journal.filter(|kept| !kept.only_images));
        if seq.is_outside() {
            return self.take_image(session, frame, known);
        }
        let Some((hash, chain)) = above.truth(session, seq) else {
            broken!(OneSequence, "tick {} of epoch {} was never numbered", seq.0, session.epoch.0)
        };
        if fnv(frame) != hash {
            broken!(OneSequence, "tick {} of epoch {} is another one", seq.0, session.epoch.0);
        }
        if let Some(has) = self.has
            && has.session != Some(session)
        {
            broken!(
                OneSequence,
                "a ring of epoch {:?} was given tick {} of epoch {}",
                has.session,
                seq.0,
                session.epoch.0
            );
        }
        let now = match known {
            Some(has) if seq.0 == has.last.0 + 1 => {
                Has { session: Some(session), last: seq, chain: mix(has.chain, hash), only_images: false }
            }
            Some(has) => broken!(OneSequence, "tick {} came after tick {}", seq.0, has.last.0),
            // The first of a whole epoch, of which the plant knows nothing before.
            None => Has { session: Some(session), last: seq, chain, only_images: false },
        };
        if now.chain != chain {
            broken!(Image, "up to tick {} of epoch {} something else was published", seq.0, session.epoch.0);
        }
        self.put(now);
        self.delivered += 1;
        self.hash = mix(self.hash, hash);
        Ok(())
    }

    /// Takes the image of everything, which is of the moment behind the last tick.
    fn take_image(&mut self, session: BridgeSession, frame: &[u8], known: Option<Has>) -> Result<(), Wrong> {
        let body = Tick::parse(frame).map(|tick| tick.body.to_vec()).unwrap_or_default();
        let (Some(last), Some(chain)) = (body.first_chunk::<8>(), body.last_chunk::<8>()) else {
            broken!(Image, "an image has no body")
        };
        let now = Has {
            session: Some(session),
            last: Seq(u64::from_le_bytes(*last)),
            chain: u64::from_le_bytes(*chain),
            only_images: known.is_none_or(|has| has.only_images),
        };
        if let Some(has) = known.filter(|has| !has.only_images)
            && (has.last, has.chain) != (now.last, now.chain)
        {
            broken!(Image, "an image of tick {} came behind tick {}", now.last.0, has.last.0);
        }
        self.put(now);
        Ok(())
    }

    fn put(&mut self, now: Has) {
        self.has = Some(now);
        if self.keeps {
            self.journal = Some(now);
        }
    }
}

impl Below {
    pub(super) fn new(plan: &BelowPlan) -> Self {
        let settings = FollowerSettings {
            plant: plant(),
            window_ticks: plan.window.0,
            window_bytes: plan.window.1,
            ..FollowerSettings::default()
        };
        Self {
            settings,
            has_journal: plan.has_journal,
            whole_epoch: plan.whole_epoch,
            is_alive: false,
            follower: Follower::new(settings, None),
            ring: Ring { has: None, journal: None, keeps: plan.has_journal, delivered: 0, hash: 0 },
            connection: None,
            connections: 0,
            not_before: Nanos(0),
            looked_into: Nanos(0),
            totals: HostsTotals::default(),
            hash: 0,
        }
    }

    pub(super) fn kill(&mut self) {
        self.is_alive = false;
    }

    /// Starts with what the journal has, in a ring of its own.
    pub(super) fn start(&mut self) {
        self.is_alive = true;
        self.begin_again();
    }

    fn begin_again(&mut self) {
        self.leave_follower();
        self.ring.has = None;
        // A journal has no images, and says nothing of a session without ticks.
        let kept = self.ring.journal.filter(|kept| !kept.only_images);
        let known = kept.and_then(|kept| Some((kept.session?, Seq(kept.last.0 + 1))));
        self.follower = Follower::new(self.settings, known);
        self.connection = None;
        self.not_before = Nanos(0);
    }

    /// Adds the counters of a follower that ends.
    fn leave_follower(&mut self) {
        self.totals.left_lines += self.follower.left();
        self.totals.requests += self.follower.statistics().requests;
    }

    pub(super) fn add_to(&self, totals: &mut HostsTotals) {
        totals.add(&HostsTotals { delivered: self.ring.delivered, ..self.totals });
    }

    /// What the readers of the ring have in the end.
    pub(super) fn standing(&self) -> Standing {
        let has = self.ring.has.unwrap_or_default();
        let epoch = self.follower.session().map_or(0, |session| session.epoch.0);
        // After a change of epochs a ring has nothing until the first tick of the new one; the journal has the rest.
        let known = self.ring.has.or(self.ring.journal).unwrap_or(has);
        Standing { epoch, last: known.last, chain: known.chain }
    }

    /// When the lines are looked at next; `None` while the plant is dead.
    pub(super) fn looks_again(&self, now: u64) -> Option<u64> {
        self.is_alive.then_some(now + LOOK)
    }

    /// Publishes what `take` takes from the follower, and checks it.
    fn publish<T: Default>(
        &mut self,
        above: &Above,
        take: impl FnOnce(&mut Follower, &mut Publishing<'_>) -> Result<T, Refused>,
    ) -> Result<T, Wrong> {
        match self.follower.session() {
            Some(session) => self.publish_of(session, above, take),
            None => Ok(T::default()),
        }
    }

    /// The same, with the session that the follower has or will have.
    fn publish_of<T: Default>(
        &mut self,
        session: BridgeSession,
        above: &Above,
        take: impl FnOnce(&mut Follower, &mut Publishing<'_>) -> Result<T, Refused>,
    ) -> Result<T, Wrong> {
        let mut to = Publishing { ring: &mut self.ring, session, above, wrong: None };
        let taken = take(&mut self.follower, &mut to);
        let wrong = to.wrong;
        self.hash = self.ring.hash;
        match wrong {
            Some(wrong) => Err(wrong),
            None => Ok(taken.unwrap_or_default()),
        }
    }

    pub(super) fn datagram(
        &mut self,
        line: Line,
        bytes: &[u8],
        now: Nanos,
        above: &Above,
    ) -> Result<(), Wrong> {
        if !self.is_alive {
            return Ok(());
        }
        let stranger = self.publish(above, |follower, to| follower.datagram(line, bytes, now, to))?;
        let is_newer = stranger == Some(Stranger::NewerEpoch);
        if is_newer
            && self.follower.source() == TickSource::Lines
            && now.since(self.looked_into) >= LOOK_INTO as i64
        {
            self.looked_into = now;
            self.follower.leave(now);
        }
        Ok(())
    }

    pub(super) fn answer(&mut self, bytes: &[u8], now: Nanos, above: &Above) -> Result<(), Wrong> {
        if !self.is_alive {
            return Ok(());
        }
        self.publish(above, |follower, to| follower.answer(0, bytes, now, to))
    }

    /// The re-requests that are due.
    pub(super) fn requests(&mut self, now: Nanos) -> Vec<Vec<u8>> {
        self.follower.look(now);
        std::iter::from_fn(|| self.follower.poll(now)).map(|ask| ask.request.encode().to_vec()).collect()
    }

    /// Asks the catch-up server if that is due: the number of the connection, and the request.
    pub(super) fn catch_up(&mut self, now: Nanos) -> Option<(u64, Vec<u8>)> {
        if self.follower.source() == TickSource::Lines {
            self.connection = None;
            return None;
        }
        if let Some(connection) = &self.connection {
            if now.since(connection.heard) < PATIENCE as i64 {
                return None;
            }
            self.connection = None;
        }
        if now < self.not_before {
            return None;
        }
        self.connections += 1;
        let epoch = self.follower.session().map(|session| session.epoch);
        let next = self.follower.next();
        // Images that broke off before their end say nothing of the sequence: others are needed.
        let beginning = match (self.ring.has.is_some() && next > Seq(0), self.whole_epoch && epoch.is_none())
        {
            (true, _) => Beginning::Nowhere,
            (false, true) => Beginning::Epoch,
            (false, false) => Beginning::Images,
        };
        let request = CatchUpRequest { plant: plant(), epoch, next: self.follower.next(), beginning };
        self.connection =
            Some(Connection { number: self.connections, bytes: Vec::new(), heard: now, reply: None });
        Some((self.connections, request.encode().to_vec()))
    }

    /// Takes bytes of the catch-up server; none if the connection has ended.
    pub(super) fn past(&mut self, number: u64, bytes: &[u8], now: Nanos, above: &Above) -> Result<(), Wrong> {
        let Some(connection) = self.connection.as_mut().filter(|connection| connection.number == number)
        else {
            return Ok(());
        };
        if !self.is_alive || bytes.is_empty() {
            self.connection = None;
            self.not_before = now + PAUSE;
            return Ok(());
        }
        connection.heard = now;
        connection.bytes.extend_from_slice(bytes);
        if connection.reply.is_none() {
            let Some(head) = connection.bytes.first_chunk::<HEAD_BYTES>() else { return Ok(()) };
            let Ok(reply) = CatchUpReply::decode(head) else { broken!(Transport, "a reply cannot be read") };
            connection.bytes.drain(..HEAD_BYTES);
            connection.reply = Some(reply);
            let followed = self.follower.session();
            let has_other =
                self.ring.has.is_some() && followed.is_some_and(|session| session != reply.session);
            if reply.outcome == Outcome::Gone {
                self.totals.gone += 1;
                self.ring.journal = None;
                self.begin_again();
                return Ok(());
            }
            // Everything of the epoch is there, and a ring must not mix two.
            if has_other {
                return self.resequence();
            }
        }
        self.take_parts(now, above)
    }

    fn take_parts(&mut self, now: Nanos, above: &Above) -> Result<(), Wrong> {
        loop {
            let Some(Connection { bytes, reply: Some(reply), .. }) = &mut self.connection else {
                return Ok(());
            };
            let Ok(found) = part(bytes) else { broken!(Transport, "a part cannot be read") };
            let Some((found, length)) = found else { return Ok(()) };
            let reply = *reply;
            let session = reply.session;
            match found {
                Part::Tick(frame) => {
                    let Ok(tick) = Tick::parse(frame) else { broken!(Transport, "a tick cannot be read") };
                    let seq = tick.header.seq;
                    self.ring.take(session, seq, frame, above)?;
                    self.follower.took(session, seq);
                    bytes.drain(..length);
                    self.totals.caught_up += u64::from(!seq.is_outside());
                }
                Part::End(next) => {
                    self.connection = None;
                    if reply.outcome == Outcome::EpochOver {
                        return self.resequence();
                    }
                    return self
                        .publish_of(session, above, |follower, to| follower.go_live(session, next, now, to));
                }
            }
        }
    }

    /// The plant above has begun another epoch: the ring ends, and another one begins.
    fn resequence(&mut self) -> Result<(), Wrong> {
        self.totals.resequenced += 1;
        if !self.has_journal {
            self.ring.journal = None;
        }
        self.begin_again();
        Ok(())
    }
}
