//! The findings, for people and for programs.

use serde::Serialize;
use tapeline_measure::{Environment, figures};

use super::finding::{Finding, Severity};
use super::machine::{Machine, cores_text};

/// A finding with its area and topic.
#[derive(Debug, Serialize)]
pub(super) struct Looked {
    pub(super) area: &'static str,
    pub(super) topic: &'static str,
    #[serde(flatten)]
    pub(super) finding: Finding,
}

/// All findings.
#[derive(Debug, Serialize)]
pub(super) struct MachineReport<'a> {
    quiet_cores: &'a [usize],
    pub(super) could_be_better: usize,
    unknown: usize,
    good: usize,
    findings: Vec<Looked>,
    environment: &'a Environment,
}

impl<'a> MachineReport<'a> {
    pub(super) fn new(machine: &'a Machine, findings: Vec<Looked>, environment: &'a Environment) -> Self {
        let count = |severity| findings.iter().filter(|looked| looked.finding.severity == severity).count();
        Self {
            quiet_cores: &machine.quiet,
            could_be_better: count(Severity::CouldBeBetter),
            unknown: count(Severity::Unknown),
            good: count(Severity::Good),
            findings,
            environment,
        }
    }

    /// Text for people: settings that could be better first, each with its reason and its command.
    pub(super) fn text(&self) -> String {
        let wide = self.findings.iter().map(|looked| looked.topic.chars().count()).max().unwrap_or(0);
        let indent = " ".repeat(wide + 2 + 3);
        let mut parts = Vec::new();
        for (severity, colour) in
            [(Severity::CouldBeBetter, 33), (Severity::Unknown, 36), (Severity::Good, 32)]
        {
            let mut lines = Vec::new();
            for looked in self.findings.iter().filter(|looked| looked.finding.severity == severity) {
                let Finding { found, better, why, command, .. } = &looked.finding;
                lines.push(format!("  {:<wide$}   {found}", looked.topic));
                lines.extend(better.iter().map(|better| format!("{indent}better: {better}")));
                let why = why.map(wrapped).unwrap_or_default();
                lines.extend(why.iter().map(|why| format!("{indent}{why}")));
                lines.extend(command.iter().map(|command| format!("{indent}$ {command}")));
            }
            if !lines.is_empty() {
                let words = severity.words();
                parts.push(format!("\x1b[1;{colour}m{words}\x1b[0m\n{}", lines.join("\n")));
            }
        }
        let quiet = if self.quiet_cores.is_empty() {
            "no core to keep quiet beside the system's".to_owned()
        } else {
            format!("to be quiet: {}", cores_text(self.quiet_cores))
        };
        parts.push(format!(
            "{} could be better, {} good, {} unknown; {quiet}",
            figures::thousands(self.could_be_better as u64),
            figures::thousands(self.good as u64),
            figures::thousands(self.unknown as u64)
        ));
        parts.push(self.environment.summary());
        parts.join("\n\n")
    }
}

/// Maximum width of a reason, without its indent: the lines fit a terminal of 120 columns.
const WIDE: usize = 90;

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().filter(|line| line.is_empty() || line.len() + word.len() < WIDE);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => line.extend([" ", word]),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_wrapped_between_words() {
        let text = "a word ".repeat(40);
        let lines = wrapped(&text);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() <= WIDE), "{lines:?}");
        assert_eq!(lines.join(" "), text.trim());
        let long = "x".repeat(200);
        assert_eq!(wrapped(&long), [long]);
    }
}
