//! Publishers to a hub, and providers that consumers connect to.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tapeline_client::{Login, Provider, ProviderEvent, Publisher};

use crate::cells::{self, Rows};
use crate::error::Error;
use crate::taken::seconds;

/// How often the connection is looked after while Python does other things.
const PERIOD: Duration = Duration::from_millis(2);

/// A client with a loop of its own, and the thread that keeps it going.
struct Driven<T> {
    client: Arc<Mutex<Option<T>>>,
    stop: Arc<AtomicBool>,
    failed: Arc<Mutex<Option<String>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

impl<T: Send + 'static> Driven<T> {
    fn new(
        client: T,
        turn: impl Fn(&mut T) -> Result<(), tapeline_client::Error> + Send + 'static,
    ) -> PyResult<Self> {
        let client = Arc::new(Mutex::new(Some(client)));
        let (stop, failed) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(None)));
        let (of_client, of_stop, of_failed) = (Arc::clone(&client), Arc::clone(&stop), Arc::clone(&failed));
        let thread = std::thread::Builder::new().name("tapeline".to_owned()).spawn(move || {
            while !of_stop.load(Ordering::Relaxed) {
                let mut client = of_client.lock().unwrap_or_else(PoisonError::into_inner);
                let turned = client.as_mut().map_or(Ok(()), &turn);
                drop(client);
                if let Err(error) = turned {
                    *of_failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                    return;
                }
                std::thread::sleep(PERIOD);
            }
        })?;
        Ok(Self { client, stop, failed, thread: Mutex::new(Some(thread)), process: std::process::id() })
    }

    /// # Errors
    /// After a fork, and once the session is over.
    fn check(&self) -> Result<(), Error> {
        if std::process::id() != self.process {
            return Err(Error::forked());
        }
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.as_ref().map_or(Ok(()), |why| Err(Error::ended(why)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the client.
    fn with<R>(&self, does: impl FnOnce(&mut T) -> Result<R, Error>) -> Result<R, Error> {
        let mut client = self.lock();
        does(client.as_mut().ok_or_else(|| Error::ended("it is closed"))?)
    }

    /// Takes the client out, and ends the thread.
    fn end(&self) -> Option<T> {
        if std::process::id() != self.process {
            // The connection is the parent's. A lock may be held for ever: its thread is not here.
            if let Ok(mut client) = self.client.try_lock() {
                std::mem::forget(client.take());
            }
            return None;
        }
        self.stop.store(true, Ordering::Relaxed);
        let client = self.lock().take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
        client
    }
}

/// Publishes a table: all rows, in order.
fn publish_table(
    py: Python<'_>,
    table: &Bound<'_, PyAny>,
    mut publish: impl FnMut(&str, &[(tapeline_omm::Fid, tapeline_omm::Value<'_>)]) -> Result<(), Error> + Send,
) -> PyResult<usize> {
    let stream = crate::stream::stream(table)?;
    let rows = Rows::new(&stream)?;
    let untyped = Rows::untyped(&stream);
    let mut count = 0;
    for batch in stream {
        let batch = batch.map_err(|error| match &untyped {
            // polars gives such a column memory that Arrow's rules do not allow.
            Some(column) => Error::argument(
                format!("the column {column:?} has nulls alone, and no type"),
                "give it a type, as pl.col(...).cast(pl.Float64) does, or leave it out",
            ),
            None => Error::argument(format!("the table cannot be read: {error}"), "is it whole?"),
        })?;
        py.detach(|| rows.each(&batch, &mut publish))?;
        count += batch.num_rows();
    }
    Ok(count)
}

/// A non-interactive provider: publishes to a hub.
#[pyclass(frozen, module = "tapeline")]
pub(crate) struct PublisherSource(Driven<Publisher>);

#[pymethods]
impl PublisherSource {
    #[new]
    fn new(
        hub: &str,
        user: &str,
        password: Option<String>,
        service_id: u16,
        service: &str,
    ) -> PyResult<Self> {
        let login = Login::user(user).with_password(password);
        let publisher = Publisher::connect(hub, &login, service_id, service).map_err(Error::from)?;
        Driven::new(publisher, |publisher| publisher.turn(Duration::ZERO)).map(Self)
    }

    /// Publishes the fields of one item.
    fn publish(&self, py: Python<'_>, item: &str, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        self.0.check()?;
        cells::of_dict(fields, |values| {
            py.detach(|| self.0.with(|publisher| Ok(publisher.publish(item, values)?)))
        })
    }

    /// Publishes a table. Returns the number of rows.
    fn publish_table(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.0.check()?;
        publish_table(py, table, |item, values| self.0.with(|publisher| Ok(publisher.publish(item, values)?)))
    }

    /// Waits until the hub's connection has taken everything, for at most `timeout` seconds.
    fn wait_ready(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let deadline = Instant::now() + Duration::from_secs_f64(timeout.clamp(0.0, 3_600.0));
        loop {
            self.0.check()?;
            let is_ready = py.detach(|| self.0.with(|publisher| Ok(publisher.is_ready())))?;
            if is_ready || Instant::now() >= deadline {
                return Ok(is_ready);
            }
            py.detach(|| std::thread::sleep(PERIOD));
        }
    }

    /// Why the connection was lost last; `None` if it was not since the last call.
    fn disconnected(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.0.check()?;
        Ok(py.detach(|| self.0.with(|publisher| Ok(publisher.disconnected())))?)
    }

    /// Sends what was published, for at most `timeout` seconds, then logs out.
    fn end(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = seconds("timeout", timeout)?;
        let closed = py.detach(|| self.0.end().map_or(Ok(()), |publisher| publisher.close(timeout)));
        Ok(closed.map_err(Error::from)?)
    }
}

impl Drop for PublisherSource {
    fn drop(&mut self) {
        // Sends what is left, for a second at most; other threads of Python run meanwhile.
        Python::attach(|py| py.detach(|| drop(self.0.end())));
    }
}

/// An interactive provider: consumers connect to it.
#[pyclass(frozen, module = "tapeline")]
pub(crate) struct ProviderSource {
    provider: Driven<Listening>,
    #[pyo3(get)]
    address: String,
}

struct Listening {
    provider: Provider,
    requests: std::collections::VecDeque<ProviderEvent>,
}

/// Requests that wait for Python. Beyond, requests for items are refused.
const MOST_REQUESTS: usize = 100_000;

#[pymethods]
impl ProviderSource {
    #[new]
    fn new(address: &str, service: &str) -> PyResult<Self> {
        let Ok(address) = address.parse() else {
            let hint = "an address and a port: \"127.0.0.1:14002\"; port 0 takes any free one";
            return Err(Error::argument(format!("{address:?} is not an address to listen on"), hint).into());
        };
        let provider = Provider::listen(address, service).map_err(Error::from)?;
        let address = provider.address().to_string();
        let listening = Listening { provider, requests: std::collections::VecDeque::new() };
        let provider = Driven::new(listening, |listening| {
            while let Some(request) = listening.provider.poll(Duration::ZERO)? {
                // A program that only publishes takes no requests: what is not answered in time is refused.
                if listening.requests.len() < MOST_REQUESTS {
                    listening.requests.push_back(request);
                } else if let ProviderEvent::Opened { item, .. } = request {
                    listening.provider.close_item(&item, "too many requests wait for the provider");
                }
            }
            Ok(())
        })?;
        Ok(Self { provider, address })
    }

    /// Publishes the fields of one item.
    fn publish(&self, py: Python<'_>, item: &str, fields: &Bound<'_, PyDict>) -> PyResult<()> {
        self.provider.check()?;
        cells::of_dict(fields, |values| {
            py.detach(|| self.provider.with(|it| Ok(it.provider.publish(item, values)?)))
        })
    }

    /// Publishes a table. Returns the number of rows.
    fn publish_table(&self, py: Python<'_>, table: &Bound<'_, PyAny>) -> PyResult<usize> {
        self.provider.check()?;
        publish_table(py, table, |item, values| {
            self.provider.with(|it| Ok(it.provider.publish(item, values)?))
        })
    }

    /// Closes an item for all consumers.
    fn close_item(&self, py: Python<'_>, item: &str, why: &str) -> PyResult<()> {
        self.provider.check()?;
        Ok(py.detach(|| {
            self.provider.with(|it| {
                it.provider.close_item(item, why);
                Ok(())
            })
        })?)
    }

    /// The next request as a pair of its kind and what it is about; `None` within `timeout` seconds.
    fn take(&self, py: Python<'_>, timeout: f64) -> PyResult<Option<(&'static str, String)>> {
        let deadline = Instant::now() + Duration::from_secs_f64(timeout.clamp(0.0, 3_600.0));
        loop {
            self.provider.check()?;
            let request = py.detach(|| self.provider.with(|it| Ok(it.requests.pop_front())))?;
            match request {
                Some(ProviderEvent::Opened { item, .. }) => return Ok(Some(("opened", item))),
                Some(ProviderEvent::LoggedIn(user)) => return Ok(Some(("logged_in", user))),
                Some(ProviderEvent::Closed { user, reason }) => {
                    return Ok(Some(("closed", format!("{user}: {reason}"))));
                }
                Some(ProviderEvent::Note(note)) => return Ok(Some(("note", note))),
                Some(_) => {}
                None if Instant::now() >= deadline => return Ok(None),
                None => py.detach(|| std::thread::sleep(PERIOD)),
            }
        }
    }

    /// Stops listening, and disconnects the consumers.
    fn end(&self, py: Python<'_>) {
        py.detach(|| drop(self.provider.end()));
    }
}

impl Drop for ProviderSource {
    fn drop(&mut self) {
        self.provider.end();
    }
}
