//! Any bytes as what a tickerplant's clients say, over days.

#![no_main]

#[path = "../../crates/tickerplant/tests/invariants/mod.rs"]
mod invariants;
#[path = "../../crates/tickerplant/tests/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::machine(bytes));
