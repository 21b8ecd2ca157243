//! The fields that carry times (the guide's chapter 3.2): start of encoding and due time, on CLOCK_MONOTONIC.

use std::time::Duration;

use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_omm::Fid;

/// TIM_TRK_1 of updates.
pub(super) const UPDATE: Fid = Fid(3902);
/// TIM_TRK_2 of posts.
pub(super) const POST: Fid = Fid(3903);
/// TIM_TRK_3 of generic messages.
pub(super) const GENERIC: Fid = Fid(3904);
/// TIM_TRK_4: the due time of these messages, in the unit of the other time. Tapeline's own; other tools ignore it.
pub(super) const DUE: Fid = Fid(3905);

/// The clock of the times in messages.
pub(super) fn now() -> Nanos {
    Nanos(monotonic_ns())
}

/// Time until `due`, but no longer than `most`; `most` if nothing is due.
pub(super) fn until(due: Option<Nanos>, most: Duration) -> Duration {
    due.map_or(most, |due| Duration::from_nanos(due.0.saturating_sub(now().0)).min(most))
}

/// The unit of times on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    /// The guide's unit.
    #[default]
    Micros,
    /// With `--nano-time` at both ends.
    Nanos,
}

impl Unit {
    /// Converts nanoseconds to a time on the wire.
    pub(super) fn wire_of(self, ns: u64) -> u64 {
        match self {
            Self::Micros => ns / 1_000,
            Self::Nanos => ns,
        }
    }

    /// Converts a received time to nanoseconds.
    pub(super) fn ns_of(self, time: u64) -> u64 {
        match self {
            Self::Micros => time.saturating_mul(1_000),
            Self::Nanos => time,
        }
    }
}

/// The times in a message, in wire units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// [`UPDATE`], [`POST`] or [`GENERIC`].
    pub(super) field: Fid,
    /// Start of encoding.
    pub(super) sent: u64,
    /// Due time; none with `--no-due`, and from other vendors' tools.
    pub(super) due: Option<u64>,
}
