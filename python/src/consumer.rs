//! A consumer of Open Message Model services: a thread keeps the connection, the last values of each item, and the rows for Python.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use arrow_array::RecordBatch;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tapeline_client::Login;
use tapeline_client::connection::JsonSettings;
use tapeline_client::dialer::{ConnectionEvent, Dialer, Dialing};
use tapeline_client::ema_config::Host;
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::domain::{List, View};
use tapeline_omm::role::consumer::{
    Consumer, ConsumerApplication, ConsumerEvent, ConsumerSettings, Handle, ItemRequest, ServiceName, Target,
};
use tapeline_omm::role::{Outbox, Sent};
use tapeline_omm::rwf::{
    Container, DataState, DataType, Domain, FieldListEncoder, Header, MessageClass, MessageView, PostHeader,
    PostUserInfo, StreamState, UpdateHeader, UpdateType, Value, flags,
};
use tapeline_omm::{Dictionary, Fid, FieldList, State};
use tapeline_wire::rssl::{ConnectionType, SubProtocol, Waker};

use crate::batch::Batch;
use crate::cells;
use crate::columns::{Columns, MESSAGE_COLUMNS, RowHead};
use crate::error::Error;
use crate::last_values::LastValues;
use crate::taken::{Taken, seconds};

/// Batches that wait for Python. Beyond, nothing more is read of the connection: the server's policy for slow clients applies.
const MOST_BATCHES: usize = 64;
/// The longest wait for the thread to end.
const LONGEST_END: Duration = Duration::from_secs(1);
/// The longest wait of the thread between two turns.
const LONGEST_WAIT: Duration = Duration::from_millis(200);

/// A consumer with a thread of its own.
#[pyclass(frozen, module = "tapeline")]
pub(crate) struct ConsumerSource {
    shared: Arc<Shared>,
    commands: Mutex<mpsc::Sender<Command>>,
    waker: Waker,
    thread: Mutex<Option<JoinHandle<()>>>,
    process: u32,
}

struct Shared {
    state: Mutex<Items>,
    changed: Condvar,
}

enum Command {
    Open {
        service: String,
        names: Vec<String>,
        domain: Domain,
        view: Option<Vec<i16>>,
        is_streaming: bool,
    },
    /// Closes items; those of every service if none is named.
    Close {
        names: Vec<String>,
        service: Option<String>,
    },
    /// A post on the stream of an item, with its number and its payload.
    Post {
        name: String,
        service: Option<String>,
        id: u32,
        payload: Vec<u8>,
    },
    End,
}

/// The items and what is known of them.
struct Items {
    items: Vec<Item>,
    /// The items of each name: one for each service and domain in which it was requested.
    by_name: HashMap<String, Vec<usize>>,
    gathering: Option<Gathering>,
    dictionary: Arc<Dictionary>,
    /// The answers to posts, by their number; `None` while there is none.
    posts: HashMap<u32, Option<Result<(), String>>>,
    next_post: u32,
    /// The thread has ended.
    is_over: bool,
    /// Items that were asked for and that the thread has not opened yet.
    asked: usize,
    /// What the connection did last, for errors and time-outs.
    connection: String,
    is_ready: bool,
    ended: Option<String>,
    failed: Option<String>,
    /// Something happened that Python may wait for: more than an update in a batch that has begun.
    has_news: bool,
}

struct Item {
    name: String,
    service: Arc<str>,
    /// The number of the service; 0 before the server has said it.
    service_id: u16,
    domain: Domain,
    handle: Option<Handle>,
    /// The last value of each field.
    values: LastValues,
    state: &'static str,
    /// The data may be wrong.
    is_suspect: bool,
    text: String,
    has_image: bool,
    changed: Nanos,
}

/// Rows that wait for Python.
struct Gathering {
    columns: Columns,
    most_rows: usize,
    longest: Duration,
    full: VecDeque<RecordBatch>,
    /// When the batch that is being gathered leaves.
    leaves: Option<Instant>,
}

impl Gathering {
    /// Counts a row. Returns `true` if a batch has begun or is full.
    fn count(&mut self) -> Result<bool, Error> {
        let mut is_news = self.leaves.is_none();
        if is_news {
            self.leaves = Some(Instant::now() + self.longest);
        }
        if self.columns.is_full(self.most_rows) {
            self.full.push_back(self.columns.take()?);
            self.leaves = None;
            is_news = true;
        }
        Ok(is_news)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Items> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Time since 1970 UTC.
fn now_utc() -> Nanos {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

#[pymethods]
impl ConsumerSource {
    #[new]
    #[pyo3(signature = (servers, user, password, is_json, is_encrypted, trusted))]
    fn new(
        servers: Vec<String>,
        user: &str,
        password: Option<String>,
        is_json: bool,
        is_encrypted: bool,
        trusted: Option<PathBuf>,
    ) -> PyResult<Self> {
        if servers.is_empty() {
            return Err(PyValueError::new_err("a consumer needs a server, such as \"localhost:14002\""));
        }
        let login = Login::user(user).with_password(password);
        let settings = ConsumerSettings { downloads_dictionary: true, ..ConsumerSettings::default() };
        let role = Consumer::new(settings, &login.request()).map_err(|refused| {
            Error::argument(format!("the login does not fit in a message: {refused}"), "use a shorter name")
        })?;
        let endpoint = |server: &String| {
            let mut host = Host { is_encrypted, trusted: trusted.clone(), ..Host::plain(server) };
            if is_json {
                host.settings.connection_type = ConnectionType::WebSocket;
                host.settings.ws_protocols = vec![SubProtocol::TrJson2];
            }
            host.endpoint()
        };
        let endpoints = servers.iter().map(endpoint).collect::<Result<_, _>>().map_err(Error::from)?;
        let dictionary = Arc::new(Dictionary::builtin().clone());
        let dialer = Dialer::new(role, endpoints, Arc::clone(&dictionary), JsonSettings::default())
            .map_err(Error::from)?;
        let waker = dialer.waker().map_err(Error::from)?;
        let state = Items {
            items: Vec::new(),
            by_name: HashMap::new(),
            gathering: None,
            posts: HashMap::new(),
            next_post: 1,
            is_over: false,
            asked: 0,
            dictionary,
            connection: "connecting".to_owned(),
            is_ready: false,
            ended: None,
            failed: None,
            has_news: false,
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (commands, received) = mpsc::channel();
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("tapeline".to_owned())
            .spawn(move || run(dialer, &of_thread, &received))?;
        Ok(Self {
            shared,
            commands: Mutex::new(commands),
            waker,
            thread: Mutex::new(Some(thread)),
            process: std::process::id(),
        })
    }

    /// Waits until items are requested, for at most `timeout` seconds. Returns `False` if the time is over.
    fn wait_ready(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        self.is_ours()?;
        let deadline = Instant::now() + seconds("timeout", timeout)?;
        py.detach(|| {
            let mut items = self.shared.lock();
            loop {
                items.check()?;
                let left = deadline.saturating_duration_since(Instant::now());
                if items.is_ready || left.is_zero() {
                    return Ok(items.is_ready);
                }
                items =
                    self.shared.changed.wait_timeout(items, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        })
        .map_err(|error: Error| error.into())
    }

    /// Requests items. `fields`: names or ids; all if `None`.
    fn open(
        &self,
        py: Python<'_>,
        service: String,
        names: Vec<String>,
        domain: &str,
        fields: Option<Vec<String>>,
        is_streaming: bool,
    ) -> PyResult<()> {
        self.is_ours()?;
        let domain = match domain {
            "market_price" => Domain::MARKET_PRICE,
            "market_by_order" => Domain::MARKET_BY_ORDER,
            "market_by_price" => Domain::MARKET_BY_PRICE,
            other => {
                let text = format!(
                    "domain is \"market_price\", \"market_by_order\" or \"market_by_price\", not {other:?}"
                );
                return Err(PyValueError::new_err(text));
            }
        };
        if let Some(name) = names.iter().find(|name| name.is_empty() || name.len() > 255) {
            let text = format!("an item's name has 1 to 255 bytes, and {name:?} has {}", name.len());
            return Err(Error::argument(text, "names are those of the service, such as AAPL").into());
        }
        let dictionary = py.detach(|| Arc::clone(&self.shared.lock().dictionary));
        let view = fields.map(|fields| {
            fields
                .iter()
                .map(|name| match dictionary.field_named(name) {
                    Some(field) => Ok(field.fid.0),
                    None => Err(crate::columns::unknown(name, &dictionary)),
                })
                .collect::<Result<Vec<i16>, Error>>()
        });
        let view = view.transpose()?;
        py.detach(|| self.shared.lock().asked += names.len());
        self.command(Command::Open { service, names, domain, view, is_streaming })
    }

    /// Closes items; those of every service if none is named.
    fn close_items(&self, names: Vec<String>, service: Option<String>) -> PyResult<()> {
        self.is_ours()?;
        self.command(Command::Close { names, service })
    }

    /// Posts fields to an item. Returns the number by which its answer is known.
    fn post(
        &self,
        py: Python<'_>,
        name: String,
        service: Option<String>,
        fields: &Bound<'_, PyDict>,
    ) -> PyResult<u32> {
        self.is_ours()?;
        let payload = cells::of_dict(fields, payload)?;
        let id = py.detach(|| {
            let mut items = self.shared.lock();
            items.check()?;
            let id = items.next_post;
            items.next_post = id.wrapping_add(1).max(1);
            items.posts.insert(id, None);
            Ok(id)
        });
        let id = id.map_err(|error: Error| PyErr::from(error))?;
        self.command(Command::Post { name, service, id, payload })?;
        Ok(id)
    }

    /// The answer to a post: `None` if there is none within `timeout` seconds, an empty text if it was taken, else why it was refused.
    fn answer(&self, py: Python<'_>, id: u32, timeout: f64) -> PyResult<Option<String>> {
        self.is_ours()?;
        let deadline = Instant::now() + seconds("timeout", timeout)?;
        py.detach(|| {
            let mut items = self.shared.lock();
            loop {
                if let Some(Some(_)) = items.posts.get(&id) {
                    let answer = items.posts.remove(&id).flatten();
                    return Ok(answer.map(|answer| answer.err().unwrap_or_default()));
                }
                items.check()?;
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    items.posts.remove(&id);
                    return Ok(None);
                }
                items =
                    self.shared.changed.wait_timeout(items, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        })
        .map_err(|error: Error| error.into())
    }

    /// Begins to gather rows.
    fn gather(
        &self,
        py: Python<'_>,
        columns: Option<Vec<String>>,
        max_rows: usize,
        max_wait: f64,
    ) -> PyResult<()> {
        self.is_ours()?;
        let longest = seconds("max_wait", max_wait)?;
        py.detach(|| {
            let mut items = self.shared.lock();
            if items.gathering.is_some() {
                let text = "the consumer's batches are being iterated already".to_owned();
                return Err(Error::argument(text, "close() the first iterator, or make a second consumer"));
            }
            let columns = columns.unwrap_or_else(|| MESSAGE_COLUMNS.map(str::to_owned).to_vec());
            let columns = Columns::new(&columns, Arc::clone(&items.dictionary))?;
            items.gathering = Some(Gathering {
                columns,
                most_rows: max_rows.max(1),
                longest,
                full: VecDeque::new(),
                leaves: None,
            });
            Ok(())
        })
        .map_err(Into::into)
    }

    /// Waits for a batch for at most `timeout` seconds.
    fn take(&self, py: Python<'_>, timeout: f64) -> PyResult<Taken> {
        self.is_ours()?;
        let deadline = Instant::now() + seconds("timeout", timeout)?;
        py.detach(|| {
            let mut items = self.shared.lock();
            loop {
                let now = Instant::now();
                let Some(gathering) = &mut items.gathering else { return Ok(Taken::End) };
                if let Some(rows) = gathering.full.pop_front() {
                    self.shared.changed.notify_all();
                    return Ok(Taken::Batch(Batch::new(rows, None, 0)));
                }
                let is_due = gathering.leaves.is_some_and(|leaves| now >= leaves);
                let until = gathering.leaves.map_or(deadline, |leaves| leaves.min(deadline));
                let ended = items.check();
                let Some(gathering) = &mut items.gathering else { return Ok(Taken::End) };
                // The rows before the end come before it.
                if is_due || ended.is_err() && gathering.columns.rows() > 0 {
                    gathering.leaves = None;
                    return Ok(Taken::Batch(Batch::new(gathering.columns.take()?, None, 0)));
                }
                ended?;
                if now >= deadline {
                    return Ok(Taken::Nothing);
                }
                let wait = until.saturating_duration_since(now);
                items =
                    self.shared.changed.wait_timeout(items, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
        })
        .map_err(|error: Error| error.into())
    }

    /// Stops gathering rows.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.is_ours()?;
        py.detach(|| self.shared.lock().gathering = None);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// The last values of all items.
    fn snapshot(&self, py: Python<'_>, columns: Option<Vec<String>>) -> PyResult<Batch> {
        self.is_ours()?;
        py.detach(|| self.shared.lock().snapshot(columns)).map_err(Into::into)
    }

    /// How many items have no image and no final state yet.
    #[getter]
    fn pending(&self, py: Python<'_>) -> PyResult<usize> {
        self.is_ours()?;
        py.detach(|| {
            let items = self.shared.lock();
            items.check()?;
            Ok(items.asked + items.items.iter().filter(|item| item.state == "pending").count())
        })
        .map_err(|error: Error| error.into())
    }

    /// The name of an item without an image and a final state; `None` if there is none.
    #[getter]
    fn first_pending(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.is_ours()?;
        Ok(py.detach(|| {
            let items = self.shared.lock();
            items.items.iter().find(|item| item.state == "pending").map(|item| item.name.clone())
        }))
    }

    /// Waits until something has changed, for at most `timeout` seconds.
    fn wait_change(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        self.is_ours()?;
        let wait = seconds("timeout", timeout)?;
        py.detach(|| {
            let items = self.shared.lock();
            drop(self.shared.changed.wait_timeout(items, wait));
        });
        Ok(())
    }

    /// What the connection did last.
    #[getter]
    fn connection(&self, py: Python<'_>) -> PyResult<String> {
        self.is_ours()?;
        Ok(py.detach(|| self.shared.lock().connection.clone()))
    }

    /// Logs out, and ends the thread.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.is_ours()?;
        py.detach(|| self.stop());
        Ok(())
    }
}

impl ConsumerSource {
    fn is_ours(&self) -> Result<(), Error> {
        if std::process::id() == self.process { Ok(()) } else { Err(Error::forked()) }
    }

    fn command(&self, command: Command) -> PyResult<()> {
        let sent = self.commands.lock().unwrap_or_else(PoisonError::into_inner).send(command);
        sent.map_err(|_| Error::ended("the consumer is closed"))?;
        self.waker.wake()?;
        Ok(())
    }

    /// Ends the thread. A thread that looks up the name of a server cannot be interrupted: it ends later, by itself.
    fn stop(&self) {
        let _ = self.command(Command::End);
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let items = self.shared.lock();
            let waited = self.shared.changed.wait_timeout_while(items, LONGEST_END, |items| !items.is_over);
            let (items, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let is_over = items.is_over;
            drop(items);
            if is_over {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for ConsumerSource {
    fn drop(&mut self) {
        // In a child after a fork there is no such thread.
        if std::process::id() == self.process {
            self.stop();
        }
    }
}

/// The thread of a consumer.
fn run(mut dialer: Dialer<Consumer>, shared: &Shared, commands: &Receiver<Command>) {
    turns(&mut dialer, shared, commands);
    shared.lock().is_over = true;
    shared.changed.notify_all();
}

fn turns(dialer: &mut Dialer<Consumer>, shared: &Shared, commands: &Receiver<Command>) {
    loop {
        let now = Nanos(monotonic_ns());
        let mut items = shared.lock();
        loop {
            match commands.try_recv() {
                Ok(Command::End) | Err(mpsc::TryRecvError::Disconnected) => {
                    items.ended.get_or_insert_with(|| "it was closed".to_owned());
                    dialer.act(|consumer, out| consumer.log_out(out, &mut *items));
                    drop(items);
                    shared.changed.notify_all();
                    dialer.flush();
                    dialer.close();
                    return;
                }
                Ok(command) => items.act(dialer, command),
                Err(mpsc::TryRecvError::Empty) => break,
            }
        }
        let is_full = items.gathering.as_ref().is_some_and(|gathering| gathering.full.len() >= MOST_BATCHES);
        if is_full {
            drop(shared.changed.wait_timeout(items, LONGEST_WAIT));
            continue;
        }
        drop(items);
        let next = dialer.turn(now, &mut Locking(shared));
        if std::mem::take(&mut shared.lock().has_news) {
            shared.changed.notify_all();
        }
        let wait =
            next.map_or(LONGEST_WAIT, |next| Duration::from_nanos(next.0.saturating_sub(monotonic_ns())));
        if let Err(error) = dialer.wait(wait.min(LONGEST_WAIT)) {
            shared.lock().ended = Some(error.to_string());
            return;
        }
    }
}

/// Locks the items for each event alone: the turn that delivers events also looks up the names of servers, which can take seconds.
struct Locking<'a>(&'a Shared);

impl Dialing<Consumer> for Locking<'_> {
    fn connection(&mut self, role: &mut Consumer, event: ConnectionEvent<'_>) {
        self.0.lock().connection(role, event);
    }
}

impl ConsumerApplication for Locking<'_> {
    fn event(&mut self, consumer: &mut Consumer, out: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        self.0.lock().event(consumer, out, event);
    }
}

impl Items {
    /// The places of the items of a name, in a service or in all.
    fn places<'a>(&'a self, name: &str, service: Option<&'a str>) -> impl Iterator<Item = usize> + 'a {
        let places = self.by_name.get(name).map(Vec::as_slice).unwrap_or_default();
        places
            .iter()
            .copied()
            .filter(move |at| service.is_none_or(|service| *self.items[*at].service == *service))
    }

    /// The stream of an item for a post.
    ///
    /// # Errors
    /// Why there is none, or more than one.
    fn stream(&self, name: &str, service: Option<&str>) -> Result<Handle, String> {
        let mut open = self.places(name, service).filter_map(|at| self.items[at].handle);
        match (open.next(), open.next()) {
            (Some(handle), None) => Ok(handle),
            (None, _) => Err("the item is not open".to_owned()),
            (Some(_), Some(_)) => {
                Err("items of several services or domains have this name: name the service".to_owned())
            }
        }
    }

    /// # Errors
    /// The session has ended for good.
    fn check(&self) -> Result<(), Error> {
        if let Some(failed) = &self.failed {
            return Err(Error::damaged(failed));
        }
        self.ended.as_ref().map_or(Ok(()), |why| Err(Error::ended(format!("the session is over: {why}"))))
    }

    fn act(&mut self, dialer: &mut Dialer<Consumer>, command: Command) {
        self.has_news = true;
        match command {
            Command::Open { service, names, domain, view, is_streaming } => {
                self.asked -= names.len();
                let shared: Arc<str> = service.as_str().into();
                for name in names {
                    let same = self.places(&name, Some(&service)).find(|at| self.items[*at].domain == domain);
                    // Open already: the request of the first time holds.
                    if same.is_some_and(|at| self.items[at].handle.is_some()) {
                        continue;
                    }
                    let closure = self.items.len();
                    let request = ItemRequest {
                        domain,
                        is_streaming,
                        view: view.as_ref().map(|fids| View::Fids(List::Given(fids))),
                        closure: closure as u64,
                        ..ItemRequest::new(ServiceName::Name(&service), name.as_bytes())
                    };
                    let opened = dialer.role().open(&request);
                    let places = self.by_name.entry(name.clone()).or_default();
                    places.retain(|at| Some(*at) != same);
                    places.push(closure);
                    self.items.push(Item {
                        name,
                        service: Arc::clone(&shared),
                        service_id: 0,
                        domain,
                        handle: opened.as_ref().ok().copied(),
                        values: LastValues::default(),
                        state: if opened.is_ok() { "pending" } else { "closed" },
                        is_suspect: true,
                        text: opened.err().map(|refused| refused.to_string()).unwrap_or_default(),
                        has_image: false,
                        changed: Nanos(0),
                    });
                }
            }
            Command::Close { names, service } => {
                for name in names {
                    let places: Vec<usize> = self.places(&name, service.as_deref()).collect();
                    if let Some(all) = self.by_name.get_mut(&name) {
                        all.retain(|at| !places.contains(at));
                    }
                    for at in places {
                        let item = &mut self.items[at];
                        (item.state, item.text) = ("closed", "closed by this consumer".to_owned());
                        if let Some(handle) = item.handle.take() {
                            dialer.role().close(handle);
                        }
                    }
                }
            }
            Command::Post { name, service, id, payload } => {
                let sent = self.stream(&name, service.as_deref()).map(|handle| {
                    let user = PostUserInfo { address: 0x7F00_0001, user_id: std::process::id() };
                    let post = PostHeader {
                        flags: flags::post::POST_COMPLETE | flags::post::ACK,
                        post_id: Some(id),
                        ..PostHeader::new(Domain::MARKET_PRICE, 0, user, DataType::MSG)
                    };
                    dialer.act(|consumer, out| consumer.post(out, Target::Item(handle), &post, &payload))
                });
                let refusal = match sent {
                    Err(why) => why,
                    Ok(Ok(Sent::Queued)) => return,
                    Ok(Ok(Sent::NotOpen)) => {
                        "the server takes no posts, or there is no connection".to_owned()
                    }
                    Ok(Ok(Sent::Full)) => "too many posts wait for an answer".to_owned(),
                    Ok(Ok(Sent::TooLong)) => "the post is longer than a message".to_owned(),
                    Ok(Err(refused)) => refused.to_string(),
                };
                self.posts.insert(id, Some(Err(refusal)));
            }
            Command::End => {}
        }
    }

    fn snapshot(&self, columns: Option<Vec<String>>) -> Result<Batch, Error> {
        let columns = columns.unwrap_or_else(|| MESSAGE_COLUMNS.map(str::to_owned).to_vec());
        let mut columns = Columns::new(&columns, Arc::clone(&self.dictionary))?.with_blank_as_null();
        let mut list = Vec::new();
        // In the order of their requests.
        let mut places: Vec<usize> = self.by_name.values().flatten().copied().collect();
        places.sort_unstable();
        for at in places {
            let Some(item) = self.items.get(at) else { continue };
            item.values.write(&mut list);
            let head = item.head(at, if item.has_image { "image" } else { "none" });
            let list = FieldList::parse(&list).map_err(Error::damaged)?;
            columns
                .add_list(&head, &list)
                .map_err(|fault| Error::damaged(format!("{:?}: {fault}", item.name)))?;
        }
        Ok(Batch::new(columns.take()?, None, 0))
    }

    fn message(
        &mut self,
        consumer: &Consumer,
        closure: u64,
        message: &MessageView<'_>,
        is_final: bool,
    ) -> Result<(), String> {
        let Self { items, gathering, has_news, .. } = self;
        let at = closure as usize;
        let Some(item) = items.get_mut(at) else { return Ok(()) };
        item.changed = now_utc();
        let fault = |fault: tapeline_omm::Malformed| fault.to_string();
        let kind = match message.class() {
            MessageClass::UPDATE => "update",
            MessageClass::REFRESH => "image",
            MessageClass::STATUS => "status",
            _ => return Ok(()),
        };
        if kind != "update" {
            *has_news = true;
            let header = message.header().map_err(fault)?;
            if let Some(state) = header.state() {
                item.set_state(&state);
            }
            if let Header::Refresh(refresh) = header {
                item.service_id = consumer.directory().named(&item.service).map_or(0, |service| service.id);
                item.has_image = true;
                if refresh.flags.has(flags::refresh::CLEAR_CACHE) {
                    item.values = LastValues::default();
                }
            }
        }
        if is_final {
            item.handle = None;
        }
        if let Container::FieldList(list) = message.open().map_err(fault)? {
            item.values.merge(&list).map_err(fault)?;
        }
        if let Some(gathering) = gathering {
            gathering.columns.add_message(&item.head(at, kind), message)?;
            *has_news |= gathering.count().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl Item {
    fn set_state(&mut self, state: &State<'_>) {
        self.is_suspect = state.data == DataState::SUSPECT;
        self.state = match (state.stream, state.data) {
            (StreamState::OPEN, DataState::SUSPECT) => "suspect",
            (StreamState::OPEN, _) => "open",
            (StreamState::NON_STREAMING, _) => "snapshot",
            (StreamState::CLOSED_RECOVER, _) => "closed_recover",
            _ => "closed",
        };
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(state.text));
    }

    fn head<'a>(&'a self, at: usize, kind: &'static str) -> RowHead<'a> {
        RowHead {
            sequence: 0,
            item: &self.name,
            number: at as u32,
            service: self.service_id,
            kind,
            event_time: Nanos(0),
            received_time: self.changed,
            published_time: Nanos(0),
            state: self.state,
            text: Some(&*self.text).filter(|text| !text.is_empty()),
            suspect: self.is_suspect,
            missing: 0,
        }
    }
}

/// Encodes an update with fields: the payload of a post.
fn payload(fields: &[(Fid, Value<'_>)]) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; 64 << 10];
    let header = UpdateHeader::new(Domain::MARKET_PRICE, 0, UpdateType::UNSPECIFIED, DataType::FIELD_LIST);
    let length = header.encode_with(&mut bytes, |room| {
        let mut list = FieldListEncoder::new(room)?;
        for (fid, value) in fields {
            list.value(*fid, value)?;
        }
        Ok(list.finish())
    });
    let length = length
        .map_err(|refused| Error::argument(format!("the fields fit in no post: {refused}"), "post fewer"))?;
    bytes.truncate(length);
    Ok(bytes)
}

impl Dialing<Consumer> for Items {
    fn connection(&mut self, _: &mut Consumer, event: ConnectionEvent<'_>) {
        self.has_news = true;
        self.connection = match event {
            ConnectionEvent::Connected { server, .. } => format!("connected to {server}"),
            ConnectionEvent::Disconnected { server, reason } => {
                self.is_ready = false;
                format!("no connection to {server}: {reason}")
            }
            ConnectionEvent::Note(note) => note.to_string(),
            _ => return,
        };
    }
}

impl ConsumerApplication for Items {
    fn event(&mut self, consumer: &mut Consumer, _: &mut dyn Outbox, event: ConsumerEvent<'_>) {
        self.has_news |= !matches!(event, ConsumerEvent::Message { .. });
        match event {
            ConsumerEvent::Ready => self.is_ready = true,
            ConsumerEvent::Message { closure, message, is_final, .. } => {
                if let Err(fault) = self.message(consumer, closure, message, is_final) {
                    let name = self.items.get(closure as usize).map_or("", |item| &item.name);
                    self.failed.get_or_insert_with(|| format!("a message of {name:?}: {fault}"));
                    self.has_news = true;
                }
            }
            ConsumerEvent::State { closure, state, is_final, .. } => {
                let at = closure as usize;
                let Some(item) = self.items.get_mut(at) else { return };
                item.set_state(&state);
                item.changed = now_utc();
                if is_final {
                    item.handle = None;
                }
                if let Some(gathering) = &mut self.gathering {
                    gathering.columns.add_without_fields(&item.head(at, "status"));
                    if let Err(error) = gathering.count() {
                        self.failed.get_or_insert_with(|| error.to_string());
                    }
                }
            }
            ConsumerEvent::Ack { ack, .. } => {
                let refusal = ack.nak_code.map(|code| match ack.text {
                    Some(text) => String::from_utf8_lossy(text).into_owned(),
                    None => code.to_string(),
                });
                // Nobody waits for others.
                if let Some(answer) = self.posts.get_mut(&ack.ack_id) {
                    *answer = Some(refusal.map_or(Ok(()), Err));
                }
            }
            ConsumerEvent::Ended { state } => self.ended = Some(state.to_string()),
            ConsumerEvent::Dictionary(dictionary) => self.dictionary = Arc::clone(dictionary),
            ConsumerEvent::Malformed(fault) => {
                self.failed.get_or_insert_with(|| format!("a message of the server: {fault}"));
            }
            _ => {}
        }
    }
}
