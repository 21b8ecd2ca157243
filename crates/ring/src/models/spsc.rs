//! The queue between two threads: nothing is lost, and no slot is touched by two sides.

use super::explore::{Model, spawn};
use crate::atomics::{AtomicU64, Ordering};
use crate::spsc::{self, Consumer, Producer, QueuePoll, QueueRefused};

/// The model's consumer.
struct Reader {
    consumer: Consumer<u64>,
    /// The next expected number.
    next: u64,
}

impl Reader {
    /// Takes the available records; returns whether the producer is still there.
    fn look(&mut self) -> bool {
        match self.consumer.take() {
            QueuePoll::Ready(numbers) => {
                for number in numbers.iter() {
                    assert_eq!(*number, self.next, "in order");
                    self.next += 1;
                }
                true
            }
            QueuePoll::Empty => true,
            QueuePoll::Ended => false,
        }
    }

    /// Takes all records up to number `end`, with which the producer has ended.
    fn drain(&mut self, end: u64) {
        while self.next < end {
            assert!(self.look(), "number {} of {end} is lost", self.next);
        }
        assert!(!self.look(), "no more than was sent");
    }
}

fn push(producer: &mut Producer<u64>) -> Result<(), QueueRefused> {
    let number = producer.pushed();
    producer.push(number)
}

/// A queue of two slots in its second lap: one record to read, space for one more.
fn half_full() -> (Producer<u64>, Reader) {
    let (mut producer, consumer) = spsc::queue(2, || u64::MAX);
    let mut reader = Reader { consumer, next: 0 };
    for _ in 0..3 {
        push(&mut producer).unwrap();
        assert!(reader.look() && reader.look(), "all is given back");
    }
    push(&mut producer).unwrap();
    (producer, reader)
}

/// One record at a time over the end of a full queue, and then the end.
fn one_by_one() {
    let (mut producer, mut reader) = half_full();
    let reading = spawn(move || {
        for _ in 0..3 {
            reader.look();
        }
        reader
    });
    for _ in 0..3 {
        let _ = push(&mut producer);
    }
    let pushed = producer.pushed();
    drop(producer);
    reading.join().unwrap().drain(pushed);
}

/// Batches of two, of which the second record becomes visible with the first.
fn in_batches() {
    let (mut producer, consumer) = spsc::queue(4, || u64::MAX);
    let mut reader = Reader { consumer, next: 0 };
    let batch = |producer: &mut Producer<u64>| {
        let first = producer.pushed();
        if let Ok(mut batch) = producer.claim_batch(2) {
            for (slot, number) in batch.iter_mut().zip(first..) {
                *slot = number;
            }
            batch.commit();
        }
    };
    batch(&mut producer);
    let reading = spawn(move || {
        for _ in 0..3 {
            reader.look();
        }
        reader
    });
    for _ in 0..3 {
        batch(&mut producer);
    }
    let pushed = producer.pushed();
    drop(producer);
    reading.join().unwrap().drain(pushed);
}

/// The consumer ends with a record unread; the refused producer sees what the consumer did before.
fn closed() {
    let (mut producer, mut reader) = half_full();
    let last = AtomicU64::default();
    let noted = last.clone();
    let reading = spawn(move || {
        reader.look();
        noted.store(reader.next, Ordering::Relaxed);
    });
    let mut refused = None;
    for _ in 0..3 {
        refused = push(&mut producer).err();
        assert!(producer.is_closed() || refused != Some(QueueRefused::Closed), "gone is gone");
    }
    if refused == Some(QueueRefused::Closed) || producer.is_closed() {
        assert!(last.plain() >= 4, "what it did is seen");
    }
    reading.join().unwrap();
    assert!(producer.is_closed());
}

pub(super) const ONE_BY_ONE: Model =
    Model { name: "queue, one by one", preemptions: 2, least: 400, run: one_by_one };
pub(super) const IN_BATCHES: Model =
    Model { name: "queue, in batches", preemptions: 2, least: 240, run: in_batches };
pub(super) const CLOSED: Model = Model { name: "queue, closed", preemptions: 2, least: 500, run: closed };
