//! One fault: its kind, probability and line, and its text form.

use std::fmt;
use std::str::FromStr;

use crate::line::{Line, MAX_LINES};
use crate::simulate::schedule::span_ns;

/// Maximum number of datagrams of a burst, before a second copy or before an overtaken datagram; bounds the held datagrams.
const MOST_DATAGRAMS: u32 = 10_000;
/// Maximum number of changed bytes of a datagram.
const MOST_BYTES: u32 = 64;
/// Maximum delay: ten seconds.
const LONGEST_DELAY_NS: u64 = 10_000_000_000;

/// A probability, in parts of 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// The probability 1.
    pub const ALWAYS: Self = Self(1 << 32);

    /// Returns the probability of a share from 0 to 1; `None` for anything else.
    #[must_use]
    pub fn of(share: f64) -> Option<Self> {
        // Lossless: at most 2³².
        (0.0..=1.0).contains(&share).then(|| Self((share * Self::ALWAYS.0 as f64).round() as u64))
    }

    /// Returns `true` if a random number of 32 bits is a hit.
    pub(super) const fn hits(self, word: u32) -> bool {
        (word as u64) < self.0
    }
}

/// Parses `1%` and `0.01`.
impl FromStr for Chance {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
        number.parse().ok().and_then(|number: f64| Self::of(number * scale)).ok_or(())
    }
}

/// The part of a datagram whose bytes are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramPart {
    /// Any.
    Any,
    /// Those of the packet's header.
    Header,
    /// The bytes after the header, the messages' lengths included.
    Payload,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The exchange numbers from 1 again with message `at`, in the same session.
    Reset {
        /// The first message of the new numbering, in the old one.
        at: u64,
    },
    /// The exchange ends the session and begins another one with message `at`.
    Roll {
        /// The first message of the new session, in the old numbering.
        at: u64,
    },
    /// No datagram that begins with a message from `from` to before `to` is sent.
    Silence {
        /// The first message.
        from: u64,
        /// The first message that is sent again; `u64::MAX` for a dead line.
        to: u64,
    },
    /// Datagrams are lost.
    Loss {
        /// The probability.
        chance: Chance,
        /// Datagrams in a row.
        burst: u32,
    },
    /// A datagram is sent twice.
    Duplicate {
        /// The probability.
        chance: Chance,
        /// Datagrams between both.
        after: u32,
    },
    /// Bytes are changed.
    Corrupt {
        /// The probability.
        chance: Chance,
        /// The number of bytes.
        bytes: u32,
        /// The part of the datagram.
        part: DatagramPart,
    },
    /// The end of a datagram is cut off.
    Truncate {
        /// The probability.
        chance: Chance,
    },
    /// A datagram is overtaken by others.
    Reorder {
        /// The probability.
        chance: Chance,
        /// The number of overtaking datagrams.
        by: u32,
    },
    /// All datagrams are delayed.
    Delay {
        /// The delay in ns.
        by_ns: u64,
    },
}

impl FaultKind {
    /// Returns the position of the fault in the order in which faults act on a datagram.
    pub(super) const fn rank(self) -> u8 {
        match self {
            Self::Reset { .. } | Self::Roll { .. } => 0,
            Self::Silence { .. } => 1,
            Self::Loss { .. } => 2,
            Self::Duplicate { .. } => 3,
            Self::Corrupt { .. } => 4,
            Self::Truncate { .. } => 5,
            Self::Reorder { .. } => 6,
            Self::Delay { .. } => 7,
        }
    }

    /// Returns `true` for a fault of the exchange, which is the same on every line.
    #[must_use]
    pub const fn is_of_the_exchange(self) -> bool {
        matches!(self, Self::Reset { .. } | Self::Roll { .. })
    }
}

/// One fault of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The line; `None` for all.
    pub line: Option<Line>,
}

/// The error for a text that is not a fault; states what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{fault}': {wrong}")]
pub struct NotAFault {
    fault: String,
    wrong: String,
}

impl FromStr for Fault {
    type Err = NotAFault;

    /// Parses `loss=1%,burst=5,line=A`: see [the module](super).
    fn from_str(text: &str) -> Result<Self, NotAFault> {
        let text = text.trim();
        read(text).map_err(|wrong| NotAFault { fault: text.to_owned(), wrong })
    }
}

/// The names of faults with their text forms.
const KINDS: [(&str, &str); 9] = [
    ("loss", "loss=1% or loss=1%,burst=5"),
    ("duplicate", "duplicate=1% or duplicate=1%,after=3"),
    ("reorder", "reorder=1% or reorder=1%,by=4"),
    ("delay", "delay=200us"),
    ("corrupt", "corrupt=1% or corrupt=1%,bytes=3,in=payload"),
    ("truncate", "truncate=1%"),
    ("silence", "silence=5000,messages=800"),
    ("reset", "reset=4000"),
    ("roll", "roll=4000"),
];

fn read(text: &str) -> Result<Fault, String> {
    let mut parts = text.split(',').map(|part| match part.split_once('=') {
        Some((key, value)) => (key.trim(), value.trim()),
        None => (part.trim(), ""),
    });
    let (name, value) = parts.next().unwrap_or_default();
    let Some((_, sample)) = KINDS.iter().find(|(known, _)| *known == name) else {
        let known = KINDS.map(|(known, _)| known).join(", ");
        return Err(format!("no fault is called '{name}'; there are {known}"));
    };
    let mut options = Options { sample, all: parts.collect() };
    let chance = || value.parse().map_err(|()| format!("'{value}' is no chance; write 1% or 0.01"));
    let message = || match value.parse() {
        Ok(at) if at > 0 => Ok(at),
        _ => Err(format!("'{value}' is no message's number; write {sample}")),
    };
    let kind = match name {
        "loss" => {
            FaultKind::Loss { chance: chance()?, burst: options.count("burst", 1, 1..=MOST_DATAGRAMS)? }
        }
        "duplicate" => {
            FaultKind::Duplicate { chance: chance()?, after: options.count("after", 0, 0..=MOST_DATAGRAMS)? }
        }
        "reorder" => {
            FaultKind::Reorder { chance: chance()?, by: options.count("by", 1, 1..=MOST_DATAGRAMS)? }
        }
        "delay" => match span_ns(value) {
            Some(by_ns) if by_ns <= LONGEST_DELAY_NS => FaultKind::Delay { by_ns },
            _ => return Err(format!("'{value}' is no delay of at most 10s; write 20ms, 200us or 500ns")),
        },
        "corrupt" => FaultKind::Corrupt {
            chance: chance()?,
            bytes: options.count("bytes", 1, 1..=MOST_BYTES)?,
            part: match options.take("in") {
                None | Some("any") => DatagramPart::Any,
                Some("header") => DatagramPart::Header,
                Some("payload") => DatagramPart::Payload,
                Some(other) => {
                    return Err(format!("'{other}' is no part of a packet; there are header, payload, any"));
                }
            },
        },
        "truncate" => FaultKind::Truncate { chance: chance()? },
        "silence" => {
            let from = message()?;
            let messages = options.count("messages", u32::MAX, 1..=u32::MAX)?;
            let dead = messages == u32::MAX;
            FaultKind::Silence {
                from,
                to: if dead { u64::MAX } else { from.saturating_add(messages.into()) },
            }
        }
        "reset" => FaultKind::Reset { at: message()? },
        _ => FaultKind::Roll { at: message()? },
    };
    let line = options.line()?;
    if kind.is_of_the_exchange() && line.is_some() {
        return Err(format!("a {name} is the exchange's, and so on every line; leave 'line' out"));
    }
    options.nothing_left()?;
    Ok(Fault { kind, line })
}

/// The options after the first comma.
struct Options<'t> {
    sample: &'t str,
    all: Vec<(&'t str, &'t str)>,
}

impl<'t> Options<'t> {
    fn take(&mut self, key: &str) -> Option<&'t str> {
        let at = self.all.iter().position(|(known, _)| *known == key)?;
        Some(self.all.remove(at).1)
    }

    fn count(
        &mut self,
        key: &str,
        default: u32,
        range: std::ops::RangeInclusive<u32>,
    ) -> Result<u32, String> {
        let Some(value) = self.take(key) else { return Ok(default) };
        match value.parse() {
            Ok(count) if range.contains(&count) => Ok(count),
            _ => Err(format!("{key} is '{value}'; {} to {} is expected", range.start(), range.end())),
        }
    }

    fn line(&mut self) -> Result<Option<Line>, String> {
        let Some(value) = self.take("line") else { return Ok(None) };
        let letters = || (0..MAX_LINES).filter_map(Line::new);
        match letters().find(|line| value.chars().eq([line.letter()])) {
            Some(line) => Ok(Some(line)),
            None => Err(format!("line is '{value}'; a letter from A to H is expected")),
        }
    }

    fn nothing_left(&self) -> Result<(), String> {
        match self.all.first() {
            None => Ok(()),
            Some((key, _)) => Err(format!(
                "'{key}' does not belong there, or twice; write {} and maybe line=A",
                self.sample
            )),
        }
    }
}

/// Writes the fault as in a script.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |chance: Chance| chance.0 as f64 / Chance::ALWAYS.0 as f64 * 100.0;
        match self.kind {
            FaultKind::Loss { chance, burst } => write!(f, "loss={:.4}%,burst={burst}", percent(chance)),
            FaultKind::Duplicate { chance, after } => {
                write!(f, "duplicate={:.4}%,after={after}", percent(chance))
            }
            FaultKind::Reorder { chance, by } => write!(f, "reorder={:.4}%,by={by}", percent(chance)),
            FaultKind::Delay { by_ns } => write!(f, "delay={by_ns}ns"),
            FaultKind::Corrupt { chance, bytes, part } => {
                let part = match part {
                    DatagramPart::Any => "any",
                    DatagramPart::Header => "header",
                    DatagramPart::Payload => "payload",
                };
                write!(f, "corrupt={:.4}%,bytes={bytes},in={part}", percent(chance))
            }
            FaultKind::Truncate { chance } => write!(f, "truncate={:.4}%", percent(chance)),
            FaultKind::Silence { from, to: u64::MAX } => write!(f, "silence={from}"),
            FaultKind::Silence { from, to } => write!(f, "silence={from},messages={}", to - from),
            FaultKind::Reset { at } => write!(f, "reset={at}"),
            FaultKind::Roll { at } => write!(f, "roll={at}"),
        }?;
        match self.line {
            Some(line) => write!(f, ",line={}", line.letter()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "loss=1.0000%,burst=5,line=A",
            "duplicate=0.5000%,after=3",
            "reorder=100.0000%,by=4,line=H",
            "delay=200000ns,line=B",
            "corrupt=0.1000%,bytes=3,in=payload",
            "truncate=2.5000%",
            "silence=5000,messages=800",
            "silence=7,line=A",
            "reset=4000",
            "roll=1",
        ] {
            let fault: Fault = text.parse().unwrap();
            assert_eq!(fault.to_string(), text);
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        let short: Fault = " loss=0.01 , line=B ".parse().unwrap();
        assert_eq!(short.to_string(), "loss=1.0000%,burst=1,line=B");
        assert_eq!("delay=20ms".parse::<Fault>().unwrap().kind, FaultKind::Delay { by_ns: 20_000_000 });
    }

    #[test]
    fn what_is_wrong_is_named_with_what_was_expected() {
        for (text, said) in [
            ("", "'': no fault is called ''; there are loss, duplicate, reorder"),
            ("los=1%", "no fault is called 'los'"),
            ("loss", "'' is no chance; write 1% or 0.01"),
            ("loss=101%", "'101%' is no chance"),
            ("loss=NaN", "'NaN' is no chance"),
            ("loss=-1%", "'-1%' is no chance"),
            ("loss=1%,burst=0", "burst is '0'; 1 to 10000 is expected"),
            ("loss=1%,by=2", "'by' does not belong there, or twice; write loss=1% or loss=1%,burst=5"),
            ("loss=1%,burst=2,burst=3", "'burst' does not belong there, or twice"),
            ("loss=1%,line=I", "line is 'I'; a letter from A to H"),
            ("delay=200", "'200' is no delay"),
            ("delay=11s", "'11s' is no delay of at most 10s"),
            ("corrupt=1%,in=tail", "'tail' is no part of a packet"),
            ("silence=0", "'0' is no message's number; write silence=5000,messages=800"),
            ("reset=1%", "'1%' is no message's number; write reset=4000"),
            ("roll=5,line=A", "a roll is the exchange's"),
        ] {
            let error = text.parse::<Fault>().unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
