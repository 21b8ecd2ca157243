//! Their Java side: a program on ETA's codec that goes on running, so that its code is compiled when it is measured.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, ensure};

use crate::TASKS;

/// Seconds for each task before it counts: the compiler has to have seen it.
const WARM_UP: f64 = 1.0;

/// The program, with the message of one size.
pub(crate) struct Java {
    program: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Java {
    /// Starts it with ETA's jars in `jars` and the dictionaries in `folder`, lets it encode `message` again, which has to
    /// give the same bytes, and warms it up. On the core of this process.
    pub(crate) fn start(jars: &Path, folder: &Path, message: &[u8]) -> anyhow::Result<Self> {
        let mut program = Command::new("java")
            .arg("-cp")
            .arg(jars.join("*"))
            // Java compiles it as it starts.
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/java/CodecBench.java"))
            .args([folder.join("RDMFieldDictionary"), folder.join("enumtype.def")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("java")?;
        let (to, from) = (program.stdin.take(), program.stdout.take());
        let (to, from) = to.zip(from).context("java without standard input and output")?;
        let mut java = Self { program, to, from: BufReader::new(from) };
        let mut line = "message ".to_owned();
        for byte in message {
            write!(line, "{byte:02x}")?;
        }
        let answer = java.ask(&line)?;
        ensure!(answer == "ok", "CodecBench.java takes no message: {answer:?}");
        for task in TASKS {
            java.rate(task, WARM_UP)?;
        }
        Ok(java)
    }

    /// Million messages a second.
    pub(crate) fn rate(&mut self, task: &str, seconds: f64) -> anyhow::Result<f64> {
        let answer = self.ask(&format!("{task} {seconds}"))?;
        answer.parse().with_context(|| format!("CodecBench.java says {answer:?}"))
    }

    fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        let mut answer = String::new();
        writeln!(self.to, "{line}").context("CodecBench.java has ended")?;
        self.from.read_line(&mut answer)?;
        ensure!(!answer.is_empty(), "CodecBench.java has ended; above is why");
        Ok(answer.trim_end().to_owned())
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // It waits for a line and has nothing to lose.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}
