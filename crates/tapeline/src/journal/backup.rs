//! `tapeline journal backup`: copies a journal, also while a plant writes it.
//!
//! A backup is a journal of its own. Its records are read like those of any journal, each with its checksum, and written
//! like those of any journal, behind the last one that is there: so a second run copies only what is new, and a run that
//! was killed left a journal with a torn end, which the next run cuts off.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;
use tapeline_console::output::{self, Format, Progress};
use tapeline_console::{FilePath, Hinted, Stop, log, paths, stop};
use tapeline_journal::{Directory, From, Next, Opened, Reader, Settings, Writer};
use tapeline_measure::figures::thousands;
use tapeline_node::bridge::EPOCHS_FILE;

use super::{broken, hinted, warn_of_missing};

/// Records between two checks for an interrupt.
const LOOK_EVERY: u64 = 1 << 14;

/// Copy a journal to another folder, also while a plant writes it; a second run copies only what is new
#[derive(Debug, Args)]
#[command(
    after_help = "The copy is a journal: verify, inspect, export and replay read it, and a plant whose [journal] names it goes on behind \
    its last tick. To restore, stop the plant and copy in the other direction, into a folder that does not exist.\n\n\
    Each record's checksum is checked when it is read, and again in the copy. The copy has everything up to the last tick that the \
    journal had when its end was reached. If a run is killed or the disk is full, the copy is whole up to some tick, `verify` calls \
    it \"not closed\", and the next run continues.\n\n\
    Exit status: 1 if a journal cannot be read or written; 3 if ticks are missing in the copy, which then says so itself; \
    130 if interrupted.\n\nExamples:\n  \
    tapeline journal backup /var/lib/tapeline/mine/journal /backup/mine\n  \
    tapeline journal verify /backup/mine\n  \
    tapeline journal backup /backup/mine /var/lib/tapeline/mine/journal     restore, while the plant is stopped"
)]
pub(crate) struct Backup {
    /// The journal's folder
    #[arg(value_name = "FOLDER")]
    folder: FilePath,
    /// The folder of the copy; created if its parent exists
    #[arg(value_name = "TO")]
    to: FilePath,
    /// Output format of the summary
    #[arg(long, default_value = "table")]
    format: Format,
}

/// What a run has copied.
#[derive(Debug, Default)]
struct Copied {
    ticks: u64,
    bytes: u64,
    missing: u64,
    /// The first tick of this run, and the last of the copy.
    first: Option<u64>,
    last: u64,
    is_interrupted: bool,
}

impl Backup {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        stop::outlive_file_limits()?;
        let mut reader = open(&self.folder)?;
        if reader.segments().next().is_none() {
            let what =
                format!("{} has no segments (NUMBER.journal): nothing to copy", paths::shown(&self.folder));
            return Err(Hinted::new(what, "`folder` in the plant's [journal] is the journal's folder").into());
        }
        let was_closed = was_closed(&self.to)?;
        let to = paths::shown(&self.to).to_string();
        let cannot = |error| hinted(&format!("cannot write the copy in {to}"), error);
        // Files as large as those of the journal.
        let largest = reader.segments().map(|segment| segment.bytes).max().unwrap_or_default();
        let segment_bytes = largest.clamp(Settings::LEAST_SEGMENT_BYTES, Settings::MOST_SEGMENT_BYTES);
        let settings = Settings { segment_bytes, ..Settings::default() };
        let copy = Directory::create(&self.to).and_then(|open| Writer::open(open, settings));
        let (mut writer, opened) = copy.map_err(cannot)?;
        if !was_closed {
            log::note(format_args!(
                "the last backup was not finished: this one goes on behind tick {}",
                opened.last
            ));
        }
        self.expect_same(&mut reader, &opened)?;
        // Before the ticks: it names no tick that they lack.
        copy_epochs(&self.folder, &self.to)?;
        let mut copied = Copied { last: opened.last, ..Copied::default() };
        copied.copy(&mut reader, &mut writer, || stop.requested()).map_err(|error| self.failed(error))?;
        if !writer.finish().is_kept() {
            return Err(self.failed(anyhow::anyhow!("the copy cannot be synced to its disk")));
        }
        copied.verify(&self.to)?;
        self.print(&copied)?;
        Ok(match () {
            () if copied.is_interrupted => ExitCode::from(130),
            () if copied.missing > 0 => ExitCode::from(3),
            () => ExitCode::SUCCESS,
        })
    }

    /// Fails if the copy's last tick is not the journal's tick of that sequence: it is the copy of another journal, or
    /// ticks were numbered again since.
    fn expect_same(&self, reader: &mut Reader<Directory>, opened: &Opened) -> anyhow::Result<()> {
        let last = opened.last;
        if last == 0 {
            return reader.seek(From::Oldest).map_err(broken);
        }
        let mut copy = open(&self.to)?;
        copy.seek(From::Seq(last)).map_err(broken)?;
        reader.seek(From::Seq(last)).map_err(broken)?;
        let is_same = match (reader.next().map_err(broken)?, copy.next().map_err(broken)?) {
            // Retention removed the tick, or it was never written: the copy cannot be compared.
            (Next::Missing { .. }, _) | (_, Next::Missing { .. }) => true,
            (Next::Record(ours), Next::Record(copied)) => ours == copied,
            (Next::End, _) | (_, Next::End) => false,
        };
        if !is_same {
            let (folder, to) = (paths::shown(&self.folder), paths::shown(&self.to));
            let what = format!("{to} ends with tick {last}, which {folder} does not have, or has another");
            let hint = "it is the copy of another journal, or of this one before ticks were numbered again: give a new folder";
            return Err(Hinted::new(what, hint).into());
        }
        reader.seek(From::Seq(last + 1)).map_err(broken)
    }

    fn failed(&self, error: anyhow::Error) -> anyhow::Error {
        let what = format!("the backup to {} is not finished", paths::shown(&self.to));
        error.context(Hinted::new(what, "what is there is whole; the next run continues behind it"))
    }

    fn print(&self, copied: &Copied) -> anyhow::Result<()> {
        let Copied { ticks, bytes, missing, first, last, is_interrupted } = copied;
        if self.format == Format::Json {
            return output::print_json(&json!({
                "ticks": ticks, "bytes": bytes, "missing": missing, "first": first, "last": last, "interrupted": is_interrupted,
            }));
        }
        let [ticks, bytes] = [*ticks, *bytes].map(thousands);
        let to = paths::shown(&self.to);
        output::print(&format!(
            "{ticks} ticks of {bytes} bytes copied and verified; {to} ends with tick {last}"
        ))
    }
}

impl Copied {
    /// Copies up to the journal's end as it is when it is reached, or until stopped.
    fn copy(
        &mut self,
        reader: &mut Reader<Directory>,
        writer: &mut Writer<Directory>,
        is_to_stop: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        // What retention has deleted before the journal's first file is not missing in its copy.
        writer.begin_behind(reader.passed());
        let mut progress = Progress::counting("copying", "ticks", None);
        loop {
            if self.ticks.is_multiple_of(LOOK_EVERY) {
                progress.set(self.ticks);
                if is_to_stop() {
                    self.is_interrupted = true;
                    return Ok(());
                }
            }
            match reader.next().map_err(broken)? {
                Next::Record(record) => {
                    if !writer.append(record.seq, record.time, record.body).is_kept() {
                        return Err(fault(writer));
                    }
                    self.first.get_or_insert(record.seq);
                    (self.ticks, self.last) = (self.ticks + 1, record.seq);
                    self.bytes += record.body.len() as u64;
                }
                Next::Missing { from, to } => self.missing += warn_of_missing(from, to),
                Next::End if writer.flush().is_kept() => return Ok(()),
                Next::End => return Err(fault(writer)),
            }
        }
    }

    /// Reads what was copied, with every checksum and sequence.
    fn verify(&self, to: &Path) -> anyhow::Result<()> {
        let Some(first) = self.first else { return Ok(()) };
        let mut copy = open(to)?;
        copy.seek(From::Seq(first)).map_err(broken)?;
        let (mut ticks, mut last) = (0, 0);
        loop {
            match copy.next().map_err(broken)? {
                Next::Record(record) => (ticks, last) = (ticks + 1, record.seq),
                Next::Missing { .. } => {}
                Next::End if (ticks, last) == (self.ticks, self.last) => return Ok(()),
                Next::End => {
                    let what = format!(
                        "the copy has {ticks} ticks up to {last}, and {} up to {} were written",
                        self.ticks, self.last
                    );
                    return Err(
                        Hinted::new(what, "another program writes to it, or its disk is broken").into()
                    );
                }
            }
        }
    }
}

/// Why a copy cannot be written.
fn fault(writer: &Writer<Directory>) -> anyhow::Error {
    match writer.fault() {
        Some(error) => {
            let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
            let what = format!("{error}{}", cause.unwrap_or_default());
            Hinted::new(what, error.hint().unwrap_or_default()).into()
        }
        None => anyhow::anyhow!("the copy cannot be written"),
    }
}

fn open(folder: &Path) -> anyhow::Result<Reader<Directory>> {
    let opened = Directory::open(folder).and_then(Reader::open);
    opened.map_err(|error| hinted(&format!("cannot read the journal in {}", paths::shown(&folder)), error))
}

/// Whether the last run into this folder was finished, or there was none.
fn was_closed(to: &Path) -> anyhow::Result<bool> {
    if !to.exists() {
        return Ok(true);
    }
    let mut copy = open(to)?;
    let Some(last) = copy.segments().last() else { return Ok(true) };
    copy.seek(From::Seq(last.first)).map_err(broken)?;
    while !matches!(copy.next().map_err(broken)?, Next::End) {}
    Ok(copy.ends().map_err(broken)?.closed.is_some())
}

/// Copies the file that says which plant numbered the ticks, if the journal has one.
fn copy_epochs(folder: &Path, to: &Path) -> anyhow::Result<()> {
    let what = || format!("cannot copy {EPOCHS_FILE}");
    let text = match fs::read(folder.join(EPOCHS_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.with_context(what)?,
    };
    let (file, new) = (to.join(EPOCHS_FILE), to.join(EPOCHS_FILE).with_extension("new"));
    let written = File::create(&new).and_then(|mut out| {
        out.write_all(&text)?;
        out.sync_all()?;
        fs::rename(&new, &file)
    });
    written.with_context(what)
}
