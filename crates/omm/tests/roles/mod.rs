//! What roles do, one habit at a time.
mod acceptor;
mod desk;
mod provider;
mod standby;
