//! Any messages for the provider, and for what NI providers publish to.

#![no_main]

#[path = "../../crates/omm/tests/peers/mod.rs"]
mod peers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    peers::provider(bytes);
    peers::acceptor(bytes);
});
