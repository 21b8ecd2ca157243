//! The subscriber: what arrives, and how long after it was due.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use data_encoding::BASE64;
use serde::{Deserialize, Serialize};
use tapeline_console::output;
use tapeline_console::paths::FilePath;
use tapeline_console::stop::Stop;
use tapeline_kdb::{Column, MessageKind, Type, Update};
use tapeline_measure::{Clock, Lateness, Nanos, Recorder, Series, Trend, Window};

use super::place::Came;
use super::{PartArgs, TABLE};

/// Subscribe to a tickerplant that is measured.
#[derive(Debug, Args)]
pub(crate) struct Sink {
    #[command(flatten)]
    part: PartArgs,
    /// Rows that will be sent
    #[arg(long)]
    expect: u64,
    /// Ask for nothing: a bare relay passes on what is published
    #[arg(long)]
    bare: bool,
    /// Where each latency is written at the end
    #[arg(long)]
    times: Option<FilePath>,
}

/// It has subscribed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Subscribed {
    pub(super) subscribed: bool,
}

/// What arrived.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Received {
    /// Rows, those of the warm-up too.
    pub(super) rows: u64,
    /// Bytes of all messages' values.
    pub(super) bytes: u64,
    /// Arrival less due of the rows after the warm-up; a distribution in base64.
    latency: String,
    /// Arrival less actual send.
    service: String,
    /// Whether the service time grows.
    pub(super) trend: Trend,
    /// Arrival less due, by tenth of a second.
    pub(super) windows: Vec<Window>,
    /// The tickerplant closed the connection before all was there.
    pub(super) is_cut_off: bool,
}

/// The length of a window.
pub(super) const WINDOW_NS: u64 = 100_000_000;

/// One row: ns since 1970.
struct Times {
    due: Nanos,
    sent: Nanos,
    received: Nanos,
}

/// For how long after the last update was due others are waited for.
const DRAIN_NS: u64 = 3_000_000_000;

impl Received {
    /// Arrival less due.
    pub(super) fn latency(&self) -> anyhow::Result<Recorder> {
        decode(&self.latency)
    }

    /// Arrival less actual send.
    pub(super) fn service(&self) -> anyhow::Result<Recorder> {
        decode(&self.service)
    }
}

fn decode(text: &str) -> anyhow::Result<Recorder> {
    let bytes = BASE64.decode(text.as_bytes()).context("no distribution")?;
    Ok(Recorder::decode(&bytes)?)
}

impl Sink {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals()?;
        let mut link = self.part.link()?;
        if !self.bare {
            link.say(MessageKind::Sync, |out| {
                out.list(3)?;
                out.string(b".u.sub")?;
                out.symbol(TABLE.as_bytes())?;
                out.symbol(b"")
            })?;
        }
        let mut is_told = self.bare;
        let clock = Clock::calibrate();
        let measured_from = self.part.measured_from();
        let last = self.part.end() + DRAIN_NS;
        let (mut latency, mut service) = (Recorder::new(), Recorder::new());
        let mut lateness = Lateness::new(measured_from);
        let mut series = Series::new(measured_from, WINDOW_NS, Series::ROWS);
        let room = if self.times.is_some() { usize::try_from(self.expect)? } else { 0 };
        // All of it at once: growing would be a stall that is measured.
        let mut times: Vec<Times> = Vec::with_capacity(room);
        let mut received = Received::default();
        if is_told {
            output::print_json_line(&Subscribed { subscribed: true })?;
        }
        while received.rows < self.expect && !stop.requested() {
            let came = link.receive()?;
            let now = clock.now();
            if now >= last {
                break;
            }
            match came {
                Came::Something => {}
                Came::Nothing => continue,
                Came::End if is_told => {
                    received.is_cut_off = true;
                    break;
                }
                Came::End => anyhow::bail!("the tickerplant has closed the connection"),
            }
            while let Some(message) = link.frames().next()? {
                let view = message.view()?;
                if message.kind == MessageKind::Response {
                    if let tapeline_kdb::View::Error(text) = view {
                        anyhow::bail!("the tickerplant refused the subscription: {}", text.escape_ascii());
                    }
                    is_told = true;
                    output::print_json_line(&Subscribed { subscribed: is_told })?;
                    continue;
                }
                let Ok(update) = Update::of(&view) else { continue };
                received.bytes += message.body.len() as u64;
                for (late, due) in stamps(&update) {
                    let due = Nanos(due as u64);
                    // A tickerplant that others use has their rows as well.
                    if !(Nanos(self.part.start)..=self.part.end()).contains(&due) {
                        continue;
                    }
                    received.rows += 1;
                    if due < measured_from {
                        continue;
                    }
                    let since_due = now.since(due);
                    let since_sent = since_due - late as i64;
                    latency.record(since_due);
                    service.record(since_sent);
                    lateness.record(now, since_sent);
                    series.record(now, since_due);
                    // Rows that nobody said to expect are counted, and have no room.
                    if times.len() < room {
                        let sent = Nanos((now.0 as i64 - since_sent) as u64);
                        times.push(Times { due, sent, received: now });
                    }
                }
            }
        }
        received.latency = BASE64.encode(&latency.encode());
        received.service = BASE64.encode(&service.encode());
        received.trend = lateness.trend();
        received.windows = series.finish();
        if let Some(path) = &self.times {
            write_times(path, &times).with_context(|| format!("cannot write {}", path.display()))?;
        }
        output::print_json_line(&received)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A row for each latency, in the order of arrival.
fn write_times(path: &Path, times: &[Times]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "due_ns,sent_ns,received_ns")?;
    for Times { due, sent, received } in times {
        writeln!(out, "{},{},{}", due.0, sent.0, received.0)?;
    }
    out.flush()
}

/// The last two columns: how late the rows were sent, and when they were due.
fn stamps<'a>(update: &Update<'a>) -> impl Iterator<Item = (f64, i64)> + use<'a> {
    let columns = update.rows.columns();
    let mut last_two = columns.clone().skip(columns.len().saturating_sub(2));
    let late = match last_two.next() {
        Some(Column::Vector(late)) if late.kind() == Type::FLOAT => late.items::<f64>(),
        _ => None,
    };
    let due = match last_two.next() {
        Some(Column::Vector(due)) if due.kind() == Type::LONG => due.items::<i64>(),
        _ => None,
    };
    late.into_iter().flatten().zip(due.into_iter().flatten())
}
