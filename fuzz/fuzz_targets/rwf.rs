//! Any bytes for every reader of RWF.

#![no_main]

#[path = "../../crates/omm/tests/readers/mod.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| readers::any(bytes));
