//! `tapeline feed inspect`: reads captures through the same arbiter, decoder and books as the plant.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use tapeline_console::output::Progress;
use tapeline_console::{FilePath, Format, Hinted, Stop, arguments, output, paths};
use tapeline_feed::capture::{self, Capture, Counts, FileFraming, ItchFile, Place, Recording, Skip};
use tapeline_feed::iex::tp;
use tapeline_feed::line::{self, Arbiter, Line, MAX_LINES};
use tapeline_measure::Nanos;
use tapeline_perf::exchange::no_datagrams;

use super::dbn_report::{self, DbnFile};
use super::iex::{IexFindings, Restart};
use super::report::{self, FileReport, InspectReport};
use super::tally::FeedTally;

/// A year. Waiting loses nothing when the end is known: a message late in a file is no gap.
const PATIENCE_NS: u64 = 365 * 86_400 * 1_000_000_000;
/// Maximum number of destinations of one capture, and of senders to each, that are counted separately; others share one count.
const MOST_ADDRESSES: usize = 64;
/// Number of datagrams or messages between two checks for a stop request.
const LOOK_EVERY: u64 = 4_096;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    tapeline feed inspect day.pcap.gz --symbol AAPL\n  \
    tapeline feed inspect lineA.pcap lineB.pcap --format json   two lines of one feed")]
pub(crate) struct InspectFeed {
    /// Captures (pcap, pcapng), files of ITCH messages or files of DBN records; plain, gzip or zstd
    #[arg(required = true, value_name = "FILE")]
    files: Vec<FilePath>,
    /// Show the books of these stocks
    #[arg(long = "symbol", value_name = "SYMBOL", value_delimiter = ',')]
    symbols: Vec<String>,
    /// Price levels of a book to show
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    levels: usize,
    /// Busiest stocks to show in the table
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    top: usize,
    /// Records of a DBN file to show, field by field
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    records: usize,
    /// Read only captured traffic to this destination
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = arguments::address::<SocketAddr>)]
    only: Option<SocketAddr>,
    /// How to treat an IEX sender that restarts at sequence 1 under the same session
    #[arg(long, default_value = "reset")]
    restart: Restart,
    /// Output format
    #[arg(long, default_value = "table")]
    format: Format,
}

/// Counts of each kind of content, in captures and files.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Protocols {
    /// MoldUDP64 packets.
    pub(super) mold: u64,
    /// Segments of IEX-TP.
    pub(super) iex: u64,
    /// Any other content.
    pub(super) other: u64,
    /// Files of ITCH messages.
    pub(super) itch_files: u64,
}

pub(super) struct Findings {
    pub(super) files: Vec<FileReport>,
    pub(super) protocols: Protocols,
    pub(super) arbiter: Arbiter,
    pub(super) tally: FeedTally,
    pub(super) iex: IexFindings,
}

impl InspectFeed {
    pub(super) fn run(self) -> anyhow::Result<ExitCode> {
        let stop = Stop::on_signals().context("cannot listen for signals")?;
        let mut findings = Findings {
            files: Vec::new(),
            protocols: Protocols::default(),
            arbiter: Arbiter::new(patient()),
            tally: FeedTally::new(),
            iex: IexFindings::new(self.restart, patient()),
        };
        let (mut captures, mut records) = (Vec::new(), Vec::new());
        let progress = Progress::counting("reading", "datagrams or messages", None);
        let mut watch = Watch { stop, progress, seen: 0 };
        for path in &self.files {
            let (recording, bytes) = open(path)?;
            match recording {
                Recording::Datagrams(capture) => captures.push(Source::new(capture, path, bytes)),
                Recording::Messages(file) => findings.messages(file, path, bytes, &mut watch),
                Recording::Records(file) => {
                    records.push(DbnFile::read(file, path, bytes, self.records, || watch.go_on()));
                }
            }
        }
        let kinds = [!captures.is_empty(), !findings.files.is_empty(), !records.is_empty()];
        if kinds.into_iter().filter(|kind| *kind).count() > 1 {
            let hint =
                "inspect captures of packets, files of messages and files of records one kind at a time";
            return Err(Hinted::new("these files are of two kinds that cannot be combined", hint).into());
        }
        if !records.is_empty() {
            drop(watch);
            return dbn_report::print(&records, &self.symbols, self.levels, self.top, self.format);
        }
        if captures.len() > MAX_LINES {
            let hint = format!(
                "a feed has at most {MAX_LINES} lines; inspect captures of different feeds one by one"
            );
            return Err(Hinted::new(format!("{} captures are too many", captures.len()), hint).into());
        }
        findings.datagrams(captures, self.only, &mut watch);
        drop(watch);

        let report = InspectReport::of(&findings, &self.symbols, self.levels);
        match self.format {
            Format::Json => output::print_json(&report)?,
            Format::Table => report.print_tables(&findings, self.top)?,
        }
        report.note_unknown(&self.symbols);
        let Protocols { mold, iex, other, itch_files } = findings.protocols;
        if let Some(only) = self.only
            && mold + iex + other + itch_files == 0
        {
            report::note_no_datagrams(only, &findings.files);
        }
        for file in &findings.files {
            if let Some(fragments) = file.skipped.get(Skip::Fragment.name()) {
                report::warn_of_fragments(&file.name, *fragments);
            }
            if let Some(error) = &file.error {
                anstream::eprintln!("error: {}: {error}", file.name);
            }
        }
        if let Some(not_itch) = report.not_itch() {
            return Err(not_itch.into());
        }
        let damaged = findings.files.iter().any(|file| file.error.is_some());
        Ok(if damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Settings of an arbiter that waits for every message: one that is late in a file is no gap.
pub(super) fn patient() -> line::ArbiterSettings {
    line::ArbiterSettings {
        window_age_ns: PATIENCE_NS,
        session_hold_ns: PATIENCE_NS,
        ..line::ArbiterSettings::default()
    }
}

/// Opens a file of recorded data; returns its size on disk too.
pub(super) fn open(path: &Path) -> anyhow::Result<(Recording<'static>, u64)> {
    let file = File::open(path).with_context(|| format!("cannot open {}", paths::shown(&path)))?;
    let bytes = file.metadata().map(|about| about.len()).unwrap_or_default();
    Ok((capture::open(file).with_context(|| paths::shown(&path).to_string())?, bytes))
}

/// Progress display and stop request during a read.
struct Watch {
    stop: Stop,
    progress: Progress,
    seen: u64,
}

impl Watch {
    /// Counts one more; returns whether to continue.
    #[inline]
    fn go_on(&mut self) -> bool {
        self.seen += 1;
        if !self.seen.is_multiple_of(LOOK_EVERY) {
            return true;
        }
        self.progress.set(self.seen);
        !self.stop.requested()
    }
}

/// An open capture with its next datagram.
struct Source<'r> {
    capture: Capture<'r>,
    report: FileReport,
    time: Nanos,
    destination: Option<SocketAddr>,
    payload: Vec<u8>,
    ended: bool,
}

impl<'r> Source<'r> {
    fn new(capture: Capture<'r>, path: &Path, bytes: u64) -> Self {
        let report = FileReport::new(path, bytes, capture.format());
        Self { capture, report, time: Nanos(0), destination: None, payload: Vec::new(), ended: false }
    }

    /// Reads the next datagram for the requested destination.
    fn advance(&mut self, only: Option<SocketAddr>) {
        loop {
            match self.capture.next() {
                Ok(Some(datagram)) => {
                    self.report.saw(
                        datagram.time,
                        (datagram.source, datagram.destination),
                        datagram.payload.len(),
                    );
                    if only.is_some_and(|only| only != datagram.destination) {
                        continue;
                    }
                    self.time = datagram.time;
                    self.destination = Some(datagram.destination);
                    self.payload.clear();
                    self.payload.extend_from_slice(datagram.payload);
                    return;
                }
                Ok(None) => {}
                Err(error) => self.report.failed(error),
            }
            self.ended = true;
            self.report.counted(&self.capture.counts());
            if self.report.packets == Some(0) && self.report.error.is_none() {
                self.report.error = Some("this capture has no packets".to_owned());
            }
            return;
        }
    }
}

impl Findings {
    /// Reads captures as the lines of one feed, in time order.
    fn datagrams(&mut self, mut sources: Vec<Source<'_>>, only: Option<SocketAddr>, watch: &mut Watch) {
        for source in &mut sources {
            source.advance(only);
        }
        while watch.go_on() {
            let open = sources.iter_mut().enumerate().filter(|(_, source)| !source.ended);
            let Some((number, source)) = open.min_by_key(|(_, source)| source.time) else { break };
            if let Some(line) = Line::new(number) {
                // Some IEX segments also parse as MoldUDP64 packets; the reverse does not happen.
                if tp::is_likely(&source.payload) && self.iex.datagram(line, &source.payload, source.time) {
                    self.protocols.iex += 1;
                } else if self.arbiter.datagram(line, &source.payload, source.time, &mut self.tally).is_ok() {
                    self.protocols.mold += 1;
                } else {
                    self.protocols.other += 1;
                }
            }
            source.advance(only);
        }
        self.arbiter.flush(&mut self.tally);
        self.iex.finish();
        self.files.extend(sources.into_iter().map(|source| source.report));
    }

    fn messages(&mut self, mut file: ItchFile<'_>, path: &Path, bytes: u64, watch: &mut Watch) {
        let framing = match file.framing() {
            FileFraming::Length => "ITCH messages behind their lengths",
            FileFraming::Type => "ITCH messages behind zeros",
        };
        let mut report = FileReport::new(path, bytes, framing);
        loop {
            match file.next() {
                Ok(Some(message)) => self.tally.message(message),
                Ok(None) => break,
                Err(error) => {
                    report.failed(error);
                    break;
                }
            }
            if !watch.go_on() {
                break;
            }
        }
        report.bytes_consumed = Some(file.bytes_consumed());
        report.trailing_bytes = file.trailing_bytes();
        report.cut(file.cut_at(), "message");
        report.end_marker = Some(file.end_marker());
        self.protocols.itch_files += 1;
        self.files.push(report);
    }
}

/// Checks that the demo's plant can read a capture: a file of ITCH messages, or MoldUDP64 among the first datagrams.
///
/// # Errors
/// The capture cannot be opened or read, or it holds something else, which the error names.
pub(crate) fn check_readable_by_a_plant(path: &Path) -> anyhow::Result<()> {
    /// Number of datagrams to check: other traffic may come first.
    const LOOKED_AT: usize = 10_000;
    let mut capture = match open(path)?.0 {
        Recording::Datagrams(capture) => capture,
        Recording::Messages(_) => return Ok(()),
        Recording::Records(_) => return Err(no_datagrams(path)),
    };
    let (mut seen, mut iex) = (0, 0);
    while seen < LOOKED_AT
        && let Some(datagram) = capture.next().with_context(|| paths::shown(&path).to_string())?
    {
        seen += 1;
        if tp::is_likely(datagram.payload) {
            iex += 1;
        } else if tapeline_feed::moldudp64::parse(datagram.payload).is_ok() {
            return Ok(());
        }
    }
    let holds = match (seen, iex) {
        (0, _) => "no UDP datagrams",
        (_, 1..) => "TOPS or DEEP in IEX-TP",
        _ => "datagrams of another protocol",
    };
    let hint =
        "the demo takes NASDAQ ITCH 5.0 in MoldUDP64; `tapeline feed inspect` shows what a capture holds";
    Err(Hinted::new(format!("{} holds {holds}", paths::shown(&path)), hint).into())
}

impl FileReport {
    fn saw(&mut self, time: Nanos, (source, destination): (SocketAddr, SocketAddr), bytes: usize) {
        self.first_ns.get_or_insert(time.0);
        self.last_ns = Some(time.0);
        self.max_payload = self.max_payload.max(bytes);
        let destination = destination.to_string();
        let is_counted = self.dest.len() < MOST_ADDRESSES || self.dest.contains_key(&destination);
        let destination = if is_counted { destination } else { "others".to_owned() };
        *self.dest.entry(destination.clone()).or_default() += 1;
        let (senders, source) = (self.senders.entry(destination).or_default(), source.to_string());
        let is_counted = senders.len() < MOST_ADDRESSES || senders.contains_key(&source);
        *senders.entry(if is_counted { source } else { "others".to_owned() }).or_default() += 1;
    }

    fn counted(&mut self, counts: &Counts) {
        self.packets = Some(counts.packets);
        self.datagrams = Some(counts.datagrams);
        self.non_udp = Some(counts.packets - counts.datagrams);
        self.payload_bytes = Some(counts.payload_bytes);
        self.trailing_bytes = counts.trailing_bytes;
        self.cut(counts.cut_at, "packet");
        self.skipped = counts.skipped().map(|(skip, count)| (skip.name(), count)).collect::<BTreeMap<_, _>>();
    }

    /// Notes that the file ends inside an element that begins at `at`.
    fn cut(&mut self, at: Option<Place>, within: &str) {
        if let Some(place) = at {
            let there = self.trailing_bytes;
            self.error = Some(format!("cut at {place}: the file ends after {there} bytes of a {within}"));
        }
    }

    fn failed(&mut self, error: capture::Error) {
        self.error = Some(format!("{:#}", anyhow::Error::new(error)));
    }
}
