//! Any bytes as ticks that become rows of tables.

#![no_main]

#[path = "../../crates/export/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::rows(bytes));
