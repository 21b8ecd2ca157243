//! Tools at work: each in a folder with what it reads, on a core of its own; what it said, and what it cost.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use tapeline_measure::Usage;

use crate::makers::on_core;
use crate::spent;

/// What LSEG's tools read from where they are started, and ours too when it is there.
const FILES: [&str; 4] = ["RDMFieldDictionary", "enumtype.def", "MsgData.xml", "350k.xml"];
/// EMA's ports in its configuration: of providers, and of hubs.
const USUAL_PORTS: [&str; 2] = ["\"14002\"", "\"14003\""];
/// How long a tool may take until it listens.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// A running tool. Ended with this.
pub(crate) struct Running {
    child: Child,
    said: PathBuf,
}

/// What a process cost over a window: share of a core, and resident MB at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub(crate) cores: f64,
    pub(crate) megabytes: f64,
}

/// Where a tool runs.
pub(crate) fn folder(folder: &Path, tools: Option<&Path>, port: u16) -> anyhow::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    if let Some(tools) = tools {
        for file in FILES {
            symlink(tools.join(file), folder.join(file))?;
        }
        let mut config =
            std::fs::read_to_string(tools.join("EmaConfig.xml"))?.replace("localhost", "127.0.0.1");
        for usual in USUAL_PORTS {
            config = config.replace(usual, &format!("\"{port}\""));
        }
        std::fs::write(folder.join("EmaConfig.xml"), config)?;
    }
    Ok(folder.to_owned())
}

/// An address that is free.
pub(crate) fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

impl Running {
    pub(crate) fn start(
        core: Option<usize>,
        (program, options): (PathBuf, Vec<String>),
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let said = folder.join("said");
        let output = File::create(&said)?;
        let child = on_core(core, &program, &options)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Self { child, said })
    }

    /// Returns once it listens.
    pub(crate) fn listens(self, server: SocketAddr) -> anyhow::Result<Self> {
        let begun = Instant::now();
        while TcpStream::connect(server).is_err() {
            anyhow::ensure!(begun.elapsed() < PATIENCE, "nobody listens at {server}; {}", self.text());
            std::thread::sleep(LOOK);
        }
        Ok(self)
    }

    fn spent_ns(&self) -> u64 {
        spent::of_threads(self.child.id()).iter().map(|(_, ns)| ns).sum()
    }

    fn usage(&self) -> anyhow::Result<Usage> {
        // One that has ended and was not waited for has no memory.
        let usage = Usage::of(self.child.id()).ok().filter(|usage| usage.resident_bytes > 0);
        usage.with_context(|| format!("it has ended; {}", self.text()))
    }

    /// What it said, once it has ended by itself.
    pub(crate) fn end(&mut self) -> anyhow::Result<Said> {
        self.child.wait()?;
        Ok(Said(self.text()))
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.said).unwrap_or_default()).into_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Has no effect on one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What processes cost from now on for so long: processor time by the scheduler's account, which is exact where that of /proc/PID/stat
/// is in steps of 10 ms.
pub(crate) fn cost<const N: usize>(of: [&Running; N], window: Duration) -> anyhow::Result<[Cost; N]> {
    let before = of.map(Running::spent_ns);
    let begun = Instant::now();
    std::thread::sleep(window);
    let after = of.map(Running::spent_ns);
    let elapsed = begun.elapsed().as_nanos() as f64;
    let mut costs = [Cost::default(); N];
    for (at, cost) in costs.iter_mut().enumerate() {
        cost.cores = after[at].saturating_sub(before[at]) as f64 / elapsed;
        cost.megabytes = of[at].usage()?.resident_bytes as f64 / 1e6;
    }
    Ok(costs)
}

/// What a tool said.
pub(crate) struct Said(String);

impl Said {
    /// The figure behind a name, in the section that begins with a heading.
    pub(crate) fn figure(&self, heading: &str, name: &str) -> anyhow::Result<f64> {
        let section = self.0.rsplit_once(heading).map_or("", |(_, section)| section);
        // Up to the next heading, which begins without a blank.
        let rest = section.split_once('\n').map_or("", |(_, rest)| rest);
        let end = rest
            .lines()
            .position(|line| line.starts_with(|c: char| !c.is_whitespace()))
            .unwrap_or(usize::MAX);
        let section: Vec<&str> = rest.lines().take(end).collect();
        let figure = section.iter().find_map(|line| {
            let rest = line.trim().strip_prefix(name)?.trim_start_matches(':').trim();
            rest.split(|c: char| c.is_whitespace() || c == ',').next()?.parse().ok()
        });
        figure.with_context(|| format!("nothing is said of {name} under {heading}:\n{}", self.0))
    }
}
