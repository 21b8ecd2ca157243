//! The plan of a sweep: named sections, each with its own axes, and the cells that they produce.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use tapeline_console::arguments;
use tapeline_measure::Build;

use crate::ring::publish::Layout;
use crate::ring::view;

/// The layout version of `plan.json`; incremented when a field changes its meaning or disappears.
const LAYOUT: u32 = 1;
/// As fast as possible.
pub(super) const MAX: u64 = 0;
/// How sender and receiver interact, set by the turns of an empty loop that each does per message. Measured by
/// messages between two catch-ups of the receiver: tens when contended, thousands when relaxed.
pub(super) const REGIMES: [Regime; 3] = [
    // The sender is slower, so the receiver has always read everything and waits on the line that is being written.
    Regime { name: "contended", sender_spin: 16, spin: 0 },
    // Neither side does extra work: timing decides which regime applies.
    Regime { name: "fast receiver", sender_spin: 0, spin: 0 },
    // The receiver is slightly slower than the sender, and reads behind it.
    Regime { name: "relaxed", sender_spin: 0, spin: 8 },
];
const QUEUE: u64 = 1 << 20;
const FRAMINGS: [Layout; 2] = [Layout::Packed, Layout::Lines];

/// How sender and receiver interact.
#[derive(Clone, Copy, Debug)]
pub(super) struct Regime {
    pub(super) name: &'static str,
    pub(super) sender_spin: u32,
    pub(super) spin: u32,
}

impl Regime {
    pub(super) fn is_of(self, cell: &Cell) -> bool {
        (self.sender_spin, self.spin) == (cell.sender_spin, cell.spin)
    }
}

/// A part of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(in crate::ring) enum Section {
    /// Messages a second by message size: receiver contended and relaxed
    Throughput,
    /// Latency by rate and message size
    Latency,
    /// Effect on throughput of a little work for each message
    Spin,
    /// Effect of a slow receiver on the sender
    SlowReceiver,
    /// Throughput by ring size
    RingSize,
    /// One, two and three subscribers
    Subscribers,
}

/// What subscribers do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Reading {
    /// Copy and count messages: no clock is read on either side.
    Count,
    /// Read messages in place, with stamps on both sides.
    Latency,
}

/// One combination of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) section: Section,
    pub(super) framing: Layout,
    pub(super) message_size: u64,
    pub(super) queue_size: u64,
    /// 0 = as fast as possible.
    pub(super) rate_hz: u64,
    pub(super) subscribers: usize,
    /// Turns of an empty loop for each message, of the subscribers and of the publisher.
    pub(super) spin: u32,
    pub(super) sender_spin: u32,
    pub(super) reading: Reading,
}

impl Cell {
    /// The name of the cell's folder, which states all its settings.
    pub(super) fn name(&self) -> String {
        let rate = if self.rate_hz == MAX { "max".to_owned() } else { format!("{}hz", self.rate_hz) };
        let (section, reading) = (arguments::word(&self.section), arguments::word(&self.reading));
        let sender =
            if self.sender_spin > 0 { format!("-sender{}", self.sender_spin) } else { String::new() };
        format!(
            "{section}-{}-{}b-{}-{rate}-{}sub-spin{}{sender}-{reading}",
            self.framing.word(),
            self.message_size,
            view::bytes(self.queue_size).replace(' ', ""),
            self.subscribers,
            self.spin,
        )
    }

    /// Messages before the measured time: twice around the ring, to touch every page.
    pub(super) fn warm_up(&self) -> u64 {
        (2 * self.queue_size / self.message_size.max(32)).clamp(1_000, 4_000_000)
    }
}

/// All cells to run, and how to run them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SweepPlan {
    layout: u32,
    /// Figures of two builds must not be mixed.
    build: String,
    pub(super) sections: Vec<Section>,
    pub(super) short: bool,
    pub(super) seconds_per_run: f64,
    /// Runs of each cell, one round over all cells at a time.
    pub(super) runs: u32,
    /// The publisher's core first, then the subscribers'.
    pub(super) cpus: Vec<usize>,
    pub(super) cells: Vec<Cell>,
}

/// Time of a run beyond its measured time: two processes, two clock calibrations, the warm-up.
const OVERHEAD: Duration = Duration::from_millis(400);

impl SweepPlan {
    pub(super) fn new(
        sections: &[Section],
        short: bool,
        per_run: Duration,
        runs: u32,
        cpus: Vec<usize>,
    ) -> Self {
        // In their own order, each once, regardless of the command line.
        let sections: Vec<Section> =
            Section::value_variants().iter().filter(|section| sections.contains(section)).copied().collect();
        let axes = if short { SHORT } else { WHOLE };
        let cells = sections.iter().flat_map(|section| axes.cells(*section)).collect();
        let build = Build::of_this_program();
        let commit = build.commit.unwrap_or("commit not named");
        Self {
            layout: LAYOUT,
            build: format!(
                "{} {commit} ({}; {}; {})",
                build.version, build.profile, build.flags, build.compiler
            ),
            sections,
            short,
            seconds_per_run: per_run.as_secs_f64(),
            runs,
            cpus,
            cells,
        }
    }

    pub(super) fn per_run(&self) -> Duration {
        Duration::from_secs_f64(self.seconds_per_run)
    }

    /// Estimated time of this many runs, before any run is complete.
    pub(super) fn estimate(&self, runs: u64) -> Duration {
        (self.per_run() + OVERHEAD) * u32::try_from(runs).unwrap_or(u32::MAX)
    }

    /// The sections as on the command line.
    pub(super) fn section_words(&self) -> String {
        self.sections.iter().map(arguments::word).collect::<Vec<_>>().join(",")
    }

    /// The differences from the other plan, as text; `None` if there are none.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let pairs = [
            ("layout", self.layout.to_string(), other.layout.to_string()),
            ("build", self.build.clone(), other.build.clone()),
            ("sections", self.section_words(), other.section_words()),
            ("short", self.short.to_string(), other.short.to_string()),
            ("seconds per run", self.seconds_per_run.to_string(), other.seconds_per_run.to_string()),
            ("runs", self.runs.to_string(), other.runs.to_string()),
            ("cpus", format!("{:?}", self.cpus), format!("{:?}", other.cpus)),
        ];
        let found = pairs.into_iter().find(|(_, ours, theirs)| ours != theirs);
        match found {
            Some((what, ours, theirs)) => Some(format!("{what}: {ours} there, {theirs} now")),
            None if self.cells != other.cells => Some("cells: the sections have other axes now".to_owned()),
            None => None,
        }
    }
}

struct Axes {
    sizes: &'static [u64],
    latency_sizes: &'static [u64],
    rates: &'static [u64],
    spins: &'static [u32],
    spin_sizes: &'static [u64],
    slow_spins: &'static [u32],
    queues: &'static [u64],
    subscribers: &'static [usize],
}

const WHOLE: Axes = Axes {
    // Those of smx_perf's published table and of its full data, sizes next to cache-line boundaries, and 32 and 512.
    sizes: &[25, 32, 64, 65, 100, 112, 113, 128, 129, 200, 500, 512, 513, 1500],
    latency_sizes: &[32, 100, 500, 1500],
    rates: &[1_000, 250_000, 1_000_000, 5_000_000, 10_000_000, MAX],
    spins: &[0, 1, 2, 3, 4, 8, 16, 10_000],
    // Message sizes of smx_perf's examples of work in the receiver.
    spin_sizes: &[64, 128],
    slow_spins: &[0, 10, 30, 100, 300, 1_000, 3_000, 10_000],
    queues: &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20, 8 << 20, 64 << 20],
    subscribers: &[1, 2, 3],
};

/// A few values on each axis, to check that everything works.
const SHORT: Axes = Axes {
    sizes: &[25, 129],
    latency_sizes: &[100],
    rates: &[1_000, 250_000],
    spins: &[0, 4],
    spin_sizes: &[64],
    slow_spins: &[0, 1_000],
    queues: &[64 << 10, 1 << 20],
    subscribers: &[1, 2],
};

impl Axes {
    fn cells(&self, section: Section) -> Vec<Cell> {
        let cell = |framing: Layout, message_size: u64| Cell {
            section,
            framing,
            message_size,
            queue_size: QUEUE,
            rate_hz: MAX,
            subscribers: 1,
            spin: 0,
            sender_spin: 0,
            reading: Reading::Count,
        };
        let mut cells = Vec::new();
        match section {
            Section::Throughput => {
                for (framing, size) in by_framing(self.sizes) {
                    cells.extend(REGIMES.map(|Regime { sender_spin, spin, .. }| Cell {
                        sender_spin,
                        spin,
                        ..cell(framing, size)
                    }));
                }
            }
            Section::Latency => {
                for (framing, size) in by_framing(self.latency_sizes) {
                    for &rate_hz in self.rates {
                        cells.push(Cell { rate_hz, reading: Reading::Latency, ..cell(framing, size) });
                    }
                }
            }
            Section::Spin => {
                for (framing, size) in by_framing(self.spin_sizes) {
                    cells.extend(self.spins.iter().map(|&spin| Cell { spin, ..cell(framing, size) }));
                }
            }
            Section::SlowReceiver => {
                for (framing, spin) in by_framing(self.slow_spins) {
                    cells.push(Cell { spin, ..cell(framing, 128) });
                }
            }
            Section::RingSize => {
                for (framing, queue_size) in by_framing(self.queues) {
                    cells.push(Cell { queue_size, ..cell(framing, 32) });
                }
            }
            Section::Subscribers => {
                for (framing, subscribers) in by_framing(self.subscribers) {
                    cells.extend([32, 1500].map(|size| Cell { subscribers, ..cell(framing, size) }));
                    let paced = cell(framing, 100);
                    cells.push(Cell { subscribers, rate_hz: 250_000, reading: Reading::Latency, ..paced });
                }
            }
        }
        cells
    }
}

fn by_framing<T: Copy>(values: &[T]) -> impl Iterator<Item = (Layout, T)> {
    FRAMINGS.into_iter().flat_map(move |framing| values.iter().map(move |value| (framing, *value)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn whole() -> SweepPlan {
        SweepPlan::new(Section::value_variants(), false, Duration::from_millis(300), 5, vec![0, 1])
    }

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let plan = whole();
        let names: HashSet<String> = plan.cells.iter().map(Cell::name).collect();
        assert_eq!(names.len(), plan.cells.len());
        assert!(names.contains("throughput-packed-25b-1MiB-max-1sub-spin0-count"), "{names:?}");
    }

    #[test]
    fn the_whole_takes_about_twelve_minutes_and_the_short_one_seconds() {
        let minutes = |plan: &SweepPlan| {
            let runs = plan.cells.len() as u64 * u64::from(plan.runs);
            plan.estimate(runs).as_secs_f64() / 60.0
        };
        let whole = whole();
        assert!((10.0..14.0).contains(&minutes(&whole)), "{}", minutes(&whole));
        let short = SweepPlan::new(Section::value_variants(), true, Duration::from_millis(30), 1, vec![0, 1]);
        assert!(minutes(&short) < 0.5, "{}", minutes(&short));
        assert_eq!(short.sections, whole.sections);
    }

    #[test]
    fn a_plan_reads_back_and_differences_are_named() {
        let plan = whole();
        let read: SweepPlan = serde_json::from_str(&serde_json::to_string(&plan).unwrap()).unwrap();
        assert_eq!(plan.difference(&read), None);
        assert_eq!(plan, read);
        let mut other = whole();
        other.cpus = vec![1, 0];
        assert_eq!(plan.difference(&other).as_deref(), Some("cpus: [0, 1] there, [1, 0] now"));
        let mut other = whole();
        other.cells.pop();
        assert!(plan.difference(&other).unwrap().starts_with("cells"));
        let fewer = SweepPlan::new(&[Section::Spin], false, Duration::from_millis(300), 5, vec![0, 1]);
        assert!(plan.difference(&fewer).unwrap().ends_with("ring-size,subscribers there, spin now"));
    }

    /// Every message fits in its ring: it takes at most a quarter of the ring.
    #[test]
    fn every_message_fits() {
        assert!(whole().cells.iter().all(|cell| cell.message_size <= cell.queue_size / 4));
    }
}
