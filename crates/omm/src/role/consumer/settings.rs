//! How patient a consumer is, and how much it takes on.

use std::time::Duration;

use crate::domain::directory::filter;

/// How long to wait before each attempt: so long at first, then twice as long each time, up to a most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Before the second attempt.
    pub first: Duration,
    /// Before any.
    pub most: Duration,
}

impl Backoff {
    /// Before the attempt that follows so many failures.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// What a consumer waits for and how long, and its limits. The defaults are those of the vendor's library, where it has the
/// setting; its name is said then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Between connections: `reconnectMinDelay` 1 s, `reconnectMaxDelay` 5 s.
    pub reconnect: Backoff,
    /// Connections to be tried one after the other without one that is logged in; without end if there is none:
    /// `reconnectAttemptLimit`.
    pub reconnect_attempts: Option<u32>,
    /// Until a login must be accepted: `loginRequestTimeOut` 45 s.
    pub login_timeout: Duration,
    /// Until the directory must be complete: `directoryRequestTimeOut` 45 s.
    pub directory_timeout: Duration,
    /// Until the dictionaries must be complete: `dictionaryRequestTimeOut` 45 s.
    pub dictionary_timeout: Duration,
    /// Until a request must be answered, before it is closed and sent again: `requestTimeout` 15 s.
    pub request_timeout: Duration,
    /// Before a login that was closed to recover is tried again on the same connection: 1 s.
    pub login_again: Duration,
    /// Before an item that was closed to recover is asked for again: 100 ms, at most 10 s. See the
    /// [module](super::super::consumer).
    pub recover: Backoff,
    /// Until a post must be acknowledged: `postAckTimeout` 15 s.
    pub post_timeout: Duration,
    /// Posts that wait to be acknowledged at most: `maxOutstandingPosts` 100,000.
    pub most_posts: usize,
    /// Items that are open at most.
    pub most_items: usize,
    /// Whether the dictionaries are asked for, and items only after them; otherwise the application has its own.
    pub downloads_dictionary: bool,
    /// What is wanted of the directory: all six filters.
    pub directory_filter: u32,
    /// Whether no more requests are left unanswered than a service wishes: `obeyOpenWindow`. A window of 0 is obeyed in any
    /// case.
    pub obeys_open_window: bool,
    /// Items in one batch request at most.
    pub most_in_batch: usize,
    /// The part of a token's life after which it is to be renewed, hundredths: `tokenReissueRatio` 0.8.
    pub token_percent: u8,
}

impl Default for Settings {
    fn default() -> Self {
        let (quarter_minute, three) = (Duration::from_secs(15), Duration::from_secs(45));
        Self {
            reconnect: Backoff { first: Duration::from_secs(1), most: Duration::from_secs(5) },
            reconnect_attempts: None,
            login_timeout: three,
            directory_timeout: three,
            dictionary_timeout: three,
            request_timeout: quarter_minute,
            login_again: Duration::from_secs(1),
            recover: Backoff { first: Duration::from_millis(100), most: Duration::from_secs(10) },
            post_timeout: quarter_minute,
            most_posts: 100_000,
            most_items: 1_000_000,
            downloads_dictionary: false,
            directory_filter: filter::ALL,
            obeys_open_window: true,
            // Names of ten characters then take 5.5 KB: a frame holds them.
            most_in_batch: 500,
            token_percent: 80,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_most() {
        let backoff = Settings::default().reconnect;
        let waits: Vec<_> = (0..6).map(|failures| backoff.after(failures).as_secs()).collect();
        assert_eq!(waits, [1, 1, 2, 4, 5, 5]);
        assert_eq!(backoff.after(u32::MAX), backoff.most);
    }
}
