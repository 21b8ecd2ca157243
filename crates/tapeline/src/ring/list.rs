//! `tapeline ring ls`: the rings of this machine.

use std::process::ExitCode;

use clap::Args;
use serde::Serialize;
use tapeline_console::output::{self, Format};
use tapeline_measure::figures;
use tapeline_perf::ring::failures;
use tapeline_perf::ring::view::{self, RingView};
use tapeline_ring::{Entry, list};

/// List the rings of this machine
#[derive(Debug, Args)]
#[command(after_help = "\
State: live = the ring has a publisher; ended = its publisher closed it; dead = its publisher died, and \
another publisher can continue the ring.

Examples:
  tapeline ring ls
  tapeline ring ls --format json | jq -r '.[] | select(.state == \"dead\") | .name'")]
pub(crate) struct List {
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A ring, or the error that prevents reading a ring of this name.
#[derive(Serialize)]
#[serde(untagged)]
enum Item {
    Ring(Box<RingView>),
    Unreadable { name: String, state: &'static str, error: String },
}

impl List {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let entries = list().map_err(failures::with_hint)?;
        match self.format {
            Format::Json => {
                let items: Vec<Item> = entries.iter().map(item).collect();
                output::print_json(&items)?;
            }
            Format::Table if entries.is_empty() => anstream::eprintln!("no rings"),
            Format::Table => output::print(&table(&entries))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn item(Entry { name, ring }: &Entry) -> Item {
    match ring {
        Ok(ring) => Item::Ring(Box::new(RingView::new(name.as_str(), ring))),
        Err(error) => {
            Item::Unreadable { name: name.to_string(), state: "unreadable", error: error.to_string() }
        }
    }
}

fn table(entries: &[Entry]) -> String {
    let headings =
        "name, state, publisher, epoch, frames, size, policy, framing, subscribers, largest lag, evicted";
    let mut table = output::table(headings.split(", "));
    let mut troubles = String::new();
    for Entry { name, ring } in entries {
        match ring {
            Ok(ring) => {
                let lag = ring.subscribers.iter().map(|subscriber| subscriber.lag_bytes).max();
                table.add_row([
                    name.to_string(),
                    view::state(ring).to_owned(),
                    ring.publisher.pid.to_string(),
                    ring.publisher.epoch.to_string(),
                    figures::thousands(ring.publisher.frames),
                    view::bytes(ring.capacity as u64),
                    ring.policy.to_string(),
                    ring.framing.to_string(),
                    ring.subscribers.len().to_string(),
                    lag.map_or_else(String::new, view::bytes),
                    figures::thousands(ring.publisher.evicted),
                ]);
            }
            Err(error) => {
                table.add_row([name.as_str(), "unreadable"]);
                troubles.push_str(&format!("\n{name}: {error}"));
            }
        }
    }
    if troubles.is_empty() { table.to_string() } else { format!("{table}\n{troubles}") }
}
