//! Any messages for the consumer, and for the NI provider.

#![no_main]

#[path = "../../crates/omm/tests/servers/mod.rs"]
mod servers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    servers::consumer(bytes);
    servers::ni_provider(bytes);
});
