//! The feeder's thread: sends the live feed on schedule and withholds datagrams.

use tapeline_console::stop::Stop;
use tapeline_measure::{Clock, Nanos, Recorder, Waiting};

use super::gun::Gun;
use super::plan::{AFTER, At, BurstPlan, Told};
use super::stream::Timetable;

/// Limit of due datagrams that are sent together.
const BATCH: u64 = 64;
/// A backlog below this number of datagrams counts as drained while the round runs; the exact drain is determined
/// afterwards.
const NEARLY_NONE: u64 = 64;

/// The feeder's results.
#[derive(Debug)]
pub(super) struct Fed {
    /// Number of datagrams sent.
    pub(super) total: u64,
    /// Time of the release of the withheld datagrams.
    pub(super) released: Option<Nanos>,
    /// Time at which the kernel had accepted the last of them.
    pub(super) shot: Option<Nanos>,
    /// Actual send time less due time, for the live datagrams before the hold.
    pub(super) lateness: Recorder,
    pub(super) blocked: u64,
    pub(super) segmented: bool,
}

/// Sends the feed of a round until some time after the drain, or until the give-up time.
pub(super) fn feed(
    plan: &BurstPlan,
    mut gun: Gun,
    timetable: &Timetable,
    clock: &Clock,
    told: &Told,
    stop: &Stop,
) -> Result<Fed, tapeline_wire::Error> {
    let mut fed =
        Fed { total: 0, released: None, shot: None, lateness: Recorder::new(), blocked: 0, segmented: false };
    let sent = run(plan, &mut gun, timetable, clock, told, stop, &mut fed);
    told.set_total(fed.total);
    if sent.is_err() {
        told.end();
    }
    fed.blocked = gun.blocked;
    fed.segmented = gun.segmented;
    sent.map(|()| fed)
}

fn run(
    plan: &BurstPlan,
    gun: &mut Gun,
    timetable: &Timetable,
    clock: &Clock,
    told: &Told,
    stop: &Stop,
    fed: &mut Fed,
) -> Result<(), tapeline_wire::Error> {
    let stream = &plan.stream;
    let (first_held, end_held) = (plan.first_held(), plan.end_held());
    let give_up_ns = u64::try_from(plan.give_up.as_nanos()).unwrap_or(u64::MAX);
    let give_up = timetable.due(end_held) + give_up_ns;
    // Touched now (zeroed memory would not be), so that preparing the withheld datagrams causes no page faults.
    let mut bytes = vec![1; plan.hold.max(BATCH) as usize * (stream.datagram_bytes() + 64)];
    let mut end = u64::MAX;
    while fed.total < end && !told.has_ended() && !stop.requested() {
        let next = fed.total;
        let now = timetable.pacer.wait(clock, timetable.due(next), Waiting::Yield);
        bytes.clear();
        if plan.at == At::Sender && next == first_held {
            for number in first_held..end_held {
                let due = timetable.due(number);
                stream.append(number, due.0, &mut bytes);
                if number % BATCH == 0 {
                    timetable.pacer.wait(clock, due, Waiting::Yield);
                }
            }
            let released = timetable.pacer.wait(clock, timetable.due(end_held - 1), Waiting::Yield);
            gun.send(&bytes, stream.datagram_bytes())?;
            fed.released = Some(released);
            fed.shot = Some(clock.now());
            fed.total = end_held;
            continue;
        }
        // Not past the start of the hold, and only datagrams of one length in one send.
        let mut upto = timetable.due_by(now).min(next + BATCH).min(end).max(next + 1);
        for edge in [stream.opening(), first_held] {
            if next < edge {
                upto = upto.min(edge);
            }
        }
        let mut length = 0;
        for number in next..upto {
            length = stream.append(number, timetable.due(number).0, &mut bytes);
        }
        gun.send(&bytes, length)?;
        if (plan.warm()..first_held).contains(&next) {
            let sent = clock.now();
            (next..upto).for_each(|number| fed.lateness.record(sent.since(timetable.due(number))));
        }
        fed.total = upto;
        if end == u64::MAX && upto >= end_held {
            let progress = told.progress();
            let drained = progress >= end_held && timetable.due_by(now) <= progress + NEARLY_NONE;
            if drained || now >= give_up {
                end = timetable.due_by(now + AFTER.as_nanos() as u64).max(upto);
            }
        }
    }
    Ok(())
}
