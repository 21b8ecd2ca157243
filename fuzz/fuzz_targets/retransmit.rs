//! Any requests to a retransmission server, from any addresses at any times.

#![no_main]

#[path = "../../crates/feed/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::recovery::server(bytes));
