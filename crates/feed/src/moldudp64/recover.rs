//! Asking for what is missing: a re-request client without sockets or clock.
//!
//! [`Client`] is told what is missing ([`update`](Client::update)), says which request goes to which server and when
//! ([`poll`](Client::poll)), and judges what they answer ([`answer`](Client::answer)). What no server gave is given up,
//! and said once ([`given_up`](Client::given_up)).
//!
//! | situation | what happens |
//! |---|---|
//! | something is missing for [`Settings::delay_ns`] | asked for in pieces of at most [`PIECE`] messages, oldest first |
//! | an answer holds less than was asked for | the rest is asked for at once |
//! | silence for [`Settings::timeout_ns`] | the next server is asked, round robin |
//! | [`Settings::max_tries`] requests in a row brought nothing | given up |
//! | a hole of more than [`Settings::max_hole`] messages | given up at once |
//! | numbers begin again ([`begin_again`](Client::begin_again)) | all is forgotten; what is missing then is asked for when no old answer can come any more |
//! | it came another way | forgotten; an answer that comes later is counted as not wanted |
//! | an answer with nonsense in it | counted by reason and dropped; the server's time goes on running |
//! | more requests than the rate or [`Settings::max_outstanding`] allow | they wait |

use std::mem;
use std::ops::RangeInclusive;

use tapeline_nanos::Nanos;

use super::{Data, Malformed, Packet, Request, Session, parse};
use crate::token_bucket::TokenBucket;

/// The most messages of one request. One packet holds some forty; several pieces of a large hole are asked for at once.
pub const PIECE: u64 = 512;

/// The most pieces that are kept; what is missing beyond them waits until some are settled.
pub const MAX_PIECES: usize = 1_024;

/// How to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many servers there are; they are known by their numbers, from 0.
    pub servers: usize,
    /// How long what is missing is left to the lines before it is asked for, ns: one of them may just be late.
    pub delay_ns: u64,
    /// How long an answer may take, ns.
    pub timeout_ns: u64,
    /// Requests in a row for the same messages that may bring none of them.
    pub max_tries: u32,
    /// The most messages of one hole that are asked for.
    pub max_hole: u64,
    /// Requests that may wait for an answer at the same time.
    pub max_outstanding: usize,
    /// Requests a second in the long run.
    pub requests_per_second: u64,
    /// Requests that may go at once after a silence.
    pub burst: u64,
}

impl Default for Settings {
    /// One server that is asked at once, 1 s as the protocol's page advises, three tries, 20,000 messages, 16 at once, 1,000 a second.
    fn default() -> Self {
        Self {
            servers: 1,
            delay_ns: 0,
            timeout_ns: 1_000_000_000,
            max_tries: 3,
            max_hole: 20_000,
            max_outstanding: 16,
            requests_per_second: 1_000,
            burst: 16,
        }
    }
}

/// A request and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The server's number.
    pub server: usize,
    /// What to send.
    pub request: Request,
}

/// Why an answer was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is no packet.
    #[error("the answer is malformed: {0}")]
    Malformed(#[from] Malformed),
    /// It belongs to another session than the one asked for.
    #[error("the answer is of another session")]
    OtherSession,
    /// It is a heartbeat or an end of session.
    #[error("the answer holds no messages")]
    NoMessages,
    /// Some of its messages are outside every range that is being asked for: never asked for, or here by now.
    #[error("the answer holds messages that nobody waits for")]
    NotWanted,
}

impl Rejected {
    /// Labels of all reasons, in the order of [`index`](Self::index).
    pub const REASONS: [&'static str; 4] = ["malformed", "other-session", "no-messages", "not-wanted"];

    /// A dense number for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::Malformed(_) => 0,
            Self::OtherSession => 1,
            Self::NoMessages => 2,
            Self::NotWanted => 3,
        }
    }
}

/// What a client did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests sent.
    pub requests: u64,
    /// Those of them that no answer came to in time.
    pub timeouts: u64,
    /// Answers taken.
    pub answers: u64,
    /// Messages in them.
    pub messages: u64,
    /// Messages that were given up, in holes of any size.
    pub given_up: u64,
    /// Answers not taken, by [`Rejected::index`].
    pub rejected: [u64; Rejected::REASONS.len()],
}

impl Statistics {
    /// Answers not taken, with the reason's label.
    pub fn rejected_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Rejected::REASONS.into_iter().zip(self.rejected)
    }
}

/// A stretch of missing messages that is asked for as one.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: u64,
    last: u64,
    /// Since when it is known to be missing.
    since: Nanos,
    /// Requests in a row that brought nothing.
    tries: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be asked for.
    Due,
    /// Asked for up to `last`, and from what was the first of the piece then.
    Asked {
        first: u64,
        last: u64,
        server: usize,
        at: Nanos,
    },
    GivenUp {
        said: bool,
    },
}

/// The re-request client of one channel. See [the module](self).
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    session: Option<Session>,
    /// By sequence, apart from one another.
    pieces: Vec<Piece>,
    /// The pieces while they are sorted anew.
    spare: Vec<Piece>,
    bucket: TokenBucket,
    /// The server that is asked next: the one that answered last.
    server: usize,
    /// Until then an answer may come that was asked for before numbers began again.
    hold_until: Nanos,
    statistics: Statistics,
}

impl Client {
    /// A client that misses nothing yet. Takes all of its memory.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        settings.servers = settings.servers.max(1);
        settings.max_tries = settings.max_tries.max(1);
        settings.max_outstanding = settings.max_outstanding.max(1);
        Self {
            settings,
            session: None,
            pieces: Vec::with_capacity(MAX_PIECES),
            spare: Vec::with_capacity(MAX_PIECES),
            bucket: TokenBucket::new(settings.requests_per_second, settings.burst),
            server: 0,
            hold_until: Nanos(0),
            statistics: Statistics::default(),
        }
    }

    /// What is missing of `session` now, in ascending order: new holes are asked for, and what is not among them any
    /// more is forgotten. To be called after every answer and before the next [`poll`](Self::poll). Costs a comparison
    /// for each hole and each piece.
    pub fn update(
        &mut self,
        session: Session,
        missing: impl IntoIterator<Item = RangeInclusive<u64>>,
        now: Nanos,
    ) {
        if self.session != Some(session) {
            self.session = Some(session);
            self.pieces.clear();
        }
        self.spare.clear();
        let mut old = 0;
        for range in missing {
            let (mut from, last) = range.into_inner();
            let size = last.saturating_sub(from).saturating_add(1);
            while from <= last {
                while self.pieces.get(old).is_some_and(|piece| piece.last < from) {
                    old += 1;
                }
                // What is kept of the old pieces has its place first.
                let room = MAX_PIECES.saturating_sub(self.pieces.len() - old);
                let Some(&piece) = self.pieces.get(old).filter(|piece| piece.first <= last) else {
                    self.open(from..=last, size, room, now);
                    break;
                };
                if from < piece.first {
                    self.open(from..=piece.first - 1, size, room, now);
                }
                let (first, end) = (from.max(piece.first), last.min(piece.last));
                self.keep(piece, first, end);
                let Some(next) = end.checked_add(1) else { break };
                from = next;
            }
        }
        mem::swap(&mut self.pieces, &mut self.spare);
    }

    /// The session's numbers begin again: what was asked for or given up was something else under the same numbers. Nothing tells an
    /// old answer from a new one, so while one may still come ([`Settings::timeout_ns`] after the request) nothing is asked for, and
    /// what comes is not wanted.
    pub fn begin_again(&mut self) {
        let asked = self.pieces.iter().filter_map(|piece| match piece.state {
            State::Asked { at, .. } => Some(at + self.settings.timeout_ns),
            State::Due | State::GivenUp { .. } => None,
        });
        self.hold_until = asked.fold(self.hold_until, Nanos::max);
        self.pieces.clear();
    }

    /// The lines will bring nothing more: what is missing now is asked for without [`Settings::delay_ns`].
    pub fn hurry(&mut self) {
        for piece in &mut self.pieces {
            piece.since = Nanos(0);
        }
    }

    /// The next request that is due, or `None` for now. Call it until it gives none.
    pub fn poll(&mut self, now: Nanos) -> Option<Ask> {
        let session = self.session.filter(|_| now >= self.hold_until)?;
        let mut outstanding = 0;
        let mut due = None;
        for at in 0..self.pieces.len() {
            if let State::Asked { at: asked, server, .. } = self.pieces[at].state {
                if now < asked + self.settings.timeout_ns {
                    outstanding += 1;
                    continue;
                }
                self.statistics.timeouts += 1;
                // Once for all requests that were lost with this one.
                if self.server == server {
                    self.server = (server + 1) % self.settings.servers;
                }
                self.pieces[at].state = State::Due;
            }
            if self.pieces[at].state == State::Due {
                if self.pieces[at].tries >= self.settings.max_tries {
                    Self::give_up(self.pieces.get_mut(at), &mut self.statistics);
                } else if now >= self.pieces[at].since + self.settings.delay_ns {
                    due = due.or(Some(at));
                }
            }
        }
        let piece = self.pieces.get_mut(due?)?;
        if outstanding >= self.settings.max_outstanding || !self.bucket.take(1, now) {
            return None;
        }
        let request = Request::for_gap(session, piece.first, piece.last);
        piece.tries += 1;
        let server = self.server;
        piece.state = State::Asked { first: piece.first, last: piece.last, server, at: now };
        self.statistics.requests += 1;
        Some(Ask { server, request })
    }

    /// When [`poll`](Self::poll) has to be called again unless something else happens; `None` when nothing is missing.
    #[must_use]
    pub fn next_due(&self, now: Nanos) -> Option<Nanos> {
        let is_asked = |piece: &&Piece| matches!(piece.state, State::Asked { .. });
        // What has no room beside the requests that wait for an answer is asked for when one of them is over.
        let is_full = self.pieces.iter().filter(is_asked).count() >= self.settings.max_outstanding;
        let due = self.pieces.iter().filter_map(|piece| match piece.state {
            State::Due if is_full => None,
            State::Due => Some(self.bucket.ready_at(1, now).max(piece.since + self.settings.delay_ns)),
            State::Asked { at, .. } => Some(at + self.settings.timeout_ns),
            State::GivenUp { .. } => None,
        });
        due.min().map(|due| due.max(self.hold_until))
    }

    /// Judges a datagram that `server` sent. What it gives has been asked for and is well-formed.
    ///
    /// # Errors
    /// [`Rejected`], counted; nothing else has changed.
    pub fn answer<'d>(&mut self, server: usize, datagram: &'d [u8]) -> Result<Data<'d>, Rejected> {
        let judged = self.judge(datagram);
        match judged {
            Ok((data, at)) => {
                // Tries are counted until something is no longer missing: an answer that never helps is one that
                // never came.
                self.pieces[at].state = State::Due;
                self.server = server % self.settings.servers;
                self.statistics.answers += 1;
                self.statistics.messages += u64::from(data.count());
                Ok(data)
            }
            Err(rejected) => {
                self.statistics.rejected[rejected.index()] += 1;
                Err(rejected)
            }
        }
    }

    /// The oldest stretch that will not be filled and has not been said yet: the caller declares it lost. Call it until
    /// it gives none.
    pub fn given_up(&mut self) -> Option<RangeInclusive<u64>> {
        let unsaid = |piece: &&mut Piece| piece.state == State::GivenUp { said: false };
        let mut unsaid = self.pieces.iter_mut().filter(unsaid);
        let piece = unsaid.next()?;
        piece.state = State::GivenUp { said: true };
        let (first, mut last) = (piece.first, piece.last);
        // Pieces of one hole are one hole again.
        for piece in unsaid {
            if Some(piece.first) != last.checked_add(1) {
                break;
            }
            piece.state = State::GivenUp { said: true };
            last = piece.last;
        }
        Some(first..=last)
    }

    /// Whether something is being asked for.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.pieces.iter().any(|piece| !matches!(piece.state, State::GivenUp { .. }))
    }

    /// What the client did.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    fn judge<'d>(&self, datagram: &'d [u8]) -> Result<(Data<'d>, usize), Rejected> {
        let packet = parse(datagram)?;
        if self.session != Some(packet.session()) {
            return Err(Rejected::OtherSession);
        }
        let Packet::Data(data) = packet else { return Err(Rejected::NoMessages) };
        let asked = |piece: &Piece| match piece.state {
            State::Asked { first, last, .. } => first <= data.sequence() && data.end() - 1 <= last,
            State::Due | State::GivenUp { .. } => false,
        };
        let at = self.pieces.iter().position(asked).ok_or(Rejected::NotWanted)?;
        Ok((data, at))
    }

    /// A part of a piece that is still missing. Parts of one piece stay one: what lies between them is asked for again
    /// rather than asked for apart.
    fn keep(&mut self, piece: Piece, first: u64, last: u64) {
        if let Some(before) = self.spare.last_mut()
            && before.first >= piece.first
        {
            before.last = last;
            return;
        }
        // What was in front of it has come.
        let tries = if first > piece.first { 0 } else { piece.tries };
        self.spare.push(Piece { first, last, tries, ..piece });
    }

    /// New messages that are missing, of a hole of `size` messages; there may be `room` pieces.
    fn open(&mut self, missing: RangeInclusive<u64>, size: u64, room: usize, now: Nanos) {
        let too_large = size > self.settings.max_hole;
        let (mut from, last) = missing.into_inner();
        while from <= last && self.spare.len() < room {
            let to = if too_large { last } else { last.min(from.saturating_add(PIECE - 1)) };
            self.spare.push(Piece { first: from, last: to, since: now, tries: 0, state: State::Due });
            if too_large {
                Self::give_up(self.spare.last_mut(), &mut self.statistics);
            }
            let Some(next) = to.checked_add(1) else { break };
            from = next;
        }
    }

    fn give_up(piece: Option<&mut Piece>, statistics: &mut Statistics) {
        if let Some(piece) = piece {
            piece.state = State::GivenUp { said: false };
            statistics.given_up = statistics.given_up.saturating_add(piece.last - piece.first + 1);
        }
    }
}
