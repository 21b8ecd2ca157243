//! The witness: grants leases, and remembers what it granted.

use tapeline_measure::Nanos;

use super::{HolderName, JournalEnd, LeaseAnswer, LeaseOutcome, LeaseRequest, LeaseRequestKind as Kind};
use crate::bridge::{Epoch, PlantId};

/// The limits of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WitnessSettings {
    /// Maximum number of plants' ids.
    pub max_plants: usize,
    /// The shortest and the longest lease, in ns.
    pub durations_ns: (u64, u64),
}

impl Default for WitnessSettings {
    /// 64 plants, leases of 100 ms to one minute.
    fn default() -> Self {
        Self { max_plants: 64, durations_ns: (100_000_000, 60_000_000_000) }
    }
}

/// What a witness has granted last under one plant's id. It must survive the witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// The plant's id.
    pub plant: PlantId,
    /// The epoch: none that is not later is granted.
    pub epoch: Epoch,
    /// Who has it, or had it last.
    pub holder: HolderName,
    /// The start of that plant.
    pub incarnation: u64,
    /// The duration of the lease, in ns.
    pub duration_ns: u64,
    /// What the holder had, as far as it has said.
    pub position: JournalEnd,
}

impl LeaseRecord {
    /// Whether this is what the request wants renewed.
    fn is_of(&self, request: &LeaseRequest) -> bool {
        (self.holder, self.incarnation, self.epoch) == (request.holder, request.incarnation, request.epoch)
    }
}

/// The state of one plant's lease.
#[derive(Clone, Copy, Debug)]
struct Granted {
    record: LeaseRecord,
    /// The end of the lease. After a start of the witness: when it must have ended.
    until: Nanos,
    /// The lease may have been granted before the witness was started.
    is_of_before: bool,
    /// The holder has given it back.
    is_released: bool,
}

/// A witness. Its memory is bounded by the number of plants.
#[derive(Debug)]
pub struct Witness {
    settings: WitnessSettings,
    granted: Vec<Granted>,
}

impl Witness {
    /// Creates a witness that was started at `now` with what it had written down before.
    #[must_use]
    pub fn new(settings: WitnessSettings, records: &[LeaseRecord], now: Nanos) -> Self {
        let known = |record: &LeaseRecord| Granted {
            record: *record,
            until: now + record.duration_ns,
            is_of_before: true,
            is_released: false,
        };
        Self { settings, granted: records.iter().map(known).collect() }
    }

    /// Takes a request and returns the answer. `write` has the records that must survive before the answer is sent, and returns whether they do; it
    /// is called for a new grant only.
    pub fn take(
        &mut self,
        request: &LeaseRequest,
        now: Nanos,
        write: impl FnOnce(&[LeaseRecord]) -> bool,
    ) -> LeaseAnswer {
        let at = self.granted.iter().position(|granted| granted.record.plant == request.plant);
        let (outcome, left_ns) = match request.kind {
            Kind::Release => self.release(at, request),
            _ => match self.decide(at, request, now) {
                (LeaseOutcome::Free, _) if request.kind != Kind::Look => self.grant(at, request, now, write),
                decided => decided,
            },
        };
        let record = self.granted.iter().find(|it| it.record.plant == request.plant).map(|it| it.record);
        LeaseAnswer {
            outcome,
            plant: request.plant,
            holder: record.map_or_else(HolderName::default, |record| record.holder),
            incarnation: request.incarnation,
            number: request.number,
            epoch: record.map_or(Epoch(0), |record| record.epoch),
            left_ns,
            position: record.map_or_else(JournalEnd::default, |record| record.position),
        }
    }

    fn release(&mut self, at: Option<usize>, request: &LeaseRequest) -> (LeaseOutcome, u64) {
        if let Some(granted) = at.map(|at| &mut self.granted[at])
            && granted.record.is_of(request)
        {
            granted.is_released = true;
            granted.record.position = granted.record.position.max(request.position);
        }
        (LeaseOutcome::Free, 0)
    }

    /// What a request for the lease gets, and for how long: [`LeaseOutcome::Free`] if it can be granted, [`LeaseOutcome::Granted`] if it is a renewal.
    fn decide(&mut self, at: Option<usize>, request: &LeaseRequest, now: Nanos) -> (LeaseOutcome, u64) {
        let (shortest, longest) = self.settings.durations_ns;
        if !(shortest..=longest).contains(&request.duration_ns) {
            return (LeaseOutcome::InvalidDuration, 0);
        }
        let Some(granted) = at.map(|at| &mut self.granted[at]) else {
            let is_full = self.granted.len() >= self.settings.max_plants;
            return (if is_full { LeaseOutcome::Full } else { LeaseOutcome::Free }, 0);
        };
        let record = &mut granted.record;
        if record.is_of(request) && request.kind != Kind::Look && !granted.is_released {
            if record.duration_ns != request.duration_ns {
                return (LeaseOutcome::InvalidDuration, 0);
            }
            // Nobody else was granted anything since. The position may be one that was on the way for long.
            record.position = record.position.max(request.position);
            (granted.until, granted.is_of_before) = (now + request.duration_ns, false);
            return (LeaseOutcome::Granted, request.duration_ns);
        }
        if !granted.is_released && now < granted.until {
            let left = granted.until.since(now).unsigned_abs();
            let is_known = !granted.is_of_before;
            return (if is_known { LeaseOutcome::Held } else { LeaseOutcome::Waiting }, left);
        }
        if request.kind == Kind::Look {
            // The epoch is chosen when it is asked for.
        } else if request.epoch <= record.epoch {
            return (LeaseOutcome::OlderEpoch, 0);
        }
        // The last holder may have lost the end of its journal with its host.
        let was_holder = request.holder == record.holder && request.position.epoch == record.position.epoch;
        if request.kind != Kind::Take && request.position < record.position && !was_holder {
            return (LeaseOutcome::Behind, 0);
        }
        (LeaseOutcome::Free, 0)
    }

    fn grant(
        &mut self,
        at: Option<usize>,
        request: &LeaseRequest,
        now: Nanos,
        write: impl FnOnce(&[LeaseRecord]) -> bool,
    ) -> (LeaseOutcome, u64) {
        let LeaseRequest { plant, holder, incarnation, epoch, duration_ns, position, .. } = *request;
        let record = LeaseRecord { plant, epoch, holder, incarnation, duration_ns, position };
        let mut records: Vec<_> = self.granted.iter().map(|granted| granted.record).collect();
        match at {
            Some(at) => records[at] = record,
            None => records.push(record),
        }
        if !write(&records) {
            return (LeaseOutcome::Failed, 0);
        }
        let until = now + duration_ns;
        let granted = Granted { record, until, is_of_before: false, is_released: false };
        match at {
            Some(at) => self.granted[at] = granted,
            None => self.granted.push(granted),
        }
        (LeaseOutcome::Granted, duration_ns)
    }

    /// Returns what was granted last under each plant's id, and whether the lease is held now.
    pub fn records(&self, now: Nanos) -> impl Iterator<Item = (&LeaseRecord, bool)> {
        let is_held =
            move |granted: &Granted| !granted.is_released && !granted.is_of_before && now < granted.until;
        self.granted.iter().map(move |granted| (&granted.record, is_held(granted)))
    }
}
