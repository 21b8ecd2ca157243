//! The clock by which stalls are judged, from one place, so that the models can put theirs in.

#[cfg(not(loom))]
pub(crate) use std::time::Instant;

#[cfg(loom)]
pub(crate) use crate::models::clock::Instant;
