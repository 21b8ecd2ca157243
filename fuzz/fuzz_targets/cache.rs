//! Any messages for the cache, one after the other.

#![no_main]

#[path = "../../crates/plant/tests/cache/holds.rs"]
mod holds;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/plant/tests/cache/model.rs"]
mod model;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| holds::any(bytes));
