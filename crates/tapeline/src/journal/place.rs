//! Which journal, and where in it to begin.

use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use tapeline_journal::{Directory, From, Reader};
use tapeline_measure::Nanos;

use super::hinted;

/// The options that name a place.
#[derive(Debug, Args)]
pub(super) struct Place {
    /// The journal's folder: `folder` in the plant's [journal]
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Begin with this sequence of the plant's
    #[arg(long, value_name = "N", conflicts_with = "from_time")]
    from_sequence: Option<u64>,
    /// Begin with the first tick that was published at this time or later, such as 2026-11-21T14:30:00Z
    #[arg(long, value_name = "TIME", value_parser = time)]
    from_time: Option<Nanos>,
}

impl Place {
    /// A reader there.
    ///
    /// # Errors
    /// It cannot be read so far.
    pub(super) fn open(&self) -> anyhow::Result<Reader<Directory>> {
        let reader = Directory::open(&self.folder).and_then(Reader::open).and_then(|mut reader| {
            reader.seek(self.from())?;
            Ok(reader)
        });
        reader
            .map_err(|error| hinted(&format!("cannot read the journal in {}", self.folder.display()), error))
    }

    /// Where it begins.
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
