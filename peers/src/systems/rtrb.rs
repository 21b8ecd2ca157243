//! rtrb: a wait-free ring of values between two threads.

use rtrb::{Consumer, Producer, RingBuffer};

use super::slot::{Slot, with_length};
use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::Stage;

/// Bytes of all slots together, as in our ring.
const CAPACITY: usize = 1 << 20;

const fn system(name: &'static str, title: &'static str, settings: &'static str) -> System {
    System { name, title, peer: "rtrb", place: Place::Threads, scope: Scope::Queue, settings, run }
}

pub(crate) const SINGLE: System =
    system("rtrb", "rtrb, pop", "slots of the message's size, 1 MiB in all, `push` and `pop`");
pub(crate) const BATCH: System =
    system("rtrb-batch", "rtrb, read in chunks", "the same, reading chunks of all that is there");

fn run(stage: &Stage) -> anyhow::Result<()> {
    with_length!(stage.case.metric.bytes(), run_with(stage))
}

fn run_with<const N: usize>(stage: &Stage) -> anyhow::Result<()> {
    let (producer, consumer) = RingBuffer::<Slot<N>>::new(CAPACITY / N);
    if stage.case.system == BATCH.name {
        stage.pair(Inlet(producer), Chunks(consumer))
    } else {
        stage.pair(Inlet(producer), Outlet(consumer))
    }
}

struct Inlet<const N: usize>(Producer<Slot<N>>);

impl<const N: usize> Sender for Inlet<N> {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        if self.0.is_full() {
            return false;
        }
        self.0.push(Slot::of(message)).is_ok()
    }
}

struct Outlet<const N: usize>(Consumer<Slot<N>>);

impl<const N: usize> Receiver for Outlet<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let Ok(slot) = self.0.pop() else { return 0 };
        each(&slot.0);
        1
    }
}

struct Chunks<const N: usize>(Consumer<Slot<N>>);

impl<const N: usize> Receiver for Chunks<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        let Ok(chunk) = self.0.read_chunk(self.0.slots()) else { return 0 };
        let (front, back) = chunk.as_slices();
        for slot in front.iter().chain(back) {
            each(&slot.0);
        }
        let count = chunk.len() as u64;
        chunk.commit_all();
        count
    }
}
