//! `tapeline completions` and `tapeline man`: files for shells and for man, made from the command line's own
//! description.

use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::aot::{Shell, generate};
use tapeline_console::{FilePath, output, paths};

use crate::cli::Cli;

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline completions bash > ~/.local/share/bash-completion/completions/tapeline\n  \
    tapeline completions zsh > ~/.zfunc/_tapeline             with ~/.zfunc in fpath\n  \
    tapeline completions fish > ~/.config/fish/completions/tapeline.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: KnownShell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum KnownShell {
    Bash,
    Fish,
    Zsh,
}

impl Completions {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let shell = match self.shell {
            KnownShell::Bash => Shell::Bash,
            KnownShell::Fish => Shell::Fish,
            KnownShell::Zsh => Shell::Zsh,
        };
        let mut script = Vec::new();
        generate(shell, &mut Cli::command(), "tapeline", &mut script);
        output::print(String::from_utf8(script)?.trim_end())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Write pages for man into a folder: one for each command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline man ~/.local/share/man/man1     then: man tapeline-plant-watch")]
pub(crate) struct Man {
    /// The folder; it is created if it does not exist
    folder: FilePath,
}

impl Man {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let folder: &std::path::Path = &self.folder;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", paths::shown(&folder)))?;
        clap_mangen::generate_to(Cli::command(), folder)
            .with_context(|| format!("cannot write pages into {}", paths::shown(&folder)))?;
        Ok(ExitCode::SUCCESS)
    }
}
