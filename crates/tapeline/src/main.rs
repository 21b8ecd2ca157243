//! `tapeline`: an open market-data plant, and the tools that measure and verify it.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    tapeline_commands::run()
}
