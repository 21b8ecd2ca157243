//! A tickerplant: the loop that serves kdb+ clients, wherever the rows come from.

pub mod config;
mod log;
pub mod log_file;
pub mod server;
mod turns;
pub mod zone;
