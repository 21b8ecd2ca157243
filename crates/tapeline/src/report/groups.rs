//! Runs of one thing: their median and how far they lie apart.

use super::loaded::{Figure, Latency, Loaded};

/// Runs of one name.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) runs: Vec<Loaded>,
}

/// All groups, in the order in which they were named; the first is what others are compared to.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) all: Vec<Group>,
    /// What of their latency is compared: of all runs the same.
    pub(super) compared: Compared,
}

/// What of runs' latency is beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// The hop of this name, which stands for each of them.
    Whole(String),
    /// Service time: some have no response time to set against others'.
    ServiceTime,
    /// Nothing: they have no hop in common.
    Nothing,
}

/// What a hop measures, by whichever name.
fn measures(name: &str) -> &str {
    if name == UPDATES { SERVICE } else { name }
}

/// From the start of encoding; what other makers' files have of updates.
const SERVICE: &str = "service";
pub(super) const UPDATES: &str = "updates";

/// A figure of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) median: f64,
    pub(super) most: f64,
}

/// What a run is one of, by its own name: `fast-1` and `fast-2` are runs of `fast`.
pub(super) fn group_of(name: &str) -> String {
    let counted = name.rsplit_once('-').filter(|(_, number)| {
        (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    counted.map_or(name, |(group, _)| group).to_owned()
}

impl Groups {
    pub(super) fn of(runs: Vec<Loaded>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut runs = runs;
        let compared = compared(&mut runs);
        for run in runs {
            match groups.iter_mut().find(|group| group.name == run.group) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group { name: run.group.clone(), runs: vec![run] }),
            }
        }
        Self { all: groups, compared }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Loaded> {
        self.all.iter().flat_map(|group| &group.runs)
    }
}

/// What all of them have; it stands for each of them then.
fn compared(runs: &mut [Loaded]) -> Compared {
    let timed = || runs.iter().filter_map(Loaded::whole).map(|whole| measures(&whole.name));
    let Some(first) = timed().next() else { return Compared::Nothing };
    if timed().all(|name| name == first) {
        return Compared::Whole(first.to_owned());
    }
    let is_service = |latency: &Latency| measures(&latency.name) == SERVICE;
    if !runs.iter().all(|run| run.latency.is_empty() || run.latency.iter().any(is_service)) {
        return Compared::Nothing;
    }
    for run in runs {
        run.latency.sort_by_key(is_service);
    }
    Compared::ServiceTime
}

impl Group {
    /// Over the runs that have it.
    pub(super) fn spread(&self, figure: Figure) -> Option<Spread> {
        let mut all: Vec<f64> = self.runs.iter().filter_map(|run| run.figure(figure)).collect();
        all.sort_by(f64::total_cmp);
        Some(Spread {
            least: *all.first()?,
            median: all[(all.len() - 1) / 2].midpoint(all[all.len() / 2]),
            most: *all.last()?,
        })
    }

    /// The run whose latency is in the middle: the one that is drawn for all.
    pub(super) fn typical(&self) -> Option<&Loaded> {
        let mut all: Vec<&Loaded> = self.runs.iter().collect();
        let at = Figure::Latency(tapeline_measure::Rank::P99);
        all.sort_by(|one, other| one.figure(at).unwrap_or(0.0).total_cmp(&other.figure(at).unwrap_or(0.0)));
        all.get(all.len() / 2).copied()
    }
}
