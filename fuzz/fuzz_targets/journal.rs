//! Any bytes in a journal's segments and index.

#![no_main]

#[path = "../../tests/failing/mod.rs"]
mod failing;
#[path = "../../tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::journal(bytes));
