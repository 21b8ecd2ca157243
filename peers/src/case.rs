//! What is measured, and what comes out of it: the words between the session and the processes that it starts.

use std::fmt;

use serde::{Deserialize, Serialize};
use tapeline_measure::{Recorder, figures};

/// One measurement of one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Messages a second, each visible on its own and copied out by the receiver.
    Throughput {
        /// Bytes of a message.
        bytes: usize,
        /// What keeps the sender back.
        regime: Regime,
    },
    /// From the sender's stamp to the copy in the receiver's hands, 32 bytes on a fixed schedule.
    Latency {
        /// Messages a second.
        rate_hz: u64,
    },
    /// Throughput at full speed of 32 bytes to several receivers, each of which gets every message.
    FanOut {
        /// How many.
        receivers: usize,
    },
    /// One cache line bounced between the two cores, one way.
    Bounce,
}

/// What keeps a sender back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Regime {
    /// The sender reads the clock before each message, so that the receiver catches up and both pull at one line.
    Contended,
    /// Nothing but the room in the queue: the receiver is mostly behind, and nobody touches the other's hot line.
    Backlog,
}

impl Metric {
    /// Bytes of a message.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Self::Throughput { bytes, .. } => bytes,
            _ => 32,
        }
    }

    /// How many receivers there are.
    pub(crate) fn receivers(self) -> usize {
        if let Self::FanOut { receivers } = self { receivers } else { 1 }
    }

    /// The value by which systems are compared: messages a second, or the median latency in ns.
    pub(crate) fn value(self, result: &Received) -> Option<f64> {
        match self {
            Self::Throughput { .. } | Self::FanOut { .. } => Some(result.per_second),
            Self::Latency { .. } | Self::Bounce => result.latency.map(|latency| latency.p50_ns as f64),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Throughput { bytes, regime: Regime::Contended } => write!(f, "{bytes} B, contended"),
            Self::Throughput { bytes, regime: Regime::Backlog } => write!(f, "{bytes} B, backlog"),
            Self::Latency { rate_hz } => write!(f, "latency at {}/s", figures::thousands(*rate_hz)),
            Self::FanOut { receivers } => write!(f, "32 B to {receivers} receivers"),
            Self::Bounce => f.write_str("line bounced, one way"),
        }
    }
}

/// All that a started process needs to know.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The system's name.
    pub(crate) system: String,
    /// What is measured.
    pub(crate) metric: Metric,
    /// Names shared things of this measurement: unique among everything that runs.
    pub(crate) id: String,
    /// Sender's and receiver's core.
    pub(crate) cores: [usize; 2],
    /// The session's clock, so that each process need not find the rate anew.
    pub(crate) clock: [u64; 4],
    /// At full speed before anything counts, in ms: queues are lapped, pages and caches touched.
    pub(crate) warm_up_ms: u64,
    /// Measured time in ms.
    pub(crate) measured_ms: u64,
}

/// What a sender says afterwards.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Sent {
    /// Messages in all, warm-up included.
    pub(crate) messages: u64,
    /// Messages within the measured time.
    pub(crate) measured: u64,
    /// Tries that found no room.
    pub(crate) refused: u64,
    /// Median of how late a paced message was sent, in ns, of every 16th.
    pub(crate) late_p50_ns: u64,
    /// The same, 99th percentile.
    pub(crate) late_p99_ns: u64,
    /// The latest.
    pub(crate) late_max_ns: u64,
    /// Whether lateness grew: the rate was not carried.
    pub(crate) late_grows: bool,
}

/// What a receiver says afterwards.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Received {
    /// Messages in all, warm-up included.
    pub(crate) messages: u64,
    /// Messages missing by sequence.
    pub(crate) lost: u64,
    /// Messages that came late or twice.
    pub(crate) disordered: u64,
    /// Messages whose two ends do not belong together.
    pub(crate) torn: u64,
    /// From the sender's start to the last message here, in s.
    pub(crate) seconds: f64,
    /// Measured messages over that time.
    pub(crate) per_second: f64,
    /// Messages found by a look at the queue that found any: near 1 the receiver has caught up.
    pub(crate) per_look: f64,
    /// Of paced measurements.
    pub(crate) latency: Option<Latency>,
}

/// A distribution in short, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Latency {
    /// Samples.
    pub(crate) samples: u64,
    /// The least.
    pub(crate) min_ns: u64,
    /// 1st percentile.
    pub(crate) p1_ns: u64,
    /// Median.
    pub(crate) p50_ns: u64,
    /// 90th percentile.
    pub(crate) p90_ns: u64,
    /// 99th percentile.
    pub(crate) p99_ns: u64,
}

impl Latency {
    /// `None` without samples.
    pub(crate) fn of(recorder: &Recorder) -> Option<Self> {
        Some(Self {
            samples: recorder.samples(),
            min_ns: recorder.min_ns()?,
            p1_ns: recorder.value_at(0.01)?,
            p50_ns: recorder.value_at(0.5)?,
            p90_ns: recorder.value_at(0.9)?,
            p99_ns: recorder.value_at(0.99)?,
        })
    }
}
