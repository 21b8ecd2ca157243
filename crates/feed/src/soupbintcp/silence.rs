//! Heartbeats when there is nothing to say, and the end when nothing is heard.

use tapeline_nanos::Nanos;

/// How long an end says nothing before it sends a heartbeat, ns.
pub const HEARTBEAT_NS: u64 = 1_000_000_000;

/// How long an end hears nothing before it takes the other for dead, ns.
pub const SILENCE_NS: u64 = 15_000_000_000;

/// How long a server waits for the login, ns.
pub const LOGIN_NS: u64 = 30_000_000_000;

/// When one end last said and last heard something.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    said: Nanos,
    heard: Nanos,
}

impl Silence {
    /// A connection that begins now.
    #[must_use]
    pub const fn new(now: Nanos) -> Self {
        Self { said: now, heard: now }
    }

    /// Something was sent.
    pub const fn said(&mut self, now: Nanos) {
        self.said = now;
    }

    /// Something was received.
    pub const fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// Whether it is time for a heartbeat.
    #[must_use]
    pub fn is_heartbeat_due(&self, now: Nanos) -> bool {
        now >= self.said + HEARTBEAT_NS
    }

    /// Whether the other end has been silent for too long.
    #[must_use]
    pub fn is_dead(&self, now: Nanos) -> bool {
        now >= self.heard + SILENCE_NS
    }

    /// When one of the two will be next.
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        (self.said + HEARTBEAT_NS).min(self.heard + SILENCE_NS)
    }
}
