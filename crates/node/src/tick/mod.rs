//! A tickerplant: the loop that serves kdb+ clients, whatever the source of the rows.

pub mod config;
mod log;
pub mod log_file;
pub mod server;
mod turns;
pub mod zone;
