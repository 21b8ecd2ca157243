//! What a plant reports while it runs: data for a program that prints, logs or counts it. This crate itself
//! prints nothing.
//!
//! Peers can cause any number of events: for each [`Kind`], at most [`MOST_EVENTS`] per second are reported,
//! and the rest are counted in one event. Memory: three numbers for each kind, whatever the number of peers.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};
use tapeline_measure::{Nanos, utc_now};

/// Maximum events of one kind per second: a day's events are then a few hundred MB of text at most.
const MOST_EVENTS: u64 = 20;
const PERIOD_NS: i64 = 1_000_000_000;

/// The severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Something ordinary happened.
    Info,
    /// Something that an operator may want to know.
    Note,
    /// Something is wrong, and the plant continues.
    Warning,
    /// Something failed.
    Error,
}

/// An event of a plant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The severity.
    pub severity: Severity,
    /// When it happened; `None` for a line of an audit in JSON, whose text has the time.
    pub time: Option<Nanos>,
    /// The thread that it happened in; `None` for the process's first.
    pub part: Option<String>,
    /// What happened, and where.
    pub text: String,
    /// Advice to the operator, if any.
    pub hint: Option<String>,
    /// What a machine may select by, such as `feed` and `user`; the text has it too. Lines of an audit for machines
    /// have their name in the field `event`.
    pub fields: Map<String, Value>,
}

impl Event {
    /// Creates an event of now.
    pub(crate) fn new(severity: Severity, text: impl fmt::Display) -> Self {
        let thread = std::thread::current();
        let part = thread.name().filter(|name| *name != "main").map(str::to_owned);
        Self { severity, time: Some(utc_now()), part, text: text.to_string(), hint: None, fields: Map::new() }
    }

    /// Adds a field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

/// Text for an operator: `TIME severity: text`, and the hint on its own line.
impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(time) = self.time {
            write!(f, "{} ", Utc(time))?;
        }
        f.write_str(match self.severity {
            Severity::Info => "",
            Severity::Note => "note: ",
            Severity::Warning => "warning: ",
            Severity::Error => "error: ",
        })?;
        f.write_str(&self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// The kinds of events that peers cause; each kind is limited separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A client of the hub has logged in.
    Login,
    /// A client of the hub has disconnected.
    Gone,
    /// A login to the hub was refused.
    Refused,
    /// A client of the hub was denied an item.
    Denied,
    /// A client of the hub was refused an item for another reason than access.
    ItemRefused,
    /// A connection to the hub ended before a login.
    NeverOpened,
    /// A message of a hub client cannot be decoded, or a message to it cannot be encoded.
    Unreadable,
    /// A kdb+ client was turned away or disconnected.
    Kdb,
    /// A ZeroMQ subscriber has disconnected.
    Zeromq,
    /// A provider or publisher, or a message from one.
    Source,
    Recovery,
    /// A port cannot accept connections.
    Accept,
    /// A venue: its connection, its gaps, its refusals.
    Venue,
    /// A plant above or below, or its datagrams.
    Bridge,
    /// A feed: its states, its gaps.
    Feed,
}

impl Kind {
    /// All kinds, each with its name, in the order of their declaration: a kind is the index of its entry.
    const ALL: [(Self, &str); 15] = [
        (Self::Login, "hub: logins"),
        (Self::Gone, "hub: sessions that are gone"),
        (Self::Refused, "hub: refused logins"),
        (Self::Denied, "hub: denied items"),
        (Self::ItemRefused, "hub: refused items"),
        (Self::NeverOpened, "hub: connections that never opened"),
        (Self::Unreadable, "hub: messages that cannot be read or sent"),
        (Self::Kdb, "kdb+ clients"),
        (Self::Zeromq, "zeromq: subscribers"),
        (Self::Source, "sources"),
        (Self::Recovery, "recovery"),
        (Self::Accept, "ports that cannot accept connections"),
        (Self::Venue, "venues"),
        (Self::Bridge, "bridge"),
        (Self::Feed, "feeds"),
    ];
}

/// Counts the events that peers cause, by kind; it stores no text.
#[derive(Debug)]
struct Limiter([Period; Kind::ALL.len()]);

#[derive(Clone, Copy, Debug)]
struct Period {
    begun: Nanos,
    reported: u64,
    left_out: u64,
}

impl Period {
    const NONE: Self = Self { begun: Nanos(0), reported: 0, left_out: 0 };
}

impl Limiter {
    /// Whether an event of this kind is reported, and the count of events left out before it, if that is due.
    fn admit(&mut self, now: Nanos, kind: Kind) -> (bool, Option<Event>) {
        let before = self.end_period(now, kind);
        let period = &mut self.0[kind as usize];
        let is_admitted = period.reported < MOST_EVENTS;
        if is_admitted {
            period.reported += 1;
        } else {
            period.left_out += 1;
        }
        (is_admitted, before)
    }

    /// The counts that are due although no event follows.
    fn due(&mut self, now: Nanos) -> Vec<Event> {
        Kind::ALL.iter().filter_map(|(kind, _)| self.end_period(now, *kind)).collect()
    }

    /// Every count that was not reported yet, as the plant ends.
    fn rest(&mut self, now: Nanos) -> Vec<Event> {
        self.0.iter_mut().for_each(|period| period.begun = Nanos(0));
        self.due(now)
    }

    /// Starts another period if the last one has ended. Returns the count of events left out in it.
    fn end_period(&mut self, now: Nanos, kind: Kind) -> Option<Event> {
        let period = &mut self.0[kind as usize];
        // A clock that was set back also ends the period.
        if (0..PERIOD_NS).contains(&now.since(period.begun)) {
            return None;
        }
        let Period { left_out, .. } = std::mem::replace(period, Period { begun: now, ..Period::NONE });
        let (_, name) = Kind::ALL[kind as usize];
        (left_out > 0).then(|| Event {
            time: Some(now),
            ..Event::new(Severity::Info, format_args!("{name}: {left_out} more lines left out"))
                .with("left_out", left_out)
        })
    }
}

/// Passes events to their consumer. A clone is cheap and has the same consumer.
#[derive(Clone)]
pub struct Events {
    take: Arc<dyn Fn(&Event) + Send + Sync>,
    limiter: Arc<Mutex<Limiter>>,
    /// The fields of each event that is reported through this value.
    fields: Arc<Map<String, Value>>,
}

impl Default for Events {
    /// Drops all events.
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    /// Passes events to `take`, which threads of the plant call: it should be quick, and must not wait for
    /// the plant.
    #[must_use]
    pub fn new(take: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        let limiter = Arc::new(Mutex::new(Limiter([Period::NONE; Kind::ALL.len()])));
        Self { take: Arc::new(take), limiter, fields: Arc::default() }
    }

    /// The same consumer and limits, with a field in every event that is reported through the result.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut fields = Map::clone(&self.fields);
        fields.insert(name.to_owned(), value.into());
        Self { fields: Arc::new(fields), ..self.clone() }
    }

    /// Passes events to the subscriber of the `tracing` crate: notes as `info`, advice in the field `hint`.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn traced() -> Self {
        Self::new(|event| {
            let (text, hint) = (&event.text, event.hint.as_deref());
            match event.severity {
                Severity::Info | Severity::Note => tracing::info!(hint, "{text}"),
                Severity::Warning => tracing::warn!(hint, "{text}"),
                Severity::Error => tracing::error!(hint, "{text}"),
            }
        })
    }

    pub(crate) fn report(&self, event: &Event) {
        if self.fields.is_empty() {
            return (self.take)(event);
        }
        let mut event = event.clone();
        self.fields.iter().for_each(|(name, value)| drop(event.fields.insert(name.clone(), value.clone())));
        (self.take)(&event);
    }

    pub(crate) fn info(&self, text: impl fmt::Display) {
        self.report(&Event::new(Severity::Info, text));
    }

    pub(crate) fn note(&self, text: impl fmt::Display) {
        self.report(&Event::new(Severity::Note, text));
    }

    pub(crate) fn warning(&self, text: impl fmt::Display) {
        self.report(&Event::new(Severity::Warning, text));
    }

    /// As [`warning`](Self::warning), with advice.
    pub(crate) fn warning_with(&self, text: impl fmt::Display, hint: impl Into<String>) {
        self.report(&Event { hint: Some(hint.into()), ..Event::new(Severity::Warning, text) });
    }

    /// Reports a failure, with advice if any.
    pub(crate) fn error(&self, text: impl fmt::Display, hint: Option<String>) {
        self.report(&Event { hint, ..Event::new(Severity::Error, text) });
    }

    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events to report for an event that a peer caused: none if there were too many of its kind.
    pub(crate) fn of_peer(
        &self,
        now: Nanos,
        kind: Kind,
        severity: Severity,
        text: impl fmt::Display,
    ) -> impl Iterator<Item = Event> {
        let (is_admitted, before) = self.limiter().admit(now, kind);
        let event = is_admitted.then(|| Event { time: Some(now), ..Event::new(severity, text) });
        before.into_iter().chain(event)
    }

    /// Reports an event that a peer caused, unless there were too many of its kind.
    pub(crate) fn peer(&self, now: Nanos, kind: Kind, severity: Severity, text: impl fmt::Display) {
        self.of_peer(now, kind, severity, text).for_each(|event| self.report(&event));
    }

    /// Reports how many events were left out. Callers of [`peer`](Self::peer) call this about once a second.
    pub(crate) fn left_out(&self, now: Nanos) {
        let due = self.limiter().due(now);
        due.iter().for_each(|event| self.report(event));
    }

    /// Reports how many events were left out and not counted yet, as the plant ends.
    pub(crate) fn end(&self, now: Nanos) {
        let rest = self.limiter().rest(now);
        rest.iter().for_each(|event| self.report(event));
    }
}

/// A time in RFC 3339, in microseconds; empty if outside the calendar's range.
pub(crate) struct Utc(pub(crate) Nanos);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_nanosecond(i128::from(self.0.0)) {
            Ok(time) => write!(f, "{time:.6}"),
            Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_800_000_000_000_000_000;

    /// An `Events` and the lines that it has passed on.
    fn taken() -> (Events, Arc<Mutex<Vec<String>>>) {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let to = Arc::clone(&lines);
        (Events::new(move |event| to.lock().unwrap().push(event.to_string())), lines)
    }

    #[test]
    fn an_event_is_a_line_with_its_time_weight_and_advice() {
        let (events, lines) = taken();
        events.peer(Nanos(BEGIN), Kind::Login, Severity::Info, "hub: session 0 login A");
        events.peer(Nanos(BEGIN), Kind::Source, Severity::Warning, "sources: a broken frame");
        events.warning_with("the name of the ring was removed", "start the plant again");
        let lines = lines.lock().unwrap();
        assert_eq!(
            lines[..2],
            [
                "2027-01-15T08:00:00.000000Z hub: session 0 login A",
                "2027-01-15T08:00:00.000000Z warning: sources: a broken frame",
            ]
        );
        let (time, text) = lines[2].split_once(' ').unwrap();
        assert_eq!(text, "warning: the name of the ring was removed\nhint: start the plant again");
        assert!(time.parse::<jiff::Timestamp>().is_ok(), "{time}");
    }

    #[test]
    fn a_flood_of_one_kind_is_cut_counted_and_hides_no_other() {
        let (events, lines) = taken();
        let say = |at, kind| events.peer(Nanos(at), kind, Severity::Info, "gone");
        (0..10_000).for_each(|at| say(BEGIN + at, Kind::Gone));
        assert_eq!(lines.lock().unwrap().len() as u64, MOST_EVENTS);
        say(BEGIN, Kind::Login);
        assert_eq!(lines.lock().unwrap().len() as u64, MOST_EVENTS + 1);
        events.left_out(Nanos(BEGIN + 20_000));
        assert_eq!(lines.lock().unwrap().len() as u64, MOST_EVENTS + 1, "the second is not over");
        events.left_out(Nanos(BEGIN + 1_000_000_000));
        let last = lines.lock().unwrap().pop().unwrap();
        assert!(last.ends_with(" hub: sessions that are gone: 9980 more lines left out"), "{last}");
        say(BEGIN + 1_000_000_001, Kind::Gone);
        assert!(lines.lock().unwrap().pop().unwrap().ends_with("gone"));
    }

    #[test]
    fn what_is_left_out_is_reported_before_the_next_event_and_at_the_end() {
        let (events, lines) = taken();
        let say = |at| events.peer(Nanos(at), Kind::Kdb, Severity::Info, "cut");
        (0..=MOST_EVENTS).for_each(|_| say(BEGIN));
        lines.lock().unwrap().clear();
        say(BEGIN + 2_000_000_000);
        let said = std::mem::take(&mut *lines.lock().unwrap());
        assert!(said[0].ends_with("kdb+ clients: 1 more lines left out") && said[1].ends_with("cut"));
        // A clock that was set back starts another period.
        (0..=MOST_EVENTS).for_each(|_| say(BEGIN));
        lines.lock().unwrap().clear();
        events.end(Nanos(BEGIN));
        assert!(lines.lock().unwrap().pop().unwrap().contains("1 more lines left out"));
        events.end(Nanos(BEGIN));
        assert!(lines.lock().unwrap().is_empty());
    }

    #[test]
    fn fields_are_those_of_the_event_and_of_where_it_is_reported() {
        let fields = Arc::<Mutex<Vec<String>>>::default();
        let to = Arc::clone(&fields);
        let events =
            Events::new(move |event| to.lock().unwrap().push(Value::from(event.fields.clone()).to_string()));
        let of_feed = events.with("feed", "itch");
        of_feed.with("line", "A").report(&Event::new(Severity::Info, "silent").with("times", 3));
        of_feed.warning("late");
        events.warning("no feed");
        let said = [r#"{"times":3,"feed":"itch","line":"A"}"#, r#"{"feed":"itch"}"#, "{}"];
        assert_eq!(*fields.lock().unwrap(), said);
    }

    #[test]
    fn a_kind_is_the_index_of_its_entry() {
        assert!(Kind::ALL.iter().enumerate().all(|(at, (kind, _))| *kind as usize == at));
    }
}
