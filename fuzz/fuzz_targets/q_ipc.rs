//! Any bytes for a connection of the q IPC protocol: handshake, frames, compression, values.

#![no_main]

#[path = "../../crates/kdb/tests/invariants/mod.rs"]
mod invariants;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| invariants::connection(bytes));
