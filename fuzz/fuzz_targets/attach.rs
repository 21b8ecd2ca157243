//! Any bytes in a segment, before and while it is mapped: an error, or a ring that works.

#![no_main]

#[path = "../../crates/ring/tests/attach/program.rs"]
mod program;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    program::run(bytes);
});
