//! Eviction: the subscriber is lent what was sent.

use std::time::Duration;

use super::clock::STEP;
use super::explore::{Model, spawn};
use super::scene::{name, send_pair, tiny};
use crate::{Options, Poll, Publisher, Start, Subscriber};

/// Five looks of the publisher.
const LIMIT: Duration = Duration::from_nanos(4 * STEP.as_nanos() as u64);

/// A full ring whose subscriber has stalled for `looks` looks of the publisher. Then it wakes up, and the publisher tries
/// to send `more`.
fn stalled(looks: usize, more: usize) {
    let options = Options { stall_limit: LIMIT, ..tiny() };
    let mut publisher = Publisher::open(&name(), &options).unwrap();
    let mut subscriber = Subscriber::join_as(&name(), Start::Newest, "").unwrap();
    assert!(send_pair(&mut publisher) && matches!(subscriber.next(), Poll::Frame(_)));
    assert!(matches!(subscriber.next(), Poll::Empty), "the first is released");
    assert!(send_pair(&mut publisher) && send_pair(&mut publisher));
    for _ in 0..looks {
        assert!(!send_pair(&mut publisher), "full");
    }
    let reading = spawn(move || {
        let mut next = 1;
        for _ in 0..3 {
            let words: Vec<_> = match subscriber.next() {
                Poll::Frame(frame) => {
                    frame.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect()
                }
                Poll::Empty => continue,
                Poll::Evicted { position } => {
                    assert!((24..=24 * next).contains(&position.0), "what it had released");
                    return None;
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(words, [next, next], "whole, and in order");
            next += 1;
        }
        Some((subscriber, next))
    });
    for _ in 0..more {
        send_pair(&mut publisher);
    }
    if let Some((mut subscriber, next)) = reading.join().unwrap()
        && !subscriber.is_evicted()
    {
        for _ in next..publisher.frames() {
            assert!(matches!(subscriber.next(), Poll::Frame(_)), "nothing is lost");
        }
    }
}

pub(super) const ORDERED: Model =
    Model { name: "eviction", preemptions: 2, least: 3000, run: || stalled(4, 2) };
pub(super) const ASKED: Model = Model { name: "asked", preemptions: 1, least: 3000, run: || stalled(2, 4) };
