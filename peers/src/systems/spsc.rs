//! Ours: the queue between two threads, for records of one type.

use tapeline_ring::spsc::{self, Consumer, Producer, QueuePoll};

use super::slot::{Slot, with_length};
use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::Stage;

/// Bytes of all slots together, as in our ring.
const CAPACITY: usize = 1 << 20;

const fn system(name: &'static str, title: &'static str, settings: &'static str) -> System {
    System { name, title, peer: "ring", place: Place::Threads, scope: Scope::Queue, settings, run }
}

pub(crate) const SINGLE: System = system(
    "spsc",
    "Tapeline spsc, pop",
    "slots of the message's size, 1 MiB in all, claimed and written in place, copied out by `pop`",
);
pub(crate) const BATCH: System =
    system("spsc-batch", "Tapeline spsc, take", "the same, read in slices of what is there by `take`");

fn run(stage: &Stage) -> anyhow::Result<()> {
    with_length!(stage.case.metric.bytes(), run_with(stage))
}

fn run_with<const N: usize>(stage: &Stage) -> anyhow::Result<()> {
    // As many slots as a power of two.
    let slots = (CAPACITY / N + 1).next_power_of_two() / 2;
    let (producer, consumer) = spsc::queue(slots, Slot::<N>::default);
    if stage.case.system == BATCH.name {
        stage.pair(Inlet(producer), Slices(consumer))
    } else {
        stage.pair(Inlet(producer), Outlet(consumer))
    }
}

struct Inlet<const N: usize>(Producer<Slot<N>>);

impl<const N: usize> Sender for Inlet<N> {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        let Ok(mut slot) = self.0.claim() else { return false };
        message.fill(&mut slot.0);
        slot.commit();
        true
    }
}

struct Outlet<const N: usize>(Consumer<Slot<N>>);

impl<const N: usize> Receiver for Outlet<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let QueuePoll::Ready(slot) = self.0.pop() else { return 0 };
        each(&slot.0);
        1
    }
}

struct Slices<const N: usize>(Consumer<Slot<N>>);

impl<const N: usize> Receiver for Slices<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let QueuePoll::Ready(slots) = self.0.take() else { return 0 };
        for slot in slots.iter() {
            each(&slot.0);
        }
        slots.len() as u64
    }
}
