//! `tapeline ring stat`: one ring's publisher and subscribers.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use tapeline_console::{Format, Stop, arguments, output};
use tapeline_measure::{Nanos, figures, instant};
use tapeline_perf::ring::failures;
use tapeline_perf::ring::view::{self, RingView};
use tapeline_ring::{Name, Policy, Snapshot, inspect};

use crate::stat::print_again;

/// Show a ring's publisher and subscribers
#[derive(Debug, Args)]
#[command(after_help = "\
Lag is the distance in bytes from a subscriber's position to the end of the newest message. A subscriber \
reports its position once in each eighth of the ring, and when it has read everything, so a lag of up to \
an eighth of the ring is normal. A lag of nearly the whole ring means that the subscriber blocks the \
publisher.

Examples:
  tapeline ring stat smem
  tapeline ring stat smem --watch                                 once a second, with rates
  tapeline ring stat smem --watch --interval 100ms --format json  a JSON line at each interval")]
pub(crate) struct RingStat {
    /// Name of the ring; `ring ls` lists all rings
    #[arg(value_name = "NAME", value_parser = failures::name, required_unless_present = "named")]
    name: Option<Name>,

    /// Name of the ring as an option, as in `ring pub`
    #[arg(long = "name", alias = "ring", value_name = "NAME", value_parser = failures::name, hide = true, conflicts_with = "name")]
    named: Option<Name>,

    /// Repeat until Ctrl-C or until the ring is gone
    #[arg(long)]
    watch: bool,

    /// Interval of --watch
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = arguments::some_duration)]
    interval: Duration,

    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A ring, with the changes since the previous snapshot.
#[derive(Serialize)]
struct Watched {
    #[serde(flatten)]
    ring: RingView,
    #[serde(flatten)]
    rates: Option<Rates>,
}

/// The rates between two snapshots.
#[derive(Clone, Copy, Serialize)]
struct Rates {
    frames_per_second: f64,
    bytes_per_second: f64,
}

impl RingStat {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let name = self.name.as_ref().or(self.named.as_ref()).context("no ring was named")?;
        let mut before: Option<(Snapshot, Instant)> = None;
        loop {
            let ring = match inspect(name) {
                Ok(ring) => ring,
                // The ring existed before: it has ended, so this command ends normally too.
                Err(tapeline_ring::Error::NotFound { .. }) if before.is_some() => {
                    anstream::eprintln!("ring {name} is gone");
                    return Ok(ExitCode::SUCCESS);
                }
                Err(error) => return Err(failures::with_hint(error)),
            };
            let now = instant();
            let rates = before.as_ref().map(|(before, then)| rates(before, &ring, now.duration_since(*then)));
            self.show(name, &ring, rates)?;
            if !self.watch || !stop.sleep(self.interval) {
                return Ok(ExitCode::SUCCESS);
            }
            before = Some((ring, now));
        }
    }

    fn show(&self, name: &Name, ring: &Snapshot, rates: Option<Rates>) -> anyhow::Result<()> {
        match self.format {
            Format::Json => {
                let watched = Watched { ring: RingView::new(name.as_str(), ring), rates };
                if self.watch { output::print_json_line(&watched) } else { output::print_json(&watched) }
            }
            Format::Table => {
                let text = text(name, ring, rates);
                if self.watch { print_again(&text) } else { output::print(&text) }
            }
        }
    }
}

fn rates(before: &Snapshot, now: &Snapshot, elapsed: Duration) -> Rates {
    let per_second =
        |before: u64, now: u64| now.saturating_sub(before) as f64 / elapsed.as_secs_f64().max(1e-9);
    Rates {
        frames_per_second: per_second(before.publisher.frames, now.publisher.frames),
        bytes_per_second: per_second(before.publisher.position.0, now.publisher.position.0),
    }
}

/// What happens to a subscriber that does not read.
fn stall_limit(ring: &Snapshot) -> String {
    match (ring.policy, ring.stall_limit) {
        (Policy::Broadcast, _) => "overtakes slow subscribers".to_owned(),
        (_, Duration::ZERO) => "waits for subscribers without limit".to_owned(),
        (_, limit) => {
            let limit = figures::duration(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
            format!("waits at most {limit} for a subscriber")
        }
    }
}

fn text(name: &Name, ring: &Snapshot, rates: Option<Rates>) -> String {
    let publisher = &ring.publisher;
    let alive = match view::state(ring) {
        "live" => "alive",
        "ended" => "has ended the ring",
        _ => "died",
    };
    let mut text = format!(
        "ring         {name}, {} of data, frames up to {}, mode {:04o}, created {}\n\
         publisher    process {}, {alive}, epoch {}\n\
         frames       {}, position {}, intact from {} on\n\
         policy       {}, {} frames, {}{}\n\
         full ring    found by {} claims; {} dead subscribers removed, {} evicted",
        view::bytes(ring.capacity as u64),
        view::bytes(ring.max_frame as u64),
        ring.mode,
        Nanos(ring.created_ns).file_stamp(),
        publisher.pid,
        publisher.epoch,
        figures::thousands(publisher.frames),
        figures::thousands(publisher.position.0),
        figures::thousands(ring.oldest.0),
        ring.policy,
        ring.framing,
        stall_limit(ring),
        if ring.huge_pages { ", huge pages" } else { "" },
        figures::thousands(publisher.full),
        figures::thousands(publisher.reclaimed),
        figures::thousands(publisher.evicted),
    );
    if let Some(Rates { frames_per_second, bytes_per_second }) = rates {
        let (frames, bytes) =
            (output::rate(frames_per_second, "frames"), output::byte_rate(bytes_per_second));
        text.push_str(&format!("\nnow          {frames}   {bytes}"));
    }
    if ring.subscribers.is_empty() {
        text.push_str("\n\nno subscribers");
        return text;
    }
    let mut table = output::table(["subscriber", "process", "state", "position", "lag", "share of ring"]);
    for subscriber in &ring.subscribers {
        let state = match (subscriber.alive, subscriber.evicted, subscriber.parked) {
            (false, ..) => "dead",
            (true, true, _) => "evicted",
            (true, false, true) => "asleep",
            (true, false, false) => "alive",
        };
        let share = 100.0 * subscriber.lag_bytes as f64 / ring.capacity as f64;
        table.add_row([
            subscriber.label.clone(),
            subscriber.pid.to_string(),
            state.to_owned(),
            figures::thousands(subscriber.position.0),
            view::bytes(subscriber.lag_bytes),
            format!("{share:.0} %"),
        ]);
    }
    format!("{text}\n\n{table}")
}
