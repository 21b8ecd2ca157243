//! The summary: inputs and results under the guide's names and in its order (its chapters 4.6.1, 5.7.1 and 6.7.1).

use std::fmt::Write as _;

use super::resources::{Resources, Sample};
use super::transport;
use crate::omm::collect::Rates;
use crate::omm::sums::{Figures, Moments, PhaseFigures};
use crate::omm::tally::Counts;
use crate::omm::tool::Tool;

/// Width of the input names: that of the longest name.
const NAME: usize = 24;

pub(super) fn inputs(inputs: &[(&str, String)]) -> String {
    let mut text = "--- TEST INPUTS ---\n\n".to_owned();
    for (name, value) in inputs {
        text.push_str(&format!("{name:>NAME$}: {value}\n"));
    }
    text
}

/// The results: for each thread if there are several, and overall.
pub(super) fn results(
    tool: Tool,
    rates: Rates,
    threads: &[Figures],
    overall: &Figures,
    resources: &Resources,
) -> String {
    let mut text = String::new();
    if threads.len() > 1 {
        // The guide's tools call a consumer's thread a client.
        let what = if tool == Tool::Consumer { "CLIENT" } else { "THREAD" };
        for (number, figures) in (1..).zip(threads) {
            text.push_str(&format!("\n--- {what} {number} SUMMARY ---\n\n"));
            text.push_str(&of_one(tool, rates, figures, None));
        }
    }
    text.push_str("\n--- OVERALL SUMMARY ---\n\n");
    text.push_str(&of_one(tool, rates, overall, Some(resources)));
    text
}

fn of_one(tool: Tool, rates: Rates, figures: &Figures, resources: Option<&Resources>) -> String {
    let mut lines = SummaryLines::default();
    match tool {
        Tool::Consumer => of_consumer(&mut lines, rates, figures, resources),
        Tool::Provider => of_provider(&mut lines, rates, figures, resources),
        Tool::Transport => transport::summary(&mut lines, figures, resources),
        Tool::NiProvider => {
            lines.head("Overall Statistics:");
            lines.count("Images sent", figures.counts.images);
            lines.count("Updates sent", figures.counts.updates);
            lines.unsent(&figures.counts);
            lines.resources(resources);
        }
    }
    lines.0
}

fn of_consumer(lines: &mut SummaryLines, rates: Rates, figures: &Figures, resources: Option<&Resources>) {
    let counts = &figures.counts;
    lines.head("Startup State Statistics:");
    lines.phase(&figures.startup, "No latency information was received during startup time.");
    lines.rate("Avg update rate", figures.startup.per_second);

    lines.head("Steady State Statistics:");
    match &figures.steady {
        Some(steady) => {
            lines.phase(steady, "No latency information was received during steady-state time.");
            if rates.stamped_posts > 0 {
                let none = "No posting latency information was received during steady-state time.";
                lines.latency("Posting latency", &figures.posts, none);
            }
            lines.rate("Avg update rate", steady.per_second);
        }
        None => lines.say("Steady state was not reached during this test."),
    }

    lines.head("Overall Statistics:");
    lines.phase(&figures.overall, "No latency information was received.");
    lines.latency("GenMsg latency", &figures.generics, "No GenMsg latency information was received.");
    lines.resources(resources);

    lines.head("Test Statistics:");
    lines.count("Requests sent", counts.requests);
    lines.count("Refreshes received", counts.images);
    lines.count("Updates received", counts.updates);
    lines.count_if(rates.posts > 0, "Posts sent", counts.posts);
    lines.generic_counts(rates, figures);
    lines.unsent(counts);
    if let Some(seconds) = figures.images_s {
        lines.seconds("Image retrieval time (sec)", seconds);
        lines.rate("Avg image rate", if seconds > 0.0 { figures.images as f64 / seconds } else { 0.0 });
    }
    if figures.switches.count > 0 {
        lines.count("Standby switches", figures.switches.count);
        match figures.switches.standstill_s() {
            Some(seconds) => lines.seconds("Standby standstill max (sec)", seconds),
            None => lines.say("Standby standstill: not over, as images are missing"),
        }
    }
    lines.count_if(counts.standby_updates > 0, "Standby updates received", counts.standby_updates);
    lines.rate("Avg update rate", figures.overall.per_second);
    lines.rate_if(rates.posts > 0, "Avg posting rate", figures.posts_per_second);
    lines.generic_rates(rates, figures);
}

fn of_provider(lines: &mut SummaryLines, rates: Rates, figures: &Figures, resources: Option<&Resources>) {
    let counts = &figures.counts;
    lines.head("Overall Statistics:");
    lines.latency("GenMsg latency", &figures.generics, "No GenMsg latency information was received.");
    lines.generic_counts(rates, figures);
    lines.generic_rates(rates, figures);
    if figures.round_trips.count > 0 {
        lines.latency("Round trip", &figures.round_trips, "");
        lines.count("Round trips", figures.round_trips.count);
    }
    lines.count("Image requests received", counts.requests);
    lines.count_if(rates.updates > 0, "Updates sent", counts.updates);
    lines.unsent(counts);
    if counts.posts > 0 {
        lines.count("Posts received", counts.posts);
        lines.count("Posts reflected", counts.reflected_posts);
        lines.count_if(counts.dropped_posts > 0, "Posts dropped", counts.dropped_posts);
    }
    lines.resources(resources);
}

/// Lines under headings.
#[derive(Debug, Default)]
pub(super) struct SummaryLines(String);

impl SummaryLines {
    pub(super) fn head(&mut self, text: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(text);
        self.0.push('\n');
    }

    pub(super) fn say(&mut self, text: impl std::fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "  {text}");
    }

    pub(super) fn count(&mut self, name: &str, count: u64) {
        self.say(format_args!("{name}: {count}"));
    }

    fn count_if(&mut self, is_shown: bool, name: &str, count: u64) {
        if is_shown {
            self.count(name, count);
        }
    }

    fn rate_if(&mut self, is_shown: bool, name: &str, per_second: f64) {
        if is_shown {
            self.rate(name, per_second);
        }
    }

    /// Messages that were queued on connections and never sent, if any.
    pub(super) fn unsent(&mut self, counts: &Counts) {
        self.count_if(counts.unsent > 0, "Messages not sent", counts.unsent);
    }

    fn seconds(&mut self, name: &str, seconds: f64) {
        self.say(format_args!("{name}: {seconds:.3}"));
    }

    pub(super) fn rate(&mut self, name: &str, per_second: f64) {
        self.say(format_args!("{name}: {per_second:.0}"));
    }

    fn phase(&mut self, phase: &PhaseFigures, none: &str) {
        self.seconds("Sampling duration (sec)", phase.seconds);
        self.latency("Latency", &phase.latency, none);
    }

    fn latency(&mut self, name: &str, moments: &Moments, none: &str) {
        self.moments(name, moments, 1, none);
    }

    /// Lines of moments, with this many decimals.
    pub(super) fn moments(&mut self, name: &str, moments: &Moments, places: usize, none: &str) {
        let Moments { count, mean, deviation, max, min } = moments;
        if *count == 0 {
            return self.say(none);
        }
        for (what, value) in [("avg", mean), ("std dev", deviation), ("max", max), ("min", min)] {
            self.say(format_args!("{name} {what} (usec): {value:.places$}"));
        }
    }

    fn generic_counts(&mut self, rates: Rates, figures: &Figures) {
        let counts = &figures.counts;
        self.count_if(rates.generics > 0, "GenMsgs sent", counts.generics_sent);
        self.count_if(counts.generics_received > 0, "GenMsgs received", counts.generics_received);
        self.count_if(rates.stamped_generics > 0, "GenMsg latencies sent", counts.stamped_generics);
        self.count_if(figures.generics.count > 0, "GenMsg latencies received", figures.generics.count);
    }

    fn generic_rates(&mut self, rates: Rates, figures: &Figures) {
        let Figures { counts, generics, .. } = figures;
        for (is_shown, name, per_second) in [
            (rates.generics > 0, "Avg GenMsg send rate", figures.generics_sent_per_second),
            (counts.generics_received > 0, "Avg GenMsg receive rate", figures.generics_received_per_second),
            (rates.stamped_generics > 0, "Avg GenMsg latency send rate", figures.stamped_generics_per_second),
            (generics.count > 0, "Avg GenMsg latency receive rate", figures.timed_generics_per_second),
        ] {
            self.rate_if(is_shown, name, per_second);
        }
    }

    pub(super) fn resources(&mut self, resources: Option<&Resources>) {
        let Some(resources) = resources else { return };
        let (cpu, memory) =
            (resources.spread(|sample| sample.cpu_percent), resources.spread(Sample::memory_mb));
        self.count("CPU/Memory samples", resources.0.len() as u64);
        for (name, unit, spread) in [("CPU", "%", cpu), ("Memory", "MB", memory)] {
            for (what, value) in ["max", "min", "avg"].into_iter().zip(spread) {
                self.say(format_args!("{name} Usage {what} ({unit}): {value:.2}"));
            }
        }
    }
}
