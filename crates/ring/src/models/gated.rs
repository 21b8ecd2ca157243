//! Gated rings: nothing is lost, and nothing is written over while it is read.

use super::atomics::Fault;
use super::explore::{Model, line, spawn};
use crate::{Name, Options, Poll, Publisher, Start, Subscriber};

fn name() -> Name {
    Name::new("model").unwrap()
}

/// Three frames of 8 bytes and the word that ends them; each opens a part of its own, so nearly every claim moves the
/// gate.
fn tiny() -> Options {
    Options { capacity: 64, wake_on_commit: false, ..Options::default() }
}

/// Publishes the next number, if there is room.
fn send(publisher: &mut Publisher) -> bool {
    let number = publisher.frames();
    publisher.publish(&number.to_ne_bytes()).is_ok()
}

/// The next frame's number, read while the frame is borrowed.
fn take(subscriber: &mut Subscriber) -> Option<u64> {
    let (position, len) = match subscriber.next() {
        Poll::Frame(frame) => (frame.position().0, frame.len()),
        Poll::Empty => return None,
        other => panic!("{other:?}"),
    };
    assert_eq!(len, 8, "of a frame that was sent");
    Some(subscriber.memory.words(position, len)[0])
}

/// Takes the next frame, which is number `next`, if there is one.
fn expect(subscriber: &mut Subscriber, next: &mut u64) {
    if let Some(number) = take(subscriber) {
        assert_eq!(number, *next, "in order");
        *next += 1;
    }
}

/// A ring in its second lap that has room for one more frame, and its subscriber, which has two to read.
fn nearly_full() -> (Publisher, Subscriber, u64) {
    let mut publisher = Publisher::open(&name(), &tiny()).unwrap();
    let mut subscriber = Subscriber::join_as(&name(), Start::Newest, "").unwrap();
    let mut next = 0;
    for _ in 0..3 {
        assert!(send(&mut publisher));
        expect(&mut subscriber, &mut next);
    }
    assert_eq!(take(&mut subscriber), None);
    assert!(send(&mut publisher) && send(&mut publisher));
    (publisher, subscriber, next)
}

fn wrap() {
    let (mut publisher, mut subscriber, mut next) = nearly_full();
    let reader = spawn(move || {
        for _ in 0..4 {
            expect(&mut subscriber, &mut next);
        }
        (subscriber, next)
    });
    for _ in 0..4 {
        send(&mut publisher);
    }
    let (mut subscriber, mut next) = reader.join().unwrap();
    while next < publisher.frames() {
        assert_eq!(take(&mut subscriber), Some(next), "nothing is lost");
        next += 1;
    }
    assert_eq!(take(&mut subscriber), None);
}

const WRAP: Model = Model { name: "wrap", preemptions: 2, least: 1000, run: wrap };

#[test]
fn frames_arrive_in_order_over_the_end_of_a_full_ring() {
    WRAP.holds();
}

#[test]
fn a_header_without_release_is_found() {
    WRAP.catches(Fault::Weak(line("publisher/commit.rs", ".store(self.header_word(first_len)")));
}
