//! Hosts: a plant that numbers ticks, several plants below that follow it, and the links between them, from one seed.
//!
//! Real are the two ends of the bridge (`Packer`, `Follower`), their re-requests and answers, the messages of the catch-up protocol, and the epochs. The links
//! lose, repeat, delay and reorder datagrams, and are cut; connections break at any byte; plants are killed and start again, with and without a
//! journal. What a plant below does with an outcome (its ring ends, its journal is moved aside) is the world's own, as in the loop of `node`.

mod above;
mod below;
mod plan;

use tapeline_feed::line::Line;
use tapeline_measure::Nanos;
use tapeline_plant::Seq;

use crate::agenda::Agenda;
use crate::chance::Chance;
use crate::invariants::{Broken, Wrong, broken};
use crate::trace::mix;
use above::Above;
use below::Below;
pub(crate) use plan::HostsPlan;
use plan::{MS, SECOND};

/// What happens at a time.
#[derive(Debug)]
enum Event {
    /// The plant above numbers some ticks.
    Number,
    /// Its journal has them: they are sent.
    Send,
    Heartbeat,
    KillAbove,
    StartAbove,
    KillBelow(usize),
    StartBelow(usize),
    /// A plant below looks at its lines.
    Look(usize),
    /// A datagram of a line arrives at a plant below.
    Datagram {
        below: usize,
        line: Line,
        bytes: Vec<u8>,
    },
    /// A re-request arrives at the plant above, and its answer at the plant below.
    Request {
        below: usize,
        bytes: Vec<u8>,
    },
    Answer {
        below: usize,
        bytes: Vec<u8>,
    },
    /// A request to catch up arrives at the plant above, on a connection.
    CatchUp {
        below: usize,
        connection: u64,
        bytes: Vec<u8>,
    },
    /// Bytes arrive on a connection of a plant below; without any the connection has ended.
    Past {
        below: usize,
        connection: u64,
        bytes: Vec<u8>,
    },
}

/// What happened in a world of hosts, summed up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostsTotals {
    /// Ticks that the plant above has numbered.
    pub numbered: u64,
    /// Ticks that plants below have delivered.
    pub delivered: u64,
    /// Ticks that came from the catch-up server.
    pub caught_up: u64,
    /// Re-requests.
    pub requests: u64,
    /// Times that a plant below left its lines.
    pub left_lines: u64,
    /// Times that a ring below began again with another epoch.
    pub resequenced: u64,
    /// Times that the ticks of a plant below were not continued above.
    pub gone: u64,
    /// Datagrams that the links lost, or a cut held back.
    pub lost: u64,
}

impl HostsTotals {
    /// Adds the totals of another world.
    pub fn add(&mut self, other: &Self) {
        self.numbered += other.numbered;
        self.delivered += other.delivered;
        self.caught_up += other.caught_up;
        self.requests += other.requests;
        self.left_lines += other.left_lines;
        self.resequenced += other.resequenced;
        self.gone += other.gone;
        self.lost += other.lost;
    }
}

/// The outcome of a world of hosts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HostsOutcome {
    /// A hash of everything that was delivered, in order.
    pub hash: u64,
    /// What happened.
    pub totals: HostsTotals,
    /// The invariant that did not hold, if any.
    pub broken: Option<Broken>,
}

/// Runs a world of hosts.
pub(crate) fn run(plan: HostsPlan) -> HostsOutcome {
    let mut world = World::new(plan);
    let broken = world.run().err().map(|(invariant, what)| Broken { invariant, at_ns: world.now, what });
    let mut totals = world.totals;
    totals.numbered = world.above.numbered();
    for below in &world.belows {
        below.add_to(&mut totals);
    }
    HostsOutcome { hash: world.belows.iter().fold(0, |hash, below| mix(hash, below.hash)), totals, broken }
}

struct World {
    plan: HostsPlan,
    now: u64,
    agenda: Agenda<Event>,
    chance: Chance,
    above: Above,
    belows: Vec<Below>,
    totals: HostsTotals,
}

impl World {
    fn new(plan: HostsPlan) -> Self {
        let mut agenda = Agenda::new();
        agenda.put(0, Event::Number);
        agenda.put(1, Event::Heartbeat);
        for (at, until) in &plan.kills_above {
            agenda.put(*at, Event::KillAbove);
            agenda.put(*until, Event::StartAbove);
        }
        for (number, below) in plan.belows.iter().enumerate() {
            agenda.put(below.starts, Event::StartBelow(number));
            for (at, until) in &below.kills {
                agenda.put(*at, Event::KillBelow(number));
                agenda.put(*until, Event::StartBelow(number));
            }
        }
        let belows = plan.belows.iter().map(Below::new).collect();
        let above = Above::new(&plan);
        Self {
            now: 0,
            agenda,
            chance: Chance::of(plan.seed, 2),
            above,
            belows,
            totals: HostsTotals::default(),
            plan,
        }
    }

    fn run(&mut self) -> Result<(), Wrong> {
        while let Some((at, event)) = self.agenda.next() {
            self.now = at;
            if at >= self.plan.ends {
                return self.end();
            }
            self.happen(event)?;
        }
        broken!(Liveness, "nothing happens any more")
    }

    fn happen(&mut self, event: Event) -> Result<(), Wrong> {
        let now = Nanos(self.now);
        match event {
            Event::Number => {
                if self.now < self.plan.last_tick {
                    self.agenda.put(self.now + self.chance.within(1, self.plan.most_between), Event::Number);
                }
                let burst = if self.chance.one_in(20) { self.plan.burst } else { 3 };
                let count = self.chance.within(1, burst);
                if self.above.number(count, &mut self.chance) {
                    self.agenda.put(self.now + self.chance.below(2 * MS), Event::Send);
                }
            }
            Event::Send => self.above.keep().into_iter().for_each(|datagram| self.send(&datagram)),
            Event::Heartbeat => {
                self.agenda.put(self.now + 100 * MS, Event::Heartbeat);
                if let Some(heartbeat) = self.above.heartbeat() {
                    self.send(&heartbeat);
                }
            }
            Event::KillAbove => self.above.kill(),
            Event::StartAbove => self.above.start(),
            Event::KillBelow(number) => self.belows[number].kill(),
            Event::StartBelow(number) => {
                self.belows[number].start();
                self.agenda.put(self.now, Event::Look(number));
            }
            Event::Look(number) => self.look(number)?,
            Event::Datagram { below, line, bytes } => {
                self.belows[below].datagram(line, &bytes, now, &self.above)?;
            }
            Event::Request { below, bytes } => {
                if let Some(answer) = self.above.answer(&bytes, now)
                    && let Some(at) = self.arrives(below)
                {
                    self.agenda.put(at, Event::Answer { below, bytes: answer });
                }
            }
            Event::Answer { below, bytes } => self.belows[below].answer(&bytes, now, &self.above)?,
            Event::CatchUp { below, connection, bytes } => self.serve(below, connection, &bytes),
            Event::Past { below, connection, bytes } => {
                self.belows[below].past(connection, &bytes, now, &self.above)?;
            }
        }
        Ok(())
    }

    /// Sends a datagram on every line to every plant below.
    fn send(&mut self, datagram: &[u8]) {
        for below in 0..self.belows.len() {
            for line in 0..self.plan.lines {
                let Some(line) = Line::new(line) else { continue };
                let copies = if self.chance.per_mille(self.plan.belows[below].twice) { 2 } else { 1 };
                for _ in 0..copies {
                    if let Some(at) = self.arrives(below) {
                        self.agenda.put(at, Event::Datagram { below, line, bytes: datagram.to_vec() });
                    }
                }
            }
        }
    }

    /// When a datagram between a plant below and the plant above arrives that is sent now; `None` if it is lost.
    fn arrives(&mut self, below: usize) -> Option<u64> {
        let link = &self.plan.belows[below];
        let is_cut = link.is_cut(self.now);
        let is_bad = self.now < self.plan.calm;
        if is_cut || is_bad && self.chance.per_mille(link.loss) {
            self.totals.lost += 1;
            return None;
        }
        let late = if is_bad && self.chance.per_mille(link.late) { 20 * MS } else { 0 };
        Some(self.now + self.chance.within(link.delay.0, link.delay.1) + late)
    }

    fn look(&mut self, number: usize) -> Result<(), Wrong> {
        let Some(next_look) = self.belows[number].looks_again(self.now) else { return Ok(()) };
        self.agenda.put(next_look, Event::Look(number));
        let now = Nanos(self.now);
        for bytes in self.belows[number].requests(now) {
            if let Some(at) = self.arrives(number) {
                self.agenda.put(at, Event::Request { below: number, bytes });
            }
        }
        if let Some((connection, bytes)) = self.belows[number].catch_up(now) {
            let link = &self.plan.belows[number];
            let at = self.now + self.chance.within(link.delay.0, link.delay.1);
            if link.is_cut(self.now) {
                let at = link.end_of_cut(self.now);
                self.agenda.put(at, Event::Past { below: number, connection, bytes: Vec::new() });
            } else {
                self.agenda.put(at, Event::CatchUp { below: number, connection, bytes });
            }
        }
        Ok(())
    }

    /// Answers a request to catch up: in pieces, of which a cut, or a death of the plant above, leaves the first ones.
    fn serve(&mut self, below: usize, connection: u64, request: &[u8]) {
        let link = &self.plan.belows[below];
        let mut at = self.now;
        let mut bytes = self.above.catch_up(request);
        let is_whole = self.now >= self.plan.calm || !self.chance.one_in(10);
        if !is_whole {
            bytes.truncate(self.chance.index(bytes.len() + 1));
        }
        let mut rest = &bytes[..];
        let until =
            self.plan.kills_above.iter().map(|(at, _)| *at).find(|kill| *kill > self.now).unwrap_or(u64::MAX);
        let mut arrived = true;
        while !rest.is_empty() {
            at += self.chance.within(link.delay.0, link.delay.1);
            if at >= until || link.is_cut(at) {
                arrived = false;
                break;
            }
            let (piece, behind) =
                rest.split_at(self.chance.within(1, 20_000).min(rest.len() as u64) as usize);
            self.agenda.put(at, Event::Past { below, connection, bytes: piece.to_vec() });
            rest = behind;
        }
        if bytes.is_empty() || !is_whole || !arrived {
            let at = link.end_of_cut(at) + MS;
            self.agenda.put(at, Event::Past { below, connection, bytes: Vec::new() });
        }
    }

    /// All faults have been over for a while: every plant below has what the plant above has.
    fn end(&self) -> Result<(), Wrong> {
        for (number, below) in self.belows.iter().enumerate() {
            let (has, wanted) = (below.standing(), self.above.standing());
            if has != wanted {
                let quiet = (self.plan.ends - self.plan.calm) / SECOND;
                broken!(
                    Liveness,
                    "after {quiet} s without faults plant {number} below is at {has:?}, the plant above at {wanted:?}"
                );
            }
        }
        Ok(())
    }
}

/// The place of a plant in the sequence: its epoch, its last tick, and a hash of all ticks up to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    epoch: u64,
    last: Seq,
    chain: u64,
}
