//! The hub under test: the binary's own, in a process of its own, on the ring of the bench.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::Value;
use tapeline_measure::Usage;
use tapeline_ring::Name;

use crate::SERVICE;

/// What becomes of a client that is too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slow {
    /// It is cut, once more waits for it than any that reads has waiting.
    Cut,
    /// The hub's usual policy: it gets the image when it reads again.
    Conflate,
}

/// A running hub.
pub(crate) struct Served {
    child: Child,
    says: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
    _folder: tempfile::TempDir,
}

impl Served {
    /// Begins, on a core of its own if one is given, and has joined the ring when this returns.
    pub(crate) fn begin(
        ring: &Name,
        core: Option<usize>,
        peers: Option<&Path>,
        slow: Slow,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let config = folder.path().join("plant.toml");
        let mut text = format!(
            "[plant]\nname = \"{SERVICE}\"\nring = \"{ring}\"\nmax_items = 200000\n\
             [[feed]]\nname = \"synthetic\"\nprotocol = \"itch50-moldudp64\"\n\
             [[feed.line]]\naddress = \"239.255.12.111:26477\"\ninterface = \"127.0.0.1\"\n\
             [hub]\nport = 0\nmax_connections = 10000\nmax_streams = 200000\nunknown = \"wait\"\n"
        );
        if slow == Slow::Cut {
            text.push_str("slow = \"cut\"\nslow_bytes = \"256MiB\"\nslow_messages = 10000000\n");
        }
        if let Some(peers) = peers {
            let file = |name: &str| peers.join(name).display().to_string();
            text.push_str(&format!(
                "dictionary = \"{}\"\nenums = \"{}\"\n",
                file("RDMFieldDictionary"),
                file("enumtype.def")
            ));
        }
        std::fs::write(&config, text)?;
        let program = env!("CARGO_BIN_EXE_tapeline");
        // This process, whose cores it would inherit, has one.
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string(), program]);
                command
            }
            None => Command::new(program),
        };
        let mut child = command
            .args(["plant", "serve", "--format", "json", "--config"])
            .arg(&config)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.path().join("said"))?)
            .spawn()
            .context("cannot start the hub")?;
        let mut says = BufReader::new(child.stdout.take().context("the hub's output")?);
        let said = || std::fs::read_to_string(folder.path().join("said")).unwrap_or_default();
        let ready = line(&mut says).with_context(|| format!("the hub did not begin: {}", said()))?;
        let address = ready["hub"].as_str().context("where the hub listens")?.parse()?;
        Ok(Self { child, says, address, _folder: folder })
    }

    /// What it has used.
    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        Ok(Usage::of(self.child.id())?)
    }

    /// What it says in the end, once its ring has ended.
    pub(crate) fn end(mut self) -> anyhow::Result<Value> {
        let report = line(&mut self.says)?;
        self.child.wait()?;
        Ok(report)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Has no effect on one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line(says: &mut BufReader<ChildStdout>) -> anyhow::Result<Value> {
    let mut line = String::new();
    says.read_line(&mut line)?;
    serde_json::from_str(&line).with_context(|| format!("the hub said {line:?}"))
}
