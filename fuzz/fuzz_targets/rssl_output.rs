//! Any script of messages into small buffers.

#![no_main]

#[path = "../../crates/wire/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::output::script(bytes));
