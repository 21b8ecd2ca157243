//! The source of a server's messages: captures that are read at start, or a plant's ring that is followed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tapeline_console::{FilePath, Hinted, Stop, arguments, log, paths};
use tapeline_feed::capture::{Capture, ItchFile, Recording};
use tapeline_feed::history::{History, Limits};
use tapeline_feed::iex::tp;
use tapeline_feed::line::{Arbiter, Line, MAX_LINES, Sink};
use tapeline_feed::moldudp64::MoldSession;
use tapeline_measure::{Nanos, figures};
use tapeline_node::ticks::{self, Next};
use tapeline_perf::exchange::no_datagrams;
use tapeline_plant::session_begun;
use tapeline_plant::tick::{Flags, Kind, Tick};
use tapeline_ring::{Name, Start, Subscriber};

use super::inspect::{open, patient};
use crate::plant::{is_of_message, status_text};

/// The messages to serve.
#[derive(Debug, Args)]
pub(super) struct PastArgs {
    /// Captures (pcap, pcapng) of one feed's lines, or files of ITCH messages one after another, plain or gzipped
    #[arg(value_name = "FILE", required_unless_present = "ring")]
    files: Vec<FilePath>,
    /// Serve what a plant publishes to this ring instead; the plant needs publish = "every-message"
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    ring: Option<String>,
    /// The plant's feed to serve, by its index in the configuration, from 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "ring")]
    feed: u16,
    /// Read only captured traffic to this destination
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddr>)]
    only: Option<SocketAddr>,
    /// Session name, up to ten characters: for files of messages (TAPELINE if not given), or for a plant whose session
    /// began before the oldest tick in its ring
    #[arg(long, value_name = "NAME", value_parser = arguments::session)]
    session: Option<String>,
    /// Memory limit for messages; beyond it the oldest are dropped
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = memory)]
    memory: usize,
}

/// Read interval of a ring, and the maximum number of frames a read, so that requests have their turn.
const FOLLOW: Duration = Duration::from_millis(5);
const FRAMES: usize = 65_536;
/// Number of datagrams or messages between two checks for a stop request.
const LOOK_EVERY: u64 = 65_536;

/// Minimum memory: the longest message fits, with some reserve.
const LEAST_MEMORY: u64 = 128 << 10;

/// Parses a memory limit between the minimum and the machine's memory: all of it is allocated at start, and a failed
/// allocation aborts the process.
fn memory(text: &str) -> Result<usize, String> {
    let size = arguments::size(text)?;
    let machine = rustix::system::sysinfo();
    let most = machine.totalram.saturating_mul(machine.mem_unit.into());
    if size < LEAST_MEMORY {
        return Err(format!("'{text}' is too small for the longest message; give at least 128KiB"));
    }
    if size > most {
        return Err(format!("'{text}' is more than this machine has; give at most {}MiB", most >> 20));
    }
    usize::try_from(size).map_err(|_| format!("'{text}' is more than can be addressed"))
}

/// The messages to serve; the history can grow.
pub(super) struct Past {
    history: History,
    /// The ring that the history grows from, and the number of its feed.
    ring: Option<(Subscriber, u16)>,
}

impl Past {
    /// The messages that can be served now.
    pub(super) fn history(&self) -> &History {
        &self.history
    }

    /// Maximum wait before [`follow`](Self::follow) must be called: a ring does not wait for its reader.
    pub(super) fn patience(&self, longest: Duration) -> Duration {
        if self.ring.is_some() { longest.min(FOLLOW) } else { longest }
    }

    /// Takes the messages that the plant has published since the last call.
    ///
    /// # Errors
    /// The ring is damaged, or it overwrote ticks before they were read: those cannot be served. Restart the server.
    pub(super) fn follow(&mut self) -> anyhow::Result<()> {
        let Some((subscriber, feed)) = &mut self.ring else { return Ok(()) };
        for _ in 0..FRAMES {
            match ticks::next(subscriber)? {
                Next::Tick(tick) => {
                    if tick.header.channel == *feed {
                        take(&mut self.history, &tick)?;
                    }
                }
                Next::Nothing => break,
                Next::Lost(lost) => return Err(lost.of("this reader").into()),
                Next::End => {
                    log::note("the plant ended; what it published is still served");
                    self.ring = None;
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Adds a tick's message, and its session changes, to the history.
fn take(history: &mut History, tick: &Tick<'_>) -> anyhow::Result<()> {
    let has = |flag| tick.header.flags.contains(flag);
    if tick.header.kind != Kind::Status {
        if has(Flags::SOURCE) {
            history.push(tick.header.feed_seq, tick.source);
        } else if !has(Flags::RESET) && is_of_message(tick) {
            let hint = "set publish = \"every-message\" in the plant's configuration and start it again";
            return Err(Hinted::new("this plant publishes changes only, which cannot be served", hint).into());
        }
    } else if has(Flags::RESET) {
        let text = status_text(tick)?.unwrap_or_default();
        history.begin(MoldSession::new(session_begun(&text).unwrap_or_default()));
    } else if has(Flags::END_OF_SESSION) {
        history.end_of_session(tick.header.feed_seq + 1);
    } else if has(Flags::GAP) {
        history.gap(tick.header.feed_seq, tick.header.feed_seq);
    }
    Ok(())
}

impl PastArgs {
    /// Reads all files or joins the ring; prints notes for the user on standard error.
    pub(super) fn open(&self, stop: &Stop) -> anyhow::Result<Past> {
        let Some(ring) = &self.ring else { return Ok(Past { history: self.read(stop)?, ring: None }) };
        let subscriber =
            Subscriber::join_as(&Name::new(ring)?, Start::Oldest, "serve").with_context(|| {
                Hinted::new(format!("cannot join the ring {ring}"), "`tapeline ring ls` lists rings")
            })?;
        let mut history = self.empty();
        if let Some(session) = &self.session {
            history.begin(MoldSession::new(session));
        }
        let mut past = Past { history, ring: Some((subscriber, self.feed)) };
        past.follow()?;
        Ok(past)
    }

    fn empty(&self) -> History {
        // An index entry takes 8 bytes, an ITCH message about 30.
        History::new(Limits { messages: self.memory / 32, bytes: self.memory - self.memory / 4 })
    }

    fn read(&self, stop: &Stop) -> anyhow::Result<History> {
        let mut history = self.empty();
        let mut captures = Vec::new();
        let mut next = 1;
        for path in &self.files {
            match open(path)?.0 {
                Recording::Datagrams(capture) => captures.push(Source::new(capture, path, self.only)?),
                Recording::Messages(file) => {
                    if next == 1 {
                        history.begin(MoldSession::new(self.session.as_deref().unwrap_or("TAPELINE")));
                    }
                    next = messages(file, path, next, stop, &mut history)?;
                }
                Recording::Records(_) => return Err(no_datagrams(path)),
            }
        }
        if !captures.is_empty() && next > 1 {
            let hint = "serve captures of packets and files of messages one kind at a time";
            return Err(Hinted::new("these files are of two kinds that cannot be combined", hint).into());
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
            let (count, first) = (figures::thousands(history.forgotten()), history.first());
            log::note(format_args!(
                "{count} messages did not fit in --memory: the oldest message served is {first}"
            ));
        }
        // No more follow, whether the capture has an end of session or not.
        let next = history.next();
        history.end_of_session(next);
        Ok(history)
    }
}

/// Reads a file of messages; returns the sequence after its last message.
fn messages(
    mut file: ItchFile<'_>,
    path: &Path,
    mut next: u64,
    stop: &Stop,
    history: &mut History,
) -> anyhow::Result<u64> {
    while let Some(message) = file.next().with_context(|| paths::shown(&path).to_string())? {
        history.push(next, message);
        next += 1;
        if next.is_multiple_of(LOOK_EVERY) && stop.requested() {
            break;
        }
    }
    Ok(next)
}

/// Reads captures as the lines of one feed, in time order.
fn arbitrate(
    mut sources: Vec<Source<'_>>,
    only: Option<SocketAddr>,
    stop: &Stop,
    history: &mut History,
) -> anyhow::Result<()> {
    let mut arbiter = Arbiter::new(patient());
    let mut seen: u64 = 0;
    loop {
        let open = sources.iter_mut().enumerate().filter(|(_, source)| !source.ended);
        let Some((number, source)) = open.min_by_key(|(_, source)| source.time) else { break };
        if tp::is_likely(&source.payload) {
            // Some of these also parse as MoldUDP64 packets, with meaningless sequences.
            let hint =
                "only MoldUDP64 messages and ITCH files can be served; leave IEX out, with --only if needed";
            return Err(Hinted::new(format!("{} holds IEX-TP", paths::shown(&source.path)), hint).into());
        }
        if let Some(line) = Line::new(number) {
            // Datagrams of another protocol are other traffic.
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
        let missing = figures::thousands(missing);
        log::note(format_args!("{missing} messages are missing on every line and cannot be served"));
    }
    Ok(())
}

/// An open capture with its next datagram.
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

    /// Reads the next datagram for the requested destination.
    fn advance(&mut self, only: Option<SocketAddr>) -> anyhow::Result<()> {
        while let Some(datagram) =
            self.capture.next().with_context(|| paths::shown(&self.path).to_string())?
        {
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
