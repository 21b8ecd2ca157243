//! `tapeline journal inspect`: segments, and ticks from a given place.

use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tapeline_console::output::{self, Format, table};
use tapeline_journal::{Next, Record};
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

impl InspectJournal {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let mut reader = self.place.open()?;
        let segments: Vec<_> = reader.segments().collect();
        let mut ticks = Vec::new();
        for _ in 0..self.count {
            match reader.next().map_err(|error| hinted("the journal is damaged", error))? {
                Next::Record(record) => ticks.push(tick(&record)),
                Next::Missing { from, to } => ticks.push(json!({ "missing": { "from": from, "to": to } })),
                Next::End => break,
            }
        }
        if ticks.is_empty() && self.count > 0 {
            self.place.say_that_it_is_behind(&reader);
        }
        if self.format == Format::Json {
            let segments = segments.iter().map(|segment| {
                json!({
                    "file": segment.name,
                    "first": segment.first,
                    "after": segment.after,
                    "bytes": segment.bytes,
                    "latest_before": segment.latest_before,
                })
            });
            output::print_json(&json!({ "segments": segments.collect::<Vec<_>>(), "ticks": ticks }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut files = table(["segment", "first", "after", "bytes"]);
        for segment in &segments {
            let bytes = thousands(segment.bytes);
            files.add_row([&*segment.name, &segment.first.to_string(), &segment.after.to_string(), &bytes]);
        }
        output::print(&format!("{files}\n"))?;
        let mut rows = table(["sequence", "time", "kind", "service", "channel", "name", "bytes"]);
        for tick in &ticks {
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
        output::print(&rows.to_string())?;
        Ok(ExitCode::SUCCESS)
    }
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
