//! What must hold whatever bytes a peer sends: called with any bytes by `tests/hostile.rs` in `cargo test`, and by the
//! targets of `fuzz` under `make fuzz`.
//!
//! However the bytes are cut, the same events come of them; what is held is bounded; messages that came out come out again
//! when they are sent; an end has a reason and a place.

#![allow(dead_code, reason = "each fuzz target uses one of them")]

pub(crate) mod output;
pub(crate) mod session;
pub(crate) mod zmtp;
