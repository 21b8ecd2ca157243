//! LSEG's own pairs, direct, with no server between: the programs of its performance tools.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use tapeline_measure::Usage;

use crate::SERVICE;

/// What the tools read from where they are started.
const FILES: [&str; 4] = ["RDMFieldDictionary", "enumtype.def", "MsgData.xml", "350k.xml"];
/// EMA's port in its configuration.
const USUAL_PORT: &str = "14002";
/// The shortest steady state of which LSEG's consumers tell latency, seconds.
const STEADY_S: &str = "7";

/// The tools, in a folder.
pub(crate) struct Tools {
    bin: PathBuf,
    cores: Option<[usize; 2]>,
}

/// What a consumer's summary says.
pub(crate) struct Summary(String);

impl Summary {
    /// The figure behind a name, in the last section that has it, or behind a heading's.
    pub(crate) fn figure(&self, heading: &str, name: &str) -> anyhow::Result<f64> {
        let section = self.0.split_once(heading).map_or("", |(_, section)| section);
        let line = section.lines().find_map(|line| line.trim().strip_prefix(name));
        let figure = line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok());
        figure.with_context(|| format!("LSEG's consumer said nothing of {name}:\n{}", self.0))
    }
}

/// A program that is ended with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Tools {
    /// Those in a folder; on these cores, the provider on the first.
    pub(crate) fn new(bin: &Path, cores: Option<[usize; 2]>) -> anyhow::Result<Self> {
        Ok(Self { bin: bin.canonicalize()?, cores })
    }

    /// ETA C's consumer, of so many items of whoever serves there.
    pub(crate) fn eta_consumer(&self, server: SocketAddr, items: usize) -> anyhow::Result<Summary> {
        let folder = self.folder(server.port())?;
        let (port, items) = (server.port().to_string(), items.to_string());
        let mut command = self.program("ConsPerf", 1, folder.path());
        command.args(["-h", "127.0.0.1", "-p", &port, "-serviceName", SERVICE, "-threads", "1"]);
        command.args(["-itemCount", &items, "-requestRate", "10000000", "-steadyStateTime", "2"]);
        summary(command)
    }

    /// ETA C's pair: so many items without an update. Also what the provider used.
    pub(crate) fn eta_pair(&self, items: usize) -> anyhow::Result<(Summary, Usage)> {
        let server = free_address()?;
        let folder = self.folder(server.port())?;
        let mut command = self.program("ProvPerf", 0, folder.path());
        command.args(["-p", &server.port().to_string(), "-serviceName", SERVICE, "-serviceId", "1"]);
        command.args(["-threads", "1", "-updateRate", "0", "-latencyUpdateRate", "0", "-runTime", "60"]);
        let provider = begin(command, server)?;
        let summary = self.eta_consumer(server, items)?;
        Ok((summary, Usage::of(provider.0.id())?))
    }

    /// EMA C++'s pair: so many items, at so many updates a second.
    pub(crate) fn ema_pair(&self, items: usize, rate: u64) -> anyhow::Result<Summary> {
        let server = free_address()?;
        let folder = self.folder(server.port())?;
        let mut provider = self.program("EmaCppIProvPerf", 0, folder.path());
        provider.args(["-updateRate", &rate.to_string(), "-latencyUpdateRate", "1000", "-runTime", "60"]);
        let _provider = begin(provider, server)?;
        let mut consumer = self.program("EmaCppConsPerf", 1, folder.path());
        consumer.args([
            "-itemCount",
            &items.to_string(),
            "-requestRate",
            "1000000",
            "-steadyStateTime",
            STEADY_S,
        ]);
        summary(consumer)
    }

    /// Where a program finds its files, and EMA its port.
    fn folder(&self, port: u16) -> anyhow::Result<tempfile::TempDir> {
        let folder = tempfile::tempdir()?;
        for file in FILES {
            symlink(self.bin.join(file), folder.path().join(file))?;
        }
        let config = std::fs::read_to_string(self.bin.join("EmaConfig.xml"))?;
        let config = config.replace(&format!("\"{USUAL_PORT}\""), &format!("\"{port}\""));
        std::fs::write(folder.path().join("EmaConfig.xml"), config.replace("localhost", "127.0.0.1"))?;
        Ok(folder)
    }

    fn program(&self, name: &str, core: usize, folder: &Path) -> Command {
        let program = self.bin.join(name);
        let mut command = match self.cores {
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cores[core].to_string()]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(folder).stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// Starts a provider, and returns once it listens.
fn begin(mut command: Command, server: SocketAddr) -> anyhow::Result<Ended> {
    let provider = Ended(command.stdout(Stdio::null()).spawn().context("cannot start LSEG's provider")?);
    let begun = Instant::now();
    while TcpStream::connect(server).is_err() {
        anyhow::ensure!(
            begun.elapsed() < Duration::from_secs(20),
            "LSEG's provider does not listen at {server}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(provider)
}

fn summary(mut command: Command) -> anyhow::Result<Summary> {
    let output = command.output().context("cannot start LSEG's consumer")?;
    Ok(Summary(String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
