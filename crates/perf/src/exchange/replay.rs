//! `tapeline feed replay`: sends a capture at its original speed, faster, or as fast as possible.

use std::fs::File;
use std::net::{SocketAddr, SocketAddrV4};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use tapeline_console::{FilePath, Format, Hinted, LogArgs, Stop, arguments, log, output, paths};
use tapeline_feed::capture::{self, Capture, Packer, Packing, Recording};
use tapeline_feed::moldudp64::MoldSession;
use tapeline_feed::simulate::Schedule;
use tapeline_measure::figures;

use super::faults;
use super::lines::{Lines, Route};
use super::player::{Outcome, PlayPace, Player};

/// At original speed, messages this close together share a datagram.
const TOGETHER_NS: u64 = 1_000_000;

/// The options; the help is with the subcommand.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed replay day.pcap.gz --to 239.255.12.111:26477 --speed 100x\n  \
    tapeline feed replay day.itch --to 239.255.12.111:26477 --also 239.255.230.111:26478 --rate 1M")]
pub struct Replay {
    /// Captures (pcap, pcapng) or files of ITCH messages, plain or gzipped, one after another
    #[arg(required = true, value_name = "FILE")]
    files: Vec<FilePath>,
    /// Destination: a multicast group, or an address for unicast
    #[arg(long, value_name = "GROUP:PORT", value_parser = arguments::address::<SocketAddrV4>)]
    to: SocketAddrV4,
    #[command(flatten)]
    route: Route,
    /// Replay speed: `original`, `max`, or a factor such as `10x`
    #[arg(long, default_value = "original", value_parser = speed)]
    speed: PlayPace,
    /// Fixed rate a second instead: in messages for a file of messages, in datagrams for a capture
    #[arg(long, value_parser = arguments::rate, conflicts_with = "speed")]
    rate: Option<u64>,
    /// Messages in a datagram made from a file of messages: one, or as many as fit in 1,400 bytes (at original speed, only those
    /// within one millisecond) [default: max]
    #[arg(long)]
    pack: Option<Pack>,
    /// Session of datagrams made from a file of messages, up to ten characters [default: TAPELINE]
    #[arg(long, value_parser = arguments::session)]
    session: Option<String>,
    /// Send only the captured datagrams that were addressed to this destination
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddr>)]
    only: Option<SocketAddr>,
    /// Number of times to send everything
    #[arg(long = "loop", value_name = "TIMES", default_value_t = 1)]
    times: u64,
    /// Repeat the end of the session for this long
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = arguments::duration)]
    linger: Duration,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
    #[command(flatten)]
    log: LogArgs,
}

/// The content of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Pack {
    /// One message
    #[value(name = "1")]
    One,
    /// As many messages as fit
    Max,
}

fn speed(text: &str) -> Result<PlayPace, String> {
    let factor = match text {
        "max" => return Ok(PlayPace::Max),
        "original" => Some(1.0),
        _ => text.strip_suffix(['x', 'X', '×']).and_then(|factor| factor.parse().ok()),
    };
    factor.filter(|factor| (0.001..=1e9).contains(factor)).map(PlayPace::Original).ok_or_else(|| {
        format!("'{text}' is not a speed; write original, max, or a factor such as 10x or 0.5x")
    })
}

impl Replay {
    /// Sends all files to the end.
    ///
    /// # Errors
    /// If a file cannot be read or a socket cannot send.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        self.log.begin("replay")?;
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let lines = Lines::open(self.to, &self.route)?;
        if let Some(advice) = lines.advice() {
            log::note(advice);
        }
        let session = MoldSession::new(self.session.as_deref().unwrap_or("TAPELINE"));
        let mut player = Player::new(lines, stop, self.pace(), session);
        if self.format == Format::Table {
            log::info(format_args!(
                "replaying {} to {}; Ctrl-C ends it",
                self.how_fast(),
                player.out.lines.describe()
            ));
        }
        let finished = match self.play(&mut player) {
            Ok(finished) => finished,
            Err(error) => {
                // Sends and reports the part before the damage.
                player.finish()?;
                self.print(&player.outcome(true), &player.out.lines)?;
                return Err(error);
            }
        };
        let outcome = player.outcome(!finished);
        self.print(&outcome, &player.out.lines)?;
        Ok(if finished { ExitCode::SUCCESS } else { ExitCode::from(130) })
    }

    fn pace(&self) -> PlayPace {
        self.rate.map_or(self.speed, |rate| PlayPace::Rate(Schedule::new(rate, None)))
    }

    fn how_fast(&self) -> String {
        match (self.rate, self.speed) {
            (Some(rate), _) => format!("at {} a second", figures::thousands(rate)),
            (None, PlayPace::Original(1.0)) => "at original speed".to_owned(),
            (None, PlayPace::Original(factor)) => format!("at {factor} times the original speed"),
            (None, PlayPace::Max | PlayPace::Rate(_)) => "as fast as it goes".to_owned(),
        }
    }

    /// Notes which options have no effect on a file of this kind.
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
            log::note(format_args!("{}: {option} has no effect: {why}", paths::shown(&path)));
        }
    }

    /// Plays all files; returns `false` if the user stopped it.
    fn play(&self, player: &mut Player) -> anyhow::Result<bool> {
        for _ in 0..self.times {
            for path in &self.files {
                let name = || paths::shown(&path).to_string();
                let file =
                    File::open(path).with_context(|| format!("cannot open {}", paths::shown(&path)))?;
                let going_on = match capture::open(file).with_context(name)? {
                    Recording::Datagrams(capture) => {
                        self.note_ignored(path, false);
                        self.play_capture(player, capture, path).with_context(name)?
                    }
                    Recording::Messages(messages) => {
                        self.note_ignored(path, true);
                        let first = player.next_sequence.unwrap_or(1);
                        let packer = Packer::starting_at(first, messages, player.session, self.packing());
                        play_messages(player, packer).with_context(name)?
                    }
                    Recording::Records(_) => return Err(no_datagrams(path)),
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
        let paced = matches!(self.pace(), PlayPace::Original(_));
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
            // Two are enough to show that there are several.
            if destinations.len() < 2 && !destinations.contains(&datagram.destination) {
                destinations.push(datagram.destination);
            }
            if !player.play(datagram.time, 1, datagram.payload, None)? {
                return Ok(false);
            }
        }
        let counts = capture.counts();
        for (skip, count) in counts.skipped() {
            log::note(format_args!("{}: {count} packets left out: {}", paths::shown(&path), skip.name()));
        }
        if counts.trailing_bytes > 0 {
            let bytes = counts.trailing_bytes;
            log::note(format_args!("{}: ends within a packet, {bytes} bytes left over", paths::shown(&path)));
        }
        match (&destinations[..], self.only) {
            ([], Some(only)) => log::note(format_args!("{}: nothing goes to {only}", paths::shown(&path))),
            ([], None) => log::note(format_args!("{}: no UDP datagrams", paths::shown(&path))),
            ([one, other, ..], _) => log::note(format_args!(
                "{}: datagrams to {one}, {other} and maybe others went to the same place; --only picks one",
                paths::shown(&path)
            )),
            _ => {}
        }
        Ok(true)
    }

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

/// Plays a file of messages; returns `false` if the user stopped it.
fn play_messages(player: &mut Player, mut packer: Packer<'_>) -> anyhow::Result<bool> {
    while let Some(packed) = packer.next()? {
        let (time, messages, first) = (packed.time, packed.messages, packed.sequence);
        let going_on = player.play(time, u64::from(messages), packed.payload, Some(first))?;
        player.next_sequence = Some(first + u64::from(messages));
        if !going_on {
            return Ok(false);
        }
    }
    let trailing = packer.file().trailing_bytes();
    if trailing > 0 {
        log::note(format_args!("{trailing} bytes at the end of the file are not a whole message"));
    }
    Ok(true)
}

/// The error for a DBN file where packets of a feed are expected.
pub fn no_datagrams(path: &Path) -> anyhow::Error {
    let hint = "no exchange sends DBN records; `tapeline feed inspect` shows what the file holds";
    Hinted::new(format!("{} holds DBN records, not a feed's packets", paths::shown(&path)), hint).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds() {
        assert_eq!(speed("original"), Ok(PlayPace::Original(1.0)));
        assert_eq!(speed("max"), Ok(PlayPace::Max));
        assert_eq!(speed("10x"), Ok(PlayPace::Original(10.0)));
        assert_eq!(speed("0.5×"), Ok(PlayPace::Original(0.5)));
        for text in ["", "10", "x", "0x", "-1x", "NaNx", "infx", "fast"] {
            assert!(speed(text).unwrap_err().contains("10x"), "{text}");
        }
    }
}
