//! The client of a catch-up server, in the plant's own loop, without blocking.

use std::net::SocketAddr;

use tapeline_measure::Nanos;
use tapeline_plant::bridge::catch_up::{
    Beginning, CatchUpReply, CatchUpRequest, HEAD_BYTES, LONGEST_TICK, NotCatchUp, Outcome, Part, part,
};
use tapeline_plant::bridge::{BridgeSession, Follower, PlantId};
use tapeline_plant::tick::{Malformed, Tick};
use tapeline_plant::{Refused, Seq};
use tapeline_wire::tcp::{Received, Stream};

use super::UpstreamConfig;
use super::tcp_line::TlsToPlant;
use crate::events::{Events, Kind, Severity};

/// Ticks taken in one turn, so that the lines are emptied meanwhile.
const BATCH: usize = 1_024;
/// The pause before the server is asked again after a failure.
const PAUSE_NS: i64 = 500_000_000;
/// How long the server may send nothing.
const PATIENCE_NS: i64 = 5_000_000_000;
/// How long one of several may not answer.
const FIRST_PATIENCE_NS: i64 = 1_000_000_000;
/// The buffer of the connection: the longest tick, and its length.
const INPUT_BYTES: usize = LONGEST_TICK + 4;

/// What a turn has found.
#[derive(Clone, Copy, Debug)]
pub(super) enum CatchUpTurn {
    /// There is more to come, or nothing was to be had yet.
    Going,
    /// The lines have everything from `next` on.
    Done { session: BridgeSession, next: Seq },
    /// The session that was followed is over, and this plant has all of it.
    EpochOver,
    /// What this plant has is not followed by anything that the plant above has; from `next` on it has other ticks (0: none that this plant has).
    Gone { session: BridgeSession, next: Seq },
    /// The server is that of another plant.
    OtherPlant(PlantId),
}

/// A connection to a catch-up server, or the pause before the next.
#[derive(Debug)]
pub(super) struct CatchUp {
    servers: Vec<SocketAddr>,
    /// The one that is asked.
    at: usize,
    passes_over_older: bool,
    tls: Option<TlsToPlant>,
    whole_epoch: bool,
    name: String,
    connection: Option<Connection>,
    /// Nothing is asked before this.
    not_before: Nanos,
    /// The failure was reported; the next success ends it.
    has_complained: bool,
    events: Events,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    /// When the server last sent something.
    heard: Nanos,
    reply: Option<CatchUpReply>,
    /// The session of the ticks that follow the reply.
    session: Option<BridgeSession>,
}

/// Advice for what may be a wrong address.
const HINT: &str =
    "server has the port of [bridge] in the plant above; with cert there, tls = true is needed here";

/// The end of a connection that did not bring everything, and advice.
struct Failed(String, Option<String>);

impl From<tapeline_wire::Error> for Failed {
    fn from(error: tapeline_wire::Error) -> Self {
        Self(error.to_string(), error.hint())
    }
}

impl From<NotCatchUp> for Failed {
    fn from(error: NotCatchUp) -> Self {
        Self(error.to_string(), None)
    }
}

impl From<Malformed> for Failed {
    fn from(error: Malformed) -> Self {
        Self(error.to_string(), None)
    }
}

impl From<&str> for Failed {
    fn from(why: &str) -> Self {
        Self(why.to_owned(), None)
    }
}

impl From<String> for Failed {
    fn from(why: String) -> Self {
        Self(why, None)
    }
}

/// The outcome of one look at a connection.
enum Looked {
    Turn(CatchUpTurn),
    Refused(Refused),
}

impl CatchUp {
    /// Creates the client of a server, which it does not ask yet.
    pub(super) fn of(config: &UpstreamConfig, events: &Events) -> Self {
        Self {
            servers: config.catch_up.clone(),
            at: 0,
            passes_over_older: config.passes_over_older,
            tls: config.tls.clone(),
            whole_epoch: config.whole_epoch,
            name: config.name.clone(),
            connection: None,
            not_before: Nanos(0),
            has_complained: false,
            events: events.clone(),
        }
    }

    /// Whether the server is being asked, and has not failed.
    pub(super) const fn is_connected(&self) -> bool {
        self.connection.is_some()
    }

    /// The server that is asked.
    pub(super) fn server(&self) -> SocketAddr {
        self.servers[self.at]
    }

    /// Asks the next server, if there are several.
    pub(super) fn ask_next(&mut self) {
        self.at = (self.at + 1) % self.servers.len();
    }

    /// The connection, to wait for.
    pub(super) fn stream(&self) -> Option<&Stream> {
        self.connection.as_ref().map(|connection| &connection.stream)
    }

    /// Asks the server for what `follower` lacks, and passes each tick to `each`: its session, its sequence, its frame, and the sequence that was
    /// expected (0 for any). `has_ticks`: the ring already has ticks of the session that is followed; `is_begun`: or images.
    ///
    /// # Errors
    /// As `each`.
    pub(super) fn turn(
        &mut self,
        now: Nanos,
        follower: &mut Follower,
        (has_ticks, is_begun): (bool, bool),
        each: impl FnMut(BridgeSession, Seq, &[u8], Seq) -> Result<(), Refused>,
    ) -> Result<CatchUpTurn, Refused> {
        if self.connection.is_none() && now < self.not_before {
            return Ok(CatchUpTurn::Going);
        }
        match self.look(now, follower, (has_ticks, is_begun), each) {
            Ok(Looked::Turn(CatchUpTurn::Going)) => Ok(CatchUpTurn::Going),
            Ok(Looked::Turn(turn)) => {
                (self.connection, self.has_complained) = (None, false);
                Ok(turn)
            }
            Ok(Looked::Refused(refused)) => Err(refused),
            Err(Failed(why, hint)) => {
                let (connection, server) = (self.connection.take(), self.server());
                self.ask_next();
                let is_mute = |it: Connection| it.reply.is_none() && it.stream.is_connected();
                let hint = hint.or_else(|| connection.is_some_and(is_mute).then(|| HINT.to_owned()));
                // One after the other, and then a pause.
                self.not_before = now + if self.at == 0 { PAUSE_NS.unsigned_abs() } else { 0 };
                if !std::mem::replace(&mut self.has_complained, true) {
                    let said = format_args!(
                        "upstream {}: cannot catch up from {server}: {why}; {} asked again twice a second",
                        self.name,
                        if self.servers.len() == 1 { "it is" } else { "the others are asked, and it is" }
                    );
                    match hint {
                        // Once: it is of the configuration.
                        Some(hint) => self.events.warning_with(said, hint),
                        None => self.events.peer(now, Kind::Bridge, Severity::Warning, said),
                    }
                }
                Ok(CatchUpTurn::Going)
            }
        }
    }

    fn look(
        &mut self,
        now: Nanos,
        follower: &mut Follower,
        (has_ticks, is_begun): (bool, bool),
        each: impl FnMut(BridgeSession, Seq, &[u8], Seq) -> Result<(), Refused>,
    ) -> Result<Looked, Failed> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            None => {
                let mut stream = TlsToPlant::connect(self.tls.as_ref(), self.servers[self.at], INPUT_BYTES)?;
                let (plant, next) = (follower.plant(), follower.next());
                let epoch = follower.session().map(|session| session.epoch);
                // Images that broke off before their end say nothing of the sequence: others are needed.
                let has_sequence = has_ticks && next > Seq(0);
                let beginning = match (has_sequence, self.whole_epoch && epoch.is_none()) {
                    (true, _) => Beginning::Nowhere,
                    (false, true) => Beginning::Epoch,
                    (false, false) => Beginning::Images,
                };
                let request = CatchUpRequest { plant, epoch, next, beginning };
                stream.output().extend_from_slice(&request.encode());
                self.connection.insert(Connection { stream, heard: now, reply: None, session: None })
            }
        };
        connection.stream.flush()?;
        let mut is_closed = false;
        match connection.stream.receive()? {
            Received::Bytes(_) => connection.heard = now,
            Received::Closed => is_closed = true,
            Received::Nothing | Received::Full => {}
        }
        if connection.reply.is_none()
            && let Some(head) = connection.stream.bytes().first_chunk::<HEAD_BYTES>()
        {
            let reply = CatchUpReply::decode(head)?;
            connection.stream.consume(HEAD_BYTES);
            let is_older = follower.session().is_some_and(|session| reply.session.epoch < session.epoch);
            if is_older && self.passes_over_older && reply.outcome != Outcome::OtherPlant {
                return Err(format!("it knows only the earlier session {}", reply.session).into());
            }
            if let Some(turn) = connection.begin(reply, follower, is_begun)? {
                return Ok(Looked::Turn(turn));
            }
        }
        if let Some(looked) = connection.take(follower, each)? {
            return Ok(looked);
        }
        if is_closed && connection.stream.bytes().len() < INPUT_BYTES && !connection.has_part()? {
            return Err("the connection ended early".into());
        }
        // A plant that stands still, while another one leads, is not waited for.
        let is_first_of_several = connection.reply.is_none() && self.servers.len() > 1;
        let patience_ns = if is_first_of_several { FIRST_PATIENCE_NS } else { PATIENCE_NS };
        if now.since(connection.heard) >= patience_ns {
            return Err(format!("nothing has come for {} s", patience_ns / 1_000_000_000).into());
        }
        Ok(Looked::Turn(CatchUpTurn::Going))
    }
}

impl Connection {
    /// Takes the reply. Returns what it ends with, if nothing follows that this plant can use.
    fn begin(
        &mut self,
        reply: CatchUpReply,
        follower: &Follower,
        is_begun: bool,
    ) -> Result<Option<CatchUpTurn>, Failed> {
        self.reply = Some(reply);
        let followed = follower.session();
        Ok(match reply.outcome {
            Outcome::OtherPlant => Some(CatchUpTurn::OtherPlant(reply.session.plant)),
            Outcome::Busy => {
                return Err("as many plants as may catch up at once are doing so".into());
            }
            Outcome::Gone => Some(CatchUpTurn::Gone { session: reply.session, next: reply.next }),
            // Everything of the session is there, and the ring must not mix two.
            _ if is_begun && followed.is_some_and(|session| session != reply.session) => {
                Some(CatchUpTurn::EpochOver)
            }
            _ => {
                self.session = Some(reply.session);
                None
            }
        })
    }

    /// Whether a whole part has arrived.
    fn has_part(&self) -> Result<bool, Failed> {
        Ok(self.reply.is_some() && part(self.stream.bytes())?.is_some())
    }

    /// Passes on the ticks that have arrived, up to a batch. Returns the end if it was among them.
    fn take(
        &mut self,
        follower: &mut Follower,
        mut each: impl FnMut(BridgeSession, Seq, &[u8], Seq) -> Result<(), Refused>,
    ) -> Result<Option<Looked>, Failed> {
        let (Some(reply), Some(session)) = (self.reply, self.session) else { return Ok(None) };
        let mut used = 0;
        let mut found = None;
        for _ in 0..BATCH {
            let Some((part, length)) = part(&self.stream.bytes()[used..])? else { break };
            used += length;
            match part {
                Part::Tick(frame) => {
                    let tick = Tick::parse(frame)?;
                    let (seq, expected) = (tick.header.seq, follower.next());
                    let is_image = seq.is_outside();
                    if seq < expected && !is_image {
                        return Err(format!("tick {} came where {} was expected", seq.0, expected.0).into());
                    }
                    if let Err(refused) = each(session, seq, frame, expected) {
                        return Ok(Some(Looked::Refused(refused)));
                    }
                    follower.took(session, seq);
                }
                Part::End(next) => {
                    if next < follower.next() {
                        return Err(format!("the end is tick {}, and came behind it", next.0).into());
                    }
                    found = Some(Looked::Turn(match reply.outcome {
                        Outcome::EpochOver => CatchUpTurn::EpochOver,
                        _ => CatchUpTurn::Done { session, next },
                    }));
                    break;
                }
            }
        }
        self.stream.consume(used);
        Ok(found)
    }
}
