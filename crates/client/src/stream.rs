//! The events of a consumer as a `Stream`, for programs that run on tokio. Needs the feature `tokio`.
//!
//! The consumer runs on a thread of its own: its poller waits for sockets, timers and the waker at once, and a slow task of the runtime does
//! not delay its pings. The runtime needs no features: the thread passes events through a channel of [`CAPACITY`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as blocking;
use std::task::{Context, Poll};
use std::thread;

use futures_core::Stream;
use tapeline_measure::Nanos;
use tapeline_wire::rssl::Waker;
use tokio::sync::mpsc;

pub use crate::consumer::OwnedEvent;
use crate::{Consumer, Error};

/// The number of events that wait for the program. When the channel is full, nothing more is read from the connection until the program takes an event,
/// and no event is dropped. The server's policy for slow consumers applies then: a hub conflates or disconnects, and any server disconnects a
/// consumer that sends no ping for the ping timeout of the connection.
pub const CAPACITY: usize = 1_024;

/// A call for the thread of the consumer.
type Call = Box<dyn FnOnce(&mut Consumer) + Send>;

/// The events of a consumer. It ends after the first error. Dropping it logs out and closes the connection.
#[derive(Debug)]
pub struct EventStream {
    events: mpsc::Receiver<Result<OwnedEvent, Error>>,
    calls: blocking::Sender<Call>,
    is_dropped: Arc<AtomicBool>,
    waker: Waker,
}

impl Consumer {
    /// Turns the consumer into a stream of events, on a thread of its own.
    ///
    /// # Errors
    /// The system refuses a thread or a waker.
    pub fn into_stream(self) -> Result<EventStream, Error> {
        let waker = self.waker()?;
        let (sender, events) = mpsc::channel(CAPACITY);
        let (calls, received) = blocking::channel();
        let is_dropped = Arc::new(AtomicBool::new(false));
        let of_thread = Arc::clone(&is_dropped);
        thread::Builder::new()
            .name("tapeline".to_owned())
            .spawn(move || run(self, &sender, &received, &of_thread))
            .map_err(Error::Thread)?;
        Ok(EventStream { events, calls, is_dropped, waker })
    }
}

impl EventStream {
    /// Returns the next event; `None` after the first error.
    pub async fn next(&mut self) -> Option<Result<OwnedEvent, Error>> {
        self.events.recv().await
    }

    /// Runs `call` with the consumer, on the consumer's thread: for requests, posts and a renewed login. It runs before the next event is received.
    ///
    /// # Errors
    /// [`Error::Ended`] once the stream has ended.
    pub fn with(&self, call: impl FnOnce(&mut Consumer) + Send + 'static) -> Result<(), Error> {
        let ended = || Error::Ended("the stream of its events has ended".to_owned());
        self.calls.send(Box::new(call)).map_err(|_| ended())?;
        self.waker.wake().map_err(Error::Thread)
    }
}

impl Stream for EventStream {
    type Item = Result<OwnedEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        // Pairs with the load in `run`. The thread is not joined: a drop must not block the runtime.
        self.is_dropped.store(true, Ordering::Release);
        self.events.close();
        let _ = self.waker.wake();
    }
}

/// The thread of a consumer.
fn run(
    mut consumer: Consumer,
    sender: &mpsc::Sender<Result<OwnedEvent, Error>>,
    calls: &blocking::Receiver<Call>,
    is_dropped: &AtomicBool,
) {
    while !is_dropped.load(Ordering::Acquire) {
        while let Ok(call) = calls.try_recv() {
            call(&mut consumer);
        }
        match consumer.turn(Nanos(u64::MAX)) {
            Ok(true) => {
                while let Some(event) = consumer.take_owned() {
                    if sender.blocking_send(Ok(event)).is_err() {
                        return consumer.close();
                    }
                }
            }
            Ok(false) => {}
            Err(error) => {
                let _ = sender.blocking_send(Err(error));
                return;
            }
        }
    }
    consumer.close();
}
