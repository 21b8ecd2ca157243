//! A line out of a plant over TCP, with or without TLS: for hosts that datagrams do not reach.
//!
//! Each plant below that follows the line has its own place in the packer's memory of ticks, and takes them at its own rate: nobody waits for
//! it. A plant that takes nothing for [`PATIENCE_NS`], or that is so slow that the memory no longer has its next tick, is cut off; it connects
//! again, and catches up. Little waits for each plant: [`READY`] bytes, and what the kernel holds.
//!
//! A plant that follows may ask for the [time](tapeline_plant::bridge::clocks): one request at a time, which is answered between two batches of ticks.

use std::net::SocketAddr;

use tapeline_feed::moldudp64::HEADER_BYTES;
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::Seq;
use tapeline_plant::bridge::clocks::{CLOCK_BYTES, ClockExchange};
use tapeline_plant::bridge::tcp_line::{FOLLOW_BYTES, NotALine, followed, put_datagram, time_asked};
use tapeline_plant::bridge::{BridgeSession, Packer};
use tapeline_wire::tcp::{Listener, Received, Stream};
use tapeline_wire::tls::Tls;

use crate::Error;
use crate::events::{Events, Kind, Severity};

/// Bytes prepared for one plant at a time.
const READY: usize = 64 << 10;
/// How often one plant may get as much in a turn: the ring and the other plants have theirs too.
const AT_ONCE: usize = 4;
/// A plant that takes nothing, or does not say what it wants, for this long is cut off.
const PATIENCE_NS: i64 = 5_000_000_000;
/// A connection that has not said what it wants after this time gives its place to another.
const PLACE_NS: i64 = 1_000_000_000;
/// How often it is checked that a plant is still there.
const LOOK_NS: i64 = 10_000_000;
/// A plant that compares clocks asks four times a second. Its next request is looked for in each turn from the first of these times on after the
/// last one, because each moment that it waits makes the bound worse; and not behind the second: it no longer asks.
const ASKED_AGAIN_NS: (i64, i64) = (200_000_000, 1_000_000_000);

/// A line to plants below over TCP.
#[derive(Clone, Copy, Debug)]
pub struct TcpLineOptions {
    /// The address at which it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// Maximum number of plants that follow it at once.
    pub max_followers: usize,
}

/// What plants below have done on lines over TCP.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Followers {
    /// Those that follow now.
    pub(super) now: u64,
    /// Times that one was cut off because it was too slow.
    pub(super) cut_off: u64,
    /// Connections that were refused: one too many, without TLS, or of something else than a plant.
    pub(super) refused: u64,
}

/// The listening end of a line.
pub(super) struct TcpLine {
    listener: Listener,
    tls: Option<Tls>,
    session: BridgeSession,
    max_followers: usize,
    followers: Vec<FollowingPlant>,
    counts: Followers,
}

/// What is said to a plant that has every tick.
#[derive(Clone, Copy)]
pub(super) struct WhenQuiet {
    /// A heartbeat, or the end of the session.
    pub(super) datagram: [u8; HEADER_BYTES],
    pub(super) every_ns: i64,
}

/// A plant below.
struct FollowingPlant {
    stream: Stream,
    /// The first sequence that was not passed on; `None` until the plant has said which it wants.
    next: Option<Seq>,
    /// The request for the time that was not answered yet.
    asked: Option<ClockExchange>,
    /// When the last one came.
    asked_at: Option<Nanos>,
    /// It is in another session: nothing but what told it so is sent.
    is_stranger: bool,
    /// When it last took or sent bytes.
    moved: Nanos,
    /// When it was last checked that the plant is there, and when it was last sent something.
    looked: Nanos,
    sent: Nanos,
}

/// Why a plant follows no longer.
enum Left {
    Closed,
    TooSlow(String),
    Refused(String),
}

impl From<tapeline_wire::Error> for Left {
    fn from(error: tapeline_wire::Error) -> Self {
        match error {
            tapeline_wire::Error::TlsPeer { cause, .. } => Self::Refused(format!("TLS: {cause}")),
            // It was reset: that plant has ended, or has given up.
            _ => Self::Closed,
        }
    }
}

impl TcpLine {
    /// Listens.
    pub(super) fn open(
        options: &TcpLineOptions,
        tls: Option<&Tls>,
        session: BridgeSession,
    ) -> crate::Result<Self> {
        let listener = Listener::open(options.address).map_err(|error| {
            let hint = error.hint().unwrap_or_default();
            let what = format!("plants below cannot follow a line over TCP at {}", options.address);
            Error::hinted(what, format!("{hint}; tcp in [[bridge.line]] names it")).because(error)
        })?;
        let (max_followers, tls) = (options.max_followers, tls.cloned());
        let (followers, counts) = (Vec::new(), Followers::default());
        Ok(Self { listener, tls, session, max_followers, followers, counts })
    }

    /// Returns the address at which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_address()
    }

    pub(super) fn counts(&self) -> Followers {
        let now = self.followers.iter().filter(|follower| follower.next.is_some()).count() as u64;
        Followers { now, ..self.counts }
    }

    /// Whether a plant is about to ask for the time.
    pub(super) fn is_time_due(&self, now: Nanos) -> bool {
        self.followers.iter().any(|follower| follower.is_time_due(now))
    }

    /// Accepts plants, and gives each what it takes. Returns whether a plant still lacks something that was packed.
    pub(super) fn turn(
        &mut self,
        packer: &mut Packer,
        saying: WhenQuiet,
        (now, clock): (Nanos, &Clock),
        events: &Events,
    ) -> bool {
        // One in a turn: an agreement on TLS costs more than many ticks.
        if let Err(error) = self.accept(now, events) {
            let said = format_args!("bridge: a line over TCP cannot accept connections: {error}");
            events.peer(now, Kind::Accept, Severity::Warning, said);
        }
        let (session, counts) = (self.session, &mut self.counts);
        let mut is_behind = false;
        self.followers.retain_mut(|follower| {
            let left = match follower.turn(session, packer, saying, (now, clock)) {
                Ok(is_done) => {
                    is_behind |= !is_done;
                    return true;
                }
                Err(left) => left,
            };
            let peer = follower.stream.peer_address();
            let lacking = follower.next.map_or(0, |next| packer.next().0.saturating_sub(next.0));
            match left {
                // It was told its session, or has never said what it wants.
                Left::Closed if follower.next.is_none() => {}
                Left::Closed => {
                    let said = format_args!("bridge: the plant at {peer} no longer follows over TCP");
                    events.peer(now, Kind::Bridge, Severity::Info, said);
                }
                Left::TooSlow(why) => {
                    counts.cut_off += 1;
                    let said = format_args!(
                        "bridge: the plant at {peer} is cut off, and lacks {} ticks: {why}",
                        thousands(lacking)
                    );
                    events.peer(now, Kind::Bridge, Severity::Warning, said);
                }
                Left::Refused(why) => {
                    counts.refused += 1;
                    let said = format_args!("bridge: {peer} cannot follow over TCP: {why}");
                    events.peer(now, Kind::Bridge, Severity::Warning, said);
                }
            }
            false
        });
        is_behind
    }

    fn accept(&mut self, now: Nanos, events: &Events) -> Result<(), tapeline_wire::Error> {
        // A byte more than the longest request, so that it shows.
        let input_bytes = CLOCK_BYTES + 1;
        let accepted = match &self.tls {
            Some(tls) => self.listener.accept_tls(tls, input_bytes),
            None => self.listener.accept(input_bytes),
        };
        let Some(stream) = accepted? else { return Ok(()) };
        let is_idle = |it: &FollowingPlant| it.next.is_none() && now.since(it.moved) >= PLACE_NS;
        if self.followers.len() >= self.max_followers
            && let Some(idle) = self.followers.iter().position(is_idle)
        {
            self.counts.refused += 1;
            self.followers.remove(idle);
        }
        if self.followers.len() >= self.max_followers {
            self.counts.refused += 1;
            let said = format_args!(
                "bridge: {} cannot follow over TCP: max_followers = {} plants do",
                stream.peer_address(),
                self.max_followers
            );
            events.peer(now, Kind::Bridge, Severity::Warning, said);
            return Ok(());
        }
        let follower = FollowingPlant {
            stream,
            next: None,
            asked: None,
            asked_at: None,
            is_stranger: false,
            moved: now,
            looked: Nanos(0),
            sent: Nanos(0),
        };
        self.followers.push(follower);
        Ok(())
    }
}

impl FollowingPlant {
    /// Gives the plant what it takes. Returns whether it has everything that was packed.
    fn turn(
        &mut self,
        session: BridgeSession,
        packer: &mut Packer,
        saying: WhenQuiet,
        (now, clock): (Nanos, &Clock),
    ) -> Result<bool, Left> {
        if self.next.is_none() || self.is_time_due(now) || now.since(self.looked) >= LOOK_NS {
            self.looked = now;
            self.listen(session, packer, saying, (now, clock))?;
        }
        let is_done = self.give(packer, saying, (now, clock))?;
        if now.since(self.moved) >= PATIENCE_NS {
            return Err(match self.next {
                _ if self.is_stranger => Left::Closed,
                None => Left::Refused("it does not say for 5 s what it wants".to_owned()),
                Some(_) => Left::TooSlow("it has taken nothing for 5 s".to_owned()),
            });
        }
        Ok(is_done)
    }

    fn is_time_due(&self, now: Nanos) -> bool {
        let (from, until) = ASKED_AGAIN_NS;
        self.asked_at.is_some_and(|asked_at| (from..until).contains(&now.since(asked_at)))
    }

    /// Reads what the plant wants, which it says once, and its requests for the time.
    fn listen(
        &mut self,
        session: BridgeSession,
        packer: &Packer,
        saying: WhenQuiet,
        (now, clock): (Nanos, &Clock),
    ) -> Result<(), Left> {
        self.stream.flush()?;
        if self.stream.receive()? == Received::Closed {
            return Err(Left::Closed);
        }
        let (bytes, output) = self.stream.split();
        let most = match self.next {
            Some(_) if self.asked.is_none() => CLOCK_BYTES,
            None if !self.is_stranger => FOLLOW_BYTES,
            _ => 0,
        };
        if bytes.len() > most {
            return Err(Left::Refused("it sends more than the one request of a plant".to_owned()));
        }
        if self.next.is_some() {
            let refused = |error: NotALine| Left::Refused(error.to_string());
            let Some(asked) = time_asked(bytes).map_err(refused)? else { return Ok(()) };
            if asked.plant != session.plant {
                return Err(refused(NotALine::Time));
            }
            // Not `now`: that was before it arrived.
            self.asked = Some(ClockExchange { received: clock.now(), ..asked });
            self.asked_at = Some(now);
            self.stream.consume(CLOCK_BYTES);
            return Ok(());
        }
        let Some(request) = bytes.first_chunk::<FOLLOW_BYTES>() else { return Ok(()) };
        let (wanted, next) = followed(request).map_err(|error| Left::Refused(error.to_string()))?;
        (self.moved, self.is_stranger) = (now, wanted != session);
        if self.is_stranger {
            // The session in it says the rest.
            put_datagram(output, &saying.datagram);
        } else {
            self.next = Some(next.max(packer.oldest()));
        }
        self.stream.consume(FOLLOW_BYTES);
        Ok(())
    }

    /// Sends what the plant takes. Returns whether it has everything.
    fn give(
        &mut self,
        packer: &mut Packer,
        saying: WhenQuiet,
        (now, clock): (Nanos, &Clock),
    ) -> Result<bool, Left> {
        for _ in 0..AT_ONCE {
            let before = self.stream.unsent();
            if let Some(next) = &mut self.next
                && before == 0
            {
                if let Some(asked) = self.asked.take() {
                    let answer = ClockExchange { answered: clock.now(), error_ns: clock.error_ns(), ..asked };
                    put_datagram(self.stream.output(), &answer.encode());
                }
                let gone = || Left::TooSlow("the memory (history) no longer has its next tick".to_owned());
                *next = packer.follow(*next, READY, self.stream.output()).ok_or_else(gone)?;
                // There was nothing that it could have taken.
                self.moved = now;
                if self.stream.unsent() == 0 && now.since(self.sent) >= saying.every_ns {
                    put_datagram(self.stream.output(), &saying.datagram);
                }
            }
            let unsent = self.stream.unsent();
            if unsent == 0 {
                return Ok(true);
            }
            let is_flushed = self.stream.flush()?;
            if self.stream.unsent() < unsent {
                (self.moved, self.sent) = (now, now);
            }
            if !is_flushed {
                return Ok(false);
            }
            if self.is_stranger {
                self.stream.finish();
                return Ok(true);
            }
        }
        Ok(false)
    }
}
