//! The publisher: sends updates on a schedule, each with the time at which it was due.

use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use tapeline_console::output;
use tapeline_console::stop::Stop;
use tapeline_kdb::{Atom, Encoder, MessageKind, Refused, Type};
use tapeline_measure::{Clock, Lateness, Nanos, Pacer, Trend, Waiting};

use super::{PartArgs, TABLE};

/// Publish to the measured tickerplant.
#[derive(Debug, Args)]
pub struct Feed {
    #[command(flatten)]
    part: PartArgs,
    /// Updates a second; 0 means as fast as the connection accepts them
    #[arg(long)]
    rate: u64,
    /// Rows in each update
    #[arg(long)]
    rows: usize,
}

/// What was sent.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sent {
    /// Updates, including those of the warm-up.
    pub(super) updates: u64,
    /// Updates a second, over the whole time.
    pub(super) rate_hz: f64,
    /// The share of the time in which the socket took nothing.
    pub(super) held_back_share: f64,
    /// Actual send less due, of all updates.
    pub(super) lateness: Trend,
}

/// Maximum number of updates per system call: those that are due.
const AT_ONCE: u64 = 256;
/// Maximum size of an update: names and headers, and for each row a symbol, a float and a long.
const HEAD: usize = 128;
const ROW: usize = 32;

impl Feed {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut link = self.part.link()?;
        let clock = Clock::calibrate();
        let start = Nanos(self.part.start);
        let pacer = Pacer::per_second(self.rate, start);
        let end = self.part.end();
        let total = if self.rate == 0 { u64::MAX } else { pacer.due_by(end) };
        let waiting = if self.part.spins { Waiting::Spin } else { Waiting::Yield };
        let mut lateness = Lateness::new(start);
        let (mut updates, mut held_back_ns) = (0, 0);
        let mut out = vec![0; (HEAD + ROW * self.rows) * AT_ONCE as usize];
        while updates < total && !stop.requested() {
            let first_due = if self.rate == 0 { start } else { pacer.due(updates) };
            let now = pacer.wait(&clock, first_due, waiting);
            if self.rate == 0 && now >= end {
                break;
            }
            let due = if self.rate == 0 { updates + AT_ONCE } else { pacer.due_by(now).min(total) };
            let mut len = 0;
            let until = due.min(updates + AT_ONCE);
            while updates < until {
                let due = if self.rate == 0 { now } else { pacer.due(updates) };
                len += self.update(&mut out[len..], due, now)?;
                lateness.record(now, now.since(due));
                updates += 1;
            }
            if link.send(&out[..len])? {
                held_back_ns += clock.now().since(now);
            }
        }
        let over_s = clock.now().since(start).max(1) as f64 / 1e9;
        output::print_json_line(&Sent {
            updates,
            rate_hz: updates as f64 / over_s,
            held_back_share: held_back_ns as f64 / 1e9 / over_s,
            lateness: lateness.trend(),
        })?;
        Ok(ExitCode::SUCCESS)
    }

    /// One update: symbols, its lateness as the price, its due time as the size. A tickerplant puts its time in front.
    fn update(&self, out: &mut [u8], due: Nanos, now: Nanos) -> Result<usize, Refused> {
        let (late, due) = (now.since(due) as f64, due.0 as i64);
        let mut message = Encoder::message(out, MessageKind::Async)?;
        message.list(3)?;
        message.symbol(b".u.upd")?;
        message.symbol(TABLE.as_bytes())?;
        message.list(3)?;
        if self.rows == 1 {
            message.symbol(b"AAPL")?;
            message.atom(&Atom::<&[u8]>::Float(late))?;
            message.atom(&Atom::<&[u8]>::Long(due))?;
        } else {
            message.symbols((0..self.rows).map(|_| b"AAPL".as_slice()))?;
            message.column(Type::FLOAT, (0..self.rows).map(|_| late))?;
            message.column(Type::LONG, (0..self.rows).map(|_| due))?;
        }
        message.finish()
    }
}
