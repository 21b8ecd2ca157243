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

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of each command that a page names in its text, between backticks.
    fn named(page: &str) -> impl Iterator<Item = &str> {
        page.split('`').skip(1).step_by(2).filter_map(|span| span.strip_prefix("tapeline "))
    }

    /// Pages name commands and options that exist.
    #[test]
    fn every_command_in_the_text_of_a_page_exists() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut cli = Cli::command();
        cli.build();
        let (mut wrong, mut seen) = (Vec::new(), 0);
        let pages =
            |folder: &str| std::fs::read_dir(root.join(folder)).unwrap().map(|page| page.unwrap().path());
        for path in
            pages("docs").chain(pages("docs/feeds")).chain([root.join("README.md"), root.join("SECURITY.md")])
        {
            if path.extension().is_none_or(|is| is != "md") {
                continue;
            }
            let page = std::fs::read_to_string(&path).unwrap().replace("```", "\n");
            for span in named(&page) {
                seen += 1;
                let (mut command, mut is_found) = (&cli, true);
                for word in span.split_whitespace() {
                    let is_name = word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
                    if let Some(option) = word.strip_prefix("--") {
                        let option = option.split(['=', ',', ')']).next().unwrap_or_default();
                        let is_known = |at: &clap::Command| {
                            at.get_arguments().any(|known| known.get_long() == Some(option))
                        };
                        is_found &=
                            option == "help" || option == "version" || is_known(command) || is_known(&cli);
                    } else if let Some(found) = command.find_subcommand(word) {
                        command = found;
                    } else {
                        is_found &= !is_name || command.get_subcommands().next().is_none();
                    }
                }
                if !is_found {
                    wrong.push(format!("{}: `tapeline {span}`", path.display()));
                }
            }
        }
        assert!(wrong.is_empty() && seen > 100, "{seen} seen; these are no commands:\n{}", wrong.join("\n"));
    }
}
