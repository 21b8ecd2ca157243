//! Shared parts of Tapeline's command line: every command parses arguments, reports errors, prints tables and
//! stops on signals in the same way.
//!
//! This crate and the crates of commands above it are the only users of clap and anyhow. The libraries below return typed errors and print
//! nothing.

#![forbid(unsafe_code)]
// Commands print data on standard output through `output`, and messages on standard error.

pub mod arguments;
pub mod failure;
pub mod log;
pub mod near;
pub mod omm;
pub mod output;
pub mod part;
pub mod paths;
pub mod stop;
pub mod trading_day;

pub use failure::Hinted;
pub use log::LogArgs;
pub use output::Format;
pub use paths::FilePath;
pub use stop::Stop;
