//! A plant within this process, for tests: a simulated exchange, a ring, a hub and a journal.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use pyo3::prelude::*;
use tapeline_feed::Protocol;
use tapeline_feed::itch::encode::LONGEST;
use tapeline_feed::moldudp64::{MoldSession, PacketBuilder, end_of_session, heartbeat};
use tapeline_feed::simulate::{Exchange, Schedule, SimulatedDay};
use tapeline_nanos::Nanos;
use tapeline_node::config::{Feed, Line, Recording};
use tapeline_node::hub::HubConfig;
use tapeline_node::journal::JournalConfig;
use tapeline_node::{Config, Events, Plant, Severity, Stop};

use crate::error::Error;

const SESSION: &str = "SIMULATED";
/// The most bytes of a datagram.
const DATAGRAM: usize = 1_400;
const DAY_NS: u64 = 86_400_000_000_000;
/// Warnings that are kept until they are asked for.
const MOST_WARNINGS: usize = 100;
/// How long a batch of messages is gathered at low rates.
const PERIOD: Duration = Duration::from_millis(1);

/// A running plant with its simulated exchange.
#[pyclass(frozen, module = "tapeline")]
pub(crate) struct PlantSource {
    stop: Stop,
    threads: Mutex<Vec<JoinHandle<Result<(), Error>>>>,
    hub: Option<SocketAddr>,
    /// Lets a plant of a file begin; `None` once it has, and for every other plant.
    start: Mutex<Option<mpsc::Sender<()>>>,
    /// Warnings of the plant.
    warnings: Arc<Mutex<Vec<String>>>,
    process: u32,
}

/// A plant's thread, and what it says when it is open.
struct Opening {
    thread: JoinHandle<Result<(), Error>>,
    hub: Option<SocketAddr>,
    warnings: Arc<Mutex<Vec<String>>>,
    start: mpsc::Sender<()>,
}

/// Opens a plant on a thread of its own, where it waits for the start. With `until_end` it ends with its feeds' sessions.
fn open(py: Python<'_>, config: Config, stop: &Stop, until_end: bool) -> PyResult<Opening> {
    let (ready, is_ready) = mpsc::channel();
    let (start, is_started) = mpsc::channel();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let (of_plant, of_events) = (stop.clone(), Arc::clone(&warnings));
    let thread = std::thread::Builder::new().name("plant".to_owned()).spawn(move || {
        let events = Events::new(move |event| {
            let mut warnings = of_events.lock().unwrap_or_else(PoisonError::into_inner);
            if matches!(event.severity, Severity::Warning | Severity::Error) && warnings.len() < MOST_WARNINGS
            {
                warnings.push(event.text.clone());
            }
        });
        let plant = match Plant::open(config, &of_plant, &events) {
            Ok(plant) => plant,
            Err(error) => {
                // The caller waits for it.
                let _ = ready.send(Err(Error::from(error)));
                return Ok(());
            }
        };
        let _ = ready.send(Ok(plant.ready().hub));
        // Without a start it was given up.
        if is_started.recv().is_err() {
            return Ok(());
        }
        let ended = plant.run(until_end);
        match (ended.refused, ended.failed) {
            (Some(refused), _) => Err(Error::ended(refused.to_string())),
            (_, Some(error)) => Err(Error::from(error)),
            _ => Ok(()),
        }
    })?;
    let opened =
        py.detach(move || is_ready.recv()).map_err(|_| Error::fault("the plant's thread has ended"))?;
    Ok(Opening { thread, hub: opened?, warnings, start })
}

#[pymethods]
impl PlantSource {
    #[new]
    #[pyo3(signature = (name, rate, symbols, seed, messages, hub, journal))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        py: Python<'_>,
        name: &str,
        rate: u64,
        symbols: u16,
        seed: u64,
        messages: Option<u64>,
        hub: Option<&str>,
        journal: Option<PathBuf>,
    ) -> PyResult<Self> {
        if rate == 0 {
            return Err(
                Error::argument("the rate is 0".to_owned(), "messages a second, such as 10_000").into()
            );
        }
        let ring = tapeline_ring::Name::new(name).map_err(Error::from)?;
        // The port is free now, and the plant takes it at once.
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let SocketAddr::V4(line) = free.local_addr()? else {
            return Err(Error::fault("no IPv4 address").into());
        };
        drop(free);
        let now =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
        let mut feed = Feed::new("simulated", Protocol::ItchMoldUdp64, Nanos(now - now % DAY_NS));
        feed.lines.push(Line::new("A", line));
        let mut config = Config::new("TAPELINE", ring);
        config.feeds.push(feed);
        config.hub = hub
            .map(|hub| match hub.parse() {
                Ok(address) => Ok(HubConfig::new(address)),
                Err(_) => {
                    let hint = "an address and a port: \"127.0.0.1:0\" takes any free port";
                    Err(Error::argument(format!("{hub:?} is not an address of a hub"), hint))
                }
            })
            .transpose()?;
        config.journal = journal.map(JournalConfig::new);
        let stop = Stop::default();
        let opening = open(py, config, &stop, false)?;
        let _ = opening.start.send(());
        let of_exchange = stop.clone();
        let day = SimulatedDay { seed, symbols, ..SimulatedDay::default() };
        let exchange = std::thread::Builder::new().name("exchange".to_owned()).spawn(move || {
            simulate(Exchange::new(day), Schedule::new(rate, None), messages, line, &of_exchange)
        })?;
        Ok(Self {
            stop,
            threads: Mutex::new(vec![exchange, opening.thread]),
            hub: opening.hub,
            start: Mutex::new(None),
            warnings: opening.warnings,
            process: std::process::id(),
        })
    }

    /// A plant whose feed is a file, which it reads as fast as its subscribers read the ring. It waits for `begin`.
    #[staticmethod]
    fn of_file(
        py: Python<'_>,
        name: &str,
        path: PathBuf,
        protocol: &str,
        midnight_ns: u64,
        orders: bool,
    ) -> PyResult<Self> {
        let ring = tapeline_ring::Name::new(name).map_err(Error::from)?;
        let protocol = Protocol::named(protocol).map_err(|unknown| {
            let known = Protocol::ALL.map(Protocol::name).join(", ");
            Error::argument(unknown.to_string(), &format!("the protocols are {known}"))
        })?;
        let mut feed = Feed::new("file", protocol, Nanos(midnight_ns));
        feed.file = Some(Recording { path, speed: None });
        feed.market_by_order = orders;
        let mut config = Config::new("FILE", ring);
        config.stall_limit = Duration::ZERO;
        config.max_items = 1_000_000;
        config.feeds.push(feed);
        let stop = Stop::default();
        let opening = open(py, config, &stop, true)?;
        Ok(Self {
            stop,
            threads: Mutex::new(vec![opening.thread]),
            hub: None,
            start: Mutex::new(Some(opening.start)),
            warnings: opening.warnings,
            process: std::process::id(),
        })
    }

    /// Lets the plant of a file begin.
    fn begin(&self) {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A thread that has ended says why in `end`.
        let _ = start.map(|start| start.send(()));
    }

    /// The plant's warnings so far, and forgets them.
    fn warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The address of the hub; `None` if there is none.
    #[getter]
    fn hub(&self) -> Option<String> {
        self.hub.map(|hub| hub.to_string())
    }

    /// Ends exchange and plant.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        if std::process::id() != self.process {
            return Err(Error::forked().into());
        }
        py.detach(|| self.join()).map_err(Into::into)
    }
}

impl PlantSource {
    fn join(&self) -> Result<(), Error> {
        self.stop.request();
        drop(self.start.lock().unwrap_or_else(PoisonError::into_inner).take());
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(Error::fault("a thread of the plant has panicked")))
        })
    }
}

impl Drop for PlantSource {
    fn drop(&mut self) {
        if std::process::id() == self.process {
            // Nobody is there to be told.
            let _ = self.join();
        }
    }
}

/// Sends the messages that are due, until all were sent and the session has ended, or until the stop.
fn simulate(
    mut exchange: Exchange,
    schedule: Schedule,
    messages: Option<u64>,
    to: SocketAddrV4,
    stop: &Stop,
) -> Result<(), Error> {
    let socket =
        UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| Error::fault(error.to_string()))?;
    let send = |datagram: &[u8]| {
        socket
            .send_to(datagram, to)
            .map(drop)
            .map_err(|error| Error::fault(format!("the exchange cannot send: {error}")))
    };
    let session = MoldSession::new(SESSION);
    let (began, mut done, mut heartbeat_at) = (Instant::now(), 0, Instant::now());
    let mut datagram = [0; DATAGRAM];
    let mut message = [0; LONGEST];
    let mut is_over = false;
    while !stop.is_requested() {
        let elapsed = began.elapsed().as_nanos() as u64;
        let mut sent = 0;
        while !is_over && schedule.due_ns(done) <= elapsed && sent < 100 {
            let Ok(mut packet) = PacketBuilder::new(&mut datagram, session, done + 1) else {
                return Err(Error::fault("no datagram holds a message"));
            };
            while schedule.due_ns(done) <= elapsed && packet.bytes() + 2 + LONGEST <= DATAGRAM {
                if messages.is_some_and(|messages| done >= messages) {
                    exchange.end_day();
                }
                let now =
                    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
                        as u64;
                let Some(length) = exchange.next(now % DAY_NS, &mut message) else {
                    is_over = true;
                    break;
                };
                if packet.push(&message[..length]).is_err() {
                    break;
                }
                done += 1;
            }
            let length = packet.finish();
            send(&datagram[..length])?;
            sent += 1;
            heartbeat_at = Instant::now() + Duration::from_millis(500);
        }
        if Instant::now() >= heartbeat_at {
            heartbeat_at = Instant::now() + Duration::from_millis(500);
            match is_over {
                true => send(&end_of_session(session, done + 1))?,
                false => send(&heartbeat(session, done + 1))?,
            }
        }
        if sent < 100 {
            std::thread::sleep(PERIOD);
        }
    }
    Ok(())
}
