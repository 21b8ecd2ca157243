//! The thread of a venue's connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TrySendError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tapeline_feed::venues::VenueRequest;
use tapeline_measure::{instant, utc_now};
use tapeline_wire::web_client::{WebError, WebLimits, WebReceived, WebSocketClient};

use super::snapshots::Snapshots;
use super::{FromVenue, LONGEST_ASKED, LONGEST_PAUSE, Numbered};
use crate::Error;
use crate::config::VenueStream;
use crate::events::{Events, Kind, Severity};
use crate::inputs::queue::Entry;

/// The first pause before the next connection.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// A connection that lasted for so long was accepted: the next pause is the first one again. A venue may greet whom it then disconnects.
const STEADY: Duration = Duration::from_secs(10);
/// How long a read waits, so that requests and the end are noticed.
const READ_TIME: Duration = Duration::from_millis(10);
/// How long the thread sleeps while the plant takes nothing.
const FULL_PAUSE: Duration = Duration::from_millis(1);

/// The state of the thread.
pub(super) struct Following {
    pub(super) name: String,
    pub(super) stream: VenueStream,
    /// The time without any message after which the connection is made again; zero means never.
    pub(super) silence: Duration,
    pub(super) entry: Entry<FromVenue>,
    pub(super) requests: Receiver<Numbered>,
    pub(super) stop: Arc<AtomicBool>,
    /// The plant's thread.
    pub(super) taker: Thread,
    pub(super) events: Events,
}

/// The plant has ended.
struct Ended;

impl Following {
    /// Keeps a connection until the plant ends.
    pub(super) fn run(self) {
        let mut pause = FIRST_PAUSE;
        let snapshots = Snapshots::new(&self.name, &self.stream, &self.events);
        for connection in 1.. {
            let url = &self.stream.url;
            let mut until_next = None;
            match WebSocketClient::connect(url, self.stream.tls.as_ref(), &WebLimits::default()) {
                Ok(socket) => {
                    self.say(Severity::Note, &format_args!("connected to {}", url.authority()));
                    let since = instant();
                    if self.follow(socket, connection, &snapshots).is_err() {
                        return;
                    }
                    if instant().saturating_duration_since(since) >= STEADY {
                        pause = FIRST_PAUSE;
                    }
                }
                Err(WebError::Refused { retry_after: Some(asked), host, status }) if asked > pause => {
                    let asked = asked.min(LONGEST_ASKED);
                    until_next = Some(asked);
                    let seconds = asked.as_secs();
                    let what = format_args!(
                        "{host}: the server refuses the WebSocket with HTTP status {status}; connecting again in {seconds} s, as it asks"
                    );
                    self.say(Severity::Warning, &what);
                }
                Err(error) => self.say(Severity::Warning, &format_args!("{:#}", Error::chain(&error))),
            }
            if self.sleep(until_next.unwrap_or(pause)).is_err() {
                return;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Passes messages and requests on until the connection ends.
    fn follow(&self, socket: WebSocketClient, connection: u64, snapshots: &Snapshots) -> Result<(), Ended> {
        snapshots.connected(connection);
        self.put(FromVenue::Connected(connection))?;
        let ended = self.follow_until_cut(socket, connection, snapshots)?;
        self.say(Severity::Warning, &format_args!("{ended}; connecting again"));
        self.put(FromVenue::Cut)
    }

    /// As [`follow`](Self::follow); returns why the connection ended.
    fn follow_until_cut(
        &self,
        mut socket: WebSocketClient,
        connection: u64,
        snapshots: &Snapshots,
    ) -> Result<String, Ended> {
        let mut heard = instant();
        let mut pinged: Option<Instant> = None;
        loop {
            if self.is_stopped() {
                socket.close();
                return Err(Ended);
            }
            match self.send_requests(&mut socket, connection, snapshots) {
                Ok(()) => {}
                Err(error) => return Ok(text(&error)),
            }
            while let Some((symbol, body)) = snapshots.next_fetched() {
                self.put(FromVenue::Snapshot { symbol, body, received: utc_now() })?;
            }
            match socket.receive(READ_TIME) {
                Ok(WebReceived::Text(message)) => {
                    self.put(FromVenue::Message(message, utc_now()))?;
                    // Not before the queue had room: the venue is not silent while the plant does not read.
                    (heard, pinged) = (instant(), None);
                }
                Ok(WebReceived::Alive) => (heard, pinged) = (instant(), None),
                Ok(WebReceived::Nothing) => {
                    let silent = instant().saturating_duration_since(heard);
                    if self.silence.is_zero() {
                        continue;
                    }
                    if silent >= self.silence {
                        return Ok(format!("the venue sent nothing for {} s", self.silence.as_secs_f64()));
                    }
                    if silent >= self.silence / 3 && pinged.is_none() {
                        pinged = Some(instant());
                        if let Err(error) = socket.ping() {
                            return Ok(text(&error));
                        }
                    }
                }
                Ok(WebReceived::Closed(reason)) if reason.is_empty() => {
                    return Ok("the venue closed the connection".to_owned());
                }
                Ok(WebReceived::Closed(reason)) => {
                    return Ok(format!("the venue closed the connection: {}", reason.escape_debug()));
                }
                Err(error) => return Ok(text(&error)),
            }
        }
    }

    /// Sends the requests of this connection; those of an earlier one are void.
    fn send_requests(
        &self,
        socket: &mut WebSocketClient,
        connection: u64,
        snapshots: &Snapshots,
    ) -> Result<(), WebError> {
        for (number, request) in self.requests.try_iter() {
            match request {
                _ if number != connection => {}
                VenueRequest::Send(text) => socket.send(&text)?,
                VenueRequest::Snapshot { symbol, query } => snapshots.fetch(symbol, &query),
            }
        }
        Ok(())
    }

    /// Passes an event to the plant, as soon as the queue has capacity.
    fn put(&self, what: FromVenue) -> Result<(), Ended> {
        let mut what = what;
        loop {
            match self.entry.try_send(what) {
                Ok(()) => {
                    self.taker.unpark();
                    return Ok(());
                }
                Err(TrySendError::Disconnected(_)) => return Err(Ended),
                Err(TrySendError::Full(back)) => what = back,
            }
            if self.is_stopped() {
                return Err(Ended);
            }
            thread::park_timeout(FULL_PAUSE);
        }
    }

    fn sleep(&self, pause: Duration) -> Result<(), Ended> {
        let until = instant() + pause;
        loop {
            if self.is_stopped() {
                return Err(Ended);
            }
            let left = until.saturating_duration_since(instant());
            if left.is_zero() {
                return Ok(());
            }
            thread::park_timeout(left);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    fn say(&self, severity: Severity, what: &dyn std::fmt::Display) {
        self.events.peer(utc_now(), Kind::Venue, severity, format_args!("feed {}: {what}", self.name));
    }
}

/// An error with its causes.
fn text(error: &WebError) -> String {
    format!("{:#}", Error::chain(error))
}
