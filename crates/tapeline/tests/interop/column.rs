//! One pair of programs: what was tried over which way, and how it went.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::program::Place;
use crate::way::Way;

/// How one scenario went over one way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// What was seen instead.
    Failed(String),
    /// Not tried, and why nobody could.
    Explained(&'static str),
}

impl Outcome {
    pub(crate) fn of(passed: bool, seen: impl std::fmt::Display) -> Self {
        if passed { Self::Passed } else { Self::Failed(seen.to_string()) }
    }
}

/// What is known of one scenario before anything runs: its name among the programs, and its line in the table.
pub(crate) type Scenario = (&'static str, &'static str);

/// Goes through all scenarios that it can over one way.
pub(crate) type Session = fn(&Place, Way) -> Vec<(&'static str, Outcome)>;

pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) scenarios: &'static [Scenario],
    pub(crate) ways: &'static [Way],
    /// Why a scenario cannot be over a way, whoever is at the other end.
    pub(crate) explained: fn(&'static str, Way) -> Option<&'static str>,
    pub(crate) session: Session,
    pub(crate) cells: BTreeMap<(&'static str, Way), Outcome>,
}

impl Column {
    /// All ways of all columns from one queue, so many at once: programs wait for each other more than they work. Said on standard
    /// error as it goes.
    pub(crate) fn run_all(mut columns: Vec<Self>, place: &Place, at_once: usize) -> Vec<Self> {
        let queue: Vec<(usize, Way)> = columns
            .iter()
            .enumerate()
            .flat_map(|(number, column)| column.ways.iter().map(move |way| (number, *way)))
            .collect();
        let next = AtomicUsize::new(0);
        let worker = || {
            let mut done = Vec::new();
            while let Some((number, way)) = queue.get(next.fetch_add(1, Ordering::Relaxed)) {
                let column = &columns[*number];
                let outcomes = column.over(place, *way);
                let mut good = true;
                for (name, outcome) in &outcomes {
                    if let Outcome::Failed(seen) = outcome {
                        good = false;
                        eprintln!("interop: {}: {way}: {name} FAILED: {seen}", column.title);
                    }
                }
                if good {
                    eprintln!("interop: {}: {way}: good", column.title);
                }
                done.extend(outcomes.into_iter().map(|(name, outcome)| (*number, (name, *way), outcome)));
            }
            done
        };
        let done: Vec<_> = thread::scope(|scope| {
            let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
        });
        for (number, cell, outcome) in done {
            columns[number].cells.insert(cell, outcome);
        }
        columns
    }

    fn over(&self, place: &Place, way: Way) -> Vec<(&'static str, Outcome)> {
        let possible = |scenario: &Scenario| (self.explained)(scenario.0, way).is_none();
        let seen = if self.scenarios.iter().any(possible) { (self.session)(place, way) } else { Vec::new() };
        let outcome = |name: &'static str| {
            let of_this = seen.iter().find(|(scenario, _)| *scenario == name);
            (self.explained)(name, way).map_or_else(
                || {
                    of_this.map_or_else(
                        || Outcome::Failed("the session ended before".to_owned()),
                        |(_, of)| of.clone(),
                    )
                },
                Outcome::Explained,
            )
        };
        self.scenarios.iter().map(|(name, _)| (*name, outcome(name))).collect()
    }

    pub(crate) fn failures(&self) -> Vec<String> {
        let failed = |((name, way), outcome): (&(&'static str, Way), &Outcome)| match outcome {
            Outcome::Failed(seen) => Some(format!("{}: {name} over {way}: {seen}", self.title)),
            _ => None,
        };
        self.cells.iter().filter_map(failed).collect()
    }
}
