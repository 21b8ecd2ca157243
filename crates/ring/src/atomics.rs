//! The atomics for all shared state, imported from one place so that the models can replace them.

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(loom)]
pub(crate) use crate::models::atomics::{AtomicU32, AtomicU64, Ordering, fence};
