//! `tapeline journal verify`: every checksum and every sequence.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use tapeline_journal::{Error, Folder, Next, Reader, Tail};
use tapeline_measure::Nanos;
use tapeline_measure::figures::thousands;

use super::ending::{say_torn, torn_json};
use super::place::Place;
use crate::output::{self, Format, Progress, table};
use crate::stop::Stop;

/// Holes that are named.
const MOST_HOLES: usize = 100;
/// Between two looks whether the user wants to end, in records.
const LOOK_EVERY: u64 = 1 << 16;

/// The options; the help is with the subcommand.
#[derive(Debug, Args)]
#[command(
    after_help = "Ends with status 1 where there is damage, and says where; with 130 where it was interrupted before the end. What a crash tore is none: it is cut when the \
    plant starts again. Holes are what the journal itself says to be missing.\n\nExamples:\n  \
    tapeline journal verify /var/lib/tapeline/journal\n  \
    tapeline journal verify journal --from-sequence 1000000 --format json"
)]
pub(super) struct Verify {
    #[command(flatten)]
    place: Place,
    /// How to print it
    #[arg(long, default_value = "table")]
    format: Format,
}

/// What was found.
#[derive(Debug, Default)]
struct Tally {
    records: u64,
    bytes: u64,
    first: Option<(u64, Nanos)>,
    last: Option<(u64, Nanos)>,
    missing: u64,
    holes: Vec<(u64, u64)>,
    /// The user ended it before the journal's end.
    is_interrupted: bool,
}

impl Verify {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut reader = self.place.open()?;
        let mut tally = Tally::default();
        let outcome = tally.read(&mut reader, || stop.requested());
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
                ExitCode::SUCCESS
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
    /// Whether there was nothing, and nothing was said to be missing.
    const fn is_empty(&self) -> bool {
        self.records == 0 && self.missing == 0
    }

    /// Reads on to the end, or until it is to stop: what is behind the last tick.
    fn read<F: Folder>(
        &mut self,
        reader: &mut Reader<F>,
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
                Next::Record(record) => {
                    self.records += 1;
                    self.bytes += record.body.len() as u64;
                    self.first.get_or_insert((record.seq, record.time));
                    self.last = Some((record.seq, record.time));
                }
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

    /// All members, as `docs/journal.md` has them.
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
            "holes": holes.collect::<Vec<_>>(),
            "torn": torn,
            "damage": damage,
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
        output::print(&format!(
            "{} ticks of {} bytes in {} segments, {} missing\n\n{ends}",
            thousands(self.records),
            thousands(self.bytes),
            thousands(segments as u64),
            thousands(self.missing),
        ))?;
        for (from, to) in &self.holes {
            output::print(&format!("missing: {from} to {to}"))?;
        }
        if self.is_interrupted {
            output::print("interrupted: what is behind the last tick was not looked at")?;
        }
        Ok(())
    }
}
