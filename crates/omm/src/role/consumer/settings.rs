//! Time limits and other limits of a consumer.

use std::time::Duration;

use crate::domain::directory::filter;

/// Wait before each attempt: it doubles each time, up to a maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// Wait before the second attempt.
    pub first: Duration,
    /// Maximum wait.
    pub most: Duration,
}

impl Backoff {
    /// Returns the wait before the attempt that follows this number of failures.
    #[must_use]
    pub fn after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

/// Waits, time limits and other limits of a consumer. Defaults are those of the vendor's library if it has the setting;
/// its name is then stated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSettings {
    /// Wait between connections: `reconnectMinDelay` 1 s, `reconnectMaxDelay` 5 s.
    pub reconnect: Backoff,
    /// Maximum number of consecutive connections without a completed login; unlimited if `None`:
    /// `reconnectAttemptLimit`.
    pub reconnect_attempts: Option<u32>,
    /// Time limit for an accepted login: `loginRequestTimeOut` 45 s.
    pub login_timeout: Duration,
    /// Time limit for a complete directory: `directoryRequestTimeOut` 45 s.
    pub directory_timeout: Duration,
    /// Time limit for complete dictionaries: `dictionaryRequestTimeOut` 45 s.
    pub dictionary_timeout: Duration,
    /// Time limit for the answer to a request, which is then closed and sent again: `requestTimeout` 15 s.
    pub request_timeout: Duration,
    /// Wait before a login that was closed to recover is tried again on the same connection: 1 s.
    pub login_again: Duration,
    /// Wait before an item that was closed to recover is requested again: 100 ms, at most 10 s. See the
    /// [module](super::super::consumer).
    pub recover: Backoff,
    /// Time limit for the acknowledgement of a post: `postAckTimeout` 15 s.
    pub post_timeout: Duration,
    /// Maximum number of unacknowledged posts: `maxOutstandingPosts` 100,000.
    pub most_posts: usize,
    /// Maximum number of open items.
    pub most_items: usize,
    /// Number of items for which memory is reserved at the start, as by [`Consumer::reserve`](super::Consumer::reserve), at most
    /// `most_items` and 1,000,000: `itemCountHint` 0.
    pub expected_items: usize,
    /// `true` to download the dictionaries, and request items only after them; `false` if the application has its own.
    pub downloads_dictionary: bool,
    /// Filter of the directory request: all six filters.
    pub directory_filter: u32,
    /// `true` to limit the unanswered requests to the service's window: `obeyOpenWindow`. A window of 0 is always
    /// obeyed.
    pub obeys_open_window: bool,
    /// Maximum number of items in one batch request.
    pub most_in_batch: usize,
    /// Part of a token's lifetime after which the token is renewed, percent: `tokenReissueRatio` 0.8.
    pub token_percent: u8,
}

impl Default for ConsumerSettings {
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
            expected_items: 0,
            downloads_dictionary: false,
            directory_filter: filter::ALL,
            obeys_open_window: true,
            // With names of ten characters, a batch takes 5.5 KB: it fits in a frame.
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
        let backoff = ConsumerSettings::default().reconnect;
        let waits: Vec<_> = (0..6).map(|failures| backoff.after(failures).as_secs()).collect();
        assert_eq!(waits, [1, 1, 2, 4, 5, 5]);
        assert_eq!(backoff.after(u32::MAX), backoff.most);
    }
}
