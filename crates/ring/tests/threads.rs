//! One publisher and several subscribers at the same time.

use crate::scene;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use scene::{OwnName, counter_of, message, publish_all, small};
use tapeline_ring::{Options, Poll, Publisher, Start, Subscriber, Wait};

const LONG: Duration = Duration::from_secs(600);

/// Sets its flag when it is dropped, also by a panic, so that the other threads end and the failure is reported.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reads to the end. Returns the first and last counter; panics at a gap or a wrong byte.
fn read_all(subscriber: &mut Subscriber, wait: Wait) -> Option<(u64, u64)> {
    let mut seen: Option<(u64, u64)> = None;
    loop {
        match subscriber.next() {
            Poll::Frame(frame) => {
                let counter = counter_of(&frame).expect("every byte is right");
                let first = match seen {
                    Some((first, last)) => {
                        assert_eq!(counter, last + 1, "nothing is lost");
                        first
                    }
                    None => counter,
                };
                seen = Some((first, counter));
            }
            Poll::Empty => assert!(subscriber.wait(wait, LONG), "a frame or the end comes"),
            Poll::Ended => return seen,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_way_of_waiting_sees_everything() {
    const MESSAGES: u64 = 15_000;
    let name = OwnName::new("waits");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    thread::scope(|scope| {
        for wait in [Wait::Spin, Wait::Pause, Wait::Yield, Wait::Park, Wait::Adaptive] {
            let mut subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
            scope.spawn(move || {
                assert_eq!(read_all(&mut subscriber, wait), Some((0, MESSAGES - 1)), "{wait:?}");
            });
        }
        for counter in 0..MESSAGES {
            publish_all(&mut publisher, &message(counter));
        }
        publisher.close().unwrap();
    });
}

#[test]
fn a_wait_ends_when_its_time_is_over() {
    let name = OwnName::new("time");
    let _publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
    for wait in [Wait::Spin, Wait::Pause, Wait::Yield, Wait::Park, Wait::Adaptive] {
        assert!(!subscriber.wait(wait, Duration::from_millis(3)), "{wait:?}");
        assert!(!subscriber.wait(wait, Duration::ZERO), "{wait:?}");
    }
}

/// Subscribers come and go while the publisher runs at full speed around a small ring: from its first frame on,
/// each sees every frame, whole.
#[test]
fn joining_under_load_loses_nothing() {
    const JOINS: usize = 400;
    for start in [Start::Newest, Start::Oldest] {
        let name = OwnName::new("joins");
        let mut publisher = Publisher::open(&name.0, &small()).unwrap();
        let stop = AtomicBool::new(false);
        let barrier = Barrier::new(3);
        thread::scope(|scope| {
            let joiners: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        for join in 0..JOINS {
                            let mut subscriber = Subscriber::join(&name.0, start).unwrap();
                            let mut last: Option<u64> = None;
                            // Now and then more than one lap.
                            let frames = if join.is_multiple_of(16) { 300 } else { 5 };
                            for _ in 0..frames {
                                assert!(subscriber.wait(Wait::Yield, LONG));
                                let frame = subscriber.next().frame().expect("a frame is there");
                                let counter = counter_of(&frame).expect("every byte is right");
                                assert!(
                                    last.is_none_or(|last| counter == last + 1),
                                    "{last:?} then {counter}"
                                );
                                last = Some(counter);
                            }
                        }
                    })
                })
                .collect();
            scope.spawn(|| {
                barrier.wait();
                let mut counter = 0;
                while !stop.load(Ordering::Relaxed) {
                    if publisher.publish(&message(counter)).is_ok() {
                        counter += 1;
                    }
                }
            });
            // Stop the publisher also if a joiner has failed, so that the failure is reported.
            let failed = joiners.into_iter().map(|joiner| joiner.join().is_err()).fold(false, |a, b| a | b);
            stop.store(true, Ordering::Relaxed);
            assert!(!failed);
        });
    }
}

/// The publisher never passes a subscriber that does not read; a subscriber that leaves frees its space.
#[test]
fn a_subscriber_that_does_not_read_stops_the_publisher() {
    let name = OwnName::new("stops");
    let mut publisher = Publisher::open(&name.0, &small()).unwrap();
    let mut slow = Subscriber::join_as(&name.0, Start::Newest, "slow").unwrap();
    let mut quick = Subscriber::join(&name.0, Start::Newest).unwrap();
    let mut sent = 0u64;
    while publisher.publish(&message(sent)).is_ok() {
        sent += 1;
        while quick.next().frame().is_some() {}
    }
    assert!(publisher.full() > 0);
    assert!(publisher.backlog_bytes() + 200 > publisher.capacity() as u64);
    // One frame is less than an eighth of the ring: nothing is released, nothing can be published.
    assert_eq!(slow.next().frame().as_deref().and_then(counter_of), Some(0));
    assert!(publisher.publish(&message(sent)).is_err());
    let mut expected = 1;
    while let Some(frame) = slow.next().frame() {
        assert_eq!(counter_of(&frame), Some(expected));
        expected += 1;
    }
    assert_eq!(expected, sent);
    assert!(publisher.publish(&message(sent)).is_ok());
    // Leaving releases too.
    let stale = Subscriber::join(&name.0, Start::Newest).unwrap();
    while publisher.publish(&message(0)).is_ok() {
        while slow.next().frame().is_some() {}
        while quick.next().frame().is_some() {}
    }
    drop(stale);
    assert!(publisher.publish(&message(0)).is_ok());
    assert_eq!(publisher.reclaimed(), 0, "who leaves in order is not counted as dead");
}

#[test]
fn notes_are_whole() {
    let name = OwnName::new("notes");
    let mut publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    let subscriber = Subscriber::join(&name.0, Start::Newest).unwrap();
    assert_eq!(subscriber.note(), Some([0; 8]));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut count = 1u64;
            while !stop.load(Ordering::Relaxed) {
                publisher.set_note([count; 8]);
                count += 1;
                // Sometimes long enough for a reader to finish, sometimes not.
                for _ in 0..count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 {
                    std::hint::spin_loop();
                }
            }
        });
        let _sets = Sets(&stop);
        let (mut newest, mut whole) = (0, 0);
        // Until both have done enough: the writer has written many notes, and the reader has read often.
        while newest < 1_000_000 || whole < 1_000_000 {
            if let Some(note) = subscriber.note() {
                assert!(note.iter().all(|word| *word == note[0]), "{note:?}");
                assert!(note[0] >= newest);
                newest = note[0];
                whole += 1;
            }
        }
    });
}

/// Without a wake-up at each commit a sleeper sleeps on; a flush wakes it, and so does a full ring.
#[test]
fn a_sleeper_is_woken_by_a_flush_or_a_full_ring() {
    let name = OwnName::new("flush");
    let options = Options { capacity: 4_096, wake_on_commit: false, ..Options::default() };
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    let mut subscriber = Subscriber::join(&name.0, Start::Oldest).unwrap();
    let parked = || tapeline_ring::inspect(&name.0).unwrap().subscribers[0].parked;
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut frames = 0;
            loop {
                match subscriber.next() {
                    Poll::Frame(_) => frames += 1,
                    Poll::Ended => return frames,
                    _ => {
                        subscriber.wait(Wait::Park, LONG);
                    }
                }
            }
        });
        let mut sent = 0;
        for _ in 0..100 {
            while !parked() {
                std::hint::spin_loop();
            }
            publisher.publish(b"one").unwrap();
            publisher.publish(b"two").unwrap();
            publisher.flush();
            sent += 2;
        }
        // Nobody flushes here: this ends soon only because a full ring wakes the sleeper.
        for _ in 0..10_000 {
            while publisher.publish(&[7; 100]).is_err() {
                std::hint::spin_loop();
            }
            sent += 1;
        }
        publisher.close().unwrap();
        assert_eq!(reader.join().unwrap(), sent);
    });
}
