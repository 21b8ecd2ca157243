//! Every run writes a folder with `run.json`, `summary.txt`, `latency.hlog`, `latency.hgrm`, `stats-N.csv`. The
//! files contain numbers only; `tapeline report` draws plots from them.

mod record;

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tapeline_console::failure::Hinted;
use tapeline_console::{output, paths};
use tapeline_measure::{Nanos, Recorder, Window, utc_now, write_hgrm, write_hlog};

pub use record::{Client, HopLatency, Journal, Phase, Process, Run, Second, Step, Throughput};

/// Names tried before giving up. A name can be taken only if two runs start in the same second.
const TRIES: u32 = 64;

/// The folder of one run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Creates the folder: `given`, which must be absent or empty, or else a new `runs/<UTC>-<kind>-<short>`
    /// under the current directory.
    pub fn create(given: Option<&Path>, kind: &str) -> anyhow::Result<Self> {
        match given {
            Some(path) => Self::take(&paths::absolute(path)),
            None => Self::invent(&paths::absolute(Path::new("runs")), kind),
        }
    }

    fn take(path: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(path).map_err(|error| refused("make the run folder", path, error))?;
        let mut entries = fs::read_dir(path).map_err(|error| refused("read the run folder", path, error))?;
        if entries.next().is_some() {
            let what = format!("the run folder {} exists and is not empty", path.display());
            return Err(Hinted::new(
                what,
                "name a new folder, or leave the option out to get one under runs/",
            )
            .into());
        }
        Ok(Self { path: path.to_owned() })
    }

    fn invent(base: &Path, kind: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(base).map_err(|error| refused("make the folder for runs", base, error))?;
        let now = utc_now();
        for attempt in 0..TRIES {
            let path = base.join(format!("{}-{kind}-{:04x}", now.file_stamp(), short_name(now, attempt)));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(refused("make the run folder", &path, error)),
            }
        }
        anyhow::bail!("cannot find a free name for a run folder in {}", base.display())
    }

    /// The path of the folder, always absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `run.json`, and `summary.txt` from the same record with the path of the folder: exactly the text
    /// that the caller then prints, without styles.
    pub fn write_run(&self, run: &Run) -> anyhow::Result<()> {
        self.write_record(run)?;
        self.write_summary(&run.summary(Some(&self.path)))
    }

    /// Writes `run.json` alone.
    pub fn write_record(&self, run: &Run) -> anyhow::Result<()> {
        self.write("run.json", |out| writeln!(out, "{}", output::json(run).map_err(io::Error::other)?))
    }

    /// Writes `summary.txt`: the printed text without styles.
    pub fn write_summary(&self, text: &str) -> anyhow::Result<()> {
        self.write("summary.txt", |out| writeln!(out, "{}", anstream::adapter::strip_str(text)))
    }

    /// Writes `stats-N.csv` for subscriber (or connection) `number`: a row for each window with samples.
    pub fn write_stats(&self, number: usize, window_ns: u64, rows: &[Window]) -> anyhow::Result<()> {
        self.write(&format!("stats-{number}.csv"), |out| {
            writeln!(out, "start_s,count,negatives,p50_ns,p99_ns,max_ns")?;
            for row in rows {
                let start = Duration::from_nanos(row.index.saturating_mul(window_ns)).as_secs_f64();
                let Window { count, negatives, p50_ns, p99_ns, max_ns, .. } = row;
                writeln!(out, "{start},{count},{negatives},{p50_ns},{p99_ns},{max_ns}")?;
            }
            Ok(())
        })
    }

    /// Writes `latency.hlog` with all hops, each under its name, and `latency.hgrm` with the last hop, which is
    /// the whole path.
    pub fn write_latency(
        &self,
        start: Nanos,
        duration: Duration,
        hops: &[(&str, &Recorder)],
    ) -> anyhow::Result<()> {
        self.write("latency.hlog", |out| write_hlog(out, start, duration, hops).map_err(io::Error::other))?;
        let Some((_, whole)) = hops.last() else { return Ok(()) };
        self.write("latency.hgrm", |out| write_hgrm(out, whole).map_err(io::Error::other))
    }

    /// Writes a file into the folder.
    pub fn write(
        &self,
        name: &str,
        contents: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let path = self.path.join(name);
        let written = File::create(&path).and_then(|file| {
            let mut out = BufWriter::new(file);
            contents(&mut out)?;
            out.flush()
        });
        written.map_err(|error| refused("write", &path, error))
    }
}

/// Four hexadecimal digits that distinguish runs of the same second.
fn short_name(now: Nanos, attempt: u32) -> u16 {
    // The odd factor spreads neighbouring process ids and nanoseconds over the upper bits (Knuth's multiplicative hash).
    let mixed = (now.0 ^ u64::from(std::process::id()) << 32).wrapping_add(attempt.into());
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as u16
}

fn refused(what: &str, path: &Path, error: io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space, or give --run-folder on another disk"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "give --run-folder with a place that you may write to"
        }
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            "a file is in the way; give another --run-folder"
        }
        _ => "give --run-folder with another place",
    };
    anyhow::Error::new(error).context(Hinted::new(format!("cannot {what} {}", path.display()), hint))
}

#[cfg(test)]
mod tests;
