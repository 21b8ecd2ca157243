//! Lines on standard error that peers can provoke: each with its time, and of each kind no more than [`MOST_LINES`] in a second.
//!
//! Whoever connects and disconnects without end would otherwise fill a disk, and slow down the thread that writes. What is left out is
//! counted and said in one line. Memory: three numbers for each kind, whoever the peers are.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use tapeline_measure::Nanos;

/// Lines of one kind in a second: enough to read what happens, and a day of them is a few hundred MB at most.
const MOST_LINES: u64 = 20;
const PERIOD_NS: i64 = 1_000_000_000;

/// Which lines are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A client of the hub has logged in.
    Login,
    /// A client of the hub has gone.
    Gone,
    /// A login to the hub was refused.
    Refused,
    /// A client of the hub was denied an item.
    Denied,
    /// A connection to the hub was over before a login.
    NeverOpened,
    /// A message of a client of the hub cannot be read, or sent to it.
    Unreadable,
    /// A kdb+ client was turned away or cut off.
    Kdb,
    /// A ZeroMQ subscriber has gone.
    Zeromq,
    /// A provider, publisher, or what one of them sends.
    Source,
    /// A server that is asked for what is missing.
    Recovery,
    /// A port lets nobody in.
    Accept,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Login,
        Self::Gone,
        Self::Refused,
        Self::Denied,
        Self::NeverOpened,
        Self::Unreadable,
        Self::Kdb,
        Self::Zeromq,
        Self::Source,
        Self::Recovery,
        Self::Accept,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Login => "hub: logins",
            Self::Gone => "hub: sessions that are gone",
            Self::Refused => "hub: refused logins",
            Self::Denied => "hub: denied items",
            Self::NeverOpened => "hub: connections that never opened",
            Self::Unreadable => "hub: messages that cannot be read or sent",
            Self::Kdb => "kdb+ clients",
            Self::Zeromq => "zeromq: subscribers",
            Self::Source => "sources",
            Self::Recovery => "recovery",
            Self::Accept => "ports that let nobody in",
        }
    }
}

/// Counts lines; the text of none is kept.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    kinds: [Period; Kind::ALL.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Period {
    begun: Nanos,
    said: u64,
    left_out: u64,
}

impl Limiter {
    pub(crate) const fn new() -> Self {
        let period = Period { begun: Nanos(0), said: 0, left_out: 0 };
        Self { kinds: [period; Kind::ALL.len()] }
    }

    /// The text to write for a line, with its end: a count of those that were left out before it, then the line. `None` where it is left
    /// out.
    pub(crate) fn line(&mut self, now: Nanos, kind: Kind, line: &dyn fmt::Display) -> Option<String> {
        let mut text = self.end_period(now, kind).unwrap_or_default();
        let period = &mut self.kinds[kind as usize];
        if period.said == MOST_LINES {
            period.left_out += 1;
            return None;
        }
        period.said += 1;
        text.push_str(&format!("{} {line}\n", Utc(now)));
        Some(text)
    }

    /// The counts that are due where nothing more comes; `None` if there are none.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<String> {
        let text: String = Kind::ALL.iter().filter_map(|kind| self.end_period(now, *kind)).collect();
        (!text.is_empty()).then_some(text)
    }

    /// Every count that was not said yet: the process ends.
    pub(crate) fn rest(&mut self, now: Nanos) -> Option<String> {
        self.kinds.iter_mut().for_each(|period| period.begun = Nanos(0));
        self.due(now)
    }

    /// Begins another period where the last one is over, and says what was left out in it.
    fn end_period(&mut self, now: Nanos, kind: Kind) -> Option<String> {
        let period = &mut self.kinds[kind as usize];
        // A clock that was set back ends it too.
        if (0..PERIOD_NS).contains(&now.since(period.begun)) {
            return None;
        }
        let Period { left_out, .. } = std::mem::replace(period, Period { begun: now, ..Period::default() });
        (left_out > 0).then(|| format!("{} {}: {left_out} more lines left out\n", Utc(now), kind.name()))
    }
}

/// The process's own.
static LIMITER: Mutex<Limiter> = Mutex::new(Limiter::new());

/// The text to write for a line of the process's, for whoever writes it elsewhere: see [`Limiter::line`].
pub(crate) fn line(now: Nanos, kind: Kind, line: &dyn fmt::Display) -> Option<String> {
    LIMITER.lock().unwrap_or_else(PoisonError::into_inner).line(now, kind, line)
}

/// Writes a line to standard error, unless there were too many of its kind.
pub(crate) fn say(now: Nanos, kind: Kind, said: fmt::Arguments<'_>) {
    if let Some(text) = line(now, kind, &said) {
        anstream::eprint!("{text}");
    }
}

/// Says how many lines were left out in the last second: whoever calls [`say`] calls this about once a second.
pub(crate) fn say_left_out(now: Nanos) {
    let text = LIMITER.lock().unwrap_or_else(PoisonError::into_inner).due(now);
    if let Some(text) = text {
        anstream::eprint!("{text}");
    }
}

/// Says how many lines were left out and not counted yet: the process ends.
pub(crate) fn end(now: Nanos) {
    let text = LIMITER.lock().unwrap_or_else(PoisonError::into_inner).rest(now);
    if let Some(text) = text {
        anstream::eprint!("{text}");
    }
}

/// A moment, as RFC 3339 has it, in microseconds; nothing where no calendar has it.
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
#[allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn a_line_has_its_time() {
        let text = Limiter::new().line(Nanos(BEGIN), Kind::Login, &"hub: session 0 login A");
        assert_eq!(text.unwrap(), "2027-01-15T08:00:00.000000Z hub: session 0 login A\n");
    }

    #[test]
    fn a_flood_of_one_kind_is_cut_counted_and_hides_no_other() {
        let mut limiter = Limiter::new();
        let mut lines = 0;
        for at in 0..10_000 {
            lines += u64::from(limiter.line(Nanos(BEGIN + at), Kind::Gone, &"gone").is_some());
        }
        assert_eq!(lines, MOST_LINES);
        assert!(limiter.line(Nanos(BEGIN), Kind::Login, &"login").is_some());
        assert_eq!(limiter.due(Nanos(BEGIN + 20_000)), None, "the second is not over");
        let said = limiter.due(Nanos(BEGIN + 1_000_000_000)).unwrap();
        assert!(said.ends_with(" hub: sessions that are gone: 9980 more lines left out\n"), "{said}");
        assert_eq!(said.lines().count(), 1);
        assert!(limiter.line(Nanos(BEGIN + 1_000_000_001), Kind::Gone, &"gone").is_some());
    }

    #[test]
    fn what_is_left_out_is_said_before_the_next_line_and_at_the_end() {
        let mut limiter = Limiter::new();
        for _ in 0..=MOST_LINES {
            let _ = limiter.line(Nanos(BEGIN), Kind::Kdb, &"cut");
        }
        let text = limiter.line(Nanos(BEGIN + 2_000_000_000), Kind::Kdb, &"cut").unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].ends_with("kdb+ clients: 1 more lines left out") && lines[1].ends_with("cut"),
            "{text}"
        );
        // A clock that was set back begins another second.
        assert!(limiter.line(Nanos(BEGIN), Kind::Kdb, &"cut").is_some());
        for _ in 0..MOST_LINES {
            let _ = limiter.line(Nanos(BEGIN), Kind::Kdb, &"cut");
        }
        assert!(limiter.rest(Nanos(BEGIN)).unwrap().contains("1 more lines left out"));
        assert_eq!(limiter.rest(Nanos(BEGIN)), None);
    }
}
