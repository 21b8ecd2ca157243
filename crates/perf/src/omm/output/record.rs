//! The run folder: the record of the run, its distributions, and the latency of each thread by second.

use std::time::Duration;

use serde_json::json;
use tapeline_measure::{Environment, Evidence, Jitter, Nanos, Recorder, Spent, Verdict};

use super::resources::Resources;
use super::transport;
use crate::omm::collect::RunSettings;
use crate::omm::stamp::Unit;
use crate::omm::sums::{Figures, PhaseFigures, Sums};
use crate::omm::tally::{Tally, Times};
use crate::omm::tool::Tool;
use crate::run_folder::{self, HopLatency, Phase, Process, RunFolder, Throughput};

/// The distribution of round trips.
const ROUND_TRIP: &str = "round trip";

/// Time, environment and resource usage of the run.
#[derive(Debug)]
pub(in super::super) struct Cost<'a> {
    /// When the run began.
    pub(in super::super) started: Nanos,
    /// Length of the run, from the start of the threads.
    pub(in super::super) seconds: f64,
    /// Resource usage of the process: in the steady state if there was one, else over the run.
    pub(in super::super) spent: Spent,
    pub(in super::super) resources: &'a Resources,
    pub(in super::super) timeline: &'a [Second],
    /// The jitter of the cores, if measured.
    pub(in super::super) jitter: Vec<Jitter>,
    pub(in super::super) environment: Environment,
    /// How much of its time the run had, if the user ended it early.
    pub(in super::super) cut: Option<String>,
}

pub(in super::super) use crate::run_folder::Second;

/// Results of the run.
pub(super) struct Results<'a> {
    pub(super) verdict: Verdict,
    pub(super) why: String,
    pub(super) evidence: Evidence,
    pub(super) figures: Figures,
    pub(super) sums: &'a Sums,
    pub(super) threads: &'a [&'a Sums],
}

impl Results<'_> {
    /// The distributions that have samples; the one that represents the run is last.
    fn distributions(&self) -> Vec<(&'static str, &Recorder)> {
        let Sums { steady, tally, .. } = self.sums;
        let Tally { posts, generics, encoding, decoding, round_trips, .. } = tally;
        let mut all = vec![("encoding", encoding), ("decoding", decoding), (ROUND_TRIP, round_trips)];
        let of = [
            ("post service", "post response", posts),
            ("generic service", "generic response", generics),
            ("service", "response", steady),
        ];
        for (service, response, times) in of {
            all.push((service, &times.service));
            all.push((response, &times.response));
        }
        all.retain(|(_, recorder)| recorder.samples() + recorder.negatives() > 0);
        all
    }

    pub(super) fn record(&self, run: &RunSettings<'_>, cost: &Cost<'_>) -> run_folder::Run {
        let Figures { counts, steady, .. } = &self.figures;
        // For a consumer that reached the steady state, only that phase is measured.
        let (seconds, messages) = steady
            .filter(|_| run.tool == Tool::Consumer)
            .map_or((cost.seconds, run.tool.carried(counts)), |steady| (steady.seconds, steady.updates));
        let over = Duration::from_secs_f64(seconds.max(0.0));
        let mut record = run_folder::Run::new(
            &run.tool.kind(),
            cost.started,
            over,
            self.evidence.clone(),
            cost.jitter.clone(),
            cost.environment.clone(),
        );
        record.verdict = self.verdict;
        record.why.clone_from(&self.why);
        record.throughput = Throughput::new(messages, 0, over);
        if !run.tool.times_updates()
            && let Some(per_second) = self.threads.iter().map(|sums| sums.sent.while_active()).sum()
        {
            // Excludes the time before consumers connected and after they disconnected.
            record.throughput.messages_per_second = per_second;
        }
        record.settings = settings(run);
        record.hops = self.hops(run.unit);
        if run.tool == Tool::Consumer {
            record.phases = self.phases();
        }
        record.counts = self.counts(run.tool);
        if run.tool == Tool::Transport {
            record.counts = transport::counts(counts);
            record.throughput = transport::throughput(counts, self.figures.overall.seconds);
        }
        record.timeline = cost.timeline.to_vec();
        let name = run.tool.command().to_owned();
        record.processes = vec![Process { name, spent: cost.spent }];
        record
    }

    /// The distributions, with the clock error of message times in this unit.
    fn hops(&self, unit: Unit) -> Vec<HopLatency> {
        let clock_error_ns = if unit == Unit::Micros { 1_000 } else { 0 };
        self.distributions()
            .into_iter()
            .map(|(name, recorder)| HopLatency {
                name: name.to_owned(),
                percentiles: recorder.percentiles(),
                // Both ends read CLOCK_MONOTONIC; in microseconds, the fraction is lost.
                clock_error_ns: match name {
                    "encoding" | "decoding" | ROUND_TRIP => 0,
                    _ => clock_error_ns,
                },
            })
            .collect()
    }

    /// A consumer's start-up, and its steady state if reached.
    fn phases(&self) -> Vec<Phase> {
        let Figures { startup, steady, .. } = &self.figures;
        let phase = |name: &str, figures: &PhaseFigures, times: &Times| Phase {
            name: name.to_owned(),
            seconds: figures.seconds,
            messages: figures.updates,
            messages_per_second: figures.per_second,
            service: times.service.percentiles(),
            response: times.response.percentiles(),
        };
        let mut phases = vec![phase("start-up", startup, &self.sums.startup)];
        if let Some(steady) = steady {
            phases.push(phase("steady state", steady, &self.sums.steady));
        }
        phases
    }

    /// Messages by kind, and related figures.
    fn counts(&self, tool: Tool) -> serde_json::Value {
        let counts = &self.figures.counts;
        // A consumer counts updates with a time by its latency samples.
        let stamped_updates = match tool {
            Tool::Consumer => self.figures.overall.latency.count,
            _ => counts.stamped_updates,
        };
        json!({
            "requests": counts.requests,
            "images": counts.images,
            "images_asked": self.figures.images,
            "image_retrieval_seconds": self.figures.images_s,
            "suspect_images": counts.suspect_images,
            "statuses": counts.statuses,
            "updates": counts.updates,
            "stamped_updates": stamped_updates,
            "standby_updates": counts.standby_updates,
            "standby_switches": self.figures.switches.count,
            "standby_resumed": self.figures.switches.resumed,
            "standby_standstill_seconds": self.figures.switches.standstill_s(),
            "posts": counts.posts,
            "stamped_posts": counts.stamped_posts,
            "reflected_posts": counts.reflected_posts,
            "dropped_posts": counts.dropped_posts,
            "generics_sent": counts.generics_sent,
            "stamped_generics": counts.stamped_generics,
            "generics_received": counts.generics_received,
            "malformed": counts.malformed,
            "slices_held_back": counts.held_back,
            "unsent": counts.unsent,
        })
    }

    pub(super) fn write(
        &self,
        folder: &RunFolder,
        record: &run_folder::Run,
        summary: &str,
    ) -> anyhow::Result<()> {
        folder.write_record(record)?;
        folder.write_summary(summary.trim_end())?;
        for (number, sums) in (1..).zip(self.threads) {
            folder.write_stats(number, 1_000_000_000, &sums.windows)?;
        }
        let over = Duration::from_secs_f64(record.seconds);
        folder.write_latency(record.started, over, &self.distributions())
    }
}

/// The inputs under the guide's names, and the paths of the guide's files.
fn settings(run: &RunSettings<'_>) -> serde_json::Value {
    let inputs = run.inputs.iter().map(|(name, value)| ((*name).to_owned(), json!(value)));
    json!({
        "inputs": inputs.collect::<serde_json::Map<_, _>>(),
        "threads": run.threads.threads.len(),
        "tick_rate": run.tick_rate,
    })
}
