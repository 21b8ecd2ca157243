//! The warm-up: how much to send or read before the measured time.

use std::hint::black_box;
use std::time::Duration;

use tapeline_console::arguments;

/// A number of messages, or a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WarmUp {
    Messages(u64),
    Time(Duration),
}

impl WarmUp {
    /// Parses a warm-up given as an argument: `10k` messages, or `2s`. A plain number means messages.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Ok(messages) = arguments::rate(text) {
            return Ok(Self::Messages(messages));
        }
        let expected =
            |_| format!("'{text}' is not a warm-up; write messages (10000, 10k) or a time (2s, 500ms)");
        arguments::duration(text).map(Self::Time).map_err(expected)
    }

    pub(super) fn is_none(self) -> bool {
        matches!(self, Self::Messages(0) | Self::Time(Duration::ZERO))
    }
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::Messages(0)
    }
}

/// Runs an empty loop this many times, which the compiler cannot remove: simulates the work of a real program for
/// each message. About a third of a nanosecond per turn.
#[inline]
pub(super) fn spin(turns: u32) {
    for turn in 0..turns {
        black_box(turn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_times_are_told_apart() {
        for (text, expected) in [
            ("0", WarmUp::Messages(0)),
            ("10000", WarmUp::Messages(10_000)),
            ("10k", WarmUp::Messages(10_000)),
            ("2M", WarmUp::Messages(2_000_000)),
            ("2s", WarmUp::Time(Duration::from_secs(2))),
            ("2m", WarmUp::Time(Duration::from_secs(120))),
            ("500ms", WarmUp::Time(Duration::from_millis(500))),
        ] {
            assert_eq!(WarmUp::parse(text), Ok(expected), "{text}");
        }
        assert!(WarmUp::parse("much").unwrap_err().contains("not a warm-up"));
        assert!(WarmUp::parse("0s").unwrap().is_none() && !WarmUp::parse("1").unwrap().is_none());
    }
}
