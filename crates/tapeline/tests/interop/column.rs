//! One pair of programs: its scenarios, its transports, and the outcomes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::program::Place;
use crate::way::Way;

/// The outcome of one scenario over one transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// With a description of what happened.
    Failed(String),
    /// Not tried, with the reason why it is impossible.
    Explained(&'static str),
}

impl Outcome {
    pub(crate) fn of(passed: bool, seen: impl std::fmt::Display) -> Self {
        if passed { Self::Passed } else { Self::Failed(seen.to_string()) }
    }
}

/// A scenario: its name in the programs, and its title in the table.
pub(crate) type Scenario = (&'static str, &'static str);

/// Runs all possible scenarios over one transport.
pub(crate) type Session = fn(&Place, Way) -> Vec<(&'static str, Outcome)>;

pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) scenarios: &'static [Scenario],
    pub(crate) ways: &'static [Way],
    /// Why a scenario is impossible over a transport, whatever the other end is.
    pub(crate) explained: fn(&'static str, Way) -> Option<&'static str>,
    pub(crate) session: Session,
    pub(crate) cells: BTreeMap<(&'static str, Way), Outcome>,
}

impl Column {
    /// Runs all transports of all columns from one queue, `at_once` at a time: programs wait for each other more than
    /// they work. Prints the progress on standard error.
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
