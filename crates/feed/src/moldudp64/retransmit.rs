//! Answering requests for messages: a retransmission server without sockets or clock.
//!
//! A request of 20 bytes is answered by one packet of as many of the messages as fit; whoever wants more asks again. Since
//! anybody can put somebody else's address on a request, each address is sent so many bytes a second at most, and all
//! together so many: what is above that is not answered. Nor is what cannot be answered: there is no refusal in the protocol.

use std::net::Ipv4Addr;

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use tapeline_nanos::Nanos;

use super::{DEFAULT_PACKET_BYTES, HEADER_BYTES, MAX_MESSAGES, PacketBuilder, Request};
use crate::history::History;
use crate::token_bucket::TokenBucket;

/// The longest datagram of UDP over IPv4, and so the most that an answer can take.
pub const LONGEST_ANSWER: usize = 65_507;

/// What a server gives, and to how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a packet. A message that is longer alone gets a packet of its own.
    pub packet_bytes: usize,
    /// Bytes a second for one address in the long run.
    pub requester_bytes_per_second: u64,
    /// Bytes a second for all.
    pub bytes_per_second: u64,
    /// Addresses that are told apart; requests of others wait until one of them has been silent.
    pub max_requesters: usize,
}

impl Default for Settings {
    /// Packets of 1,400 bytes; 4 MB/s for each of 1,024 addresses, 40 MB/s for all: a gap of 10,000 messages in a tenth
    /// of a second.
    fn default() -> Self {
        Self {
            packet_bytes: DEFAULT_PACKET_BYTES,
            requester_bytes_per_second: 4_000_000,
            bytes_per_second: 40_000_000,
            max_requesters: 1_024,
        }
    }
}

/// Why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Unanswered {
    /// Shorter than a request.
    Malformed,
    /// Of a session that is not here.
    OtherSession,
    /// For sequence 0, for no message, or for more than a request can name.
    Absurd,
    /// The first message is older than what is kept, or newer, or was never received.
    NotHere,
    /// The address has had its share for now.
    TooMuch,
    /// All together have had their share for now, or there are too many addresses.
    Busy,
}

impl Unanswered {
    /// Every reason, in the order of [`index`](Self::index).
    pub const ALL: [Self; 6] =
        [Self::Malformed, Self::OtherSession, Self::Absurd, Self::NotHere, Self::TooMuch, Self::Busy];

    /// A dense number for an array of counters.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A stable label for reports and counters.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::OtherSession => "other-session",
            Self::Absurd => "absurd",
            Self::NotHere => "not-here",
            Self::TooMuch => "too-much",
            Self::Busy => "busy",
        }
    }
}

/// What a server did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Datagrams that came.
    pub requests: u64,
    /// Packets that went out.
    pub answers: u64,
    /// Messages in them.
    pub messages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests without an answer, by [`Unanswered::index`].
    pub unanswered: [u64; Unanswered::ALL.len()],
}

impl Statistics {
    /// Requests without an answer, with the reason's label.
    pub fn unanswered_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Unanswered::ALL.iter().map(|reason| (reason.reason(), self.unanswered[reason.index()]))
    }
}

/// The server of one channel's [`History`]. See [the module](self).
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    requesters: HashMap<Ipv4Addr, TokenBucket, RandomState>,
    all: TokenBucket,
    /// When requesters were last looked through for silent ones: not for each request of a flood.
    swept: Option<Nanos>,
    statistics: Statistics,
}

/// A bucket holds what it gets in a quarter of a second: more than a round trip's worth of answers.
const SAVED_UP: u64 = 4;

impl Server {
    /// A server that nobody has asked yet.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        settings.packet_bytes = settings.packet_bytes.clamp(HEADER_BYTES + 2, LONGEST_ANSWER);
        let all = bucket(settings.bytes_per_second);
        let requesters = HashMap::with_capacity_and_hasher(settings.max_requesters, RandomState::default());
        Self { settings, requesters, all, swept: None, statistics: Statistics::default() }
    }

    /// Answers a datagram of `requester`, written to the front of `buffer`, which should have [`LONGEST_ANSWER`] bytes.
    ///
    /// # Errors
    /// Why there is none, counted.
    pub fn answer<'b>(
        &mut self,
        requester: Ipv4Addr,
        datagram: &[u8],
        history: &History,
        now: Nanos,
        buffer: &'b mut [u8],
    ) -> Result<&'b [u8], Unanswered> {
        self.statistics.requests += 1;
        let packed = self.pack(datagram, history, buffer);
        match packed.and_then(|packed| self.admit(requester, packed.0, now).map(|()| packed)) {
            Ok((length, messages)) => {
                self.statistics.answers += 1;
                self.statistics.messages += u64::from(messages);
                self.statistics.bytes += length as u64;
                Ok(&buffer[..length])
            }
            Err(unanswered) => {
                self.statistics.unanswered[unanswered.index()] += 1;
                Err(unanswered)
            }
        }
    }

    /// What the server did.
    #[must_use]
    pub const fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Packs what is asked for: bytes and messages.
    fn pack(
        &self,
        datagram: &[u8],
        history: &History,
        buffer: &mut [u8],
    ) -> Result<(usize, u16), Unanswered> {
        let Ok(request) = Request::decode(datagram) else { return Err(Unanswered::Malformed) };
        if history.session() != Some(request.session.into()) {
            return Err(Unanswered::OtherSession);
        }
        if !request.is_answerable() {
            return Err(Unanswered::Absurd);
        }
        let mut run = history.run(request.sequence).take(usize::from(request.count.min(MAX_MESSAGES)));
        let Some((_, first)) = run.next() else { return Err(Unanswered::NotHere) };
        let limit = self.settings.packet_bytes.max(HEADER_BYTES + 2 + first.len());
        let begun = PacketBuilder::with_limit(buffer, request.session, request.sequence, limit);
        let Ok(mut packet) = begun else { return Err(Unanswered::NotHere) };
        if packet.push(first).is_err() {
            return Err(Unanswered::NotHere);
        }
        for (_, message) in run {
            if packet.push(message).is_err() {
                break;
            }
        }
        let messages = packet.count();
        Ok((packet.finish(), messages))
    }

    /// Whether `requester` may have so many bytes.
    fn admit(&mut self, requester: Ipv4Addr, bytes: usize, now: Nanos) -> Result<(), Unanswered> {
        let full = self.requesters.len() >= self.settings.max_requesters;
        if full && !self.requesters.contains_key(&requester) && !self.sweep(now) {
            return Err(Unanswered::Busy);
        }
        let rate = self.settings.requester_bytes_per_second;
        let share = self.requesters.entry(requester).or_insert_with(|| bucket(rate));
        let bytes = bytes as u64;
        // In this order nobody pays for what is refused, least of all everybody for one who asks too much.
        if !share.has(bytes, now) {
            return Err(Unanswered::TooMuch);
        }
        if !self.all.take(bytes, now) {
            return Err(Unanswered::Busy);
        }
        share.take(bytes, now);
        Ok(())
    }

    /// Forgets addresses that have their whole share again, at most once a second; whether there is room now.
    fn sweep(&mut self, now: Nanos) -> bool {
        if self.swept.is_some_and(|swept| now < swept + 1_000_000_000) {
            return false;
        }
        self.swept = Some(now);
        self.requesters.retain(|_, share| !share.is_full(now));
        self.requesters.len() < self.settings.max_requesters
    }
}

/// A share that gives any answer at least now and then.
fn bucket(bytes_per_second: u64) -> TokenBucket {
    TokenBucket::new(bytes_per_second, (bytes_per_second / SAVED_UP).max(LONGEST_ANSWER as u64))
}
