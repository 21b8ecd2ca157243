//! One round: runs three threads and combines their results.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;

use serde::Serialize;
use tapeline_console::failure::of_socket;
use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos, Percentiles, Recorder};
use tapeline_wire::pool::{self, Pages, PoolSettings};
use tapeline_wire::udp::{ReceiveOptions, SendOptions, UdpReceiver, UdpSender};

use super::decoding::{Decoded, DecodingProgress, Socket, decode};
use super::feeder::{Fed, feed};
use super::gun::Gun;
use super::plan::{BurstPlan, Pool, Told};
use super::receiving::{Taken, receive};
use super::stream::Timetable;
use crate::jitter::joined;

/// Delay from the creation of the threads to the first datagram.
const START_NS: u64 = 20_000_000;
/// The steady backlog is the level not exceeded in this share of the samples before the hold. The remaining
/// samples are moments at which the machine did something else.
const STEADY: f64 = 0.9;
/// Length of the backlog curve after the drain, as a share of the drain.
const TAIL: f64 = 0.5;
/// Number of points in the backlog curve.
const POINTS: usize = 400;

/// The result of one round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct BurstOutcome {
    pub(super) pool: Pool,
    pub(super) round: u32,
    /// Time from the release until the backlog is back at its steady level; `None` if it never was.
    pub(super) drain_ns: Option<u64>,
    /// Number of withheld datagrams at the release.
    pub(super) held: u64,
    /// The backlog (datagrams due but not decoded) in the steady state before the hold.
    pub(super) steady_backlog: u64,
    pub(super) peak_backlog: u64,
    /// Requests that the pool served with an empty slot.
    pub(super) hits: u64,
    /// Requests for which the pool had no empty slot.
    pub(super) misses: u64,
    /// Number of times at which no slot was free.
    pub(super) exhaustions: u64,
    /// Datagrams that the pool's policy dropped.
    pub(super) dropped: u64,
    /// The largest number of slots in use.
    pub(super) high_water: u64,
    /// Memory pages of the slots: `ordinary`, `advised` (huge pages were requested) or `reserved` (from the
    /// reserved huge pages).
    pub(super) pages: &'static str,
    pub(super) kernel_drops: u64,
    /// The buffer of the receiving socket in bytes, as granted by the kernel.
    pub(super) receive_buffer: usize,
    pub(super) sent_messages: u64,
    pub(super) lost_messages: u64,
    pub(super) repeated_messages: u64,
    pub(super) malformed: u64,
    /// Whether the final books are those of the feed; `true` if no books were built.
    pub(super) books_are_right: bool,
    /// Number of times that the feeder's socket was full.
    pub(super) back_pressure: u64,
    /// Whether the kernel split sends into datagrams.
    pub(super) segmented: bool,
    /// Time from the release until the kernel had accepted all datagrams withheld by the feeder.
    pub(super) shot_ns: Option<u64>,
    /// Latency from due to sent, before the hold.
    pub(super) sender_lateness: Percentiles,
    /// Latency from due to decoded, before the hold.
    pub(super) before: Percentiles,
    /// The same for live messages due between release and drain.
    pub(super) meanwhile: Percentiles,
    /// The same for live messages due after the drain.
    pub(super) after: Percentiles,
    /// Points of nanoseconds since the release, and backlog.
    #[serde(skip)]
    pub(super) backlog: Vec<(i64, u64)>,
    /// The distributions themselves.
    #[serde(skip)]
    pub(super) recorders: Recorders,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Recorders {
    pub(super) before: Recorder,
    pub(super) meanwhile: Recorder,
}

/// Opens a receiving socket and a socket that sends to it.
pub(super) fn sockets(plan: &BurstPlan) -> anyhow::Result<(UdpReceiver, Gun)> {
    let local = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    let options = ReceiveOptions { receive_buffer: plan.receive_buffer, ..ReceiveOptions::new(local) };
    let receiver = UdpReceiver::open(&options).map_err(of_socket)?;
    let sender = UdpSender::open(&SendOptions::new(receiver.local_address())).map_err(of_socket)?;
    Ok((receiver, Gun::new(sender, plan.segmented)))
}

impl BurstOutcome {
    /// Runs one round; `None` if the user asked to stop.
    pub(super) fn measure(
        plan: &BurstPlan,
        pool: Pool,
        round: u32,
        clock: &Clock,
        stop: &Stop,
    ) -> anyhow::Result<Option<Self>> {
        let (receiver, gun) = sockets(plan)?;
        let timetable = Timetable::new(plan.rate_hz, plan.stream.messages, clock.now() + START_NS);
        let told = Told::default();
        let (fed, found) = thread::scope(|scope| {
            let feeding = scope.spawn(|| -> anyhow::Result<Fed> {
                plan.bind(0)?;
                feed(plan, gun, &timetable, clock, &told, stop).map_err(of_socket)
            });
            let found = take(plan, pool, receiver, &timetable, clock, &told);
            if found.is_err() {
                told.end();
            }
            (joined(feeding), found)
        });
        let (fed, (taken, decoded)) = (fed?, found?);
        if stop.requested() {
            return Ok(None);
        }
        Ok(Some(Self::of(plan, pool, round, &timetable, &fed, &taken, decoded)))
    }

    fn of(
        plan: &BurstPlan,
        pool: Pool,
        round: u32,
        timetable: &Timetable,
        fed: &Fed,
        taken: &Taken,
        decoded: Decoded,
    ) -> Self {
        let (released, held) = match (taken.released, fed.released) {
            (Some(of_socket), _) => of_socket,
            (None, Some(of_sender)) => (of_sender, plan.hold),
            // The feed ended before the hold: nothing was withheld.
            (None, None) => (timetable.due(plan.end_held()), 0),
        };
        let looks = Looks { notes: &decoded.notes, timetable };
        let steady = looks.steady(timetable.due(plan.warm()), timetable.due(plan.first_held()));
        let drained = looks.drained(released, steady);
        let until = drained.unwrap_or(Nanos(u64::MAX));
        let (mut meanwhile, mut after) = (Recorder::new(), Recorder::new());
        // Datagrams due before the release waited with the withheld ones.
        for live in decoded.behind.iter().filter(|live| live.due >= released) {
            let of = if live.due <= until { &mut meanwhile } else { &mut after };
            of.record(live.latency_ns);
        }
        let drain_ns = drained.map(|drained| drained.0.saturating_sub(released.0));
        let account = &decoded.account;
        let sent_messages = fed.total * plan.stream.messages;
        Self {
            pool,
            round,
            drain_ns,
            held,
            steady_backlog: steady,
            peak_backlog: looks.peak(timetable.due(plan.first_held()), released, until),
            hits: taken.counters.hits,
            misses: taken.counters.misses,
            exhaustions: taken.counters.exhaustions,
            dropped: taken.counters.dropped,
            high_water: taken.counters.high_water,
            pages: match taken.pages {
                Pages::Ordinary => "ordinary",
                Pages::Advised => "advised",
                Pages::Reserved => "reserved",
            },
            kernel_drops: taken.kernel_drops,
            receive_buffer: taken.receive_buffer,
            sent_messages,
            lost_messages: sent_messages.saturating_sub(account.messages),
            repeated_messages: account.repeated,
            malformed: account.malformed,
            books_are_right: account.books_are_right(&plan.stream),
            back_pressure: fed.blocked,
            segmented: fed.segmented,
            shot_ns: fed.shot.map(|shot| shot.0.saturating_sub(released.0)),
            sender_lateness: fed.lateness.percentiles(),
            before: decoded.before.percentiles(),
            meanwhile: meanwhile.percentiles(),
            after: after.percentiles(),
            backlog: looks.points(released, drain_ns),
            recorders: Recorders { before: decoded.before, meanwhile },
        }
    }
}

/// Receives and decodes, in two threads with a pool between them, or in one thread without a pool.
fn take(
    plan: &BurstPlan,
    pool: Pool,
    receiver: UdpReceiver,
    timetable: &Timetable,
    clock: &Clock,
    told: &Told,
) -> anyhow::Result<(Taken, Decoded)> {
    let Some(kind) = pool.kind() else {
        return thread::scope(|scope| {
            joined(scope.spawn(|| {
                plan.bind(2)?;
                let mut socket = Socket::new(receiver);
                let decoded = decode(plan, &mut socket, timetable, clock, told).map_err(of_socket)?;
                Ok((Taken::of(&mut socket.receiver, None), decoded))
            }))
        });
    };
    let settings = PoolSettings {
        kind,
        slots: plan.slots,
        policy: plan.policy.policy(),
        huge_pages: plan.huge_pages,
        ..PoolSettings::default()
    };
    let (intake, mut outlet) = pool::open(&settings).map_err(of_socket)?;
    thread::scope(|scope| {
        let receiving = scope.spawn(|| -> anyhow::Result<Taken> {
            plan.bind(1)?;
            receive(plan, receiver, intake, clock, told).map_err(of_socket)
        });
        let decoding = scope.spawn(move || -> anyhow::Result<Decoded> {
            plan.bind(2)?;
            decode(plan, &mut outlet, timetable, clock, told).map_err(of_socket)
        });
        let (taken, decoded) = (joined(receiving), joined(decoding));
        Ok((taken?, decoded?))
    })
}

/// The decoder's notes compared with the timetable.
struct Looks<'a> {
    notes: &'a [DecodingProgress],
    timetable: &'a Timetable,
}

impl Looks<'_> {
    /// Number of datagrams that are due but not decoded.
    fn backlog(&self, note: &DecodingProgress) -> u64 {
        self.timetable.due_by(note.at).saturating_sub(note.progress)
    }

    /// The backlog that 90 % of the samples between two times do not exceed.
    fn steady(&self, from: Nanos, to: Nanos) -> u64 {
        let looks = self.notes.iter().filter(|note| (from..to).contains(&note.at));
        let mut backlogs: Vec<u64> = looks.map(|note| self.backlog(note)).collect();
        backlogs.sort_unstable();
        let at = ((backlogs.len() as f64 * STEADY) as usize).min(backlogs.len().saturating_sub(1));
        backlogs.get(at).copied().unwrap_or(0).max(1)
    }

    fn drained(&self, released: Nanos, steady: u64) -> Option<Nanos> {
        let behind = self.notes.iter().filter(|note| note.at >= released);
        behind.into_iter().find(|note| self.backlog(note) <= steady).map(|note| note.at)
    }

    fn peak(&self, from: Nanos, released: Nanos, to: Nanos) -> u64 {
        let looks = self.notes.iter().filter(|note| (from..=to).contains(&note.at));
        looks.map(|note| self.backlog(note)).max().unwrap_or(0).max(self.at_release(released))
    }

    /// The decoder may have no note at the moment of the release.
    fn at_release(&self, released: Nanos) -> u64 {
        let done = self.notes.iter().rfind(|note| note.at <= released).map_or(0, |note| note.progress);
        self.timetable.due_by(released).saturating_sub(done)
    }

    /// The backlog curve from the release until some time after the drain, thinned out: the largest of
    /// neighbouring values remains.
    fn points(&self, released: Nanos, drain_ns: Option<u64>) -> Vec<(i64, u64)> {
        let end = match drain_ns {
            Some(drain_ns) => released + (drain_ns as f64 * (1.0 + TAIL)) as u64,
            None => Nanos(u64::MAX),
        };
        let wanted: Vec<&DecodingProgress> =
            self.notes.iter().filter(|note| (released..=end).contains(&note.at)).collect();
        let each = wanted.len().div_ceil(POINTS).max(1);
        let points = wanted.chunks(each).filter_map(|notes| {
            let highest = notes.iter().max_by_key(|note| self.backlog(note))?;
            Some((highest.at.since(released), self.backlog(highest)))
        });
        std::iter::once((0, self.at_release(released))).chain(points).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drain_ends_when_the_backlog_is_back_at_its_steady_level() {
        // A datagram each microsecond; the decoder is 2 behind, then stops at 100 until the release at 200 µs.
        let timetable = Timetable::new(1_000_000, 1, Nanos(0));
        let note = |us: u64, progress| DecodingProgress { at: Nanos(us * 1_000), progress };
        let mut notes: Vec<DecodingProgress> = (10..100).map(|us| note(us, us - 1)).collect();
        notes.extend([note(150, 100), note(205, 150), note(210, 190), note(220, 219), note(230, 229)]);
        let looks = Looks { notes: &notes, timetable: &timetable };
        let steady = looks.steady(Nanos(10_000), Nanos(100_000));
        assert_eq!(steady, 2);
        let released = Nanos(200_000);
        assert_eq!(looks.drained(released, steady), Some(Nanos(220_000)));
        assert_eq!(looks.peak(Nanos(100_000), released, Nanos(220_000)), 201 - 100);
        assert_eq!(
            looks.points(released, Some(20_000)),
            [(0, 101), (5_000, 56), (10_000, 21), (20_000, 2), (30_000, 2)]
        );
        assert_eq!(looks.drained(Nanos(231_000), steady), None);
    }
}
