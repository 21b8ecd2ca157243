//! The receiving thread: receives from the socket into slots and withholds datagrams.

use std::thread;

use tapeline_measure::{Clock, Nanos};
use tapeline_wire::pool::{Intake, Pages, PoolCounters};
use tapeline_wire::udp::UdpReceiver;

use super::plan::{At, BurstPlan, Told};

/// The results of the receiving thread.
#[derive(Debug)]
pub(super) struct Taken {
    /// Time of the release, and the number of withheld datagrams.
    pub(super) released: Option<(Nanos, u64)>,
    pub(super) counters: PoolCounters,
    pub(super) pages: Pages,
    pub(super) kernel_drops: u64,
    pub(super) receive_buffer: usize,
}

impl Taken {
    /// The results without a release. Without a receiving thread and a pool, the decoder receives.
    pub(super) fn of(receiver: &mut UdpReceiver, pool: Option<&Intake>) -> Self {
        Self {
            released: None,
            counters: pool.map(Intake::counters).unwrap_or_default(),
            pages: pool.map_or(Pages::Ordinary, Intake::pages),
            kernel_drops: receiver.ask_kernel_drops(),
            receive_buffer: receiver.receive_buffer().got,
        }
    }
}

/// Receives until the round has ended.
pub(super) fn receive(
    plan: &BurstPlan,
    mut receiver: UdpReceiver,
    mut intake: Intake,
    clock: &Clock,
    told: &Told,
) -> Result<Taken, tapeline_wire::Error> {
    // The number of datagrams before the hold. Datagrams lost before the hold delay its start.
    let mut until_hold = (plan.at == At::Socket).then(|| plan.first_held());
    let mut released = None;
    let mut datagrams = 0;
    while !told.has_ended() {
        let received = match intake.receive(&mut receiver, 0) {
            Ok(received) => received,
            Err(error) => {
                told.end();
                return Err(error);
            }
        };
        // The hold starts with the batch after the one that reaches it: datagrams before the hold must not be
        // withheld.
        let holds = until_hold.is_some_and(|first| datagrams >= first);
        datagrams += received.count as u64;
        if holds {
            // A pool that is too small ends the hold; otherwise the round would never continue.
            let full = received.exhausted || received.dropped > 0;
            if (intake.staged() as u64) < plan.hold && !full && told.total().is_none() {
                if received.count == 0 {
                    thread::yield_now();
                }
                continue;
            }
            until_hold = None;
            released = Some((clock.now(), intake.staged() as u64));
        }
        if intake.deliver().is_err() {
            break;
        }
        if received.count == 0 {
            thread::yield_now();
        }
    }
    Ok(Taken { released, ..Taken::of(&mut receiver, Some(&intake)) })
}
