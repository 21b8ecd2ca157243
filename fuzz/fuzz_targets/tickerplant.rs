//! Any bytes as what a tickerplant's clients say, over days.

#![no_main]

#[path = "../../tests/invariants/mod.rs"]
mod invariants;
#[path = "../../tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::machine(bytes));
