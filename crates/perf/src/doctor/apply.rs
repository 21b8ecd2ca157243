//! `--apply` and `--revert`: settings that could be better, in files of the system, each after asking.

use std::io::Write;
use std::path::Path;

use tapeline_console::Hinted;
use tapeline_console::output;
use tapeline_measure::{SystemFiles, figures};

use super::drop_in::DropIn;
use super::finding::{Finding, Lasting};
use super::machine::{Machine, cores_text};
use super::show::Looked;

/// Answers to the questions: from standard input, or yes to all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Consent {
    pub(super) is_yes: bool,
}

impl Consent {
    /// Asks on standard error. The end of the input is an error: nobody has answered.
    fn is_wanted(self, question: &str) -> anyhow::Result<bool> {
        if self.is_yes {
            return Ok(true);
        }
        anstream::eprint!("{question} [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        if std::io::stdin().read_line(&mut answer)? == 0 {
            anstream::eprintln!();
            return Err(Hinted::new(
                "standard input ended before the answer",
                "--yes answers yes to everything",
            )
            .into());
        }
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }
}

/// One setting for a file.
struct Proposal {
    topic: &'static str,
    found: String,
    why: &'static str,
    file: DropIn,
    /// Lines of the file, each with the command that restores what is in effect now.
    settings: Vec<(String, String)>,
}

/// Writes the settings that the user wants. `pinned`: the cores for plants.
pub(super) fn apply(
    machine: &Machine,
    findings: &[Looked],
    pinned: Option<&[usize]>,
    root: &Path,
    answers: Consent,
) -> anyhow::Result<()> {
    let of_findings =
        findings.iter().filter_map(|looked| proposal(&machine.files, looked.topic, &looked.finding));
    let proposals: Vec<Proposal> = pinned.map(for_cores).into_iter().chain(of_findings).collect();
    if proposals.is_empty() {
        return output::print("nothing to write: every setting that a file can make last is good");
    }
    let mut written: Vec<DropIn> = Vec::new();
    for proposal in proposals {
        let lines: Vec<&str> = proposal.settings.iter().map(|(line, _)| line.as_str()).collect();
        anstream::eprintln!("{}: {}\n  {}", proposal.topic, proposal.found, proposal.why);
        let question = format!("  write `{}` into /{}?", lines.join("`, `"), proposal.file.path());
        if answers.is_wanted(&question)? {
            let path = proposal.file.add(root, &proposal.settings)?;
            if !written.contains(&proposal.file) {
                written.push(proposal.file);
                output::print(&format!("wrote {}", path.display()))?;
            }
        }
    }
    for file in written {
        output::print(&format!(
            "in effect after the next boot, or now by: sudo sh -c \"{}\"",
            file.takes_effect_by()
        ))?;
    }
    Ok(())
}

/// Removes the files that the user wants to be removed.
pub(super) fn revert(root: &Path, answers: Consent) -> anyhow::Result<()> {
    let mut is_any = false;
    for file in DropIn::ALL {
        let Some(commands) = file.restores(root)? else { continue };
        is_any = true;
        if !answers.is_wanted(&format!("remove /{}?", file.path()))? {
            continue;
        }
        file.remove(root)?;
        output::print(&format!("removed {}", root.join(file.path()).display()))?;
        for command in commands {
            output::print(&format!("as before after the next boot, or now by: sudo sh -c \"{command}\""))?;
        }
    }
    if is_any { Ok(()) } else { output::print("there is no file of `tapeline doctor --apply`") }
}

fn for_cores(cores: &[usize]) -> Proposal {
    let before = "systemctl daemon-reload && systemctl restart 'tapeline@*'".to_owned();
    Proposal {
        topic: "cores of plants",
        found: format!("any; --cores names {}", cores_text(cores)),
        why: "the threads of a plant stay on these cores, and `cpu` in its configuration can pin each to one of them",
        file: DropIn::Cores,
        settings: vec![(format!("CPUAffinity={}", figures::list(cores)), before)],
    }
}

/// `None` if the setting is good, or no file can make it last.
fn proposal(files: &SystemFiles, topic: &'static str, finding: &Finding) -> Option<Proposal> {
    let (file, settings) = match finding.lasting.as_ref()? {
        Lasting::Sysctl(settings) => {
            let setting = |setting: &str| {
                let (name, value) = setting.split_once('=')?;
                let now = files.line(&format!("proc/sys/{}", name.replace('.', "/"))).ok()?;
                Some((format!("{name} = {value}"), format!("sysctl -w {name}={now}")))
            };
            (DropIn::Sysctl, settings.split_whitespace().map(setting).collect::<Option<Vec<_>>>()?)
        }
        Lasting::KernelFile { path, value } => {
            let now = files.chosen(path).ok()?;
            (
                DropIn::KernelFiles,
                vec![(format!("w /{path} - - - - {value}"), format!("echo {now} > /{path}"))],
            )
        }
        Lasting::Logind(setting) => {
            (DropIn::Logind, vec![(setting.clone(), "systemctl restart systemd-logind".to_owned())])
        }
    };
    Some(Proposal { topic, found: finding.found.clone(), why: finding.why?, file, settings })
}
