//! The systems: one file each, with a sender, a receiver and the settings at which it is at its best.

mod copying;
mod crossbeam;
mod disruptor;
mod line;
mod promises;
mod ring;
mod rtrb;
mod slot;
mod spsc;

#[cfg(feature = "aeron")]
mod aeron;
#[cfg(feature = "boost")]
mod boost;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;
#[cfg(feature = "zeromq")]
mod zeromq;

use crate::case::{Metric, Regime};
use crate::stage::Stage;
pub(crate) use promises::{LinesWritten, lines_written};

/// A system under measurement.
pub(crate) struct System {
    /// Its name in options and files.
    pub(crate) name: &'static str,
    /// Its name for people.
    pub(crate) title: &'static str,
    /// What it belongs to: a limit, ours, or the peer's name.
    pub(crate) peer: &'static str,
    /// What runs.
    pub(crate) place: Place,
    /// What it can be asked.
    pub(crate) scope: Scope,
    /// The settings.
    pub(crate) settings: &'static str,
    /// Plays a part of a case.
    pub(crate) run: fn(&Stage) -> anyhow::Result<()>,
}

/// What a system runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A process for the sender and one for each receiver.
    Processes,
    /// The same, and a daemon beside them that shares the cores.
    ProcessesAndDriver,
    /// Two threads of one process.
    Threads,
}

/// What a system can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Throughput and latency.
    Queue,
    /// As well one sender to several receivers, and paces that only the fastest keep.
    Ours,
    /// Latency and the bounce of a line.
    Line,
    /// Throughput at full speed.
    Copy,
    /// Throughput of 32 bytes.
    Promise,
}

/// The highest pace, which only ours is asked for.
pub(crate) const HIGHEST_PACE_HZ: u64 = 40_000_000;

impl System {
    /// Whether it can be asked for `metric`.
    pub(crate) fn answers(&self, metric: Metric) -> bool {
        match (self.scope, metric) {
            (Scope::Line, Metric::Latency { rate_hz }) | (Scope::Queue, Metric::Latency { rate_hz }) => {
                rate_hz < HIGHEST_PACE_HZ
            }
            (Scope::Line, metric) => metric == Metric::Bounce,
            (Scope::Copy, metric) => matches!(metric, Metric::Throughput { regime: Regime::Backlog, .. }),
            (Scope::Queue, metric) => matches!(metric, Metric::Throughput { .. }),
            (Scope::Promise, metric) => matches!(metric, Metric::Throughput { bytes: 32, .. }),
            (Scope::Ours, metric) => metric != Metric::Bounce,
        }
    }
}

/// Every system of this build, in the order of the tables: the limits, ours, the peers.
pub(crate) const SYSTEMS: &[System] = &[
    line::SYSTEM,
    copying::SMALL,
    copying::LARGE,
    ring::PACKED,
    ring::LINES,
    ring::FIXED,
    ring::PACKED_MIDDLE,
    ring::PACKED_LARGE,
    ring::LINES_LARGE,
    spsc::SINGLE,
    spsc::BATCH,
    promises::THREADS,
    promises::SHOWN,
    promises::LOSSY,
    #[cfg(feature = "boost")]
    boost::SINGLE,
    #[cfg(feature = "boost")]
    boost::BATCH,
    #[cfg(feature = "aeron")]
    aeron::SYSTEM,
    #[cfg(feature = "iceoryx2")]
    iceoryx2::SYSTEM,
    #[cfg(feature = "zeromq")]
    zeromq::SYSTEM,
    rtrb::SINGLE,
    rtrb::BATCH,
    crossbeam::SYSTEM,
    disruptor::SYSTEM,
];

/// The peers that a build may lack: name of the feature, and whether it is in.
pub(crate) const OPTIONAL: [(&str, bool); 4] = [
    ("boost", cfg!(feature = "boost")),
    ("aeron", cfg!(feature = "aeron")),
    ("iceoryx2", cfg!(feature = "iceoryx2")),
    ("zeromq", cfg!(feature = "zeromq")),
];

/// The system of that name.
pub(crate) fn named(name: &str) -> Option<&'static System> {
    SYSTEMS.iter().find(|system| system.name == name)
}
