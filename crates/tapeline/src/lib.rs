//! The commands of `tapeline`: an open market-data plant, and the tools that measure and verify it.
//!
//! This crate is the only place that reads the command line and the configuration, starts threads, and prints.
//! Data goes to standard output, messages for people to standard error.
//!
//! The binary is this alone. Cargo builds the commands as a library while it still builds those that they need.
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     tapeline_commands::run()
//! }
//! ```

#![forbid(unsafe_code)]

/// Runs the subcommand that was given: the variant of an enumeration that holds its arguments.
macro_rules! run {
    ($command:expr, $kind:ident: $($name:ident)*) => {
        match $command {
            $($kind::$name(command) => command.run(),)*
        }
    };
}

mod bridge;
mod cli;
mod demo;
mod events;
mod feed;
mod journal;
mod kdb;
mod omm;
mod password;
mod plant;
mod ring;
mod shell;
mod stat;
mod tick;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use tapeline_console::{failure, part};

/// Runs the command that the process was started with; returns its status.
pub fn run() -> ExitCode {
    part::end_with_parent();
    failure::set_adviser(|error| Some(error.downcast_ref::<tapeline_node::Error>()?.hint()?.to_owned()));
    let arguments: Vec<_> = std::env::args_os().collect();
    let omm::Translated { arguments, spelling, notes } = match omm::translate(&arguments, Path::new("")) {
        Ok(translated) => translated,
        Err(error) => {
            anstream::eprintln!("{}", failure::text(&error.into()));
            return ExitCode::from(failure::UNKNOWN_ARGUMENTS);
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
            return ExitCode::from(failure::UNKNOWN_ARGUMENTS);
        }
    };
    match cli.command.run() {
        Ok(code) => code,
        Err(error) => failure::report(&error, &|text| spelling.respelled(text)),
    }
}
