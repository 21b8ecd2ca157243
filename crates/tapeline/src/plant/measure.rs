//! `tapeline plant measure`: a subscriber that only checks and times the ticks that it receives.

use std::cell::RefCell;
use std::process::ExitCode;

use clap::Args;
use tapeline_console::{Format, Stop, output};
use tapeline_perf::path::{Joined, Meter};
use tapeline_plant::Note;

use super::follow::{Follow, FollowArgs};

/// Check that no tick is missing, and measure the latency of every hop.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline plant measure --ring tapeline --duration 10s\n  \
    tapeline plant measure --until-end-of-session --format json")]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    follow: FollowArgs,
    /// Name of this subscriber in `tapeline ring stat`
    #[arg(long, default_value = "measure")]
    label: String,
    /// Warm-up: exclude the ticks of this first period from the latencies, but not from the count of losses
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = tapeline_console::arguments::duration)]
    warm_up: std::time::Duration,
    /// Compute a checksum of all ticks, to compare with that of a journal's replay
    #[arg(long)]
    checksum: bool,
    /// Print one line of JSON once the ring is joined, so that a script can start the feed
    #[arg(long)]
    announce: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl MeasureArgs {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut follow = Follow::join(&self.follow, &self.label, stop)?;
        if self.announce {
            output::print_json_line(&Joined { joined: self.follow.ring.clone() })?;
        }
        let note = follow.note();
        let missing_before = note.map_or(0, |note| note.missing);
        let meter = RefCell::new(Meter::new(self.warm_up, self.checksum));
        let stamped_by = |note: Option<&Note>| {
            if let Some(note) = note {
                meter.borrow_mut().stamped_by(note.stamped_by);
            }
            Ok(())
        };
        stamped_by(note.as_ref())?;
        let end = follow.run(
            |tick, received| {
                meter.borrow_mut().tick(tick, received);
                Ok(())
            },
            |_, note| stamped_by(note),
        )?;
        let gaps = follow.note().map_or(0, |note| note.missing).saturating_sub(missing_before);
        let report = meter.into_inner().report(self.label.clone(), end, gaps, follow.clock.error_ns());
        match self.format {
            Format::Json => output::print_json_line(&report)?,
            Format::Table => report.print()?,
        }
        Ok(end.exit_code(report.lost))
    }
}
