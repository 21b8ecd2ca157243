//! Any bytes as a subscriber's part of a ZMTP connection.

#![no_main]

#[path = "../../crates/wire/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::zmtp::bytes(bytes));
