//! The asking end: who listens, how long a round trip takes, what size passes whole, and what arrives at each rate.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::ControlFlow;
use std::time::Duration;

use tapeline_console::failure::{Hinted, of_socket};
use tapeline_console::output::Progress;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos, Pacer, Waiting};
use tapeline_wire::Error;
use tapeline_wire::udp::{Batch, ReceiveOptions, SendOptions, UdpReceiver, UdpSender};

use super::Probe;
use super::datagram::{COUNTS, Head, LEAST_BYTES, ProbeKind, read_counts};
use super::report::{Listener, Probed, RateStep, RoundTrip};

/// Listeners of a group that are told apart; more of them are not measured.
const MOST_LISTENERS: usize = 64;
/// Round trips, and the time between two.
pub(super) const PINGS: u64 = 100;
pub(super) const PING_EVERY: Duration = Duration::from_millis(5);
/// How often a question is asked before its answer counts as lost.
const TRIES: usize = 4;
/// How long an answer may take, as long as round trips do not say otherwise.
const ANSWER_TIME: Duration = Duration::from_millis(200);
/// How long datagrams of a step may still be on their way.
const SETTLE: Duration = Duration::from_millis(300);
/// Datagrams that are sent by one system call.
const BATCH: usize = 64;
/// The longest payload of UDP over IPv4.
const LONGEST: usize = 65_507;
/// How long a full socket may delay a datagram before the next is due.
const FULL_SOCKET: Duration = Duration::from_millis(2);

/// The asking end, with its sockets.
pub(super) struct Asker {
    to: SocketAddrV4,
    sender: UdpSender,
    answers: UdpReceiver,
    batch: Batch,
    clock: Clock,
    measurement: u64,
    buffers: Vec<u8>,
}

/// An answer: who gave it, its head, its counts, and when it came.
type Answer = (SocketAddrV4, Head, Option<[u64; COUNTS]>, Nanos);

impl Asker {
    pub(super) fn open(to: SocketAddrV4, probe: &Probe) -> anyhow::Result<Self> {
        let options =
            SendOptions { interface: probe.interface.clone(), ttl: probe.ttl, ..SendOptions::new(to) };
        let sender = UdpSender::open(&options).map_err(of_socket)?;
        sender.forbid_fragments().map_err(of_socket)?;
        let own = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let options = ReceiveOptions { interface: probe.interface.clone(), ..ReceiveOptions::new(own) };
        let answers = UdpReceiver::open(&options).map_err(of_socket)?;
        let clock = Clock::calibrate();
        let measurement = clock.now().0 ^ u64::from(std::process::id()) << 48;
        let (batch, buffers) = (Batch::new(BATCH, 2_048), vec![0; BATCH * LONGEST]);
        Ok(Self { to, sender, answers, batch, clock, measurement, buffers })
    }

    /// Measures everything.
    pub(super) fn run(mut self, probe: &Probe, stop: &Stop) -> anyhow::Result<Probed> {
        let found = self.find(probe.patience, stop)?;
        let round_trips = self.round_trips(&found, stop)?;
        let slowest =
            round_trips.values().filter_map(|trips| trips.last()).max().copied().unwrap_or_default();
        let answer_time = ANSWER_TIME.max(Duration::from_nanos(slowest.saturating_mul(4)));
        let largest = self.largest(found.len(), answer_time, stop)?;
        let size = usize::from(probe.size).min(largest);
        let mut steps: BTreeMap<SocketAddrV4, Vec<RateStep>> = BTreeMap::new();
        for (rate, number) in probe.rates.iter().zip(1..) {
            let sent = self.send_step(number, *rate, (size, probe.step), stop)?;
            for (listener, counts) in self.ask_counts(number, found.len(), answer_time, stop)? {
                steps.entry(listener).or_default().push(RateStep::new(*rate, size, &sent, counts));
            }
            if stop.requested() {
                break;
            }
        }
        for _ in 0..TRIES {
            self.say(ProbeKind::Over, 0, 0, LEAST_BYTES)?;
            stop.sleep(PING_EVERY);
        }
        let listeners = found.iter().map(|address| Listener {
            address: *address,
            round_trip: RoundTrip::new(round_trips.get(address).map_or(&[], Vec::as_slice), PINGS),
            steps: steps.remove(address).unwrap_or_default(),
        });
        let listeners = listeners.collect();
        Ok(Probed { to: self.to, from: self.sender.local_address(), largest_datagram: largest, listeners })
    }

    /// Finds the listeners: waits for the first, and then a little for others.
    fn find(&mut self, patience: Duration, stop: &Stop) -> anyhow::Result<Vec<SocketAddrV4>> {
        let until = self.clock.now() + patience.as_nanos() as u64;
        let mut found = Vec::new();
        while found.is_empty() && self.clock.now() < until && !stop.requested() {
            self.say(ProbeKind::Ping, 0, 0, LEAST_BYTES)?;
            self.answers(ANSWER_TIME, |(from, ..)| {
                if !found.contains(&from) && found.len() < MOST_LISTENERS {
                    found.push(from);
                }
                ControlFlow::Continue(())
            })?;
        }
        if found.is_empty() {
            let what = format!("nobody answers at {}", self.to);
            let hint = format!(
                "start `tapeline bridge probe --listen {} --interface ADDRESS` at the other end; a firewall may block either way",
                self.to
            );
            return Err(Hinted::new(what, hint).into());
        }
        found.sort();
        Ok(found)
    }

    /// Measures round trips, one at a time; returns those of each listener, sorted, in ns.
    fn round_trips(
        &mut self,
        found: &[SocketAddrV4],
        stop: &Stop,
    ) -> anyhow::Result<BTreeMap<SocketAddrV4, Vec<u64>>> {
        let mut trips: BTreeMap<SocketAddrV4, Vec<u64>> = BTreeMap::new();
        for seq in 1..=PINGS {
            if stop.requested() {
                break;
            }
            let asked = self.clock.now();
            self.say(ProbeKind::Ping, 0, seq, LEAST_BYTES)?;
            let mut heard = Vec::new();
            self.answers(ANSWER_TIME, |(from, head, _, came)| {
                if head.seq == seq && found.contains(&from) && !heard.contains(&from) {
                    trips.entry(from).or_default().push(came.since(asked).unsigned_abs());
                    heard.push(from);
                }
                if heard.len() == found.len() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            stop.sleep(PING_EVERY);
        }
        trips.values_mut().for_each(|trips| trips.sort_unstable());
        Ok(trips)
    }

    /// Finds the largest datagram that arrives at all listeners without being split.
    fn largest(&mut self, listeners: usize, answer_time: Duration, stop: &Stop) -> anyhow::Result<usize> {
        let (mut passes, mut fails) = (LEAST_BYTES, LONGEST + 1);
        while fails - passes > 1 && !stop.requested() {
            let size = (passes + fails) / 2;
            if self.passes(size, listeners, answer_time)? { passes = size } else { fails = size }
        }
        Ok(passes)
    }

    fn passes(&mut self, size: usize, listeners: usize, answer_time: Duration) -> anyhow::Result<bool> {
        let seq = PINGS + size as u64;
        let mut heard = Vec::new();
        for _ in 0..TRIES {
            if !self.say(ProbeKind::Ping, 0, seq, size)? {
                return Ok(false);
            }
            self.answers(answer_time, |(from, head, ..)| {
                if head.seq == seq && !heard.contains(&from) {
                    heard.push(from);
                }
                if heard.len() >= listeners { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if heard.len() >= listeners {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends datagrams at a rate. Returns how many went out and how many the socket did not take, and the time.
    fn send_step(
        &mut self,
        step: u32,
        rate: u64,
        (size, time): (usize, Duration),
        stop: &Stop,
    ) -> anyhow::Result<StepSent> {
        let mut progress = Progress::over(&format!("{rate} datagrams/s"), time);
        let total =
            Pacer::per_second(rate, Nanos(0)).due_by(Nanos(time.as_nanos() as u64)).saturating_sub(1).max(1);
        let head = Head {
            measurement: self.measurement,
            seq: 0,
            step,
            port: self.answers.local_address().port(),
            kind: ProbeKind::Data,
        };
        let pacer = Pacer::per_second(rate, self.clock.now());
        let (start, mut next, mut unsent) = (self.clock.now(), 0, 0);
        while next < total && !stop.requested() {
            let now = pacer.wait(&self.clock, pacer.due(next), Waiting::Yield);
            let count = (pacer.due_by(now).min(total) - next).min(BATCH as u64);
            for (datagram, seq) in self.buffers.chunks_exact_mut(size).zip(next..next + count) {
                Head { seq, ..head }.write(datagram);
            }
            let mut left = self.buffers.chunks_exact(size).take(count as usize);
            let sent = self.sender.send_many(left.clone()).map_err(of_socket)?;
            if sent.count < count as usize {
                self.sender.wait(FULL_SOCKET);
                if sent.count > 0 {
                    left.nth(sent.count - 1);
                }
                let again = self.sender.send_many(left).map_err(of_socket)?;
                unsent += count - (sent.count + again.count) as u64;
            }
            next += count;
            progress.set_elapsed();
        }
        Ok(StepSent { count: next - unsent, unsent, ns: self.clock.now().since(start).unsigned_abs() })
    }

    /// Asks for the counts of a step.
    fn ask_counts(
        &mut self,
        step: u32,
        listeners: usize,
        answer_time: Duration,
        stop: &Stop,
    ) -> anyhow::Result<BTreeMap<SocketAddrV4, [u64; COUNTS]>> {
        stop.sleep(SETTLE);
        let mut counted = BTreeMap::new();
        for _ in 0..TRIES {
            self.say(ProbeKind::Ask, step, 0, LEAST_BYTES)?;
            self.answers(answer_time, |(from, head, counts, _)| {
                if let Some(counts) = counts.filter(|_| head.step == step) {
                    counted.insert(from, counts);
                }
                if counted.len() >= listeners { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if counted.len() >= listeners {
                break;
            }
        }
        Ok(counted)
    }

    /// Sends one datagram. Returns `false` if it is too long for the path.
    fn say(&mut self, kind: ProbeKind, step: u32, seq: u64, size: usize) -> anyhow::Result<bool> {
        let port = self.answers.local_address().port();
        let datagram = &mut self.buffers[..size.max(LEAST_BYTES)];
        Head { measurement: self.measurement, seq, step, port, kind }.write(datagram);
        match self.sender.send(datagram) {
            Ok(_) => Ok(true),
            Err(Error::TooLong { .. }) => Ok(false),
            Err(error) => Err(of_socket(error)),
        }
    }

    /// Passes on answers to this measurement for a time, or until `each` breaks.
    fn answers(
        &mut self,
        time: Duration,
        mut each: impl FnMut(Answer) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        let until = self.clock.now() + time.as_nanos() as u64;
        loop {
            let now = self.clock.now();
            let Some(left) = until.0.checked_sub(now.0).filter(|left| *left > 0) else { return Ok(()) };
            self.answers.wait(Duration::from_nanos(left));
            self.answers.receive(&mut self.batch).map_err(of_socket)?;
            let now = self.clock.now();
            for datagram in self.batch.iter() {
                let Some(head) = Head::read(datagram.bytes) else { continue };
                if head.measurement != self.measurement
                    || !matches!(head.kind, ProbeKind::Pong | ProbeKind::Counts)
                {
                    continue;
                }
                let counts = read_counts(datagram.bytes).filter(|_| head.kind == ProbeKind::Counts);
                if each((datagram.source, head, counts, datagram.received.unwrap_or(now))).is_break() {
                    return Ok(());
                }
            }
        }
    }
}

/// What was sent in a step.
pub(super) struct StepSent {
    pub(super) count: u64,
    pub(super) unsent: u64,
    pub(super) ns: u64,
}
