//! Where a server's messages come from: captures that are read at the start, or a plant's ring that is followed.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tapeline_feed::capture::{self, Capture, ItchFile, Recording};
use tapeline_feed::history::{History, Limits};
use tapeline_feed::line::{self, Arbiter, Line, MAX_LINES, Sink};
use tapeline_feed::moldudp64::Session;
use tapeline_measure::{Nanos, figures};

use super::dbn_report;
use crate::arguments;
use crate::failure::Hinted;
use crate::stop::Stop;

/// What to serve.
#[derive(Debug, Args)]
pub(super) struct PastArgs {
    /// Captures (pcap, pcapng) of one feed's lines, or files of ITCH messages one after another, plain or gzipped
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Take only what the captures show going to this destination
    #[arg(long, value_name = "ADDRESS:PORT")]
    only: Option<SocketAddr>,
    /// The session of messages from files of messages, up to ten characters
    #[arg(long, default_value = "TAPELINE")]
    session: String,
    /// How much memory the messages may take; beyond it the oldest go
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = arguments::size)]
    memory: u64,
}

/// Nothing is lost by waiting when the end is known: a message that comes late in a file is no gap. A year.
const PATIENCE_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// Between two looks whether the user wants to end, in datagrams or messages.
const LOOK_EVERY: u64 = 65_536;

impl PastArgs {
    /// Reads everything; says on standard error what the user should know about it.
    pub(super) fn read(&self, stop: &Stop) -> anyhow::Result<History> {
        let memory = usize::try_from(self.memory).unwrap_or(usize::MAX);
        // A place takes 8 bytes, and a message of ITCH some 30.
        let mut history = History::new(Limits { messages: memory / 32, bytes: memory - memory / 4 });
        let mut captures = Vec::new();
        let mut next = 1;
        for path in &self.files {
            let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
            match capture::open(file).with_context(|| path.display().to_string())? {
                Recording::Datagrams(capture) => captures.push(Source::new(capture, path, self.only)?),
                Recording::Messages(file) => {
                    if next == 1 {
                        history.begin(Session::new(&self.session));
                    }
                    next = messages(file, path, next, stop, &mut history)?;
                }
                Recording::Records(_) => return Err(dbn_report::no_datagrams(path)),
            }
        }
        if !captures.is_empty() && next > 1 {
            let hint = "serve captures of packets and files of messages one kind at a time";
            return Err(Hinted::new("these files are of two kinds that cannot be put together", hint).into());
        }
        if captures.len() > MAX_LINES {
            let hint =
                format!("a feed has at most {MAX_LINES} lines; serve each feed from a process of its own");
            return Err(Hinted::new(format!("{} captures are too many", captures.len()), hint).into());
        }
        arbitrate(captures, self.only, stop, &mut history)?;
        if history.next() == 1 {
            let hint = "`tapeline feed inspect` shows what a file holds";
            return Err(Hinted::new("there are no numbered messages in these files", hint).into());
        }
        if history.forgotten() > 0 {
            anstream::eprintln!(
                "note: {} messages did not fit in --memory: the oldest that is served is {}",
                figures::thousands(history.forgotten()),
                history.first()
            );
        }
        // Nothing more will come, whether the capture says so or not.
        let next = history.next();
        history.end_of_session(next);
        Ok(history)
    }
}

/// Reads a file of messages; gives the sequence after its last.
fn messages(
    mut file: ItchFile<'_>,
    path: &Path,
    mut next: u64,
    stop: &Stop,
    history: &mut History,
) -> anyhow::Result<u64> {
    while let Some(message) = file.next().with_context(|| path.display().to_string())? {
        history.push(next, message);
        next += 1;
        if next.is_multiple_of(LOOK_EVERY) && stop.requested() {
            break;
        }
    }
    Ok(next)
}

/// Reads captures as the lines of one feed, in the order of their times.
fn arbitrate(
    mut sources: Vec<Source<'_>>,
    only: Option<SocketAddr>,
    stop: &Stop,
    history: &mut History,
) -> anyhow::Result<()> {
    let mut arbiter = Arbiter::new(line::Settings {
        window_age_ns: PATIENCE_NS,
        session_hold_ns: PATIENCE_NS,
        max_jump: u64::MAX,
        ..line::Settings::default()
    });
    let mut seen: u64 = 0;
    loop {
        let open = sources.iter_mut().enumerate().filter(|(_, source)| !source.ended);
        let Some((number, source)) = open.min_by_key(|(_, source)| source.time) else { break };
        if let Some(line) = Line::new(number) {
            // What is no packet of this protocol is other traffic.
            let _ = arbiter.datagram(line, &source.payload, source.time, history);
        }
        source.advance(only)?;
        seen += 1;
        if seen.is_multiple_of(LOOK_EVERY) && stop.requested() {
            break;
        }
    }
    arbiter.flush(history);
    let missing = arbiter.statistics().missing;
    if missing > 0 {
        anstream::eprintln!(
            "note: {} messages are on none of the lines and cannot be served",
            figures::thousands(missing)
        );
    }
    Ok(())
}

/// A capture that is being read, with its next datagram.
struct Source<'r> {
    capture: Capture<'r>,
    path: PathBuf,
    time: Nanos,
    payload: Vec<u8>,
    ended: bool,
}

impl<'r> Source<'r> {
    fn new(capture: Capture<'r>, path: &Path, only: Option<SocketAddr>) -> anyhow::Result<Self> {
        let (path, payload) = (path.to_owned(), Vec::new());
        let mut source = Self { capture, path, time: Nanos(0), payload, ended: false };
        source.advance(only)?;
        Ok(source)
    }

    /// Reads the next datagram that was asked for.
    fn advance(&mut self, only: Option<SocketAddr>) -> anyhow::Result<()> {
        while let Some(datagram) = self.capture.next().with_context(|| self.path.display().to_string())? {
            if only.is_none_or(|only| only == datagram.destination) {
                self.time = datagram.time;
                self.payload.clear();
                self.payload.extend_from_slice(datagram.payload);
                return Ok(());
            }
        }
        self.ended = true;
        Ok(())
    }
}
