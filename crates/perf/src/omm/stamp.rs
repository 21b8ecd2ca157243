//! The fields that carry times (the guide's chapter 3.2): when a message began to be encoded, on CLOCK_MONOTONIC, and when
//! it was due.

use tapeline_omm::Fid;

/// TIM_TRK_1 of updates.
pub(super) const UPDATE: Fid = Fid(3902);
/// TIM_TRK_2 of posts.
pub(super) const POST: Fid = Fid(3903);
/// TIM_TRK_3 of generic messages.
pub(super) const GENERIC: Fid = Fid(3904);
/// TIM_TRK_4: when any of them was due, in the unit of the time beside it. Tapeline's own; other tools pass it over.
pub(super) const DUE: Fid = Fid(3905);

/// The unit in which times travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    /// What the guide has.
    #[default]
    Micros,
    /// With `--nano-time`, at both ends.
    Nanos,
}

impl Unit {
    /// What a time in nanoseconds is on the wire.
    pub(super) fn wire_of(self, ns: u64) -> u64 {
        match self {
            Self::Micros => ns / 1_000,
            Self::Nanos => ns,
        }
    }

    /// Nanoseconds of what came.
    pub(super) fn ns_of(self, time: u64) -> u64 {
        match self {
            Self::Micros => time.saturating_mul(1_000),
            Self::Nanos => time,
        }
    }
}

/// The times in a message, as they travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// [`UPDATE`], [`POST`] or [`GENERIC`].
    pub(super) field: Fid,
    /// When its encoding began.
    pub(super) sent: u64,
    /// When it was due; none with `--no-due`, and from other makers' tools.
    pub(super) due: Option<u64>,
}
