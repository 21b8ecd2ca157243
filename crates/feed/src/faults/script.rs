//! A list of faults.

use std::str::FromStr;

use super::{Fault, NotAFault};

/// Maximum number of faults of a script: each is tested for each datagram.
const MOST_FAULTS: usize = 64;

/// A list of faults that act together; empty for no faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    faults: Vec<Fault>,
}

/// The error for a line of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct NotAScript {
    /// The line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: Problem,
}

/// The problem of a line of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The line is not a fault.
    #[error(transparent)]
    NotAFault(#[from] NotAFault),
    /// The script exceeds the maximum number of faults.
    #[error("more than {MOST_FAULTS} faults")]
    TooMany,
}

impl Script {
    /// Adds a fault. Returns `false` if the script already has the maximum of 64.
    pub fn push(&mut self, fault: Fault) -> bool {
        let room = self.faults.len() < MOST_FAULTS;
        if room {
            self.faults.push(fault);
        }
        room
    }

    /// Returns the faults, in the order of the script.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Returns `true` if there are no faults.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }
}

impl FromStr for Script {
    type Err = NotAScript;

    /// Parses one fault on each line; `#` begins a comment.
    fn from_str(text: &str) -> Result<Self, NotAScript> {
        let mut script = Self::default();
        for (at, line) in text.lines().enumerate() {
            let fault = line.split('#').next().unwrap_or_default().trim();
            if fault.is_empty() {
                continue;
            }
            let wrong = |problem| NotAScript { line: at + 1, problem };
            let fault = fault.parse::<Fault>().map_err(|error| wrong(error.into()))?;
            if !script.push(fault) {
                return Err(wrong(Problem::TooMany));
            }
        }
        Ok(script)
    }
}

impl FromIterator<Fault> for Script {
    /// Collects the first 64 faults.
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        Self { faults: faults.into_iter().take(MOST_FAULTS).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_fault_a_line() {
        let script: Script =
            "# a bad day\nloss=1%\n\n  delay=1ms,line=B # the long way round\n".parse().unwrap();
        let written: Vec<String> = script.faults().iter().map(Fault::to_string).collect();
        assert_eq!(written, ["loss=1.0000%,burst=1", "delay=1000000ns,line=B"]);
        let error = "loss=1%\n\nloss=1%,brust=2".parse::<Script>().unwrap_err();
        assert_eq!(error.line, 3);
        assert!(
            error.to_string().starts_with("line 3: 'loss=1%,brust=2': 'brust' does not belong"),
            "{error}"
        );
        assert!("loss=1%\n".repeat(65).parse::<Script>().unwrap_err().to_string().contains("more than 64"));
        assert!("".parse::<Script>().unwrap().is_empty());
    }
}
