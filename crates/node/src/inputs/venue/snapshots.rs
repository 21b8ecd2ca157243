//! Snapshots by HTTPS, one after another on a thread of their own.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use tapeline_measure::utc_now;
use tapeline_wire::tls::Tls;
use tapeline_wire::web_client::{HttpAnswer, Url, WebLimits, get};

use crate::Error;
use crate::config::VenueStream;
use crate::events::{Events, Kind, Severity};

/// The pause after each request: Binance counts a snapshot as 50 of 6,000 units a minute, so two a second are its limit.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest pause after a failure, and the longest that a venue can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// A symbol and its snapshot, if it could be fetched.
type Fetched = (String, Option<Vec<u8>>);

/// The thread that fetches, from the side of the connection's thread. The thread ends when this is dropped, after the request in progress.
pub(super) struct Snapshots {
    address: Option<Url>,
    orders: Option<Sender<(String, Url)>>,
    fetched: Receiver<Fetched>,
}

impl Snapshots {
    /// Starts the thread, if the venue serves snapshots.
    pub(super) fn new(name: &str, stream: &VenueStream, events: &Events) -> Self {
        let (to_fetch, orders) = mpsc::channel();
        let (done, fetched) = mpsc::channel();
        let fetching =
            Fetching { name: name.to_owned(), tls: stream.tls.clone(), orders, done, events: events.clone() };
        let address = stream.snapshot_url.clone();
        let started = address
            .is_some()
            .then(|| thread::Builder::new().name(format!("snapshots {name}")).spawn(move || fetching.run()));
        // Without a thread the requests fail, and are repeated.
        let is_running = matches!(started, Some(Ok(_)));
        Self { address, orders: is_running.then_some(to_fetch), fetched }
    }

    /// Fetches a snapshot.
    pub(super) fn fetch(&self, symbol: String, query: &str) {
        if let Some((address, orders)) = self.address.as_ref().zip(self.orders.as_ref()) {
            let _ = orders.send((symbol, address.with_query(query)));
        }
    }

    /// Returns the next snapshot that has arrived or failed.
    pub(super) fn next_fetched(&self) -> Option<Fetched> {
        self.fetched.try_recv().ok()
    }
}

struct Fetching {
    name: String,
    tls: Option<Tls>,
    orders: Receiver<(String, Url)>,
    done: Sender<Fetched>,
    events: Events,
}

impl Fetching {
    fn run(self) {
        let mut failures = 0_u32;
        while let Ok((symbol, url)) = self.orders.recv() {
            let answer = get(&url, self.tls.as_ref(), &WebLimits::default());
            let (body, pause) = match answer {
                Ok(HttpAnswer { status: 200, body, .. }) => {
                    failures = 0;
                    (Some(body), PAUSE)
                }
                Ok(HttpAnswer { status, retry_after, body }) => {
                    failures = failures.saturating_add(1);
                    let said = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
                    self.warn(format_args!(
                        "the snapshot of {symbol} is refused with HTTP status {status}: {said}"
                    ));
                    (None, retry_after.map_or_else(|| longer(failures), |asked| asked.min(LONGEST_ASKED)))
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.warn(format_args!("the snapshot of {symbol}: {:#}", Error::chain(&error)));
                    (None, longer(failures))
                }
            };
            let has_failed = body.is_none();
            // After a failure the pause comes first: the result causes the next request.
            if has_failed {
                thread::sleep(pause);
            }
            if self.done.send((symbol, body)).is_err() {
                return;
            }
            if !has_failed {
                thread::sleep(pause);
            }
        }
    }

    fn warn(&self, what: std::fmt::Arguments<'_>) {
        self.events.peer(
            utc_now(),
            Kind::Venue,
            Severity::Warning,
            format_args!("feed {}: {what}", self.name),
        );
    }
}

/// The pause after this number of failures in a row.
fn longer(failures: u32) -> Duration {
    PAUSE.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE)
}
