//! Anything that a re-request client is told of missing messages, and any answer.

#![no_main]

#[path = "../../crates/feed/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::recovery::client(bytes));
