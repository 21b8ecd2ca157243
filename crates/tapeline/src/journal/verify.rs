//! `tapeline journal verify`: every checksum and every sequence.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use sha2::{Digest, Sha256};
use tapeline_console::Hinted;
use tapeline_console::output::{self, Format, Progress, table};
use tapeline_console::stop::Stop;
use tapeline_journal::{Directory, Ends, Error, Lost, Next, Reader, Tail};
use tapeline_measure::Nanos;
use tapeline_measure::figures::thousands;

use super::ending::{say_torn, torn_json};
use super::place::Place;

/// Maximum number of gaps that are listed.
const MOST_HOLES: usize = 100;
/// Records between two checks for an interrupt.
const LOOK_EVERY: u64 = 1 << 16;

#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 1 if the journal is damaged (the error names the place); 3 if the first or last file is missing; \
    130 if interrupted before the end. A last record that a crash left incomplete is not damage: the plant cuts it off \
    at its next start. Sequence numbers that the journal itself records as missing are listed.\n\nExamples:\n  \
    tapeline journal verify /var/lib/tapeline/journal\n  \
    tapeline journal verify journal --from-sequence 1000000 --format json\n  \
    tapeline journal verify journal --digest   # the same line from the journals of two hosts: the same ticks"
)]
pub(crate) struct Verify {
    #[command(flatten)]
    place: Place,
    /// Stop after the tick with this sequence number
    #[arg(long, value_name = "N")]
    to_sequence: Option<u64>,
    /// Print the SHA-256 digest of the ticks, to compare journals of several hosts
    #[arg(long)]
    digest: bool,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
}

#[derive(Debug, Default)]
struct Tally {
    records: u64,
    bytes: u64,
    first: Option<(u64, Nanos)>,
    last: Option<(u64, Nanos)>,
    missing: u64,
    holes: Vec<(u64, u64)>,
    /// Over sequence, length (both 8 bytes, little-endian) and bytes of each tick, if asked for.
    digest: Option<Sha256>,
    /// The last sequence to read.
    to: Option<u64>,
    /// The user ended it before the journal's end.
    is_interrupted: bool,
    /// How the journal ends; `None` if this was not checked.
    end: Option<End>,
    /// The ticks lost before the first file and after the last.
    ends: Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its writer closed it.
    Closed,
    /// A process writes it.
    BeingWritten,
    /// Its writer was killed, or its machine stopped.
    NotClosed,
    /// Not known: an earlier version wrote the journal.
    Unknown,
}

impl End {
    /// The name in the JSON report, and the sentence in the report for people.
    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Closed => ("closed", "the journal was closed behind the last tick"),
            Self::BeingWritten => ("being written", "the journal is being written"),
            Self::NotClosed => {
                ("not closed", "the journal was not closed: its writer was killed, or could not write it")
            }
            Self::Unknown => (
                "unknown",
                "whether the journal was closed is not known: it has no file `bounds`, as earlier versions wrote none",
            ),
        }
    }
}

impl Verify {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        if let (Some(from), Some(to)) = (self.place.from_sequence, self.to_sequence)
            && to < from
        {
            let what = format!("--to-sequence {to} is before --from-sequence {from}");
            return Err(Hinted::new(what, "both ticks are read, and those between them").into());
        }
        let mut reader = self.place.open()?;
        let digest = self.digest.then(Sha256::new);
        let mut tally = Tally { digest, to: self.to_sequence, ..Tally::default() };
        let outcome = tally.read_to_the_end(&mut reader, || stop.requested());
        let segments = reader.segments().count();
        match self.format {
            Format::Json => output::print_json(&tally.json(segments, &outcome))?,
            Format::Table => tally.print(segments)?,
        }
        Ok(match &outcome {
            Ok(_) if tally.is_interrupted => ExitCode::from(130),
            Ok(tail) => {
                if let Some(tail) = tail {
                    say_torn(tail);
                }
                if tally.is_empty() {
                    self.place.say_that_it_is_behind(&reader);
                }
                if self.digest && tally.records == 0 {
                    anstream::eprintln!("error: there is no tick, so there is no digest");
                    return Ok(ExitCode::FAILURE);
                }
                let lost = tally.lost();
                for (which, lost) in &lost {
                    anstream::eprintln!("error: the journal's {which} file is lost, with {}", said(*lost));
                }
                if lost.is_empty() {
                    return Ok(ExitCode::SUCCESS);
                }
                anstream::eprintln!(
                    "hint: restore the file before the plant writes again; it is named after its first tick"
                );
                ExitCode::from(3)
            }
            Err(error) => {
                anstream::eprintln!("error: {error}");
                if let Some(hint) = error.hint() {
                    anstream::eprintln!("hint: {hint}");
                }
                ExitCode::FAILURE
            }
        })
    }
}

impl Tally {
    /// Whether no tick was read and none is known to be missing.
    const fn is_empty(&self) -> bool {
        self.records == 0 && self.missing == 0
    }

    /// The ends at which ticks are lost.
    fn lost(&self) -> Vec<(&'static str, Lost)> {
        let ends = [("first", self.ends.lost_before), ("last", self.ends.lost_behind)];
        ends.into_iter().filter_map(|(which, lost)| Some((which, lost?))).collect()
    }

    /// Reads to the end, or until stopped, and finds out how the journal ends. Returns what follows the last tick.
    fn read_to_the_end(
        &mut self,
        reader: &mut Reader<Directory>,
        is_to_stop: impl Fn() -> bool,
    ) -> Result<Option<Tail>, Error> {
        let mut tail = self.read(reader, &is_to_stop)?;
        if self.is_interrupted || self.to.is_some() {
            return Ok(tail);
        }
        self.ends = reader.ends()?;
        if self.ends.lost_behind.is_some() {
            // The writer may have written more, and closed the journal, since the end was read.
            tail = self.read(reader, &is_to_stop)?;
            self.ends = reader.ends()?;
        }
        self.end = Some(match self.ends {
            _ if reader.folder().is_being_written()? => End::BeingWritten,
            Ends { is_known: false, .. } => End::Unknown,
            Ends { closed: Some(_), .. } => End::Closed,
            _ => End::NotClosed,
        });
        Ok(tail)
    }

    /// Reads to the end, or until stopped. Returns what follows the last tick.
    fn read(
        &mut self,
        reader: &mut Reader<Directory>,
        is_to_stop: impl Fn() -> bool,
    ) -> Result<Option<Tail>, Error> {
        let mut progress = Progress::counting("verifying", "ticks", None);
        loop {
            if self.records.is_multiple_of(LOOK_EVERY) {
                progress.set(self.records);
                self.is_interrupted = is_to_stop();
                if self.is_interrupted {
                    return Ok(None);
                }
            }
            match reader.next()? {
                Next::Record(record) if self.to.is_some_and(|to| record.seq > to) => return Ok(None),
                Next::Record(record) => {
                    self.records += 1;
                    self.bytes += record.body.len() as u64;
                    if let Some(digest) = &mut self.digest {
                        digest.update(record.seq.to_le_bytes());
                        digest.update((record.body.len() as u64).to_le_bytes());
                        digest.update(record.body);
                    }
                    self.first.get_or_insert((record.seq, record.time));
                    self.last = Some((record.seq, record.time));
                }
                Next::Missing { from, .. } if self.to.is_some_and(|to| from > to) => return Ok(None),
                Next::Missing { from, to } => {
                    self.missing += to - from + 1;
                    if self.holes.len() < MOST_HOLES {
                        self.holes.push((from, to));
                    }
                }
                Next::End => return reader.ending(),
            }
        }
    }

    /// The digest of the ticks read so far, in hexadecimal.
    fn shown_digest(&self) -> Option<String> {
        // That of nothing would be alike everywhere.
        let digest = self.digest.clone().filter(|_| self.records > 0);
        digest.map(|digest| format!("{:x}", digest.finalize()))
    }

    /// All members, as in `docs/journal.md`.
    fn json(&self, segments: usize, outcome: &Result<Option<Tail>, Error>) -> serde_json::Value {
        let end = |end: Option<(u64, Nanos)>| end.map(|(seq, time)| json!({ "sequence": seq, "time": time }));
        let holes = self.holes.iter().map(|(from, to)| json!({ "from": from, "to": to }));
        let torn = outcome.as_ref().ok().and_then(Option::as_ref).map(torn_json);
        let damage = outcome.as_ref().err().map(|error| match error {
            Error::Corrupt { segment, offset, seq, fault } => json!({
                "segment": segment, "offset": offset, "sequence": seq, "reason": fault.to_string(),
            }),
            other => json!({ "reason": other.to_string() }),
        });
        json!({
            "segments": segments,
            "ticks": self.records,
            "bytes": self.bytes,
            "first": end(self.first),
            "last": end(self.last),
            "missing": self.missing,
            "digest": self.shown_digest(),
            "holes": holes.collect::<Vec<_>>(),
            "torn": torn,
            "damage": damage,
            "end": self.end.map(|end| end.told().0),
            "lost": self.lost().iter().map(|(which, lost)| json!({
                "file": which, "from": lost.from, "to": lost.to,
            })).collect::<Vec<_>>(),
            "interrupted": self.is_interrupted,
        })
    }

    fn print(&self, segments: usize) -> anyhow::Result<()> {
        let mut ends = table(["", "sequence", "time"]);
        for (what, end) in [("first", self.first), ("last", self.last)] {
            if let Some((seq, time)) = end {
                ends.add_row([what.to_owned(), seq.to_string(), time.to_string()]);
            }
        }
        let [ticks, bytes, segments, missing] =
            [self.records, self.bytes, segments as u64, self.missing].map(thousands);
        output::print(&format!(
            "{ticks} ticks of {bytes} bytes in {segments} segments, {missing} missing\n\n{ends}"
        ))?;
        if let Some(digest) = self.shown_digest() {
            output::print(&format!("SHA-256 of the ticks: {digest}"))?;
        }
        for (from, to) in &self.holes {
            output::print(&format!("missing: {from} to {to}"))?;
        }
        if let Some(end) = self.end {
            output::print(end.told().1)?;
        }
        if self.is_interrupted {
            output::print("interrupted: what is behind the last tick was not looked at")?;
        }
        Ok(())
    }
}

/// The lost ticks, as text.
fn said(lost: Lost) -> String {
    match lost.to {
        Some(to) => format!("ticks {} to {to}", lost.from),
        None => format!("ticks from {} on", lost.from),
    }
}
