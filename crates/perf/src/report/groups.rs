//! Groups of runs: their median and spread.

use super::loaded::{Figure, Latency, Loaded};
use crate::spread::Spread;

/// Runs with the same name.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) runs: Vec<Loaded>,
}

/// All groups, in the order in which they were named.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) all: Vec<Group>,
    /// The compared latency of receivers, and of senders.
    compared: [Compared; 2],
}

/// Groups that can be compared: consumers with consumers, providers with providers. A consumer and its provider
/// are the two ends of one run, so their figures must not be compared.
#[derive(Debug)]
pub(super) struct Alike<'g> {
    /// The reference of the comparison.
    pub(super) first: &'g Group,
    pub(super) others: Vec<&'g Group>,
    /// The compared latency, the same for all runs.
    pub(super) compared: &'g Compared,
}

/// The latency that runs are compared by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Compared {
    /// The hop with this name, which represents each run.
    Whole(String),
    /// Service time: some runs have no response time.
    ServiceTime,
    /// Nothing: the runs have no hop in common.
    Nothing,
}

/// Service time, from the start of encoding; other vendors' files report it for updates.
const SERVICE: &str = "service";
pub(super) const UPDATES: &str = "updates";

fn measures(name: &str) -> &str {
    if name == UPDATES { SERVICE } else { name }
}

/// The group of a run, derived from its name: `fast-1` and `fast-2` are runs of `fast`.
pub(super) fn group_of(name: &str) -> String {
    let counted = name.rsplit_once('-').filter(|(_, number)| {
        (1..=3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    counted.map_or(name, |(group, _)| group).to_owned()
}

impl Groups {
    pub(super) fn of(mut runs: Vec<Loaded>) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let compared = [false, true].map(|sends| {
            let mut ends: Vec<&mut Loaded> = runs.iter_mut().filter(|run| run.is_sender() == sends).collect();
            compared(&mut ends)
        });
        for run in runs {
            let is_its =
                |group: &&mut Group| group.name == run.group && group.is_of_senders() == run.is_sender();
            match groups.iter_mut().find(is_its) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group { name: run.group.clone(), runs: vec![run] }),
            }
        }
        Self { all: groups, compared }
    }

    /// The sets of comparable groups, each with at least two groups.
    pub(super) fn alike(&self) -> impl Iterator<Item = Alike<'_>> {
        [false, true].into_iter().zip(&self.compared).filter_map(|(sends, compared)| {
            let mut of_one_end = self.all.iter().filter(|group| group.is_of_senders() == sends);
            let (first, others) = (of_one_end.next()?, of_one_end.collect::<Vec<_>>());
            (!others.is_empty()).then_some(Alike { first, others, compared })
        })
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &Loaded> {
        self.all.iter().flat_map(|group| &group.runs)
    }
}

/// The latency that all runs have in common. That hop is moved to the end of each run, so that it represents the
/// run.
fn compared(runs: &mut [&mut Loaded]) -> Compared {
    let timed = || runs.iter().filter_map(|run| run.whole()).map(|whole| measures(&whole.name));
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

impl Alike<'_> {
    /// Whether the comparison includes a group.
    pub(super) fn has(&self, group: &Group) -> bool {
        std::iter::once(&self.first).chain(&self.others).any(|other| std::ptr::eq(*other, group))
    }
}

impl Group {
    /// Whether the runs are a sender's: see [`Loaded::is_sender`].
    fn is_of_senders(&self) -> bool {
        self.runs.first().is_some_and(Loaded::is_sender)
    }

    /// The spread of a figure over the runs that have it.
    pub(super) fn spread(&self, figure: Figure) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| run.figure(figure)), f64::total_cmp, f64::midpoint)
    }

    /// The run with the median latency at the 99th percentile, which is drawn for the group.
    pub(super) fn typical(&self) -> Option<&Loaded> {
        let mut all: Vec<&Loaded> = self.runs.iter().collect();
        let at = Figure::Latency(tapeline_measure::Rank::P99);
        all.sort_by(|one, other| one.figure(at).unwrap_or(0.0).total_cmp(&other.figure(at).unwrap_or(0.0)));
        all.get(all.len() / 2).copied()
    }
}
