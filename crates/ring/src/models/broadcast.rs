//! Broadcast rings: an overtaken reader gets whole frames and the number of lost frames.

use super::explore::{Model, spawn};
use super::scene::{name, send_pair, tiny};
use crate::Start;
use crate::broadcast::{BroadcastPoll, Publisher, Subscriber};

/// Takes a frame, if there is one, and counts.
fn look(subscriber: &mut Subscriber, next: &mut u64) -> bool {
    match subscriber.next() {
        BroadcastPoll::Frame(frame) => {
            let words: Vec<_> =
                frame.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
            assert_eq!(words, [*next, *next], "whole, and in order");
            *next += 1;
        }
        BroadcastPoll::Lost { frames, .. } => {
            assert!(frames > 0, "something is lost");
            *next += frames;
        }
        BroadcastPoll::Empty => return false,
        other => panic!("{other:?}"),
    }
    true
}

/// An overtaken reader gets whole frames and a count.
fn overtaken() {
    let mut publisher = Publisher::open(&name(), &tiny()).unwrap();
    let mut subscriber = Subscriber::join_as(&name(), Start::Newest, "").unwrap();
    for _ in 0..2 {
        assert!(send_pair(&mut publisher));
    }
    let reading = spawn(move || {
        let mut next = 0;
        for _ in 0..2 {
            look(&mut subscriber, &mut next);
        }
        (subscriber, next)
    });
    for _ in 0..2 {
        assert!(send_pair(&mut publisher), "it never waits");
    }
    let (mut subscriber, mut next) = reading.join().unwrap();
    while look(&mut subscriber, &mut next) {}
    assert_eq!(next, publisher.frames(), "what was lost is counted");
}

pub(super) const OVERTAKEN: Model = Model { name: "overtaken", preemptions: 2, least: 800, run: overtaken };

/// The end is seen after the last frame.
fn end() {
    let mut publisher = Publisher::open(&name(), &tiny()).unwrap();
    let mut subscriber = Subscriber::join_as(&name(), Start::Newest, "").unwrap();
    let reading = spawn(move || {
        let mut next = 0;
        for _ in 0..3 {
            match subscriber.next() {
                BroadcastPoll::Frame(_) => next += 1,
                BroadcastPoll::Ended => {
                    assert_eq!(next, 1, "nothing is left behind");
                    break;
                }
                _ => {}
            }
        }
    });
    assert!(send_pair(&mut publisher));
    publisher.close().unwrap();
    reading.join().unwrap();
}

pub(super) const END: Model = Model { name: "end, broadcast", preemptions: 3, least: 30, run: end };

/// Joining while the publisher publishes.
fn join(start: Start) {
    let mut publisher = Publisher::open(&name(), &tiny()).unwrap();
    for _ in 0..3 {
        assert!(send_pair(&mut publisher));
    }
    let joining = spawn(move || {
        let mut subscriber = Subscriber::join_as(&name(), start, "").unwrap();
        let mut next = subscriber.reading.frames;
        look(&mut subscriber, &mut next);
        (subscriber, next)
    });
    for _ in 0..2 {
        assert!(send_pair(&mut publisher), "it never waits");
    }
    let (mut subscriber, mut next) = joining.join().unwrap();
    while look(&mut subscriber, &mut next) {}
    assert_eq!(next, publisher.frames(), "it counts from where it joined");
}

pub(super) const NEWEST: Model =
    Model { name: "join newest, broadcast", preemptions: 2, least: 3000, run: || join(Start::Newest) };
pub(super) const OLDEST: Model =
    Model { name: "join oldest, broadcast", preemptions: 2, least: 2000, run: || join(Start::Oldest) };
