//! What an operator reads of a feed: its changes of state, and what was lost, as events. Looked at once a second, so changes within
//! a second are one event.

use std::fmt;

use tapeline_feed::line::Line;
use tapeline_measure::Nanos;
use tapeline_measure::figures::thousands;
use tapeline_plant::{Channel, ChannelCounters, State};

use crate::config::Feed;
use crate::events::{Event, Events, Kind, Severity};

/// What was reported of a feed.
#[derive(Debug)]
pub(crate) struct FeedLog {
    name: String,
    events: Events,
    lines: Vec<String>,
    has_recovery: bool,
    stale_after_ns: i64,
    /// The first look.
    since: Option<Nanos>,
    told: Told,
}

/// The values at the last look.
#[derive(Debug, Default)]
struct Told {
    state: State,
    counters: ChannelCounters,
    refused_datagrams: u64,
    kernel_drops: u64,
    /// For each line, whether it was silent while others were heard.
    silent: Vec<bool>,
    late: Option<u64>,
    /// It was reported that nothing has arrived since the start.
    nothing: bool,
    /// It was reported that no item is left for new symbols.
    no_place: bool,
    /// It was reported what a lost message means for the session.
    consequence: bool,
}

impl FeedLog {
    /// Begins for a feed that has received nothing.
    pub(crate) fn new(feed: &Feed, events: &Events) -> Self {
        let lines: Vec<_> = feed.lines.iter().map(|line| line.name.clone()).collect();
        Self {
            name: feed.name.clone(),
            events: events.clone(),
            told: Told { silent: vec![false; lines.len()], ..Told::default() },
            lines,
            has_recovery: feed.recovery.is_some(),
            stale_after_ns: i64::try_from(feed.stale_after.as_nanos()).unwrap_or(i64::MAX),
            since: None,
        }
    }

    /// Reports what has changed since the last look.
    pub(crate) fn look(&mut self, now: Nanos, channel: &Channel, kernel_drops: u64) {
        self.tell_state(now, channel);
        self.tell_late(now, channel);
        self.tell_missing(now, channel);
        self.tell_refused(now, channel, kernel_drops);
        self.told.counters = *channel.counters();
    }

    fn tell_state(&mut self, now: Nanos, channel: &Channel) {
        let (before, state) = (self.told.state, channel.state());
        self.told.state = state;
        let (counters, told) = (channel.counters(), self.told.counters);
        if counters.sessions > told.sessions
            && let Some(session) = channel.arbiter().session()
        {
            self.info(now, format_args!("session {session} is received"));
        }
        if counters.ended && !told.ended {
            let last = channel.arbiter().next_sequence().unwrap_or_default().saturating_sub(1);
            self.info(now, format_args!("the session is over, with message {}", thousands(last)));
        }
        // A venue's connection is reported by its own thread.
        if self.lines.is_empty() {
            return;
        }
        match (before, state) {
            (State::Initial, State::Initial) => self.tell_nothing(now),
            (before, State::Stale) if before != State::Stale => {
                let silence = std::time::Duration::from_nanos(self.stale_after_ns as u64);
                let text = format_args!(
                    "stale: nothing has arrived on any line for {silence:?}; its items are suspect"
                );
                self.warn(now, text, None);
            }
            (State::Stale, State::Live | State::Recovering) => self.note(now, format_args!("heard again")),
            (State::Live, State::Recovering) => {
                self.note(now, format_args!("messages are missing, and requested; its items are suspect"));
            }
            (State::Recovering, State::Live) => self.note(now, format_args!("live again")),
            _ => {}
        }
        self.tell_lines(now, channel);
    }

    fn tell_nothing(&mut self, now: Nanos) {
        let since = *self.since.get_or_insert(now);
        if !self.told.nothing && now.since(since) > self.stale_after_ns.max(1_000_000_000) {
            self.told.nothing = true;
            let hint = "does the sender send, and to this address? `tcpdump -ni any udp` shows all datagrams that reach this host";
            self.warn(now, format_args!("nothing has arrived on any line since the start"), Some(hint));
        }
    }

    fn tell_lines(&mut self, now: Nanos, channel: &Channel) {
        for number in 0..self.lines.len() {
            let Some(line) = Line::new(number) else { return };
            let is_silent = channel.state() != State::Stale && channel.line_state(line) == State::Stale;
            if std::mem::replace(&mut self.told.silent[number], is_silent) == is_silent {
                continue;
            }
            let name = self.lines[number].clone();
            if is_silent {
                self.warn(now, format_args!("line {name} is silent; the others are heard"), None);
            } else if channel.state() != State::Stale {
                self.note(now, format_args!("line {name} is heard again"));
            }
        }
    }

    /// Warns once if a session was received only from its middle on, with the consequence and the remedy.
    fn tell_late(&mut self, now: Nanos, channel: &Channel) {
        let late = channel.begun_late_at();
        if late != self.told.late
            && let Some(first) = late
        {
            let with = if self.has_recovery { "asks [feed.recovery]" } else { "with [feed.recovery] asks" };
            let text = format_args!(
                "message {first} of the session was the first received: items are suspect until the next session, because books lack \
                 the earlier messages"
            );
            let hint = format!("start = \"from-one\" in [[feed]] {with} for the earlier messages");
            self.warn(now, text, Some(&hint));
        }
        self.told.late = late;
    }

    fn tell_missing(&mut self, now: Nanos, channel: &Channel) {
        let (counters, told) = (channel.counters(), self.told.counters);
        let (gaps, missing) = (counters.gaps - told.gaps, counters.missing - told.missing);
        if channel.damaged_from().is_none() {
            self.told.consequence = false;
        }
        // A venue's gaps are reported with their symbol, and end by themselves.
        if gaps == 0 || self.lines.is_empty() {
            return;
        }
        let (first, last) = counters.last_gap;
        let hint = (!self.told.consequence).then_some(
            "items are suspect until the next session, because books lack these messages; `start = \"from-one\"` in [[feed]] and a \
             server in [feed.recovery] let a restarted plant request the whole session",
        );
        self.told.consequence = true;
        let [missing, first, last] = [missing, first, last].map(thousands);
        if gaps == 1 {
            self.warn(
                now,
                format_args!("{missing} messages are lost on every line: {first} to {last}"),
                hint,
            );
        } else {
            let gaps = thousands(gaps);
            let text = format_args!(
                "{missing} messages are lost on every line, in {gaps} gaps; the last one is {first} to {last}"
            );
            self.warn(now, text, hint);
        }
    }

    fn tell_refused(&mut self, now: Nanos, channel: &Channel, kernel_drops: u64) {
        let counters = channel.counters();
        let malformed = counters.malformed_messages - self.told.counters.malformed_messages;
        if malformed > 0 && !self.lines.is_empty() {
            let hint = "`tcpdump -w sample.pcap udp port PORT`, then `tapeline feed inspect sample.pcap` says what is wrong with them";
            let malformed = thousands(malformed);
            self.warn(
                now,
                format_args!("{malformed} messages cannot be decoded, and are left out"),
                Some(hint),
            );
        }
        let of_line = |number| Some(channel.line(Line::new(number)?).malformed.iter().sum::<u64>());
        let refused: u64 = (0..self.lines.len()).filter_map(of_line).sum();
        let more = refused - std::mem::replace(&mut self.told.refused_datagrams, refused);
        if more > 0 {
            let hint = "is `protocol` in [[feed]] right, and does another sender use this address (`source` in [[feed.line]] chooses one)?";
            self.warn(now, format_args!("{} datagrams are not of its protocol", thousands(more)), Some(hint));
        }
        let dropped = kernel_drops - std::mem::replace(&mut self.told.kernel_drops, kernel_drops);
        if dropped > 0 {
            let hint = "raise receive_buffer in [[feed]] (and net.core.rmem_max), or give the plant's thread a core of its own: cpu in [plant]";
            let dropped = thousands(dropped);
            let text =
                format_args!("the kernel dropped {dropped} datagrams, because the socket's buffer was full");
            self.warn(now, text, Some(hint));
        }
        if counters.items_refused > 0 && !self.told.no_place {
            self.told.no_place = true;
            let hint = "raise max_items in [plant], unless the feed sends invalid symbols; reserved_items is the number guaranteed to each feed";
            self.warn(
                now,
                format_args!("the item limit is reached: ticks of new symbols have no item"),
                Some(hint),
            );
        }
    }

    fn info(&self, now: Nanos, text: fmt::Arguments<'_>) {
        self.tell(now, Severity::Info, text, None);
    }

    fn note(&self, now: Nanos, text: fmt::Arguments<'_>) {
        self.tell(now, Severity::Note, text, None);
    }

    fn warn(&self, now: Nanos, text: fmt::Arguments<'_>, hint: Option<&str>) {
        self.tell(now, Severity::Warning, text, hint);
    }

    fn tell(&self, now: Nanos, severity: Severity, text: fmt::Arguments<'_>, hint: Option<&str>) {
        let text = format_args!("feed {}: {text}", self.name);
        for event in self.events.of_peer(now, Kind::Feed, severity, text) {
            // The count of events left out, which may come first, has no advice.
            let is_it = event.severity == severity;
            self.events.report(&Event { hint: hint.filter(|_| is_it).map(str::to_owned), ..event });
        }
    }
}
