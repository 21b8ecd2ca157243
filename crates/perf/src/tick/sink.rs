//! The subscriber: counts what arrives, and measures how long after it was due.

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

/// Subscribe to the measured tickerplant.
#[derive(Debug, Args)]
pub struct SinkPart {
    #[command(flatten)]
    part: PartArgs,
    /// Number of rows that the publisher will send
    #[arg(long)]
    expect: u64,
    /// Do not subscribe: a bare relay forwards all bytes
    #[arg(long)]
    bare: bool,
    /// File for the due, send and receive times of the measured rows, written at the end
    #[arg(long)]
    times: Option<FilePath>,
}

/// Printed after the subscription.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Subscribed {
    pub(super) subscribed: bool,
}

/// What arrived.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Received {
    /// Rows, including those of the warm-up.
    pub(super) rows: u64,
    /// Bytes of the values of all messages.
    pub(super) bytes: u64,
    /// Arrival less due of the rows after the warm-up; a distribution in base64.
    pub(super) latency: String,
    /// Arrival less actual send.
    pub(super) service: String,
    /// Whether the service time grows.
    pub(super) trend: Trend,
    /// Arrival less due, by tenth of a second.
    pub(super) windows: Vec<Window>,
    /// The tickerplant closed the connection before everything had arrived.
    pub(super) is_cut_off: bool,
}

/// The length of a window.
pub(super) const WINDOW_NS: u64 = 100_000_000;

/// How long to wait for late updates after the last one was due.
const DRAIN_NS: u64 = 3_000_000_000;

/// A distribution from its base64.
pub(super) fn decode(text: &str) -> anyhow::Result<Recorder> {
    let bytes = BASE64.decode(text.as_bytes()).context("no distribution")?;
    Ok(Recorder::decode(&bytes)?)
}

impl SinkPart {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
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
        let last = self.part.end() + DRAIN_NS;
        let room = if self.times.is_some() { usize::try_from(self.expect)? } else { 0 };
        let mut arrivals = Arrivals::new(&self.part, room);
        if is_told {
            output::print_json_line(&Subscribed { subscribed: true })?;
        }
        while arrivals.received.rows < self.expect && !stop.requested() {
            let came = link.receive()?;
            let now = clock.now();
            if now >= last {
                break;
            }
            match came {
                Came::Something => {}
                Came::Nothing => continue,
                Came::End if is_told => {
                    arrivals.received.is_cut_off = true;
                    break;
                }
                Came::End => anyhow::bail!("the tickerplant has closed the connection"),
            }
            while let Some(message) = link.frames.next()? {
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
                arrivals.received.bytes += message.body.len() as u64;
                arrivals.take(&update, now);
            }
        }
        let (received, times) = arrivals.finish();
        if let Some(path) = &self.times {
            write_times(path, &times).with_context(|| format!("cannot write {}", path.display()))?;
        }
        output::print_json_line(&received)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The rows so far, and their latencies.
struct Arrivals {
    /// Rows with due times outside this range belong to another publisher.
    first_due: Nanos,
    last_due: Nanos,
    measured_from: Nanos,
    received: Received,
    latency: Recorder,
    service: Recorder,
    lateness: Lateness,
    series: Series,
    /// When each row was due, sent and received.
    times: Vec<[Nanos; 3]>,
    /// Maximum length of `times`.
    room: usize,
}

impl Arrivals {
    /// An empty record, with capacity for the times of `room` rows.
    fn new(part: &PartArgs, room: usize) -> Self {
        let measured_from = part.measured_from();
        Self {
            first_due: Nanos(part.start),
            last_due: part.end(),
            measured_from,
            received: Received::default(),
            latency: Recorder::new(),
            service: Recorder::new(),
            lateness: Lateness::new(measured_from),
            series: Series::new(measured_from, WINDOW_NS, Series::ROWS),
            // Allocate everything now: growth would be a stall within the measurement.
            times: Vec::with_capacity(room),
            room,
        }
    }

    /// Measures the rows of an update that arrived at this time.
    fn take(&mut self, update: &Update<'_>, now: Nanos) {
        for (late, due) in stamps(update) {
            let due = Nanos(due as u64);
            // A tickerplant with other clients sends their rows as well.
            if !(self.first_due..=self.last_due).contains(&due) {
                continue;
            }
            self.received.rows += 1;
            if due < self.measured_from {
                continue;
            }
            let since_due = now.since(due);
            let since_sent = since_due - late as i64;
            self.latency.record(since_due);
            self.service.record(since_sent);
            self.lateness.record(now, since_sent);
            self.series.record(now, since_due);
            // Rows beyond the expected number are counted, but their times are not stored.
            if self.times.len() < self.room {
                let sent = Nanos((now.0 as i64 - since_sent) as u64);
                self.times.push([due, sent, now]);
            }
        }
    }

    /// The figures, and the times of the rows.
    fn finish(self) -> (Received, Vec<[Nanos; 3]>) {
        let received = Received {
            latency: BASE64.encode(&self.latency.encode()),
            service: BASE64.encode(&self.service.encode()),
            trend: self.lateness.trend(),
            windows: self.series.finish(),
            ..self.received
        };
        (received, self.times)
    }
}

/// Writes a line for each latency, in the order of arrival.
fn write_times(path: &Path, times: &[[Nanos; 3]]) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "due_ns,sent_ns,received_ns")?;
    for [due, sent, received] in times {
        writeln!(out, "{},{},{}", due.0, sent.0, received.0)?;
    }
    out.flush()
}

/// The last two columns: the lateness of the rows, and their due times.
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
