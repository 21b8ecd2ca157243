//! Tapeline's hub, for what publishes to one.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::Context;

use crate::SERVICE;
use crate::makers::on_core;

/// A plant without feeds, to which a service is published.
pub(crate) struct Hub(Child);

impl Hub {
    /// Begins, and takes publishers when this returns.
    pub(crate) fn begin(folder: &Path, publishers: SocketAddr, core: Option<usize>) -> anyhow::Result<Self> {
        let config = folder.join("plant.toml");
        let text = format!(
            "[plant]\nname = \"BENCH\"\nring = \"bench-omm-{}\"\nmax_items = 200000\n\
             [publishers]\nport = {}\n[[service]]\nname = \"{SERVICE}\"\nid = 7\n[hub]\nport = 0\n",
            std::process::id(),
            publishers.port()
        );
        std::fs::write(&config, text)?;
        let options = ["plant", "--format", "json", "--config"].map(str::to_owned);
        let mut command = on_core(core, Path::new(env!("CARGO_BIN_EXE_tapeline")), &options);
        let mut child = command
            .arg(&config)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(folder.join("plant-said"))?)
            .spawn()
            .context("cannot start the hub")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("the hub's output")?).read_line(&mut line)?;
        let said = || std::fs::read_to_string(folder.join("plant-said")).unwrap_or_default();
        anyhow::ensure!(line.contains("ready"), "the hub did not begin: {}", said());
        Ok(Self(child))
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.0),
            rustix::process::Signal::TERM,
        );
        let _ = self.0.wait();
    }
}
