//! Two plants and three witnesses from one seed: who holds the lease, whatever happens to them and to what they send.
//!
//! [`Witness`] and [`LeaseHolder`] are those of the product, and so are the bytes. Clocks drift, datagrams are lost, late, doubled and in another
//! order, links break, processes stop for a while (SIGSTOP), are killed and start again; of a witness only its file survives, and writing it can
//! fail.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tapeline_measure::Nanos;
use tapeline_plant::Seq;
use tapeline_plant::bridge::Epoch;
use tapeline_plant::bridge::lease::{
    JournalEnd, LeaseAnswer, LeaseHolder, LeaseRecord, LeaseRequest, LeaseSettings, LeaseStanding, Outlook,
    Witness, WitnessSettings,
};

use crate::chance::Chance;

const MS: u64 = 1_000_000;
const DURATION_NS: u64 = 1_000 * MS;
/// Faults begin until then; afterwards everything works.
const FAULTS_END_NS: u64 = 12_000 * MS;
const END_NS: u64 = 20_000 * MS;
const PLANTS: usize = 2;
const WITNESSES: usize = 3;
/// Clocks are as much too fast or too slow as the usual margin covers.
const DRIFT_PER_MILLE: u64 = 50;

/// A rule of the lease that is broken on purpose: the simulation must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenRule {
    /// A holder has no margin for the drift of clocks.
    NoMargin,
    /// A witness grants as soon as it was started again.
    NoWait,
    /// A witness does not write what it grants.
    NoFile,
}

/// What a world has come to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseWorldOutcome {
    /// The invariant that was broken.
    pub broken: Option<String>,
    /// Times that a plant got the lease.
    pub leaders: u64,
}

enum What {
    /// A plant has something to do, unless that was put off.
    Turn(usize, u64),
    /// A request reaches a witness.
    Request(usize, usize, Vec<u8>),
    /// An answer reaches a plant.
    Answer(usize, usize, Vec<u8>),
    Fault,
    StartPlant(usize),
    StartWitness(usize),
}

struct Event {
    at: u64,
    number: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// A clock that is set to anything and drifts.
#[derive(Clone, Copy)]
struct DriftingClock {
    begins: u64,
    per_mille: u64,
}

impl DriftingClock {
    fn at(self, now: u64) -> Nanos {
        Nanos(self.begins + now / 1_000 * self.per_mille)
    }

    /// The true time at which the clock shows `then`, or later.
    fn when(self, then: Nanos) -> u64 {
        (then.0.saturating_sub(self.begins) / self.per_mille).saturating_add(1).saturating_mul(1_000)
    }
}

struct PlantHost {
    clock: DriftingClock,
    holder: Option<LeaseHolder>,
    /// It is stopped until then; what arrives waits.
    stopped: u64,
    /// When it has something to do.
    due: u64,
    /// What its journal has.
    position: JournalEnd,
    /// The epoch in which it last held the lease.
    led: Option<Epoch>,
}

struct WitnessHost {
    clock: DriftingClock,
    witness: Option<Witness>,
    file: Vec<LeaseRecord>,
    stopped: u64,
    /// Its disk is full until then.
    full: u64,
}

struct LeaseWorld {
    now: u64,
    number: u64,
    agenda: BinaryHeap<Reverse<Event>>,
    chance: Chance,
    plants: [PlantHost; PLANTS],
    witnesses: [WitnessHost; WITNESSES],
    /// The links between plants and witnesses that are cut until then.
    cut: [[u64; WITNESSES]; PLANTS],
    /// The same between the plants.
    apart: u64,
    incarnations: u64,
    latest: Epoch,
    rule: Option<BrokenRule>,
    outcome: LeaseWorldOutcome,
}

/// Runs the world of a seed.
#[must_use]
pub fn lease(seed: u64, rule: Option<BrokenRule>) -> LeaseWorldOutcome {
    let mut chance = Chance::of(seed, 38);
    let mut clock = || DriftingClock {
        begins: chance.below(1 << 50),
        per_mille: chance.within(1_000 - DRIFT_PER_MILLE, 1_000 + DRIFT_PER_MILLE),
    };
    let plants = std::array::from_fn(|_| PlantHost {
        clock: clock(),
        holder: None,
        stopped: 0,
        due: 0,
        position: JournalEnd::default(),
        led: None,
    });
    let witnesses = std::array::from_fn(|_| WitnessHost {
        clock: clock(),
        witness: None,
        file: Vec::new(),
        stopped: 0,
        full: 0,
    });
    let mut world = LeaseWorld {
        now: 0,
        number: 0,
        agenda: BinaryHeap::new(),
        chance,
        plants,
        witnesses,
        cut: [[0; WITNESSES]; PLANTS],
        apart: 0,
        incarnations: 0,
        latest: Epoch(0),
        rule,
        outcome: LeaseWorldOutcome::default(),
    };
    for at in 0..WITNESSES {
        world.put(0, What::StartWitness(at));
    }
    for at in 0..PLANTS {
        world.put(0, What::StartPlant(at));
    }
    world.put(0, What::Fault);
    world.run();
    world.outcome
}

impl LeaseWorld {
    fn put(&mut self, after: u64, what: What) {
        self.number += 1;
        self.agenda.push(Reverse(Event { at: self.now + after, number: self.number, what }));
    }

    fn run(&mut self) {
        while let Some(Reverse(event)) = self.agenda.pop() {
            if event.at > END_NS || self.outcome.broken.is_some() {
                break;
            }
            self.now = event.at;
            self.happen(event.what);
            self.check();
        }
        let is_held = (0..PLANTS).any(|at| self.leads(at).is_some());
        if self.outcome.broken.is_none() && !is_held {
            self.outcome.broken = Some("everything works, and nobody holds the lease".to_owned());
        }
    }

    fn happen(&mut self, what: What) {
        match what {
            What::Fault => self.fault(),
            What::StartWitness(at) => {
                let witness = &mut self.witnesses[at];
                let mut now = witness.clock.at(self.now);
                if self.rule == Some(BrokenRule::NoWait) {
                    now = Nanos(now.0.saturating_sub(60 * DURATION_NS));
                }
                witness.witness = Some(Witness::new(WitnessSettings::default(), &witness.file, now));
            }
            What::StartPlant(at) => {
                self.incarnations += 1;
                let margin_ns = LeaseSettings::usual_margin_ns(DURATION_NS);
                let settings = LeaseSettings {
                    plant: "NY1".parse().unwrap_or_default(),
                    holder: ["a", "b"][at].parse().unwrap_or_default(),
                    incarnation: self.incarnations,
                    witnesses: WITNESSES,
                    duration_ns: DURATION_NS,
                    margin_ns: if self.rule == Some(BrokenRule::NoMargin) { 0 } else { margin_ns },
                    takes: false,
                };
                let host = &mut self.plants[at];
                host.holder = Some(LeaseHolder::new(settings, host.clock.at(self.now)));
                self.turn(at);
            }
            What::Turn(at, due) if due == self.plants[at].due => self.turn(at),
            What::Turn(..) => {}
            What::Request(plant, at, bytes) => self.request(plant, at, bytes),
            What::Answer(at, witness, bytes) => {
                let wait = self.plants[at].stopped.saturating_sub(self.now);
                if wait > 0 {
                    return self.put(wait, What::Answer(at, witness, bytes));
                }
                let host = &mut self.plants[at];
                if let (Some(holder), Some(answer)) = (&mut host.holder, LeaseAnswer::decode(&bytes)) {
                    holder.answer(witness, &answer, host.clock.at(self.now));
                    self.turn(at);
                }
            }
        }
    }

    /// A plant looks at its lease, and sends what is due.
    fn turn(&mut self, at: usize) {
        let wait = self.plants[at].stopped.saturating_sub(self.now);
        if wait > 0 {
            return self.turn_after(at, wait);
        }
        let leads = self.leads(at);
        let other = self.plants[1 - at].position;
        let is_joined = self.apart <= self.now && self.leads(1 - at).is_some();
        let host = &mut self.plants[at];
        let now = host.clock.at(self.now);
        match leads {
            // It numbers ticks.
            Some(epoch) => host.position = JournalEnd { epoch, last: Seq(host.position.last.0 + 1) },
            // It follows.
            None if is_joined => host.position = other,
            None => {}
        }
        let Some(holder) = &mut host.holder else { return };
        let next_epoch = Epoch(host.position.epoch.0 + 1);
        let outlook = Outlook { position: host.position, next_epoch };
        let mut requests = Vec::new();
        while let Some((witness, request)) = holder.poll(&outlook, now) {
            requests.push((witness, request.encode().to_vec()));
        }
        let due = host.clock.when(holder.next_due()).max(self.now + 1_000);
        self.turn_after(at, due - self.now);
        for (witness, bytes) in requests {
            self.send(at, witness, |bytes| What::Request(at, witness, bytes), &bytes);
        }
    }

    fn turn_after(&mut self, at: usize, after: u64) {
        let due = self.now + after;
        self.plants[at].due = due;
        self.put(after, What::Turn(at, due));
    }

    fn request(&mut self, plant: usize, at: usize, bytes: Vec<u8>) {
        let wait = self.witnesses[at].stopped.saturating_sub(self.now);
        if wait > 0 {
            return self.put(wait, What::Request(plant, at, bytes));
        }
        let (is_faulty, rule) = (self.now < FAULTS_END_NS, self.rule);
        let dies = is_faulty && self.chance.one_in(400);
        let host = &mut self.witnesses[at];
        let (Some(witness), Some(request)) = (&mut host.witness, LeaseRequest::decode(&bytes)) else {
            return;
        };
        let (file, is_full) = (&mut host.file, host.full > self.now);
        let answer = witness.take(&request, host.clock.at(self.now), |records| {
            if rule == Some(BrokenRule::NoFile) {
                return true;
            }
            if !is_full {
                *file = records.to_vec();
            }
            !is_full
        });
        if dies {
            // Killed behind the write, before the answer.
            return self.kill_witness(at);
        }
        self.send(plant, at, |bytes| What::Answer(plant, at, bytes), &answer.encode());
    }

    /// Sends a datagram between a plant and a witness.
    fn send(&mut self, plant: usize, witness: usize, what: impl Fn(Vec<u8>) -> What, bytes: &[u8]) {
        let is_faulty = self.now < FAULTS_END_NS;
        let copies = match self.chance.below(100) {
            0..10 if is_faulty => 0,
            10..15 if is_faulty => 2,
            _ => 1,
        };
        if self.cut[plant][witness] > self.now {
            return;
        }
        for _ in 0..copies {
            let is_late = is_faulty && self.chance.one_in(10);
            let most = match self.chance.below(2) {
                _ if !is_late => 5 * MS,
                0 => 2 * DURATION_NS,
                // Within the time in which an answer is still wanted.
                _ => DURATION_NS / 3,
            };
            let delay = self.chance.below(most);
            self.put(delay, what(bytes.to_vec()));
        }
    }

    fn kill_witness(&mut self, at: usize) {
        if self.witnesses[at].witness.take().is_some() {
            let after = self.chance.below(DURATION_NS);
            self.put(after, What::StartWitness(at));
        }
    }

    fn fault(&mut self) {
        if self.now >= FAULTS_END_NS {
            return;
        }
        let (plant, witness) = (self.chance.index(PLANTS), self.chance.index(WITNESSES));
        let until = (self.now + self.chance.below(3 * DURATION_NS)).min(FAULTS_END_NS);
        match self.chance.below(8) {
            0 => self.kill_witness(witness),
            1 => self.witnesses[witness].stopped = until,
            2 => self.witnesses[witness].full = until,
            3 => {
                if self.plants[plant].holder.take().is_some() {
                    let after = self.chance.below(2 * DURATION_NS);
                    self.put(after, What::StartPlant(plant));
                }
            }
            4 => self.plants[plant].stopped = until,
            5 => self.cut[plant][witness] = until,
            6 => self.cut[plant] = [until; WITNESSES],
            _ => self.apart = until,
        }
        let next = self.chance.below(800 * MS);
        self.put(next, What::Fault);
    }

    /// The epoch in which a plant numbers, by its own clock, even while it is stopped.
    fn leads(&self, at: usize) -> Option<Epoch> {
        let host = &self.plants[at];
        match host.holder.as_ref()?.standing(host.clock.at(self.now)) {
            LeaseStanding::Leader(epoch, _) => Some(epoch),
            _ => None,
        }
    }

    fn check(&mut self) {
        let leads: [_; PLANTS] = std::array::from_fn(|at| self.leads(at));
        if let [Some(one), Some(other)] = leads {
            self.outcome.broken =
                Some(format!("at {} ns both plants hold the lease: {one:?} and {other:?}", self.now));
        }
        for (host, epoch) in self.plants.iter_mut().zip(leads) {
            let Some(epoch) = epoch.filter(|epoch| host.led != Some(*epoch)) else { continue };
            host.led = Some(epoch);
            self.outcome.leaders += 1;
            if epoch <= self.latest {
                self.outcome.broken =
                    Some(format!("at {} ns {epoch:?} is held after {:?}", self.now, self.latest));
            }
            self.latest = epoch;
        }
    }
}
