//! What roles do, one habit at a time.
#![allow(clippy::unwrap_used)]

mod acceptor;
mod desk;
mod provider;
mod standby;
