//! CPU and memory of the process, as in the guide's chapter 2.4.4: time in user and system mode over elapsed time, in
//! per cent, not divided by cores or threads; and resident memory.

use tapeline_measure::Usage;

/// Bytes in a megabyte of the guide's tools.
pub(super) const MEGABYTE: f64 = 1_048_576.0;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in super::super) struct Sample {
    /// Since the previous sample.
    pub(in super::super) cpu_percent: f64,
    pub(in super::super) memory_bytes: u64,
}

impl Sample {
    /// Usage between two readings.
    pub(in super::super) fn between(earlier: &Usage, later: &Usage) -> Self {
        Self { cpu_percent: later.since(earlier).cores * 100.0, memory_bytes: later.resident_bytes }
    }

    pub(super) fn memory_mb(&self) -> f64 {
        self.memory_bytes as f64 / MEGABYTE
    }
}

/// All samples of a run.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Resources(pub(in super::super) Vec<Sample>);

impl Resources {
    /// The highest value of all samples, the lowest and the mean; there is at least one sample.
    pub(super) fn spread(&self, of: impl Fn(&Sample) -> f64) -> [f64; 3] {
        let values = || self.0.iter().map(&of);
        let mean = values().sum::<f64>() / self.0.len() as f64;
        [values().fold(f64::NEG_INFINITY, f64::max), values().fold(f64::INFINITY, f64::min), mean]
    }
}
