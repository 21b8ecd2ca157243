//! A plant of the binary in a process of its own, and what it says.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::Value;

/// A plant, which ends with this.
pub(crate) struct PlantProcess {
    pub(crate) child: Child,
    says: BufReader<ChildStdout>,
    /// What it said when it was ready.
    pub(crate) ready: Value,
}

impl PlantProcess {
    /// Starts the plant of a configuration, to the end of its feed's session. What it says to people goes to `said`.
    pub(crate) fn begin(mut command: Command, config: &Path, said: &Path) -> anyhow::Result<Self> {
        command.args(["plant", "--until-end-of-session", "--format", "json", "--config"]).arg(config);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(said)?)
            .spawn()
            .context("cannot start the plant")?;
        let says = BufReader::new(child.stdout.take().context("the plant's output")?);
        let mut plant = Self { child, says, ready: Value::Null };
        let told = || std::fs::read_to_string(said).unwrap_or_default();
        plant.ready = plant.line().with_context(|| format!("the plant did not begin: {}", told()))?;
        Ok(plant)
    }

    /// Reads the next line of JSON.
    pub(crate) fn line(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        self.says.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("the plant said {line:?}"))
    }
}

impl Drop for PlantProcess {
    fn drop(&mut self) {
        // Has no effect on one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
