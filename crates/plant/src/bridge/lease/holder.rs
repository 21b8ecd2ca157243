//! The side of a plant: looks, asks for the lease, renews it, and knows when it ends.

use tapeline_measure::Nanos;

use super::{HolderName, JournalEnd, LeaseAnswer, LeaseOutcome, LeaseRequest, LeaseRequestKind as Kind};
use crate::bridge::{Epoch, PlantId};

/// Steps of a lease: a holder renews it every third of its duration, and a standby looks as often.
const STEPS: u64 = 3;
/// A request without an answer is sent again so often in a step.
const TRIES: u64 = 3;

/// The settings of a plant that may hold a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The plant's id, the same in all plants that may hold this lease.
    pub plant: PlantId,
    /// The name of this one.
    pub holder: HolderName,
    /// A number that differs from start to start.
    pub incarnation: u64,
    /// The number of witnesses, all of which every plant must know.
    pub witnesses: usize,
    /// How long a lease lasts unless it is renewed, in ns.
    pub duration_ns: u64,
    /// By how much a holder ends it earlier, in ns: the clocks of a plant and of a witness may differ by so much over the duration.
    pub margin_ns: u64,
    /// Ask although the last leader had more ticks than this plant, which are then lost.
    pub takes: bool,
}

impl LeaseSettings {
    /// Returns the margin for a duration: a tenth. It covers clocks of which one is 5 % too fast and the other as much too slow.
    #[must_use]
    pub const fn usual_margin_ns(duration_ns: u64) -> u64 {
        duration_ns / 10
    }
}

/// What a plant knows when it asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// What it has now.
    pub position: JournalEnd,
    /// An epoch later than all that it knows.
    pub next_epoch: Epoch,
}

/// The standing of a plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseStanding {
    /// It does not hold the lease.
    Standby,
    /// It holds the lease, in this epoch and up to this time.
    Leader(Epoch, Nanos),
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Looks whether the lease is free.
    Looking,
    /// Has asked for it, with this epoch.
    Asking(Epoch),
    /// Has it.
    Holding(Epoch),
    /// Gives it back, or what it got of it.
    Releasing(Epoch),
    /// Does nothing, so that two plants that ask at once do not do so again.
    Pausing,
}

/// A plant's dealings with one witness.
#[derive(Clone, Copy, Debug, Default)]
struct Dealings {
    /// The number and the time of the request of this step; `None` once it is answered.
    asked: Option<(u64, Nanos)>,
    /// The renewals of the two steps before that are not answered: an answer that takes longer than a step counts too.
    before: [Option<(u64, Nanos)>; 2],
    /// When the request is sent (again).
    due: Nanos,
    /// The end of the lease at this witness, by this plant's clock.
    until: Nanos,
    /// The answer of this step.
    answer: Option<LeaseOutcome>,
    heard: Option<Nanos>,
    /// The last answer.
    last: Option<LeaseAnswer>,
}

/// A plant that may hold a lease. See [the module](super).
#[derive(Debug)]
pub struct LeaseHolder {
    settings: LeaseSettings,
    phase: Phase,
    /// The end of the step.
    ends: Nanos,
    witnesses: Vec<Dealings>,
    numbered: u64,
    /// The last epoch that was asked for. None is asked for twice: a release of the first attempt that is late would end the second.
    asked: Epoch,
    random: u64,
    /// The position that the next renewal states, and the one after it.
    positions: [JournalEnd; 2],
    position: JournalEnd,
    begun: Nanos,
}

impl LeaseHolder {
    /// Creates a plant that looks from `now` on.
    #[must_use]
    pub fn new(settings: LeaseSettings, now: Nanos) -> Self {
        let mut this = Self {
            settings,
            phase: Phase::Looking,
            ends: now,
            witnesses: vec![Dealings::default(); settings.witnesses],
            numbered: 0,
            asked: Epoch(0),
            random: settings.incarnation,
            positions: [JournalEnd::default(); 2],
            position: JournalEnd::default(),
            begun: now,
        };
        this.begin(Phase::Looking, now);
        this
    }

    const fn step_ns(&self) -> u64 {
        self.settings.duration_ns / STEPS
    }

    const fn majority(&self) -> usize {
        self.settings.witnesses / 2 + 1
    }

    /// SplitMix64: enough to keep two plants from asking at the same time again.
    fn random_below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)) % end.max(1)
    }

    fn begin(&mut self, phase: Phase, now: Nanos) {
        let step = self.step_ns();
        let (length, asks) = match phase {
            Phase::Pausing => (step / 2 + self.random_below(step), false),
            // A witness writes before it answers, and a busy disk takes its time.
            Phase::Asking(_) => (2 * step, true),
            _ => (step, true),
        };
        let is_renewal = matches!((self.phase, phase), (Phase::Holding(_), Phase::Holding(_)));
        (self.phase, self.ends) = (phase, now + length);
        let is_asking = matches!(phase, Phase::Asking(_));
        for witness in &mut self.witnesses {
            witness.before = if is_renewal { [witness.before[1], witness.asked] } else { [None; 2] };
            (witness.asked, witness.answer) = (None, None);
            witness.due = if asks { now } else { Nanos(u64::MAX) };
            if is_asking {
                witness.until = Nanos(0);
            }
        }
        if matches!(phase, Phase::Holding(_)) {
            // A standby that lacks what a datagram brought just now must not count as behind: it requests that again first.
            self.positions = [self.positions[1], self.position];
        }
    }

    /// Ends the step if it is over. Returns the next request to send, with the number of its witness; `None` if none is due.
    pub fn poll(&mut self, outlook: &Outlook, now: Nanos) -> Option<(usize, LeaseRequest)> {
        self.position = outlook.position;
        self.turn(outlook, now);
        let step = self.step_ns();
        let at = self.witnesses.iter().position(|witness| witness.due <= now)?;
        let (kind, epoch, position) = match self.phase {
            Phase::Looking => (Kind::Look, Epoch(0), outlook.position),
            Phase::Asking(epoch) if self.settings.takes => (Kind::Take, epoch, outlook.position),
            Phase::Asking(epoch) => (Kind::Ask, epoch, outlook.position),
            Phase::Holding(epoch) => (Kind::Ask, epoch, self.positions[0]),
            Phase::Releasing(epoch) => (Kind::Release, epoch, outlook.position),
            Phase::Pausing => return None,
        };
        let witness = &mut self.witnesses[at];
        witness.due = if self.ends.since(now) > 0 { now + step / TRIES } else { Nanos(u64::MAX) };
        // Sent again, it is the same request: the lease counts from its first sending.
        let (number, _) = *witness.asked.get_or_insert_with(|| {
            self.numbered += 1;
            (self.numbered, now)
        });
        let LeaseSettings { plant, holder, incarnation, duration_ns, .. } = self.settings;
        Some((at, LeaseRequest { kind, plant, holder, incarnation, number, epoch, duration_ns, position }))
    }

    /// Changes the phase, if the answers or the time say so.
    fn turn(&mut self, outlook: &Outlook, now: Nanos) {
        let answered = |wanted: LeaseOutcome| {
            self.witnesses.iter().filter(|it| it.answer == Some(wanted)).count() >= self.majority()
        };
        let is_over = now >= self.ends;
        match self.phase {
            Phase::Looking => {
                let behind = self.witnesses.iter().filter(|it| it.answer == Some(LeaseOutcome::Behind));
                let free = self.witnesses.iter().filter(|it| it.answer == Some(LeaseOutcome::Free));
                let free = free.count() + if self.settings.takes { behind.count() } else { 0 };
                if free >= self.majority() {
                    let heard =
                        self.witnesses.iter().filter_map(|it| it.last).map(|it| it.epoch.0.saturating_add(1));
                    let epoch = heard.fold(outlook.next_epoch.0.max(self.asked.0 + 1), u64::max);
                    self.asked = Epoch(epoch);
                    self.begin(Phase::Asking(Epoch(epoch)), now);
                } else if is_over {
                    self.begin(Phase::Looking, now);
                }
            }
            Phase::Asking(epoch) => {
                if answered(LeaseOutcome::Granted) && self.until() > now {
                    self.positions = [outlook.position; 2];
                    self.settings.takes = false;
                    // The first renewal is a step away, as all others are, unless the grants have taken long.
                    let early = Nanos(self.until().0.saturating_sub(2 * self.step_ns()));
                    (self.phase, self.ends) =
                        (Phase::Holding(epoch), early.max(now).min(now + self.step_ns()));
                } else if is_over || self.witnesses.iter().all(|it| it.answer.is_some()) {
                    self.begin(Phase::Releasing(epoch), now);
                }
            }
            Phase::Holding(epoch) => {
                if now >= self.until() {
                    self.begin(Phase::Releasing(epoch), now);
                } else if is_over {
                    self.begin(Phase::Holding(epoch), now);
                }
            }
            Phase::Releasing(_) => {
                if is_over || self.witnesses.iter().all(|it| it.answer.is_some()) {
                    self.begin(Phase::Pausing, now);
                }
            }
            Phase::Pausing if is_over => self.begin(Phase::Looking, now),
            Phase::Pausing => {}
        }
    }

    /// The time up to which a majority of the witnesses has granted the lease, by this plant's clock.
    fn until(&self) -> Nanos {
        let mut ends: Vec<_> = self.witnesses.iter().map(|witness| witness.until).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends.get(self.majority() - 1).copied().unwrap_or_default()
    }

    /// Takes the answer of a witness. An answer to another request than the last, and the renewals just before, is left out.
    pub fn answer(&mut self, witness: usize, answer: &LeaseAnswer, now: Nanos) {
        let LeaseSettings { plant, incarnation, duration_ns, margin_ns, .. } = self.settings;
        let Some(dealings) = self.witnesses.get_mut(witness) else { return };
        if (answer.plant, answer.incarnation) != (plant, incarnation) {
            return;
        }
        let is_it = |asked: &Option<(u64, Nanos)>| asked.is_some_and(|(number, _)| number == answer.number);
        let sent = if is_it(&dealings.asked) {
            (dealings.due, dealings.answer) = (Nanos(u64::MAX), Some(answer.outcome));
            dealings.asked.take()
        } else {
            dealings.before.iter_mut().find(|asked| is_it(asked)).and_then(Option::take)
        };
        let Some((_, sent)) = sent else { return };
        (dealings.heard, dealings.last) = (Some(now), Some(*answer));
        let is_wanted =
            matches!(self.phase, Phase::Asking(epoch) | Phase::Holding(epoch) if epoch == answer.epoch);
        if is_wanted && answer.outcome == LeaseOutcome::Granted {
            dealings.until = dealings.until.max(sent + duration_ns.saturating_sub(margin_ns));
        }
        if matches!(self.phase, Phase::Looking)
            && matches!(answer.outcome, LeaseOutcome::Held | LeaseOutcome::Waiting)
        {
            // A lease that ends before the next look is looked at then.
            self.ends = self.ends.min(now + answer.left_ns.min(duration_ns) + self.step_ns() / 16);
        }
    }

    /// Returns the standing at `now`.
    #[must_use]
    pub fn standing(&self, now: Nanos) -> LeaseStanding {
        match self.phase {
            Phase::Holding(epoch) if now < self.until() => LeaseStanding::Leader(epoch, self.until()),
            _ => LeaseStanding::Standby,
        }
    }

    /// Gives the lease back: this plant no longer numbers.
    pub fn release(&mut self, now: Nanos) {
        if let Phase::Asking(epoch) | Phase::Holding(epoch) = self.phase {
            self.begin(Phase::Releasing(epoch), now);
        }
    }

    /// Returns `true` while a lease is being given back.
    #[must_use]
    pub const fn is_releasing(&self) -> bool {
        matches!(self.phase, Phase::Releasing(_))
    }

    /// Returns when [`poll`](Self::poll) has something to do.
    #[must_use]
    pub fn next_due(&self) -> Nanos {
        let until = match self.phase {
            Phase::Holding(_) => self.until(),
            _ => Nanos(u64::MAX),
        };
        self.witnesses.iter().map(|it| it.due).fold(self.ends.min(until), Nanos::min)
    }

    /// Returns the last answer of each witness; `None` for those that have not answered for the time of two leases.
    pub fn heard(&self, now: Nanos) -> impl Iterator<Item = Option<&LeaseAnswer>> {
        let patience = 2 * self.settings.duration_ns as i64;
        self.witnesses.iter().map(move |witness| {
            witness.last.as_ref().filter(|_| witness.heard.is_some_and(|at| now.since(at) < patience))
        })
    }

    /// Returns `true` once it is known whether this plant leads for now: it does, or the witnesses refuse, or they have had the time of two leases.
    #[must_use]
    pub fn is_decided(&self, now: Nanos) -> bool {
        let is_refusal = |it: &&Dealings| {
            // One that was just started grants the lease soon.
            it.answer.is_some_and(|outcome| {
                !matches!(outcome, LeaseOutcome::Free | LeaseOutcome::Granted | LeaseOutcome::Waiting)
            })
        };
        let is_refused = matches!(self.phase, Phase::Looking)
            && self.witnesses.iter().filter(is_refusal).count() >= self.majority();
        let is_late = now.since(self.begun) >= 2 * self.settings.duration_ns as i64;
        is_late || is_refused || self.standing(now) != LeaseStanding::Standby
    }
}
