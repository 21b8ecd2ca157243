//! Live ticks of a plant on this host.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Poll, Start, Subscriber, Wait};

use crate::error::Error;
use crate::taken::Taken;
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
    /// `None` once the ring has ended or the subscription is closed.
    subscriber: Option<Subscriber>,
    gatherer: Gatherer,
    longest: Duration,
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
        let longest = Duration::try_from_secs_f64(max_wait)
            .map_err(|_| PyValueError::new_err(format!("max_wait is a time in seconds, not {max_wait}")))?;
        let gatherer = Gatherer::new(columns, OnGap::named(on_gap)?, max_rows)?;
        let name = Name::new(name).map_err(Error::from)?;
        let subscriber = py.detach(|| join(&name, start))?;
        let reading = Reading::new(name, subscriber, gatherer, longest);
        Ok(Self { reading: Mutex::new(reading), process: std::process::id() })
    }

    /// Waits for a batch for at most `timeout` seconds: `None` if there is none by then, an empty tuple at the end of the ring.
    fn take(&self, py: Python<'_>, timeout: f64) -> PyResult<Taken> {
        self.is_ours()?;
        let timeout = Duration::from_secs_f64(timeout.clamp(0.0, 3_600.0));
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
    pub(crate) fn new(name: Name, subscriber: Subscriber, gatherer: Gatherer, longest: Duration) -> Self {
        Self { name, subscriber: Some(subscriber), gatherer, longest, looked: Instant::now() }
    }

    /// Leaves the ring.
    pub(crate) fn leave(&mut self) {
        self.subscriber = None;
    }

    /// Waits for a batch for at most `timeout`.
    ///
    /// # Errors
    /// A gap, damage, or a plant that has died.
    pub(crate) fn take(&mut self, timeout: Duration) -> Result<Taken, Error> {
        let began = Instant::now();
        // A batch leaves this long after its first row.
        let mut leaves = None;
        loop {
            let is_over = self.gather()?;
            let rows = self.gatherer.rows();
            if rows > 0 && leaves.is_none() {
                leaves = Some(Instant::now() + self.longest);
            }
            let now = Instant::now();
            let is_due = leaves.is_some_and(|leaves| now >= leaves);
            if self.gatherer.is_full() || is_due || is_over {
                if let Some(batch) = self.gatherer.take()? {
                    return Ok(Taken::Batch(batch));
                }
                if is_over {
                    return Ok(Taken::End);
                }
                continue;
            }
            if rows == 0 && now.duration_since(began) >= timeout {
                return Ok(Taken::Nothing);
            }
            let until = leaves.unwrap_or(began + timeout);
            let Some(subscriber) = &mut self.subscriber else { return Ok(Taken::End) };
            let is_ready = subscriber.wait(Wait::Park, until.saturating_duration_since(now).min(LOOK));
            if !is_ready && self.looked.elapsed() >= LOOK {
                self.looked = Instant::now();
                if !subscriber.publisher_alive()? && !subscriber.has_next() {
                    let text = format!("the plant of the ring {} has died without ending it", self.name);
                    self.subscriber = None;
                    self.gatherer.fail(Error::ended(text));
                }
            }
        }
    }

    /// Adds what is on the ring, up to a full batch. Returns `true` at the end of the ring.
    fn gather(&mut self) -> Result<bool, Error> {
        let Self { subscriber: place, gatherer, name, .. } = self;
        let Some(subscriber) = place else { return Ok(true) };
        while !gatherer.is_full() {
            match subscriber.next() {
                Poll::Frame(frame) => {
                    let tick = Tick::parse(frame.bytes()).map_err(|fault| {
                        Error::damaged(format!("the ring {name} holds something else: {fault}"))
                    })?;
                    gatherer.add(&tick, true);
                }
                Poll::Ended => {
                    *place = None;
                    return Ok(true);
                }
                Poll::Damaged { position } => {
                    let text = format!("the ring {name} is damaged at position {}", position.0);
                    *place = None;
                    gatherer.fail(Error::damaged(text));
                    return Ok(true);
                }
                Poll::Evicted { .. } => {
                    // Ticks behind the gap have the ring's oldest sequence first, which tells how many are missing.
                    let again = join(name, Start::Oldest)?;
                    if again.epoch() != subscriber.epoch() {
                        // Another plant numbers its ticks anew: they would be taken for the earlier ones.
                        let text = format!(
                            "this reader lost its position, and another plant now publishes the ring {name}"
                        );
                        *place = None;
                        gatherer.fail(Error::ended(text));
                        return Ok(true);
                    }
                    *subscriber = again;
                }
                _ => break,
            }
        }
        Ok(false)
    }
}
