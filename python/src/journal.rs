//! Ticks of a journal, in sequence, and on into the live ring of its plant.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatchIterator;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ArrowError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use tapeline_journal::{Directory, From, Next, Reader};
use tapeline_nanos::Nanos;
use tapeline_plant::tick::Tick;
use tapeline_ring::{Name, Start, Subscriber};

use crate::batch::Batch;
use crate::error::Error;
use crate::ring;
use crate::taken::{Taken, seconds};
use crate::ticks::{Gatherer, OnGap};

/// How long a batch of live ticks is gathered.
const LONGEST: Duration = Duration::from_millis(50);
/// How often the journal is looked at while it is behind the ring.
const LOOK: Duration = Duration::from_millis(1);

/// A scan of a journal: which ticks, and which of their columns.
#[pyclass(frozen, module = "tapeline")]
pub(crate) struct JournalSource {
    scan: Arc<Mutex<Scan>>,
    process: u32,
}

enum Scan {
    Past(Past),
    /// The journal was read, and its plant's ring goes on.
    Live(ring::Reading),
    Closed,
}

struct Past {
    reader: Reader<Directory>,
    gatherer: Gatherer,
    /// The scan ends at the first tick published at this time or later, ns since 1970 UTC.
    end: Option<u64>,
    to_sequence: u64,
    is_over: bool,
    /// The ring to go on with, and the position on it.
    follow: Option<(Name, Option<Subscriber>)>,
}

#[pymethods]
impl JournalSource {
    #[new]
    #[pyo3(signature = (folder, items, columns, from_sequence, to_sequence, from_ns, to_ns, max_rows, on_gap, follow))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        folder: PathBuf,
        items: Option<HashSet<String>>,
        columns: Option<Vec<String>>,
        from_sequence: Option<u64>,
        to_sequence: Option<u64>,
        from_ns: Option<u64>,
        to_ns: Option<u64>,
        max_rows: usize,
        on_gap: &str,
        follow: Option<&str>,
    ) -> PyResult<Self> {
        let mut gatherer = Gatherer::new(columns, OnGap::named(on_gap)?, max_rows)?.only(items);
        let mut reader = Reader::open(Directory::open(&folder).map_err(Error::from)?).map_err(Error::from)?;
        if let Some(sequence) = from_sequence {
            // The first sequence is 1.
            let sequence = sequence.max(1);
            reader.seek(From::Seq(sequence)).map_err(Error::from)?;
            gatherer.expect(sequence);
        } else if let Some(from) = from_ns {
            reader.seek(From::Time(Nanos(from))).map_err(Error::from)?;
        }
        if follow.is_some() && (to_sequence.is_some() || to_ns.is_some()) {
            let hint = "leave out follow, or to_sequence and the second time of between";
            return Err(Error::argument("a scan that follows a ring has no end".to_owned(), hint).into());
        }
        let to_sequence = to_sequence.unwrap_or(u64::MAX);
        let follow = follow.map(Name::new).transpose().map_err(Error::from)?.map(|name| (name, None));
        let past = Past { reader, gatherer, end: to_ns, to_sequence, is_over: false, follow };
        Ok(Self { scan: Arc::new(Mutex::new(Scan::Past(past))), process: std::process::id() })
    }

    /// The next batch, or an empty tuple at the end. `None` within `timeout` seconds, which matters behind the journal's end alone.
    fn take(&self, py: Python<'_>, timeout: f64) -> PyResult<Taken> {
        if std::process::id() != self.process {
            return Err(Error::forked().into());
        }
        let timeout = seconds("timeout", timeout)?;
        py.detach(|| lock(&self.scan).take(timeout)).map_err(Into::into)
    }

    /// The batches as one Arrow stream, which needs no Python while it is read.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let scan = Arc::clone(&self.scan);
        let schema = match &*lock(&scan) {
            Scan::Past(past) if past.follow.is_none() => past.gatherer.schema(),
            _ => {
                let hint = "iterate its batches, or leave follow out";
                return Err(Error::argument("a scan that follows a ring has no end".to_owned(), hint).into());
            }
        };
        let batches = std::iter::from_fn(move || {
            let next = match &mut *lock(&scan) {
                Scan::Past(past) => past.next(),
                _ => Ok(None),
            };
            let rows = next.map(|batch| batch.map(Batch::into_rows));
            rows.map_err(|error| ArrowError::ExternalError(error.to_string().into())).transpose()
        });
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// Gives the file up, and leaves the ring.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if std::process::id() != self.process {
            return Err(Error::forked().into());
        }
        py.detach(|| *lock(&self.scan) = Scan::Closed);
        Ok(())
    }
}

impl Drop for JournalSource {
    fn drop(&mut self) {
        if std::process::id() != self.process
            && let Ok(mut scan) = self.scan.try_lock()
        {
            // The position on the ring is the parent's.
            std::mem::forget(std::mem::replace(&mut *scan, Scan::Closed));
        }
    }
}

fn lock(scan: &Mutex<Scan>) -> MutexGuard<'_, Scan> {
    scan.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Scan {
    fn take(&mut self, timeout: Duration) -> Result<Taken, Error> {
        let began = Instant::now();
        loop {
            match self {
                Self::Closed => return Ok(Taken::End),
                Self::Live(reading) => return reading.take(timeout.saturating_sub(began.elapsed())),
                Self::Past(past) => match past.next()? {
                    Some(batch) => return Ok(Taken::Batch(batch)),
                    None if past.follow.is_none() => return Ok(Taken::End),
                    None => {
                        if past.has_reached_ring()? {
                            let Self::Past(past) = std::mem::replace(self, Self::Closed) else { continue };
                            if let Some((name, Some(subscriber))) = past.follow {
                                *self = Self::Live(ring::Reading::new(
                                    name,
                                    Start::Oldest,
                                    subscriber,
                                    past.gatherer,
                                    LONGEST,
                                ));
                            }
                        } else if began.elapsed() >= timeout {
                            return Ok(Taken::Nothing);
                        } else {
                            std::thread::sleep(LOOK);
                        }
                    }
                },
            }
        }
    }
}

impl Past {
    /// Returns the next batch; `None` at the end, for now.
    fn next(&mut self) -> Result<Option<Batch>, Error> {
        loop {
            let is_over = self.gather()?;
            let batch = self.gatherer.take()?;
            if batch.is_some() || is_over && self.gatherer.rows() == 0 {
                return Ok(batch);
            }
        }
    }

    /// Returns `true` if the ring has the tick behind the last one of the journal. The ring is joined before the journal's last records are
    /// read, so that nothing is published unseen in between.
    fn has_reached_ring(&mut self) -> Result<bool, Error> {
        let Some((name, place)) = &mut self.follow else { return Ok(false) };
        let Some(subscriber) = place else {
            *place = Some(ring::join(name, Start::Oldest)?);
            return Ok(false);
        };
        if subscriber.is_evicted() {
            // While earlier batches were used, the plant went on: the journal has what the ring has no longer.
            *place = None;
            return Ok(false);
        }
        let sequences = subscriber.ahead(|frame| Tick::parse(frame).map(|tick| tick.header.seq));
        let in_sequence = sequences.filter(|seq| !seq.as_ref().is_ok_and(|seq| seq.is_outside()));
        let first = in_sequence.map(|seq| seq.map(|seq| seq.0)).next();
        Ok(match (first, self.gatherer.awaited()) {
            (Some(Ok(first)), Some(awaited)) => first <= awaited,
            // The journal is empty: the ring has everything, or nothing was published yet.
            (Some(Ok(first)), None) => first <= 1,
            // What it is says the error when it is read.
            (Some(Err(_)) | None, _) => true,
        })
    }

    /// Adds ticks up to a full batch, or to the end. Returns `true` at the end.
    fn gather(&mut self) -> Result<bool, Error> {
        let Self { reader, gatherer, end, to_sequence, is_over, .. } = self;
        while !*is_over && !gatherer.is_full() {
            match reader.next()? {
                Next::Record(record) => {
                    if record.seq > *to_sequence || end.is_some_and(|end| record.time.0 >= end) {
                        *is_over = true;
                        break;
                    }
                    let tick = Tick::parse(record.body).map_err(|fault| {
                        Error::damaged(format!("record {} of the journal: {fault}", record.seq))
                    })?;
                    gatherer.add(&tick, true);
                }
                Next::Missing { from, to } if from <= *to_sequence => {
                    gatherer.gap(from, to.min(*to_sequence))
                }
                Next::Missing { .. } => {}
                Next::End => return Ok(true),
            }
        }
        Ok(*is_over)
    }
}
