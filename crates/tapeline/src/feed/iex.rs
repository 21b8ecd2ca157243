//! Reads captures of IEX: counts every segment as captured, puts the messages in order and builds books.

use clap::ValueEnum;
use serde::Serialize;
use tapeline_feed::Framing;
use tapeline_feed::iex::{IexSettings, IexSummary, MessageCounts, Stream, tp};
use tapeline_feed::line::{self, Arbiter, Line, Session, Sink};
use tapeline_measure::Nanos;

/// How to treat a sender that restarts at sequence 1 under the same session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Restart {
    /// Treat the restart as a sequence reset: clear counts and books, as a plant does
    #[default]
    Reset,
    /// Drop repeated sequence numbers as duplicates, like a receiver that compares only session and sequence number
    Ignore,
    /// Apply every message, in capture order
    Raw,
}

pub(super) struct IexFindings {
    pub(super) restart: Restart,
    /// The segments of each line, in capture order.
    pub(super) streams: Vec<Stream>,
    /// The messages of all lines.
    pub(super) whole: MessageCounts,
    pub(super) arbiter: Arbiter,
    pub(super) tally: IexTally,
    /// Segments whose messages cannot be decoded, such as those of TOPS 1.5.
    pub(super) unread: u64,
}

/// The messages after arbitration, and the missing ones.
pub(super) struct IexTally {
    pub(super) summary: IexSummary,
    pub(super) resets: u64,
    pub(super) gaps: Vec<(u64, u64)>,
    pub(super) gap_count: u64,
    pub(super) missing: u64,
}

/// Maximum number of gaps to list; further gaps are only counted.
const MOST_GAPS: usize = 10_000;

impl IexFindings {
    pub(super) fn new(restart: Restart, settings: line::ArbiterSettings) -> Self {
        let policy = match restart {
            Restart::Reset => line::Restart::Reset,
            Restart::Ignore | Restart::Raw => line::Restart::Ignore,
        };
        let settings = line::ArbiterSettings { framing: Framing::IexTp, restart: policy, ..settings };
        Self {
            restart,
            streams: Vec::new(),
            whole: MessageCounts::default(),
            arbiter: Arbiter::new(settings),
            tally: IexTally {
                summary: IexSummary::new(IexSettings::default()),
                resets: 0,
                gaps: Vec::new(),
                gap_count: 0,
                missing: 0,
            },
            unread: 0,
        }
    }

    /// Handles a segment received on `line`; returns `false` if the datagram is no segment.
    pub(super) fn datagram(&mut self, line: Line, datagram: &[u8], time: Nanos) -> bool {
        let Ok(segment) = tp::parse(datagram) else { return false };
        if line.number() >= self.streams.len() {
            self.streams.resize(line.number() + 1, Stream::default());
        }
        self.streams[line.number()].segment(&segment);
        if !segment.session.protocol.is_read() {
            self.unread += 1;
            return true;
        }
        for (_, message) in segment.messages {
            // The counts include malformed messages.
            let _ = self.whole.message(message);
        }
        if self.restart == Restart::Raw {
            for (_, message) in segment.messages {
                self.tally.summary.message(message);
            }
        } else {
            self.arbiter.packet(line, &segment.into(), time, &mut self.tally);
        }
        true
    }

    /// Marks the end of input.
    pub(super) fn finish(&mut self) {
        self.arbiter.flush(&mut self.tally);
    }
}

impl Sink for IexTally {
    fn message(&mut self, _sequence: u64, bytes: &[u8], _received: Nanos) {
        self.summary.message(bytes);
    }

    fn gap(&mut self, first: u64, last: u64) {
        self.gap_count += 1;
        self.missing = self.missing.saturating_add(last - first + 1);
        if self.gaps.len() < MOST_GAPS {
            self.gaps.push((first, last));
        }
    }

    fn end_of_session(&mut self, _next: u64) {}

    fn reset(&mut self, _session: Session) {
        self.resets += 1;
        self.summary.reset();
    }
}
