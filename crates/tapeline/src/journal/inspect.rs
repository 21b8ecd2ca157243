//! `tapeline journal inspect`: segments, and ticks from a given place.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::Args;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use tapeline_console::output::{self, Format, table};
use tapeline_journal::{Directory, Error, Next, Reader, Record, SegmentView};
use tapeline_measure::figures::thousands;
use tapeline_plant::tick::Tick;

use super::hinted;
use super::place::Place;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline journal inspect journal\n  \
    tapeline journal inspect journal --from-time 2026-11-21T14:30:00Z --count 20 --format json")]
pub(crate) struct InspectJournal {
    #[command(flatten)]
    place: Place,
    /// Number of ticks to show
    #[arg(long, value_name = "N", default_value = "10")]
    count: u64,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
}

/// The report in JSON.
#[derive(Serialize)]
#[serde(bound = "I: Iterator<Item = Value>")]
struct Report<I> {
    segments: Vec<Value>,
    /// Read while they are written: their number has no limit.
    #[serde(serialize_with = "one_by_one")]
    ticks: RefCell<I>,
}

fn one_by_one<S: Serializer>(
    ticks: &RefCell<impl Iterator<Item = Value>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(&mut *ticks.borrow_mut())
}

impl InspectJournal {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut reader = self.place.open()?;
        let segments: Vec<_> = reader.segments().collect();
        let (mut is_empty, mut damage) = (true, None);
        let ticks = (0..self.count).map_while(|_| {
            let tick = next(&mut reader).unwrap_or_else(|error| {
                damage = Some(error);
                None
            });
            is_empty &= tick.is_none();
            tick
        });
        match self.format {
            Format::Json => {
                let segments = segments.iter().map(|segment| {
                    json!({
                        "file": segment.name,
                        "first": segment.first,
                        "after": segment.after,
                        "bytes": segment.bytes,
                        "latest_before": segment.latest_before,
                    })
                });
                output::print_json(&Report { segments: segments.collect(), ticks: RefCell::new(ticks) })?;
            }
            Format::Table => print_tables(&segments, ticks)?,
        }
        if let Some(error) = damage {
            return Err(hinted("the journal is damaged", error));
        }
        if is_empty && self.count > 0 {
            self.place.say_that_it_is_behind(&reader);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads the next tick or gap; `None` at the end.
fn next(reader: &mut Reader<Directory>) -> Result<Option<Value>, Error> {
    Ok(match reader.next()? {
        Next::Record(record) => Some(tick(&record)),
        Next::Missing { from, to } => Some(json!({ "missing": { "from": from, "to": to } })),
        Next::End => None,
    })
}

fn print_tables(segments: &[SegmentView], ticks: impl Iterator<Item = Value>) -> anyhow::Result<()> {
    let mut files = table(["segment", "first", "after", "bytes"]);
    for segment in segments {
        let bytes = thousands(segment.bytes);
        files.add_row([&*segment.name, &segment.first.to_string(), &segment.after.to_string(), &bytes]);
    }
    output::print(&format!("{files}\n"))?;
    let mut rows = table(["sequence", "time", "kind", "service", "channel", "name", "bytes"]);
    for tick in ticks {
        let cell = |key: &str| match &tick[key] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        if let Some(missing) = tick.get("missing") {
            rows.add_row([format!("{} to {}", missing["from"], missing["to"]), "missing".to_owned()]);
        } else {
            rows.add_row(["sequence", "at", "kind", "service", "channel", "name", "bytes"].map(cell));
        }
    }
    output::print(&rows.to_string())
}

fn tick(record: &Record<'_>) -> Value {
    let mut shown = json!({
        "sequence": record.seq,
        "time": record.time,
        "at": record.time.to_string(),
        "bytes": record.body.len(),
    });
    match Tick::parse(record.body) {
        Ok(tick) => {
            shown["kind"] = json!(format!("{:?}", tick.header.kind).to_lowercase());
            shown["service"] = json!(tick.header.service);
            shown["channel"] = json!(tick.header.channel);
            shown["item"] = json!(tick.header.item.0);
            shown["name"] = json!(tick.name);
        }
        Err(error) => shown["kind"] = json!(error.to_string()),
    }
    shown
}
