//! Any bytes for a kdb+ log.

#![no_main]

#[path = "../../crates/kdb/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::log(bytes));
