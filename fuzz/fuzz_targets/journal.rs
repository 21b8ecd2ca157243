//! Any bytes in a journal's segments and index.

#![no_main]

#[path = "../../crates/journal/tests/failing/mod.rs"]
mod failing;
#[path = "../../crates/journal/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::journal(bytes));
