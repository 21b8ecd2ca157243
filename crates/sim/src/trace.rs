//! The trace of a world: a hash of everything that happened, and lines for people if requested.

use std::fmt;

/// The actor of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    World,
    Feed(usize),
    Plant,
    Hub,
    Client(usize),
    Source(usize),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.pad("world"),
            Self::Feed(number) => f.pad(&format!("feed {number}")),
            Self::Plant => f.pad("plant"),
            Self::Hub => f.pad("hub"),
            Self::Source(number) => f.pad(&format!("source {number}")),
            Self::Client(number) => f.pad(&format!("client {number}")),
        }
    }
}

/// Everything that happened in a world, in order.
#[derive(Debug)]
pub(crate) struct Trace {
    /// A hash of everything so far.
    pub(crate) hash: u64,
    begun: u64,
    lines: Option<Vec<String>>,
}

impl Trace {
    /// A trace that starts at `begun`, with lines if `is_read`, otherwise with the hash alone.
    pub(crate) fn new(begun: u64, is_read: bool) -> Self {
        Self { hash: 0xCBF2_9CE4_8422_2325, begun, lines: is_read.then(Vec::new) }
    }

    /// Records an event. `number` and `what` enter the hash; `more` is called only if lines are recorded.
    pub(crate) fn say(&mut self, now: u64, who: Who, what: &str, number: u64, more: impl FnOnce() -> String) {
        let who_is = match who {
            Who::World => 0,
            Who::Plant => 1,
            Who::Hub => 2,
            Who::Feed(number) => 1_000 + number as u64,
            Who::Source(number) => 3_000 + number as u64,
            Who::Client(number) => 2_000 + number as u64,
        };
        for word in [now, who_is, fnv(what.as_bytes()), number] {
            self.hash = mix(self.hash, word);
        }
        if let Some(lines) = &mut self.lines {
            let since = now - self.begun;
            let (seconds, micros) = (since / 1_000_000_000, since % 1_000_000_000 / 1_000);
            lines.push(format!("{seconds:>3}.{micros:06} {who:<9} {what} {number} {}", more()));
        }
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

pub(crate) const fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
}

/// A hash of bytes: FNV-1a, 64 bits.
pub(crate) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}
