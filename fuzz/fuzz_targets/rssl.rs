//! Any bytes as a peer's part of an RSSL connection.

#![no_main]

#[path = "../../crates/wire/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::session::bytes(bytes));
