//! Live ticks of a plant on this host.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Poll, Start, Subscriber, Wait};

use crate::error::Error;
use crate::taken::{Taken, seconds};
use crate::ticks::{Gatherer, OnGap};

/// How long a publisher's death goes unnoticed.
const LOOK: Duration = Duration::from_millis(500);

/// A subscription to a plant's ring. Its plant waits for a subscriber that does not read, for at most its `stall_limit`.
#[pyclass(frozen, module = "tapeline")]
#[derive(Debug)]
pub(crate) struct RingSource {
    reading: Mutex<Reading>,
    process: u32,
}

/// A position on a ring, and the rows that are gathered from there.
#[derive(Debug)]
pub(crate) struct Reading {
    name: Name,
    start: Start,
    /// `None` once the ring has ended or the subscription is closed.
    subscriber: Option<Subscriber>,
    /// The plant whose ticks these are; `None` before the first one.
    epoch: Option<u32>,
    gatherer: Gatherer,
    longest: Duration,
    /// When the batch that is being gathered leaves.
    leaves: Option<Instant>,
    looked: Instant,
}

#[pymethods]
impl RingSource {
    #[new]
    #[pyo3(signature = (name, start, columns, max_rows, max_wait, on_gap))]
    fn new(
        py: Python<'_>,
        name: &str,
        start: &str,
        columns: Option<Vec<String>>,
        max_rows: usize,
        max_wait: f64,
        on_gap: &str,
    ) -> PyResult<Self> {
        let start = match start {
            "newest" => Start::Newest,
            "oldest" => Start::Oldest,
            other => {
                return Err(PyValueError::new_err(format!(
                    "start is \"newest\" or \"oldest\", not {other:?}"
                )));
            }
        };
        let longest = seconds("max_wait", max_wait)?;
        let gatherer = Gatherer::new(columns, OnGap::named(on_gap)?, max_rows)?;
        let name = Name::new(name).map_err(Error::from)?;
        let subscriber = py.detach(|| join(&name, start))?;
        let reading = Reading::new(name, start, subscriber, gatherer, longest);
        Ok(Self { reading: Mutex::new(reading), process: std::process::id() })
    }

    /// Waits for a batch for at most `timeout` seconds: `None` if there is none by then, an empty tuple at the end of the ring.
    fn take(&self, py: Python<'_>, timeout: f64) -> PyResult<Taken> {
        self.is_ours()?;
        let timeout = seconds("timeout", timeout)?;
        py.detach(|| self.reading.lock().unwrap_or_else(PoisonError::into_inner).take(timeout))
            .map_err(Into::into)
    }

    /// Leaves the ring.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.is_ours()?;
        py.detach(|| self.reading.lock().unwrap_or_else(PoisonError::into_inner).leave());
        Ok(())
    }

    /// How many bytes of the ring this subscriber has not read.
    #[getter]
    fn lag_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.is_ours()?;
        Ok(py.detach(|| {
            let reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
            reading.subscriber.as_ref().map_or(0, Subscriber::lag_bytes)
        }))
    }
}

impl RingSource {
    fn is_ours(&self) -> Result<(), Error> {
        if std::process::id() == self.process { Ok(()) } else { Err(Error::forked()) }
    }
}

/// Joins a ring.
///
/// # Errors
/// There is no such ring, or it cannot be joined.
pub(crate) fn join(name: &Name, start: Start) -> Result<Subscriber, Error> {
    Ok(Subscriber::join_as(name, start, "python")?)
}

impl Reading {
    pub(crate) fn new(
        name: Name,
        start: Start,
        subscriber: Subscriber,
        gatherer: Gatherer,
        longest: Duration,
    ) -> Self {
        let subscriber = Some(subscriber);
        Self { name, start, subscriber, epoch: None, gatherer, longest, leaves: None, looked: Instant::now() }
    }

    /// Leaves the ring.
    pub(crate) fn leave(&mut self) {
        self.subscriber = None;
    }

    /// Forgets the position on the ring without giving it back: it is another process's.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(self.subscriber.take());
    }

    /// Waits for a batch for at most `timeout`.
    ///
    /// # Errors
    /// A gap, damage, or a plant that has died.
    pub(crate) fn take(&mut self, timeout: Duration) -> Result<Taken, Error> {
        let deadline = Instant::now() + timeout;
        loop {
            let is_over = self.gather()?;
            let now = Instant::now();
            if self.gatherer.rows() > 0 {
                // A batch leaves this long after its first row.
                self.leaves.get_or_insert(now + self.longest);
            }
            let is_due = self.leaves.is_some_and(|leaves| now >= leaves);
            if self.gatherer.is_full() || is_due || is_over {
                self.leaves = None;
                if let Some(batch) = self.gatherer.take()? {
                    return Ok(Taken::Batch(batch));
                }
                if is_over {
                    return Ok(Taken::End);
                }
                continue;
            }
            if now >= deadline {
                return Ok(Taken::Nothing);
            }
            let until = self.leaves.map_or(deadline, |leaves| leaves.min(deadline));
            let Some(subscriber) = &mut self.subscriber else { return Ok(Taken::End) };
            let is_ready = subscriber.wait(Wait::Park, until.saturating_duration_since(now).min(LOOK));
            if !is_ready && self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                if !subscriber.publisher_alive()? && !subscriber.has_next() {
                    let text = format!("the plant of the ring {} has died without ending it", self.name);
                    self.end(Error::ended(text));
                }
            }
        }
    }

    /// Leaves the ring, with an error behind the rows that are there.
    fn end(&mut self, error: Error) {
        self.subscriber = None;
        self.gatherer.fail(error);
    }

    /// Adds what is on the ring, up to a full batch. Returns `true` at the end of the ring.
    fn gather(&mut self) -> Result<bool, Error> {
        while !self.gatherer.is_full() {
            let Some(subscriber) = &mut self.subscriber else { return Ok(true) };
            let name = &self.name;
            let error = match subscriber.next() {
                Poll::Frame(frame) => {
                    if *self.epoch.get_or_insert(frame.epoch()) == frame.epoch() {
                        match Tick::parse(frame.bytes()) {
                            Ok(tick) => {
                                self.gatherer.add(&tick, true);
                                continue;
                            }
                            Err(fault) => {
                                Error::damaged(format!("the ring {name} holds something else: {fault}"))
                            }
                        }
                    } else {
                        // It numbers its ticks anew: they would be taken for the earlier ones.
                        another_plant(name)
                    }
                }
                Poll::Ended => {
                    self.subscriber = None;
                    return Ok(true);
                }
                Poll::Damaged { position } => {
                    Error::damaged(format!("the ring {name} is damaged at position {}", position.0))
                }
                Poll::Evicted { .. } => {
                    // With a name of its own no other plant can have taken the ring's place.
                    let is_ours = subscriber.is_named()?;
                    let has_read = self.gatherer.awaited().is_some();
                    // Behind a gap the ring's oldest tick tells how many are missing.
                    let again = join(name, if has_read { Start::Oldest } else { self.start })?;
                    if is_ours {
                        self.subscriber = Some(again);
                        if !has_read {
                            self.gatherer.fail_unless_ignored(Error::unknown_gap());
                        }
                        continue;
                    }
                    another_plant(name)
                }
                _ => return Ok(false),
            };
            self.end(error);
        }
        Ok(false)
    }
}

fn another_plant(name: &Name) -> Error {
    Error::ended(format!("another plant now publishes the ring {name}"))
}

impl Drop for RingSource {
    fn drop(&mut self) {
        if std::process::id() != self.process
            && let Ok(mut reading) = self.reading.try_lock()
        {
            reading.forget();
        }
    }
}
