//! crossbeam's `ArrayQueue`: many threads to many, used here by two.

use std::sync::Arc;

use crossbeam::queue::ArrayQueue;

use super::slot::{Slot, with_length};
use super::{Place, Scope, System};
use crate::measuring::{Receiver, Sender};
use crate::message::Message;
use crate::stage::Stage;

/// Bytes of all slots together, as in our ring.
const CAPACITY: usize = 1 << 20;

pub(crate) const SYSTEM: System = System {
    name: "crossbeam",
    title: "crossbeam ArrayQueue",
    peer: "crossbeam",
    place: Place::Threads,
    scope: Scope::Queue,
    settings: "slots of the message's size, 1 MiB in all; `push` and `pop`",
    run,
};

fn run(stage: &Stage) -> anyhow::Result<()> {
    with_length!(stage.case.metric.bytes(), run_with(stage))
}

fn run_with<const N: usize>(stage: &Stage) -> anyhow::Result<()> {
    let queue = Arc::new(ArrayQueue::<Slot<N>>::new(CAPACITY / N));
    stage.pair(End(queue.clone()), End(queue))
}

struct End<const N: usize>(Arc<ArrayQueue<Slot<N>>>);

impl<const N: usize> Sender for End<N> {
    #[inline]
    fn send(&mut self, message: &Message<'_>) -> bool {
        self.0.push(Slot::of(message)).is_ok()
    }
}

impl<const N: usize> Receiver for End<N> {
    #[inline]
    fn receive(&mut self, mut each: impl FnMut(&[u8])) -> u64 {
        match self.0.pop() {
            Some(slot) => {
                each(&slot.0);
                1
            }
            None => 0,
        }
    }
}
