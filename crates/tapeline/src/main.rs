//! `tapeline`: an open market-data plant, and the instruments that prove it.
//!
//! This binary is the only place that reads the command line and the configuration, starts threads, and prints.
//! Data goes to standard output, talk to standard error.

#![forbid(unsafe_code)]

mod arguments;
mod burst;
mod cli;
mod demo;
mod failure;
mod feed;
mod jitter;
mod kdb;
mod near;
mod omm;
mod output;
mod part;
mod password;
mod plant;
mod plot;
mod ring;
mod run_folder;
mod soup;
mod stat;
mod stop;
mod trading_day;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    part::end_with_parent();
    let cli = cli::Cli::parse();
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
