//! Sends a feed's messages from a journal's ticks over multicast or unicast UDP: MoldUDP64, as the exchange sent
//! them.

use std::net::SocketAddrV4;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use tapeline_console::{Format, Hinted, Stop, arguments, log, output};
use tapeline_feed::moldudp64::{
    DEFAULT_PACKET_BYTES, HEADER_BYTES, MAX_MESSAGES, MoldSession, PacketBuilder,
};
use tapeline_journal::{Directory, Next, Reader};
use tapeline_measure::Nanos;
use tapeline_measure::figures::{self, thousands};
use tapeline_plant::session_begun;
use tapeline_plant::tick::{Flags, Kind, Tick};

use super::Speed;
use crate::journal::ending::say_torn;
use crate::journal::{broken, tick_of, warn_of_missing};
use crate::plant::{is_of_message, status_text};
use tapeline_perf::exchange::{Lines, PlayPace, Player, Route};

/// At a limited speed, messages this close together share a datagram; otherwise as many as fit.
const TOGETHER_NS: i64 = 1_000_000;

/// Options of a replay over UDP.
#[derive(Debug, Args)]
pub(super) struct ToFeed {
    /// Send a feed's messages over UDP, to a multicast group, or to an address for unicast
    #[arg(long, value_name = "GROUP:PORT", conflicts_with_all = ["onto", "then", "subscribers", "keep", "serve"], value_parser = arguments::address::<SocketAddrV4>)]
    pub(super) to: Option<SocketAddrV4>,
    /// Second line (B), which carries the same datagrams
    #[arg(long, value_name = "GROUP:PORT", requires = "to", value_parser = arguments::address::<SocketAddrV4>)]
    also: Option<SocketAddrV4>,
    /// Network interface, by name or address; with the default, nothing leaves this machine
    #[arg(long, value_name = "NAME|ADDRESS", default_value = "127.0.0.1", requires = "to")]
    interface: String,
    /// Multicast TTL: the number of routers that a datagram may pass, plus one
    #[arg(long, default_value_t = 1, requires = "to")]
    ttl: u8,
    /// The plant's feed to send, by its index in the configuration, from 0
    #[arg(long, value_name = "NUMBER", default_value_t = 0, requires = "to")]
    feed: u16,
    /// Session of the datagrams, up to ten characters, until the journal names another
    #[arg(long, default_value = "TAPELINE", value_parser = arguments::session, requires = "to")]
    session: String,
}

/// The state of a feed that is sent.
struct Feed {
    player: Player,
    number: u16,
    /// The next datagram: its messages one after another, and where each ends.
    messages: Vec<u8>,
    ends: Vec<usize>,
    /// Sequence and time of the first message in it.
    first: u64,
    time: Nanos,
    /// Size of the datagram so far, in bytes.
    bytes: usize,
    together_ns: i64,
    packet: Vec<u8>,
    /// Messages that were sent, and messages that were missing.
    sent: u64,
    missing: u64,
    /// Ticks missing in the journal, of this feed or another.
    missing_ticks: u64,
}

impl ToFeed {
    /// Sends the journal's messages from the reader's position.
    pub(super) fn run(
        &self,
        to: SocketAddrV4,
        reader: &mut Reader<Directory>,
        speed: Speed,
        stop: Stop,
        format: Format,
    ) -> anyhow::Result<ExitCode> {
        let lines = Lines::open(to, &Route::plain(self.also, &self.interface, self.ttl))?;
        if let Some(advice) = lines.advice() {
            log::note(advice);
        }
        let whither = lines.describe();
        let pace = speed.0.map_or(PlayPace::Max, PlayPace::Original);
        let mut feed = Feed {
            player: Player::new(lines, stop, pace, MoldSession::new(&self.session)),
            number: self.feed,
            messages: Vec::new(),
            ends: Vec::new(),
            first: 0,
            time: Nanos(0),
            bytes: HEADER_BYTES,
            together_ns: if speed.0.is_some() { TOGETHER_NS } else { i64::MAX },
            packet: Vec::new(),
            sent: 0,
            missing: 0,
            missing_ticks: 0,
        };
        let played = feed.play(reader);
        if played.is_err() {
            // Send and report what was complete before the error.
            feed.send()?;
            feed.player.finish()?;
        }
        let finished = *played.as_ref().unwrap_or(&false);
        let outcome = feed.player.outcome(!finished);
        if format == Format::Json {
            output::print_json_line(&json!({
                "messages": feed.sent,
                "missing": feed.missing,
                "datagrams": outcome.datagrams,
                "bytes": outcome.bytes,
                "heartbeats": outcome.heartbeats,
                "duration_ns": outcome.duration_ns,
                "interrupted": outcome.interrupted,
            }))?;
        } else {
            let [sent, datagrams, missing] = [feed.sent, outcome.datagrams, feed.missing].map(thousands);
            let (of, time) = (self.feed, figures::duration(outcome.duration_ns));
            let end = if outcome.interrupted { " (interrupted)" } else { "" };
            output::print(&format!(
                "{sent} messages of feed {of} in {datagrams} datagrams sent to {whither} in {time}, {missing} missing{end}"
            ))?;
        }
        played?;
        Ok(match (finished, feed.missing + feed.missing_ticks) {
            (false, _) => ExitCode::from(130),
            (true, 0) => ExitCode::SUCCESS,
            (true, _) => ExitCode::from(3),
        })
    }
}

impl Feed {
    /// Sends the whole journal; `false` if the user stopped it.
    fn play(&mut self, reader: &mut Reader<Directory>) -> anyhow::Result<bool> {
        loop {
            match reader.next().map_err(broken)? {
                Next::Record(record) => {
                    let tick = tick_of(&record)?;
                    if tick.header.channel == self.number && !self.take(&tick, record.time)? {
                        return Ok(false);
                    }
                }
                // Messages in these ticks show as missing in the feed's own sequence.
                Next::Missing { from, to } => {
                    self.missing_ticks += warn_of_missing(from, to);
                }
                Next::End => {
                    if let Some(tail) = reader.ending().map_err(broken)? {
                        say_torn(&tail);
                    }
                    break;
                }
            }
        }
        if self.sent == 0 && self.ends.is_empty() {
            let what = format!("the journal has no messages of feed {}", self.number);
            return Err(Hinted::new(what, "--feed names another").into());
        }
        Ok(self.send()? && self.player.end(Duration::ZERO)?)
    }

    /// Takes a tick of the feed; `false` if the user stopped it.
    fn take(&mut self, tick: &Tick<'_>, time: Nanos) -> anyhow::Result<bool> {
        let has = |flag| tick.header.flags.contains(flag);
        if tick.header.kind == Kind::Status {
            let text = if has(Flags::RESET) { status_text(tick)? } else { None };
            let Some(session) = text.as_deref().and_then(session_begun) else { return Ok(true) };
            return self.begin_session(MoldSession::new(session));
        }
        if has(Flags::SOURCE) {
            return self.message(tick.header.feed_seq, time, tick);
        }
        if has(Flags::RESET) || !is_of_message(tick) {
            return Ok(true);
        }
        let what = format!("tick {} was recorded without the feed's message", tick.header.seq.0);
        let hint = "a plant records the messages with publish = \"every-message\"; --onto RING replays the ticks themselves";
        Err(Hinted::new(what, hint).into())
    }

    /// Starts a new session of the feed; the session before ends.
    fn begin_session(&mut self, session: MoldSession) -> anyhow::Result<bool> {
        let ended =
            self.send()? && (self.player.next_sequence.is_none() || self.player.end(Duration::ZERO)?);
        (self.player.session, self.player.next_sequence) = (session, None);
        Ok(ended)
    }

    fn message(&mut self, seq: u64, time: Nanos, tick: &Tick<'_>) -> anyhow::Result<bool> {
        let expected = match self.ends.len() {
            0 => self.player.next_sequence,
            waiting => Some(self.first + waiting as u64),
        };
        if let Some(expected) = expected.filter(|expected| seq < *expected) {
            let (of_tick, before) = (tick.header.seq.0, expected - 1);
            let what =
                format!("the feed's message {seq}, of tick {of_tick}, comes after its message {before}");
            let hint =
                format!("the plant was restarted there: --from-sequence {of_tick} starts with that tick");
            return Err(Hinted::new(what, hint).into());
        }
        let missing = expected.map_or(0, |expected| seq - expected);
        self.missing += missing;
        let bytes = self.bytes + 2 + tick.source.len();
        let is_apart = missing > 0
            || bytes > DEFAULT_PACKET_BYTES
            || self.ends.len() >= usize::from(MAX_MESSAGES)
            || time.since(self.time) > self.together_ns;
        if is_apart && !self.send()? {
            return Ok(false);
        }
        if self.ends.is_empty() {
            (self.first, self.time) = (seq, time);
        }
        self.messages.extend_from_slice(tick.source);
        self.ends.push(self.messages.len());
        self.bytes += 2 + tick.source.len();
        Ok(true)
    }

    /// Sends the pending datagram when it is due; `false` if the user stopped it.
    fn send(&mut self) -> anyhow::Result<bool> {
        if self.ends.is_empty() {
            return Ok(true);
        }
        // Longer than usual only if a single message is.
        self.packet.resize(self.bytes.max(DEFAULT_PACKET_BYTES), 0);
        let limit = self.packet.len();
        let mut packet = PacketBuilder::with_limit(&mut self.packet, self.player.session, self.first, limit)?;
        let mut begin = 0;
        for end in &self.ends {
            packet.push(&self.messages[begin..*end])?;
            begin = *end;
        }
        let (count, next) = (u64::from(packet.count()), packet.next_sequence());
        let length = packet.finish();
        let going_on = self.player.play(self.time, count, &self.packet[..length], Some(self.first))?;
        self.player.next_sequence = Some(next);
        self.sent += count;
        self.messages.clear();
        self.ends.clear();
        self.bytes = HEADER_BYTES;
        Ok(going_on)
    }
}
