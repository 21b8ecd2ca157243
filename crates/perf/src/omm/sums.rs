//! Totals of a thread's tallies over a run, and the figures derived from them.

use tapeline_measure::{Nanos, Recorder, Series, Window};

use super::tally::{Counts, Milestone, RunPhase, Tally, Terms, Times, merge};
use super::tool::Tool;

/// Count, mean, standard deviation and extremes in microseconds, as in the guide's files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moments {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) max: f64,
    pub(super) min: f64,
}

impl Moments {
    /// Moments of times. Negative times (clock error) are included, as in other tools.
    pub(super) fn of(times: &Times) -> Self {
        let Times { service: recorder, sum, sum_of_squares, .. } = times;
        let count = recorder.samples() + recorder.negatives();
        if count == 0 {
            return Self::default();
        }
        let most_negative = (recorder.negatives() > 0).then(|| recorder.most_negative_ns() as f64);
        let (least, most) = (recorder.min_ns(), recorder.max_ns());
        let min = most_negative.or(least.map(|ns| ns as f64)).unwrap_or(0.0);
        let max = most.map(|ns| ns as f64).or(most_negative).unwrap_or(0.0);
        let number = count as f64;
        // Sample variance (n - 1), as in the guide's tools. Rounding can make the result negative.
        let variance =
            if count > 1 { ((sum_of_squares - sum * sum / number) / (number - 1.0)).max(0.0) } else { 0.0 };
        Self {
            count,
            mean: sum / number / 1e3,
            deviation: variance.sqrt() / 1e3,
            max: max / 1e3,
            min: min / 1e3,
        }
    }

    /// Moments of durations that were recorded without sums: mean and deviation are accurate to three digits.
    pub(super) fn of_recorder(recorder: &Recorder) -> Self {
        let extreme = |ns: Option<u64>| ns.unwrap_or(0) as f64 / 1e3;
        Self {
            count: recorder.samples(),
            mean: recorder.mean_ns() / 1e3,
            deviation: recorder.deviation_ns() / 1e3,
            max: extreme(recorder.max_ns()),
            min: extreme(recorder.min_ns()),
        }
    }
}

/// A rate, measured from the first tally with a nonzero count, so that waiting before it does not count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    count: u64,
    /// End of the first nonzero tally (seconds of the run), and its count.
    first: Option<(f64, u64)>,
    /// Seconds of uninterrupted activity, and the count within them.
    active: (f64, u64),
    /// The last tally, if the one before it was nonzero too.
    open: Option<(f64, u64)>,
    went_on: bool,
}

impl Pace {
    /// Adds a tally of `count` over `seconds` that ended `at` seconds after the run began.
    fn add(&mut self, at: f64, seconds: f64, count: u64) {
        self.count += count;
        if count == 0 {
            (self.open, self.went_on) = (None, false);
            return;
        }
        self.first.get_or_insert((at, count));
        // The first and the last tally of a stretch cover only part of their interval.
        if let Some((seconds, count)) = self.open.take() {
            self.active.0 += seconds;
            self.active.1 += count;
        }
        self.open = self.went_on.then_some((seconds, count));
        self.went_on = true;
    }

    /// Rate per second, from the first nonzero tally on.
    fn per_second(&self, end: f64) -> f64 {
        match self.first {
            None => 0.0,
            Some((at, first)) if end > at && self.count > first => (self.count - first) as f64 / (end - at),
            Some((at, first)) if at > 0.0 => first as f64 / at,
            Some(_) => 0.0,
        }
    }

    /// Rate per second during uninterrupted activity; `None` if that lasted less than one second.
    pub(super) fn while_active(&self) -> Option<f64> {
        (self.active.0 >= 1.0).then(|| self.active.1 as f64 / self.active.0)
    }
}

/// Number of failovers to another server, and the longest standstill of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Switches {
    pub(super) count: u64,
    /// Failovers after which all images have arrived.
    pub(super) resumed: u64,
    /// Nanoseconds from the last message of the previous server to the last of the images.
    pub(super) longest_ns: u64,
}

impl Switches {
    /// The longest standstill of the stream in seconds; `None` while a failover is incomplete.
    pub(super) fn standstill_s(&self) -> Option<f64> {
        (self.resumed >= self.count).then_some(self.longest_ns as f64 / 1e9)
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.resumed += other.resumed;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// Totals of one thread, or of all threads, over a run.
#[derive(Debug, Default)]
pub(super) struct Sums {
    tool: Tool,
    /// All counts and times; trends since times count.
    pub(super) tally: Tally,
    /// Expected images.
    pub(super) images: u64,
    pub(super) switches: Switches,
    startup_updates: u64,
    steady_updates: u64,
    /// Update times until all images have arrived, and since times count.
    pub(super) startup: Times,
    pub(super) steady: Times,
    /// Latency by second: response times if the sender states due times, else service times.
    pub(super) windows: Vec<Window>,
    /// The current second.
    window: Recorder,
    /// When the first request was sent and the last image arrived: on the thread's clock, and in seconds of the run.
    first_request: Option<(Nanos, f64)>,
    all_images: Option<(Nanos, f64)>,
    /// When the last connection ended, if several can follow each other.
    parted: Option<f64>,
    updates: Pace,
    /// Traffic that this tool sends at a rate: generic messages, and a consumer's posts or a provider's updates.
    pub(super) sent: Pace,
    generics_sent: Pace,
    generics_received: Pace,
    timed_generics: Pace,
}

impl Sums {
    /// Empty sums that expect `images` images.
    pub(super) fn new(tool: Tool, terms: Terms, images: u64) -> Self {
        Self { tool, tally: Tally::new(terms), images, ..Self::default() }
    }

    /// Adds a tally of `seconds` that ended at this time of the run. `counts_times`: its steady-state times count.
    pub(super) fn add(&mut self, tally: &Tally, at: f64, seconds: f64, counts_times: bool) {
        let counts = &tally.counts;
        self.tally.add(tally);
        self.tally.counts.take_off(&tally.unsent);
        match tally.phase {
            RunPhase::Startup => {
                self.startup_updates += counts.updates;
                self.startup.merge(&tally.updates);
            }
            RunPhase::Steady => {
                self.steady_updates += counts.updates;
                if counts_times {
                    self.steady.merge(&tally.updates);
                }
            }
        }
        self.steady_updates = self.steady_updates.saturating_sub(tally.unsent.updates);
        let timed = self.of_hop(&tally.updates, &tally.generics);
        merge(&mut self.window, if timed.response.samples() > 0 { &timed.response } else { &timed.service });
        if counts_times {
            self.tally.trends.merge(&tally.trends);
        }
        self.updates.add(at, seconds, counts.updates);
        let sent = match self.tool {
            Tool::Consumer => counts.posts + counts.generics_sent,
            Tool::Provider | Tool::NiProvider => counts.updates + counts.generics_sent,
            Tool::Transport => counts.messages_sent,
        };
        self.sent.add(at, seconds, sent);
        self.generics_sent.add(at, seconds, counts.generics_sent);
        self.generics_received.add(at, seconds, counts.generics_received);
        self.timed_generics.add(at, seconds, Moments::of(&tally.generics).count);
    }

    /// The times that the verdict judges: updates for tools that time them, else generic messages.
    fn of_hop<'a>(&self, updates: &'a Times, generics: &'a Times) -> &'a Times {
        if self.tool.times_updates() { updates } else { generics }
    }

    /// The times that represent the run.
    pub(super) fn main_times(&self) -> &Times {
        self.of_hop(&self.steady, &self.tally.generics)
    }

    /// Ends the second that began `index` seconds after the run began.
    pub(super) fn end_window(&mut self, index: u64) {
        let count = self.window.samples() + self.window.negatives();
        if count == 0 {
            return;
        }
        if self.windows.len() < Series::ROWS {
            self.windows.push(Window {
                index,
                count,
                negatives: self.window.negatives(),
                p50_ns: self.window.value_at(0.5).unwrap_or(0),
                p99_ns: self.window.value_at(0.99).unwrap_or(0),
                max_ns: self.window.max_ns().unwrap_or(0),
            });
        }
        self.window.clear();
    }

    /// Records a milestone that was received `at` seconds after the run began.
    pub(super) fn note(&mut self, milestone: &Milestone, at: f64) {
        match milestone {
            Milestone::FirstRequest(when) => {
                self.first_request.get_or_insert((*when, at));
            }
            Milestone::AllImages(when) | Milestone::Done(when) => {
                self.all_images.get_or_insert((*when, at));
            }
            Milestone::Switched => self.switches.count += 1,
            Milestone::Resumed(still_ns) => {
                self.switches.resumed += 1;
                self.switches.longest_ns = self.switches.longest_ns.max(*still_ns);
            }
            Milestone::Parted => self.parted = Some(at),
            Milestone::Ready | Milestone::Lost(_) => {}
        }
    }

    /// Whether all images have arrived, or none was expected.
    pub(super) fn is_complete(&self) -> bool {
        self.all_images.is_some() || self.images == 0
    }

    /// Seconds from the first request to the last image.
    pub(super) fn images_seconds(&self) -> Option<f64> {
        match (self.first_request, self.all_images) {
            (Some((first, _)), Some((last, _))) => Some(last.since(first) as f64 / 1e9),
            _ => None,
        }
    }

    /// The figures at the end of the run, `end` seconds after it began.
    pub(super) fn figures(&self, end: f64) -> Figures {
        let requests = self.first_request.map(|(_, at)| at);
        let images = self.all_images.map(|(_, at)| at);
        let images_s = self.images_seconds();
        let startup_s = images_s.or(requests.map(|at| end - at)).unwrap_or(0.0);
        let steady_s = images.map(|at| (end - at).max(0.0));
        let Tally { counts, .. } = self.tally;
        Figures {
            counts,
            images: self.images,
            switches: self.switches,
            startup: PhaseFigures::new(startup_s, self.startup_updates, &self.startup),
            steady: steady_s.map(|seconds| PhaseFigures::new(seconds, self.steady_updates, &self.steady)),
            overall: PhaseFigures {
                per_second: self.updates.per_second(end),
                ..PhaseFigures::new(
                    requests.map_or(end, |at| self.parted.unwrap_or(end) - at),
                    self.startup_updates + self.steady_updates,
                    &self.tally.updates,
                )
            },
            images_s,
            posts: Moments::of(&self.tally.posts),
            generics: Moments::of(&self.tally.generics),
            round_trips: Moments::of_recorder(&self.tally.round_trips),
            posts_per_second: per_second(counts.posts, steady_s.unwrap_or(0.0)),
            generics_sent_per_second: self.generics_sent.per_second(end),
            stamped_generics_per_second: match counts.generics_sent {
                0 => 0.0,
                all => self.generics_sent.per_second(end) * counts.stamped_generics as f64 / all as f64,
            },
            generics_received_per_second: self.generics_received.per_second(end),
            timed_generics_per_second: self.timed_generics.per_second(end),
        }
    }

    /// Totals of all threads: from the earliest first request to the latest last image.
    pub(super) fn together(tool: Tool, terms: Terms, threads: &[&Self]) -> Self {
        let mut all = Self::new(tool, terms, 0);
        for sums in threads {
            all.tally.add(&sums.tally);
            all.tally.trends.merge(&sums.tally.trends);
            all.images += sums.images;
            all.switches.add(&sums.switches);
            all.startup_updates += sums.startup_updates;
            all.steady_updates += sums.steady_updates;
            all.startup.merge(&sums.startup);
            all.steady.merge(&sums.steady);
            all.parted = [all.parted, sums.parted].into_iter().flatten().reduce(f64::max);
        }
        let begins = threads.iter().filter_map(|sums| sums.first_request);
        all.first_request = begins.min_by_key(|(when, _)| *when);
        if threads.iter().all(|sums| sums.is_complete()) {
            let ends = threads.iter().filter_map(|sums| sums.all_images);
            all.all_images = ends.max_by_key(|(when, _)| *when);
        }
        all
    }

    /// The figures of all threads together, from those of each thread: rates are added.
    pub(super) fn figures_of_all(&self, threads: &[Figures], end: f64) -> Figures {
        let mut all = self.figures(end);
        let sum = |rate: fn(&Figures) -> f64| threads.iter().map(rate).sum::<f64>();
        all.startup.per_second = sum(|figures| figures.startup.per_second);
        if let Some(steady) = &mut all.steady {
            steady.per_second = sum(|figures| figures.steady.map_or(0.0, |steady| steady.per_second));
        }
        all.overall.per_second = sum(|figures| figures.overall.per_second);
        all.posts_per_second = sum(|figures| figures.posts_per_second);
        all.generics_sent_per_second = sum(|figures| figures.generics_sent_per_second);
        all.stamped_generics_per_second = sum(|figures| figures.stamped_generics_per_second);
        all.generics_received_per_second = sum(|figures| figures.generics_received_per_second);
        all.timed_generics_per_second = sum(|figures| figures.timed_generics_per_second);
        all
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// A phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PhaseFigures {
    pub(super) seconds: f64,
    pub(super) updates: u64,
    pub(super) per_second: f64,
    pub(super) latency: Moments,
}

impl PhaseFigures {
    fn new(seconds: f64, updates: u64, times: &Times) -> Self {
        Self { seconds, updates, per_second: per_second(updates, seconds), latency: Moments::of(times) }
    }
}

/// Figures of a summary, for one thread or for all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) counts: Counts,
    /// Expected images.
    pub(super) images: u64,
    pub(super) switches: Switches,
    pub(super) startup: PhaseFigures,
    /// `None` if the run did not reach the steady state.
    pub(super) steady: Option<PhaseFigures>,
    pub(super) overall: PhaseFigures,
    /// Seconds from the first request to the last image.
    pub(super) images_s: Option<f64>,
    pub(super) posts: Moments,
    pub(super) generics: Moments,
    pub(super) round_trips: Moments,
    pub(super) posts_per_second: f64,
    pub(super) generics_sent_per_second: f64,
    pub(super) stamped_generics_per_second: f64,
    pub(super) generics_received_per_second: f64,
    pub(super) timed_generics_per_second: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::omm::tally::{Kind, Timed};

    #[test]
    fn moments_are_those_of_the_samples() {
        let mut times = Times::default();
        for ns in [2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000] {
            times.record(&Timed { kind: Kind::Update, sent: 10_000, due: None, received: 10_000 + ns });
        }
        let moments = Moments::of(&times);
        assert_eq!((moments.count, moments.mean, moments.max, moments.min), (8, 5.0, 9.0, 2.0));
        // Squares of the distances from 5: 32 in all, over n - 1.
        assert!((moments.deviation - (32.0_f64 / 7.0).sqrt()).abs() < 1e-9, "{moments:?}");
        times.record(&Timed { kind: Kind::Update, sent: 10_000, due: None, received: 9_000 });
        assert_eq!((Moments::of(&times).count, Moments::of(&times).min), (9, -1.0));
        assert_eq!(Moments::of(&Times::default()), Moments::default());
    }

    #[test]
    fn paces_leave_waiting_out() {
        let mut pace = Pace::default();
        assert_eq!((pace.per_second(9.0), pace.while_active()), (0.0, None));
        for (second, count) in
            [0, 0, 500, 1_000, 1_000, 1_000, 200, 0, 300, 1_000, 700].into_iter().enumerate()
        {
            pace.add(second as f64 + 1.0, 1.0, count);
        }
        assert_eq!(pace.while_active(), Some(1_000.0), "whole seconds only");
        assert_eq!(pace.per_second(11.0), 5_200.0 / 8.0);
        let mut short = Pace::default();
        short.add(0.5, 0.5, 100);
        assert_eq!(short.per_second(0.5), 200.0);
    }
}
