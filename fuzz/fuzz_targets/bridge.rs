//! Anything that the lower end of a bridge gets: datagrams, answers, and parts of the catch-up protocol.

#![no_main]

#[path = "../../crates/plant/tests/bridge/invariants.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::any(bytes));
