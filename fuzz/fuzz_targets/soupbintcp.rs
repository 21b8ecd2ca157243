//! Any stream as a server's and as a client's SoupBinTCP.

#![no_main]

#[path = "../../crates/feed/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::soupbintcp::stream(bytes));
