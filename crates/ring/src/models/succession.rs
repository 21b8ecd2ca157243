//! A publisher that continues another's ring.

use super::explore::{Model, spawn};
use super::scene::{kill_publisher, name, nearly_full, send, tiny};
use crate::{Error, Publisher};

/// One publisher dies with an open claim, another takes over, and the reader notices nothing.
fn take_over() {
    let (mut publisher, mut reader) = nearly_full(&tiny());
    reader.drain(5);
    let reading = spawn(move || {
        for _ in 0..3 {
            reader.look();
        }
        reader
    });
    let succeeding = spawn(|| match Publisher::open(&name(), &tiny()) {
        Ok(mut publisher) => {
            assert_eq!((publisher.epoch(), publisher.frames()), (2, 6), "where the first has ended");
            send(&mut publisher);
            Some(publisher)
        }
        Err(Error::PublisherAlive { .. }) => None,
        Err(other) => panic!("{other}"),
    });
    assert!(send(&mut publisher));
    publisher.claim(8).unwrap().fill(0xff);
    kill_publisher(publisher);
    let mut successor = match succeeding.join().unwrap() {
        Some(successor) => successor,
        None => Publisher::open(&name(), &tiny()).unwrap(),
    };
    assert!(send(&mut successor));
    reading.join().unwrap().drain(successor.frames());
}

pub(super) const TAKE_OVER: Model = Model { name: "take over", preemptions: 2, least: 2000, run: take_over };
