//! Checks and times the ticks that a subscriber receives.

use std::time::Duration;

use anyhow::Context;
use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use serde::{Deserialize, Serialize};
use tapeline_console::output;
use tapeline_measure::figures::{duration, thousands};
use tapeline_measure::{Lateness, Nanos, Percentiles, Recorder, Series, Trend, Window};
use tapeline_plant::tick::{Flags, HEADER_BYTES, Kind, Tick};
use tapeline_plant::{ClockDifference, StampedBy};

use super::Ending;

/// The points that a message passes, each with a stamp; a hop is the way between two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hop {
    /// From the datagram's arrival to its message being applied to the book.
    WireToDecoded,
    /// From being applied to the book to the tick being written.
    DecodedToSequenced,
    /// From the tick being written to the subscriber seeing it.
    SequencedToReceived,
    /// The complete path through this machine.
    WireToReceived,
    /// From the time at which the message was due, if the feed's stamps are current times.
    DueToReceived,
}

impl std::fmt::Display for Hop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::WireToDecoded => "wire→decoded",
            Self::DecodedToSequenced => "decoded→sequenced",
            Self::SequencedToReceived => "sequenced→received",
            Self::WireToReceived => "wire→received",
            Self::DueToReceived => "due→received",
        })
    }
}

impl Hop {
    /// All hops, in order.
    pub const ALL: [Self; 5] = [
        Self::WireToDecoded,
        Self::DecodedToSequenced,
        Self::SequencedToReceived,
        Self::WireToReceived,
        Self::DueToReceived,
    ];
}

/// The latencies of one hop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HopHistogram {
    /// The two points of the hop.
    pub hop: Hop,
    /// Percentiles of the distribution.
    #[serde(skip_deserializing)]
    pub percentiles: Percentiles,
    /// The whole distribution: an HdrHistogram, V2, in hexadecimal.
    pub histogram: String,
}

/// The results of one subscriber.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathReport {
    /// The subscriber's name.
    pub label: String,
    /// Why it ended.
    pub end: Ending,
    /// The first tick's sequence; 0 if there was none.
    pub first_seq: u64,
    /// The last tick's sequence.
    pub last_seq: u64,
    /// Ticks received.
    pub received: u64,
    /// Ticks whose sequences are missing between the first and the last.
    pub lost: u64,
    /// Feed messages that the plant reported as missing on every line while this subscriber was reading.
    pub gaps: u64,
    /// The newest sequence of the feed.
    pub last_feed_seq: u64,
    /// Bytes of the ticks, headers included.
    pub bytes: u64,
    /// CRC-32C over the ticks as stored on the ring, in order, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<u32>,
    /// From the first tick to the last.
    pub elapsed_ns: u64,
    /// The bound on the error of stamps compared with the subscriber's own clock.
    pub clock_error_ns: u64,
    /// `true` if another host has stamped the ticks. Then hops from its stamps to this subscriber are corrected by
    /// [`clock_above`](Self::clock_above), and were not recorded while that was unknown.
    #[serde(default)]
    pub stamped_above: bool,
    /// How far the other host's clock differed, as last known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_above: Option<ClockAbove>,
    /// The hops.
    pub hops: Vec<HopHistogram>,
    /// Latency by second, from due if the feed has that time, else from the wire.
    pub windows: Vec<Window>,
    /// Whether the time from the wire to this subscriber grew over the run.
    pub trend: Trend,
}

/// How far another host's clock differs from this one's.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ClockAbove {
    /// The other clock less this one, in ns: negative if the other is behind.
    pub ahead_ns: i64,
    /// The greatest bound on the error of that difference during the measurement, in ns.
    pub bound_ns: u64,
}

impl std::fmt::Display for ClockAbove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = if self.ahead_ns < 0 { "behind" } else { "ahead" };
        let [by, bound] = [self.ahead_ns.unsigned_abs(), self.bound_ns].map(duration);
        write!(
            f,
            "the plant above is {by} {way}, ± {bound}: hops from its host to this one are corrected by that"
        )
    }
}

/// Printed with `--announce` when the ring has been joined.
#[derive(Debug, Serialize, Deserialize)]
pub struct Joined {
    /// The ring's name.
    pub joined: String,
}

/// Stamps that differ by more than this belong to a feed of another time: they give no latency.
const LIVE_NS: i64 = 10_000_000_000;

/// A running checksum over ticks. Costs a copy of each tick and its CRC; memory: the longest tick.
#[derive(Debug, Default)]
struct Checksum {
    crc: u32,
    frame: Vec<u8>,
}

impl Checksum {
    fn add(&mut self, tick: &Tick<'_>) {
        self.frame.clear();
        tick.write(&mut self.frame);
        self.crc = crc32c::crc32c_append(self.crc, &self.frame);
    }
}

/// Checks and times ticks. Costs five histogram entries per tick, and no allocation.
#[derive(Debug, Default)]
pub struct Meter {
    checksum: Option<Checksum>,
    warm_up_ns: u64,
    warm_from: Option<Nanos>,
    /// Created by the first timed tick: the time before it says nothing about the feed.
    timed: Option<Timed>,
    first: Option<(u64, Nanos)>,
    last: (u64, Nanos),
    received: u64,
    lost: u64,
    last_feed_seq: u64,
    bytes: u64,
    stamped_by: StampedBy,
    clock_above: Option<ClockAbove>,
}

/// Latencies from the first tick after the warm-up.
#[derive(Debug)]
struct Timed {
    hops: [Recorder; 5],
    series: Series,
    lateness: Lateness,
}

impl Timed {
    fn new(start: Nanos) -> Self {
        Self {
            hops: std::array::from_fn(|_| Recorder::new()),
            series: Series::by_second(start),
            lateness: Lateness::new(start),
        }
    }
}

impl Meter {
    /// A meter that leaves the first `warm_up` out of its latencies, with a checksum over all ticks if requested.
    pub fn new(warm_up: Duration, takes_checksum: bool) -> Self {
        Self {
            checksum: takes_checksum.then(Checksum::default),
            warm_up_ns: warm_up.as_nanos() as u64,
            ..Self::default()
        }
    }

    /// Notes by which clock the ticks are stamped from now on.
    pub fn stamped_by(&mut self, clock: StampedBy) {
        self.stamped_by = clock;
        if let StampedBy::PlantAbove(Some(ClockDifference { ahead_ns, bound_ns })) = clock {
            let before = self.clock_above.map_or(0, |before| before.bound_ns);
            self.clock_above = Some(ClockAbove { ahead_ns, bound_ns: before.max(bound_ns.into()) });
        }
    }

    /// Checks and times a tick that was received at this time.
    pub fn tick(&mut self, tick: &Tick<'_>, received: Nanos) {
        let header = &tick.header;
        if header.seq.is_outside() {
            // An image or a state below a bridge: no tick of the sequence, and older than its times say.
            return;
        }
        let seq = header.seq.0;
        if let Some(checksum) = &mut self.checksum {
            checksum.add(tick);
        }
        if self.first.is_none() {
            self.first = Some((seq, received));
        } else {
            self.lost += seq.saturating_sub(self.last.0 + 1);
        }
        self.last = (seq, received);
        self.received += 1;
        self.bytes += (HEADER_BYTES + tick.name.len() + tick.body.len() + tick.source.len()) as u64;
        self.last_feed_seq = self.last_feed_seq.max(header.feed_seq);
        if header.kind == Kind::Status || header.flags.contains(Flags::RESET) {
            // A status or a blank image has no feed message, so there is nothing to time.
            return;
        }
        // The warm-up begins with the first message, whenever it arrives.
        let warm_from = *self.warm_from.get_or_insert(received + self.warm_up_ns);
        if received < warm_from {
            return;
        }
        let timed = self.timed.get_or_insert_with(|| Timed::new(received));
        timed.hops[0].record(header.decoded.since(header.wire));
        timed.hops[1].record(header.sequenced.since(header.decoded));
        // A time by another clock that is not known to differ by so much is no latency.
        let Some(correction) = self.stamped_by.correction_ns() else { return };
        let since = |stamp| received.since(stamp).saturating_add(correction);
        let (from_due, from_wire) = (since(header.event), since(header.wire));
        let live = from_due.abs() < LIVE_NS;
        timed.hops[2].record(since(header.sequenced));
        timed.hops[3].record(from_wire);
        if live {
            timed.hops[4].record(from_due);
        }
        timed.series.record(received, if live { from_due } else { from_wire });
        timed.lateness.record(received, from_wire);
    }

    /// The results so far, under the subscriber's name; `gaps` and `clock_error_ns` are those of [`PathReport`].
    pub fn report(self, label: String, end: Ending, gaps: u64, clock_error_ns: u64) -> PathReport {
        let (first_seq, first_at) = self.first.unwrap_or((0, self.last.1));
        let timed = self.timed.unwrap_or_else(|| Timed::new(self.last.1));
        PathReport {
            label,
            end,
            first_seq,
            last_seq: self.last.0,
            received: self.received,
            lost: self.lost,
            gaps,
            last_feed_seq: self.last_feed_seq,
            bytes: self.bytes,
            checksum: self.checksum.map(|checksum| checksum.crc),
            elapsed_ns: u64::try_from(self.last.1.since(first_at)).unwrap_or(0),
            clock_error_ns,
            stamped_above: self.stamped_by != StampedBy::ThisPlant,
            clock_above: self.clock_above,
            hops: Hop::ALL
                .into_iter()
                .zip(&timed.hops)
                .filter(|(_, recorder)| recorder.samples() > 0)
                .map(|(hop, recorder)| HopHistogram {
                    hop,
                    percentiles: recorder.percentiles(),
                    histogram: to_hex(&recorder.encode()),
                })
                .collect(),
            windows: timed.series.finish(),
            trend: timed.lateness.trend(),
        }
    }
}

impl PathReport {
    /// The distributions, decoded.
    pub fn latencies(&self) -> anyhow::Result<Vec<(Hop, Recorder)>> {
        self.hops.iter().map(|hop| Ok((hop.hop, hop.recorder()?))).collect()
    }

    /// Ticks a second, from the first tick to the last.
    pub fn rate_hz(&self) -> f64 {
        if self.elapsed_ns == 0 { 0.0 } else { self.received as f64 * 1e9 / self.elapsed_ns as f64 }
    }

    /// Prints the table of hops and the counts.
    pub fn print(&self) -> anyhow::Result<()> {
        let latencies = self.latencies()?;
        let hops: Vec<(String, Percentiles)> =
            latencies.iter().map(|(hop, recorder)| (hop.to_string(), recorder.percentiles())).collect();
        let hops: Vec<(&str, &Percentiles)> = hops.iter().map(|(name, rows)| (name.as_str(), rows)).collect();
        let rate_hz = self.rate_hz();
        output::print(&format!(
            "{}\n\n{} ticks ({} to {}), {} lost, {} messages missing on every line; {}, {}; ended: {}",
            output::percentile_table(&hops),
            thousands(self.received),
            self.first_seq,
            self.last_seq,
            thousands(self.lost),
            thousands(self.gaps),
            output::rate(rate_hz, "ticks"),
            output::byte_rate(self.bytes as f64 * rate_hz / self.received.max(1) as f64),
            self.end,
        ))?;
        match (self.stamped_above, self.clock_above) {
            (true, Some(clock)) => output::print(&format!("clocks: {clock}"))?,
            (true, None) => output::print(
                "clocks: not compared with the plant above; hops from its host to this one are not stated",
            )?,
            (false, _) => {}
        }
        match self.checksum {
            Some(checksum) => output::print(&format!("checksum {checksum:08x}")),
            None => Ok(()),
        }
    }
}

impl HopHistogram {
    /// The distribution.
    pub fn recorder(&self) -> anyhow::Result<Recorder> {
        Ok(Recorder::decode(&from_hex(&self.histogram).context("a histogram is not hexadecimal")?)?)
    }
}

/// Bytes in hexadecimal.
pub fn to_hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// The bytes of hexadecimal text; `None` if it is not.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(text.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use tapeline_plant::Seq;
    use tapeline_plant::tick::Header;

    use super::*;

    #[test]
    fn ticks_outside_the_sequence_are_neither_lost_nor_make_others_so() {
        let mut meter = Meter::new(Duration::ZERO, false);
        for seq in [0, 5, 0, 6, 8] {
            let header = Header { seq: Seq(seq), ..Header::default() };
            meter.tick(&Tick { header, name: "A", body: &[], source: &[] }, Nanos(1));
        }
        assert_eq!((meter.first, meter.received, meter.lost), (Some((5, Nanos(1))), 3, 1));
    }
}
