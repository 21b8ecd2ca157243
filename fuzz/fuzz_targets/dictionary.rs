//! Any text as a dictionary's two files.

#![no_main]

#[path = "../../crates/omm/tests/dictionary_files/mod.rs"]
mod dictionary_files;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dictionary_files::any(bytes));
