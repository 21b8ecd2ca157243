//! Moments that occur too rarely in tests of whole subscribers: joins while the publisher runs at full speed, and
//! an end between two looks.

use std::cell::RefCell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use super::*;
use crate::{Broadcast, Name, Options, Publisher, PublisherOf, Subscriber};

impl Subscriber {
    /// Leaves and joins again, with the same segment, mapping and slot.
    fn join_again(&mut self, start: Start) {
        self.memory.subscribers().members.slots.fetch_and(!(1 << self.slot), Ordering::Release);
        match start {
            Start::Newest => self.join_newest(),
            Start::Oldest => self.join_oldest(),
        }
        .unwrap();
    }
}

/// The counter of a frame whose every word is that counter.
fn counter_of(frame: &[u8]) -> u64 {
    let words = frame.as_chunks::<8>().0;
    let counter = u64::from_le_bytes(words[0]);
    assert!(words.iter().all(|word| u64::from_le_bytes(*word) == counter), "torn: {words:?}");
    assert_eq!(words.len() as u64, 1 + counter % 13, "of another frame");
    counter
}

/// Between the first load of the publisher's position and the registration: sometimes long enough for several laps.
pub(super) fn interlude() {
    static JOINS: AtomicU64 = AtomicU64::new(0);
    for _ in 0..scatter(JOINS.fetch_add(1, Ordering::Relaxed)) % 1000 {
        spin_loop();
    }
}

/// Some bits that look random, for delays.
fn scatter(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

fn join_under_load(start: Start, joins: u64) {
    let name = Name::new(&format!("test-rejoin-{start:?}-{}", std::process::id())).unwrap();
    // Small, so that a lap takes about a microsecond and a joiner that the publisher does not see is soon overrun.
    let options = Options { capacity: 4096.max(rustix::param::page_size()), ..Options::default() };
    let mut publisher = Publisher::open(&name, &options).unwrap();
    let mut subscriber = Subscriber::join(&name, start).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let joiner = scope.spawn(|| {
            for join in 0..joins {
                subscriber.join_again(start);
                // Time for a publisher that has not seen this subscriber to overwrite its frames.
                for _ in 0..scatter(join) % 2000 {
                    spin_loop();
                }
                let mut last = None;
                for _ in 0..12 {
                    let counter = loop {
                        match subscriber.next() {
                            Poll::Frame(frame) => break counter_of(&frame),
                            Poll::Empty => thread::yield_now(),
                            other => panic!("{other:?}"),
                        }
                    };
                    assert!(last.is_none_or(|last| counter == last + 1), "{last:?}, then {counter}");
                    last = Some(counter);
                }
            }
        });
        scope.spawn(|| {
            let mut counter = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let Ok(mut claim) = publisher.claim(8 * (1 + counter as usize % 13)) else {
                    thread::yield_now();
                    continue;
                };
                for word in claim.as_chunks_mut::<8>().0 {
                    *word = counter.to_le_bytes();
                }
                claim.commit();
                counter += 1;
            }
        });
        let failed = joiner.join().is_err();
        stop.store(true, Ordering::Relaxed);
        assert!(!failed, "see above");
    });
}

#[test]
fn joining_at_the_newest_is_never_overrun() {
    join_under_load(Start::Newest, 40_000);
}

#[test]
fn joining_at_the_oldest_is_never_overrun() {
    join_under_load(Start::Oldest, 40_000);
}

type Deed = Box<dyn FnOnce()>;

thread_local! {
    static DEED: RefCell<Option<Deed>> = const { RefCell::new(None) };
}

/// Runs between a subscriber's look for a frame that finds none, and its look at whether the publisher has ended:
/// once, the deed that a test on this thread has set.
pub(crate) fn between_looks() {
    if let Some(deed) = DEED.take() {
        deed();
    }
}

fn end<D: Discipline>(mut publisher: PublisherOf<D>) {
    publisher.publish(b"last").unwrap();
    publisher.close().unwrap();
}

/// A last frame and the end, both between the two looks: the subscriber must get the frame before the end.
#[test]
fn an_end_between_two_looks_hides_no_frame() {
    let options = Options { keep: true, ..Options::default() };
    let name = |what: &str| Name::new(&format!("test-{what}-{}", std::process::id())).unwrap();

    let gated = name("end-gated");
    let publisher = Publisher::open(&gated, &options).unwrap();
    let mut subscriber = Subscriber::join(&gated, Start::Newest).unwrap();
    DEED.replace(Some(Box::new(|| end(publisher))));
    assert!(matches!(subscriber.next(), Poll::Empty));
    assert_eq!(subscriber.next().frame().as_deref(), Some(&b"last"[..]));
    assert!(matches!(subscriber.next(), Poll::Ended));
    crate::remove(&gated, false).unwrap();

    let broadcast = name("end-broadcast");
    let publisher = PublisherOf::<Broadcast>::open(&broadcast, &options).unwrap();
    let mut subscriber = SubscriberOf::<Broadcast>::join(&broadcast, Start::Newest).unwrap();
    DEED.replace(Some(Box::new(|| end(publisher))));
    assert!(matches!(subscriber.next(), crate::broadcast::BroadcastPoll::Empty));
    assert_eq!(subscriber.next().frame().as_deref(), Some(&b"last"[..]));
    assert!(matches!(subscriber.next(), crate::broadcast::BroadcastPoll::Ended));
    crate::remove(&broadcast, false).unwrap();
}
