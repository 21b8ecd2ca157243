//! The bridge into a plant: its ticks are those of another plant, with the same sequences. `[[upstream]]` in the configuration.
//!
//! [`Follower`] has the rules of joining; [`CatchUp`] takes the past over TCP. A tick is published as it stands. While the plant above is
//! silent, this plant says of each channel that it is stale, outside the sequence.

mod catch_up;
mod clocks;
pub(crate) mod demands;
mod line;
mod tcp_line;

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tapeline_feed::line::Line;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::bridge::{
    BridgeSession, ChannelStates, Delivery, Follower, FollowerSettings, PlantId, Stranger, TickSource,
};
use tapeline_plant::tick::Tick;
use tapeline_plant::{ChannelCounters, Publish, Refused, RingPublish, Seq, Sequencer, StampedBy, State};
use tapeline_wire::tcp::{Interest, wait};
use tapeline_wire::udp::{Batch, ReceiveOptions, UdpReceiver};

use self::catch_up::{CatchUp, CatchUpTurn};
use self::clocks::ClockAbove;
use self::demands::DemandsAbove;
use self::line::LineReceiver;
pub use self::line::UpstreamLine;
pub use self::tcp_line::TlsToPlant;
use crate::Error;
use crate::error::Context;
use crate::events::{Events, Kind, Severity};
use crate::readers::bridge::epochs::Epochs;
use crate::readers::counting::FeedFigures;
use crate::stat::snapshot::{AeronReceivedSnapshot, ClockSnapshot, UpstreamSnapshot};

/// Datagrams taken from one line before the next line has its turn.
const BATCH_SLOTS: usize = 64;
/// Any datagram of UDP: a long tick travels in one of its own.
const SLOT_BYTES: usize = 65_536;
/// How long the past waits for lines over Aeron: until they have their senders, what is sent on them is missed.
const JOINING_NS: i64 = 2_000_000_000;
/// A later epoch on the lines is looked into this often at most: anyone can send such a datagram.
const LOOK_INTO_NS: i64 = 1_000_000_000;

/// A plant above.
#[derive(Debug)]
pub struct UpstreamConfig {
    /// A name for messages about it.
    pub name: String,
    /// Its lines.
    pub lines: Vec<UpstreamLine>,
    /// Its re-request servers, in the order in which they are asked; may be empty.
    pub requests: Vec<SocketAddrV4>,
    /// Its catch-up servers: that of each plant that may lead.
    pub catch_up: Vec<SocketAddr>,
    /// Whether a server that knows only an earlier epoch than the last is passed over: there are several, or they change their parts.
    pub passes_over_older: bool,
    /// How its lines over TCP and its catch-up server are encrypted; `None` for no TLS.
    pub tls: Option<TlsToPlant>,
    /// `true` to begin with all ticks of the epoch, if this plant has none; otherwise with images.
    pub whole_epoch: bool,
    /// The rules of joining; the plant's id is part of them.
    pub follower: FollowerSettings,
    /// The time after which the plant above counts as silent; zero means never.
    pub stale_after: Duration,
    /// Socket buffer of each line, in bytes.
    pub receive_buffer: usize,
}

/// Totals of a plant above.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UpstreamReport {
    /// Its name in the configuration.
    pub name: String,
    /// Its session at the end: plant and epoch.
    pub session: Option<String>,
    /// The state last told: initial, live, recovering or stale.
    pub state: String,
    /// `true` if the plant above has ended.
    pub ended: bool,
    /// The next sequence.
    pub next_sequence: u64,
    /// Ticks that came over the lines and by re-requests.
    pub ticks: u64,
    /// Ticks that came from the catch-up server.
    pub caught_up: u64,
    /// Ticks that the plant above does not have itself.
    pub missing: u64,
    /// Re-requests sent, and answered.
    pub requests: u64,
    /// Re-requests answered.
    pub answers: u64,
    /// Ticks in those answers.
    pub recovered: u64,
    /// Times that lines and re-requests did not suffice, and the catch-up server was asked.
    pub left_lines: u64,
    /// Datagrams that were not of the session, by reason.
    pub strangers: std::collections::BTreeMap<String, u64>,
    /// Datagrams that the kernel dropped because a socket's buffer was full.
    pub kernel_drops: u64,
    /// Times that a line has lost its media driver of Aeron.
    pub drivers_lost: u64,
    /// Times that a line over TCP has lost its connection, or got none.
    pub connections_lost: u64,
}

/// A plant above, with its sockets.
pub(crate) struct Upstream {
    name: String,
    follower: Follower,
    lines: Vec<LineReceiver>,
    batch: Batch,
    recovery: Option<UdpReceiver>,
    servers: Vec<SocketAddrV4>,
    /// The server that is asked first: that of the plant that leads.
    first: usize,
    catch_up: CatchUp,
    clock_above: ClockAbove,
    channels: ChannelStates,
    /// The demands of this plant's hub, if it has any.
    demands: Option<Arc<DemandsAbove>>,
    epochs: Epochs,
    state: State,
    stale_after_ns: i64,
    /// Since when the lines have had time to be there.
    begun: Option<Nanos>,
    /// When the lines were first joined: from then on silence counts.
    joined: Option<Nanos>,
    /// When the catch-up server last sent ticks.
    past_heard: Option<Nanos>,
    /// When a later epoch on the lines was last looked into.
    looked_into: Nanos,
    ticks: u64,
    caught_up: u64,
    missing: u64,
    events: Events,
}

/// Publishes ticks, and notes what they say of their channels.
struct Relay<'a, P> {
    to: &'a mut Sequencer<P>,
    channels: &'a mut ChannelStates,
    count: &'a mut u64,
}

impl<P: Publish> Delivery for Relay<'_, P> {
    #[inline]
    fn tick(&mut self, seq: Seq, frame: &[u8]) -> Result<(), Refused> {
        if let Ok(tick) = Tick::parse(frame) {
            self.channels.take(&tick);
        }
        self.to.relay(seq, frame)?;
        *self.count += 1;
        Ok(())
    }
}

/// Moves the journal of a plant below aside, because its ticks are not followed by those of the plant above. Returns the new path of the folder.
///
/// # Errors
/// The folder cannot be renamed.
pub fn set_aside(folder: &Path) -> crate::Result<PathBuf> {
    let epochs = Epochs::of(Some(folder))?;
    let session = epochs.present().map_or_else(|| "unknown".to_owned(), |session| session.to_string());
    let mut name = folder.as_os_str().to_owned();
    name.push(format!("-{session}"));
    let aside = PathBuf::from(name);
    std::fs::rename(folder, &aside).with_context(|| {
        let what = format!("cannot rename {} to {}", folder.display(), aside.display());
        Error::hinted(what, "move the journal away by hand, and start the plant again")
    })?;
    Ok(aside)
}

impl Upstream {
    /// Opens the sockets. `journal` is the folder of this plant's journal and its last tick, if it has a journal.
    pub(crate) fn open(
        config: &UpstreamConfig,
        journal: Option<(&Path, Seq)>,
        demands: Option<Arc<DemandsAbove>>,
        events: &Events,
    ) -> crate::Result<Self> {
        let events = &events.with("upstream", &config.name);
        let epochs = Epochs::of(journal.map(|(folder, _)| folder))?;
        // An epoch without a tick is no reason to follow it: the plant that numbers now may never have heard of it.
        let known = match (journal.and_then(|(_, last)| epochs.of_tick(last)), journal) {
            (Some(session), Some((_, last))) if last > Seq(0) => Some((session, Seq(last.0 + 1))),
            (None, Some((folder, last))) if last > Seq(0) => {
                let what = format!(
                    "the journal in {} has ticks that this plant numbered itself, and [[upstream]] brings those of another plant",
                    folder.display()
                );
                return Err(Error::hinted(what, "another folder in [journal] keeps the two apart"));
            }
            _ => None,
        };
        if let Some((session, _)) = known
            && session.plant != config.follower.plant
        {
            let what = format!(
                "the journal has ticks of plant {}, and [[upstream]] {} is plant {}",
                session.plant, config.name, config.follower.plant
            );
            return Err(Error::hinted(what, "another folder in [journal] keeps the two apart"));
        }
        let lines = config.lines.iter().map(|line| LineReceiver::open(config, line, events));
        let lines = lines.collect::<crate::Result<_>>()?;
        let recovery = match config.requests.as_slice() {
            [] => None,
            servers => {
                let is_local = servers.iter().all(|server| server.ip().is_loopback());
                let own = if is_local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
                let options = ReceiveOptions {
                    receive_buffer: 4 << 20,
                    ..ReceiveOptions::new(SocketAddrV4::new(own, 0))
                };
                Some(UdpReceiver::open(&options).context("cannot open a socket for re-requests")?)
            }
        };
        Ok(Self {
            name: config.name.clone(),
            follower: Follower::new(config.follower, known),
            lines,
            batch: Batch::new(BATCH_SLOTS, SLOT_BYTES),
            recovery,
            servers: config.requests.clone(),
            first: 0,
            catch_up: CatchUp::of(config, events),
            clock_above: ClockAbove::of(config.requests.first().copied(), config.follower.plant)?,
            channels: ChannelStates::default(),
            demands,
            epochs,
            state: State::Initial,
            stale_after_ns: i64::try_from(config.stale_after.as_nanos()).unwrap_or(i64::MAX),
            begun: None,
            joined: None,
            past_heard: None,
            looked_into: Nanos(0),
            ticks: 0,
            caught_up: 0,
            missing: 0,
            events: events.clone(),
        })
    }

    /// Takes what has arrived and publishes it, requests what is missing, and tells a change of state. Returns the number of datagrams and of
    /// ticks of the catch-up server.
    ///
    /// # Errors
    /// The ring refuses a tick, or the plant above begins another sequence.
    pub(crate) fn turn(&mut self, clock: &Clock, to: &mut Sequencer<RingPublish>) -> Result<usize, Refused> {
        let now = clock.now();
        let (mut taken, all_read) = self.take_lines(now, to)?;
        taken += self.take_answers(now, to)?;
        if all_read {
            self.follower.look(now);
            while let Some(ask) = self.follower.poll(now) {
                let server = self.servers.get(self.place_of(ask.server));
                if let (Some(socket), Some(server)) = (&mut self.recovery, server) {
                    // A request that cannot be sent is treated as lost.
                    let _ = socket.send_to(&ask.request.encode(), *server);
                }
            }
        }
        if self.follower.source() == TickSource::CatchUpServer && self.may_catch_up(now) {
            let past = self.take_past(now, to)?;
            if !self.catch_up.is_connected() {
                // The plant above may not be there yet.
                self.begun = Some(now);
            }
            taken += past;
            if past > 0 {
                self.past_heard = Some(now);
            }
        }
        self.clock_above.turn(&mut self.lines, now, clock);
        self.see(now, clock, to)?;
        if taken > 0 {
            to.publisher().flush();
        }
        Ok(taken)
    }

    /// Whether nothing would be missed between the past and the lines: a line over Aeron has its sender, or had time to find it. A plant that has a
    /// journal takes from the plant above's what its lines did not bring.
    fn may_catch_up(&mut self, now: Nanos) -> bool {
        let begun = *self.begun.get_or_insert(now);
        self.catch_up.is_connected()
            || self.follower.session().is_some()
            || now.since(begun) >= JOINING_NS
            || self.lines.iter().all(LineReceiver::hears)
    }

    /// Takes datagrams of the lines. Returns their number, and whether every line was read to its end.
    fn take_lines(&mut self, now: Nanos, to: &mut Sequencer<RingPublish>) -> Result<(usize, bool), Refused> {
        let Self { name, lines, batch, follower, channels, ticks, events, .. } = self;
        let (mut taken, mut all_read, mut stranger, mut failed) = (0, true, None, None);
        let mut refused = Ok(());
        let is_wanted = follower.source() == TickSource::Lines;
        let wanted = follower.session().filter(|_| is_wanted).map(|session| (session, follower.next()));
        to.publisher().hold();
        for (receiver, number) in lines.iter_mut().zip(0..) {
            let Some(line) = Line::new(number) else { continue };
            receiver.turn(wanted, now, name, events);
            let got = receiver.receive(batch, BATCH_SLOTS, |datagram| {
                if refused.is_err() {
                    return;
                }
                let mut relay = Relay { to, channels, count: ticks };
                match follower.datagram(line, datagram.bytes, datagram.at.unwrap_or(now), &mut relay) {
                    Ok(strange) => {
                        stranger = strange.map(|strange| (strange, number, datagram.source)).or(stranger);
                    }
                    Err(refusal) => refused = Err(refusal),
                }
            });
            refused?;
            match got {
                Ok(got) => {
                    taken += got;
                    all_read &= got < BATCH_SLOTS;
                }
                Err(error) => failed = Some(error),
            }
        }
        to.publisher().show();
        if let Some(error) = failed {
            let said = format_args!("upstream {}: {error}", self.name);
            self.events.peer(now, Kind::Bridge, Severity::Warning, said);
        }
        if let Some((stranger, line, source)) = stranger {
            self.tell_stranger(stranger, line, source, now);
        }
        Ok((taken, all_read))
    }

    /// Takes answers to re-requests. Returns their number.
    fn take_answers(&mut self, now: Nanos, to: &mut Sequencer<RingPublish>) -> Result<usize, Refused> {
        let (first, count) = (self.first, self.servers.len());
        let Self { recovery: Some(socket), batch, follower, channels, ticks, servers, .. } = self else {
            return Ok(0);
        };
        if !follower.is_busy() {
            return Ok(0);
        }
        // A socket that fails is silent: the catch-up server has the ticks too.
        let got = socket.receive(batch).unwrap_or(0);
        for datagram in batch.iter().take(got) {
            let Some(place) = servers.iter().position(|server| *server == datagram.source) else { continue };
            let server = (place + count - first) % count;
            let mut relay = Relay { to, channels, count: ticks };
            follower.answer(server, datagram.bytes, datagram.received.unwrap_or(now), &mut relay)?;
        }
        Ok(got)
    }

    /// Takes ticks from the catch-up server, and in the end those that the lines have brought meanwhile. Returns their number.
    fn take_past(&mut self, now: Nanos, to: &mut Sequencer<RingPublish>) -> Result<usize, Refused> {
        let Self { follower, catch_up, channels, ticks, caught_up, missing, epochs, .. } = self;
        // Images are of a session as ticks are, but if a connection breaks among them they are asked for again.
        let (has_ticks, is_begun) = (to.published() > 0, *ticks + *caught_up > 0);
        let before = *ticks + *caught_up;
        let mut relay = Relay { to, channels, count: caught_up };
        let turn = catch_up.turn(now, follower, (has_ticks, is_begun), |session, seq, frame, next| {
            if !seq.is_outside() && epochs.present() != Some(session) {
                // The first tick of a session that this plant follows: its journal must know before the tick is in it.
                epochs.begin(session, seq).map_err(|_| Refused::Unfollowable)?;
            }
            if next > Seq(0) {
                *missing += seq.0.saturating_sub(next.0);
            }
            relay.tick(seq, frame)
        })?;
        match turn {
            CatchUpTurn::Going => {}
            CatchUpTurn::Done { session, next } => {
                if self.epochs.present() != Some(session) {
                    self.epochs.begin(session, next).map_err(|error| self.unfollowable(&error))?;
                }
                self.ask_first(self.catch_up.server());
                let mut relay = Relay { to, channels: &mut self.channels, count: &mut self.ticks };
                self.follower.go_live(session, next, now, &mut relay)?;
                self.demands.iter().for_each(|demands| demands.follow(session));
                self.joined.get_or_insert(now);
                if self.follower.source() == TickSource::Lines {
                    self.events.info(format_args!(
                        "upstream {}: caught up with session {session}; the lines have everything from tick {} on",
                        self.name, next.0
                    ));
                }
            }
            CatchUpTurn::EpochOver => {
                let session = self.follower.session().map_or_else(String::new, |session| session.to_string());
                self.events.note(format_args!(
                    "upstream {}: session {session} of the plant above is over, and another has begun: this plant's ring ends and begins again",
                    self.name
                ));
                return Err(Refused::Resequenced);
            }
            CatchUpTurn::Gone { session, next } => {
                let own = self.follower.next();
                let of_last = self.epochs.of_tick(Seq(own.0.saturating_sub(1)));
                if own > Seq(1) && of_last != self.follower.session() {
                    // The journal has no tick of the session that was followed, and may go on with this one.
                    return Err(Refused::Resequenced);
                }
                let lost = match self.follower.session() {
                    Some(before) if (Seq(1)..own).contains(&next) => format!(
                        ": ticks {} to {} of session {before}, {} of them, came from a plant that no longer leads, and the one that does has others",
                        next.0,
                        own.0 - 1,
                        own.0 - next.0
                    ),
                    _ => String::new(),
                };
                self.events.note(format_args!(
                    "upstream {}: session {session} of the plant above does not follow what this plant has{lost}: the ring ends and begins again",
                    self.name
                ));
                return Err(Refused::Unconnected);
            }
            CatchUpTurn::OtherPlant(other) => {
                let error = Error::hinted(
                    format!(
                        "upstream {}: the catch-up server is that of plant {other}, not of {}",
                        self.name,
                        self.follower.plant()
                    ),
                    "plant and catch_up in [[upstream]] must be of one plant",
                );
                return Err(self.unfollowable(&error));
            }
        }
        Ok((self.ticks + self.caught_up - before) as usize)
    }

    /// Sends re-requests, and asks for the time, where the past came from, if it is a re-request server too.
    fn ask_first(&mut self, server: SocketAddr) {
        if let Some(at) = self.servers.iter().position(|it| SocketAddr::V4(*it) == server) {
            self.first = at;
            self.clock_above.ask(self.servers[at]);
        }
    }

    /// The place of the server that the follower knows by this number.
    fn place_of(&self, server: usize) -> usize {
        (server + self.first) % self.servers.len().max(1)
    }

    fn unfollowable(&self, error: &Error) -> Refused {
        self.events.error(error, error.hint().map(Into::into));
        Refused::Unfollowable
    }

    /// Reports a datagram that is not of the session. A later epoch may be that of a plant that has started again: the catch-up server knows.
    #[cold]
    fn tell_stranger(&mut self, stranger: Stranger, line: usize, source: Option<SocketAddrV4>, now: Nanos) {
        let plant = self.follower.plant();
        if stranger == Stranger::NewerEpoch {
            if self.follower.source() == TickSource::Lines && now.since(self.looked_into) >= LOOK_INTO_NS {
                self.looked_into = now;
                self.follower.leave(now);
                // Another plant leads, or the same one started again: then its server is asked next.
                self.catch_up.ask_next();
            }
            return;
        }
        let what = match stranger {
            Stranger::OtherLayout => {
                "another version of the bridge's layout: both plants must be of one version"
            }
            Stranger::OtherPlant => "another plant: each needs lines of its own",
            Stranger::OlderEpoch => {
                "an earlier epoch: two plants number at once under one id, or the datagram is late"
            }
            _ => "not a bridge: another sender uses this address",
        };
        let source = source.map_or_else(|| "a sender".to_owned(), |source| source.to_string());
        let said = format_args!(
            "upstream {}: {source} sends on line {} of plant {plant} what is of {what}; it is left out",
            self.name,
            char::from(b'A' + (line % 26) as u8)
        );
        self.events.peer(now, Kind::Bridge, Severity::Warning, said);
    }

    /// Tells the readers when the plant above becomes silent, and when it is heard again.
    fn see(&mut self, now: Nanos, clock: &Clock, to: &mut Sequencer<RingPublish>) -> Result<(), Refused> {
        let on_lines = self.follower.heard().or(self.joined);
        // A plant above can die while this one still catches up.
        let Some(heard) = on_lines.max(self.past_heard) else { return Ok(()) };
        let is_silent = self.stale_after_ns > 0 && now.since(heard) >= self.stale_after_ns;
        let state = match self.follower.source() {
            _ if is_silent => State::Stale,
            TickSource::CatchUpServer => State::Recovering,
            TickSource::Lines => State::Live,
        };
        let before = std::mem::replace(&mut self.state, state);
        if before == state {
            return Ok(());
        }
        if state == State::Stale {
            self.events.warning(format_args!(
                "upstream {}: no line has been heard of for {:?}: items are suspect",
                self.name,
                Duration::from_nanos(self.stale_after_ns.unsigned_abs())
            ));
            self.channels.tell_stale(clock, to)?;
            to.publisher().flush();
        } else if before == State::Stale {
            self.events.info(format_args!("upstream {}: heard of again", self.name));
            self.channels.tell_again(clock, to)?;
            to.publisher().flush();
        }
        Ok(())
    }

    /// Sleeps until something arrives, at most for `longest`.
    pub(crate) fn sleep(&self, longest: Duration) {
        let longest = if self.follower.is_busy() { longest.min(WHILE_RECOVERING) } else { longest };
        // Aeron has nothing to wait for: its lines are looked at again.
        let is_polled = self.lines.iter().any(LineReceiver::is_polled);
        let longest = if is_polled { longest.min(BETWEEN_LOOKS) } else { longest };
        let catches_up = self.follower.source() == TickSource::CatchUpServer;
        let catch_up = self.catch_up.stream().filter(|_| catches_up);
        let answers = self.recovery.iter().map(|socket| (socket.as_fd(), Interest::Read));
        let sockets = self.lines.iter().filter_map(LineReceiver::readiness).chain(answers);
        wait(sockets.chain(catch_up.map(|stream| (stream.as_fd(), stream.interest()))), longest);
    }

    /// Returns the state last told.
    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// Whether the plant above has ended, and has been silent for as long as makes a plant stale.
    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        self.follower.has_ended()
            && self.follower.heard().is_some_and(|heard| now.since(heard) >= self.stale_after_ns)
    }

    /// Returns the ticks that came, and those that are nowhere.
    pub(crate) const fn counts(&self) -> (u64, u64) {
        (self.ticks + self.caught_up, self.missing)
    }

    /// Returns the figures for the counters, in the form of a feed's.
    pub(crate) fn figures(&mut self) -> FeedFigures {
        let (messages, missing) = self.counts();
        let ended = self.follower.has_ended();
        FeedFigures {
            state: self.state,
            counters: ChannelCounters {
                messages,
                missing,
                ticks: messages,
                ended,
                ..ChannelCounters::default()
            },
            kernel_drops: self.kernel_drops(),
            ..FeedFigures::default()
        }
    }

    /// Returns by which clock ticks are stamped.
    pub(crate) fn stamped_by(&self, now: Nanos) -> StampedBy {
        self.clock_above.stamped_by(now)
    }

    /// Returns what only a plant above has, for the counters.
    pub(crate) fn snapshot(&self, now: Nanos) -> UpstreamSnapshot {
        let statistics = self.follower.statistics();
        let demands = self.demands.as_ref().map(|demands| demands.figures());
        let [demands_connected, demanded, posts, posts_refused, demands_lost] = demands.unwrap_or_default();
        UpstreamSnapshot {
            session: self.follower.session().map_or_else(String::new, |session| session.to_string()),
            sequence: self.follower.next().0.saturating_sub(1),
            behind: self.follower.behind(),
            requests: statistics.requests,
            recovered: statistics.messages,
            left_lines: self.follower.left(),
            strangers: self.follower.strangers().iter().sum(),
            drivers_lost: self.drivers_lost(),
            aeron: self.lines.iter().filter_map(LineReceiver::of_driver).reduce(|all, line| {
                AeronReceivedSnapshot {
                    naks: all.naks + line.naks,
                    unread_bytes: all.unread_bytes + line.unread_bytes,
                }
            }),
            connections_lost: self.connections_lost(),
            demands: demands.is_some(),
            demands_connected: demands_connected > 0,
            demanded,
            posts,
            posts_refused,
            demands_lost,
            clock: self
                .clock_above
                .difference(now)
                .map(|clock| ClockSnapshot { ahead_ns: clock.ahead_ns, bound_ns: clock.bound_ns.into() }),
        }
    }

    /// Returns the number of datagrams that the kernel dropped.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        self.lines.iter_mut().map(LineReceiver::kernel_drops).sum()
    }

    fn drivers_lost(&self) -> u64 {
        self.lines.iter().map(LineReceiver::drivers_lost).sum()
    }

    fn connections_lost(&self) -> u64 {
        self.lines.iter().map(LineReceiver::connections_lost).sum()
    }

    /// Returns the totals.
    pub(crate) fn report(&mut self) -> UpstreamReport {
        let kernel_drops = self.kernel_drops();
        let statistics = self.follower.statistics();
        let strangers = Stranger::REASONS.iter().zip(self.follower.strangers());
        let strangers = strangers.filter(|(_, count)| **count > 0);
        UpstreamReport {
            name: self.name.clone(),
            session: self.follower.session().map(|session: BridgeSession| session.to_string()),
            state: self.state.to_string(),
            ended: self.follower.has_ended(),
            next_sequence: self.follower.next().0,
            ticks: self.ticks,
            caught_up: self.caught_up,
            missing: self.missing,
            requests: statistics.requests,
            answers: statistics.answers,
            recovered: statistics.messages,
            left_lines: self.follower.left(),
            strangers: strangers.map(|(reason, count)| ((*reason).to_owned(), *count)).collect(),
            kernel_drops,
            drivers_lost: self.drivers_lost(),
            connections_lost: self.connections_lost(),
        }
    }
}

/// How long the plant sleeps while a re-request is pending: an answer on the same host takes as long.
const WHILE_RECOVERING: Duration = Duration::from_micros(200);
/// How long the plant sleeps between two looks at lines of Aeron.
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

impl UpstreamConfig {
    /// Creates a plant above without lines, with the defaults of a configuration file.
    #[must_use]
    pub fn new(name: &str, plant: PlantId, catch_up: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            lines: Vec::new(),
            requests: Vec::new(),
            catch_up: vec![catch_up],
            passes_over_older: false,
            tls: None,
            whole_epoch: false,
            follower: FollowerSettings { plant, ..FollowerSettings::default() },
            stale_after: crate::config::STALE_AFTER,
            receive_buffer: RECEIVE_BUFFER,
        }
    }

    /// Returns the addresses of its servers, for messages.
    #[must_use]
    pub fn servers(&self) -> String {
        self.catch_up.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
    }
}

/// Default socket buffer of each line of a plant above, in bytes: a burst is larger than that of one feed.
pub const RECEIVE_BUFFER: usize = 16 << 20;
