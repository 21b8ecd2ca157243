//! Any datagram as a segment of IEX-TP.

#![no_main]

#[path = "../../crates/feed/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::iex::segment(bytes));
