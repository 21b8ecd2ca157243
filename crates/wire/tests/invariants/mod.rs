//! Invariants for any bytes that a peer sends: checked by `tests/hostile.rs` in `cargo test`, and by the
//! targets of `fuzz` under `make fuzz`.
//!
//! The events do not depend on how the bytes are split; memory is bounded; messages that came out come out
//! again when they are sent; an end has a reason and a position.

#![allow(dead_code, reason = "each fuzz target uses one of them")]

pub(crate) mod output;
pub(crate) mod session;
pub(crate) mod zmtp;
