//! disruptor: the Rust implementation of the LMAX Disruptor, between two threads.

use disruptor::{
    BusySpin, EventPoller, Producer, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
};

use super::slot::{Slot, with_length};
use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::Stage;

/// Slots: with 1,024 it carries a tenth of what it carries with these.
const SLOTS: usize = 65_536;

pub(crate) const SYSTEM: System = System {
    name: "disruptor",
    title: "disruptor (Rust)",
    peer: "disruptor",
    place: Place::Threads,
    scope: Scope::Queue,
    settings: "one producer, 65,536 slots of the message's size, busy spin; published one by one and written in place, \
               polled in batches of all that is there",
    run,
};

fn run(stage: &Stage) -> anyhow::Result<()> {
    with_length!(stage.case.metric.bytes(), run_with(stage))
}

fn run_with<const N: usize>(stage: &Stage) -> anyhow::Result<()> {
    let builder = disruptor::build_single_producer(SLOTS, Slot::<N>::default, BusySpin);
    let (poller, builder) = builder.new_event_poller();
    stage.pair(Inlet(builder.build()), Outlet(poller))
}

struct Inlet<const N: usize>(SingleProducer<Slot<N>, SingleConsumerBarrier>);

impl<const N: usize> Sender for Inlet<N> {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        self.0.try_publish(|slot| message.fill(&mut slot.0)).is_ok()
    }
}

struct Outlet<const N: usize>(EventPoller<Slot<N>, SingleProducerBarrier>);

impl<const N: usize> Receiver for Outlet<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let Ok(mut events) = self.0.poll() else { return 0 };
        let mut count = 0;
        for slot in &mut events {
            each(&slot.0);
            count += 1;
        }
        count
    }
}
