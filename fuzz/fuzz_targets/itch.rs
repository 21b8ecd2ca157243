//! Any file of ITCH messages.

#![no_main]

#[path = "../../crates/feed/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::itch::file(bytes));
