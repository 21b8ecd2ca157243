//! Answering requests for messages: a retransmission server without sockets or clock.
//!
//! The answer to a request of 20 bytes is one packet with as many of the messages as fit; the requester sends another request for more. Because
//! anyone can forge the sender's address of a request, the bytes per second are limited for each address and in total. Requests beyond the limits
//! get no answer, nor do requests that cannot be answered: the protocol has no refusal.

use std::net::Ipv4Addr;

use foldhash::quality::RandomState;
use hashbrown::HashMap;
use tapeline_nanos::Nanos;

use super::{DEFAULT_PACKET_BYTES, HEADER_BYTES, MAX_MESSAGES, PacketBuilder, Request};
use crate::history::History;
use crate::reasons::reasons;
use crate::token_bucket::TokenBucket;

/// The maximum size of a datagram of UDP over IPv4 in bytes, and so of an answer.
pub const LONGEST_ANSWER: usize = 65_507;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Maximum bytes of a packet. A longer message gets its own packet.
    pub packet_bytes: usize,
    /// Long-term bytes per second for one address.
    pub requester_bytes_per_second: u64,
    /// Bytes per second for all addresses together.
    pub bytes_per_second: u64,
    /// Maximum number of separate addresses; requests of others get no answer until one of them has been silent.
    pub max_requesters: usize,
}

impl Default for ServerSettings {
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

reasons! {
    /// Returns a stable label for reports and counters.
    reason

    /// The reason why a request was not answered.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Unanswered: 6 {
        /// The datagram is shorter than a request.
        Malformed = "malformed",
        /// The session is unknown.
        OtherSession = "other-session",
        /// The request is for sequence 0, for no message, or for more than a request can name.
        Absurd = "absurd",
        /// The first message is older than the history, or newer, or was never received.
        NotHere = "not-here",
        /// The address has used its share for now.
        TooMuch = "too-much",
        /// The total limit is used up for now, or there are too many addresses.
        Busy = "busy",
    }
}

/// The statistics of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerStatistics {
    /// Datagrams received.
    pub requests: u64,
    /// Packets sent.
    pub answers: u64,
    /// Messages in those packets.
    pub messages: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Requests without an answer, by [`Unanswered::index`].
    pub unanswered: [u64; Unanswered::ALL.len()],
}

impl ServerStatistics {
    /// Returns the counts of requests without an answer, with the reasons' labels.
    pub fn unanswered_by_reason(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Unanswered::ALL.iter().map(|reason| (reason.reason(), self.unanswered[reason.index()]))
    }
}

/// The server of one channel's [`History`]. See [the module](self).
#[derive(Debug)]
pub struct RetransmissionServer {
    settings: ServerSettings,
    requesters: HashMap<Ipv4Addr, TokenBucket, RandomState>,
    all: TokenBucket,
    /// Time of the last removal of silent requesters, which limits it during a flood of requests.
    swept: Option<Nanos>,
    statistics: ServerStatistics,
}

/// A bucket holds the tokens of a quarter of a second: more than the answers of one round trip.
const SAVED_UP: u64 = 4;

impl RetransmissionServer {
    /// Creates a server without requests.
    #[must_use]
    pub fn new(mut settings: ServerSettings) -> Self {
        settings.packet_bytes = settings.packet_bytes.clamp(HEADER_BYTES + 2, LONGEST_ANSWER);
        let all = bucket(settings.bytes_per_second);
        let requesters = HashMap::with_capacity_and_hasher(settings.max_requesters, RandomState::default());
        Self { settings, requesters, all, swept: None, statistics: ServerStatistics::default() }
    }

    /// Answers a datagram of `requester` at the front of `buffer`, which should have [`LONGEST_ANSWER`] bytes.
    ///
    /// # Errors
    /// The reason why there is no answer, counted.
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

    /// Returns the statistics.
    #[must_use]
    pub const fn statistics(&self) -> &ServerStatistics {
        &self.statistics
    }

    /// Packs the requested messages; returns the number of bytes and messages.
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

    /// Checks the limits for an answer of `bytes` bytes to `requester`.
    fn admit(&mut self, requester: Ipv4Addr, bytes: usize, now: Nanos) -> Result<(), Unanswered> {
        let full = self.requesters.len() >= self.settings.max_requesters;
        if full && !self.requesters.contains_key(&requester) && !self.sweep(now) {
            return Err(Unanswered::Busy);
        }
        let rate = self.settings.requester_bytes_per_second;
        let share = self.requesters.entry(requester).or_insert_with(|| bucket(rate));
        let bytes = bytes as u64;
        // In this order a refused request takes no tokens, and an excessive requester takes none of the total.
        if !share.has(bytes, now) {
            return Err(Unanswered::TooMuch);
        }
        if !self.all.take(bytes, now) {
            return Err(Unanswered::Busy);
        }
        share.take(bytes, now);
        Ok(())
    }

    /// Drops addresses with a full bucket, at most once a second. Returns `true` if there is capacity now.
    fn sweep(&mut self, now: Nanos) -> bool {
        if self.swept.is_some_and(|swept| now < swept + 1_000_000_000) {
            return false;
        }
        self.swept = Some(now);
        self.requesters.retain(|_, share| !share.is_full(now));
        self.requesters.len() < self.settings.max_requesters
    }
}

/// Returns a bucket that is large enough for any single answer.
fn bucket(bytes_per_second: u64) -> TokenBucket {
    TokenBucket::new(bytes_per_second, (bytes_per_second / SAVED_UP).max(LONGEST_ANSWER as u64))
}
