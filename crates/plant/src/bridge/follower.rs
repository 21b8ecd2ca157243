//! Joining: the lines of one session, and the answers to re-requests, become ticks in sequence.
//!
//! | situation | action |
//! |---|---|
//! | nothing known yet, or a hole that no re-request fills | [`TickSource::CatchUpServer`]: the catch-up server has the ticks; the last datagrams of the lines are held until then |
//! | next in sequence | delivered, as it stands |
//! | ahead of sequence | held; re-requested once every line has passed it, or the lines have had their time |
//! | a hole for longer than recovery may take, or of more messages than may be requested | catching up |
//! | an empty message, or one that is not the tick of its sequence | catching up: TCP has the tick, whole |
//! | another session of the same plant, later | [`Stranger::NewerEpoch`]: the catch-up server says whether that is so |
//! | any other session | a [`Stranger`], counted and left out: two sequences never mix |

use std::ops::RangeInclusive;

use tapeline_feed::line::{
    Arbiter, ArbiterSettings, DatagramKind, Jump, Line, Packet, Restart, Session, Sink,
};
use tapeline_feed::moldudp64::recover::{Ask, ClientSettings, ClientStatistics, RetransmissionClient};
use tapeline_feed::moldudp64::{MoldSession, parse};
use tapeline_measure::Nanos;

use super::recent::Recent;
use super::{BridgeSession, PlantId};
use crate::tick::Tick;
use crate::{Refused, Seq};

/// Maximum bytes of the datagrams that are held while the past comes from the catch-up server: 0.1 s of two million ticks a second. They are
/// allocated as they come, and returned when the follower goes live.
const RECENT_BYTES: usize = 64 << 20;

/// The settings of a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerSettings {
    /// The plant to follow.
    pub plant: PlantId,
    /// Maximum number of ticks held behind a hole.
    pub window_ticks: usize,
    /// Maximum bytes of those ticks; four times as many are allocated.
    pub window_bytes: usize,
    /// Time in ns for which missing ticks are left to the lines.
    pub reorder_ns: u64,
    /// Time in ns that re-requests have after that, before the follower catches up over TCP.
    pub recovery_ns: u64,
    /// The rules of re-requests; the number of servers is part of them.
    pub requests: ClientSettings,
}

impl Default for FollowerSettings {
    /// 32,768 ticks in 8 MiB, a tenth of a second of a busy plant; 5 ms for the lines, a second for re-requests, which time out after 100 ms; plant
    /// `0`.
    fn default() -> Self {
        Self {
            plant: PlantId::default(),
            window_ticks: 32_768,
            window_bytes: 8 << 20,
            reorder_ns: 5_000_000,
            recovery_ns: 1_000_000_000,
            requests: ClientSettings {
                delay_ns: 5_000_000,
                timeout_ns: 100_000_000,
                max_outstanding: 64,
                requests_per_second: 10_000,
                burst: 256,
                ..ClientSettings::default()
            },
        }
    }
}

/// Where a follower's ticks come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickSource {
    /// From the catch-up server.
    CatchUpServer,
    /// From the lines.
    Lines,
}

/// The reason why a datagram is not of the session that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stranger {
    /// The datagram is not a packet of MoldUDP64.
    Malformed = 0,
    /// The session is not one of a bridge.
    NotABridge = 1,
    /// The session is of another version of the layout.
    OtherLayout = 2,
    /// Another plant numbers on this line.
    OtherPlant = 3,
    /// The plant, in an epoch before the present one: two plants number at once, or a datagram is late.
    OlderEpoch = 4,
    /// The plant, in a later epoch.
    NewerEpoch = 5,
}

/// Datagrams that are not of the session that is followed, by [`Stranger`].
pub type StrangerCounters = [u64; 6];

impl Stranger {
    /// The labels of all reasons, in their order.
    pub const REASONS: [&'static str; 6] =
        ["malformed", "not-a-bridge", "other-layout", "other-plant", "older-epoch", "newer-epoch"];
}

/// The destination of the ticks.
pub trait Delivery {
    /// Takes the next tick as it stands on the ring of the plant above.
    ///
    /// # Errors
    /// The tick could not be published.
    fn tick(&mut self, seq: Seq, frame: &[u8]) -> Result<(), Refused>;
}

/// Joins the lines of one plant above. See [the module](self). A tick in sequence costs a parse and the delivery; only a tick ahead of
/// sequence is copied. Allocates when it goes live.
#[derive(Debug)]
pub struct Follower {
    settings: FollowerSettings,
    session: Option<BridgeSession>,
    mold: MoldSession,
    /// The next sequence to deliver; 0 if nothing is known.
    next: Seq,
    /// The lines, while the follower is live.
    arbiter: Option<Box<Arbiter>>,
    /// The last datagrams of the lines, while it is not.
    recent: Recent,
    client: RetransmissionClient,
    heard: Option<Nanos>,
    /// The next sequence of the plant above, as its lines have said last.
    announced: u64,
    has_ended: bool,
    /// The last end of a session that a line carried while the past came from the catch-up server: the session, and its next sequence. It may
    /// not be sent again.
    end: Option<(MoldSession, u64)>,
    /// Times that the lines were left for the catch-up server.
    left: u64,
    strangers: StrangerCounters,
}

/// Passes messages in sequence to a delivery, and stops at the first that is not the tick of its sequence.
struct Joined<'a, D> {
    next: &'a mut Seq,
    to: &'a mut D,
    has_ended: &'a mut bool,
    /// A tick is not to be had here.
    is_lost: bool,
    refused: Result<(), Refused>,
}

impl<D: Delivery> Sink for Joined<'_, D> {
    fn message(&mut self, sequence: u64, bytes: &[u8], _: Nanos) {
        if self.is_lost || self.refused.is_err() {
            return;
        }
        let is_tick = |tick: Tick<'_>| tick.header.seq.0 == sequence;
        if sequence != self.next.0 || !Tick::parse(bytes).is_ok_and(is_tick) {
            self.is_lost = true;
            return;
        }
        self.refused = self.to.tick(Seq(sequence), bytes);
        if self.refused.is_ok() {
            *self.next = Seq(sequence + 1);
            *self.has_ended = false;
        }
    }

    fn gap(&mut self, _: u64, _: u64) {
        self.is_lost = true;
    }

    fn end_of_session(&mut self, _: u64) {
        *self.has_ended = true;
    }

    fn end_taken_back(&mut self, _: u64) {
        *self.has_ended = false;
    }

    fn reset(&mut self, _: Session) {}
}

impl Follower {
    /// Creates a follower that has the ticks before `next` of a session; `None` if it has none.
    #[must_use]
    pub fn new(settings: FollowerSettings, known: Option<(BridgeSession, Seq)>) -> Self {
        let (session, next) = known.unzip();
        Self {
            settings,
            session,
            mold: session.map_or(MoldSession([0; 10]), BridgeSession::to_mold),
            next: next.unwrap_or_default(),
            arbiter: None,
            recent: Recent::new(RECENT_BYTES),
            client: RetransmissionClient::new(settings.requests),
            heard: None,
            announced: 0,
            has_ended: false,
            end: None,
            left: 0,
            strangers: [0; 6],
        }
    }

    /// Takes a datagram of a line.
    ///
    /// # Errors
    /// A tick could not be published.
    #[inline]
    pub fn datagram(
        &mut self,
        line: Line,
        datagram: &[u8],
        received: Nanos,
        to: &mut impl Delivery,
    ) -> Result<Option<Stranger>, Refused> {
        let Ok(packet) = parse(datagram) else { return Ok(self.strange(Stranger::Malformed)) };
        let session = packet.session();
        let packet = Packet::from(packet);
        if let (None, DatagramKind::EndOfSession { next }) = (&self.arbiter, &packet.kind) {
            self.end = Some((session, *next));
        }
        if let (None, DatagramKind::Data { .. }) = (&self.arbiter, &packet.kind)
            && self.may_follow(session)
        {
            self.recent.push(line, session, packet.kind.sequences(), datagram);
        }
        if self.session.is_none() || session != self.mold {
            return Ok(self.stranger(session));
        }
        self.heard = self.heard.max(Some(received));
        self.announced = self.announced.max(packet.kind.sequences().1);
        self.join(to, |arbiter, sink| arbiter.packet(line, &packet, received, sink))?;
        Ok(None)
    }

    /// Takes an answer of a re-request server. An answer that was not requested is counted and left out.
    ///
    /// # Errors
    /// A tick could not be published.
    pub fn answer(
        &mut self,
        server: usize,
        datagram: &[u8],
        received: Nanos,
        to: &mut impl Delivery,
    ) -> Result<(), Refused> {
        if self.client.answer(server, datagram).is_err() {
            return Ok(());
        }
        self.join(to, |arbiter, sink| {
            // Well-formed: the client has read it.
            let _ = arbiter.datagram(Line::RECOVERY, datagram, received, sink);
        })
    }

    /// Compares the re-requests with what is missing now. Call when everything that has arrived was read; then [`poll`](Self::poll) until it
    /// returns `None`. While nothing is missing, the cost is a look at the lines.
    pub fn look(&mut self, now: Nanos) {
        let Some(arbiter) = &self.arbiter else { return };
        if arbiter.missing().next().is_none() && !self.client.is_busy() {
            return;
        }
        self.client.update(self.mold, arbiter.wanted(), now);
        self.client.passed(arbiter.passed_by_all(), now);
        let is_over = arbiter.next_expiry().is_some_and(|expiry| expiry <= now);
        if is_over || self.client.given_up().is_some() {
            self.leave(now);
        }
    }

    /// Returns the next re-request that is due.
    pub fn poll(&mut self, now: Nanos) -> Option<Ask> {
        let ask = self.arbiter.is_some().then(|| self.client.poll(now)).flatten();
        if self.arbiter.is_some() && self.client.given_up().is_some() {
            self.leave(now);
        }
        ask
    }

    /// Continues with the lines: everything before `next` was taken from the catch-up server. Delivers what the lines have brought meanwhile.
    ///
    /// # Errors
    /// A tick could not be published.
    pub fn go_live(
        &mut self,
        session: BridgeSession,
        next: Seq,
        now: Nanos,
        to: &mut impl Delivery,
    ) -> Result<(), Refused> {
        let defaults = ArbiterSettings::default();
        let mut arbiter = Box::new(Arbiter::new(ArbiterSettings {
            window_messages: self.settings.window_ticks,
            window_bytes: self.settings.window_bytes,
            window_age_ns: self.settings.reorder_ns,
            recovery_age_ns: self.settings.recovery_ns,
            // Within an epoch a sequence is one tick.
            restart: Restart::Ignore,
            // However far the lines are ahead: the ticks in between are requested, or taken over TCP.
            on_jump: Jump::Believe,
            expire_on_packet: false,
            ..defaults
        }));
        if self.session != Some(session) {
            self.announced = 0;
        }
        (self.session, self.mold, self.next) = (Some(session), session.to_mold(), next);
        self.has_ended = self.end == Some((self.mold, next.0));
        let begins = Packet {
            session: Session::from(self.mold),
            kind: DatagramKind::Heartbeat { next: next.0 },
            trailing: 0,
        };
        arbiter.packet(Line::A, &begins, now, &mut Nobody);
        self.client.update(self.mold, [], now);
        self.arbiter = Some(arbiter);
        let recent = std::mem::replace(&mut self.recent, Recent::new(RECENT_BYTES));
        for (line, datagram) in recent.iter() {
            let Ok(packet) = parse(datagram) else { continue };
            if packet.session() == self.mold {
                let packet = Packet::from(packet);
                self.join(to, |arbiter, sink| arbiter.packet(line, &packet, now, sink))?;
            }
        }
        // The end may have come before the ticks that were held.
        self.has_ended |= self.end == Some((self.mold, self.next.0));
        Ok(())
    }

    /// Whether the catch-up server may lead to this session.
    fn may_follow(&self, session: MoldSession) -> bool {
        BridgeSession::from_mold(session).is_some_and(|session| {
            session.plant == self.settings.plant
                && self.session.is_none_or(|ours| session.epoch >= ours.epoch)
        })
    }

    /// Leaves the lines: the catch-up server has what is missing.
    pub fn leave(&mut self, now: Nanos) {
        if self.arbiter.take().is_some() {
            self.left += 1;
            self.client.update(self.mold, [], now);
        }
    }

    /// Records that a tick or an image (sequence 0) of the catch-up server was published. From then on this session is followed: if the
    /// connection breaks, what follows must be of the same one.
    pub fn took(&mut self, session: BridgeSession, seq: Seq) {
        if self.session != Some(session) {
            (self.session, self.mold, self.announced) = (Some(session), session.to_mold(), 0);
        }
        if !seq.is_outside() {
            self.next = Seq(seq.0 + 1);
        }
    }

    /// Returns where the ticks come from.
    #[must_use]
    pub const fn source(&self) -> TickSource {
        if self.arbiter.is_some() { TickSource::Lines } else { TickSource::CatchUpServer }
    }

    /// Returns the session that is followed; `None` before the first reply of the catch-up server.
    #[must_use]
    pub const fn session(&self) -> Option<BridgeSession> {
        self.session
    }

    /// Returns the plant that is followed.
    #[must_use]
    pub const fn plant(&self) -> PlantId {
        self.settings.plant
    }

    /// Returns the next sequence to deliver; 0 if nothing is known.
    #[must_use]
    pub const fn next(&self) -> Seq {
        self.next
    }

    /// Returns the time of the last datagram of the session on any line.
    #[must_use]
    pub const fn heard(&self) -> Option<Nanos> {
        self.heard
    }

    /// Returns `true` if the plant above has ended, and every tick of it was delivered.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns `true` while re-requests are in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.client.is_busy()
    }

    /// Returns how many ticks are known to exist and were not delivered yet: those of the lines that are held or missing.
    #[must_use]
    pub fn missing(&self) -> u64 {
        let arbiter = self.arbiter.iter().flat_map(|arbiter| arbiter.missing());
        arbiter.map(|hole: RangeInclusive<u64>| hole.end() - hole.start() + 1).sum()
    }

    /// Returns how many ticks the plant above has announced and were not delivered yet: held, missing, or still to be caught up.
    #[must_use]
    pub const fn behind(&self) -> u64 {
        self.announced.saturating_sub(self.next.0)
    }

    /// Returns the counters of re-requests.
    #[must_use]
    pub const fn statistics(&self) -> &ClientStatistics {
        self.client.statistics()
    }

    /// Returns the number of times that the lines were left for the catch-up server.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Returns the counts of datagrams that are not of the session.
    #[must_use]
    pub const fn strangers(&self) -> &StrangerCounters {
        &self.strangers
    }

    /// Lets the lines take something, and leaves them if a tick cannot be had there.
    #[inline]
    fn join<D: Delivery>(
        &mut self,
        to: &mut D,
        take: impl FnOnce(&mut Arbiter, &mut Joined<'_, D>),
    ) -> Result<(), Refused> {
        let Some(arbiter) = &mut self.arbiter else { return Ok(()) };
        let (next, has_ended) = (&mut self.next, &mut self.has_ended);
        let mut sink = Joined { next, to, has_ended, is_lost: false, refused: Ok(()) };
        take(arbiter, &mut sink);
        let (is_lost, refused) = (sink.is_lost, sink.refused);
        if is_lost {
            self.leave(Nanos(0));
        }
        refused
    }

    #[cold]
    fn stranger(&mut self, session: MoldSession) -> Option<Stranger> {
        let stranger = match (BridgeSession::from_mold(session), self.session) {
            (None, _) if BridgeSession::is_other_layout(session) => Stranger::OtherLayout,
            (None, _) => Stranger::NotABridge,
            (Some(other), _) if other.plant != self.settings.plant => Stranger::OtherPlant,
            // Before the first reply of the catch-up server any epoch may be the present one.
            (Some(_), None) => return None,
            (Some(other), Some(ours)) if other.epoch < ours.epoch => Stranger::OlderEpoch,
            (Some(_), Some(_)) => Stranger::NewerEpoch,
        };
        self.strange(stranger)
    }

    #[cold]
    fn strange(&mut self, stranger: Stranger) -> Option<Stranger> {
        self.strangers[stranger as usize] += 1;
        Some(stranger)
    }
}

/// The sink of the packet that sets where the lines begin.
struct Nobody;

impl Sink for Nobody {
    fn message(&mut self, _: u64, _: &[u8], _: Nanos) {}
    fn gap(&mut self, _: u64, _: u64) {}
    fn end_of_session(&mut self, _: u64) {}
    fn reset(&mut self, _: Session) {}
}

#[cfg(test)]
mod tests {
    use tapeline_feed::history::Limits;
    use tapeline_feed::moldudp64::retransmit::ServerSettings;

    use super::*;
    use crate::ItemId;
    use crate::State;
    use crate::bridge::{Epoch, LONGEST_MESSAGE, Packer, PackerSettings};
    use crate::tick::Header;

    #[derive(Default)]
    struct Taken(Vec<u64>);

    impl Delivery for Taken {
        fn tick(&mut self, seq: Seq, _: &[u8]) -> Result<(), Refused> {
            self.0.push(seq.0);
            Ok(())
        }
    }

    fn tick(seq: u64, body: usize) -> Vec<u8> {
        let header =
            Header { seq: Seq(seq), item: ItemId(1), service: 1, state: State::Live, ..Header::default() };
        let mut frame = Vec::new();
        Tick { header, name: "A", body: &vec![0; body], source: &[] }.write(&mut frame);
        frame
    }

    fn session(epoch: u64) -> BridgeSession {
        BridgeSession { plant: "A".parse().unwrap(), epoch: Epoch(epoch) }
    }

    fn packer(epoch: u64) -> Packer {
        let history = Limits { messages: 64, bytes: 1 << 20 };
        let settings = PackerSettings { packet_bytes: 200, history, answers: ServerSettings::default() };
        Packer::new(session(epoch), Seq(1), settings)
    }

    fn follower() -> Follower {
        let settings = FollowerSettings {
            plant: "A".parse().unwrap(),
            window_ticks: 64,
            window_bytes: 1 << 20,
            reorder_ns: 10,
            recovery_ns: 1_000,
            requests: ClientSettings { delay_ns: 10, timeout_ns: 100, ..ClientSettings::default() },
        };
        let mut follower = Follower::new(settings, None);
        follower.go_live(session(7), Seq(1), Nanos(1), &mut Taken::default()).unwrap();
        follower
    }

    /// Datagrams of one tick each.
    fn datagrams(packer: &mut Packer, seqs: RangeInclusive<u64>) -> Vec<Vec<u8>> {
        seqs.flat_map(|seq| {
            packer.tick(Seq(seq), &tick(seq, 8));
            packer.pack();
            packer.datagrams().map(<[u8]>::to_vec).collect::<Vec<_>>()
        })
        .collect()
    }

    #[test]
    fn a_lost_datagram_is_requested_again_and_no_tick_comes_twice() {
        let (mut above, mut below, mut taken) = (packer(7), follower(), Taken::default());
        for (at, datagram) in datagrams(&mut above, 1..=5).iter().enumerate() {
            for line in [Line::A, Line::B] {
                if at != 2 {
                    below.datagram(line, datagram, Nanos(2), &mut taken).unwrap();
                }
            }
        }
        assert_eq!(taken.0, [1, 2]);
        below.look(Nanos(5));
        assert_eq!(below.poll(Nanos(5)), None, "the lines have their time");
        below.look(Nanos(20));
        let ask = below.poll(Nanos(20)).unwrap();
        assert_eq!((ask.request.sequence, ask.request.count, below.missing()), (3, 1, 1));
        let answer = above.answer(std::net::Ipv4Addr::LOCALHOST, &ask.request.encode(), Nanos(21)).unwrap();
        below.answer(0, answer, Nanos(21), &mut taken).unwrap();
        assert_eq!((taken.0, below.source(), below.next()), (vec![1, 2, 3, 4, 5], TickSource::Lines, Seq(6)));
    }

    #[test]
    fn what_every_living_line_has_passed_is_requested_sooner() {
        let requests = ClientSettings { delay_ns: 5_000_000, ..ClientSettings::default() };
        let settings = FollowerSettings {
            reorder_ns: 5_000_000,
            recovery_ns: 1_000_000_000,
            requests,
            ..follower().settings
        };
        for (lines, silence, wait) in [
            (&[Line::A][..], 0, requests.overtaking_ns),
            (&[Line::A, Line::B], 0, 5_000_000),
            (&[Line::A, Line::B], 4_000_000_000, requests.overtaking_ns),
        ] {
            let (mut above, mut taken) = (packer(7), Taken::default());
            let mut below = Follower::new(settings, None);
            below.go_live(session(7), Seq(1), Nanos(1), &mut taken).unwrap();
            let all = datagrams(&mut above, 1..=3);
            for line in lines {
                below.datagram(*line, &all[0], Nanos(2), &mut taken).unwrap();
            }
            let now = Nanos(2 + silence);
            below.datagram(Line::A, &all[2], now, &mut taken).unwrap();
            below.look(now);
            assert_eq!(below.poll(now + (wait - 1)), None, "{lines:?}");
            assert_eq!(below.poll(now + wait).map(|ask| ask.request.sequence), Some(2), "{lines:?}");
        }
    }

    #[test]
    fn a_hole_that_nobody_fills_leads_to_the_catch_up_server_and_back() {
        let (mut above, mut below, mut taken) = (packer(7), follower(), Taken::default());
        let all = datagrams(&mut above, 1..=5);
        below.datagram(Line::A, &all[0], Nanos(2), &mut taken).unwrap();
        below.datagram(Line::A, &all[3], Nanos(2), &mut taken).unwrap();
        below.look(Nanos(1_100));
        assert_eq!((below.source(), below.next(), below.left()), (TickSource::CatchUpServer, Seq(2), 1));
        // Lines are not read meanwhile.
        below.datagram(Line::A, &all[1], Nanos(2), &mut taken).unwrap();
        assert_eq!(taken.0, [1]);
        below.took(session(7), Seq(4));
        below.go_live(session(7), Seq(5), Nanos(1_200), &mut taken).unwrap();
        below.datagram(Line::A, &all[3], Nanos(1_200), &mut taken).unwrap();
        below.datagram(Line::A, &all[4], Nanos(1_200), &mut taken).unwrap();
        assert_eq!(taken.0, [1, 5]);
    }

    #[test]
    fn what_the_lines_bring_while_the_past_comes_is_delivered_behind_it() {
        let (mut above, mut below, mut taken) = (packer(7), follower(), Taken::default());
        let all = datagrams(&mut above, 1..=8);
        below.leave(Nanos(2));
        for datagram in &all[1..6] {
            below.datagram(Line::A, datagram, Nanos(3), &mut taken).unwrap();
        }
        // Of another plant, and of an earlier epoch.
        let mut other = datagrams(&mut packer(7), 1..=7).remove(6);
        other[1] = b'B';
        below.datagram(Line::B, &other, Nanos(3), &mut taken).unwrap();
        below.datagram(Line::B, &datagrams(&mut packer(6), 1..=7)[6], Nanos(3), &mut taken).unwrap();
        assert!(taken.0.is_empty());
        below.go_live(session(7), Seq(4), Nanos(4), &mut taken).unwrap();
        assert_eq!((taken.0.as_slice(), below.next()), (&[4, 5, 6][..], Seq(7)));
        // They are not delivered again the next time.
        below.leave(Nanos(5));
        below.go_live(session(7), Seq(7), Nanos(6), &mut taken).unwrap();
        below.datagram(Line::A, &all[7], Nanos(7), &mut taken).unwrap();
        below.datagram(Line::A, &all[6], Nanos(7), &mut taken).unwrap();
        assert_eq!(taken.0, [4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_tick_that_is_too_long_or_damaged_is_left_to_the_catch_up_server() {
        let (mut above, mut below, mut taken) = (packer(7), follower(), Taken::default());
        above.tick(Seq(1), &tick(1, LONGEST_MESSAGE));
        above.pack();
        let long = above.datagrams().next().unwrap().to_vec();
        below.datagram(Line::A, &long, Nanos(2), &mut taken).unwrap();
        assert_eq!((below.source(), below.next()), (TickSource::CatchUpServer, Seq(1)));
        below.go_live(session(7), Seq(2), Nanos(2), &mut taken).unwrap();
        above.tick(Seq(2), b"not a tick");
        above.pack();
        let damaged = above.datagrams().next().unwrap().to_vec();
        below.datagram(Line::A, &damaged, Nanos(2), &mut taken).unwrap();
        assert_eq!((below.source(), below.next(), taken.0.len()), (TickSource::CatchUpServer, Seq(2), 0));
    }

    #[test]
    fn two_sequences_never_mix() {
        let (mut below, mut taken) = (follower(), Taken::default());
        let mut see = |datagram: &[u8]| below.datagram(Line::A, datagram, Nanos(2), &mut taken).unwrap();
        assert_eq!(see(&datagrams(&mut packer(6), 1..=1)[0]), Some(Stranger::OlderEpoch));
        assert_eq!(see(&datagrams(&mut packer(8), 1..=1)[0]), Some(Stranger::NewerEpoch));
        let mut other = datagrams(&mut packer(7), 1..=1).remove(0);
        other[1] = b'B';
        assert_eq!(see(&other), Some(Stranger::OtherPlant));
        other[0] = b'2';
        assert_eq!(see(&other), Some(Stranger::OtherLayout));
        other[0] = b'X';
        assert_eq!(see(&other), Some(Stranger::NotABridge));
        assert_eq!(see(&other[..19]), Some(Stranger::Malformed));
        assert!(taken.0.is_empty());
        assert_eq!(below.strangers(), &[1; 6]);
    }

    #[test]
    fn an_end_that_came_while_catching_up_counts_if_nothing_is_behind_it() {
        for (begun, held, next, has_ended) in
            [(true, 2, 3, true), (false, 2, 3, true), (true, 2, 2, true), (true, 0, 2, false)]
        {
            let (mut above, mut taken) = (packer(7), Taken::default());
            let mut below = follower();
            match begun {
                true => below.leave(Nanos(2)),
                false => below = Follower::new(below.settings, None),
            }
            let all = datagrams(&mut above, 1..=2);
            for datagram in all.into_iter().take(held).chain([above.end().to_vec()]) {
                below.datagram(Line::A, &datagram, Nanos(2), &mut taken).unwrap();
            }
            assert!(!below.has_ended() && taken.0.is_empty());
            below.go_live(session(7), Seq(next), Nanos(3), &mut taken).unwrap();
            assert_eq!(below.has_ended(), has_ended, "caught up to {next}");
        }
    }

    #[test]
    fn an_end_is_over_when_the_plant_goes_on() {
        let (mut above, mut below, mut taken) = (packer(7), follower(), Taken::default());
        let all = datagrams(&mut above, 1..=2);
        for datagram in &all {
            below.datagram(Line::A, datagram, Nanos(2), &mut taken).unwrap();
        }
        below.datagram(Line::A, &above.end(), Nanos(2), &mut taken).unwrap();
        assert!(below.has_ended());
        for datagram in datagrams(&mut above, 3..=4) {
            below.datagram(Line::A, &datagram, Nanos(3), &mut taken).unwrap();
        }
        assert_eq!((taken.0, below.has_ended()), (vec![1, 2, 3, 4], false));
    }
}
