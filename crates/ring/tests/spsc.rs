//! The queue between two threads: any order of calls against a plain queue, both threads at once, records that own memory.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use tapeline_ring::spsc::{self, Consumer, Producer, QueuePoll, QueueRefused};

#[derive(Clone, Debug)]
enum Call {
    Push,
    Abort,
    /// The number requested, and the number committed.
    Batch(usize, usize),
    Pop,
    Take,
    TakeUpTo(usize),
    Release,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        3 => Just(Call::Push),
        1 => Just(Call::Abort),
        2 => (1..20usize, 0..20usize).prop_map(|(most, first)| Call::Batch(most, first)),
        4 => Just(Call::Pop),
        1 => Just(Call::Take),
        1 => (1..20usize).prop_map(Call::TakeUpTo),
        1 => Just(Call::Release),
    ];
    proptest::collection::vec(call, 0..400)
}

/// Both ends and the plain queue for comparison.
struct Pair {
    producer: Producer<u64>,
    consumer: Consumer<u64>,
    plain: VecDeque<u64>,
    next: u64,
    /// Slots that the consumer has read and possibly not released.
    kept: usize,
}

impl Pair {
    fn new(capacity: usize) -> Self {
        let (producer, consumer) = spsc::queue(capacity, || u64::MAX);
        assert_eq!(producer.capacity(), capacity.next_power_of_two());
        Self { producer, consumer, plain: VecDeque::new(), next: 0, kept: 0 }
    }

    fn pushed(&mut self, len: usize) {
        self.plain.extend(self.next..self.next + len as u64);
        self.next += len as u64;
    }

    fn has_refused(&self, refused: QueueRefused) {
        assert_eq!(refused, QueueRefused::Full);
        // Fewer records than an eighth of the queue are read and not released.
        let capacity = self.producer.capacity();
        assert!(self.kept < (capacity / 8).max(1), "{} kept of {capacity}", self.kept);
        assert_eq!(self.plain.len() + self.kept, capacity, "full is full");
    }

    fn took(&mut self, len: usize) {
        self.kept += len;
        if self.kept >= (self.consumer.capacity() / 8).max(1) {
            self.kept = 0;
        }
    }

    fn call(&mut self, call: &Call) {
        match *call {
            Call::Push => match self.producer.push(self.next) {
                Ok(()) => self.pushed(1),
                Err(refused) => self.has_refused(refused),
            },
            Call::Abort => {
                if let Ok(mut claim) = self.producer.claim() {
                    *claim = u64::MAX;
                }
            }
            Call::Batch(most, first) => match self.producer.claim_batch(most) {
                Ok(mut batch) => {
                    assert!((1..=most).contains(&batch.len()));
                    for (slot, number) in batch.iter_mut().zip(self.next..) {
                        *slot = number;
                    }
                    let first = first.min(batch.len());
                    batch.commit_first(first);
                    self.pushed(first);
                }
                Err(refused) => self.has_refused(refused),
            },
            Call::Pop => match self.consumer.pop() {
                QueuePoll::Ready(number) => {
                    assert_eq!(Some(number), self.plain.pop_front());
                    self.took(1);
                }
                other => self.found_nothing(other),
            },
            Call::Take => self.take(usize::MAX),
            Call::TakeUpTo(most) => self.take(most),
            Call::Release => {
                self.consumer.release();
                self.kept = 0;
            }
        }
    }

    fn take(&mut self, most: usize) {
        let taken = match self.consumer.take_up_to(most) {
            QueuePoll::Ready(records) => QueuePoll::Ready(records.to_vec()),
            QueuePoll::Empty => QueuePoll::Empty,
            QueuePoll::Ended => QueuePoll::Ended,
        };
        match taken {
            QueuePoll::Ready(records) => {
                assert!((1..=most).contains(&records.len()));
                let plain: Vec<_> = self.plain.drain(..records.len()).collect();
                assert_eq!(records, plain);
                self.took(records.len());
            }
            other => self.found_nothing(other),
        }
    }

    fn found_nothing<R>(&mut self, poll: QueuePoll<R>) {
        assert!(matches!(poll, QueuePoll::Empty), "the producer is there");
        assert!(self.plain.is_empty(), "nothing is lost");
        self.kept = 0;
    }
}

proptest! {
    #[test]
    fn any_order_of_calls_is_as_on_a_plain_queue(capacity in 0..40usize, calls in calls()) {
        let mut pair = Pair::new(capacity);
        for call in &calls {
            pair.call(call);
        }
        prop_assert_eq!(pair.producer.pushed(), pair.next);
        prop_assert_eq!(pair.consumer.read(), pair.next - pair.plain.len() as u64);
        drop(pair.producer);
        let mut rest = Vec::new();
        loop {
            match pair.consumer.take() {
                QueuePoll::Ready(records) => rest.extend_from_slice(&records),
                QueuePoll::Empty => panic!("the producer has gone"),
                QueuePoll::Ended => break,
            }
        }
        prop_assert_eq!(rest, Vec::from(pair.plain));
    }
}

/// A record whose words are derived from its number.
fn record(number: u64) -> [u64; 12] {
    std::array::from_fn(|at| number.wrapping_mul(at as u64 * 2 + 1))
}

#[test]
fn two_threads_lose_and_tear_nothing() {
    const RECORDS: u64 = 300_000;
    for capacity in [1, 2, 8, 1024] {
        let (mut producer, mut consumer) = spsc::queue(capacity, || [0; 12]);
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut next = 0;
                while next < RECORDS {
                    // One record, then a batch, in turns.
                    let refused = match next % 2 {
                        0 => producer.push(record(next)).map(|()| 1),
                        _ => producer.claim_batch(7).map(|mut batch| {
                            for (slot, number) in batch.iter_mut().zip(next..) {
                                *slot = record(number);
                            }
                            let len = batch.len() as u64;
                            batch.commit();
                            len
                        }),
                    };
                    match refused {
                        Ok(pushed) => next += pushed,
                        Err(QueueRefused::Full) => thread::yield_now(),
                        Err(QueueRefused::Closed) => return,
                    }
                }
            });
            let mut next = 0;
            loop {
                let taken = if next % 2 == 0 {
                    match consumer.pop() {
                        QueuePoll::Ready(popped) => QueuePoll::Ready(vec![popped]),
                        QueuePoll::Empty => QueuePoll::Empty,
                        QueuePoll::Ended => QueuePoll::Ended,
                    }
                } else {
                    match consumer.take_up_to(100) {
                        QueuePoll::Ready(records) => QueuePoll::Ready(records.to_vec()),
                        QueuePoll::Empty => QueuePoll::Empty,
                        QueuePoll::Ended => QueuePoll::Ended,
                    }
                };
                match taken {
                    QueuePoll::Ready(records) => {
                        for found in records {
                            assert_eq!(found, record(next), "record {next}, {capacity} slots");
                            next += 1;
                        }
                    }
                    QueuePoll::Empty => thread::yield_now(),
                    QueuePoll::Ended => break,
                }
            }
            assert!(next >= RECORDS);
        });
    }
}

#[test]
fn a_producer_learns_that_the_consumer_has_gone() {
    let (mut producer, mut consumer) = spsc::queue(4, || 0);
    producer.push(1).unwrap();
    assert!(matches!(consumer.pop(), QueuePoll::Ready(1)));
    assert!(!producer.is_closed());
    drop(consumer);
    assert!(producer.is_closed());
    let refused = (0..5).find_map(|number| producer.push(number).err());
    assert_eq!(refused, Some(QueueRefused::Closed), "at the latest when it is full");
    assert_eq!(producer.claim().err(), Some(QueueRefused::Closed), "and from then on");
    assert_eq!(producer.claim_batch(2).err(), Some(QueueRefused::Closed));
}

#[test]
fn records_that_own_memory_are_dropped_once() {
    let owned = Arc::new(());
    let (mut producer, mut consumer) = spsc::queue(4, || None);
    for round in 1..=10 {
        for _ in 0..3 {
            let mut claim = producer.claim().unwrap();
            *claim = Some(Arc::clone(&owned));
            claim.commit();
        }
        // One record is moved out, the others stay in their slots.
        let QueuePoll::Ready(mut records) = consumer.take() else { panic!("round {round}") };
        let moved = records[0].take();
        drop(records);
        assert!(moved.is_some());
        while let QueuePoll::Ready(records) = consumer.take() {
            drop(records);
        }
        let left = Arc::strong_count(&owned) - 2;
        assert!((1..=4).contains(&left), "no more than there are slots: {left} in round {round}");
    }
    let mut aborted = producer.claim().unwrap();
    *aborted = Some(Arc::clone(&owned));
    drop(aborted);
    drop((producer, consumer));
    assert_eq!(Arc::strong_count(&owned), 1, "all that stayed is dropped with the queue");
}

#[test]
fn buffers_stay_in_their_slots() {
    let (mut producer, mut consumer) = spsc::queue(2, || Vec::<u8>::with_capacity(64));
    let mut places = Vec::new();
    for lap in 0..6_u8 {
        let mut claim = producer.claim().unwrap();
        claim.clear();
        claim.extend_from_slice(&[lap; 40]);
        places.push(claim.as_ptr());
        claim.commit();
        let QueuePoll::Ready(records) = consumer.take() else { panic!("lap {lap}") };
        assert_eq!(records[0], [lap; 40]);
    }
    assert_eq!(places[..2], places[2..4], "nothing is allocated again");
    assert_eq!(places[..2], places[4..]);
}
