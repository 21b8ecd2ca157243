//! A client of a media driver with one stream, which connects again after it has lost the driver.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};

use rusteron_client::{Aeron, AeronCError, AeronCnc, AeronContext, AeronErrorHandlerCallback};
use tapeline_nanos::Nanos;

use super::AeronOptions;
use super::counters::DriverCounters;
use crate::Error;

/// How often a missing driver is looked for.
const RETRY_NS: i64 = 500_000_000;
/// How often the client's own work is done: keepalives, publications and subscriptions that came or went.
const WORK_NS: i64 = 1_000_000;
/// A driver writes a heartbeat every second; without one for this long it counts as dead.
pub(super) const DRIVER_TIMEOUT_MS: u64 = 5_000;

/// A change of the connection to a media driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AeronChange {
    /// The stream is open.
    Connected,
    /// The driver is lost, or has closed the stream. The connection is tried again.
    Lost(String),
    /// There is no driver, or the driver refuses the stream. The connection is tried again.
    Waiting(String),
}

/// One kind of stream.
pub(super) trait AeronStream: Sized {
    /// A stream that the driver has not confirmed yet.
    type Pending;

    fn add(client: &Aeron, channel: &CString, stream: i32) -> Result<Self::Pending, AeronCError>;
    /// Returns the stream once the driver has confirmed it.
    fn poll(pending: &Self::Pending) -> Result<Option<Self>, AeronCError>;
    fn is_closed(&self) -> bool;
    /// Returns the number that the driver has given the stream.
    fn registration(&self) -> Result<i64, AeronCError>;
}

/// The last error that the client told.
#[derive(Clone, Default)]
struct LastError(Arc<Mutex<String>>);

impl LastError {
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AeronErrorHandlerCallback for LastError {
    fn handle_aeron_error_handler(&mut self, _: std::ffi::c_int, message: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text(message);
    }
}

enum State<S: AeronStream> {
    Closed,
    Pending { pending: S::Pending, client: Aeron },
    // Dropped in this order: the stream before its client.
    Open { stream: S, client: Aeron },
}

/// A stream, and the client to which it belongs.
pub(super) struct AeronConnection<S: AeronStream> {
    channel: CString,
    stream: i32,
    folder: CString,
    state: State<S>,
    tried: Nanos,
    worked: Nanos,
    /// What was last told while there is no connection, so that it is told once.
    told: String,
    error: LastError,
    losses: u64,
}

impl<S: AeronStream> AeronConnection<S> {
    pub(super) fn new(options: &AeronOptions) -> Result<Self, Error> {
        let failed = |cause: String| Error::Aeron { what: format!("use {}", options.channel), cause };
        let channel = CString::new(options.channel.as_str()).map_err(|error| failed(error.to_string()))?;
        let folder = match &options.folder {
            Some(folder) => {
                CString::new(folder.as_os_str().as_bytes()).map_err(|error| failed(error.to_string()))?
            }
            None => {
                let context =
                    AeronContext::new().map_err(|error| failed(text(error.get_last_err_message())))?;
                CString::new(context.get_dir()).map_err(|error| failed(error.to_string()))?
            }
        };
        Ok(Self {
            channel,
            stream: options.stream,
            folder,
            state: State::Closed,
            tried: Nanos(0),
            worked: Nanos(0),
            told: String::new(),
            error: LastError::default(),
            losses: 0,
        })
    }

    /// Returns the stream if it is open.
    #[inline]
    pub(super) const fn stream(&self) -> Option<&S> {
        match &self.state {
            State::Open { stream, .. } => Some(stream),
            _ => None,
        }
    }

    /// Returns what the driver counts for the stream, if it is open.
    pub(super) fn counters(&self) -> Option<DriverCounters> {
        let State::Open { stream, client } = &self.state else { return None };
        Some(DriverCounters::read(client, stream.registration().ok()?))
    }

    /// Returns how often an open stream was lost.
    pub(super) const fn losses(&self) -> u64 {
        self.losses
    }

    /// Closes the stream, which opens again later.
    pub(super) fn close(&mut self) {
        self.state = State::Closed;
    }

    /// Does the client's work, if it is due. Costs a comparison otherwise.
    #[inline]
    pub(super) fn turn(&mut self, now: Nanos) -> Option<AeronChange> {
        // A clock that was set back does not stop the work.
        if now.since(self.worked).unsigned_abs() < WORK_NS.unsigned_abs() {
            return None;
        }
        self.worked = now;
        self.work(now)
    }

    #[cold]
    fn work(&mut self, now: Nanos) -> Option<AeronChange> {
        match std::mem::replace(&mut self.state, State::Closed) {
            State::Closed => {
                if now.since(self.tried).unsigned_abs() < RETRY_NS.unsigned_abs() {
                    return None;
                }
                self.tried = now;
                match self.connect() {
                    Ok(state) => self.state = state,
                    Err(reason) => return self.wait(reason),
                }
                None
            }
            State::Pending { pending, client } => {
                // Its errors are the next line's, or those of the last error.
                let _ = client.main_do_work();
                match S::poll(&pending) {
                    Ok(None) => {
                        self.state = State::Pending { pending, client };
                        None
                    }
                    Ok(Some(stream)) => {
                        self.state = State::Open { stream, client };
                        self.told.clear();
                        Some(AeronChange::Connected)
                    }
                    Err(error) => {
                        let reason = text(error.get_last_err_message());
                        self.wait(reason)
                    }
                }
            }
            State::Open { stream, client } => {
                let _ = client.main_do_work();
                if !stream.is_closed() {
                    self.state = State::Open { stream, client };
                    return None;
                }
                self.losses += 1;
                self.tried = now;
                let reason = self.error.take();
                let reason =
                    if reason.is_empty() { "the driver has closed the stream".to_owned() } else { reason };
                Some(AeronChange::Lost(reason))
            }
        }
    }

    /// Returns a reason to wait the first time that it is the reason.
    fn wait(&mut self, reason: String) -> Option<AeronChange> {
        if self.told == reason {
            return None;
        }
        self.told.clone_from(&reason);
        Some(AeronChange::Waiting(reason))
    }

    /// Connects if a driver lives: Aeron's own connecting would wait for one.
    fn connect(&self) -> Result<State<S>, String> {
        if !driver_lives(&self.folder) {
            return Err(format!("no media driver lives in {}", self.folder.to_string_lossy()));
        }
        let open = || -> Result<State<S>, AeronCError> {
            let context = AeronContext::new()?;
            context.set_dir(&self.folder)?;
            context.set_driver_timeout_ms(DRIVER_TIMEOUT_MS)?;
            context.set_use_conductor_agent_invoker(true)?;
            // Without one, Aeron ends the process at an error.
            context.set_error_handler(Some(self.error.clone()))?;
            let client = Aeron::new(&context)?;
            client.start()?;
            let pending = S::add(&client, &self.channel, self.stream)?;
            Ok(State::Pending { pending, client })
        };
        open().map_err(|error| text(error.get_last_err_message()))
    }
}

/// Whether the driver of a folder has written a heartbeat within its time-out. Does not wait.
pub(super) fn driver_lives(folder: &CStr) -> bool {
    let heartbeat = AeronCnc::open(folder).and_then(|cnc| cnc.get_to_driver_heartbeat_ms());
    heartbeat.is_ok_and(|heartbeat| Aeron::epoch_clock() - heartbeat <= DRIVER_TIMEOUT_MS as i64)
}

/// What Aeron says of an error, on one line: the error, and the reasons without the names of functions and files before them.
pub(super) fn text(message: &str) -> String {
    let lines = message.lines().map(|line| {
        let line = line.trim();
        if line.starts_with('[') { line.split_once("] ").map_or("", |(_, reason)| reason) } else { line }
    });
    let mut said = String::new();
    for line in lines.filter(|line| !line.is_empty()) {
        if !said.is_empty() {
            said.push_str(": ");
        }
        said.push_str(line);
    }
    said
}
