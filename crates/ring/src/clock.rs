//! The clock that measures stalls, imported from one place so that the models can replace it.

#[cfg(not(loom))]
pub(crate) use std::time::Instant;

#[cfg(loom)]
pub(crate) use crate::models::clock::Instant;
