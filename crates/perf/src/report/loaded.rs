//! What is known of a run, whoever left it.

use tapeline_measure::{Rank, Recorder};

/// One run.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    /// What it is a run of.
    pub(super) group: String,
    /// The folder's or file's own name.
    pub(super) name: String,
    /// `demo`, `omm-consumer`; a foreign tool's file.
    pub(super) kind: String,
    pub(super) started: String,
    pub(super) seconds: Option<f64>,
    /// The word, and the figures behind it.
    pub(super) verdict: Option<(String, String)>,
    /// Messages a second.
    pub(super) throughput: Option<f64>,
    pub(super) lost: Option<u64>,
    /// Share of a core, all processes together.
    pub(super) cpu_cores: Option<f64>,
    /// All processes together.
    pub(super) memory_bytes: Option<f64>,
    /// By hop; the last one stands for the run.
    pub(super) latency: Vec<Latency>,
    /// Seconds of the run and what was in them, for each thread or subscriber.
    pub(super) timelines: Vec<Vec<Moment>>,
    pub(super) phases: Vec<Phase>,
    pub(super) jitter_floor_ns: Option<u64>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) settings: Vec<(String, String)>,
    /// What a reader has to know.
    pub(super) notes: Vec<String>,
}

/// A hop's latency.
#[derive(Debug)]
pub(super) struct Latency {
    pub(super) name: String,
    pub(super) distribution: Recorder,
}

/// What was in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moment {
    /// When it began or ended, in seconds of the run.
    pub(super) second: f64,
    pub(super) messages_per_second: Option<f64>,
    pub(super) median_ns: Option<f64>,
    pub(super) p99_ns: Option<f64>,
    pub(super) max_ns: Option<f64>,
    /// Where nothing else is known.
    pub(super) mean_ns: Option<f64>,
    pub(super) cpu_percent: Option<f64>,
    pub(super) memory_bytes: Option<f64>,
}

/// A part of a run, with its latency at some ranks.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub(super) name: String,
    pub(super) seconds: f64,
    pub(super) messages_per_second: f64,
    /// Rank's name and ns.
    pub(super) latency: Vec<(String, u64)>,
}

/// A figure that runs are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Figure {
    /// Latency at a rank, ns.
    Latency(Rank),
    Mean,
    Throughput,
    Lost,
    Cpu,
    Memory,
}

impl Figure {
    /// By its name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let rank = |rank: &Rank| match rank {
            Rank::Min | Rank::Max => name == rank.to_string(),
            Rank::Hundredths(_) => name.strip_prefix('p').is_some_and(|digits| digits == rank.to_string()),
        };
        match name {
            "mean" => Some(Self::Mean),
            "throughput" => Some(Self::Throughput),
            "lost" => Some(Self::Lost),
            "cpu" => Some(Self::Cpu),
            "memory" => Some(Self::Memory),
            _ => Rank::ALL.iter().copied().find(rank).map(Self::Latency),
        }
    }

    /// Whether more of it is better.
    pub(super) fn is_better_high(self) -> bool {
        self == Self::Throughput
    }
}

impl Loaded {
    /// Whether it is a provider's end of a run, of which a consumer has the other.
    pub(super) fn is_sender(&self) -> bool {
        self.kind.contains("provider")
    }

    /// The hop that stands for the run.
    pub(super) fn whole(&self) -> Option<&Latency> {
        self.latency.last()
    }

    /// A figure, where the run has it and its samples support it.
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
