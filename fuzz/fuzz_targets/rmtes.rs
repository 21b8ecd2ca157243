//! Any values for a cached RMTES string.

#![no_main]

#[path = "../../crates/omm/tests/rmtes_values/mod.rs"]
mod rmtes_values;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rmtes_values::any(bytes));
