//! What a run leaves on record, and the folder that holds it, as Tapeline's other runs do: `run.json`, `summary.txt`, plots.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tapeline_measure::Nanos;

use crate::session::Figure;
use crate::systems::{LinesWritten, Place, System};

/// The layout of `run.json`; it goes up when a field changes its meaning or disappears.
const LAYOUT: u32 = 1;
/// Names tried before giving up.
const TRIES: u32 = 64;

/// The contents of `run.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) layout: u32,
    pub(crate) kind: String,
    /// When it began, in ns since 1970 UTC, and the same for people.
    pub(crate) started: u64,
    pub(crate) started_utc: String,
    /// How long it took.
    pub(crate) seconds: f64,
    /// The command.
    pub(crate) command: String,
    pub(crate) turns: usize,
    pub(crate) measured_ms: u64,
    /// Sender's and receiver's.
    pub(crate) cores: [usize; 2],
    pub(crate) cores_usable: usize,
    /// The step of the stamps' clock.
    pub(crate) clock_step_ns: f64,
    pub(crate) jitter_floor_p99_ns: u64,
    /// The systems in their order.
    pub(crate) systems: Vec<Described>,
    /// Peers that were left out, each with the reason.
    pub(crate) skipped: Vec<String>,
    pub(crate) figures: Vec<Figure>,
    /// Cache lines that the ring's ends write, with one receiver and more.
    #[serde(default)]
    pub(crate) lines_written: Vec<LinesWritten>,
    /// The noise of each core, measured on its own.
    pub(crate) jitter: Value,
    pub(crate) environment: Value,
    /// The environment in a few lines.
    pub(crate) environment_text: String,
}

/// A system on record.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) peer: String,
    pub(crate) place: String,
    pub(crate) settings: String,
}

impl Described {
    pub(crate) fn of(system: &System) -> Self {
        let place = match system.place {
            Place::Processes => "processes",
            Place::ProcessesAndDriver => "processes, and a driver that shares their cores",
            Place::Threads => "threads of one process",
        };
        Self {
            name: system.name.to_owned(),
            title: system.title.to_owned(),
            peer: system.peer.to_owned(),
            place: place.to_owned(),
            settings: system.settings.to_owned(),
        }
    }
}

impl Record {
    /// The layout and kind of this build's records.
    pub(crate) const KIND: (u32, &'static str) = (LAYOUT, "peers");

    /// Reads the record of a run folder.
    ///
    /// # Errors
    /// It is not there, or no record of this kind.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join("run.json");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let record: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is no record of `peers run`", path.display()))?;
        if (record.layout, record.kind.as_str()) != Self::KIND {
            bail!("{} is of layout {} and kind {}", path.display(), record.layout, record.kind);
        }
        Ok(record)
    }
}

/// Makes a folder for a run: `given`, which must be absent or empty, or a new one under `runs/`.
///
/// # Errors
/// It cannot be made, or there is something in it.
pub(crate) fn make_folder(given: Option<&Path>, started: Nanos) -> anyhow::Result<PathBuf> {
    if let Some(path) = given {
        fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))?;
        let mut entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
        if entries.next().is_some() {
            bail!("the run folder {} is not empty", path.display());
        }
        return Ok(path.to_owned());
    }
    fs::create_dir_all("runs").context("cannot make the folder runs")?;
    for attempt in 0..TRIES {
        let short = (started.0 as u32 ^ std::process::id()).wrapping_add(attempt) as u16;
        let path = PathBuf::from(format!("runs/{}-peers-{short:04x}", started.file_stamp()));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(|| format!("cannot make {}", path.display())),
        }
    }
    bail!("cannot find a free name for a run folder in runs")
}

/// Writes a file of a run folder.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
