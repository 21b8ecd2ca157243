//! Snapshots by HTTPS, one after another on a thread of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SendError, Sender};
use std::thread;
use std::time::Duration;

use tapeline_measure::{instant, utc_now};
use tapeline_wire::tls::Tls;
use tapeline_wire::web_client::{HttpAnswer, Url, WebLimits, get};

use super::{LONGEST_ASKED, LONGEST_PAUSE};
use crate::Error;
use crate::config::VenueStream;
use crate::events::{Events, Kind, Severity};

/// The pause after each request: Binance counts a snapshot as 50 of 6,000 units a minute, so two a second are its limit.
const PAUSE: Duration = Duration::from_millis(500);

/// The number of a connection, a symbol, and the address of its snapshot.
type Order = (u64, String, Url);
/// The number of the order's connection, and the symbol with its snapshot, if it could be fetched.
type Fetched = (u64, String, Option<Vec<u8>>);

/// The thread that fetches, from the side of the connections' thread. One thread serves all connections of a feed, so that a new connection
/// does not shorten the pause that the venue has asked for. It ends when this is dropped, after the request in progress.
pub(super) struct Snapshots {
    address: Option<Url>,
    orders: Sender<Order>,
    fetched: Receiver<Fetched>,
    /// For orders without a thread.
    failed: Sender<Fetched>,
    /// The number of the present connection: orders of earlier ones are void.
    connection: Arc<AtomicU64>,
}

impl Snapshots {
    /// Starts the thread, if the venue serves snapshots.
    pub(super) fn new(name: &str, stream: &VenueStream, events: &Events) -> Self {
        let (to_fetch, orders) = mpsc::channel();
        let (done, fetched) = mpsc::channel();
        let connection = Arc::new(AtomicU64::new(0));
        let fetching = Fetching {
            name: name.to_owned(),
            tls: stream.tls.clone(),
            orders,
            waiting: VecDeque::new(),
            done: done.clone(),
            connection: Arc::clone(&connection),
            events: events.clone(),
        };
        let address = stream.snapshot_url.clone();
        let started = address
            .is_some()
            .then(|| thread::Builder::new().name(format!("snapshots {name}")).spawn(move || fetching.run()));
        if let Some(Err(error)) = &started {
            events.warning(format_args!(
                "feed {name}: cannot start the thread that fetches snapshots: {error}"
            ));
        }
        Self { address, orders: to_fetch, fetched, failed: done, connection }
    }

    /// A new connection: the orders of earlier ones are void.
    pub(super) fn connected(&self, connection: u64) {
        self.connection.store(connection, Ordering::Release);
    }

    /// Fetches a snapshot.
    pub(super) fn fetch(&self, symbol: String, query: &str) {
        let Some(address) = &self.address else { return };
        let connection = self.connection.load(Ordering::Acquire);
        let sent = self.orders.send((connection, symbol, address.with_query(query)));
        if let Err(SendError((connection, symbol, _))) = sent {
            // The thread did not start: it is requested again after a pause.
            let _ = self.failed.send((connection, symbol, None));
        }
    }

    /// Returns the next snapshot of the present connection that has arrived or failed.
    pub(super) fn next_fetched(&self) -> Option<(String, Option<Vec<u8>>)> {
        let present = self.connection.load(Ordering::Acquire);
        let mut fetched = self.fetched.try_iter().filter(|(connection, ..)| *connection == present);
        fetched.next().map(|(_, symbol, body)| (symbol, body))
    }
}

struct Fetching {
    name: String,
    tls: Option<Tls>,
    orders: Receiver<Order>,
    /// Orders that arrived during a pause.
    waiting: VecDeque<Order>,
    done: Sender<Fetched>,
    connection: Arc<AtomicU64>,
    events: Events,
}

impl Fetching {
    fn run(mut self) {
        let mut failures = 0_u32;
        while let Some((connection, symbol, url)) = self.next_order() {
            if connection != self.connection.load(Ordering::Acquire) {
                continue;
            }
            let begun = instant();
            let answer = get(&url, self.tls.as_ref(), &WebLimits::default());
            let (body, pause) = match answer {
                Ok(HttpAnswer { status: 200, body, .. }) => {
                    failures = 0;
                    // So many a second are allowed, however long each takes.
                    (Some(body), PAUSE.saturating_sub(instant().saturating_duration_since(begun)))
                }
                Ok(HttpAnswer { status, retry_after, body }) => {
                    failures = failures.saturating_add(1);
                    let said = String::from_utf8_lossy(&body[..body.len().min(200)]);
                    self.warn(format_args!(
                        "the snapshot of {symbol} is refused with HTTP status {status}: {}",
                        said.escape_debug()
                    ));
                    let asked = retry_after.map(|asked| asked.clamp(PAUSE, LONGEST_ASKED));
                    (None, asked.unwrap_or_else(|| longer(failures)))
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.warn(format_args!("the snapshot of {symbol}: {:#}", Error::chain(&error)));
                    (None, longer(failures))
                }
            };
            let has_failed = body.is_none();
            // After a failure the pause comes first: the result causes the next request.
            if has_failed && !self.pause(pause) {
                return;
            }
            if self.done.send((connection, symbol, body)).is_err() || (!has_failed && !self.pause(pause)) {
                return;
            }
        }
    }

    /// Returns the next order; `None` at the end of the plant.
    fn next_order(&mut self) -> Option<Order> {
        self.waiting.pop_front().or_else(|| self.orders.recv().ok())
    }

    /// Waits. Returns `false` at the end of the plant.
    fn pause(&mut self, pause: Duration) -> bool {
        let until = instant() + pause;
        loop {
            match self.orders.recv_timeout(until.saturating_duration_since(instant())) {
                Ok(order) => {
                    // Of another connection than the earlier ones, which are void.
                    if self.waiting.back().is_some_and(|last| last.0 != order.0) {
                        self.waiting.clear();
                    }
                    self.waiting.push_back(order);
                }
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
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
