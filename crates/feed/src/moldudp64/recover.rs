//! Requests for retransmission: a client without sockets or clock.
//!
//! [`RetransmissionClient`] takes the missing ranges ([`update`](RetransmissionClient::update)), decides which request goes to which server and when
//! ([`poll`](RetransmissionClient::poll)), and checks the answers ([`answer`](RetransmissionClient::answer)). Messages that no server delivers are given up,
//! and reported once ([`given_up`](RetransmissionClient::given_up)).
//!
//! | situation | action |
//! |---|---|
//! | messages are missing for [`ClientSettings::delay_ns`] | requested in pieces of at most [`PIECE`] messages, oldest first |
//! | every line has [passed](RetransmissionClient::passed) them, for [`ClientSettings::overtaking_ns`] | the same, if that is sooner |
//! | an answer is shorter than the request | the rest is requested at once |
//! | silence for [`ClientSettings::timeout_ns`] | the next server is asked, round robin |
//! | [`ClientSettings::max_tries`] requests in a row without a result | given up |
//! | a hole of more than [`ClientSettings::max_hole`] messages | given up at once |
//! | sequence reset ([`begin_again`](RetransmissionClient::begin_again)) | all ranges are dropped; new ones are requested when no old answer can arrive any more |
//! | messages arrived another way | dropped; a later answer is counted as not wanted |
//! | a malformed answer | counted by reason and dropped; the server's time-out continues |
//! | more requests than the rate or [`ClientSettings::max_outstanding`] allow | they wait |

use std::mem;
use std::ops::RangeInclusive;

use tapeline_nanos::Nanos;

use super::{Data, MoldPacket, MoldSession, Request, parse};
use crate::framing::MalformedDatagram;
use crate::token_bucket::TokenBucket;

/// The maximum number of messages of one request. One packet holds some forty; several pieces of a large hole are requested at once.
pub const PIECE: u64 = 512;

/// The maximum number of stored pieces; further missing ranges wait until some are settled.
pub const MAX_PIECES: usize = 1_024;

/// The settings of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Number of servers; their numbers start at 0.
    pub servers: usize,
    /// Time in ns for which missing messages are left to the lines before they are requested: one line may just be late.
    pub delay_ns: u64,
    /// Time in ns for which missing messages are left to the lines once every line has passed them: datagrams may overtake each other.
    /// Not more than `delay_ns` in all.
    pub overtaking_ns: u64,
    /// Time-out of an answer, in ns.
    pub timeout_ns: u64,
    /// Maximum number of requests in a row for the same messages without a result.
    pub max_tries: u32,
    /// Maximum number of messages of one hole that are requested.
    pub max_hole: u64,
    /// Maximum number of outstanding requests.
    pub max_outstanding: usize,
    /// Long-term rate of requests per second.
    pub requests_per_second: u64,
    /// Number of requests that may be sent at once after a silence.
    pub burst: u64,
}

impl Default for ClientSettings {
    /// One server that is asked at once, 0.25 ms for datagrams that overtake each other, 1 s as the protocol's specification advises, three tries,
    /// 20,000 messages, 16 requests at once, 1,000 a second.
    fn default() -> Self {
        Self {
            servers: 1,
            delay_ns: 0,
            overtaking_ns: 250_000,
            timeout_ns: 1_000_000_000,
            max_tries: 3,
            max_hole: 20_000,
            max_outstanding: 16,
            requests_per_second: 1_000,
            burst: 16,
        }
    }
}

/// A request and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The server's number.
    pub server: usize,
    /// The request to send.
    pub request: Request,
}

/// The reason why an answer was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// The answer is not a packet.
    #[error("the answer is malformed: {0}")]
    Malformed(#[from] MalformedDatagram),
    /// The answer belongs to another session than the request.
    #[error("the answer is of another session")]
    OtherSession,
    /// The answer is a heartbeat or an end of session.
    #[error("the answer holds no messages")]
    NoMessages,
    /// Some messages are outside every requested range: never requested, or already received.
    #[error("the answer holds messages that nobody waits for")]
    NotWanted,
}

impl Rejected {
    /// The labels of all reasons, in the order of [`index`](Self::index).
    pub const REASONS: [&'static str; 4] = ["malformed", "other-session", "no-messages", "not-wanted"];

    /// Returns a dense number for an array of counters.
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

/// The statistics of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStatistics {
    /// Requests sent.
    pub requests: u64,
    /// Requests without an answer in time.
    pub timeouts: u64,
    /// Accepted answers.
    pub answers: u64,
    /// Messages in accepted answers.
    pub messages: u64,
    /// Messages that were given up, in holes of any size.
    pub given_up: u64,
    /// Answers not accepted, by [`Rejected::index`].
    pub rejected: [u64; Rejected::REASONS.len()],
}

impl ClientStatistics {
    /// Returns the counts of answers not accepted, with the reasons' labels.
    pub fn rejected_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Rejected::REASONS.into_iter().zip(self.rejected)
    }
}

/// A range of missing messages that is requested as one.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: u64,
    last: u64,
    /// Time since which the messages are known to be missing.
    since: Nanos,
    /// Time since which every line has passed them.
    passed: Option<Nanos>,
    /// Number of requests in a row without a result.
    tries: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be requested.
    Due,
    /// Requested up to `last`, from the first sequence of the piece at that time.
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

/// The retransmission client of one channel. See [the module](self).
#[derive(Debug)]
pub struct RetransmissionClient {
    settings: ClientSettings,
    session: Option<MoldSession>,
    /// Ascending and separate.
    pieces: Vec<Piece>,
    /// The pieces of the next update while it is built.
    spare: Vec<Piece>,
    bucket: TokenBucket,
    /// The next server to ask: the one that answered last.
    server: usize,
    /// Time until which an answer to a request from before a sequence reset may arrive.
    hold_until: Nanos,
    statistics: ClientStatistics,
}

impl RetransmissionClient {
    /// Creates a client without missing messages. Allocates all its memory.
    #[must_use]
    pub fn new(mut settings: ClientSettings) -> Self {
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
            statistics: ClientStatistics::default(),
        }
    }

    /// Sets the ranges that are missing in `session` now, in ascending order: new ones are requested, and ranges not among them are
    /// dropped. Call it after every answer and before the next [`poll`](Self::poll). Costs a comparison
    /// for each hole and each piece.
    pub fn update(
        &mut self,
        session: MoldSession,
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
                // Remaining old pieces have precedence.
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

    /// Handles a sequence reset: earlier requests were for other messages with the same sequences. An old answer looks like a new one, so while
    /// one may still arrive ([`ClientSettings::timeout_ns`] after the request) nothing is requested, and answers are not
    /// accepted.
    pub fn begin_again(&mut self) {
        let asked = self.pieces.iter().filter_map(|piece| match piece.state {
            State::Asked { at, .. } => Some(at + self.settings.timeout_ns),
            State::Due | State::GivenUp { .. } => None,
        });
        self.hold_until = asked.fold(self.hold_until, Nanos::max);
        self.pieces.clear();
    }

    /// Records that every line has gone on to `sequence`: missing messages before it are lost, unless later datagrams have overtaken them.
    pub fn passed(&mut self, sequence: u64, now: Nanos) {
        for piece in self.pieces.iter_mut().take_while(|piece| piece.last < sequence) {
            piece.passed = piece.passed.or(Some(now));
        }
    }

    /// Returns the time from which a piece may be requested.
    fn due_at(&self, piece: &Piece) -> Nanos {
        let due = piece.since + self.settings.delay_ns;
        piece.passed.map_or(due, |passed| due.min(passed + self.settings.overtaking_ns))
    }

    /// Requests the messages that are missing now without [`ClientSettings::delay_ns`], because the lines deliver nothing more.
    pub fn hurry(&mut self) {
        for piece in &mut self.pieces {
            piece.since = Nanos(0);
        }
    }

    /// Returns the next request that is due. Call it until it returns `None`.
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
                } else if now >= self.due_at(&self.pieces[at]) {
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

    /// Returns the time of the next call of [`poll`](Self::poll) unless something else happens; `None` if nothing is missing.
    #[must_use]
    pub fn next_due(&self, now: Nanos) -> Option<Nanos> {
        let is_asked = |piece: &&Piece| matches!(piece.state, State::Asked { .. });
        // A request beyond the limit of outstanding ones waits for one of them to end.
        let is_full = self.pieces.iter().filter(is_asked).count() >= self.settings.max_outstanding;
        let due = self.pieces.iter().filter_map(|piece| match piece.state {
            State::Due if is_full => None,
            State::Due => Some(self.bucket.ready_at(1, now).max(self.due_at(piece))),
            State::Asked { at, .. } => Some(at + self.settings.timeout_ns),
            State::GivenUp { .. } => None,
        });
        due.min().map(|due| due.max(self.hold_until))
    }

    /// Checks a datagram from `server`. The returned data was requested and is well-formed.
    ///
    /// # Errors
    /// [`Rejected`], counted; nothing else has changed.
    pub fn answer<'d>(&mut self, server: usize, datagram: &'d [u8]) -> Result<Data<'d>, Rejected> {
        let judged = self.judge(datagram);
        match judged {
            Ok((data, at)) => {
                // The number of tries is reset only when some messages are no longer missing: an answer that does not help counts as no answer.
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

    /// Returns the oldest range that was given up and not reported yet: the caller declares it lost. Call it until
    /// it returns `None`.
    pub fn given_up(&mut self) -> Option<RangeInclusive<u64>> {
        let unsaid = |piece: &&mut Piece| piece.state == State::GivenUp { said: false };
        let mut unsaid = self.pieces.iter_mut().filter(unsaid);
        let piece = unsaid.next()?;
        piece.state = State::GivenUp { said: true };
        let (first, mut last) = (piece.first, piece.last);
        // Merges pieces of one hole.
        for piece in unsaid {
            if Some(piece.first) != last.checked_add(1) {
                break;
            }
            piece.state = State::GivenUp { said: true };
            last = piece.last;
        }
        Some(first..=last)
    }

    /// Returns `true` if requests are in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.pieces.iter().any(|piece| !matches!(piece.state, State::GivenUp { .. }))
    }

    /// Returns the statistics.
    #[must_use]
    pub const fn statistics(&self) -> &ClientStatistics {
        &self.statistics
    }

    fn judge<'d>(&self, datagram: &'d [u8]) -> Result<(Data<'d>, usize), Rejected> {
        let packet = parse(datagram)?;
        if self.session != Some(packet.session()) {
            return Err(Rejected::OtherSession);
        }
        let MoldPacket::Data(data) = packet else { return Err(Rejected::NoMessages) };
        let asked = |piece: &Piece| match piece.state {
            State::Asked { first, last, .. } => first <= data.sequence() && data.end() - 1 <= last,
            State::Due | State::GivenUp { .. } => false,
        };
        let at = self.pieces.iter().position(asked).ok_or(Rejected::NotWanted)?;
        Ok((data, at))
    }

    /// Keeps the part of a piece that is still missing. Parts of one piece stay one piece: messages between them are requested again with them.
    fn keep(&mut self, piece: Piece, first: u64, last: u64) {
        if let Some(before) = self.spare.last_mut()
            && before.first >= piece.first
        {
            before.last = last;
            return;
        }
        // The messages before it have arrived.
        let tries = if first > piece.first { 0 } else { piece.tries };
        self.spare.push(Piece { first, last, tries, ..piece });
    }

    /// Adds new missing messages, of a hole of `size` messages; there may be `room` pieces.
    fn open(&mut self, missing: RangeInclusive<u64>, size: u64, room: usize, now: Nanos) {
        let too_large = size > self.settings.max_hole;
        let (mut from, last) = missing.into_inner();
        while from <= last && self.spare.len() < room {
            let to = if too_large { last } else { last.min(from.saturating_add(PIECE - 1)) };
            self.spare.push(Piece {
                first: from,
                last: to,
                since: now,
                passed: None,
                tries: 0,
                state: State::Due,
            });
            if too_large {
                Self::give_up(self.spare.last_mut(), &mut self.statistics);
            }
            let Some(next) = to.checked_add(1) else { break };
            from = next;
        }
    }

    fn give_up(piece: Option<&mut Piece>, statistics: &mut ClientStatistics) {
        if let Some(piece) = piece {
            piece.state = State::GivenUp { said: false };
            statistics.given_up = statistics.given_up.saturating_add(piece.last - piece.first + 1);
        }
    }
}
