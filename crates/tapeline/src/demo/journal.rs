//! The demo's journal: stores what the plant published, replays it at the end, and compares it with what a
//! subscriber got.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::ValueEnum;
use serde::Deserialize;
use tapeline_console::part::Part;
use tapeline_console::stop::Stop;
use tapeline_measure::figures::quantity;
use tapeline_perf::path::PathReport;
use tapeline_ring::Name;

use super::{START_LIMIT, words};

/// How to handle the journal of a demo's plant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum DemoJournal {
    /// Write a journal, replay it at the end, then remove it; skipped if the disk is too full or the journal may exceed 4 GiB
    #[default]
    Replayed,
    /// Write a journal without the limit of 4 GiB, replay it at the end, and leave it in the run folder; skipped if the
    /// disk is too full
    Kept,
    /// Write no journal
    None,
}

/// Default limit of a journal: three times what a demo of the usual duration writes at 500,000 messages a second.
const MOST_BYTES: u64 = 4 << 30;
/// Bytes of a tick with its record; 190 on average for the simulated exchange's messages.
const TICK_BYTES: u64 = 200;
/// The same per byte of a capture: an ITCH message has 30 bytes, and a quarter of that when compressed.
const BYTES_OF_CAPTURE: u64 = TICK_BYTES / 30;
const BYTES_OF_COMPRESSED: u64 = 4 * BYTES_OF_CAPTURE;

pub(super) enum Expected<'a> {
    Ticks(u64),
    Capture(&'a Path),
}

impl Expected<'_> {
    fn bytes(&self) -> u64 {
        match self {
            Self::Ticks(ticks) => ticks.saturating_mul(TICK_BYTES),
            Self::Capture(path) => {
                let is_compressed = path.extension().is_some_and(|ending| ending == "gz" || ending == "zst");
                let each = if is_compressed { BYTES_OF_COMPRESSED } else { BYTES_OF_CAPTURE };
                path.metadata().map_or(0, |file| file.len().saturating_mul(each))
            }
        }
    }
}

impl DemoJournal {
    /// Why this run has no journal although one was requested: it would be too large for the `free` bytes of the run
    /// folder's disk, or for the limit.
    pub(super) fn refused(self, expected: &Expected<'_>, run_folder: &Path, free: u64) -> Option<String> {
        let bytes = expected.bytes();
        let shown = |bytes: u64| quantity(bytes as f64, "B", true);
        let refused = "no journal is kept: it may take";
        match self {
            Self::None => None,
            // The last segment is allocated at its full size.
            _ if bytes.saturating_add(SEGMENT_BYTES) > free => {
                let (free, folder) = (shown(free), run_folder.display());
                Some(format!("{refused} {}, and {free} are free in {folder}", shown(bytes)))
            }
            Self::Replayed if bytes > MOST_BYTES => {
                Some(format!("{refused} {}\nhint: --journal kept keeps it anyway", shown(bytes)))
            }
            _ => None,
        }
    }
}

/// Free bytes of the disk that holds this folder; all there are if the system cannot tell.
pub(super) fn free_bytes(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).map_or(u64::MAX, |system| system.f_bavail.saturating_mul(system.f_frsize))
}

/// Size of a journal file: a short demo should not need much disk space.
const SEGMENT_BYTES: u64 = 64 << 20;

/// The journal's folder, which exists as long as the plant and the replay need it.
#[derive(Debug)]
pub(super) struct Kept {
    folder: PathBuf,
    is_left: bool,
}

impl Kept {
    /// A journal in the run folder; with `is_left` it stays there at the end.
    pub(super) fn new(run_folder: &Path, is_left: bool) -> Self {
        Self { folder: run_folder.join("journal"), is_left }
    }

    /// The plant's table. A full disk ends the journal, but not the demo, which counts what is missing.
    pub(super) fn toml(&self) -> String {
        let folder = toml::Value::from(self.folder.display().to_string());
        let size = SEGMENT_BYTES >> 20;
        format!("\n[journal]\nfolder = {folder}\non_failure = \"continue\"\nsegment_size = \"{size}MiB\"\n")
    }

    /// Publishes the whole journal onto a ring of its own, where a subscriber reads it as the plant's subscribers
    /// did.
    pub(super) fn replay(&self, limit: Duration, stop: &Stop) -> anyhow::Result<Replayed> {
        let ring = Name::new(&format!("demo-{}-again", std::process::id()))?;
        let mut replay =
            words(&format!("journal replay --onto {ring} --speed max --subscribers 1 --format json"));
        replay.push(self.folder.display().to_string());
        let subscriber = words(&format!(
            "plant measure --ring {ring} --label replayed --from oldest --wait-for-ring {}s --checksum --format json",
            START_LIMIT.as_secs()
        ));
        let _gone = Gone(ring);
        let mut replay = Part::start("replay", &replay)?;
        let begun = tapeline_measure::monotonic_ns();
        let mut subscriber = Part::start("replay's subscriber", &subscriber)?;
        let done: Done = replay.says(limit, stop, || {})?;
        let report: PathReport = subscriber.says(START_LIMIT, stop, || {})?;
        let seconds = (tapeline_measure::monotonic_ns() - begun) as f64 / 1e9;
        anyhow::ensure!(
            report.received == done.history,
            "the replay's subscriber received {} of the {} ticks that were published to it",
            report.received,
            done.history
        );
        Ok(Replayed {
            ticks: report.received,
            last: report.last_seq,
            checksum: report.checksum.context("the replay's subscriber reported no checksum")?,
            seconds,
        })
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if !self.is_left {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

/// Removes the replay's ring: a replay removes it itself, unless it was killed.
struct Gone(Name);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = tapeline_ring::remove(&self.0, true);
    }
}

/// The used part of the summary of `journal replay`.
#[derive(Debug, Deserialize)]
struct Done {
    history: u64,
}

#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) ticks: u64,
    pub(super) last: u64,
    /// CRC-32C over all ticks.
    pub(super) checksum: u32,
    /// From the replay's start to its end.
    pub(super) seconds: f64,
}

impl Replayed {
    /// The number of missing ticks; compares the replay with a subscriber's report if that subscriber received
    /// everything.
    ///
    /// # Errors
    /// The replay has all ticks, but they differ from those that were published.
    pub(super) fn missing_of(&self, published: u64, given: &PathReport) -> anyhow::Result<u64> {
        let missing = published.saturating_sub(self.ticks);
        let is_whole = given.first_seq == 1 && given.lost == 0 && given.received == published;
        let same = (self.last, Some(self.checksum)) == (given.last_seq, given.checksum);
        anyhow::ensure!(
            missing > 0 || !is_whole || same,
            "the journal is not what was published: replayed to {}, checksum {:08x}; published to {}, checksum {:08x}",
            self.last,
            self.checksum,
            given.last_seq,
            given.checksum.unwrap_or(0)
        );
        Ok(missing)
    }
}

#[cfg(test)]
mod tests {
    use tapeline_perf::path::{Ending, Meter};

    use super::*;

    #[test]
    fn a_long_journal_is_kept_only_where_that_was_asked_for() {
        // The disk of the machine that runs this test is not asked: it may have less than a long journal needs.
        let (here, free) = (Path::new("."), 2 * MOST_BYTES);
        assert_eq!(DemoJournal::Replayed.refused(&Expected::Ticks(1_000), here, free), None);
        let long = Expected::Ticks(MOST_BYTES / TICK_BYTES + 1);
        assert!(DemoJournal::Replayed.refused(&long, here, free).unwrap().contains("--journal kept"));
        assert_eq!(DemoJournal::Kept.refused(&long, here, free), None);
        assert!(DemoJournal::Kept.refused(&long, here, MOST_BYTES).unwrap().contains("are free in ."));
        assert_eq!(DemoJournal::None.refused(&Expected::Ticks(u64::MAX), here, 0), None);
    }

    #[test]
    fn what_was_replayed_is_what_was_published() {
        let given = PathReport {
            first_seq: 1,
            last_seq: 9,
            received: 9,
            checksum: Some(7),
            ..Meter::new(Duration::ZERO, false).report("subscriber 1".to_owned(), Ending::PlantEnded, 0, 0)
        };
        let replayed = |ticks, last, checksum| Replayed { ticks, last, checksum, seconds: 0.0 };
        assert_eq!(replayed(9, 9, 7).missing_of(9, &given).unwrap(), 0);
        assert_eq!(replayed(6, 6, 1).missing_of(9, &given).unwrap(), 3);
        for other in [replayed(9, 9, 8), replayed(9, 10, 7)] {
            let said = other.missing_of(9, &given).unwrap_err().to_string();
            assert!(said.contains("is not what was published"), "{said}");
        }
        // A subscriber that lost ticks allows no comparison.
        let lost = PathReport { lost: 1, received: 8, ..given };
        assert_eq!(replayed(9, 9, 8).missing_of(9, &lost).unwrap(), 0);
    }
}
