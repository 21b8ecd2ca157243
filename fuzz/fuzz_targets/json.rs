//! Any text for the reader of JSON, any message for its writer.

#![no_main]

#[path = "../../crates/omm/tests/texts/mod.rs"]
mod texts;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    texts::text(bytes);
    texts::rwf(bytes);
});
