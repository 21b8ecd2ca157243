//! Any messages for TOPS and DEEP.

#![no_main]

#[path = "../../crates/feed/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::iex::pieces(bytes));
