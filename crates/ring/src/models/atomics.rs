//! Loom's atomics, with faults.
//!
//! A fault is planted at a place in the real code, which each access identifies by its caller's location: nothing
//! in that code names the faults. A fault weakens, delays or replaces the access of one line of the ring, and the
//! model has to detect it.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::Location;
use std::sync::Arc;
use std::thread::panicking;

use loom::sync::atomic as looms;
pub(crate) use loom::sync::atomic::Ordering;
use loom::thread::{self, ThreadId};

/// A line of the crate's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    /// As the compiler names it.
    pub(crate) file: &'static str,
    pub(crate) line: u32,
}

impl Site {
    #[track_caller]
    fn here() -> Self {
        let caller = Location::caller();
        Self { file: caller.file(), line: caller.line() }
    }
}

/// What can be wrong at a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The access is relaxed; the fence is left out.
    Weak(Site),
    /// The store is made after the thread's next one at `until`, or never.
    Late { store: Site, until: Option<Site> },
    /// The load returns the value of the thread's previous load at this line; the first load returns the current
    /// value.
    Lagging(Site),
    /// The store stores a value that is `by` too high.
    Ahead { store: Site, by: u64 },
}

/// Changes to the accesses on this thread of the system, on which loom runs all threads of a model.
#[derive(Default)]
struct Plan {
    faults: &'static [Fault],
    /// Whether an access has met each fault, one bit each.
    met: u64,
    /// Stores that are late, by loom's thread.
    late: Vec<(ThreadId, Box<dyn FnOnce()>)>,
    /// The values that lagging loads have seen.
    lagging: BTreeMap<(String, Site), u64>,
    /// Lines with an ordering other than relaxed, and what each line does.
    ordered: BTreeSet<(Site, &'static str)>,
}

thread_local! {
    static PLAN: RefCell<Plan> = RefCell::default();
}

/// Plants `faults` and clears the state.
pub(crate) fn plant(faults: &'static [Fault]) {
    PLAN.with_borrow_mut(|plan| *plan = Plan { faults, ..Plan::default() });
}

/// Clears the state of an interleaving. Call it where the next one starts.
pub(crate) fn begin() {
    PLAN.with_borrow_mut(|plan| {
        plan.late.clear();
        plan.lagging.clear();
    });
}

/// Whether some access met each planted fault.
pub(crate) fn faults_were_met() -> bool {
    PLAN.with_borrow(|plan| plan.met.count_ones() as usize == plan.faults.len())
}

/// Lines with an ordering other than relaxed that were passed since `plant`, and what they do.
pub(crate) fn ordered_sites() -> BTreeSet<(Site, &'static str)> {
    PLAN.with_borrow(|plan| plan.ordered.clone())
}

impl Plan {
    /// The planted fault for which `is` holds.
    fn meets(&mut self, is: impl Fn(Fault) -> bool) -> Option<Fault> {
        let at = self.faults.iter().position(|fault| is(*fault))?;
        self.met |= 1 << at;
        Some(self.faults[at])
    }

    /// The ordering to use for an access.
    fn ordering(&mut self, site: Site, what: &'static str, ordering: Ordering) -> Ordering {
        if ordering == Ordering::Relaxed {
            return ordering;
        }
        self.ordered.insert((site, what));
        let weak = self.meets(|fault| fault == Fault::Weak(site)).is_some();
        if weak { Ordering::Relaxed } else { ordering }
    }
}

#[track_caller]
pub(crate) fn fence(ordering: Ordering) {
    let site = Site::here();
    // After a model has failed, destructors run outside of it.
    if panicking() {
        return;
    }
    if PLAN.with_borrow_mut(|plan| plan.ordering(site, "fence", ordering)) != Ordering::Relaxed {
        looms::fence(ordering);
    }
}

macro_rules! atomic {
    ($name:ident, $number:ty) => {
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name(Arc<looms::$name>);

        #[allow(dead_code, reason = "not every width needs every access")]
        impl $name {
            #[track_caller]
            pub(crate) fn load(&self, ordering: Ordering) -> $number {
                let site = Site::here();
                if panicking() {
                    return 0;
                }
                let (ordering, lags) = PLAN.with_borrow_mut(|plan| {
                    let lags = plan.meets(|fault| fault == Fault::Lagging(site)).is_some();
                    (plan.ordering(site, "load", ordering), lags)
                });
                let value = self.0.load(ordering);
                if !lags {
                    return value;
                }
                let reader = format!("{:?}", thread::current().id());
                let before =
                    PLAN.with_borrow_mut(|plan| plan.lagging.insert((reader, site), u64::from(value)));
                before.map_or(value, |before| before as $number)
            }

            #[track_caller]
            pub(crate) fn store(&self, value: $number, ordering: Ordering) {
                let site = Site::here();
                if panicking() {
                    return;
                }
                let mut value = value;
                let (ordering, fault, catches_up) = PLAN.with_borrow_mut(|plan| {
                    let fault = plan.meets(|fault| match fault {
                        Fault::Late { store, .. } | Fault::Ahead { store, .. } => store == site,
                        _ => false,
                    });
                    let ends = |fault: &Fault| matches!(fault, Fault::Late { until, .. } if *until == Some(site));
                    (plan.ordering(site, "store", ordering), fault, plan.faults.iter().any(ends))
                });
                match fault {
                    Some(Fault::Late { until: None, .. }) => return,
                    Some(Fault::Late { .. }) => {
                        let number = self.clone();
                        let store = Box::new(move || number.0.store(value, ordering));
                        let writer = thread::current().id();
                        PLAN.with_borrow_mut(|plan| plan.late.push((writer, store)));
                        return;
                    }
                    Some(Fault::Ahead { by, .. }) => value += by as $number,
                    _ => {}
                }
                self.0.store(value, ordering);
                if catches_up {
                    catch_up();
                }
            }

            #[track_caller]
            pub(crate) fn fetch_or(&self, bits: $number, ordering: Ordering) -> $number {
                self.change("fetch_or", ordering, |number, ordering| number.fetch_or(bits, ordering))
            }

            #[track_caller]
            pub(crate) fn fetch_and(&self, bits: $number, ordering: Ordering) -> $number {
                self.change("fetch_and", ordering, |number, ordering| number.fetch_and(bits, ordering))
            }

            #[track_caller]
            pub(crate) fn fetch_add(&self, more: $number, ordering: Ordering) -> $number {
                self.change("fetch_add", ordering, |number, ordering| number.fetch_add(more, ordering))
            }

            #[track_caller]
            pub(crate) fn swap(&self, value: $number, ordering: Ordering) -> $number {
                self.change("swap", ordering, |number, ordering| number.swap(value, ordering))
            }

            #[track_caller]
            pub(crate) fn compare_exchange(
                &self,
                from: $number,
                to: $number,
                done: Ordering,
                refused: Ordering,
            ) -> Result<$number, $number> {
                let site = Site::here();
                if panicking() {
                    return Err(0);
                }
                let done = PLAN.with_borrow_mut(|plan| plan.ordering(site, "compare_exchange", done));
                self.0.compare_exchange(from, to, done, refused)
            }

            /// Reads the number as plain memory: loom reports any store that is not ordered before or after.
            pub(crate) fn plain(&self) -> $number {
                if panicking() {
                    return 0;
                }
                // SAFETY: a model's number is atomic in any case; loom finds what this breaks, which is its
                // purpose.
                unsafe { self.0.unsync_load() }
            }

            #[track_caller]
            fn change(
                &self,
                what: &'static str,
                ordering: Ordering,
                change: impl FnOnce(&looms::$name, Ordering) -> $number,
            ) -> $number {
                let site = Site::here();
                if panicking() {
                    return 0;
                }
                let ordering = PLAN.with_borrow_mut(|plan| plan.ordering(site, what, ordering));
                change(&self.0, ordering)
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

/// Makes the running thread's late stores.
fn catch_up() {
    let writer = thread::current().id();
    let all = PLAN.with_borrow_mut(|plan| std::mem::take(&mut plan.late));
    let (due, rest): (Vec<_>, Vec<_>) = all.into_iter().partition(|(late, _)| *late == writer);
    PLAN.with_borrow_mut(|plan| plan.late = rest);
    due.into_iter().for_each(|(_, store)| store());
}
