//! A file that replaces a feed's lines: a capture of its datagrams, or the messages themselves.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapeline_client::nearest;
use tapeline_feed::capture::{self, Capture, ItchFile};
use tapeline_feed::line::{Line, MAX_LINES};
use tapeline_feed::normalise::Normaliser;
use tapeline_feed::symbols::Symbols;
use tapeline_feed::{Protocol, dbn, itch};
use tapeline_measure::figures::thousands;
use tapeline_measure::{Clock, Nanos};
use tapeline_plant::{Channel, PublishPolicy, Refused, RingPublish, Sequencer};

use crate::Error;
use crate::config::{Feed, Recording};
use crate::error::Context;
use crate::events::Events;

/// Maximum messages or datagrams per turn, and the number after which sleeping subscribers are woken.
const TURN: usize = 256;
const WAKE_EVERY: usize = 32;

/// A recording played into a channel. Reading costs one system call per half mebibyte.
pub(crate) struct Recorded {
    path: PathBuf,
    stream: Stream,
    speed: Option<f64>,
    /// When the first unit was recorded, and when it was played.
    origin: Option<(Nanos, Nanos)>,
    /// A unit that was read and is not due yet.
    held: Option<Held>,
    /// Messages played so far: the number of the last one.
    played: u64,
    /// The file was played to its end, or up to the damage.
    pub(crate) is_over: bool,
    /// What ended the file early.
    pub(crate) damage: Option<String>,
    events: Events,
}

enum Stream {
    /// Datagrams; each destination becomes a line.
    Datagrams(Capture<'static>, Vec<SocketAddr>),
    Messages(ItchFile<'static>),
    Records(dbn::File<'static>),
}

struct Held {
    due: Nanos,
    line: Option<Line>,
    bytes: Vec<u8>,
}

/// A recorded datagram, message or record.
struct Unit<'a> {
    recorded: Option<Nanos>,
    /// The line of a datagram; `None` for a message.
    line: Option<Line>,
    bytes: &'a [u8],
}

impl Recorded {
    /// Opens a recording, and gives the channel the metadata that precedes the messages. Warns of patterns of
    /// the feed's symbols that match none of the recording's symbols, if it names them.
    ///
    /// # Errors
    /// The file cannot be read, contains nothing of the feed's protocol, or nothing that is published under
    /// `publish`.
    pub(crate) fn open(
        recording: &Recording,
        feed: &Feed,
        publish: PublishPolicy,
        channel: &mut Channel,
        events: &Events,
    ) -> crate::Result<Self> {
        let path = recording.path.clone();
        let file = File::open(&path).with_context(|| {
            Error::hinted(
                format!("cannot open {}", path.display()),
                "a relative path starts at the configuration's folder",
            )
        })?;
        let opened = capture::open(file).with_context(|| path.display().to_string())?;
        let protocol = feed.protocol;
        let stream = match (opened, protocol) {
            (capture::Recording::Records(file), Protocol::Dbn) => {
                if let Some(metadata) = file.metadata() {
                    if publish == PublishPolicy::Changes
                        && let Some(kind) = metadata.kind().filter(|kind| !kind.is_published())
                    {
                        let name = kind.name().unwrap_or("unknown");
                        let what = format!(
                            "{} holds {name} records, which a plant does not publish",
                            path.display()
                        );
                        return Err(Error::hinted(what, used()));
                    }
                    let symbols = dbn::DbnSymbols::of(metadata);
                    warn_of_unknown(&path, feed.symbols.as_ref(), &symbols, events);
                    channel.name_by(&symbols);
                }
                Stream::Records(file)
            }
            (capture::Recording::Messages(file), Protocol::ItchMoldUdp64) => Stream::Messages(file),
            (capture::Recording::Datagrams(capture), _) if protocol.framing().is_some() => {
                Stream::Datagrams(capture, Vec::new())
            }
            (other, _) => {
                let holds = match other {
                    capture::Recording::Records(_) => "DBN records",
                    capture::Recording::Messages(_) => "ITCH messages",
                    capture::Recording::Datagrams(_) => "datagrams",
                };
                let what = format!(
                    "{} holds {holds}, and the feed's protocol is {}",
                    path.display(),
                    protocol.name()
                );
                return Err(Error::hinted(what, "`tapeline feed inspect` shows what a file holds"));
            }
        };
        Ok(Self {
            path,
            stream,
            speed: recording.speed,
            origin: None,
            held: None,
            played: 0,
            is_over: false,
            damage: None,
            events: events.clone(),
        })
    }

    /// Plays what is due, at most a turn's worth, and returns the number of units. At the end of the file the
    /// session ends.
    ///
    /// # Errors
    /// [`Refused`] when a tick could not be published.
    pub(crate) fn play(
        &mut self,
        channel: &mut Channel,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<usize, Refused> {
        let mut played = 0;
        while !self.is_over && played < TURN {
            let now = clock.now();
            if let Some(held) = self.held.take_if(|held| held.due <= now) {
                self.played = deliver(channel, held.line, &held.bytes, self.played, now, clock, to)?;
            } else if self.held.is_some() {
                break;
            } else {
                match self.stream.next() {
                    Ok(Some(unit)) => {
                        let due = due(&mut self.origin, self.speed, unit.recorded, now);
                        if due > now {
                            self.held = Some(Held { due, line: unit.line, bytes: unit.bytes.to_vec() });
                            break;
                        }
                        self.played = deliver(channel, unit.line, unit.bytes, self.played, now, clock, to)?;
                        if let Stream::Records(file) = &self.stream {
                            channel.expect(file.ahead());
                        }
                    }
                    Ok(None) => {
                        self.judge(channel);
                        self.end(channel, clock, to)?;
                    }
                    Err(error) => {
                        let said = format!("{:#}", Error::chain(&error));
                        self.events.error(format_args!("{}: {said}", self.path.display()), None);
                        self.damage = Some(said);
                        self.end(channel, clock, to)?;
                    }
                }
            }
            played += 1;
            if played % WAKE_EVERY == 0 {
                to.publisher().ring().flush();
            }
        }
        if played > 0 {
            to.publisher().ring().flush();
        }
        Ok(played)
    }

    /// Reports which packets or records were not used: files with several kinds of records, or without
    /// metadata, show that at the end only.
    fn judge(&mut self, channel: &Channel) {
        if let Stream::Datagrams(capture, _) = &self.stream {
            for (skip, count) in capture.counts().skipped() {
                let count = thousands(count);
                let (path, why) = (self.path.display(), skip.name());
                self.events.note(format_args!("{path}: {count} packets left out: {why}"));
            }
        }
        let (Stream::Records(_), Normaliser::Dbn(dbn)) = (&self.stream, channel.normaliser()) else { return };
        let (mut unused, mut is_any_used) = (Vec::new(), false);
        for (kind, count) in (0..=u8::MAX).map(|letter| (dbn::RecordKind(letter), dbn.records().of(letter))) {
            is_any_used |= kind.is_published() && count > 0;
            if let Some(name) = kind.name().filter(|_| kind.is_unused() && count > 0) {
                unused.push(format!("{} {name}", thousands(count)));
            }
        }
        let path = self.path.display();
        if is_any_used || self.played == 0 || channel.passed_over() > 0 {
            if !unused.is_empty() {
                let unused = unused.join(", ");
                self.events.note(format_args!("{path}: {unused} records are not published"));
            }
            return;
        }
        let said = format!("none of its {} records are published", thousands(self.played));
        self.events.error(format_args!("{path}: {said}"), Some(used()));
        self.damage = Some(said);
    }

    fn end(
        &mut self,
        channel: &mut Channel,
        clock: &Clock,
        to: &mut Sequencer<RingPublish>,
    ) -> Result<(), Refused> {
        self.is_over = true;
        let last = match &self.stream {
            Stream::Datagrams(..) => {
                channel.arbiter().next_sequence().map_or(0, |next| next.saturating_sub(1))
            }
            Stream::Messages(_) | Stream::Records(_) => self.played,
        };
        channel.end(last, clock, to)
    }

    /// Time until something is due.
    pub(crate) fn until_due(&self, clock: &Clock) -> Duration {
        match &self.held {
            Some(held) => Duration::from_nanos(u64::try_from(held.due.since(clock.now())).unwrap_or(0)),
            None if self.is_over => Duration::MAX,
            None => Duration::ZERO,
        }
    }
}

/// A hint that lists the kinds of DBN records that are published.
fn used() -> String {
    format!("a plant uses {}", dbn::RecordKind::published().collect::<Vec<_>>().join(", "))
}

/// Warns of patterns that match none of a file's symbols; a definition in it may still bring one.
fn warn_of_unknown(path: &Path, wanted: Option<&Symbols>, symbols: &dbn::DbnSymbols, events: &Events) {
    let Some(wanted) = wanted.filter(|_| !symbols.is_empty()) else { return };
    let known: Vec<&str> = symbols.names().collect();
    for symbol in wanted.without_match(&known).iter().filter(|symbol| !symbol.is_empty()) {
        let near = nearest(symbol, &known).map(|near| format!("; there is {near}")).unwrap_or_default();
        events.warning(format_args!("{}: nothing is called {symbol}{near}", path.display()));
    }
}

/// When a recorded unit must be played. A unit without a time, or older than the first, is due at once.
fn due(
    origin: &mut Option<(Nanos, Nanos)>,
    speed: Option<f64>,
    recorded: Option<Nanos>,
    now: Nanos,
) -> Nanos {
    let (Some(speed), Some(recorded)) = (speed, recorded) else { return now };
    let (first, begun) = *origin.get_or_insert((recorded, now));
    let after = u64::try_from(recorded.since(first)).unwrap_or(0);
    begun + (after as f64 / speed) as u64
}

/// Passes one unit to the channel. Returns the number of the last message.
fn deliver(
    channel: &mut Channel,
    line: Option<Line>,
    bytes: &[u8],
    played: u64,
    now: Nanos,
    clock: &Clock,
    to: &mut Sequencer<RingPublish>,
) -> Result<u64, Refused> {
    match line {
        Some(line) => channel.datagram(line, bytes, now, clock, to).map(|()| played),
        None => channel.message(played + 1, bytes, now, clock, to).map(|()| played + 1),
    }
}

impl Stream {
    fn next(&mut self) -> Result<Option<Unit<'_>>, capture::Error> {
        match self {
            Self::Datagrams(capture, destinations) => {
                let Some(datagram) = capture.next()? else { return Ok(None) };
                let known = destinations.iter().position(|destination| *destination == datagram.destination);
                let at = known.unwrap_or(destinations.len());
                if known.is_none() && at < MAX_LINES - 1 {
                    destinations.push(datagram.destination);
                }
                // Destinations beyond the last line share it.
                let line = Line::new(at.min(MAX_LINES - 1));
                Ok(Some(Unit { recorded: Some(datagram.time), line, bytes: datagram.payload }))
            }
            Self::Messages(file) => Ok(file.next()?.map(|bytes| {
                let decoded = itch::decode(bytes).ok();
                let prefix = decoded.as_ref().and_then(itch::Message::prefix);
                Unit { recorded: prefix.map(|prefix| Nanos(prefix.ts_ns)), line: None, bytes }
            })),
            Self::Records(file) => Ok(file.next()?.map(|bytes| Unit {
                recorded: dbn::recorded_ns(bytes).map(Nanos),
                line: None,
                bytes,
            })),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_that_of_the_recording_times_the_speed() {
        let mut origin = None;
        let at = |origin: &mut _, recorded| due(origin, Some(10.0), Some(Nanos(recorded)), Nanos(1_000));
        assert_eq!(at(&mut origin, 500), Nanos(1_000), "the first is due at once");
        assert_eq!(at(&mut origin, 700), Nanos(1_020));
        assert_eq!(at(&mut origin, 100), Nanos(1_000), "what is older than the first too");
        assert_eq!(due(&mut origin, None, Some(Nanos(9_999)), Nanos(3)), Nanos(3));
        assert_eq!(due(&mut origin, Some(1.0), None, Nanos(3)), Nanos(3));
    }
}
