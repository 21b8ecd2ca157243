//! The public stream of a crypto venue: a thread that keeps the connection, and the plant's side of it.
//!
//! The thread connects, passes messages on in a bounded queue, and sends what the feed requests; snapshots are fetched by a second thread, so that
//! the stream is read meanwhile. After a failure it connects again, with pauses that grow from a quarter of a second to half a minute, or are as long
//! as the venue asks, if that is longer. If the plant is slower than the venue, the queue is full, the thread reads no more, and the venue may close
//! the connection: then the feed is stale, and joins its books again.

mod following;
mod snapshots;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use tapeline_feed::venues::{VenueRequest, VenueSymbol, snapshot_message};
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{Channel, Refused, RingPublish, Sequencer};
use tapeline_wire::web_client::WebText;

use self::following::Following;
use super::queue::{self, Bytes, Exit};
use crate::config::{Feed, VenueStream};
use crate::error::Context;
use crate::events::{Events, Kind, Severity};
use crate::stat::snapshot::{SymbolSnapshot, VenueSnapshot};

/// Maximum number of messages, and of their bytes, between the two threads.
const MOST_QUEUED: usize = 16_384;
const MOST_QUEUED_BYTES: usize = 32 << 20;
/// Maximum number of messages per turn, and the number after which sleeping subscribers are woken.
const TURN: usize = 256;
const WAKE_EVERY: usize = 32;
/// The longest pause after failures, and the longest that a venue can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_ASKED: Duration = Duration::from_secs(600);

/// What the thread tells the plant.
enum FromVenue {
    /// A connection begins, with its number.
    Connected(u64),
    Message(WebText, Nanos),
    /// The snapshot of a symbol; `None` if it could not be fetched.
    Snapshot {
        symbol: String,
        body: Option<Vec<u8>>,
        received: Nanos,
    },
    /// The connection ended.
    Cut,
}

impl Bytes for FromVenue {
    fn bytes(&self) -> usize {
        let contents = match self {
            Self::Message(text, _) => text.as_bytes().len(),
            Self::Snapshot { body, .. } => body.as_ref().map_or(0, Vec::len),
            Self::Connected(_) | Self::Cut => 0,
        };
        size_of::<Self>() + contents
    }
}

/// Returns the figures of a venue's feed for the counters; `None` for other protocols.
pub(crate) fn figures(channel: &Channel) -> Option<VenueSnapshot> {
    let (connection, feed) = channel.venue_view()?;
    let symbols = feed.symbols().map(|VenueSymbol { symbol, is_joined, counters }| SymbolSnapshot {
        symbol: symbol.to_owned(),
        joined: is_joined,
        messages: counters.messages,
        snapshots: counters.snapshots,
        gaps: counters.gaps,
        heard_ns: counters.arrived.unwrap_or_default().0,
    });
    Some(VenueSnapshot {
        connected: connection.is_connected(),
        connections: connection.connections(),
        heard_ns: feed.arrived().unwrap_or_default().0,
        symbols: symbols.collect(),
    })
}

/// A request with the number of the connection that it is for.
type Numbered = (u64, VenueRequest);

/// A venue's stream, from the side of the plant's thread. Dropping it ends the connection.
pub(crate) struct VenueInput {
    name: String,
    exit: Exit<FromVenue>,
    requests: Sender<Numbered>,
    connection: u64,
    stop: Arc<AtomicBool>,
    thread: thread::Thread,
    events: Events,
}

impl VenueInput {
    /// Starts the thread, and gives the channel its symbols. Messages wake the calling thread from [`thread::park_timeout`].
    ///
    /// # Errors
    /// The machine refuses a thread.
    pub(crate) fn start(
        stream: &VenueStream,
        feed: &Feed,
        channel: &mut Channel,
        events: &Events,
    ) -> crate::Result<Self> {
        channel.follow_venue(stream.settings.clone());
        let (entry, exit) = queue::queue(MOST_QUEUED, MOST_QUEUED_BYTES);
        let (requests, taken) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let following = Following {
            name: feed.name.clone(),
            stream: stream.clone(),
            silence: feed.stale_after,
            entry,
            requests: taken,
            stop: Arc::clone(&stop),
            taker: thread::current(),
            events: events.clone(),
        };
        let thread = thread::Builder::new()
            .name(format!("venue {}", feed.name))
            .spawn(move || following.run())
            .context("cannot start the thread of a venue's connection")?;
        let (name, events, thread) = (feed.name.clone(), events.clone(), thread.thread().clone());
        Ok(Self { name, exit, requests, connection: 0, stop, thread, events })
    }

    /// Takes what has arrived, at most a turn's worth, and passes on what the feed requests. Returns the number of messages.
    ///
    /// # Errors
    /// [`Refused`] when a tick could not be published.
    pub(crate) fn turn(
        &mut self,
        channel: &mut Channel,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<usize, Refused> {
        let (mut count, connection) = (0, &mut self.connection);
        let (name, events) = (&self.name, &self.events);
        let say = |severity, what: &dyn std::fmt::Display| {
            events.peer(clock.now(), Kind::Venue, severity, format_args!("feed {name}: {what}"));
        };
        let (taken, _) = self.exit.take(TURN, |what| {
            match what {
                FromVenue::Connected(number) => {
                    *connection = number;
                    channel.venue_connected();
                }
                FromVenue::Message(text, received) => {
                    channel.venue_message(text.as_bytes(), received, clock, to, |gap| {
                        say(Severity::Warning, &gap);
                    })?;
                }
                FromVenue::Snapshot { symbol, body: Some(body), received } => {
                    let message = snapshot_message(&symbol, &body);
                    let told = |gap| say(Severity::Warning, &gap);
                    if !channel.venue_message(&message, received, clock, to, told)? {
                        say(
                            Severity::Warning,
                            &format_args!("{symbol}: the snapshot of the book is not readable"),
                        );
                    }
                }
                FromVenue::Snapshot { symbol, body: None, .. } => {
                    if let Some(feed) = channel.venue() {
                        feed.snapshot_failed(&symbol);
                    }
                }
                FromVenue::Cut => channel.venue_disconnected(clock, to)?,
            }
            count += 1;
            if count % WAKE_EVERY == 0 {
                to.publisher().ring().flush();
            }
            Ok(())
        })?;
        if taken > 0 {
            to.publisher().ring().flush();
        }
        if let Some(feed) = channel.venue() {
            feed.request_due(clock.now());
            let mut has_requests = false;
            while let Some(request) = feed.next_request() {
                // The thread ends only with this side.
                let _ = self.requests.send((self.connection, request));
                has_requests = true;
            }
            while let Some(refusal) = feed.next_refusal() {
                say(
                    Severity::Warning,
                    &format_args!("the venue refuses a request: {}", refusal.escape_debug()),
                );
            }
            if has_requests {
                self.thread.unpark();
            }
        }
        Ok(taken)
    }
}

impl Drop for VenueInput {
    /// Ends the thread without waiting for it: it may wait for an answer of the venue, for some seconds.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
