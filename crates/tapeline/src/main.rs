//! `tapeline`: an open market-data plant, and the instruments that prove it.
//!
//! This binary is the only place that reads the command line and the configuration, starts threads, and prints.
//! Data goes to standard output, talk to standard error.

#![forbid(unsafe_code)]

mod arguments;
mod burst;
mod cli;
mod demo;
mod doctor;
mod failure;
mod feed;
mod jitter;
mod journal;
mod kdb;
mod near;
mod omm;
mod output;
mod part;
mod password;
mod paths;
mod peer_log;
mod plant;
mod plot;
mod report;
mod ring;
mod run_folder;
mod soup;
mod stat;
mod stop;
mod tick;
mod trading_day;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

/// What clap ends with for a command line that cannot be understood.
const UNKNOWN_ARGUMENTS: u8 = 2;

fn main() -> ExitCode {
    part::end_with_parent();
    let arguments: Vec<_> = std::env::args_os().collect();
    let omm::Translated { arguments, spelling, notes } = match omm::translate(&arguments, Path::new("")) {
        Ok(translated) => translated,
        Err(error) => {
            anstream::eprintln!("{}", failure::text(&error.into()));
            return ExitCode::from(UNKNOWN_ARGUMENTS);
        }
    };
    for note in notes {
        anstream::eprintln!("note: {note}");
    }
    let cli = match cli::Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if spelling.is_plain() || !error.use_stderr() => error.exit(),
        Err(error) => {
            let text = error.render().ansi().to_string();
            anstream::eprint!("{}", spelling.respelled(&text));
            return ExitCode::from(UNKNOWN_ARGUMENTS);
        }
    };
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => failure::report(&error, &|text| spelling.respelled(text)),
    }
}
