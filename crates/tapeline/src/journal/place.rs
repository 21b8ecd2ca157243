//! The journal to read, and where in it to begin.

use clap::Args;
use jiff::Timestamp;
use tapeline_console::{FilePath, Hinted, log, paths};
use tapeline_journal::{Directory, From, Reader};
use tapeline_measure::Nanos;

use super::hinted;

/// The file that locks a journal's folder against other writers; it exists from the start.
const LOCK: &str = "lock";

/// Options that name a journal and a position in it.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The journal's folder, as `folder` in [journal] of the plant's configuration
    #[arg(value_name = "FOLDER")]
    folder: FilePath,
    /// Start at this sequence number of the plant
    #[arg(long, value_name = "N", conflicts_with = "from_time")]
    pub(super) from_sequence: Option<u64>,
    /// Start at the first tick published at or after this time, such as 2026-11-21T14:30:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(super) from_time: Option<Nanos>,
}

impl Place {
    /// Opens a reader at this place.
    ///
    /// # Errors
    /// The journal cannot be read up to this place, or the folder does not contain a journal.
    pub(super) fn open(&self) -> anyhow::Result<Reader<Directory>> {
        let what = format!("cannot read the journal in {}", paths::shown(&self.folder));
        let mut reader =
            Directory::open(&self.folder).and_then(Reader::open).map_err(|error| hinted(&what, error))?;
        // A new journal has only its lock file, and a copied one may have none.
        if reader.segments().next().is_none() && !self.folder.join(LOCK).exists() {
            let what =
                format!("{what}: expected segments (NUMBER.journal) or the file `{LOCK}`, found neither");
            return Err(Hinted::new(what, "`folder` in the plant's [journal] is the journal's folder").into());
        }
        reader.seek(self.from()).map_err(|error| hinted(&what, error))?;
        Ok(reader)
    }

    /// Reports on standard error that the journal ends before this place, and which tick is the last.
    pub(super) fn say_that_it_is_behind(&self, reader: &Reader<Directory>) {
        let place = match (self.from_sequence, self.from_time) {
            (Some(seq), _) => format!("sequence {seq}"),
            (None, Some(time)) => time.to_string(),
            (None, None) => return,
        };
        match reader.passed() {
            0 => log::note(format_args!("the journal is empty: it has nothing from {place} on")),
            last => log::note(format_args!("the journal ends with tick {last}, before {place}")),
        }
    }

    pub(super) fn from(&self) -> From {
        match (self.from_sequence, self.from_time) {
            (Some(seq), _) => From::Seq(seq),
            (None, Some(time)) => From::Time(time),
            (None, None) => From::Oldest,
        }
    }
}

fn time(text: &str) -> Result<Nanos, String> {
    let time: Timestamp =
        text.parse().map_err(|_| "a time with its zone is expected: 2026-11-21T14:30:00Z")?;
    let ns = u64::try_from(time.as_nanosecond()).map_err(|_| "a time between 1970 and 2554 is expected")?;
    Ok(Nanos(ns))
}
