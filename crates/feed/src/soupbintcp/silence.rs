//! Heartbeats of an idle connection, and the time-out of a silent one.

use tapeline_nanos::Nanos;

/// Time in ns without output after which an end sends a heartbeat.
pub const HEARTBEAT_NS: u64 = 1_000_000_000;

/// Time in ns without input after which an end considers the other dead.
pub const SILENCE_NS: u64 = 15_000_000_000;

/// Time in ns for which a server waits for the login.
pub const LOGIN_NS: u64 = 30_000_000_000;

/// The times of the last output and the last input of one end.
#[derive(Clone, Copy, Debug)]
pub struct Silence {
    said: Nanos,
    heard: Nanos,
}

impl Silence {
    /// Creates the times of a connection that begins now.
    #[must_use]
    pub const fn new(now: Nanos) -> Self {
        Self { said: now, heard: now }
    }

    /// Records output.
    pub const fn said(&mut self, now: Nanos) {
        self.said = now;
    }

    /// Records input.
    pub const fn heard(&mut self, now: Nanos) {
        self.heard = now;
    }

    /// Returns `true` if a heartbeat is due.
    #[must_use]
    pub fn is_heartbeat_due(&self, now: Nanos) -> bool {
        now >= self.said + HEARTBEAT_NS
    }

    /// Returns `true` if the other end has been silent for too long.
    #[must_use]
    pub fn is_dead(&self, now: Nanos) -> bool {
        now >= self.heard + SILENCE_NS
    }

    /// Returns the earlier time of both.
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        (self.said + HEARTBEAT_NS).min(self.heard + SILENCE_NS)
    }
}
