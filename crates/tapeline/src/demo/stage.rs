//! The demo's own ring, groups, ports and cores, so that several demos can run at once.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use anyhow::Context;
use tapeline_measure::cores;
use tapeline_node::stat::file;
use tapeline_perf::run_folder::RunFolder;
use tapeline_ring::Name;
use tapeline_wire::udp::{ReceiveOptions, UdpReceiver};

use super::journal::Kept;
use super::words;
use crate::plant::reload;

/// What the plant offers to network clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hub {
    None,
    Clients,
    /// A hub and the live page, which shows these items at first.
    Page([&'static str; 3]),
}

impl Hub {
    fn toml(self) -> String {
        // Every update or a disconnect: the table can count what is lost only if nothing is conflated.
        let hub = "\n[hub]\nport = 0\nservice = \"DEMO\"\nunknown = \"wait\"\nslow = \"cut\"\nslow_bytes = \"64MiB\"\n\
                   slow_messages = 1000000\n";
        match self {
            Self::None => String::new(),
            Self::Clients => hub.to_owned(),
            Self::Page(items) => format!("{hub}\n[hub.web]\nport = 0\nitems = {items:?}\n"),
        }
    }
}

/// Names and addresses of one run. Dropping it removes the ring, however the plant ended.
#[derive(Debug)]
pub(super) struct Stage {
    ring: Name,
    config: PathBuf,
    lines: Vec<SocketAddrV4>,
    cores: Option<Vec<usize>>,
    warm_up: &'static str,
}

impl Stage {
    /// Chooses the names and addresses, and writes the plant's configuration into the run folder.
    pub(super) fn set(
        folder: &RunFolder,
        lines: u8,
        subscribers: usize,
        start: &str,
        date: Option<&str>,
        warm_up: &'static str,
        (hub, journal): (Hub, Option<&Kept>),
    ) -> anyhow::Result<Self> {
        // The hub and its clients have a core, too.
        let mut stage = Self::bare(lines, subscribers + usize::from(hub != Hub::None), warm_up)?;
        stage.config = folder.path().join("plant.toml");
        let journal = journal.map(Kept::toml).unwrap_or_default();
        std::fs::write(&stage.config, stage.toml(start, date, hub) + &journal)
            .with_context(|| format!("cannot write {}", stage.config.display()))?;
        Ok(stage)
    }

    /// Chooses the names and addresses for a sender, a plant or relay, and this many `others`.
    pub(super) fn bare(lines: u8, others: usize, warm_up: &'static str) -> anyhow::Result<Self> {
        let pid = std::process::id();
        let ring = Name::new(&format!("demo-{pid}"))?;
        let [_, _, high, low] = pid.to_be_bytes();
        let lines = (0..lines)
            .map(|line| Ok(SocketAddrV4::new(Ipv4Addr::new(239, 255 - line, high, low), free_port()?)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        // Each has a core of its own if there are enough; otherwise the kernel places all of them.
        let cores = cores();
        let cores = (cores.len() >= others + 2).then_some(cores);
        Ok(Self { ring, config: PathBuf::new(), lines, cores, warm_up })
    }

    fn toml(&self, start: &str, date: Option<&str>, hub: Hub) -> String {
        let ring = &self.ring;
        let lines: String = self
            .lines
            .iter()
            .map(|line| format!("\n[[feed.line]]\naddress = \"{line}\"\ninterface = \"127.0.0.1\"\n"))
            .collect();
        let date = date.map_or_else(String::new, |date| format!("date = \"{date}\"\n"));
        let wait = if self.cores.is_some() { "spin" } else { "block" };
        // With a `stale_after` of 0, the plant ends with the session, without a wait for messages after its end.
        let cpu = self.core(1).map_or_else(String::new, |core| format!("cpu = {core}\n"));
        format!(
            "[plant]\nname = \"DEMO\"\nring = \"{ring}\"\nring_size = \"8MiB\"\npublish = \"every-message\"\n\
             wait = \"{wait}\"\n{cpu}\n[[feed]]\nname = \"demo\"\nprotocol = \"nasdaq-itch-5.0\"\n{date}\
             start = \"{start}\"\nstale_after = \"0s\"\nreceive_buffer = \"16MiB\"\n{lines}{}",
            hub.toml()
        )
    }

    fn core(&self, place: usize) -> Option<usize> {
        self.cores.as_ref()?.get(place).copied()
    }

    pub(super) fn plant(&self) -> Vec<String> {
        let mut words = words("plant --until-end-of-session --format json --config");
        words.push(self.config.display().to_string());
        words
    }

    /// The command line of a bare relay in the plant's place.
    pub(super) fn relay(&self) -> Vec<String> {
        let mut words = words(&format!("plant relay --ring {}", self.ring));
        for line in &self.lines {
            words.extend(["--line".to_owned(), line.to_string()]);
        }
        if let Some(core) = self.core(1) {
            words.extend(["--spin".to_owned(), "--cpu".to_owned(), core.to_string()]);
        }
        words
    }

    /// A subscriber's command line; the first is number 1.
    pub(super) fn subscriber(&self, number: usize) -> Vec<String> {
        let Self { ring, warm_up, .. } = self;
        let wait = if self.cores.is_some() { "spin" } else { "park" };
        // With a checksum, for the comparison with the journal.
        let mut words = words(&format!(
            "plant measure --ring {ring} --label subscriber-{number} --from oldest --wait {wait} --announce \
             --until-end-of-session --warm-up {warm_up} --checksum --format json"
        ));
        if let Some(core) = self.core(1 + number) {
            words.extend(["--cpu".to_owned(), core.to_string()]);
        }
        words
    }

    /// How the simulated exchange waits for its schedule: it yields if it may share a core with the plant.
    pub(super) fn sender_wait(&self) -> &'static str {
        if self.cores.is_some() { "spin" } else { "yield" }
    }

    /// The sender's options: destination, core, and report format.
    pub(super) fn destination(&self) -> Vec<String> {
        let mut words = words("--interface 127.0.0.1 --format json");
        for (option, line) in ["--to", "--also"].into_iter().zip(&self.lines) {
            words.extend([option.to_owned(), line.to_string()]);
        }
        if let Some(core) = self.core(0) {
            words.extend(["--cpu".to_owned(), core.to_string()]);
        }
        words
    }
}

impl Drop for Stage {
    /// Removes the ring and what else the plant showed: the plant does so itself, unless it was killed.
    fn drop(&mut self) {
        let _ = file::remove(&self.ring);
        reload::forget(&self.ring);
        let _ = tapeline_ring::remove(&self.ring, true);
    }
}

/// A port that is free now.
fn free_port() -> anyhow::Result<u16> {
    let loopback = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    Ok(UdpReceiver::open(&ReceiveOptions::new(loopback))?.local_address().port())
}
