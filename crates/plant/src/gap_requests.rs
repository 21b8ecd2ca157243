//! What a channel lacks, as requests to the feed's servers.

use tapeline_feed::line;
use tapeline_feed::moldudp64::recover::{ClientSettings, ClientStatistics, RetransmissionClient};
use tapeline_measure::Nanos;

use crate::Channel;

/// The requests for the missing messages of one [`Channel`]. The owner sends what [`RetransmissionClient::poll`] returns, gives answers to
/// [`RetransmissionClient::answer`] and then to the channel, and tells the channel what is [given up](RetransmissionClient::given_up).
#[derive(Debug)]
pub struct GapRequests {
    client: RetransmissionClient,
    /// The number of sequence resets of the feed that the client knows of.
    restarts: u64,
}

/// What [`GapRequests::look`] has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing is missing, and no answer is pending.
    Whole,
    /// Messages are missing, or an answer is pending.
    Missing,
    /// As [`Missing`](Self::Missing), and the sequence has been reset: messages that are still to come from a server were requested by their
    /// old numbers.
    Reset,
}

impl GapRequests {
    /// Creates the requests of a channel that lacks nothing yet.
    #[must_use]
    pub fn new(settings: ClientSettings) -> Self {
        Self { client: RetransmissionClient::new(settings), restarts: 0 }
    }

    /// Returns the rules of requests and answers.
    pub fn client(&mut self) -> &mut RetransmissionClient {
        &mut self.client
    }

    /// Returns `true` while an answer is pending.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.client.is_busy()
    }

    /// Returns the counters of requests and answers.
    #[must_use]
    pub fn statistics(&self) -> &ClientStatistics {
        self.client.statistics()
    }

    /// Looks at the channel's arbiter, and drops all requests at a sequence reset. While nothing is missing, that is all a turn costs.
    pub fn look(&mut self, channel: &Channel) -> Look {
        let restarts = channel.arbiter().statistics().restarts;
        let is_reset = std::mem::replace(&mut self.restarts, restarts) != restarts;
        if is_reset {
            self.client.begin_again();
        }
        match channel.arbiter().missing().next().is_none() && !self.client.is_busy() {
            true => Look::Whole,
            false if is_reset => Look::Reset,
            false => Look::Missing,
        }
    }

    /// Compares the requests with what the channel lacks now. Call it behind the answers that have arrived.
    pub fn update(&mut self, channel: &Channel, now: Nanos) {
        let Some(line::Session::MoldUdp64(session)) = channel.arbiter().session() else { return };
        self.client.update(session, channel.arbiter().wanted(), now);
        self.client.passed(channel.arbiter().passed_by_all(), now);
        if channel.arbiter().is_left_to_recovery() {
            self.client.hurry();
        }
    }
}
