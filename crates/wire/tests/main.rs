//! All tests of this crate that need only its public interface, as one program, so that they run in parallel.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and says what it skips"
)]

mod hostile;
mod http;
mod invariants;
#[path = "../../feed/tests/mutations/mod.rs"]
mod mutations;
mod pool;
mod rssl_pauses;
mod rssl_reactor;
mod rssl_session;
mod rssl_tls;
mod rssl_vectors;
mod rssl_websocket;
#[path = "../../omm/tests/shared_data/mod.rs"]
mod shared_data;
mod streams;
mod tcp;
mod udp;
mod vectors;
mod web_client;
mod world;
mod zmtp;
