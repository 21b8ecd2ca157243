//! The data of a run, from any source.

use tapeline_measure::{Rank, Recorder};

/// One run.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) group: String,
    /// The name of the folder or file.
    pub(super) name: String,
    /// `demo`, `omm-consumer`, or the kind of another vendor's file.
    pub(super) kind: String,
    pub(super) started: String,
    pub(super) seconds: Option<f64>,
    /// The verdict and its figures.
    pub(super) verdict: Option<(String, String)>,
    /// Throughput in messages a second.
    pub(super) throughput: Option<f64>,
    pub(super) lost: Option<u64>,
    /// CPU use in cores, summed over all processes.
    pub(super) cpu_cores: Option<f64>,
    /// Memory summed over all processes.
    pub(super) memory_bytes: Option<f64>,
    /// Latency by hop; the last one represents the run.
    pub(super) latency: Vec<Latency>,
    /// Where the time of a message goes: each hop's name, mean, and floor, in nanoseconds.
    pub(super) steps: Vec<(String, f64, Option<f64>)>,
    /// Statistics by interval, for each thread or subscriber.
    pub(super) timelines: Vec<Vec<Moment>>,
    pub(super) phases: Vec<LoadedPhase>,
    pub(super) jitter_floor_ns: Option<u64>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
}

/// A hop's latency.
#[derive(Debug)]
pub(super) struct Latency {
    pub(super) name: String,
    pub(super) distribution: Recorder,
}

/// The statistics of one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    /// The start or end of the interval, in seconds since the start of the run.
    pub(super) second: f64,
    pub(super) messages_per_second: Option<f64>,
    pub(super) median_ns: Option<f64>,
    pub(super) p99_ns: Option<f64>,
    pub(super) max_ns: Option<f64>,
    /// Present only where the source has no percentiles.
    pub(super) mean_ns: Option<f64>,
    pub(super) cpu_percent: Option<f64>,
    pub(super) memory_bytes: Option<f64>,
}

/// A part of a run, with its latency at some percentiles.
#[derive(Clone, Debug)]
pub(super) struct LoadedPhase {
    pub(super) name: String,
    pub(super) seconds: f64,
    pub(super) messages_per_second: f64,
    /// Name of the percentile, and latency in nanoseconds.
    pub(super) latency: Vec<(String, u64)>,
}

/// A figure that runs are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Latency at a percentile, in nanoseconds.
    Latency(Rank),
    Mean,
    Throughput,
    Lost,
    Cpu,
    Memory,
}

impl Figure {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "mean" => Some(Self::Mean),
            "throughput" => Some(Self::Throughput),
            "lost" => Some(Self::Lost),
            "cpu" => Some(Self::Cpu),
            "memory" => Some(Self::Memory),
            _ => Rank::ALL.into_iter().find(|rank| rank.name() == name).map(Self::Latency),
        }
    }

    /// Whether a higher value is better.
    pub(super) fn is_better_high(self) -> bool {
        self == Self::Throughput
    }
}

impl Loaded {
    /// Whether this is the provider's end of a run; the other end is a consumer's.
    pub(super) fn is_sender(&self) -> bool {
        self.kind.contains("provider")
    }

    /// The hop that represents the run.
    pub(super) fn whole(&self) -> Option<&Latency> {
        self.latency.last()
    }

    /// A figure, if the run has it and the number of samples supports it.
    pub(super) fn figure(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::Latency(rank) => Some(self.whole()?.distribution.percentiles().at(rank)? as f64),
            Figure::Mean => self.whole().map(|latency| latency.distribution.percentiles().mean_ns as f64),
            Figure::Throughput => self.throughput,
            Figure::Lost => self.lost.map(|lost| lost as f64),
            Figure::Cpu => self.cpu_cores,
            Figure::Memory => self.memory_bytes,
        }
    }
}
