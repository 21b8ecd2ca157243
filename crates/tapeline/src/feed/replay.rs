//! `tapeline feed replay`: a capture onto the network, as it was, faster, or as fast as it goes.

use std::fs::File;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tapeline_feed::capture::{self, Capture, Packer, Packing, Recording};
use tapeline_feed::moldudp64::{Session, end_of_session, heartbeat};
use tapeline_feed::simulate::Schedule;
use tapeline_measure::{Clock, Nanos, Pacer, Waiting, figures};

use super::dbn_report;
use super::faults::{self, Done, Faults};
use super::lines::{BATCH, Lines, Route, Staged};
use crate::arguments;
use crate::output::{self, Format, Progress};
use crate::stop::Stop;

/// How long a feed stays silent before it sends a heartbeat, and the interval of repeated ends of session.
const HEARTBEAT_NS: u64 = 1_000_000_000;
/// How long a wait goes on before it looks whether the user wants to end.
const LOOK_NS: u64 = 100_000_000;
/// How often the end of a session is said at once.
const ENDS: usize = 3;
/// At original speed, messages this close together travel in one datagram.
const TOGETHER_NS: u64 = 1_000_000;

/// The options; the help is with the subcommand.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed replay day.pcap.gz --to 239.255.12.111:26477 --speed 100x\n  \
    tapeline feed replay day.itch --to 239.255.12.111:26477 --also 239.255.230.111:26478 --rate 1M")]
pub(super) struct Replay {
    /// Captures (pcap, pcapng) or files of ITCH messages, plain or gzipped, one after another
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Where to send: a multicast group, or an address for unicast
    #[arg(long, value_name = "GROUP:PORT")]
    to: SocketAddrV4,
    #[command(flatten)]
    route: Route,
    /// `original`, `max`, or a factor such as `10x`
    #[arg(long, default_value = "original", value_parser = speed)]
    speed: Speed,
    /// Send so many a second instead: messages of a file of messages, datagrams of a capture
    #[arg(long, value_parser = arguments::rate, conflicts_with = "speed")]
    rate: Option<u64>,
    /// What goes into a datagram made from a file of messages: one message, or as many as fit in 1,400 bytes (at an original
    /// pace, those within a millisecond) [default: max]
    #[arg(long)]
    pack: Option<Pack>,
    /// The session of datagrams made from a file of messages, up to ten characters [default: TAPELINE]
    #[arg(long, value_parser = arguments::session)]
    session: Option<String>,
    /// Send only what the capture shows going to this destination
    #[arg(long, value_name = "ADDRESS:PORT")]
    only: Option<SocketAddr>,
    /// Send everything so many times
    #[arg(long = "loop", value_name = "TIMES", default_value_t = 1)]
    times: u64,
    /// Go on repeating the end of the session for so long
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = arguments::duration)]
    linger: Duration,
    /// How to print what was sent
    #[arg(long, default_value = "table")]
    format: Format,
}

/// What goes into one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Pack {
    /// One message
    #[value(name = "1")]
    One,
    /// As many messages as fit
    Max,
}

/// How fast, compared to the capture.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    Factor(f64),
    Max,
}

fn speed(text: &str) -> Result<Speed, String> {
    match text {
        "max" => return Ok(Speed::Max),
        "original" => return Ok(Speed::Factor(1.0)),
        _ => {}
    }
    let factor = text.strip_suffix(['x', 'X', '×']).and_then(|factor| factor.parse().ok());
    match factor {
        Some(factor) if (0.001..=1e9).contains(&factor) => Ok(Speed::Factor(factor)),
        _ => Err(format!("'{text}' is no speed; write original, max, or a factor such as 10x or 0.5x")),
    }
}

/// When datagrams are due.
#[derive(Clone, Copy, Debug)]
enum Pace {
    Original(f64),
    Rate(Schedule),
    Max,
}

/// What was sent, for programs.
#[derive(Debug, Serialize)]
struct Outcome {
    datagrams: u64,
    /// Messages packed here; absent where the datagrams came from captures.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
    bytes: u64,
    lines: usize,
    heartbeats: u64,
    duration_ns: u64,
    datagrams_per_second: f64,
    bytes_per_second: f64,
    back_pressure: u64,
    back_pressure_ns: u64,
    latest_ns: u64,
    /// What the faults did, by line.
    #[serde(skip_serializing_if = "Option::is_none")]
    faults: Option<Done>,
    interrupted: bool,
}

impl Replay {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let lines = Lines::open(self.to, &self.route)?;
        if let Some(advice) = lines.advice() {
            anstream::eprintln!("note: {advice}");
        }
        let clock = Clock::calibrate();
        let start = clock.now();
        let pace = match (self.rate, self.speed) {
            (Some(rate), _) => Pace::Rate(Schedule::new(rate, None)),
            (None, Speed::Factor(factor)) => Pace::Original(factor),
            (None, Speed::Max) => Pace::Max,
        };
        let mut player = Player {
            lines,
            stop,
            progress: Progress::counting("replaying", "datagrams", None),
            pace,
            session: Session::new(self.session.as_deref().unwrap_or("TAPELINE")),
            staged: Staged::new(capture::LARGEST_PACKET / BATCH),
            start,
            now: start,
            last_sent: start,
            recalibrate_at: start + HEARTBEAT_NS,
            show_at: start,
            clock,
            origin: None,
            due: start,
            units: 0,
            next_sequence: None,
            heartbeats: 0,
            latest_ns: 0,
        };
        if self.format == Format::Table {
            anstream::eprintln!(
                "replaying {} to {}; Ctrl-C ends it",
                self.how_fast(),
                player.lines.describe()
            );
        }
        let finished = match self.play(&mut player) {
            Ok(finished) => finished,
            Err(error) => {
                // What was whole before the damage goes out, and is told.
                player.flush()?;
                player.lines.finish(&player.clock, &player.stop)?;
                self.print(&player.outcome(true), &player.lines)?;
                return Err(error);
            }
        };
        let outcome = player.outcome(!finished);
        self.print(&outcome, &player.lines)?;
        Ok(if finished { ExitCode::SUCCESS } else { ExitCode::from(130) })
    }

    fn how_fast(&self) -> String {
        match (self.rate, self.speed) {
            (Some(rate), _) => format!("at {} a second", figures::thousands(rate)),
            (None, Speed::Factor(1.0)) => "at original speed".to_owned(),
            (None, Speed::Factor(factor)) => format!("at {factor} times the original speed"),
            (None, Speed::Max) => "as fast as it goes".to_owned(),
        }
    }

    /// Says which options have no effect on a file of this kind.
    fn note_ignored(&self, path: &Path, messages: bool) {
        let of_packing = [
            ("--pack", self.pack.is_some()),
            ("--session", self.session.is_some()),
            ("--linger", !self.linger.is_zero()),
        ];
        let of_captures = [("--only", self.only.is_some())];
        let (ignored, why): (&[(&str, bool)], _) = if messages {
            (&of_captures, "a file of messages has no destinations")
        } else {
            (&of_packing, "a capture's datagrams are sent as they are")
        };
        for (option, _) in ignored.iter().filter(|(_, given)| *given) {
            anstream::eprintln!("note: {}: {option} has no effect: {why}", path.display());
        }
    }

    /// Plays all files; `false` where the user ended it.
    fn play(&self, player: &mut Player) -> anyhow::Result<bool> {
        for _ in 0..self.times {
            for path in &self.files {
                let name = || path.display().to_string();
                let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
                let going_on = match capture::open(file).with_context(name)? {
                    Recording::Datagrams(capture) => {
                        self.note_ignored(path, false);
                        self.play_capture(player, capture, path).with_context(name)?
                    }
                    Recording::Messages(messages) => {
                        self.note_ignored(path, true);
                        let first = player.next_sequence.unwrap_or(1);
                        let packer = Packer::starting_at(first, messages, player.session, self.packing());
                        player.play_messages(packer).with_context(name)?
                    }
                    Recording::Records(_) => return Err(dbn_report::no_datagrams(path)),
                };
                if !going_on || !player.flush()? {
                    return Ok(false);
                }
                player.next_file();
            }
        }
        player.end(self.linger)
    }

    fn packing(&self) -> Packing {
        let paced = self.rate.is_none() && self.speed != Speed::Max;
        match self.pack.unwrap_or(Pack::Max) {
            Pack::One => Packing::ONE,
            Pack::Max if paced => Packing { within_ns: TOGETHER_NS, ..Packing::FULL },
            Pack::Max => Packing::FULL,
        }
    }

    fn play_capture(
        &self,
        player: &mut Player,
        mut capture: Capture<'_>,
        path: &Path,
    ) -> anyhow::Result<bool> {
        let mut destinations = Vec::new();
        while let Some(datagram) = capture.next()? {
            if self.only.is_some_and(|only| only != datagram.destination) {
                continue;
            }
            // Enough to tell that there are several.
            if destinations.len() < 2 && !destinations.contains(&datagram.destination) {
                destinations.push(datagram.destination);
            }
            if !player.play(datagram.time, 1, datagram.payload, None)? {
                return Ok(false);
            }
        }
        let counts = capture.counts();
        for (skip, count) in counts.skipped() {
            anstream::eprintln!("note: {}: {count} packets left out: {}", path.display(), skip.name());
        }
        if counts.trailing_bytes > 0 {
            let bytes = counts.trailing_bytes;
            anstream::eprintln!("note: {}: ends within a packet, {bytes} bytes left over", path.display());
        }
        match (&destinations[..], self.only) {
            ([], Some(only)) => anstream::eprintln!("note: {}: nothing goes to {only}", path.display()),
            ([], None) => anstream::eprintln!("note: {}: no UDP datagrams", path.display()),
            ([one, other, ..], _) => anstream::eprintln!(
                "note: {}: datagrams to {one}, {other} and maybe others went to the same place; --only picks one",
                path.display()
            ),
            _ => {}
        }
        Ok(true)
    }

    /// The last line.
    fn print(&self, outcome: &Outcome, lines: &Lines) -> anyhow::Result<()> {
        if self.format == Format::Json {
            return output::print_json(outcome);
        }
        let messages = match outcome.messages {
            Some(messages) => format!("{} messages in ", figures::thousands(messages)),
            None => String::new(),
        };
        output::print(&format!(
            "sent {messages}{} datagrams, {} bytes, in {} to {}: {}, {}, back pressure {} times{}",
            figures::thousands(outcome.datagrams),
            figures::thousands(outcome.bytes),
            figures::duration(outcome.duration_ns),
            lines.describe(),
            output::rate(outcome.datagrams_per_second, "datagrams"),
            output::byte_rate(outcome.bytes_per_second),
            figures::thousands(outcome.back_pressure),
            if outcome.interrupted { " (interrupted)" } else { "" },
        ))?;
        outcome.faults.as_ref().map_or(Ok(()), |done| output::print(&faults::summary(done)))
    }
}

/// Sends datagrams when they are due.
struct Player {
    lines: Lines,
    stop: Stop,
    progress: Progress,
    pace: Pace,
    session: Session,
    staged: Staged,
    clock: Clock,
    start: Nanos,
    /// The time as last read; never later than the real one.
    now: Nanos,
    last_sent: Nanos,
    recalibrate_at: Nanos,
    show_at: Nanos,
    /// The time in the file that corresponds to a due time.
    origin: Option<(Nanos, Nanos)>,
    due: Nanos,
    /// Messages or datagrams so far, for a rate.
    units: u64,
    /// Sequence of the next message, once files of messages have been played.
    next_sequence: Option<u64>,
    heartbeats: u64,
    latest_ns: u64,
}

impl Player {
    fn play_messages(&mut self, mut packer: Packer<'_>) -> anyhow::Result<bool> {
        while let Some(packed) = packer.next()? {
            let (time, messages, first) = (packed.time, packed.messages, packed.sequence);
            let going_on = self.play(time, u64::from(messages), packed.payload, Some(first))?;
            self.next_sequence = Some(first + u64::from(messages));
            if !going_on {
                return Ok(false);
            }
        }
        let trailing = packer.file().trailing_bytes();
        if trailing > 0 {
            anstream::eprintln!("note: {trailing} bytes at the end of the file are no whole message");
        }
        Ok(true)
    }

    /// Sends one datagram when it is due: together with others that are due by then. `sequence` is that of a datagram
    /// made here, whose feed must not fall silent. `false` where the user wants to end.
    fn play(
        &mut self,
        time: Nanos,
        units: u64,
        payload: &[u8],
        sequence: Option<u64>,
    ) -> anyhow::Result<bool> {
        self.due = match self.pace {
            Pace::Max => self.now,
            Pace::Rate(schedule) => self.start + schedule.due_ns(self.units),
            Pace::Original(factor) => {
                let (from, at) = *self.origin.get_or_insert((time, self.due));
                at + (time.0.saturating_sub(from.0) as f64 / factor) as u64
            }
        };
        self.units += units;
        if self.due > self.now {
            self.now = self.clock.now();
        }
        if (self.due > self.now || self.staged.len() == BATCH) && !self.flush()? {
            return Ok(false);
        }
        if self.due > self.now && !self.wait(sequence)? {
            return Ok(false);
        }
        if matches!(self.pace, Pace::Original(_) | Pace::Rate(_)) {
            self.latest_ns = self.latest_ns.max(self.now.0.saturating_sub(self.due.0));
        }
        self.staged.push(payload);
        Ok(true)
    }

    /// Waits until the next datagram is due, with a heartbeat for every second of silence.
    fn wait(&mut self, sequence: Option<u64>) -> anyhow::Result<bool> {
        let pacer = Pacer::per_second(1, self.start);
        while self.now < self.due {
            let release = self.lines.next_release().unwrap_or(self.due);
            let until = self.due.min(self.now + LOOK_NS).min(release);
            self.now = pacer.wait(&self.clock, until, Waiting::Sleep);
            if self.stop.requested() || !self.lines.release(&self.clock, &self.stop)? {
                return Ok(false);
            }
            if let Some(sequence) = sequence
                && self.now < self.due
                && self.now.0.saturating_sub(self.last_sent.0) >= HEARTBEAT_NS
            {
                let packet = heartbeat(self.session, sequence);
                self.lines.send_one(&packet, &self.clock, &self.stop)?;
                self.heartbeats += 1;
                self.last_sent = self.now;
            }
            self.look();
        }
        Ok(true)
    }

    /// Sends what is staged.
    fn flush(&mut self) -> anyhow::Result<bool> {
        if self.staged.len() > 0 {
            let sent = self.lines.send(&self.staged, &self.clock, &self.stop)?;
            self.staged.clear();
            self.now = self.clock.now();
            self.last_sent = self.now;
            if !sent {
                return Ok(false);
            }
        }
        self.look();
        Ok(!self.stop.requested())
    }

    /// What is done now and then.
    fn look(&mut self) {
        if self.now >= self.recalibrate_at {
            self.clock.recalibrate();
            self.recalibrate_at = self.now + HEARTBEAT_NS;
        }
        if self.now >= self.show_at {
            self.progress.set(self.lines.carried().datagrams);
            self.show_at = self.now + LOOK_NS;
        }
    }

    /// The next file begins where this one ends.
    fn next_file(&mut self) {
        self.origin = None;
        self.due = self.due.max(self.start);
    }

    /// Ends the session of datagrams made here: at once, and repeatedly for as long as `linger`.
    fn end(&mut self, linger: Duration) -> anyhow::Result<bool> {
        let Some(next) = self.next_sequence else { return self.lines.finish(&self.clock, &self.stop) };
        let packet = end_of_session(self.session, next);
        for _ in 0..ENDS {
            self.staged.push(&packet);
        }
        let until = self.clock.now() + u64::try_from(linger.as_nanos()).unwrap_or(u64::MAX);
        while self.flush()? {
            self.due = self.now + HEARTBEAT_NS;
            if self.due > until {
                return self.lines.finish(&self.clock, &self.stop);
            }
            if !self.wait(None)? {
                return Ok(false);
            }
            self.staged.push(&packet);
        }
        Ok(false)
    }

    fn outcome(&self, interrupted: bool) -> Outcome {
        let carried = self.lines.carried();
        let duration_ns = self.last_sent.0.saturating_sub(self.start.0).max(1);
        let per_second = |count: u64| count as f64 * 1e9 / duration_ns as f64;
        Outcome {
            datagrams: carried.datagrams,
            messages: self.next_sequence.map(|next| next - 1),
            bytes: carried.bytes,
            lines: self.lines.count(),
            heartbeats: self.heartbeats,
            duration_ns,
            datagrams_per_second: per_second(carried.datagrams),
            bytes_per_second: per_second(carried.bytes),
            back_pressure: carried.blocked,
            back_pressure_ns: carried.blocked_ns,
            latest_ns: self.latest_ns,
            faults: self.lines.faults().map(Faults::done).cloned(),
            interrupted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        assert_eq!(speed("original"), Ok(Speed::Factor(1.0)));
        assert_eq!(speed("max"), Ok(Speed::Max));
        assert_eq!(speed("10x"), Ok(Speed::Factor(10.0)));
        assert_eq!(speed("0.5×"), Ok(Speed::Factor(0.5)));
        for text in ["", "10", "x", "0x", "-1x", "NaNx", "infx", "fast"] {
            assert!(speed(text).unwrap_err().contains("10x"), "{text}");
        }
    }
}
